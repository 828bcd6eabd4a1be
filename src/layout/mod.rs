//! The fields of a batch with their places, values and meanings, for people who look at the bytes.

mod meaning;

pub use meaning::Meanings;

use std::collections::VecDeque;
use std::ops::Range;

use ::bytes::Bytes;

use crate::bytes::checksum::{crc32, crc32c};
use crate::bytes::cursor::Cursor;
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::error::{Error, ErrorKind, Result};
use crate::frame::{LOG_OVERHEAD, MAGIC};
use crate::legacy;
use crate::record::batch_header;

/// The bytes that a field's range refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The batch as it is stored.
    Stored,
    /// The decompressed payload of the batch.
    Decompressed,
}

/// One field of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// The section that `range` refers to.
    pub section: Section,
    /// The field's bytes.
    pub range: Range<usize>,
    /// Kafka's name of the field. `rest` is whatever follows the last field.
    pub name: &'static str,
    /// Index of the record, or of the message inside a wrapper; none for fields of the batch itself.
    pub record: Option<u32>,
    /// Index of the header in its record.
    pub header: Option<u32>,
    /// The value, if it is a number.
    pub number: Option<i64>,
    /// For `crc`, the checksum of the bytes that it covers.
    pub computed_crc: Option<u32>,
}

/// Iterates the fields of one batch of any magic, in the order of their bytes. Compressed data follows in decompressed
/// form. Returns every field before the damage, then the error, and ends.
///
/// ```
/// use magicbyte::layout::BatchLayout;
/// use magicbyte::{Compression, Decompressor, RecordsBuilder};
///
/// let mut builder = RecordsBuilder::v2(Compression::None);
/// builder.append(7, 1_700_000_000_000, None, Some(b"hello"), &[])?;
/// let layout = BatchLayout::new(builder.build()?.into(), Decompressor::new());
/// let fields: Vec<_> = layout.collect::<magicbyte::Result<_>>()?;
/// assert_eq!((fields[0].name, fields[0].number), ("baseOffset", Some(7)));
/// let value = fields.iter().find(|field| field.name == "value").unwrap();
/// assert_eq!((value.record, value.range.len()), (Some(0), 5));
/// # Ok::<(), magicbyte::Error>(())
/// ```
#[derive(Debug)]
pub struct BatchLayout {
    walk: Walk,
    decompressor: Decompressor,
    next: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Batch,
    Record {
        index: u32,
        count: u32,
    },
    Header {
        index: u32,
        count: u32,
        record: u32,
        records: u32,
        body: Body,
    },
    /// The messages inside a wrapper.
    Message {
        index: u32,
    },
    Rest,
    End,
}

/// The bytes of a record after its length, which the length counts.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Body {
    pub start: usize,
    pub length: usize,
}

impl BatchLayout {
    /// Creates a layout of `batch`, which may be incomplete. Reads nothing yet.
    #[must_use]
    pub fn new(batch: Bytes, decompressor: Decompressor) -> Self {
        Self { walk: Walk::new(batch), decompressor, next: Step::Batch }
    }

    /// The bytes that the ranges of a section refer to. For [`Section::Decompressed`], they exist once a field of the
    /// section was returned.
    #[must_use]
    pub fn bytes(&self, section: Section) -> &Bytes {
        self.walk.bytes(section)
    }

