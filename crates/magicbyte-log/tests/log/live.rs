//! A partition of a running cluster: the same batches as from files, in whatever answers they come.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use magicbyte::state::IsolationLevel;
use magicbyte::{Compression, ControlRecord, Decompressor, RecordsBuilder};
use magicbyte_log::{
    Answer, Answers, DamageMode, Disposition, LivePartition, LogError, PartitionLog, PlanOptions, ReadOptions,
};
use magicbyte_testing::partitions;

/// A broker with these batches: the last offset of each, and its bytes. An answer has this many of them.
#[derive(Debug)]
struct Cluster {
    batches: Vec<(i64, Bytes)>,
    end: i64,
    aborted: Vec<(i64, i64, i64)>,
    per_answer: usize,
}

impl LivePartition for Cluster {
    fn offsets(&self, _: IsolationLevel) -> io::Result<Range<i64>> {
        Ok(0..self.end)
    }

    fn offset_for_timestamp(&self, _: i64) -> io::Result<Option<i64>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn fetch(&self, offsets: Range<i64>, level: IsolationLevel) -> io::Result<Answers> {
        let asked: Vec<_> = self.batches.iter().filter(|(last, _)| *last >= offsets.start).cloned().collect();
        let mut position = offsets.start;
        let mut answers = Vec::new();
        for group in asked.chunks(self.per_answer) {
            if position >= offsets.end {
                break;
            }
            let next_position = group[group.len() - 1].0 + 1;
            let overlap = |&&(_, first, last): &&(i64, i64, i64)| first < next_position && last >= position;
            let aborted = self.aborted.iter().filter(overlap).map(|&(producer, first, _)| (producer, first));
            let records: BytesMut = group.iter().flat_map(|(_, batch)| batch.to_vec()).collect();
            answers.push(Ok(Answer {
                position,
                next_position,
                records: records.freeze(),
                aborted_transactions: match level {
                    IsolationLevel::ReadCommitted => aborted.collect(),
                    IsolationLevel::ReadUncommitted => Vec::new(),
                },
            }));
            position = next_position;
        }
        Ok(Box::new(answers.into_iter()))
    }
}

fn permissive(isolation_level: IsolationLevel) -> ReadOptions {
    ReadOptions { isolation_level, mode: DamageMode::Permissive, ..ReadOptions::default() }
}

/// Offsets and bytes of the batches of a read, and whether they have rows.
fn read(log: &PartitionLog, options: ReadOptions) -> Vec<(i64, Bytes, Disposition)> {
    let batches = log.batches(options).unwrap().map(Result::unwrap);
    batches.map(|one| (one.data.batch().last_offset(), one.data.data().clone(), one.disposition)).collect()
}

fn live(cluster: Cluster) -> PartitionLog {
    PartitionLog::of_cluster("kafka://broker:9092/orders/0", "orders", 0, Arc::new(cluster))
}

#[test]
fn answers_of_any_size_give_the_batches_of_the_files() {
    for directory in partitions() {
        let files = PartitionLog::open(&directory).unwrap();
        let plan = files
            .plan(PlanOptions { isolation_level: IsolationLevel::ReadCommitted, ..PlanOptions::default() })
            .unwrap();
        let batches = read(&files, permissive(IsolationLevel::ReadUncommitted));
        for level in [IsolationLevel::ReadUncommitted, IsolationLevel::ReadCommitted] {
            let end = match level {
                IsolationLevel::ReadCommitted => plan.last_stable_offset,
                IsolationLevel::ReadUncommitted => plan.next_offset,
            };
            let end = end.unwrap_or(0);
            for per_answer in [1, 3, usize::MAX] {
                let log = live(Cluster {
                    batches: batches.iter().map(|(last, bytes, _)| (*last, bytes.clone())).collect(),
                    end,
                    aborted: plan.aborted.iter().map(|one| <(i64, i64, i64)>::from(*one)).collect(),
                    per_answer,
                });
                let name = directory.display();
                assert_eq!(
                    read(&log, permissive(level)),
                    read(&files, permissive(level)),
                    "{name} {per_answer}"
                );
                for count in [1, 2, 10, 100, 1 << 40] {
                    let options = permissive(level);
                    let expected = files.start_of_last(count, options).unwrap();
                    assert_eq!(log.start_of_last(count, options).unwrap(), expected, "{name} {count}");
                }
                let account =
                    log.verify(PlanOptions { isolation_level: level, ..PlanOptions::default() }).unwrap();
                assert!(account.balanced, "{name}");
                assert_eq!(account.good_bytes, account.size, "{name}");
            }
        }
    }
}

