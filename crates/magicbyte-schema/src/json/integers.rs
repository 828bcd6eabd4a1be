//! [`Integers`], which JSON writes with any number of digits.

/// The type of the columns of integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Integers {
    /// 64 bits, and text for those that the schema allows to be longer.
    #[default]
    Int64,
    /// A decimal of 38 digits.
    Decimal,
    /// Text: the integer as it is in the payload.
    Text,
}

impl Integers {
    pub(super) const ALL: [Self; 3] = [Self::Int64, Self::Decimal, Self::Text];
}

/// The digits of a decimal of 128 bits.
pub(super) const MAX_DIGITS: u8 = arrow_schema::DECIMAL128_MAX_PRECISION;

/// An integer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Integer {
    Short(i128),
    /// It has more than [`MAX_DIGITS`] digits.
    Long,
}

impl Integer {
    /// The integer that a number of JSON is, however it is written: 1.0 and 10e-1 are 1. `None` for fractions.
    pub(super) fn of(number: &str) -> Option<Self> {
        let (is_negative, number) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = || before.bytes().chain(after.bytes());
        let Some(first) = digits().position(|digit| digit != b'0') else { return Some(Self::Short(0)) };
        let zeros = digits().rev().take_while(|&digit| digit == b'0').count();
        let last = before.len() + after.len() - 1 - zeros;
        // Of an exponent that is longer than this, only the sign matters.
        let exponent = match exponent.parse::<i64>() {
            Ok(exponent) => exponent,
            Err(_) if exponent.starts_with('-') => return None,
            Err(_) => return Some(Self::Long),
        };
        // Of the first digit and the last that count, the places before the point.
        let point = (before.len() as i64).saturating_add(exponent);
        let (first_place, last_place) =
            (point.saturating_sub(first as i64), point.saturating_sub(last as i64));
        if last_place < 1 {
            return None;
        }
        if first_place > i64::from(MAX_DIGITS) {
            return Some(Self::Long);
        }
        let counted = digits().skip(first).take(last - first + 1);
        let value = counted.fold(0_i128, |value, digit| value * 10 + i128::from(digit - b'0'));
        let value = value * 10_i128.pow((last_place - 1) as u32);
        Some(Self::Short(if is_negative { -value } else { value }))
    }

    pub(super) fn short(self) -> Option<i128> {
        match self {
            Self::Short(value) => Some(value),
            Self::Long => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Integer;

    #[test]
    fn an_integer_is_one_however_it_is_written() {
        for (text, expected) in [
            ("0", 0),
            ("-0.000e99999999999999999999", 0),
            ("1.0", 1),
            ("-12.50e1", -125),
            ("1200e-2", 12),
            ("0.0012E+4", 12),
            ("9007199254740993.0", 9_007_199_254_740_993),
            ("9223372036854775808", 9_223_372_036_854_775_808),
            ("-99999999999999999999999999999999999999", -99_999_999_999_999_999_999_999_999_999_999_999_999),
            ("1e37", 10_i128.pow(37)),
        ] {
            assert_eq!(Integer::of(text), Some(Integer::Short(expected)), "{text}");
        }
        for text in [
            "100000000000000000000000000000000000000",
            "1e38",
            "-1e400",
            "5e9223372036854775807",
            "1e99999999999999999999",
        ] {
            assert_eq!(Integer::of(text), Some(Integer::Long), "{text}");
        }
        for text in ["1.5", "-0.1", "1e-1", "12e-2", "5e-9223372036854775808", "1e-99999999999999999999"] {
            assert_eq!(Integer::of(text), None, "{text}");
        }
    }
}
