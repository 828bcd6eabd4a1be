//! The reports of `explain`, compared with Kafka's own reading of each batch (`batches.jsonl`) and of control
//! records, and on logs built for one finding each.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use serde_json::Value;

use magicbyte::sidecar::parse_transaction_index;
use magicbyte::{Compression, ControlRecord, RecordsBuilder};
use magicbyte_log::steps::{SegmentHistory, partition_history, segment_history};
use magicbyte_log::{HistoryOptions, PartitionHistory, TransactionOutcome, list_partition};
use magicbyte_testing::{data, files, json_lines, partitions, scratch};

const SEGMENT: &str = "00000000000000000000.log";

const OPTIONS: HistoryOptions = HistoryOptions {
    now: 1_700_000_060_014,
    transaction_max_timeout_ms: 900_000,
    coordinated: Vec::new(),
    bins: 100,
    listed: usize::MAX,
};

fn segments(directory: &Path) -> Vec<SegmentHistory> {
    let listing = list_partition(directory, false).unwrap();
    listing.segments.iter().map(|segment| segment_history(segment, None).unwrap()).collect()
}

fn history(directory: &Path, options: HistoryOptions) -> PartitionHistory {
    partition_history(&list_partition(directory, false).unwrap(), &segments(directory), &options).unwrap()
}

/// First and last offset, the number of missing offsets, and whether they are inside one batch.
fn gaps(report: &PartitionHistory) -> Vec<(i64, i64, u64, bool)> {
    report.gaps.iter().map(|gap| (gap.first_offset, gap.last_offset, gap.missing, gap.inside)).collect()
}

fn int(line: &Value, name: &str) -> i64 {
    line[name].as_i64().unwrap_or_else(|| panic!("{name} of {line}"))
}

/// A batch of two records with this offset, producer, epoch and sequence.
fn batch(
    offset: i64,
    producer: i64,
    epoch: i16,
    sequence: i32,
    timestamp: i64,
    transactional: bool,
) -> Vec<u8> {
    let mut builder = RecordsBuilder::v2(Compression::None).producer(producer, epoch, sequence);
    if transactional {
        builder = builder.transactional();
    }
    for offset in [offset, offset + 1] {
        builder.append(offset, timestamp, Some(b"k"), Some(b"v"), &[]).unwrap();
    }
    builder.build().unwrap()
}

fn marker(offset: i64, producer: i64, coordinator_epoch: i32) -> Vec<u8> {
    let mut builder =
        RecordsBuilder::v2(Compression::None).producer(producer, 0, -1).transactional().control();
    let record = ControlRecord::EndTransaction { version: 0, committed: true, coordinator_epoch };
    builder.append_control(offset, 2_000, &record).unwrap();
    builder.build().unwrap()
}

fn write_log(directory: &Path, segments: &[(i64, Vec<u8>)]) {
    fs::create_dir_all(directory).unwrap();
    for (base_offset, data) in segments {
        fs::write(directory.join(format!("{base_offset:020}.log")), data).unwrap();
    }
}

