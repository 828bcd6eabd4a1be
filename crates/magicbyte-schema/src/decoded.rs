//! Decoder output.

use arrow_array::ArrayRef;

/// A column of decoded payloads. No payload is lost: a bad one is null in `values`, and named in `errors`. Of a JSON payload
/// with a number that its column has no room for, only the number is null; `errors` names the payload, too.
///
/// Its memory is bounded, whatever the schema and the payloads are. Once the column has 64 MiB, the payloads that follow are
/// left to the next call: `values` has fewer rows than there were payloads, but at least one. A single payload may take 1 MiB
/// and 512 times its bytes, and no more than 64 MiB and 16 times its bytes; above that it is a bad one.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// One value for each of the first payloads, in their order.
    pub values: ArrayRef,
    /// The payloads that could not be decoded, or not completely, by ascending row.
    pub errors: Vec<RowError>,
}

/// The reason why a payload could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    /// Its index among the payloads.
    pub row: usize,
    /// The byte of the payload at which decoding stopped, if that is known.
    pub position: Option<usize>,
    /// The fault, and what was expected instead.
    pub reason: String,
}
