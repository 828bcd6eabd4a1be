//! Batches and partitions that the tests share.

use magicbyte::state::IsolationLevel;
use magicbyte::{Batches, Compression, Decompressor, Record, RecordsBuilder};
use magicbyte_broker::{AppendConfig, AppendError, Appended, ErrorCode, PartitionSimulator, TransactionEnd};

pub(crate) const NOW: i64 = 1_700_000_000_000;
pub(crate) const COMMITTED: IsolationLevel = IsolationLevel::ReadCommitted;
pub(crate) const UNCOMMITTED: IsolationLevel = IsolationLevel::ReadUncommitted;

pub(crate) fn batch(builder: RecordsBuilder, records: u32) -> Vec<u8> {
    let mut builder = builder;
    for n in 0..records {
        builder.append(n.into(), NOW + i64::from(n), Some(b"key"), Some(b"value"), &[]).unwrap();
    }
    builder.build().unwrap()
}

pub(crate) fn plain(records: u32) -> Vec<u8> {
    batch(RecordsBuilder::v2(Compression::None), records)
}

pub(crate) fn produced(id: i64, epoch: i16, sequence: i32, records: u32) -> Vec<u8> {
    batch(RecordsBuilder::v2(Compression::None).producer(id, epoch, sequence), records)
}

pub(crate) fn transactional(id: i64, epoch: i16, sequence: i32, records: u32) -> Vec<u8> {
    batch(RecordsBuilder::v2(Compression::None).producer(id, epoch, sequence).transactional(), records)
}

pub(crate) fn partition() -> PartitionSimulator {
    partition_of(AppendConfig::default())
}

pub(crate) fn partition_of(config: AppendConfig) -> PartitionSimulator {
    let mut partition = PartitionSimulator::new(config).unwrap();
    partition.set_now(NOW);
    partition
}

pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, AppendError>) -> ErrorCode {
    result.unwrap_err().code()
}

pub(crate) fn offsets(appended: Appended) -> (Option<i64>, i64, bool) {
    (appended.info.first_offset, appended.info.last_offset, appended.duplicate)
}

pub(crate) fn end(producer_id: i64, producer_epoch: i16, committed: bool) -> TransactionEnd {
    TransactionEnd { producer_id, producer_epoch, committed, coordinator_epoch: 0, transaction_version: 0 }
}

/// The result of `take` for each record of `bytes`.
pub(crate) fn records<T>(bytes: &[u8], mut take: impl FnMut(&Record<'_>) -> T) -> Vec<T> {
    let (mut found, mut decompressor) = (Vec::new(), Decompressor::new());
    for batch in Batches::new(bytes) {
        let batch = batch.unwrap();
        batch.verify().unwrap();
        batch.records(&mut decompressor).unwrap().visit(|record| found.push(take(&record))).unwrap();
    }
    found
}

pub(crate) fn offset(record: &Record<'_>) -> i64 {
    record.offset()
}

pub(crate) fn record_offsets(bytes: &[u8]) -> Vec<i64> {
    records(bytes, offset)
}