fn batch(offset: i64) -> (i64, Bytes) {
    let mut builder = RecordsBuilder::v2(Compression::None);
    builder.append(offset, 1, None, Some(b"value"), &[]).unwrap();
    (offset, builder.build().unwrap().into())
}

/// A marker ends the transactions of its producer that began before it, and no others.
#[test]
fn many_aborted_transactions_and_markers_in_an_answer_cost_linear_time() {
    const ABORTED: i64 = 100_000;
    const MARKERS: i64 = 60_000;
    let marker = |offset, producer_id| {
        let mut builder =
            RecordsBuilder::v2(Compression::None).producer(producer_id, 0, -1).transactional().control();
        let record = ControlRecord::EndTransaction { version: 0, committed: false, coordinator_epoch: 0 };
        builder.append_control(offset, 0, &record).unwrap();
        (offset, builder.build().unwrap().into())
    };
    let mut batches: Vec<_> = (0..MARKERS).map(|offset| marker(offset, -2)).collect();
    batches.push(marker(MARKERS, 7));
    let aborted = (0..ABORTED).map(|producer_id| (producer_id, 0, MARKERS)).chain([(7, MARKERS, MARKERS)]);
    let log = live(Cluster { batches, end: MARKERS + 1, aborted: aborted.collect(), per_answer: usize::MAX });
    let chunks = log.live_chunks((None, None), IsolationLevel::ReadCommitted).unwrap().unwrap();
    let begun = Instant::now();
    let [chunk] = &chunks.map(Result::unwrap).collect::<Vec<_>>()[..] else { panic!("one answer") };
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let of_seven = chunk.aborted.iter().filter(|one| one.producer_id == 7);
    let of_seven: Vec<_> = of_seven.map(|one| (one.first_offset, one.last_offset)).collect();
    assert_eq!(of_seven, [(0, MARKERS), (MARKERS, i64::MAX - 1)]);
    assert_eq!(chunk.aborted.len() as i64, ABORTED + 1);
}

#[test]
fn gaps_that_no_segment_has() {
    let offsets = [0, 5_000_000_000, 5_000_000_001, i64::MAX - 2];
    for per_answer in 1..=4 {
        let batches = offsets.map(batch).to_vec();
        let log = live(Cluster { batches, end: i64::MAX - 1, aborted: Vec::new(), per_answer });
        let found = read(&log, ReadOptions::default());
        assert_eq!(found.iter().map(|(offset, ..)| *offset).collect::<Vec<_>>(), offsets, "{per_answer}");
        let account = log.verify(PlanOptions::default()).unwrap();
        assert_eq!((account.rows, account.quarantined_bytes, account.balanced), (4, 0, true));
    }
}

#[test]
fn an_error_ends_the_read() {
    #[derive(Debug)]
    struct Failing;
    impl LivePartition for Failing {
        fn offsets(&self, _: IsolationLevel) -> io::Result<Range<i64>> {
            Ok(0..10)
        }

        fn offset_for_timestamp(&self, _: i64) -> io::Result<Option<i64>> {
            Ok(None)
        }

        fn fetch(&self, _: Range<i64>, _: IsolationLevel) -> io::Result<Answers> {
            let (_, records) = batch(0);
            let answer = Answer { position: 0, next_position: 1, records, aborted_transactions: Vec::new() };
            Ok(Box::new([Ok(answer), Err(io::Error::other("the broker is gone"))].into_iter()))
        }
    }
    let log = PartitionLog::of_cluster("kafka://broker:9092/orders/0", "orders", 0, Arc::new(Failing));
    let mut batches = log.batches(ReadOptions::default()).unwrap();
    let first = batches.next().unwrap().unwrap();
    assert_eq!(first.data.batch().records(&mut Decompressor::new()).unwrap().count(), 1);
    let error = batches.next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "kafka://broker:9092/orders/0: the broker is gone");
    assert!(batches.next().is_none());
    assert!(log.verify(PlanOptions::default()).is_err());
    assert!(matches!(log.plan(PlanOptions::default()), Err(LogError::Usage(_))), "there are no segments");
    // No record is as late.
    let late = ReadOptions { start_timestamp: Some(5), ..ReadOptions::default() };
    assert!(log.batches(late).unwrap().next().is_none());
}
