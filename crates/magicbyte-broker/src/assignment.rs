//! A leader's assignment of offsets, epoch and timestamps to an append: in place, or by rewriting it if the
//! topic has another codec or magic (`LogValidator`).

use magicbyte::convert::{set_last_offset, set_max_timestamp, set_partition_leader_epoch};
use magicbyte::internals::{Frame, set_overhead};
use magicbyte::state::AppendOrigin;
use magicbyte::{
    Batch, Batches, Compression, Decompressor, Error, ErrorKind, RECORD_BATCH_OVERHEAD, RecordBatch,
    Result as Outcome, TimestampType,
};

use crate::append::{Append, ConversionStats};
use crate::append_config::AppendConfig;
use crate::append_error::{AppendError, ErrorCode};
use crate::record_checks::{RecordsSummary, payload_of, walk};
use crate::rewriting::Rewriter;

type Result<T> = std::result::Result<T, AppendError>;

/// Checks the records of appends and assigns their offsets.
#[derive(Debug)]
pub(super) struct Assigner {
    decompressor: Decompressor,
    rewriter: Rewriter,
}

/// The outcome of an assignment.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) batches: Assigned,
    pub(super) record_count: i64,
    pub(super) max_timestamp: i64,
    pub(super) stats: ConversionStats,
}

#[derive(Debug)]
pub(super) enum Assigned {
    /// The batches need only new headers, which [`set_headers`] writes from these summaries, one per batch.
    InPlace(Vec<RecordsSummary>),
    /// The batches to be stored.
    Rewritten(Vec<u8>),
}

impl Assigner {
    pub(super) fn new(config: &AppendConfig) -> Outcome<Self> {
        let decompressor = Decompressor::with_limit(config.max_decompressed_bytes);
        Ok(Self { decompressor, rewriter: Rewriter::new(config)? })
    }

    /// Checks the batches, whose codec is `source`, and assigns offsets. Changes no bytes.
    pub(super) fn assign(
        &mut self,
        config: &AppendConfig,
        batches: &[u8],
        source: Compression,
        append: &Append,
    ) -> Result<Assignment> {
        let Self { decompressor, rewriter } = self;
        let first = first_batch(batches, source)?;
        let target = config.compression.of(source);
        let is_uncompressed = (source, target) == (Compression::None, Compression::None);
        let mut in_place = stays_in_place(config, batches, &first, source, target)?;

        let mut stats = ConversionStats::default();
        let mut walked = Vec::new();
        let mut started = false;
        let (mut record_count, mut max_timestamp) = (0, -1);
        for batch in Batches::new(batches) {
            let batch = batch?;
            check_magic(&first, &batch)?;
            if let Some(v2) = batch.as_v2() {
                check_batch(v2, append.origin, config.message_format)?;
            }
            let payload = payload_of(&batch, decompressor)?;
            let records = walk(config, append.now, &batch, payload, record_count)?;
            record_count += i64::from(records.count);
            max_timestamp = max_timestamp.max(records.max_timestamp);
            if !is_uncompressed {
                let header = header_size(config.message_format, batch.compression()?);
                stats.temporary_memory_bytes += (header + records.size) as u64;
                if in_place && !records.consecutive {
                    check_may_renumber(&batch, source)?;
                    in_place = false;
                }
            }
            if in_place {
                walked.push(records);
            } else {
                check_not_control(&batch)?;
                if !std::mem::replace(&mut started, true) {
                    rewriter.start(target, append, &first);
                }
                rewriter.append(&batch, payload)?;
            }
        }
        if append.next_offset.checked_add(record_count).is_none() {
            let kind = ErrorKind::OffsetOutOfRange { found: append.next_offset, min: 0, max: i64::MAX };
            return Err(Error::new(kind).in_field("offset").into());
        }

        let batches = if in_place {
            Assigned::InPlace(walked)
        } else {
            let (bytes, written) = rewriter.finish()?;
            stats.temporary_memory_bytes += written.temporary_memory_bytes;
            stats.records_converted = written.records_converted;
            Assigned::Rewritten(bytes)
        };
        let max_timestamp = match config.timestamp_type {
            TimestampType::LogAppendTime if config.message_format > 0 || !(is_uncompressed && in_place) => {
                append.now
            }
            _ if config.message_format == 0 => -1,
            _ => max_timestamp,
        };
        Ok(Assignment { batches, record_count, max_timestamp, stats })
    }
}

/// The first batch. It must be the only one if it is of magic 2 or compressed.
fn first_batch(batches: &[u8], source: Compression) -> Result<Batch<'_>> {
    let mut all = Batches::new(batches);
    let Some(first) = all.next().transpose()? else { return Err(refuse("there is no batch")) };
    if (first.magic() == 2 || source != Compression::None) && all.next().is_some() {
        return Err(refuse("an append must not have more than one batch of magic 2 or compressed wrapper"));
    }
    Ok(first)
}

