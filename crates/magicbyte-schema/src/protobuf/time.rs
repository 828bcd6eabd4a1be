//! `Timestamp` and `Duration` as text.

use crate::calendar::date;

const SECONDS_OF_A_DAY: i64 = 86_400;
/// The first second of the year 1, and the last one of the year 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
/// 10,000 years.
const MAX_DURATION: u64 = 315_576_000_000;
const NANOS: i32 = 1_000_000_000;

/// As in RFC 3339, such as `1972-01-01T10:00:20.021Z`; `None` if it is out of range.
pub(super) fn shown_timestamp(seconds: i64, nanos: i32) -> Option<String> {
    if !SECONDS.contains(&seconds) || !(0..NANOS).contains(&nanos) {
        return None;
    }
    let (year, month, day) = date(seconds.div_euclid(SECONDS_OF_A_DAY));
    let second = seconds.rem_euclid(SECONDS_OF_A_DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = fraction(nanos);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"))
}

/// Such as `-3.100s`; `None` if it is out of range, or the signs of the two numbers differ.
pub(super) fn shown_duration(seconds: i64, nanos: i32) -> Option<String> {
    let is_negative = seconds < 0 || nanos < 0;
    let differ = seconds > 0 && nanos < 0 || seconds < 0 && nanos > 0;
    if seconds.unsigned_abs() > MAX_DURATION || nanos.unsigned_abs() >= NANOS.unsigned_abs() || differ {
        return None;
    }
    let sign = if is_negative { "-" } else { "" };
    Some(format!("{sign}{}{}s", seconds.unsigned_abs(), fraction(nanos.abs())))
}

/// None, 3, 6 or 9 digits.
fn fraction(nanos: i32) -> String {
    match nanos {
        0 => String::new(),
        _ if nanos % 1_000_000 == 0 => format!(".{:03}", nanos / 1_000_000),
        _ if nanos % 1_000 == 0 => format!(".{:06}", nanos / 1_000),
        _ => format!(".{nanos:09}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{shown_duration, shown_timestamp};

    #[test]
    fn timestamps() {
        let cases = [
            (0, 0, Some("1970-01-01T00:00:00Z")),
            (63_108_020, 21_000_000, Some("1972-01-01T10:00:20.021Z")),
            (-1, 999_999_000, Some("1969-12-31T23:59:59.999999Z")),
            (951_782_400, 1, Some("2000-02-29T00:00:00.000000001Z")),
            (-62_135_596_800, 0, Some("0001-01-01T00:00:00Z")),
            (253_402_300_799, 0, Some("9999-12-31T23:59:59Z")),
            (-62_135_596_801, 0, None),
            (253_402_300_800, 0, None),
            (0, -1, None),
            (0, 1_000_000_000, None),
        ];
        for (seconds, nanos, text) in cases {
            assert_eq!(shown_timestamp(seconds, nanos).as_deref(), text, "{seconds} {nanos}");
        }
    }

    #[test]
    fn durations() {
        let cases = [
            (0, 0, Some("0s")),
            (1, 10_000_000, Some("1.010s")),
            (-3, -100_000_000, Some("-3.100s")),
            (0, -1, Some("-0.000000001s")),
            (315_576_000_000, 0, Some("315576000000s")),
            (315_576_000_001, 0, None),
            (1, -1, None),
            (-1, 1, None),
            (0, i32::MIN, None),
            (i64::MIN, 0, None),
        ];
        for (seconds, nanos, text) in cases {
            assert_eq!(shown_duration(seconds, nanos).as_deref(), text, "{seconds} {nanos}");
        }
    }
}
