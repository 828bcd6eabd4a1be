//! One batch after another into columns: what streams do on the caller's thread and on others.

use std::borrow::BorrowMut;
use std::sync::Arc;

use ::bytes::Bytes;
use arrow_array::RecordBatch;

use crate::batch::{Batch, Records};
use crate::columns::record_columns::RecordColumns;
use crate::columns::selection::Selection;
use crate::columns::view_column::VIEW_FROM;
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::error::{ErrorKind, Result};
use crate::record::{Record, SMALLEST_RECORD};

/// An Arrow batch is cut when it has this many bytes: it stays in cache between the copy and its reader.
const MAX_BYTES: usize = 1 << 20;
/// Or this many rows.
const MAX_ROWS: usize = 64 << 10;
/// A batch of the log is never cut: with what was collected before it, it stays below the 2 GiB of Arrow's
/// 32-bit offsets.
pub const MAX_PAYLOAD: usize = 1 << 30;

/// A batch with its bytes, to be decoded here or elsewhere.
#[derive(Debug)]
pub(super) struct Framed {
    /// The whole batch.
    pub(super) data: Bytes,
    /// What is read next; nothing where that is elsewhere.
    pub(super) following: Bytes,
    /// Its place in its input.
    pub(super) position: u64,
    /// Which of its records are asked for.
    pub(super) selection: Selection,
    /// The segment it is from; none for a buffer.
    pub(super) segment: Option<Arc<str>>,
}

/// How batches are checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checks {
    /// Whether a batch's own CRC is still to be checked.
    pub(super) batches: bool,
    /// Whether the CRCs of messages inside message sets are checked.
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
    /// The decompressor is the decoder's own, or borrowed.
    pub(super) fn new(columns: RecordColumns, decompressor: D, checks: Checks) -> Self {
        Self { columns, decompressor, checks }
    }

    /// Whether it is time to [`take`](Self::take) what there is.
    pub(super) fn is_full(&self) -> bool {
        self.columns.rows() >= MAX_ROWS || self.columns.bytes() >= MAX_BYTES
    }

    /// The rows collected since the last call, if there are any.
    pub(super) fn take(&mut self) -> Option<RecordBatch> {
        (self.columns.rows() > 0).then(|| self.columns.finish().0)
    }

    /// Adds the records that are asked for: after an error, none of the batch's.
    /// Control records are not a consumer's: none are added.
    pub(super) fn add(&mut self, framed: &Framed) -> Result<()> {
        let batch = self.checked(framed)?;
        if batch.is_control() {
            // Left out only if it is what it says.
            return self.checks.of(batch.records(self.decompressor.borrow_mut())?).visit(drop);
        }
        if framed.selection.excludes(&batch) { Ok(()) } else { self.add_batch(&batch, framed) }
    }

    /// As [`add`](Self::add), control records too.
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
        let left = framed.selection.left_to_ask(batch);
        if self.columns.wants_header_facts_only()
            && left.is_everything()
            && let Some(rows) = plausible_count(batch)
        {
            self.columns.push_rows(rows);
        } else {
            let mark = self.columns.mark();
            let added = self.add_records(batch, &framed.data, left);
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
        let records = checks.of(batch.records_in(payload)?);
        // An announced count reserves no more than the bytes can hold.
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

/// A loop for each kind of batch, into which the walk and the columns are compiled as one.
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
    fn of(self, records: Records<'_>) -> Records<'_> {
        if self.messages { records } else { records.without_crc_check() }
    }
}

/// The count that the header announces, if so many records may be there; else only the records can tell.
fn plausible_count(batch: &Batch<'_>) -> Option<usize> {
    let Batch::V2(batch) = batch else { return None };
    let count = usize::try_from(batch.record_count()).ok()?;
    let most = match batch.compression().ok()? {
        Compression::None => batch.payload().len() / SMALLEST_RECORD,
        _ => MAX_ROWS,
    };
    (count <= most.min(MAX_ROWS)).then_some(count)
}
