//! Decoding batches into columns, which streams do on the caller's thread or on several.

use std::borrow::BorrowMut;
use std::sync::Arc;

use ::bytes::Bytes;
use arrow_array::RecordBatch;

use magicbyte::internals::SMALLEST_RECORD;
use magicbyte::{Batch, Compression, Decompressor, ErrorKind, Record, Records, Result};

use crate::record_columns::RecordColumns;
use crate::selection::Selection;
use crate::view_column::VIEW_FROM;

/// An Arrow batch is full once it has this many bytes, so that it is still in the cache when it is read.
const MAX_BYTES: usize = 1 << 20;
/// An Arrow batch is full once it has this many rows.
const MAX_ROWS: usize = 64 << 10;
/// The maximum decompressed size of a batch in bytes. The records of a batch go into one Arrow batch; with
/// those collected before, it stays below the 2 GiB of Arrow's 32-bit offsets.
pub const MAX_PAYLOAD: usize = 1 << 30;

/// A framed batch with its bytes, to be decoded on any thread.
#[derive(Debug)]
pub(super) struct Framed {
    /// The whole batch.
    pub(super) data: Bytes,
    /// The bytes that are read next, for prefetching; empty if they are not adjacent.
    pub(super) following: Bytes,
    /// Byte position of the batch in its input.
    pub(super) position: u64,
    /// The conditions that select records of the batch.
    pub(super) selection: Selection,
    /// The segment that the batch is from; `None` for a buffer.
    pub(super) segment: Option<Arc<str>>,
}

/// The CRCs to check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checks {
    /// The CRCs of batches.
    pub(super) batches: bool,
    /// The CRCs of messages inside wrappers.
    pub(super) messages: bool,
}

/// Adds batches to columns until an Arrow batch is full.
#[derive(Debug)]
pub(super) struct BatchDecoder<D = Decompressor> {
    columns: RecordColumns,
    decompressor: D,
    checks: Checks,
}

impl<D: BorrowMut<Decompressor>> BatchDecoder<D> {
    /// The decompressor may be owned or borrowed.
    pub(super) fn new(columns: RecordColumns, decompressor: D, checks: Checks) -> Self {
        Self { columns, decompressor, checks }
    }

    /// True if the collected rows should be [taken](Self::take).
    pub(super) fn is_full(&self) -> bool {
        self.columns.rows() >= MAX_ROWS || self.columns.bytes() >= MAX_BYTES
    }

    /// The rows collected since the last call, if there are any.
    pub(super) fn take(&mut self) -> Option<RecordBatch> {
        (self.columns.rows() > 0).then(|| self.columns.finish().0)
    }

    /// Adds the selected records of a batch, or none of them after an error. Control records are not added,
    /// since consumers do not see them.
    pub(super) fn add(&mut self, framed: &Framed) -> Result<()> {
        let batch = self.checked(framed)?;
        if batch.is_control() {
            // Damage in a control batch must be reported too.
            return self.checks.apply(batch.records(self.decompressor.borrow_mut())?).visit(drop);
        }
        if framed.selection.excludes(&batch) { Ok(()) } else { self.add_batch(&batch, framed) }
    }

    /// Like [`add`](Self::add), but also adds control records, and does not skip a batch by its header.
    pub(super) fn add_any(&mut self, framed: &Framed) -> Result<()> {
        let batch = self.checked(framed)?;
        self.add_batch(&batch, framed)
    }

    fn checked<'f>(&mut self, framed: &'f Framed) -> Result<Batch<'f>> {
        let batch = Batch::from_frame(&framed.data, framed.position)?.followed_by(&framed.following);
        if self.checks.batches {
            batch.verify()?;
        }
        Ok(batch)
    }

    fn add_batch(&mut self, batch: &Batch<'_>, framed: &Framed) -> Result<()> {
        let selection = framed.selection.remaining_for(batch);
        if self.columns.needs_headers_only()
            && selection.is_everything()
            && let Some(rows) = plausible_count(batch)
        {
            self.columns.push_rows(rows);
        } else {
            let mark = self.columns.mark();
            let added = self.add_records(batch, &framed.data, selection);
            self.columns.view_in(None);
            if let Err(error) = added {
                self.columns.truncate(mark);
                return Err(error);
            }
        }
        if let Some(segment) = &framed.segment {
            self.columns.set_segment(segment);
        }
        self.columns.end_batch(batch);
        Ok(())
    }

    fn add_records(&mut self, batch: &Batch<'_>, data: &Bytes, selection: Selection) -> Result<()> {
        let Self { columns, decompressor, checks } = self;
        let decompressor = decompressor.borrow_mut();
        let shared;
        let payload = if columns.wants_views() {
            shared = batch.payload_shared(data, decompressor)?;
            &shared[..]
        } else {
            shared = Bytes::new();
            batch.payload(decompressor)?
        };
        if payload.len() > MAX_PAYLOAD {
            return Err(batch.place(ErrorKind::LimitExceeded { limit: MAX_PAYLOAD }.into()));
        }
        let records = checks.apply(batch.records_in(payload)?);
        // The announced count is not trusted beyond what the bytes can hold.
        let count = records.size_hint().1.unwrap_or(0).min(payload.len() / SMALLEST_RECORD);
        columns.reserve(count);
        let large = count > 0 && shared.len() / count >= VIEW_FROM;
        columns.view_in(large.then_some(&shared));
        match records {
            Records::V2(records) => push_selected(records, selection, columns),
            Records::Legacy(records) => push_selected(records, selection, columns),
        }
    }
}

/// Generic, so that for each kind of batch the walk and the columns are compiled into one loop.
fn push_selected<'r>(
    records: impl Iterator<Item = Result<Record<'r>>>,
    selection: Selection,
    columns: &mut RecordColumns,
) -> Result<()> {
    let everything = selection.is_everything();
    for record in records {
        let record = record?;
        if everything || selection.has(&record) {
            columns.push(&record);
        }
    }
    Ok(())
}

impl Checks {
    fn apply(self, records: Records<'_>) -> Records<'_> {
        if self.messages { records } else { records.without_crc_check() }
    }
}

/// The record count in the header, if it is plausible; otherwise the records have to be counted.
fn plausible_count(batch: &Batch<'_>) -> Option<usize> {
    let batch = batch.as_v2()?;
    let count = usize::try_from(batch.record_count()).ok()?;
    let max_count = match batch.compression().ok()? {
        Compression::None => batch.payload().len() / SMALLEST_RECORD,
        _ => MAX_ROWS,
    };
    (count <= max_count.min(MAX_ROWS)).then_some(count)
}
