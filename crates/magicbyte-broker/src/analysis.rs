//! The checks of an append that need only headers and CRCs (`UnifiedLog.analyzeAndValidateRecords`,
//! `ProduceRequest.validateRecords`).

use magicbyte::state::AppendOrigin;
use magicbyte::{Batch, Batches, Compression, RecordBatch};

use crate::append::Append;
use crate::append_config::AppendConfig;
use crate::append_error::{AppendError, ErrorCode};

/// A summary of the headers of an append.
#[derive(Clone, Copy, Debug)]
pub(super) struct Analysis {
    /// Bytes of whole batches, up to the first from a later epoch than a follower's own.
    pub(super) valid_bytes: usize,
    /// The codec of the last compressed batch.
    pub(super) source: Compression,
    /// Base offset of the first batch, or in magic 0 and 1 its last offset.
    pub(super) first_or_last_offset: i64,
    /// Base offset of the first batch, if it is of magic 2.
    pub(super) first_offset: Option<i64>,
    pub(super) last_offset: i64,
    pub(super) max_timestamp: i64,
    /// True if a batch of magic 2 has no leader epoch.
    pub(super) without_epoch: bool,
}

/// Checks framing, sizes and CRCs. As in Kafka, a truncated last batch is left out.
pub(super) fn analyze(
    config: &AppendConfig,
    payload: &[u8],
    append: &Append,
) -> Result<Analysis, AppendError> {
    let mut analysis = Analysis {
        valid_bytes: 0,
        source: Compression::None,
        first_or_last_offset: -1,
        first_offset: None,
        last_offset: -1,
        max_timestamp: -1,
        without_epoch: false,
    };
    let mut ended = false;
    for batch in Batches::new(payload) {
        let batch = batch?;
        check_origin(&batch, append)?;
        // A follower stores only batches up to the epoch that it knows.
        ended |= is_of_a_later_epoch(&batch, append);
        if ended {
            continue;
        }
        if analysis.valid_bytes == 0 {
            analysis.first_offset = batch.as_v2().map(RecordBatch::base_offset);
            analysis.first_or_last_offset = analysis.first_offset.unwrap_or(batch.last_offset());
        }
        analysis.without_epoch |= batch.magic() == 2 && batch.partition_leader_epoch() < 0;
        let rises = batch.last_offset() > analysis.last_offset;
        analysis.last_offset = batch.last_offset();
        if append.origin != AppendOrigin::Replication {
            check_batch_size(config, batch.size_in_bytes())?;
        }
        batch.verify()?;
        analysis.max_timestamp = analysis.max_timestamp.max(batch.max_timestamp());
        analysis.valid_bytes += batch.size_in_bytes();
        let codec = batch.compression()?;
        if codec != Compression::None {
            analysis.source = codec;
        }
        if !rises && !append.origin.assigns_offsets() {
            let why = format!("offset {} is not greater than those before it", batch.last_offset());
            return Err(AppendError::new(ErrorCode::UnknownServerError, why));
        }
    }
    Ok(analysis)
}

fn check_origin(batch: &Batch<'_>, append: &Append) -> Result<(), AppendError> {
    let refuse = |why| Err(AppendError::new(ErrorCode::InvalidRecord, why));
    let epoch = batch.partition_leader_epoch();
    match (append.origin, batch) {
        (AppendOrigin::RaftLeader, _) if epoch != append.leader_epoch => refuse(format!(
            "the leader's epoch is {}, but its batch has {epoch} (field partitionLeaderEpoch)",
            append.leader_epoch
        )),
        (AppendOrigin::Client, Batch::V2(v2)) if v2.base_offset() != 0 => refuse(format!(
            "a producer's batch must begin at offset 0, not {} (field baseOffset)",
            v2.base_offset()
        )),
        _ => Ok(()),
    }
}

fn is_of_a_later_epoch(batch: &Batch<'_>, append: &Append) -> bool {
    let epoch = batch.partition_leader_epoch();
    append.origin == AppendOrigin::Replication && epoch != -1 && epoch > append.leader_epoch
}

pub(super) fn check_batch_size(config: &AppendConfig, size: usize) -> Result<(), AppendError> {
    let limit = config.max_message_bytes;
    if size as i64 <= i64::from(limit) {
        return Ok(());
    }
    let why = format!("a batch of {size} bytes is larger than max.message.bytes, {limit}");
    Err(AppendError::new(ErrorCode::MessageTooLarge, why))
}

/// Checks the records of a produce request as a broker does before it appends them
/// (`ProduceRequest.validateRecords`): since request version 3 there must be exactly one batch, of magic 2;
/// zstd is allowed since version 7. Only framing is checked.
///
/// # Errors
/// [`ErrorCode::InvalidRecord`], [`ErrorCode::UnsupportedCompressionType`],
/// [`ErrorCode::CorruptMessage`].
pub fn check_produce_request(payload: &[u8], version: i16) -> Result<(), AppendError> {
    if version < 3 {
        return Ok(());
    }
    let refuse = |why| Err(AppendError::new(ErrorCode::InvalidRecord, why));
    let mut batches = Batches::new(payload);
    let Some(first) = batches.next().transpose()? else {
        return refuse("a produce request must have one batch per partition, but has none".to_string());
    };
    if first.magic() != 2 {
        return refuse(format!(
            "produce requests must have magic 2 since version 3, but this batch has magic {}",
            first.magic()
        ));
    }
    if version < 7 && first.compression()? == Compression::Zstd {
        let why = format!("zstd needs version 7 of the produce request, but this is version {version}");
        return Err(AppendError::new(ErrorCode::UnsupportedCompressionType, why));
    }
    if batches.next().transpose()?.is_some() {
        return refuse("a produce request must have one batch per partition, but has more".to_string());
    }
    Ok(())
}
