//! The header of an experimental batch, and a record's fields by value.

use magicbyte::internals::Cursor;
use magicbyte::internals::batch_header::{BatchHeader, COMPRESSION};
use magicbyte::{Error, ErrorKind, Headers, Result, crc32c, encode_varint};

/// Bytes before the attributes: offset, length, leader epoch, magic, CRC.
pub(super) const PREFIX: usize = 21;
const CRC: usize = 17;
const LENGTH: usize = 8;
/// The bytes before those that the length counts.
const LOG_OVERHEAD: usize = 12;

/// A change to the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Idea {
    /// Records have no attributes (`ignoreMessageAttributes`). A batch with a record whose attributes are not 0 keeps them.
    NoRecordAttributes = 1 << 7,
    /// A count of tagged fields follows the batch header, and the fields, as in Kafka's protocol; there are none yet.
    TaggedFields = 1 << 8,
    /// The append time is a separate field, and records keep the time that the producer gave them.
    BothTimestamps = 1 << 9,
    /// The headers that all records begin with are in the batch, and not in the records.
    BatchHeaders = 1 << 10,
    /// Timestamps, offsets and lengths of all records come first, then keys, values and headers of all records; one stream is
    /// compressed.
    FieldsFirst = 1 << 11,
    /// Like `FieldsFirst`, but each part is compressed by itself.
    TwoSections = 1 << 12,
}

/// A set of [`Idea`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ideas(i16);

impl Ideas {
    /// All bits of ideas.
    const ALL: i16 = 0x1f80;

    /// KIP-931 as written.
    pub const KIP_931: Self = Self(Idea::NoRecordAttributes as i16);

    /// The ideas whose bits are set.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] for another bit.
    pub fn from_bits(bits: i16) -> Result<Self> {
        match bits & !Self::ALL {
            0 => Ok(Self(bits)),
            _ => Err(ErrorKind::InvalidOptions("the ideas of magic 3 are bits 7 to 12").into()),
        }
    }

    pub(super) const fn of_attributes(attributes: i16) -> Self {
        Self(attributes & Self::ALL)
    }

    /// These ideas and one more.
    #[must_use]
    pub const fn with(self, idea: Idea) -> Self {
        Self(self.0 | idea as i16)
    }

    /// True if the set contains the idea.
    #[must_use]
    pub const fn has(self, idea: Idea) -> bool {
        self.0 & idea as i16 != 0
    }

    pub(super) fn without(self, idea: Idea) -> Self {
        Self(self.0 & !(idea as i16))
    }

    /// True if the fields of all records come before their content.
    pub(super) fn are_fields_first(self) -> bool {
        self.has(Idea::FieldsFirst) || self.has(Idea::TwoSections)
    }
}

/// The header of an experimental batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header3 {
    /// The fields that magic 2 has, too; of the attributes bits 0 to 6.
    pub(crate) common: BatchHeader,
    /// The ideas that the batch follows.
    pub ideas: Ideas,
    /// The append time (ms), if it is a separate field.
    pub append_time: Option<i64>,
}

impl Header3 {
    /// Appends the header with length and CRC left out, for [`finish`](Self::finish).
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let common = &self.common;
        out.extend(common.base_offset.to_be_bytes());
        out.extend([0; 4]);
        out.extend(common.partition_leader_epoch.to_be_bytes());
        out.push(3);
        out.extend([0; 4]);
        out.extend((common.attributes & !Ideas::ALL | self.ideas.0).to_be_bytes());
        out.extend(common.producer_id.to_be_bytes());
        out.extend(common.producer_epoch.to_be_bytes());
        out.extend(common.base_sequence.to_be_bytes());
        out.extend(common.record_count.to_be_bytes());
        encode_varint(common.last_offset_delta.into(), out);
        encode_varint(common.base_timestamp, out);
        encode_varint(common.max_timestamp.wrapping_sub(common.base_timestamp), out);
        if let Some(time) = self.append_time {
            encode_varint(time.wrapping_sub(common.base_timestamp), out);
        }
        if self.ideas.has(Idea::TaggedFields) {
            out.push(0);
        }
    }

    /// Fills in length and CRC of the batch that begins at `start`.
    ///
    /// # Errors
    /// [`ErrorKind::RecordTooLarge`] if the length is not an int32.
    pub(super) fn finish(out: &mut [u8], start: usize) -> Result<()> {
        let batch = &mut out[start..];
        let size = batch.len();
        let length = i32::try_from(size - LOG_OVERHEAD)
            .map_err(|_| ErrorKind::RecordTooLarge { size, limit: i32::MAX as usize })?;
        batch[LENGTH..LENGTH + 4].copy_from_slice(&length.to_be_bytes());
        let crc = crc32c(&batch[PREFIX..], 0);
        batch[CRC..PREFIX].copy_from_slice(&crc.to_be_bytes());
        Ok(())
    }

    /// Reads the header of one batch and checks its CRC. Returns the header with the bytes after it.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedMagic`], [`ErrorKind::InvalidSize`], [`ErrorKind::CrcMismatch`], and the errors of
    /// fields that end early.
    pub fn read(batch: &[u8]) -> Result<(Self, &[u8])> {
        let mut cursor = Cursor::new(batch);
        let base_offset = cursor.i64()?;
        let length = cursor.i32()?;
        if usize::try_from(length).ok() != batch.len().checked_sub(LOG_OVERHEAD) {
            let expected = batch.len() as i64 - LOG_OVERHEAD as i64;
            let invalid = ErrorKind::InvalidSize { found: length.into(), min: expected, max: expected };
            return Err(Error::new(invalid).in_field("batchLength"));
        }
        let partition_leader_epoch = cursor.i32()?;
        let magic = cursor.i8()?;
        if magic != 3 {
            return Err(Error::new(ErrorKind::UnsupportedMagic(magic)).in_field("magic"));
        }
        let stored = cursor.u32()?;
        let computed = crc32c(&batch[PREFIX..], 0);
        if stored != computed {
            return Err(Error::new(ErrorKind::CrcMismatch { stored, computed }).in_field("crc"));
        }
        let attributes = cursor.i16()?;
        let ideas = Ideas::of_attributes(attributes);
        let (producer_id, producer_epoch, base_sequence) = (cursor.i64()?, cursor.i16()?, cursor.i32()?);
        let record_count = cursor.i32()?;
        let last_offset_delta = cursor.varint()?;
        let base_timestamp = cursor.varlong()?;
        let max_timestamp = base_timestamp.wrapping_add(cursor.varlong()?);
        let append_time = match ideas.has(Idea::BothTimestamps) {
            true => Some(base_timestamp.wrapping_add(cursor.varlong()?)),
            false => None,
        };
        if ideas.has(Idea::TaggedFields) {
            tagged_fields(&mut cursor)?;
        }
        let common = BatchHeader {
            base_offset,
            partition_leader_epoch,
            attributes: attributes & !Ideas::ALL,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        };
        Ok((Self { common, ideas, append_time }, &batch[cursor.position()..]))
    }

    /// True if each record has its attributes.
    pub(super) fn has_record_attributes(&self) -> bool {
        !self.ideas.has(Idea::NoRecordAttributes)
    }

    /// The number of records.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidCount`].
    pub(super) fn count(&self) -> Result<u32> {
        let count = self.common.record_count;
        u32::try_from(count)
            .map_err(|_| Error::new(ErrorKind::InvalidCount(count.into())).in_field("recordsCount"))
    }

    /// The codec's ID.
    pub(super) fn codec(&self) -> u8 {
        self.common.attributes as u8 & COMPRESSION
    }
}