    fn batch(&mut self) -> Result<Step> {
        let walk = &mut self.walk;
        let base_offset = walk.i64("baseOffset")?;
        walk.i32("batchLength")?;
        walk.i32("partitionLeaderEpoch")?;
        walk.i8("magic")?;
        walk.crc(crc32c(walk.data().get(batch_header::at::ATTRIBUTES..).unwrap_or_default(), 0))?;
        let attributes = walk.i16("attributes")?;
        walk.i32("lastOffsetDelta")?;
        walk.i64("baseTimestamp")?;
        walk.i64("maxTimestamp")?;
        walk.i64("producerId")?;
        walk.i16("producerEpoch")?;
        walk.i32("baseSequence")?;
        let count = walk.i32("recordsCount")?;
        let compression = attributes as u8 & batch_header::COMPRESSION;
        // A batch that compaction emptied may keep its codec.
        if compression != 0 && count != 0 {
            let payload = walk.take("records", walk.remaining())?;
            self.decompress(compression, 2, &payload).map_err(|e| e.in_batch_at_offset(base_offset))?;
        }
        let count = u32::try_from(count)
            .map_err(|_| Error::new(ErrorKind::InvalidCount(count.into())).in_field("recordsCount"))?;
        Ok(if count == 0 { Step::Rest } else { Step::Record { index: 0, count } })
    }

    fn message(&mut self) -> Result<Step> {
        let message = message(&mut self.walk)?;
        rest(&mut self.walk)?;
        let compression = message.attributes & legacy::message::COMPRESSION;
        if compression == 0 {
            return Ok(Step::End);
        }
        self.decompress(compression, message.magic, &message.value)?;
        Ok(Step::Message { index: 0 })
    }

    fn decompress(&mut self, compression: u8, magic: i8, payload: &Bytes) -> Result<()> {
        let codec = Compression::from_id(compression)?;
        self.walk.enter(self.decompressor.decompress_shared(codec, magic, payload)?);
        Ok(())
    }
}

impl Steps for BatchLayout {
    fn walk(&mut self) -> &mut Walk {
        &mut self.walk
    }

    fn step(&mut self) -> Result<bool> {
        let walk = &mut self.walk;
        self.next = match self.next {
            Step::Batch if walk.data().get(MAGIC) == Some(&2) => self.batch()?,
            Step::Batch => self.message()?,
            Step::Record { index, count } => record(walk, index, count)?,
            Step::Header { index, count, record, records, body } => {
                header(walk, index, record)?;
                if index + 1 < count {
                    Step::Header { index: index + 1, count, record, records, body }
                } else {
                    check_end(walk, body, record)?;
                    after_record(record, records)
                }
            }
            Step::Message { .. } if walk.remaining() == 0 => Step::End,
            Step::Message { index } => {
                walk.record = Some(index);
                message(walk)?;
                Step::Message { index: index + 1 }
            }
            Step::Rest => {
                rest(walk)?;
                Step::End
            }
            Step::End => return Ok(false),
        };
        Ok(true)
    }
}

impl Iterator for BatchLayout {
    type Item = Result<Field>;

    fn next(&mut self) -> Option<Self::Item> {
        next_field(self)
    }
}

fn record(walk: &mut Walk, index: u32, records: u32) -> Result<Step> {
    let place = |e: Error| e.at_record(index);
    walk.record = Some(index);
    let length = walk.varint("length").map_err(place)?;
    let body = Body { start: walk.position, length: usize::try_from(length).unwrap_or(0) };
    let mut read = || {
        walk.i8("attributes")?;
        walk.varlong("timestampDelta")?;
        walk.varint("offsetDelta")?;
        walk.sized("keyLength", "key")?;
        walk.sized("valueLength", "value")?;
        walk.count("headersCount")
    };
    let count = read().map_err(place)?;
    if count > 0 {
        return Ok(Step::Header { index: 0, count, record: index, records, body });
    }
    check_end(walk, body, index)?;
    Ok(after_record(index, records))
}

/// A header of a record.
#[doc(hidden)]
pub fn header(walk: &mut Walk, index: u32, record: u32) -> Result<()> {
    (walk.record, walk.header) = (Some(record), Some(index));
    let place = |e: Error| e.at_record(record);
    let length = walk.varint("headerKeyLength").map_err(place)?;
    let key = usize::try_from(length).map_err(|_| {
        let kind = ErrorKind::InvalidSize { found: length.into(), min: 0, max: i32::MAX.into() };
        place(Error::new(kind).in_field("headerKeyLength"))
    })?;
    walk.take("headerKey", key).map_err(place)?;
    walk.sized("headerValueLength", "headerValue").map_err(place)
}

