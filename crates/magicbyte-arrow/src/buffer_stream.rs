//! Decoding batches in memory to Arrow: a single one, or a stream.

use std::borrow::BorrowMut;

use ::bytes::Bytes;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use magicbyte::internals::following;
use magicbyte::{Batches, Decompressor, Error, Result};

use crate::batch_decoder::{BatchDecoder, Checks, Framed};
use crate::record_columns::RecordColumns;
use crate::schema::records_schema;
use crate::selection::Selection;
use crate::source::{Failure, Source};
use crate::stream::{Stream, StreamOptions};

fn decoder<D: BorrowMut<Decompressor>>(
    options: &StreamOptions,
    decompressor: D,
    check_crcs: bool,
) -> BatchDecoder<D> {
    let columns = RecordColumns::new(&options.columns, options.flavour, "", 0);
    let checks = Checks { batches: check_crcs, messages: check_crcs };
    BatchDecoder::new(columns, decompressor, checks)
}

/// The records of one batch as Arrow columns. `data` is the whole batch; its CRC is checked if `check_crcs`
/// is set. Unlike in a stream, control records are included.
///
/// # Errors
/// The errors of [`Batch::verify`](magicbyte::Batch::verify) and [`Batch::records`](magicbyte::Batch::records).
pub fn batch_to_arrow(
    data: &Bytes,
    position: u64,
    decompressor: &mut Decompressor,
    options: &StreamOptions,
    check_crcs: bool,
) -> Result<RecordBatch> {
    let mut decoder = decoder(options, decompressor, check_crcs);
    let (data, following) = (data.clone(), Bytes::new());
    let framed = Framed { data, following, position, selection: options.selection, segment: None };
    decoder.add_any(&framed)?;
    Ok(decoder.take().unwrap_or_else(|| RecordBatch::new_empty(schema_of(options))))
}

fn schema_of(options: &StreamOptions) -> SchemaRef {
    records_schema(&options.columns, options.flavour)
}

/// A stream of Arrow batches over the batches in a buffer. Only data records are included, as for a consumer.
/// Nothing is read before the first Arrow batch is requested.
#[derive(Debug)]
pub struct BatchStream(Stream<Buffer>);

impl BatchStream {
    /// A stream over `data`. The columns `topic`, `partition` and `segment` are empty or 0, since a buffer
    /// has none. A truncated last batch ends the stream with an error, or silently with `allow_partial`.
    #[must_use]
    pub fn new(
        data: Bytes,
        options: StreamOptions,
        check_crcs: bool,
        max_decompressed_bytes: usize,
        allow_partial: bool,
    ) -> Self {
        let source = Buffer { data, position: 0, selection: options.selection, allow_partial };
        let (schema, threads) = (schema_of(&options), options.threads);
        let decoder = move || decoder(&options, Decompressor::with_limit(max_decompressed_bytes), check_crcs);
        Self(Stream::new(source, schema, threads, decoder))
    }
}

#[derive(Debug)]
struct Buffer {
    data: Bytes,
    position: usize,
    selection: Selection,
    allow_partial: bool,
}

impl Source for Buffer {
    fn next(&mut self) -> std::result::Result<Option<Framed>, Failure> {
        let start = self.position;
        let mut batches = Batches::at_position(&self.data[start..], start as u64);
        let Some(batch) = batches.next().transpose()? else {
            let truncated = batches.truncated().filter(|_| !self.allow_partial);
            return truncated.map_or(Ok(None), |error| Err(error.into()));
        };
        self.position += batch.size_in_bytes();
        let data = self.data.slice(start..self.position);
        let following = self.data.slice(following(self.data.len(), self.position, data.len()));
        let (position, selection) = (start as u64, self.selection);
        Ok(Some(Framed { data, following, position, selection, segment: None }))
    }

    fn bad(&mut self, _: &Framed, error: Error) -> std::result::Result<(), Failure> {
        Err(error.into())
    }
}

impl Iterator for BatchStream {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl RecordBatchReader for BatchStream {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}
