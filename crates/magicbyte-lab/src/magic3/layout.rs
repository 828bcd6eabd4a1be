//! The fields of an experimental batch with their places and values, for people who look at the bytes.

use ::bytes::Bytes;

use magicbyte::internals::batch_header::COMPRESSION;
use magicbyte::internals::{Body, Cursor, Steps, Walk};
use magicbyte::layout::{Field, Section};
use magicbyte::{Compression, Decompressor, Error, ErrorKind, Result, crc32c, layout};

use crate::magic3::decode::RecordFields;
use crate::magic3::fields::{Idea, Ideas, PREFIX, tagged_fields};

/// Iterates the fields of one experimental batch, as [`BatchLayout`](magicbyte::layout::BatchLayout) does for other
/// batches. Compressed data follows in decompressed form; two sections follow as one.
///
/// ```
/// use magicbyte_lab::magic3::{Encoder, Idea, Ideas, Layout3};
/// use magicbyte::{Batches, Compression, Decompressor, RecordsBuilder};
///
/// let mut builder = RecordsBuilder::v2(Compression::None);
/// builder.append(7, 1_700_000_000_000, None, Some(b"hello"), &[])?;
/// let data = builder.build()?;
/// let batch = Batches::new(&data).next().unwrap()?;
/// let mut encoder = Encoder::new(Ideas::KIP_931.with(Idea::TwoSections), Compression::Zstd, None)?;
/// let mut out = Vec::new();
/// encoder.encode(batch.as_v2().unwrap(), &mut out)?;
/// let fields: Vec<_> = Layout3::new(out.into(), Decompressor::new()).collect::<magicbyte::Result<_>>()?;
/// let value = fields.iter().find(|field| field.name == "value").unwrap();
/// assert_eq!((value.record, value.range.len()), (Some(0), 5));
/// # Ok::<(), magicbyte::Error>(())
/// ```
#[derive(Debug)]
pub struct Layout3 {
    walk: Walk,
    decompressor: Decompressor,
    next: Step,
    ideas: Ideas,
    count: u32,
    codec: Compression,
    /// The position of a record's fields, which are read again for its content.
    again: usize,
    /// The position at which the fields of all records must end, if it is stored.
    fields_end: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Batch,
    /// Headers that all records begin with.
    Shared {
        index: u32,
        count: u32,
    },
    /// The compressed payload.
    Payload,
    Record {
        index: u32,
    },
    Header {
        index: u32,
        count: u32,
        record: u32,
        /// The body of a record whose content follows its fields.
        body: Option<Body>,
    },
    Fields {
        index: u32,
    },
    Content {
        index: u32,
    },
    Rest,
    End,
}

impl Layout3 {
    /// Creates a layout of `batch`, which may be incomplete. Reads nothing yet.
    #[must_use]
    pub fn new(batch: Bytes, decompressor: Decompressor) -> Self {
        Self {
            walk: Walk::new(batch),
            decompressor,
            next: Step::Batch,
            ideas: Ideas::default(),
            count: 0,
            codec: Compression::None,
            again: 0,
            fields_end: None,
        }
    }

    /// The bytes that the ranges of a section count in; of [`Section::Decompressed`], once a field of it was given.
    #[must_use]
    pub fn bytes(&self, section: Section) -> &Bytes {
        self.walk.bytes(section)
    }

    fn batch(&mut self) -> Result<Step> {
        let walk = &mut self.walk;
        walk.i64("baseOffset")?;
        walk.i32("batchLength")?;
        walk.i32("partitionLeaderEpoch")?;
        let magic = walk.i8("magic")?;
        if magic != 3 {
            return Err(Error::new(ErrorKind::UnsupportedMagic(magic)).in_field("magic"));
        }
        walk.crc(crc32c(walk.data().get(PREFIX..).unwrap_or_default(), 0))?;
        let attributes = walk.i16("attributes")?;
        self.ideas = Ideas::of_attributes(attributes);
        walk.i64("producerId")?;
        walk.i16("producerEpoch")?;
        walk.i32("baseSequence")?;
        let count = walk.i32("recordsCount")?;
        walk.varint("lastOffsetDelta")?;
        walk.varlong("baseTimestamp")?;
        walk.varlong("maxTimestampDelta")?;
        if self.ideas.has(Idea::BothTimestamps) {
            walk.varlong("appendTimeDelta")?;
        }
        if self.ideas.has(Idea::TaggedFields) {
            walk.read("taggedFields", tagged_fields, |&count| Some(count.into()))?;
        }
        self.codec =
            Compression::from_id(attributes as u8 & COMPRESSION).map_err(|e| e.in_field("attributes"))?;
        self.count = u32::try_from(count)
            .map_err(|_| Error::new(ErrorKind::InvalidCount(count.into())).in_field("recordsCount"))?;
        if !self.ideas.has(Idea::BatchHeaders) {
            return Ok(Step::Payload);
        }
        let count = walk.count("headersCount")?;
        Ok(Step::Shared { index: 0, count })
    }