#[test]
fn batches_and_producers_match_kafkas_reading() {
    for directory in partitions() {
        let name = directory.file_name().unwrap().to_str().unwrap();
        let report = history(&directory, OPTIONS);
        let lines = json_lines(&directory.join("batches.jsonl"));
        assert_eq!(report.batches, lines.len() as u64, "{name}");
        let mut magics = BTreeMap::<i8, u64>::new();
        let mut codecs = BTreeMap::<String, u64>::new();
        for line in &lines {
            *magics.entry(int(line, "magic") as i8).or_default() += 1;
            *codecs.entry(line["codec"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        assert_eq!((report.magics, report.codecs), (magics, codecs), "{name}");
        let v2: Vec<&Value> = lines.iter().filter(|line| line["magic"] == 2).collect();
        let controls: u64 = report.controls.iter().map(|count| count.batches).sum();
        assert_eq!(controls as usize, v2.iter().filter(|line| line["control"] == true).count(), "{name}");
        let with_producer = v2.iter().filter(|line| int(line, "pid") >= 0).count();
        assert_eq!(report.without_producer as usize, lines.len() - with_producer, "{name}");

        // Batches, records, first and last sequence of each producer and epoch.
        let mut producers = BTreeMap::<(i64, i64), (u64, u64, i64, i64)>::new();
        for line in v2.iter().filter(|line| int(line, "pid") >= 0 && line["control"] == false) {
            let first = int(line, "baseSequence");
            let producer =
                producers.entry((int(line, "pid"), int(line, "epoch"))).or_insert((0, 0, first, 0));
            *producer = (
                producer.0 + 1,
                producer.1 + int(line, "count") as u64,
                producer.2,
                int(line, "lastSequence"),
            );
        }
        let reported: BTreeMap<_, _> = report
            .producers
            .iter()
            .filter(|producer| producer.batches > 0)
            .map(|producer| {
                let identity = (producer.producer_id, i64::from(producer.producer_epoch));
                (
                    identity,
                    (
                        producer.batches,
                        producer.records,
                        producer.first_sequence.into(),
                        producer.last_sequence.into(),
                    ),
                )
            })
            .collect();
        assert_eq!(reported, producers, "{name}");

        if v2.len() == lines.len() && !lines.is_empty() {
            let records: i64 = v2.iter().map(|line| int(line, "count")).sum();
            let span = int(&lines[lines.len() - 1], "lastOffset") + 1 - int(&lines[0], "baseOffset");
            assert_eq!(report.missing_offsets as i64, span - records, "{name}");
            assert_eq!(report.records as i64, records, "{name}");
        }
        assert_eq!(report.bins.iter().map(|bin| bin.batches).sum::<u64>(), report.batches, "{name}");
        assert!(report.bins.len() <= OPTIONS.bins, "{name}");
        // Brokers append nothing out of order; compaction leaves gaps between sequences.
        assert_eq!(report.anomaly_counts.values().sum::<u64>(), report.compacted_anomalies, "{name}");
    }
}

#[test]
fn transactions_match_the_control_records() {
    let directory = data().join("v2_txn");
    let records = json_lines(&directory.join("expected.jsonl"));
    let batches = json_lines(&directory.join("batches.jsonl"));
    let outcome_at: HashMap<i64, TransactionOutcome> = records
        .iter()
        .filter(|line| line["control"] == true)
        .map(|line| match line["controlType"].as_str().unwrap() {
            "COMMIT" => (int(line, "offset"), TransactionOutcome::Committed),
            "ABORT" => (int(line, "offset"), TransactionOutcome::Aborted),
            other => panic!("{other}"),
        })
        .collect();
    // The first offset, last offset, batches and records of each producer's open transaction.
    let mut open = BTreeMap::<i64, (i64, i64, u64, u64)>::new();
    let mut expected = Vec::new();
    for line in &batches {
        let (producer, first, last) = (int(line, "pid"), int(line, "baseOffset"), int(line, "lastOffset"));
        if line["control"] == true {
            let ended = open.remove(&producer).map(|(first, last, ..)| (first, last));
            expected.push((producer, ended, Some(first), outcome_at[&first]));
        } else if line["txn"] == true {
            let transaction = open.entry(producer).or_insert((first, last, 0, 0));
            *transaction =
                (transaction.0, last, transaction.2 + 1, transaction.3 + int(line, "count") as u64);
        }
    }
    for (&producer, &(first, last, ..)) in &open {
        expected.push((producer, Some((first, last)), None, TransactionOutcome::Open));
    }
    let report = history(&directory, OPTIONS);
    let mut reported: Vec<_> = report
        .transactions
        .iter()
        .map(|transaction| {
            (
                transaction.producer_id,
                transaction.first_offset.zip(transaction.last_offset),
                transaction.marker_offset,
                transaction.outcome,
            )
        })
        .collect();
    let begin = |transaction: &(i64, Option<(i64, i64)>, Option<i64>, TransactionOutcome)| {
        transaction.1.map(|offsets| offsets.0).or(transaction.2)
    };
    assert!(reported.is_sorted_by_key(begin));
    reported.sort_by_key(|transaction| (begin(transaction), transaction.0));
    expected.sort_by_key(|transaction| (begin(transaction), transaction.0));
    assert_eq!(reported, expected);
    let count = |outcome| expected.iter().filter(|transaction| transaction.3 == outcome).count() as u64;
    assert_eq!(report.transaction_counts["committed"], count(TransactionOutcome::Committed));
    assert_eq!(report.transaction_counts["aborted"], count(TransactionOutcome::Aborted));
    assert_eq!(report.transaction_counts["open"], open.len() as u64);
    assert_eq!(report.last_stable_offset, open.values().map(|transaction| transaction.0).min());
}

/// The broker's transaction indexes list the same aborted transactions, with the same last stable offsets.
#[test]
fn aborted_transactions_match_the_indexes() {
    let directory = data().join("v2_txn");
    let report = history(&directory, OPTIONS);
    let mut indexed: Vec<_> = files(&directory, ".txnindex")
        .iter()
        .flat_map(|path| parse_transaction_index(&fs::read(path).unwrap()).unwrap())
        .map(|transaction| {
            (
                transaction.producer_id,
                Some(transaction.first_offset),
                Some(transaction.last_offset),
                Some(transaction.last_stable_offset),
            )
        })
        .collect();
    let aborted =
        report.transactions.iter().filter(|transaction| transaction.outcome == TransactionOutcome::Aborted);
    let mut aborted: Vec<_> = aborted
        .map(|transaction| {
            (
                transaction.producer_id,
                transaction.first_offset,
                transaction.marker_offset,
                transaction.last_stable_offset,
            )
        })
        .collect();
    indexed.sort_unstable();
    aborted.sort_unstable();
    assert!(!aborted.is_empty());
    assert_eq!(aborted, indexed);
}

/// The rule of `kafka-transactions.sh find-hanging`.
#[test]
fn a_transaction_hangs_after_the_longest_timeout() {
    let directory = data().join("v2_txn");
    let open = |now: i64| {
        let report = history(&directory, HistoryOptions { now, ..OPTIONS });
        let open: Vec<_> = report
            .transactions
            .into_iter()
            .filter(|transaction| transaction.outcome == TransactionOutcome::Open)
            .collect();
        assert_eq!(
            report.transaction_counts["hanging"],
            open.iter().filter(|transaction| transaction.hanging).count() as u64
        );
        let [one] = &open[..] else { panic!("{open:?}") };
        (one.producer_id, one.first_offset, one.age_ms, one.hanging)
    };
    assert_eq!(open(1_700_000_060_014 + 900_000), (4, Some(83), Some(900_000), false));
    assert_eq!(open(1_700_000_060_014 + 900_001), (4, Some(83), Some(900_001), true));
}

/// A log with everything that a broker prevents.
fn odd_log(directory: &Path) -> u64 {
    let log = [
        batch(0, 1, 0, 0, 1_000, false),
        batch(2, 1, 0, 2, 1_000, false),
        batch(4, 1, 0, 0, 500, false), // A duplicate of the first batch, with an earlier timestamp.
        batch(6, 1, 0, 2, 1_000, false), // Follows that duplicate, but repeats the second batch.
        batch(8, 1, 0, 9, 1_000, false), // Five sequences are missing.
        batch(10, 1, 3, 4, 1_000, false), // A new epoch must begin with sequence 0.
        batch(12, 1, 2, 0, 1_000, false), // A lower epoch than before.
        marker(14, 2, 7),              // Without an open transaction.
        batch(15, 2, 0, 0, 1_000, true),
        batch(17, 2, 0, 2, 1_000, false), // Not part of the open transaction.
        marker(19, 2, 6),                 // From a fenced coordinator.
    ];
    let position = log.iter().map(Vec::len).sum::<usize>() as u64;
    let rest = [vec![1; 300], batch(30, 1, 2, 2, 1_000, true)];
    write_log(directory, &[(0, [log.concat(), rest.concat()].concat())]);
    position
}

#[test]
fn what_a_broker_would_refuse_is_an_anomaly() {
    let directory = scratch("history-odd").join("odd-0");
    let position = odd_log(&directory);
    let report = history(&directory, OPTIONS);
    let anomalies: Vec<_> = report
        .anomalies
        .iter()
        .map(|anomaly| (anomaly.offset, anomaly.kind.as_str(), anomaly.sequence))
        .collect();
    assert_eq!(
        anomalies,
        [
            (4, "DUPLICATE_SEQUENCE_NUMBER", 0),
            (6, "DUPLICATE_SEQUENCE_NUMBER", 2),
            (8, "OUT_OF_ORDER_SEQUENCE_NUMBER", 9),
            (10, "OUT_OF_ORDER_SEQUENCE_NUMBER", 4),
            (12, "INVALID_PRODUCER_EPOCH", 0),
            (17, "INVALID_TXN_STATE", 2),
            (19, "TRANSACTION_COORDINATOR_FENCED", -1),
        ]
    );
    assert_eq!(report.anomalies[0].message, "sequences 0..=1 were appended before, at offsets 0..=1");
    let of = |epoch: i16| {
        report
            .producers
            .iter()
            .find(|producer| (producer.producer_id, producer.producer_epoch) == (1, epoch))
            .unwrap()
    };
    assert_eq!((of(0).batches, of(0).duplicates, of(0).refused), (5, 2, 1));
    assert_eq!((of(2).refused, of(3).refused, of(2).is_current, of(3).is_current), (1, 1, true, false));
    // Markers have the coordinator's time: 2 s here, which is no step for the batches after them.
    let late = &report.steps_back[0];
    assert_eq!((late.offset, late.before, late.timestamp, report.step_back_count), (4, 1_000, 500, 1));
    let [skipped] = &report.skipped[..] else { panic!("{:?}", report.skipped) };
    let range = (skipped.start, skipped.end, skipped.is_tail);
    assert_eq!((skipped.segment.as_str(), range), (SEGMENT, (position, position + 300, false)));
    assert_eq!(gaps(&report), [(20, 29, 10, false)]);
    let outcomes: Vec<_> = report
        .transactions
        .iter()
        .map(|transaction| (transaction.outcome, transaction.first_offset, transaction.marker_offset))
        .collect();
    assert_eq!(
        outcomes,
        [
            (TransactionOutcome::Committed, None, Some(14)),
            (TransactionOutcome::Committed, Some(15), Some(19)),
            (TransactionOutcome::Open, Some(30), None),
        ]
    );
}

/// The limit cuts the lists; the counts are complete.
#[test]
fn the_limit_cuts_lists_but_not_counts() {
    let directory = scratch("history-limit").join("odd-0");
    odd_log(&directory);
    let (all, cut) =
        (history(&directory, OPTIONS), history(&directory, HistoryOptions { listed: 1, ..OPTIONS }));
    assert_eq!((cut.anomalies.len(), cut.producers.len(), cut.transactions.len()), (1, 1, 1));
    assert_eq!(cut.anomalies[0], all.anomalies[0]);
    assert_eq!(cut.anomaly_counts, all.anomaly_counts);
    assert_eq!(cut.anomaly_counts.values().sum::<u64>(), 7);
    assert_eq!((cut.producer_count, cut.producer_ids), (4, 2));
    assert_eq!(cut.transaction_counts, all.transaction_counts);
    // The listed producer is the one with the most bytes, the listed transaction is the open one.
    assert_eq!((cut.producers[0].producer_id, cut.producers[0].producer_epoch), (1, 0));
    assert_eq!(cut.transactions[0].first_offset, Some(30));
}

/// Offsets, timestamps and producers continue across segments.
#[test]
fn segments_are_joined() {
    let directory = scratch("history-segments").join("t-0");
    let first = [batch(0, 1, 0, 0, 1_000, true), batch(2, 1, 0, 2, 3_000, true)].concat();
    let second = [batch(9, 1, 0, 4, 2_500, true), batch(11, 1, 0, 7, 2_600, true), marker(13, 1, 0)].concat();
    write_log(&directory, &[(0, first), (9, second)]);
    let report = history(&directory, OPTIONS);
    assert_eq!(gaps(&report), [(4, 8, 5, false)]);
    // In the second segment only the first batch is compared. The marker at 2 s follows a batch at 2.6 s.
    let back: Vec<_> =
        report.steps_back.iter().map(|step| (step.offset, step.before - step.timestamp)).collect();
    assert_eq!((back, report.largest_step_back_ms), (vec![(9, 500)], 500));
    let [transaction] = &report.transactions[..] else { panic!("{:?}", report.transactions) };
    assert_eq!((transaction.first_offset, transaction.last_offset), (Some(0), Some(12)));
    assert_eq!((transaction.batches, transaction.records), (4, 8));
    assert_eq!((transaction.first_timestamp, transaction.last_timestamp), (Some(1_000), Some(3_000)));
    // Sequence 6 is missing where no offset is, so compaction is not the reason.
    let anomalies: Vec<_> =
        report.anomalies.iter().map(|anomaly| (anomaly.offset, anomaly.compacted)).collect();
    assert_eq!(anomalies, [(11, false)]);
}

#[test]
fn many_batches_become_few_bins() {
    let directory = scratch("history-bins").join("t-0");
    let batch_bytes = batch(0, 1, 0, 0, 1_000, false);
    let mut log = Vec::new();
    for offset in (0..6_000i64).step_by(2) {
        let at = log.len();
        log.extend_from_slice(&batch_bytes);
        log[at..at + 8].copy_from_slice(&offset.to_be_bytes());
    }
    let size = log.len() as u64;
    write_log(&directory, &[(0, log)]);
    let [segment] = &segments(&directory)[..] else { panic!("one segment") };
    assert!((128..=256).contains(&segment.bins.len()), "{}", segment.bins.len());
    let report = history(&directory, HistoryOptions { bins: 10, listed: 1, ..OPTIONS });
    assert!((5..=10).contains(&report.bins.len()), "{}", report.bins.len());
    assert_eq!(report.bins.iter().map(|bin| bin.bytes).sum::<u64>(), size);
    assert!(report.bins.windows(2).all(|pair| pair[0].last_offset + 1 == pair[1].first_offset));
    assert_eq!((report.bins[0].first_offset, report.bins[report.bins.len() - 1].last_offset), (0, 5_999));
    assert_eq!(report.bins[0].codecs[0], report.bins[0].bytes);
    // Every batch has the same sequence.
    assert_eq!(report.anomaly_counts, BTreeMap::from([("DUPLICATE_SEQUENCE_NUMBER".to_owned(), 2_999)]));
}

/// Histories are passed between tasks as JSON.
#[test]
fn json_reads_back_the_same() {
    for directory in partitions() {
        for segment in segments(&directory) {
            let text = serde_json::to_string(&segment).unwrap();
            assert_eq!(serde_json::from_str::<SegmentHistory>(&text).unwrap(), segment);
        }
    }
}