/// Skips tagged fields, and returns their number.
pub(super) fn tagged_fields(cursor: &mut Cursor<'_>) -> Result<u32> {
    let count = cursor.unsigned_varint()?;
    for _ in 0..count {
        cursor.unsigned_varint()?;
        let size = cursor.unsigned_varint()?;
        cursor.take(size as usize)?;
    }
    Ok(count)
}

/// Splits bytes into experimental batches by their lengths alone. Views; ends after the first error.
///
/// # Errors
/// [`ErrorKind::InvalidSize`] if a length is negative or exceeds the bytes; a batch that is cut within its length is an error, too.
pub fn frames(data: &[u8]) -> impl Iterator<Item = Result<&[u8]>> {
    let mut rest = data;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let position = (data.len() - rest.len()) as u64;
        let frame = take_frame(rest);
        rest = frame.as_ref().map_or(&[], |frame| &rest[frame.len()..]);
        Some(frame.map_err(|e| e.at_position(position)))
    })
}

fn take_frame(data: &[u8]) -> Result<&[u8]> {
    let mut cursor = Cursor::new(data);
    cursor.i64()?;
    let length = cursor.i32().map_err(|e| e.in_field("batchLength"))?;
    let size = usize::try_from(length).ok().filter(|&size| size <= cursor.remaining());
    match size {
        Some(size) => Ok(&data[..LOG_OVERHEAD + size]),
        None => {
            let kind =
                ErrorKind::InvalidSize { found: length.into(), min: 0, max: cursor.remaining() as i64 };
            Err(Error::new(kind).in_field("batchLength"))
        }
    }
}

/// The fields of a record as they are stored, with deltas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRecord<'r> {
    pub(crate) attributes: i8,
    pub(crate) timestamp_delta: i64,
    pub(crate) offset_delta: i32,
    pub(crate) key: Option<&'r [u8]>,
    pub(crate) value: Option<&'r [u8]>,
    pub(crate) headers: Headers<'r>,
}

impl<'r> RawRecord<'r> {
    /// Reads a magic 2 record.
    pub(crate) fn read(cursor: &mut Cursor<'r>) -> Result<Self> {
        let length = cursor.length().map_err(|e| e.in_field("length"))?.unwrap_or(0);
        let mut body = Cursor::new(cursor.take(length)?);
        Self::read_body(&mut body, true)
    }

    /// Reads the bytes after a record's length.
    #[inline(always)]
    pub(crate) fn read_body(body: &mut Cursor<'r>, has_attributes: bool) -> Result<Self> {
        Ok(Self {
            attributes: if has_attributes { body.i8()? } else { 0 },
            timestamp_delta: body.varlong().map_err(|e| e.in_field("timestampDelta"))?,
            offset_delta: body.varint().map_err(|e| e.in_field("offsetDelta"))?,
            key: nullable(body).map_err(|e| e.in_field("key"))?,
            value: nullable(body).map_err(|e| e.in_field("value"))?,
            headers: Headers::check(body)?,
        })
    }
}

pub(crate) fn nullable<'r>(cursor: &mut Cursor<'r>) -> Result<Option<&'r [u8]>> {
    cursor.length()?.map(|length| cursor.take(length)).transpose()
}

/// Appends a length, -1 for null.
pub(crate) fn write_length(data: Option<&[u8]>, out: &mut Vec<u8>) {
    encode_varint(data.map_or(-1, |data| data.len() as i64), out);
}

/// Appends a length and its bytes.
pub(crate) fn write_nullable(data: Option<&[u8]>, out: &mut Vec<u8>) {
    write_length(data, out);
    out.extend_from_slice(data.unwrap_or_default());
}
