//! Decimals: numbers of any size, big-endian in two's complement, and where their point is.

use arrow_array::types::{Decimal128Type, DecimalType};

use crate::failure::{Attempt, Failure};

/// The maximum number of bytes of a decimal that becomes digits. The cost of the conversion is their square.
const MAX_BYTES: usize = 512;

/// The number of a decimal with up to `precision` digits, of which `scale` are behind the point.
///
/// # Errors
/// If it has more digits, or no byte.
pub(super) fn number(bytes: &[u8], precision: u32, scale: u32) -> Attempt<i128> {
    let Some(&first) = bytes.first() else { return Err(no_bytes()) };
    let sign = if first & 0x80 == 0 { 0 } else { 0xff };
    // Bytes beyond the size of the number may only repeat its sign.
    let (extra, kept) = bytes.split_at(bytes.len().saturating_sub(size_of::<i128>()));
    let fits = extra.iter().all(|&byte| byte == sign) && (extra.is_empty() || (kept[0] ^ sign) & 0x80 == 0);
    let mut whole = [sign; size_of::<i128>()];
    whole[size_of::<i128>() - kept.len()..].copy_from_slice(kept);
    let number = i128::from_be_bytes(whole);
    let checked = Decimal128Type::validate_decimal_precision(number, precision as u8, scale as i8);
    if !fits || checked.is_err() {
        return Err(too_long(precision));
    }
    Ok(number)
}

/// Appends the digits of a decimal, as `-12.34`.
///
/// # Errors
/// If it has no byte, more than 512, or its digits would take more than `room`.
pub(super) fn put_digits(out: &mut String, bytes: &[u8], scale: usize, room: usize) -> Attempt<()> {
    if bytes.is_empty() {
        return Err(no_bytes());
    }
    if bytes.len() > MAX_BYTES {
        return Err(Failure::new(format!(
            "a decimal of {} bytes: expected at most {MAX_BYTES}",
            bytes.len()
        )));
    }
    // A scale of a few digits may say any number of zeros; the digits are there before the text.
    if scale.saturating_mul(2) > room {
        return Err(Failure::new(format!(
            "a decimal with {scale} digits behind the point: its text is too long"
        )));
    }
    let negative = bytes[0] & 0x80 != 0;
    let mut magnitude = bytes.to_vec();
    if negative {
        negate(&mut magnitude);
    }
    let mut digits = Vec::new();
    while magnitude.iter().any(|&byte| byte != 0) {
        let mut remainder = 0_u32;
        for byte in &mut magnitude {
            let value = remainder << 8 | u32::from(*byte);
            *byte = (value / 10) as u8;
            remainder = value % 10;
        }
        digits.push(b'0' + remainder as u8);
    }
    digits.resize(digits.len().max(scale + 1), b'0');
    if negative {
        out.push('-');
    }
    for (index, &digit) in digits.iter().enumerate().rev() {
        out.push(char::from(digit));
        if index == scale && scale > 0 {
            out.push('.');
        }
    }
    Ok(())
}

/// The bytes of a decimal of up to `precision` digits, from its digits; the first byte may only repeat the sign.
///
/// # Errors
/// If `text` is not what [`put_digits`] writes for such a decimal.
pub(super) fn of_digits(text: &str, scale: u32, precision: u32) -> Attempt<Vec<u8>> {
    let unsigned = text.strip_prefix('-');
    let (whole, behind) = split(unsigned.unwrap_or(text));
    let is_number =
        !whole.is_empty() && whole.bytes().chain(behind.bytes()).all(|digit| digit.is_ascii_digit());
    // The lowest byte is the first.
    let mut bytes = Vec::new();
    if is_number && behind.len() == scale as usize && count(text) <= precision as usize {
        for digit in whole.bytes().chain(behind.bytes()) {
            let mut carry = u32::from(digit - b'0');
            for byte in &mut bytes {
                carry += u32::from(*byte) * 10;
                *byte = carry as u8;
                carry >>= 8;
            }
            if carry > 0 {
                bytes.push(carry as u8);
            }
            if bytes.len() >= MAX_BYTES {
                return Err(Failure::new(format!("a decimal of more than {MAX_BYTES} bytes")));
            }
        }
        bytes.push(0);
        bytes.reverse();
        if unsigned.is_some() {
            negate(&mut bytes);
        }
        return Ok(bytes);
    }
    let shown = &text[..text.floor_char_boundary(100)];
    Err(Failure::new(format!(
        "{shown:?} is not a decimal with {scale} digits behind the point, and at most {precision} in all"
    )))
}

/// The digits of a decimal without zeros at its start, from its text.
pub(super) fn count(text: &str) -> usize {
    let (whole, behind) = split(text.trim_start_matches('-'));
    whole.trim_start_matches('0').len() + behind.len()
}

/// The digits before the point, and those behind it.
fn split(text: &str) -> (&str, &str) {
    text.split_once('.').unwrap_or((text, ""))
}

/// Negates a number in two's complement, big-endian.
fn negate(bytes: &mut [u8]) {
    let mut carry = true;
    for byte in bytes.iter_mut().rev() {
        (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
    }
}

#[cold]
pub(super) fn too_long(precision: u32) -> Failure {
    Failure::new(format!("a decimal with more than {precision} digits"))
}

#[cold]
fn no_bytes() -> Failure {
    Failure::new("a decimal without bytes: expected one at least")
}

#[cfg(test)]
mod tests {
    use super::{of_digits, put_digits};

    #[test]
    fn digits_come_back() {
        for text in
            ["0.00", "-0.01", "1.28", "-1.28", "-1.29", "2.55", "2.56", &format!("-{}.99", "9".repeat(80))]
        {
            let mut out = String::new();
            let done = of_digits(text, 2, 82).and_then(|bytes| put_digits(&mut out, &bytes, 2, 1000));
            assert!(done.is_ok(), "{text}");
            assert_eq!(out, text);
        }
    }

    #[test]
    fn what_is_not_such_a_decimal() {
        for text in ["", "1", "1.0", "1.000", "a.00", "--1.00", "+1.00", ".00", "1.-1", "1000.00", "é.00"] {
            assert!(of_digits(text, 2, 5).is_err(), "{text}");
        }
        assert!(of_digits(&"9".repeat(100_000), 0, 200_000).is_err());
    }
}
