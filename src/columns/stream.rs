//! Streams of Arrow batches: what frames batches, and what makes columns of them, on the caller's thread or
//! on several.

use crate::columns::source::{Failure, Source};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use crate::columns::batch_decoder::BatchDecoder;
use crate::columns::pipeline::Pipeline;
use crate::columns::schema::{Flavour, RecordColumn};
use crate::columns::selection::Selection;

/// What of the records becomes columns, how, and by whom.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// The columns, in this order; what is not asked for is not built. With header facts only (or nothing,
    /// to count) batches are not even decompressed.
    pub columns: Vec<RecordColumn>,
    /// Whom the arrays are for.
    pub flavour: Flavour,
    /// Which records.
    pub selection: Selection,
    /// How many threads decode, the caller's own among them. Of several, each holds up to seven Arrow batches of
    /// about 1 MiB (or of one batch of the log, decompressed, where that is larger) and half a MiB to decode;
    /// order is kept.
    pub threads: usize,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            columns: RecordColumn::CONSUMED.to_vec(),
            flavour: Flavour::Millis,
            selection: Selection::default(),
            threads: 1,
        }
    }
}

/// A stream over a source. Nothing happens before the first batch is asked for.
pub(super) struct Stream<S> {
    source: S,
    schema: SchemaRef,
    decoding: Decoding,
    /// What ended the source, kept until the rows before it were given.
    failure: Option<Failure>,
    ended: bool,
}

enum Decoding {
    Here(Box<BatchDecoder>),
    Threads(Box<Pipeline>),
}

impl<S> std::fmt::Debug for Stream<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl<S: Source> Stream<S> {
    pub(super) fn new(
        source: S,
        schema: SchemaRef,
        threads: usize,
        decoder: impl Fn() -> BatchDecoder + Send + Sync + 'static,
    ) -> Self {
        let decoding = if threads <= 1 {
            Decoding::Here(Box::new(decoder()))
        } else {
            Decoding::Threads(Box::new(Pipeline::new(threads, Arc::new(decoder))))
        };
        Self { source, schema, decoding, failure: None, ended: false }
    }

    fn fill(&mut self) -> std::result::Result<Option<RecordBatch>, Failure> {
        let Self { source, decoding, failure, .. } = self;
        match decoding {
            Decoding::Here(decoder) => fill_here(source, decoder, failure),
            Decoding::Threads(pipeline) => pipeline.next(source),
        }
    }
}

fn fill_here(
    source: &mut impl Source,
    decoder: &mut BatchDecoder,
    failure: &mut Option<Failure>,
) -> std::result::Result<Option<RecordBatch>, Failure> {
    while failure.is_none() && !decoder.is_full() {
        match source.next() {
            Ok(None) => break,
            Ok(Some(framed)) => {
                if let Err(error) = decoder.add(&framed) {
                    *failure = source.bad(&framed, error).err();
                }
            }
            Err(error) => *failure = Some(error),
        }
    }
    match (decoder.take(), failure.take()) {
        (Some(batch), kept) => {
            *failure = kept;
            Ok(Some(batch))
        }
        (None, Some(error)) => Err(error),
        (None, None) => Ok(None),
    }
}

impl<S: Source> Iterator for Stream<S> {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.fill();
        self.ended = !matches!(next, Ok(Some(_)));
        next.map_err(ArrowError::ExternalError).transpose()
    }
}

impl<S: Source> RecordBatchReader for Stream<S> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
