//! The checks of single records, and what the walk over them finds (`LogValidator.validateRecord`).

use crate::batch::{Batch, Records};
use crate::broker::append_config::AppendConfig;
use crate::broker::append_error::{AppendError, ErrorCode, RecordErrorKind, RecordErrors};
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::legacy::batch::LegacyBatch;
use crate::legacy::iter::MessageIter;
use crate::record::Record;
use crate::record::timestamp_type::TimestampType;

/// What a topic demands of the records of one batch.
#[derive(Clone, Copy, Debug)]
struct Rules {
    needs_key: bool,
    /// The timestamps that a topic with `CreateTime` takes.
    bounds: Option<Bounds>,
    /// The batch says its timestamps are a broker's.
    append_time: bool,
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    now: i64,
    before: i64,
    after: i64,
}

/// What was found in a batch whose records are all good.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walked {
    pub(super) count: u32,
    /// The largest timestamp, -1 in magic 0.
    pub(super) max_timestamp: i64,
    /// The records' offsets are 0, 1, 2 ... from the offset the walk was told.
    pub(super) consecutive: bool,
    /// Bytes of the records, uncompressed.
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
            // A time without bounds may still not be called the broker's.
            _ if self.append_time => Err(RecordErrorKind::LogAppendTimeFromProducer),
            _ => Ok(()),
        }
    }
}

impl Bounds {
    /// Differences wrap as Java's do.
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

/// Reads all records of `batch` in `payload`, which [`Batch::payload`] gave; keys and values stay where they
/// are. `first` is the offset that the first of them should have.
pub(super) fn walk(
    config: &AppendConfig,
    now: i64,
    batch: &Batch<'_>,
    payload: &[u8],
    first: i64,
) -> Result<Walked, AppendError> {
    let rules = Rules::of(config, now, batch);
    match batch.records_in(payload)? {
        Records::V2(records) => walk_records(rules, records, payload, first),
        Records::Legacy(messages) => match batch {
            Batch::Legacy(wrapper) if wrapper.compression()? != Compression::None => {
                walk_wrapped(rules, wrapper, messages, payload, first)
            }
            // The CRC of a message that is a batch by itself is the batch's.
            _ => walk_records(rules, messages, payload, first),
        },
    }
}

#[inline]
fn walk_records<'r>(
    rules: Rules,
    records: impl Iterator<Item = crate::error::Result<Record<'r>>>,
    payload: &[u8],
    first: i64,
) -> Result<Walked, AppendError> {
    let mut walk = Walk::new(rules, first);
    for record in records {
        walk.take(&record?);
    }
    walk.finish(payload.len())
}

/// Messages in a wrapper have magic and CRC of their own.
fn walk_wrapped(
    rules: Rules,
    wrapper: &LegacyBatch<'_>,
    mut messages: MessageIter<'_>,
    payload: &[u8],
    first: i64,
) -> Result<Walked, AppendError> {
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
        if let Err(kind) = self.rules.check(record.timestamp, record.key.is_some()) {
            self.errors.add(self.count, kind);
        }
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        self.consecutive &= record.offset == self.first.wrapping_add(self.count.into());
        self.count += 1;
    }

    #[cold]
    fn refuse(&mut self, kind: RecordErrorKind) {
        self.errors.add(self.count, kind);
        self.count += 1;
    }

    fn finish(self, size: usize) -> Result<Walked, AppendError> {
        self.errors.into_result()?;
        let Self { count, max_timestamp, consecutive, .. } = self;
        // What stands in a batch without records is not looked at.
        let size = if count == 0 { 0 } else { size };
        Ok(Walked { count, max_timestamp, consecutive, size })
    }
}

/// What the records are read from.
pub(super) fn payload_of<'r>(
    batch: &Batch<'r>,
    decompressor: &'r mut Decompressor,
) -> Result<&'r [u8], AppendError> {
    let codec = batch.compression()?;
    batch.payload(decompressor).map_err(|error| match codec {
        // No codec of magic 0 and 1 at all, rather than one that a client may not use.
        Compression::Zstd if batch.magic() < 2 => AppendError::caused(ErrorCode::InvalidRecord, error),
        _ => error.into(),
    })
}
