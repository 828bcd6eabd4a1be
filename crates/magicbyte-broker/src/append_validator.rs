//! The append of a leader or follower, up to the point where the bytes go to disk (`UnifiedLog.append`).

use magicbyte::{Batches, Error, ErrorKind, Result, TimestampType};

use crate::analysis::{Analysis, analyze, check_batch_size};
use crate::append::{Append, AppendInfo, ConversionStats};
use crate::append_config::{AppendConfig, MAX_DECOMPRESSED_MESSAGE_BYTES};
use crate::append_error::{AppendError, ErrorCode};
use crate::assignment::{Assigned, Assigner, Assignment, set_headers};

/// Checks appends and turns them into the batches to be stored, reusing codec contexts and buffers.
///
/// ```
/// use magicbyte_broker::{Append, AppendConfig, AppendValidator};
/// use magicbyte::state::AppendOrigin;
/// use magicbyte::{Compression, RecordsBuilder};
///
/// let mut builder = RecordsBuilder::v2(Compression::Lz4);
/// builder.append(0, 1_700_000_000_000, None, Some(b"first"), &[])?;
/// builder.append(1, 1_700_000_000_000, None, Some(b"second"), &[])?;
/// let mut records = builder.build()?;
///
/// let mut validator = AppendValidator::new(AppendConfig::default())?;
/// let origin = AppendOrigin::Client;
/// let append = Append { origin, next_offset: 40, leader_epoch: 3, now: 1_700_000_000_500 };
/// let info = validator.validate(&mut records, &append)?.expect("a whole batch");
/// assert_eq!((info.first_offset, info.last_offset), (Some(40), 41));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AppendValidator {
    config: AppendConfig,
    assigner: Assigner,
}

impl AppendValidator {
    /// A validator for a topic with this configuration.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedMagic`] and [`ErrorKind::InvalidOptions`] for settings that no topic can have;
    /// for the codec, those of [`Compressor::with_level`](magicbyte::Compressor::with_level).
    pub fn new(config: AppendConfig) -> Result<Self> {
        if !(0..=2).contains(&config.message_format) {
            return Err(Error::new(ErrorKind::UnsupportedMagic(config.message_format)));
        }
        if config.timestamp_type == TimestampType::NoTimestampType {
            return Err(ErrorKind::InvalidOptions(
                "a topic's timestamp type must be CreateTime or LogAppendTime",
            )
            .into());
        }
        if config.timestamp_before_max_ms < 0 || config.timestamp_after_max_ms < 0 {
            return Err(ErrorKind::InvalidOptions("the bounds of timestamps must not be negative").into());
        }
        if !(1..=MAX_DECOMPRESSED_MESSAGE_BYTES).contains(&config.max_decompressed_message_bytes) {
            let why = "max.decompressed.message.bytes must be 1 to 2147483639";
            return Err(ErrorKind::InvalidOptions(why).into());
        }
        let assigner = Assigner::new(&config)?;
        Ok(Self { config, assigner })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &AppendConfig {
        &self.config
    }

    /// Checks `records`, batches as a producer or leader sent them, and turns them into the batches to be
    /// stored. A leader sets offsets, epoch and timestamps in place; if that is impossible (another codec or
    /// magic, a magic 0 wrapper) the batch is rewritten. A truncated last batch is removed. If there is no
    /// whole batch, `records` is emptied and the result is `None`.
    ///
    /// Keys and values are not read. A compressed batch is decompressed once.
    ///
    /// # Errors
    /// [`AppendError`], which leaves `records` unchanged.
    pub fn validate(
        &mut self,
        records: &mut Vec<u8>,
        append: &Append,
    ) -> std::result::Result<Option<AppendInfo>, AppendError> {
        let analysis = analyze(&self.config, records, append)?;
        if analysis.valid_bytes == 0 {
            records.clear();
            return Ok(None);
        }
        let valid = &mut records[..analysis.valid_bytes];
        let assignment = match append.origin.assigns_offsets() {
            true => Some(self.assigner.assign(&self.config, valid, analysis.source, append)?),
            false => None,
        };
        let Some(Assignment { batches, record_count, max_timestamp, stats }) = assignment else {
            check_follows(&analysis, append)?;
            self.check_segment_size(valid)?;
            records.truncate(analysis.valid_bytes);
            return Ok(Some(AppendInfo {
                first_offset: analysis.first_offset,
                last_offset: analysis.last_offset,
                max_timestamp: analysis.max_timestamp,
                offset_of_max_timestamp: offset_of_max_timestamp(records)?,
                log_append_time: None,
                stats: ConversionStats::default(),
            }));
        };
        match batches {
            Assigned::InPlace(walked) => {
                self.check_segment_size(valid)?;
                set_headers(&self.config, valid, &walked, append)?;
                records.truncate(analysis.valid_bytes);
            }
            Assigned::Rewritten(written) => {
                for batch in Batches::new(&written) {
                    check_batch_size(&self.config, batch?.size_in_bytes())?;
                }
                self.check_segment_size(&written)?;
                *records = written;
            }
        }
        let append_time = self.config.timestamp_type == TimestampType::LogAppendTime;
        Ok(Some(AppendInfo {
            first_offset: Some(append.next_offset),
            last_offset: append.next_offset + record_count - 1,
            max_timestamp,
            offset_of_max_timestamp: offset_of_max_timestamp(records)?,
            log_append_time: append_time.then_some(append.now),
            stats,
        }))
    }

    fn check_segment_size(&self, batches: &[u8]) -> std::result::Result<(), AppendError> {
        let (size, limit) = (batches.len(), self.config.segment_bytes);
        if size as i64 <= i64::from(limit) {
            return Ok(());
        }
        let why = format!("an append of {size} bytes is larger than segment.bytes, {limit}");
        Err(AppendError::new(ErrorCode::RecordListTooLarge, why))
    }
}

/// Checks that offsets which the leader has assigned begin at the log's end or later, and that it has set its
/// epoch (`LeaderEpochFileCache.assign`).
fn check_follows(analysis: &Analysis, append: &Append) -> std::result::Result<(), AppendError> {
    let (found, expected) = (analysis.first_or_last_offset, append.next_offset);
    if analysis.without_epoch {
        let why = "a leader's batch must have its epoch (field partitionLeaderEpoch)";
        return Err(AppendError::new(ErrorCode::InvalidRecord, why));
    }
    if found >= expected {
        return Ok(());
    }
    let why = format!("the batches begin at offset {found}, but the log ends at {expected}");
    Err(AppendError::new(ErrorCode::UnknownServerError, why))
}

/// The offset that the time index of an empty segment would get (`LogSegment.append`).
fn offset_of_max_timestamp(batches: &[u8]) -> Result<i64> {
    let (mut max_timestamp, mut offset) = (-1, -1);
    for batch in Batches::new(batches) {
        let batch = batch?;
        if batch.max_timestamp() > max_timestamp {
            (max_timestamp, offset) = (batch.max_timestamp(), batch.last_offset());
        }
    }
    Ok(offset)
}