#[doc(hidden)]
pub fn check_end(walk: &Walk, body: Body, record: u32) -> Result<()> {
    let consumed = walk.position - body.start;
    if consumed == body.length {
        return Ok(());
    }
    Err(Error::new(ErrorKind::RecordSizeMismatch { declared: body.length, consumed }).at_record(record))
}

fn after_record(index: u32, count: u32) -> Step {
    if index + 1 < count { Step::Record { index: index + 1, count } } else { Step::Rest }
}

/// The fields of a message that the reader of its wrapper needs.
struct Message {
    magic: i8,
    attributes: u8,
    value: Bytes,
}

fn message(walk: &mut Walk) -> Result<Message> {
    let start = walk.position;
    let index = walk.record;
    let mut read = || {
        walk.i64("offset")?;
        let size = walk.i32("size")?;
        let left = walk.remaining();
        let Some(size) = usize::try_from(size).ok().filter(|&size| size <= left) else {
            walk.take("rest", left)?;
            let kind = ErrorKind::InvalidSize { found: size.into(), min: 0, max: left as i64 };
            return Err(Error::new(kind).in_field("size"));
        };
        let end = walk.position + size;
        let covered = (start + MAGIC).min(end)..end;
        walk.crc(crc32(&walk.data().slice(covered)))?;
        let magic = walk.i8("magic")?;
        if !(0..=1).contains(&magic) {
            return Err(Error::new(ErrorKind::UnsupportedMagic(magic)).in_field("magic"));
        }
        let attributes = walk.i8("attributes")? as u8;
        if magic == 1 {
            walk.i64("timestamp")?;
        }
        walk.sized_i32("keyLength", "key")?;
        let value = walk.sized_i32("valueLength", "value")?;
        if walk.position != end {
            let kind = ErrorKind::RecordSizeMismatch {
                declared: end - start - LOG_OVERHEAD,
                consumed: walk.position - start - LOG_OVERHEAD,
            };
            return Err(Error::new(kind).in_field("size"));
        }
        Ok(Message { magic, attributes, value })
    };
    read().map_err(|e: Error| match index {
        Some(index) => e.at_record(index),
        None => e,
    })
}

/// Nothing should be left.
#[doc(hidden)]
pub fn rest(walk: &mut Walk) -> Result<()> {
    let bytes = walk.remaining();
    if bytes == 0 {
        return Ok(());
    }
    (walk.record, walk.header) = (None, None);
    walk.take("rest", bytes)?;
    Err(ErrorKind::RecordsRemaining { bytes }.into())
}

/// A reader of the fields of one kind of batch, a few at a time.
#[doc(hidden)]
pub trait Steps {
    /// The place in the batch.
    fn walk(&mut self) -> &mut Walk;

    /// Takes the next fields; false after the last ones.
    fn step(&mut self) -> Result<bool>;
}

/// The next field; after the damage, the error, and then the end.
#[doc(hidden)]
pub fn next_field(layout: &mut impl Steps) -> Option<Result<Field>> {
    loop {
        let walk = layout.walk();
        if let Some(field) = walk.fields.pop_front() {
            return Some(Ok(field));
        }
        if walk.is_over {
            return walk.error.take().map(Err);
        }
        (walk.record, walk.header) = (None, None);
        let (is_over, error) = match layout.step() {
            Ok(more) => (!more, None),
            Err(error) => (true, Some(error)),
        };
        let walk = layout.walk();
        (walk.is_over, walk.error) = (is_over, error);
    }
}

/// Takes fields from a section, one after the other.
#[doc(hidden)]
#[derive(Debug)]
pub struct Walk {
    stored: Bytes,
    decompressed: Bytes,
    section: Section,
    pub position: usize,
    pub record: Option<u32>,
    pub header: Option<u32>,
    /// Fields that were taken but not handed out yet.
    fields: VecDeque<Field>,
    is_over: bool,
    error: Option<Error>,
}

