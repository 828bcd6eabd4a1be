//! Payloads for the decoders of `magicbyte-schema`, and what must hold for all of them.

use arrow_array::{Array, ArrayRef, BinaryArray};
use magicbyte_schema::{Decoded, Payload, Result};

/// Payloads, each after a byte with its size; 255 is null.
pub fn payloads(mut data: &[u8]) -> Vec<Payload<'_>> {
    let mut payloads = Vec::new();
    while let Some((&size, rest)) = data.split_first() {
        let (payload, rest) = rest.split_at(usize::from(size).min(rest.len()));
        payloads.push(Payload { bytes: (size < 255).then_some(payload), ..Payload::default() });
        data = rest;
    }
    payloads
}

/// A schema of `known` by the first byte, or another one in the first line; and the rest.
pub fn schema_and_rest<'a>(data: &'a [u8], known: &[&'a str]) -> Option<(&'a str, &'a [u8])> {
    let (&choice, rest) = data.split_first()?;
    if let Some(schema) = known.get(usize::from(choice)) {
        return Some((schema, rest));
    }
    let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    let schema = std::str::from_utf8(&rest[..end]).ok()?;
    Some((schema, rest.get(end + 1..).unwrap_or_default()))
}

/// Decodes payloads together. What becomes of one does not depend on those beside it.
pub fn decode_all(
    payloads: &[Payload<'_>],
    mut decode: impl FnMut(&[Payload<'_>]) -> Result<Decoded>,
) -> Decoded {
    let together = decode(payloads).unwrap();
    assert_eq!(together.values.len(), payloads.len());
    assert!(together.errors.is_sorted_by(|one, other| one.row < other.row));
    for (row, payload) in payloads.iter().enumerate().take(16) {
        let alone = decode(std::slice::from_ref(payload)).unwrap();
        assert_eq!(alone.values.as_ref(), together.values.slice(row, 1).as_ref());
        let error = together.errors.iter().find(|error| error.row == row);
        assert_eq!(alone.errors.first().map(|error| &error.reason), error.map(|error| &error.reason));
    }
    together
}

/// The same payloads with bytes before and after each.
pub fn between(payloads: &[Payload<'_>], before: &[u8], after: &[u8]) -> Vec<Option<Vec<u8>>> {
    let one = |payload: &Payload<'_>| payload.bytes.map(|bytes| [before, bytes, after].concat());
    payloads.iter().map(one).collect()
}

/// Asserts that the rows that were good with `payloads` are the same with others.
pub fn assert_same_rows(decoded: &Decoded, other: &Decoded) {
    for row in (0..decoded.values.len()).filter(|row| decoded.errors.iter().all(|error| error.row != *row)) {
        assert!(other.errors.iter().all(|error| error.row != row), "{:?}", other.errors);
        assert_eq!(decoded.values.slice(row, 1).as_ref(), other.values.slice(row, 1).as_ref());
    }
}

/// Asserts that the values that were decoded can be encoded, and come back.
pub fn assert_comes_back(
    decoded: &Decoded,
    writer: u32,
    encode: impl FnOnce(&ArrayRef) -> Result<BinaryArray>,
    decode: impl FnOnce(&[Payload<'_>]) -> Result<Decoded>,
) {
    let encoded = encode(&decoded.values).unwrap();
    let payloads: Vec<_> =
        encoded.iter().map(|bytes| Payload { bytes, writer, ..Payload::default() }).collect();
    let again = decode(&payloads).unwrap();
    assert_eq!(again.errors, []);
    assert_eq!(again.values.as_ref(), decoded.values.as_ref());
}
