//! The source of a stream's batches.

use std::error::Error as StdError;

use magicbyte::Error;

use crate::batch_decoder::Framed;

pub(super) type Failure = Box<dyn StdError + Send + Sync>;

/// A source of framed batches.
pub(super) trait Source: Send {
    /// The next batch to decode.
    fn next(&mut self) -> std::result::Result<Option<Framed>, Failure>;

    /// Handles a batch that does not decode: `Err` ends the stream, `Ok` skips the batch.
    fn bad(&mut self, framed: &Framed, error: Error) -> std::result::Result<(), Failure>;
}
