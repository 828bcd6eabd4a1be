//! What a decoder returns.

use arrow_array::ArrayRef;

/// A column of decoded payloads. No payload is lost: a bad one is null in `values`, and named in `errors`.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// One value per payload, in their order.
    pub values: ArrayRef,
    /// The payloads that could not be decoded, by ascending row.
    pub errors: Vec<RowError>,
}

/// Why a payload could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    /// Its index among the payloads.
    pub row: usize,
    /// The byte of the payload at which decoding stopped, if that is known.
    pub position: Option<usize>,
    /// What is wrong, and what was expected.
    pub reason: String,
}