#[doc(hidden)]
impl Walk {
    pub fn new(stored: Bytes) -> Self {
        Self {
            stored,
            decompressed: Bytes::new(),
            section: Section::Stored,
            position: 0,
            record: None,
            header: None,
            fields: VecDeque::new(),
            is_over: false,
            error: None,
        }
    }

    pub fn bytes(&self, section: Section) -> &Bytes {
        match section {
            Section::Stored => &self.stored,
            Section::Decompressed => &self.decompressed,
        }
    }

    /// The bytes of the section that fields are taken from.
    pub fn data(&self) -> &Bytes {
        self.bytes(self.section)
    }

    /// Continues at the beginning of the decompressed data.
    pub fn enter(&mut self, decompressed: Bytes) {
        (self.decompressed, self.section, self.position) = (decompressed, Section::Decompressed, 0);
    }

    pub fn remaining(&self) -> usize {
        self.data().len() - self.position
    }

    pub fn read<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Cursor<'_>) -> Result<T>,
        number: impl FnOnce(&T) -> Option<i64>,
    ) -> Result<T> {
        let start = self.position;
        let mut cursor = Cursor::new(&self.data()[start..]);
        let value = read(&mut cursor).map_err(|e| e.in_field(name))?;
        self.position = start + cursor.position();
        self.fields.push_back(Field {
            section: self.section,
            range: start..self.position,
            name,
            record: self.record,
            header: self.header,
            number: number(&value),
            computed_crc: None,
        });
        Ok(value)
    }

    pub fn i8(&mut self, name: &'static str) -> Result<i8> {
        self.read(name, |c| c.i8(), |&n| Some(n.into()))
    }

    pub fn i16(&mut self, name: &'static str) -> Result<i16> {
        self.read(name, |c| c.i16(), |&n| Some(n.into()))
    }

    pub fn i32(&mut self, name: &'static str) -> Result<i32> {
        self.read(name, |c| c.i32(), |&n| Some(n.into()))
    }

    pub fn i64(&mut self, name: &'static str) -> Result<i64> {
        self.read(name, |c| c.i64(), |&n| Some(n))
    }

    pub fn varint(&mut self, name: &'static str) -> Result<i32> {
        self.read(name, |c| c.varint(), |&n| Some(n.into()))
    }

    pub fn varlong(&mut self, name: &'static str) -> Result<i64> {
        self.read(name, |c| c.varlong(), |&n| Some(n))
    }

    /// A varint that counts the items after it.
    pub fn count(&mut self, name: &'static str) -> Result<u32> {
        let count = self.varint(name)?;
        u32::try_from(count).map_err(|_| Error::new(ErrorKind::InvalidCount(count.into())).in_field(name))
    }

    pub fn crc(&mut self, computed: u32) -> Result<()> {
        self.read("crc", |c| c.u32(), |&n| Some(n.into()))?;
        if let Some(field) = self.fields.back_mut() {
            field.computed_crc = Some(computed);
        }
        Ok(())
    }

    pub fn take(&mut self, name: &'static str, size: usize) -> Result<Bytes> {
        let start = self.position;
        self.read(name, |cursor| cursor.take(size).map(|_| ()), |()| None)?;
        Ok(self.data().slice(start..self.position))
    }

    /// A varint length, and that many bytes; any negative length is null.
    pub fn sized(&mut self, length: &'static str, name: &'static str) -> Result<()> {
        match usize::try_from(self.varint(length)?) {
            Ok(size) => self.take(name, size).map(|_| ()),
            Err(_) => Ok(()),
        }
    }

    /// A length of four bytes, and that many bytes; any negative length is null.
    fn sized_i32(&mut self, length: &'static str, name: &'static str) -> Result<Bytes> {
        match usize::try_from(self.i32(length)?) {
            Ok(size) => self.take(name, size),
            Err(_) => Ok(Bytes::new()),
        }
    }
}
