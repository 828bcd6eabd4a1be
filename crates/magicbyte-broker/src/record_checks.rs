//! The checks of single records (`LogValidator.validateRecord`).

use magicbyte::{Batch, Compression, Decompressor, LegacyBatch, MessageIter, Record, Records, TimestampType};

use crate::append_config::AppendConfig;
use crate::append_error::{AppendError, ErrorCode, RecordErrorKind, RecordErrors};

/// A topic's rules for the records of one batch.
#[derive(Clone, Copy, Debug)]
struct Rules {
    needs_key: bool,
    /// The timestamps that a topic with `CreateTime` accepts.
    bounds: Option<Bounds>,
    /// True if the batch has `LogAppendTime`.
    append_time: bool,
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    now: i64,
    before: i64,
    after: i64,
}

/// A summary of a batch whose records are all valid.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordsSummary {
    pub(super) count: u32,
    /// The largest timestamp, -1 in magic 0.
    pub(super) max_timestamp: i64,
    /// True if the offsets are consecutive from the expected first offset on.
    pub(super) consecutive: bool,
    /// Uncompressed size of the records in bytes.
    pub(super) size: usize,
}

impl Rules {
    fn of(config: &AppendConfig, now: i64, batch: &Batch<'_>) -> Self {
        let bounds =
            Bounds { now, before: config.timestamp_before_max_ms, after: config.timestamp_after_max_ms };
        Self {
            needs_key: config.compacted,
            bounds: (config.timestamp_type == TimestampType::CreateTime).then_some(bounds),
            append_time: batch.timestamp_type() == TimestampType::LogAppendTime,
        }
    }

    #[inline]
    fn check(&self, timestamp: i64, has_key: bool) -> Result<(), RecordErrorKind> {
        if self.needs_key && !has_key {
            return Err(RecordErrorKind::MissingKey);
        }
        match self.bounds {
            Some(bounds) if timestamp != -1 => bounds.check(timestamp),
            // Even without bounds, a producer must not set `LogAppendTime`.
            _ if self.append_time => Err(RecordErrorKind::LogAppendTimeFromProducer),
            _ => Ok(()),
        }
    }
}

impl Bounds {
    /// Differences wrap, as in Java.
    #[inline]
    fn check(&self, timestamp: i64) -> Result<(), RecordErrorKind> {
        let age = self.now.wrapping_sub(timestamp);
        if age > self.before || age.wrapping_neg() > self.after {
            let (min, max) = (self.now.wrapping_sub(self.before), self.now.wrapping_add(self.after));
            return Err(RecordErrorKind::TimestampOutOfRange { timestamp, min, max });
        }
        Ok(())
    }
}

/// Reads and checks all records of `batch` in `payload`, which comes from [`Batch::payload`]. `first` is the
/// offset that the first record should have.
pub(super) fn walk(
    config: &AppendConfig,
    now: i64,
    batch: &Batch<'_>,
    payload: &[u8],
    first: i64,
) -> Result<RecordsSummary, AppendError> {
    let rules = Rules::of(config, now, batch);
    match batch.records_up_to(payload, config.max_decompressed_message_bytes)? {
        Records::V2(records) => walk_records(rules, records, payload, first),
        Records::Legacy(messages) => match batch {
            Batch::Legacy(wrapper) if wrapper.compression()? != Compression::None => {
                walk_wrapped(rules, wrapper, messages, payload, first)
            }
            // A single message has no CRC but the batch's, which has been checked.
            _ => walk_records(rules, messages, payload, first),
        },
    }
}

#[inline]
fn walk_records<'r>(
    rules: Rules,
    records: impl Iterator<Item = magicbyte::Result<Record<'r>>>,
    payload: &[u8],
    first: i64,
) -> Result<RecordsSummary, AppendError> {
    let mut walk = Walk::new(rules, first);
    for record in records {
        walk.take(&record?);
    }
    walk.finish(payload.len())
}

/// Like [`walk_records`], but for messages in a wrapper, which have a magic and a CRC themselves.
fn walk_wrapped(
    rules: Rules,
    wrapper: &LegacyBatch<'_>,
    mut messages: MessageIter<'_>,
    payload: &[u8],
    first: i64,
) -> Result<RecordsSummary, AppendError> {
    let mut walk = Walk::new(rules, first);
    while let Some((offset, message)) = messages.read_message()? {
        let (found, expected) = (message.magic(), wrapper.magic());
        if found != expected && message.compression().is_ok_and(|codec| codec == Compression::None) {
            walk.refuse(RecordErrorKind::MagicMismatch { found, expected });
            continue;
        }
        let record = messages.record_of(offset, message);
        walk.take(&record.map_err(|e| wrapper.place(e.at_record(walk.count)))?);
    }
    walk.finish(payload.len() - messages.payload_size())
}

struct Walk {
    rules: Rules,
    first: i64,
    count: u32,
    max_timestamp: i64,
    consecutive: bool,
    errors: RecordErrors,
}

impl Walk {
    fn new(rules: Rules, first: i64) -> Self {
        let errors = RecordErrors::default();
        Self { rules, first, count: 0, max_timestamp: -1, consecutive: true, errors }
    }

    #[inline]
    fn take(&mut self, record: &Record<'_>) {
        if let Err(kind) = self.rules.check(record.timestamp(), record.key().is_some()) {
            self.errors.add(self.count, kind);
        }
        self.max_timestamp = self.max_timestamp.max(record.timestamp());
        self.consecutive &= record.offset() == self.first.wrapping_add(self.count.into());
        self.count += 1;
    }

    #[cold]
    fn refuse(&mut self, kind: RecordErrorKind) {
        self.errors.add(self.count, kind);
        self.count += 1;
    }

    fn finish(self, size: usize) -> Result<RecordsSummary, AppendError> {
        self.errors.into_result()?;
        let Self { count, max_timestamp, consecutive, .. } = self;
        // The payload of a batch without records is not read.
        let size = if count == 0 { 0 } else { size };
        Ok(RecordsSummary { count, max_timestamp, consecutive, size })
    }
}

/// The bytes that the records are read from.
pub(super) fn payload_of<'r>(
    batch: &Batch<'r>,
    decompressor: &'r mut Decompressor,
) -> Result<&'r [u8], AppendError> {
    let codec = batch.compression()?;
    batch.payload(decompressor).map_err(|error| match codec {
        // For magic 0 and 1 this is an unknown codec, not one that the client must not use.
        Compression::Zstd if batch.magic() < 2 => AppendError::caused(ErrorCode::InvalidRecord, error),
        _ => error.into(),
    })
}