    /// Sections, and the decompression.
    fn payload(&mut self) -> Result<Step> {
        let walk = &mut self.walk;
        let size = match self.ideas.has(Idea::TwoSections) {
            true => Some(usize::try_from(walk.varint("fieldsSize")?).unwrap_or(0)),
            false => None,
        };
        if self.codec == Compression::None {
            self.fields_end = size.map(|size| walk.position.saturating_add(size));
            self.again = walk.position;
        } else if let Some(size) = size {
            let fields = walk.take("fields", size)?;
            let content = walk.take("content", walk.remaining())?;
            let mut both = self.decompressor.decompress(self.codec, 2, &fields)?.to_vec();
            self.fields_end = Some(both.len());
            both.extend_from_slice(self.decompressor.decompress(self.codec, 2, &content)?);
            walk.enter(both.into());
        } else {
            let payload = walk.take("records", walk.remaining())?;
            walk.enter(self.decompressor.decompress_shared(self.codec, 2, &payload)?);
        }
        Ok(match (self.count, self.ideas.are_fields_first()) {
            (0, _) => Step::Rest,
            (_, true) => Step::Fields { index: 0 },
            (_, false) => Step::Record { index: 0 },
        })
    }

    fn has_attributes(&self) -> bool {
        !self.ideas.has(Idea::NoRecordAttributes)
    }

    fn record(&mut self, index: u32) -> Result<Step> {
        let has_attributes = self.has_attributes();
        let walk = &mut self.walk;
        walk.record = Some(index);
        let mut read = || {
            let length = walk.varint("length")?;
            let body = Body { start: walk.position, length: usize::try_from(length).unwrap_or(0) };
            if has_attributes {
                walk.i8("attributes")?;
            }
            walk.varlong("timestampDelta")?;
            walk.varint("offsetDelta")?;
            walk.sized("keyLength", "key")?;
            walk.sized("valueLength", "value")?;
            Ok((walk.count("headersCount")?, body))
        };
        let (count, body) = read().map_err(|e: Error| e.at_record(index))?;
        if count > 0 {
            return Ok(Step::Header { index: 0, count, record: index, body: Some(body) });
        }
        layout::check_end(walk, body, index)?;
        Ok(self.after_record(index))
    }

    fn after_record(&self, index: u32) -> Step {
        if index + 1 < self.count { Step::Record { index: index + 1 } } else { Step::Rest }
    }

    fn record_fields(&mut self, index: u32) -> Result<Step> {
        let has_attributes = self.has_attributes();
        let walk = &mut self.walk;
        walk.record = Some(index);
        let mut read = || {
            if has_attributes {
                walk.i8("attributes")?;
            }
            walk.varlong("timestampDelta")?;
            walk.varint("offsetDelta")?;
            walk.varint("keyLength")?;
            walk.varint("valueLength")
        };
        read().map_err(|e: Error| e.at_record(index))?;
        if index + 1 < self.count {
            return Ok(Step::Fields { index: index + 1 });
        }
        if let Some(end) = self.fields_end
            && let Some(bytes) = end.checked_sub(walk.position).filter(|&bytes| bytes > 0)
        {
            return Err(ErrorKind::RecordsRemaining { bytes }.into());
        }
        Ok(Step::Content { index: 0 })
    }

    fn content(&mut self, index: u32) -> Result<Step> {
        let has_attributes = self.has_attributes();
        let walk = &mut self.walk;
        walk.record = Some(index);
        let mut cursor = Cursor::new(&walk.data()[self.again..]);
        let fields = RecordFields::read(&mut cursor, has_attributes)?;
        self.again += cursor.position();
        let mut read = || {
            if let Some(key) = fields.key {
                walk.take("key", key)?;
            }
            if let Some(value) = fields.value {
                walk.take("value", value)?;
            }
            walk.count("headersCount")
        };
        let count = read().map_err(|e: Error| e.at_record(index))?;
        if count > 0 {
            return Ok(Step::Header { index: 0, count, record: index, body: None });
        }
        Ok(self.after_content(index))
    }

    fn after_content(&self, index: u32) -> Step {
        if index + 1 < self.count { Step::Content { index: index + 1 } } else { Step::Rest }
    }
}

/// Reads a header of the batch in the same way as a record's header.
fn shared_header(walk: &mut Walk, index: u32) -> Result<()> {
    walk.header = Some(index);
    let length = walk.varint("headerKeyLength")?;
    walk.take("headerKey", usize::try_from(length).unwrap_or(0))?;
    walk.sized("headerValueLength", "headerValue")
}

impl Steps for Layout3 {
    fn walk(&mut self) -> &mut Walk {
        &mut self.walk
    }

    fn step(&mut self) -> Result<bool> {
        let walk = &mut self.walk;
        self.next = match self.next {
            Step::Batch => self.batch()?,
            Step::Shared { index, count } if index < count => {
                shared_header(walk, index)?;
                Step::Shared { index: index + 1, count }
            }
            Step::Shared { .. } => Step::Payload,
            Step::Payload => self.payload()?,
            Step::Record { index } => self.record(index)?,
            Step::Header { index, count, record, body } => {
                layout::header(walk, index, record)?;
                match (index + 1 < count, body) {
                    (true, _) => Step::Header { index: index + 1, count, record, body },
                    (false, Some(body)) => {
                        layout::check_end(walk, body, record)?;
                        self.after_record(record)
                    }
                    (false, None) => self.after_content(record),
                }
            }
            Step::Fields { index } => self.record_fields(index)?,
            Step::Content { index } => self.content(index)?,
            Step::Rest => {
                layout::rest(walk)?;
                Step::End
            }
            Step::End => return Ok(false),
        };
        Ok(true)
    }
}

impl Iterator for Layout3 {
    type Item = Result<Field>;

    fn next(&mut self) -> Option<Self::Item> {
        layout::next_field(self)
    }
}
