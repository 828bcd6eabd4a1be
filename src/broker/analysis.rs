//! The checks of an append before its records are looked at (`UnifiedLog.analyzeAndValidateRecords`,
//! `ProduceRequest.validateRecords`).

use crate::batch::Batch;
use crate::batches::Batches;
use crate::broker::append::Append;
use crate::broker::append_config::AppendConfig;
use crate::broker::append_error::{AppendError, ErrorCode};
use crate::compression::codec::Compression;
use crate::state::producer_check::AppendOrigin;

/// What the headers of an append say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Analysis {
    /// Bytes of the batches that are whole, and not from a later epoch than a follower knows.
    pub(super) valid_bytes: usize,
    /// The codec of the last compressed batch.
    pub(super) source: Compression,
    /// Base offset of the first batch; of magic 0 and 1 its last.
    pub(super) first_or_last_offset: i64,
    /// Base offset of the first batch, where that is of magic 2.
    pub(super) first_offset: Option<i64>,
    pub(super) last_offset: i64,
    pub(super) max_timestamp: i64,
    /// A batch of magic 2 has no leader epoch.
    pub(super) without_epoch: bool,
}

/// Checks framing, sizes and CRCs. A cut last batch is left out, as Kafka does.
pub(super) fn analyze(
    config: &AppendConfig,
    payload: &[u8],
    append: &Append,
) -> Result<Analysis, AppendError> {
    let mut found = Analysis {
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
        // To a replica that was a leader's follower too long: only what it knows of is stored.
        ended |= is_of_a_later_epoch(&batch, append);
        if ended {
            continue;
        }
        if found.valid_bytes == 0 {
            if let Batch::V2(first) = &batch {
                found.first_offset = Some(first.base_offset());
            }
            found.first_or_last_offset = found.first_offset.unwrap_or(batch.last_offset());
        }
        found.without_epoch |= batch.magic() == 2 && partition_leader_epoch(&batch) < 0;
        let rises = batch.last_offset() > found.last_offset;
        found.last_offset = batch.last_offset();
        if append.origin != AppendOrigin::Replication {
            check_batch_size(config, batch.size_in_bytes())?;
        }
        batch.verify()?;
        found.max_timestamp = found.max_timestamp.max(batch.max_timestamp());
        found.valid_bytes += batch.size_in_bytes();
        let codec = batch.compression()?;
        if codec != Compression::None {
            found.source = codec;
        }
        if !rises && !append.origin.assigns_offsets() {
            let why = format!("offset {} does not follow those before it", batch.last_offset());
            return Err(AppendError::new(ErrorCode::UnknownServerError, why));
        }
    }
    Ok(found)
}

fn check_origin(batch: &Batch<'_>, append: &Append) -> Result<(), AppendError> {
    let refuse = |why| Err(AppendError::new(ErrorCode::InvalidRecord, why));
    let epoch = partition_leader_epoch(batch);
    match (append.origin, batch) {
        (AppendOrigin::RaftLeader, _) if epoch != append.leader_epoch => refuse(format!(
            "the leader's epoch is {}, its batch has {epoch} (field partitionLeaderEpoch)",
            append.leader_epoch
        )),
        (AppendOrigin::Client, Batch::V2(v2)) if v2.base_offset() != 0 => refuse(format!(
            "a producer's batch begins at offset 0, this one at {} (field baseOffset)",
            v2.base_offset()
        )),
        _ => Ok(()),
    }
}

fn is_of_a_later_epoch(batch: &Batch<'_>, append: &Append) -> bool {
    let epoch = partition_leader_epoch(batch);
    append.origin == AppendOrigin::Replication && epoch != -1 && epoch > append.leader_epoch
}

fn partition_leader_epoch(batch: &Batch<'_>) -> i32 {
    match batch {
        Batch::V2(v2) => v2.partition_leader_epoch(),
        Batch::Legacy(_) => -1,
    }
}

pub(super) fn check_batch_size(config: &AppendConfig, size: usize) -> Result<(), AppendError> {
    let limit = config.max_message_bytes;
    if size as i64 <= i64::from(limit) {
        return Ok(());
    }
    let why = format!("a batch of {size} bytes is larger than max.message.bytes, {limit}");
    Err(AppendError::new(ErrorCode::MessageTooLarge, why))
}

/// What a broker checks of a produce request's records before any partition sees them
/// (`ProduceRequest.validateRecords`): from request version 3 on exactly one batch, of magic 2; zstd
/// from 7 on. Only framing is looked at.
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
        return refuse("a produce request has a batch for each partition, here is none".to_string());
    };
    if first.magic() != 2 {
        return refuse(format!(
            "produce requests have magic 2 since version 3, this batch has {}",
            first.magic()
        ));
    }
    if version < 7 && first.compression()? == Compression::Zstd {
        let why = format!("zstd needs version 7 of a produce request, this is {version}");
        return Err(AppendError::new(ErrorCode::UnsupportedCompressionType, why));
    }
    if batches.next().transpose()?.is_some() {
        return refuse("a produce request has one batch for each partition, here are more".to_string());
    }
    Ok(())
}
