//! The checks that a broker makes of a producer's batch (`LogValidator`): offsets without gaps, timestamps, keys. With the fields of
//! records first, no key, value or header is decompressed for them, or only those that a block of the codec holds, too.

use crate::bytes::cursor::Cursor;
use crate::compression::codec::Compression;
use crate::compression::decompressor::DEFAULT_MAX_DECOMPRESSED_BYTES;
use crate::compression::prefix::Prefix;
use crate::error::{Error, ErrorKind, Result};
use crate::lab::magic3::decode::RecordFields;
use crate::lab::magic3::fields::{Header3, Idea, RawRecord};
use crate::record::header::Headers;

/// How much is decompressed at first, in bytes per record.
const FIRST_GUESS: usize = 8;

/// What a batch's fields say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Validated {
    /// Records.
    pub records: u32,
    /// The largest timestamp of a record (ms); `i64::MIN` if there is none.
    pub max_timestamp: i64,
    /// Records without a key, which compacted topics refuse.
    pub null_keys: u32,
    /// Bytes that were decompressed.
    pub decompressed: usize,
}

impl Validated {
    fn add(
        &mut self,
        base_timestamp: i64,
        timestamp_delta: i64,
        offset_delta: i32,
        has_key: bool,
    ) -> Result<()> {
        if i64::from(offset_delta) != i64::from(self.records) {
            let (found, expected) = (offset_delta.into(), self.records.into());
            return Err(Error::new(ErrorKind::OffsetOutOfOrder { found, expected }).in_field("offsetDelta"));
        }
        self.records += 1;
        self.max_timestamp = self.max_timestamp.max(base_timestamp.wrapping_add(timestamp_delta));
        self.null_keys += u32::from(!has_key);
        Ok(())
    }
}

/// Validates one experimental batch, its CRC included.
///
/// # Errors
/// Those of [`Header3::read`] and of the decompression; [`ErrorKind::OffsetOutOfOrder`] unless the records' offsets are consecutive from
/// the base offset on; what makes a record unreadable.
pub fn validate(batch: &[u8]) -> Result<Validated> {
    let (header, rest) = Header3::read(batch)?;
    let codec = Compression::from_id(header.codec()).map_err(|e| e.in_field("attributes"))?;
    let mut cursor = Cursor::new(rest);
    if header.ideas.has(Idea::BatchHeaders) {
        Headers::check(&mut cursor)?;
    }
    let size = match header.ideas.has(Idea::TwoSections) {
        true => cursor.length()?.unwrap_or(0),
        false => cursor.remaining(),
    };
    let count = u32::try_from(header.common.record_count)
        .map_err(|_| ErrorKind::InvalidCount(header.common.record_count.into()))?;
    let mut payload = Prefix::new(codec, cursor.take(size)?, DEFAULT_MAX_DECOMPRESSED_BYTES);
    let mut validated = Validated { max_timestamp: i64::MIN, ..Validated::default() };
    if header.ideas.are_fields_first() {
        fields(&header, count, &mut payload, &mut validated)?;
    } else {
        payload.reach_end()?;
        let mut cursor = Cursor::new(payload.data());
        for index in 0..count {
            let record = record(&header, &mut cursor).map_err(|e| e.at_record(index))?;
            validated
                .add(
                    header.common.base_timestamp,
                    record.timestamp_delta,
                    record.offset_delta,
                    record.key.is_some(),
                )
                .map_err(|e| e.at_record(index))?;
        }
    }
    validated.decompressed = payload.data().len();
    Ok(validated)
}

fn record<'r>(header: &Header3, cursor: &mut Cursor<'r>) -> Result<RawRecord<'r>> {
    let length = cursor.length().map_err(|e| e.in_field("length"))?.unwrap_or(0);
    RawRecord::read_body(&mut Cursor::new(cursor.take(length)?), !header.ideas.has(Idea::NoRecordAttributes))
}

fn fields(header: &Header3, count: u32, payload: &mut Prefix<'_>, validated: &mut Validated) -> Result<()> {
    let has_attributes = !header.ideas.has(Idea::NoRecordAttributes);
    let mut position = 0;
    payload.reach((count as usize).saturating_mul(FIRST_GUESS).min(payload.limit()))?;
    while validated.records < count {
        let index = validated.records;
        let mut cursor = Cursor::new(&payload.data()[position..]);
        match RecordFields::read(&mut cursor, has_attributes) {
            Ok(one) => {
                position += cursor.position();
                validated
                    .add(
                        header.common.base_timestamp,
                        one.timestamp_delta,
                        one.offset_delta,
                        one.key.is_some(),
                    )
                    .map_err(|e| e.at_record(index))?;
            }
            Err(error) if payload.is_whole() => return Err(error.at_record(index)),
            // The fields of this record may not be there yet; if they are wrong, they are wrong then, too.
            Err(_) => {
                let left = (count - index) as usize;
                let more = payload.data().len().saturating_add(left.saturating_mul(FIRST_GUESS));
                if payload.data().len() == payload.limit() {
                    return Err(ErrorKind::LimitExceeded { limit: payload.limit() }.into());
                }
                payload.reach(more.min(payload.limit()))?;
            }
        }
    }
    Ok(())
}