/// True if it is enough to change the headers of the batches, judging by the headers alone.
fn stays_in_place(
    config: &AppendConfig,
    batches: &[u8],
    first: &Batch<'_>,
    source: Compression,
    target: Compression,
) -> Result<bool> {
    let magic = config.message_format;
    if (source, target) == (Compression::None, Compression::None) {
        for batch in Batches::new(batches) {
            if batch?.magic() != magic {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    // Markers stay uncompressed. Offsets in a magic 0 wrapper are absolute.
    let marker = source == Compression::None && first.is_control();
    Ok(marker || source == target && first.magic() == magic && magic > 0)
}

fn check_magic(first: &Batch<'_>, batch: &Batch<'_>) -> Result<()> {
    if first.magic() == batch.magic() {
        return Ok(());
    }
    let why = format!("a batch of magic {} follows one of magic {}", batch.magic(), first.magic());
    Err(AppendError::new(ErrorCode::InvalidRecord, why))
}

/// Checks the header of a magic 2 batch (`LogValidator.validateBatch`).
fn check_batch(batch: &RecordBatch<'_>, origin: AppendOrigin, magic: i8) -> Result<()> {
    let (count, delta) = (batch.record_count(), batch.last_offset_delta());
    let why = match origin {
        AppendOrigin::Client if batch.last_offset() < batch.base_offset() => {
            format!("the last offset is {delta} from the base offset (field lastOffsetDelta)")
        }
        AppendOrigin::Client if count <= 0 => {
            format!("the batch's record count is {count} (field recordsCount)")
        }
        AppendOrigin::Client if i64::from(delta) + 1 != i64::from(count) => {
            format!("the batch has {count} records but offsets for {}", i64::from(delta) + 1)
        }
        AppendOrigin::Client if batch.is_control() => "producers must not write control batches".to_string(),
        AppendOrigin::Client if batch.producer_id() > -1 && batch.base_sequence() < 0 => {
            let (id, sequence) = (batch.producer_id(), batch.base_sequence());
            format!("producer {id} has base sequence {sequence} (field baseSequence)")
        }
        _ if magic < 2 && (batch.is_transactional() || batch.producer_id() > -1) => {
            let what = if batch.is_transactional() { "transactions" } else { "idempotent producers" };
            let why = format!("the topic stores magic {magic}, which does not support {what}");
            return Err(AppendError::new(ErrorCode::UnsupportedForMessageFormat, why));
        }
        _ => return Ok(()),
    };
    Err(AppendError::new(ErrorCode::InvalidRecord, why))
}

/// Checks that inner offsets that are not consecutive may be fixed. Kafka fixes those of old producers'
/// wrappers. In magic 2, where no producer gets them wrong, its validator has already skipped the keys and
/// values that it would have to rewrite, and fails.
fn check_may_renumber(batch: &Batch<'_>, source: Compression) -> Result<()> {
    if batch.magic() == 2 && source != Compression::None {
        return Err(refuse("the offsets in a compressed batch must be consecutive from 0 on"));
    }
    Ok(())
}

fn check_not_control(batch: &Batch<'_>) -> Result<()> {
    if batch.is_control() {
        return Err(refuse("a control batch cannot be rewritten: Kafka would turn it into a data batch"));
    }
    Ok(())
}

fn refuse(why: &str) -> AppendError {
    AppendError::new(ErrorCode::InvalidRecord, why)
}

/// Size of a batch of this magic without its records (`AbstractRecords.recordBatchHeaderSizeInBytes`).
fn header_size(magic: i8, codec: Compression) -> usize {
    if magic == 2 { RECORD_BATCH_OVERHEAD } else { set_overhead(magic, codec) }
}

/// Sets offsets, timestamps and epoch in the headers of `batches`; `walked` has the summary of each.
pub(super) fn set_headers(
    config: &AppendConfig,
    batches: &mut [u8],
    walked: &[RecordsSummary],
    append: &Append,
) -> Outcome<()> {
    let (mut rest, mut next_offset) = (batches, append.next_offset);
    for records in walked {
        let Frame::Whole { size } = Frame::read(rest)? else { break };
        let (batch, after) = std::mem::take(&mut rest).split_at_mut(size);
        rest = after;
        next_offset += i64::from(records.count);
        set_last_offset(batch, next_offset - 1)?;
        if config.message_format > 0 {
            let time = match config.timestamp_type {
                TimestampType::LogAppendTime => append.now,
                _ => records.max_timestamp,
            };
            set_max_timestamp(batch, config.timestamp_type, time)?;
        }
        if config.message_format == 2 {
            set_partition_leader_epoch(batch, append.leader_epoch)?;
        }
    }
    Ok(())
}
