//! Where the batches of a stream come from.

use std::error::Error as StdError;

use crate::columns::batch_decoder::Framed;
use crate::error::Error;

pub(super) type Failure = Box<dyn StdError + Send + Sync>;

/// Where batches come from.
pub(super) trait Source: Send {
    /// The next batch to decode.
    fn next(&mut self) -> std::result::Result<Option<Framed>, Failure>;

    /// This batch does not decode: an error, or it is left out.
    fn bad(&mut self, framed: &Framed, error: Error) -> std::result::Result<(), Failure>;
}
