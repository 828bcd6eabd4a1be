//! A decoded batch: decompressed once, its records checked once.

use crate::batch::{Batch, Records};
use crate::compression::decompressor::Decompressor;
use crate::error::Result;
use crate::record::Record;

/// A batch with its decompressed payload, in which every record decodes.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Decoded<'b, 'a> {
    pub batch: &'b Batch<'a>,
    /// The record section, decompressed.
    pub payload: &'b [u8],
    /// An iterator at the first record, which does not check inner CRCs again.
    records: Records<'b>,
    pub count: u32,
    /// Offset of the first record, if there is one.
    pub first_offset: Option<i64>,
    /// Offset of the last record, if there is one.
    pub last_offset: Option<i64>,
}

#[doc(hidden)]
impl<'b, 'a> Decoded<'b, 'a> {
    /// Reads all records. The caller verifies the CRC of the batch.
    ///
    /// # Errors
    /// The errors of [`Batch::records`] and of its records.
    pub fn of(batch: &'b Batch<'a>, decompressor: &'b mut Decompressor) -> Result<Self> {
        Self::visiting(batch, decompressor, |_| {})
    }

    /// Like [`of`](Self::of), but calls `visit` with every record up to the first invalid one.
    pub fn visiting(
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

    /// The record section, decompressed.
    #[must_use]
    pub fn payload(&self) -> &'b [u8] {
        self.payload
    }

    /// The records, which are known to decode.
    #[must_use]
    pub fn records(&self) -> Records<'b> {
        self.records.clone()
    }
}
