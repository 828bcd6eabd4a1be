//! The checks that a broker makes of a producer's batch (`LogValidator`): offsets without gaps, timestamps, keys. If
//! the fields of records come first, the checks decompress no key, value or header, except those in the same block of
//! the codec.

use magicbyte::internals::{Cursor, Prefix, PrefixContext};
use magicbyte::{Compression, Decompressor, Error, ErrorKind, Headers, Result};

use crate::decode::RecordFields;
use crate::fields::{Header3, Idea, RawRecord};

/// A first guess of how much to decompress, in bytes per record.
const FIRST_GUESS: usize = 8;
/// Attributes, a varlong and three varints.
const LARGEST_FIELDS: usize = 1 + 10 + 3 * 5;

/// The validated fields of a batch, in summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    /// A summary of no records.
    pub(crate) const NOTHING: Self =
        Self { records: 0, max_timestamp: i64::MIN, null_keys: 0, decompressed: 0 };

    /// Counts a record whose offset is `offset_delta` after the base offset.
    ///
    /// # Errors
    /// [`ErrorKind::OffsetOutOfOrder`] unless it is the next one.
    #[inline]
    pub(crate) fn add(&mut self, timestamp: i64, offset_delta: i64, has_key: bool) -> Result<()> {
        if offset_delta != i64::from(self.records) {
            let (found, expected) = (offset_delta, self.records.into());
            let error = Error::new(ErrorKind::OffsetOutOfOrder { found, expected }).in_field("offsetDelta");
            return Err(error.at_record(self.records));
        }
        self.records += 1;
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.null_keys += u32::from(!has_key);
        Ok(())
    }
}

/// Validates experimental batches. Buffers and contexts are reused.
pub struct Validator {
    decompressor: Decompressor,
    prefix: PrefixContext,
}

impl std::fmt::Debug for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validator").field("limit", &self.decompressor.limit()).finish_non_exhaustive()
    }
}

impl Default for Validator {
    fn default() -> Self {
        Self::new()
    }
}

impl Validator {
    /// A validator with the limit of [`Decompressor::new`].
    #[must_use]
    pub fn new() -> Self {
        Self { decompressor: Decompressor::new(), prefix: PrefixContext::default() }
    }

    /// Sets the maximum decompressed size of a batch in bytes.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.decompressor = Decompressor::with_limit(limit);
        self
    }

    /// Validates one batch, its CRC included.
    ///
    /// # Errors
    /// The errors of [`Header3::read`] and of the decompression; [`ErrorKind::OffsetOutOfOrder`] unless the records'
    /// offsets are consecutive from the base offset on; the errors of unreadable records.
    pub fn validate(&mut self, batch: &[u8]) -> Result<Validated> {
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
        let payload = cursor.take(size)?;
        let count = header.count()?;
        let mut validated = Validated::NOTHING;
        let Self { decompressor, prefix } = self;
        // Of two sections, all of the first one is needed.
        let is_stream = header.ideas.has(Idea::FieldsFirst) && !header.ideas.has(Idea::TwoSections);
        if is_stream && let Some(mut prefix) = prefix.begin(codec, payload, decompressor.limit())? {
            fields_of_stream(&header, count, &mut prefix, &mut validated)?;
            validated.decompressed = prefix.data().len();
            return Ok(validated);
        }
        let data = decompressor.decompress(codec, 2, payload)?;
        let mut cursor = Cursor::new(data);
        for index in 0..count {
            let place = |error: Error| error.at_record(index);
            if header.ideas.are_fields_first() {
                let one = RecordFields::read(&mut cursor, header.has_record_attributes()).map_err(place)?;
                let timestamp = header.common.base_timestamp.wrapping_add(one.timestamp_delta);
                validated.add(timestamp, one.offset_delta.into(), one.key.is_some())?;
            } else {
                let one = record(&header, &mut cursor).map_err(place)?;
                let timestamp = header.common.base_timestamp.wrapping_add(one.timestamp_delta);
                validated.add(timestamp, one.offset_delta.into(), one.key.is_some())?;
            }
        }
        validated.decompressed = data.len();
        Ok(validated)
    }
}

/// Validates one experimental batch: [`Validator::validate`] with buffers of its own.
///
/// # Errors
/// The errors of [`Validator::validate`].
pub fn validate(batch: &[u8]) -> Result<Validated> {
    Validator::new().validate(batch)
}

#[inline(always)]
fn record<'r>(header: &Header3, cursor: &mut Cursor<'r>) -> Result<RawRecord<'r>> {
    let length = cursor.length().map_err(|e| e.in_field("length"))?.unwrap_or(0);
    RawRecord::read_body(&mut Cursor::new(cursor.take(length)?), header.has_record_attributes())
}

fn fields_of_stream(
    header: &Header3,
    count: u32,
    payload: &mut Prefix<'_>,
    validated: &mut Validated,
) -> Result<()> {
    let mut position = 0;
    payload.reach((count as usize).saturating_mul(FIRST_GUESS).min(payload.limit()))?;
    while validated.records < count {
        let index = validated.records;
        let mut cursor = Cursor::new(&payload.data()[position..]);
        match RecordFields::read(&mut cursor, header.has_record_attributes()) {
            Ok(one) => {
                position += cursor.position();
                let timestamp = header.common.base_timestamp.wrapping_add(one.timestamp_delta);
                validated.add(timestamp, one.offset_delta.into(), one.key.is_some())?;
            }
            Err(error) if payload.is_whole() || payload.data().len() - position >= LARGEST_FIELDS => {
                return Err(error.at_record(index));
            }
            // Not all fields of this record are there yet.
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
