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
        return Err(Failure::new(format!("a decimal with more than {precision} digits")));
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
        let mut carry = true;
        for byte in magnitude.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
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

#[cold]
fn no_bytes() -> Failure {
    Failure::new("a decimal without bytes: expected one at least")
}
