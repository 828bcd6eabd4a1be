//! A batch on its way to another form: decompressed once, its records read once.

use crate::batch::{Batch, Records};
use crate::compression::decompressor::Decompressor;
use crate::error::Result;
use crate::record::Record;

/// A batch with its payload decompressed and every record of it good.
#[derive(Clone, Debug)]
pub(crate) struct Decoded<'b, 'a> {
    pub(crate) batch: &'b Batch<'a>,
    /// What the records are read from.
    pub(super) payload: &'b [u8],
    /// From the first record on, their CRCs found to hold.
    records: Records<'b>,
    pub(crate) count: u32,
    /// Offset of the first record, where there is one.
    pub(crate) first_offset: Option<i64>,
    /// Offset of the last.
    pub(crate) last_offset: Option<i64>,
}

impl<'b, 'a> Decoded<'b, 'a> {
    /// Reads all records; the batch's own CRC is the caller's to verify.
    ///
    /// # Errors
    /// What stops [`Batch::records`].
    pub(crate) fn of(batch: &'b Batch<'a>, decompressor: &'b mut Decompressor) -> Result<Self> {
        Self::visiting(batch, decompressor, |_| {})
    }

    /// As [`of`](Self::of), and shows each record on the way: those before a bad one were shown.
    pub(crate) fn visiting(
        batch: &'b Batch<'a>,
        decompressor: &'b mut Decompressor,
        mut visit: impl FnMut(Record<'b>),
    ) -> Result<Self> {
        let payload = batch.payload(decompressor)?;
        let (mut count, mut first_offset, mut last_offset) = (0, None, None);
        let records = batch.records_in(payload)?;
        records.clone().visit(|record| {
            count += 1;
            first_offset.get_or_insert(record.offset);
            last_offset = Some(record.offset);
            visit(record);
        })?;
        Ok(Self { batch, payload, records: records.without_crc_check(), count, first_offset, last_offset })
    }

    /// What the records are read from.
    pub(crate) fn payload(&self) -> &'b [u8] {
        self.payload
    }

    /// The records, which are all good.
    pub(crate) fn records(&self) -> Records<'b> {
        self.records.clone()
    }
}
