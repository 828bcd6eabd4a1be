//! Streams of Arrow batches: a source of framed batches, decoded on the caller's thread or on several.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use crate::batch_decoder::BatchDecoder;
use crate::pipeline::Pipeline;
use crate::schema::{Flavour, RecordColumn};
use crate::selection::Selection;
use crate::source::{Failure, Source};

/// Options of a stream.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// The columns, in this order. If headers of batches are enough for all of them (or if there are none, to
    /// count rows), batches are not decompressed.
    pub columns: Vec<RecordColumn>,
    /// The types of the arrays.
    pub flavour: Flavour,
    /// Which records are selected.
    pub selection: Selection,
    /// The number of decoding threads, including the caller's; the order is kept. With more than one, each
    /// holds up to seven Arrow batches of about 1 MiB (or the size of a larger decompressed batch of the log)
    /// and half a MiB of input.
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

/// A stream over a source. Nothing is read before the first Arrow batch is requested.
pub(super) struct Stream<S> {
    source: S,
    schema: SchemaRef,
    decoding: Decoding,
    /// The failure that ended the source, kept until the rows before it are delivered.
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

    pub(super) fn source_mut(&mut self) -> &mut S {
        &mut self.source
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
