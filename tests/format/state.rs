//! Producers, transactions, isolation and leader epochs: folds over the batches of real logs, compared with
//! the files that Kafka wrote next to them, and Kafka's rules on built events.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use magicbyte::sidecar::{
    ProducerStateManager, TransactionIndexEntry, collect_aborted_transactions, parse_leader_epoch_checkpoint,
    parse_producer_snapshot, parse_transaction_index, write_producer_snapshot,
};
use magicbyte::state::{
    AbortedFilter, AbortedTransaction, Admission, AppendOrigin, AppendTerms, BatchMetadata, EpochEntry,
    IsolationLevel, LeaderEpochs, ProducerEvent, ProducerStateEntry, Producers, Refusal, TransactionEvent,
    Transactions, Verdict, VerificationGuard, last_stable_offset, truncation,
};
use magicbyte::{Batch, Batches, Compression, ControlRecord, Decompressor, RecordsBuilder};
use magicbyte_testing::{data, files, json_lines, partitions};

/// Calls `visit` with each batch of a partition in log order, up to the first damage of each segment.
fn each_batch(dir: &Path, mut visit: impl FnMut(&Batch<'_>)) {
    for log in files(dir, ".log") {
        let bytes = fs::read(&log).unwrap();
        for batch in Batches::new(&bytes) {
            let Ok(batch) = batch else { break };
            visit(&batch);
        }
    }
}

/// Producer events, with the end offset (exclusive) of their batches.
fn producer_events(dir: &Path) -> Vec<(ProducerEvent, i64)> {
    let (mut found, mut decompressor) = (Vec::new(), Decompressor::new());
    each_batch(dir, |batch| {
        if let Batch::V2(v2) = batch
            && let Some(event) = ProducerEvent::of(v2, &mut decompressor).unwrap()
        {
            found.push((event, batch.last_offset() + 1));
        }
    });
    found
}

fn offset_in_name(file: &Path) -> i64 {
    file.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

/// All fields that a snapshot stores.
fn snapshot_fields(entry: &ProducerStateEntry) -> (i64, i16, i32, i64, i32, i64, i32, Option<i64>) {
    (
        entry.producer_id,
        entry.producer_epoch,
        entry.last_sequence(),
        entry.last_offset(),
        entry.offset_delta(),
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )
}

#[test]
fn producers_match_kafkas_snapshots() {
    let (mut compared, mut not_empty) = (0, 0);
    for name in ["v2_txn", "v2_idempotent", "v2_seq_wrap", "v2_none", "v2_epochs_log", "transaction_state_0"]
    {
        let dir = data().join(name);
        let events = producer_events(&dir);
        for snapshot in files(&dir, ".snapshot") {
            let offset = offset_in_name(&snapshot);
            let mut producers = Producers::default();
            for (event, _) in events.iter().filter(|(_, end)| *end <= offset) {
                producers.apply(event);
            }
            let bytes = fs::read(&snapshot).unwrap();
            let theirs = parse_producer_snapshot(&bytes).unwrap();
            let context = snapshot.display();
            let sorted =
                |entries: &[ProducerStateEntry]| entries.iter().map(snapshot_fields).collect::<BTreeSet<_>>();
            assert_eq!(sorted(&producers.snapshot()), sorted(&theirs), "{context}");
            assert_eq!(write_producer_snapshot(&theirs), bytes, "{context}");
            compared += 1;
            not_empty += usize::from(!theirs.is_empty());
        }
    }
    assert_eq!((compared, not_empty), (11, 6));
}

#[test]
fn transactions_match_kafkas_index() {
    let dir = data().join("v2_txn");
    let mut expected = Vec::new();
    for index in files(&dir, ".txnindex") {
        expected.extend(parse_transaction_index(&fs::read(index).unwrap()).unwrap());
    }
    assert_eq!(expected.len(), 7);

    let mut producers = Producers::default();
    let mut transactions = Transactions::default();
    let mut aborted = Vec::new();
    for (event, _) in producer_events(&dir) {
        if let ProducerEvent::Data { producer_id, transactional: true, first_offset: offset, .. } = event {
            transactions.apply(TransactionEvent::Begin { producer_id, offset });
        }
        if let ProducerEvent::Marker { producer_id, offset, committed, .. } = event {
            transactions.apply(TransactionEvent::End { producer_id, offset, committed });
        }
        let ended = producers.apply(&event);
        aborted.extend(ended.filter(|ended| !ended.committed).map(TransactionIndexEntry::of));
    }
    assert_eq!(aborted, expected);
    let ranges: Vec<AbortedTransaction> = expected.iter().map(TransactionIndexEntry::transaction).collect();
    assert_eq!(transactions.aborted(), ranges);
    // A transaction is still open at the end of the log.
    assert_eq!(producers.open_transactions().collect::<Vec<_>>(), [(83, 4)]);
    assert_eq!(transactions.first_unstable_offset(), Some(83));
    assert_eq!(producers.first_undecided_offset(), Some(83));
    assert!(transactions.is_open(4) && !transactions.is_open(2));
    assert_eq!(last_stable_offset(transactions.first_unstable_offset(), 94), 83);
}

#[test]
fn the_consumers_filter_delivers_what_kafkas_consumer_read() {
    for name in ["v2_txn", "v2_compacted_txn"] {
        let dir = data().join(name);
        let mut entries = Vec::new();
        for index in files(&dir, ".txnindex") {
            entries.extend(parse_transaction_index(&fs::read(index).unwrap()).unwrap());
        }
        let mut producers = Producers::default();
        for (event, _) in producer_events(&dir) {
            producers.apply(&event);
        }
        let stable = last_stable_offset(producers.first_undecided_offset(), i64::MAX);

        let mut filter =
            AbortedFilter::new(entries.iter().map(|entry| (entry.producer_id, entry.first_offset)));
        let (mut offsets, mut aborted, mut decompressor) = (Vec::new(), 0, Decompressor::new());
        each_batch(&dir, |batch| {
            if batch.last_offset() >= stable {
                return;
            }
            let admission = filter.admit(batch, &mut decompressor).unwrap();
            assert_eq!(batch.is_control(), admission == Admission::Control);
            let records = batch.records(&mut decompressor).unwrap().map(|record| record.unwrap().offset());
            match admission {
                Admission::Deliver => offsets.extend(records),
                Admission::Aborted => aborted += records.count(),
                Admission::Control => {}
            }
        });
        let expected: Vec<i64> = json_lines(&dir.join("committed.jsonl"))
            .iter()
            .map(|line| line["offset"].as_i64().unwrap())
            .collect();
        assert_eq!(offsets, expected, "{name}");
        // The other data records before the last stable offset belong to aborted transactions.
        let data_records = json_lines(&dir.join("expected.jsonl"))
            .into_iter()
            .filter(|record| record["control"] == false && record["offset"].as_i64().unwrap() < stable);
        assert_eq!(offsets.len() + aborted, data_records.count(), "{name}");
        assert!(aborted > 0, "{name}");
    }
}

#[test]
fn a_transaction_may_begin_inside_a_batch() {
    let mut builder = RecordsBuilder::v2(Compression::None).producer(7, 0, 0).transactional().base_offset(10);
    builder.append(12, 0, None, None, &[]).unwrap();
    let bytes = builder.build().unwrap();
    let batch = Batches::new(&bytes).next().unwrap().unwrap();
    let admit = |producer, first_offset| {
        let mut filter = AbortedFilter::new([(producer, first_offset)]);
        filter.admit(&batch, &mut Decompressor::new()).unwrap()
    };
    assert_eq!((admit(7, 10), admit(7, 12)), (Admission::Aborted, Admission::Aborted));
    assert_eq!((admit(7, 13), admit(8, 10)), (Admission::Deliver, Admission::Deliver));
}

#[test]
fn a_fetch_needs_the_aborted_transactions_that_overlap_it() {
    let entry = |producer_id, first_offset, last_offset, last_stable_offset| TransactionIndexEntry {
        version: 0,
        producer_id,
        first_offset,
        last_offset,
        last_stable_offset,
    };
    let entries = [entry(1, 0, 5, 3), entry(2, 3, 20, 10), entry(1, 10, 30, 31), entry(3, 50, 60, 61)];
    let found = |start, end| {
        let (entries, complete) = collect_aborted_transactions(&entries, start, end);
        (entries.iter().map(|entry| entry.first_offset).collect::<Vec<_>>(), complete)
    };
    assert_eq!(found(0, 100), (vec![0, 3, 10, 50], false));
    assert_eq!(found(6, 9), (vec![3], true), "no later entry can begin before offset 10");
    assert_eq!(found(21, 31), (vec![10], true));
    assert_eq!(found(31, 50), (vec![], true));
    assert_eq!(found(61, 70), (vec![], false));
}

#[test]
fn leader_epochs_match_kafkas_checkpoints() {
    let mut with_entries = 0;
    for dir in partitions() {
        let Ok(text) = fs::read_to_string(dir.join("leader-epoch-checkpoint")) else { continue };
        let checkpoint = LeaderEpochs::from_entries(&parse_leader_epoch_checkpoint(&text).unwrap());
        let mut replayed = LeaderEpochs::default();
        each_batch(&dir, |batch| {
            if let Batch::V2(v2) = batch {
                let (epoch, start_offset) = (v2.partition_leader_epoch(), v2.base_offset());
                replayed.replay(EpochEntry { epoch, start_offset });
                // Batches before the log start offset remain until their segment is deleted.
                if checkpoint.earliest().is_some_and(|first| first.start_offset <= start_offset) {
                    assert_eq!(checkpoint.epoch_for_offset(start_offset), Some(epoch), "{}", dir.display());
                }
            }
        });
        if let Some(first) = checkpoint.earliest() {
            replayed.truncate_from_start(first.start_offset);
        }
        // An epoch without batches is only in the checkpoint. Compaction may remove an epoch's first batches.
        for entry in replayed.entries() {
            let start = checkpoint.entries().iter().find(|theirs| theirs.epoch == entry.epoch).unwrap();
            assert!(start.start_offset <= entry.start_offset, "{}", dir.display());
            with_entries += 1;
        }
    }
    assert!(with_entries > 30, "{with_entries}");
}

#[test]
fn lookups_in_the_epochs_of_a_real_checkpoint() {
    let text = fs::read_to_string(data().join("v2_epochs/leader-epoch-checkpoint")).unwrap();
    let epochs = LeaderEpochs::from_entries(&parse_leader_epoch_checkpoint(&text).unwrap());
    let pair = |entry: Option<EpochEntry>| entry.map(|entry| (entry.epoch, entry.start_offset));
    assert_eq!((pair(epochs.earliest()), pair(epochs.latest())), (Some((0, 0)), Some((8, 98))));
    assert_eq!((epochs.epoch_for_offset(-1), epochs.epoch_for_offset(0)), (None, Some(0)));
    assert_eq!((epochs.epoch_for_offset(41), epochs.epoch_for_offset(42)), (Some(2), Some(4)));
    assert_eq!((pair(epochs.previous(4)), pair(epochs.next(4))), (Some((2, 14)), Some((6, 70))));
    assert_eq!((pair(epochs.previous(0)), pair(epochs.next(8))), (None, None));
    // The answers of a leader to OffsetsForLeaderEpoch, with its log end at 98.
    assert_eq!(epochs.end_offset_for_epoch(8, 98), Some((8, 98)));
    assert_eq!(epochs.end_offset_for_epoch(5, 98), Some((4, 70)));
    assert_eq!(epochs.end_offset_for_epoch(9, 98), None);
    assert_eq!(epochs.end_offset_for_epoch(-1, 98), None);
}

#[test]
fn a_follower_truncates_where_it_diverged_from_the_leader() {
    let epochs = |pairs: &[(i32, i64)]| {
        LeaderEpochs::from_entries(
            &pairs
                .iter()
                .map(|&(epoch, start_offset)| EpochEntry { epoch, start_offset })
                .collect::<Vec<_>>(),
        )
    };
    // The leader of v2_epochs_log.
    let leader = epochs(&[(0, 0), (2, 14), (4, 28), (6, 42)]);
    let found = truncation(&epochs(&[(0, 0), (2, 14), (4, 28)]), 42, &leader, 56);
    assert_eq!(
        (found.offset, found.questions),
        (Some(42), vec![(4, Some((4, 42)))]),
        "the follower is only shorter"
    );
    let found = truncation(&epochs(&[(0, 0), (2, 14), (3, 28)]), 33, &leader, 56);
    assert_eq!((found.offset, found.questions), (Some(28), vec![(3, Some((2, 28)))]));
    let found = truncation(&epochs(&[(0, 0), (1, 5), (3, 28)]), 33, &leader, 56);
    assert_eq!(found.questions, [(3, Some((2, 28))), (1, Some((0, 14)))]);
    assert_eq!(found.offset, Some(5));
}

fn data_event(producer_id: i64, epoch: i16, sequences: (i32, i32), offsets: (i64, i64)) -> ProducerEvent {
    ProducerEvent::Data {
        producer_id,
        transactional: false,
        first_offset: offsets.0,
        producer_epoch: epoch,
        base_sequence: sequences.0,
        last_sequence: sequences.1,
        last_offset: offsets.1,
        offset_delta: (offsets.1 - offsets.0) as i32,
        timestamp: 1000,
    }
}

fn transactional(event: ProducerEvent) -> ProducerEvent {
    let ProducerEvent::Data { .. } = event else { panic!("not data") };
    let mut event = event;
    if let ProducerEvent::Data { transactional, .. } = &mut event {
        *transactional = true;
    }
    event
}

fn marker(producer_id: i64, producer_epoch: i16, coordinator_epoch: i32, offset: i64) -> ProducerEvent {
    let (committed, timestamp) = (true, 2000);
    ProducerEvent::Marker { producer_id, producer_epoch, committed, coordinator_epoch, offset, timestamp }
}

const CLIENT: AppendOrigin = AppendOrigin::Client;

fn verdict(producers: &Producers, event: &ProducerEvent, origin: AppendOrigin) -> Verdict {
    producers.check(event, AppendTerms::of(origin))
}

#[test]
fn sequences_and_epochs_of_a_client_are_checked() {
    let mut producers = Producers::default();
    let check = |producers: &Producers, epoch, sequences| {
        verdict(producers, &data_event(7, epoch, sequences, (0, 0)), CLIENT)
    };
    assert_eq!(check(&producers, 3, (40, 41)), Verdict::Append, "the producer is unknown");
    producers.apply(&data_event(7, 3, (40, 41), (100, 101)));
    assert_eq!(check(&producers, 3, (42, 42)), Verdict::Append);
    let stored = BatchMetadata { last_sequence: 41, last_offset: 101, offset_delta: 1, timestamp: 1000 };
    assert_eq!(check(&producers, 3, (40, 41)), Verdict::Duplicate(stored));
    let out_of_order = |sequence, last| Verdict::Refuse(Refusal::OutOfOrderSequence { sequence, last });
    assert_eq!(check(&producers, 3, (43, 44)), out_of_order(43, 41));
    assert_eq!(check(&producers, 3, (40, 40)), out_of_order(40, 41), "not the same batch");
    assert_eq!(check(&producers, 4, (1, 2)), out_of_order(1, -1), "a new epoch begins at sequence 0");
    assert_eq!(check(&producers, 4, (0, 2)), Verdict::Append);
    let old = Refusal::InvalidProducerEpoch { epoch: 2, current: 3 };
    assert_eq!(check(&producers, 2, (42, 42)), Verdict::Refuse(old));
    assert_eq!(old.name(), "INVALID_PRODUCER_EPOCH");
    assert_eq!(old.to_string(), "producer epoch 2 is too old: the current epoch is 3");
    // A replica is not checked at all. A coordinator's epoch is checked, but not its sequences.
    let odd = data_event(7, 2, (99, 99), (0, 0));
    assert_eq!(verdict(&producers, &odd, AppendOrigin::Replication), Verdict::Append);
    assert_eq!(verdict(&producers, &odd, AppendOrigin::Coordinator), Verdict::Refuse(old));
    let odd = data_event(7, 3, (99, 99), (0, 0));
    assert_eq!(verdict(&producers, &odd, AppendOrigin::Coordinator), Verdict::Append);
    // The sequence after 2^31-1 is 0.
    producers.apply(&data_event(7, 3, (i32::MAX - 1, i32::MAX), (102, 103)));
    assert_eq!(check(&producers, 3, (0, 4)), Verdict::Append);
    assert_eq!(check(&producers, 3, (1, 4)), out_of_order(1, i32::MAX));
}

#[test]
fn real_sequences_that_wrap_are_in_order() {
    let mut producers = Producers::default();
    let events = producer_events(&data().join("v2_seq_wrap"));
    for (event, _) in &events {
        assert_eq!(verdict(&producers, event, CLIENT), Verdict::Append, "{event:?}");
        producers.apply(event);
        assert!(matches!(verdict(&producers, event, CLIENT), Verdict::Duplicate(_)), "{event:?}");
    }
    assert_eq!(events.len(), 4);
}

#[test]
fn data_must_belong_to_the_open_transaction() {
    let mut producers = Producers::default();
    producers.apply(&transactional(data_event(7, 0, (0, 0), (10, 10))));
    let plain = data_event(7, 0, (1, 1), (11, 11));
    let refused = Refusal::InvalidTxnState { first_offset: Some(10) };
    assert_eq!(verdict(&producers, &plain, CLIENT), Verdict::Refuse(refused));
    assert_eq!(refused.to_string(), "non-transactional data in the transaction that began at offset 10");
    assert_eq!(verdict(&producers, &transactional(plain), CLIENT), Verdict::Append);
    let ended = producers.apply(&marker(7, 0, 1, 11)).unwrap();
    assert_eq!((ended.first_offset, ended.last_offset, ended.committed), (10, 11, true));
    assert_eq!(verdict(&producers, &plain, CLIENT), Verdict::Append);
}

#[test]
fn markers_of_old_epochs_are_fenced() {
    let mut producers = Producers::default();
    producers.apply(&transactional(data_event(7, 3, (0, 0), (10, 10))));
    let check = |producers: &Producers, epoch, coordinator, transaction_version| {
        let terms = AppendTerms { transaction_version, ..AppendTerms::of(AppendOrigin::Coordinator) };
        producers.check(&marker(7, epoch, coordinator, 11), terms)
    };
    let old = |epoch, current| Verdict::Refuse(Refusal::InvalidProducerEpoch { epoch, current });
    assert_eq!(check(&producers, 2, 0, 0), old(2, 3));
    assert_eq!(check(&producers, 3, 0, 0), Verdict::Append);
    assert_eq!(check(&producers, 3, 0, 2), old(3, 3), "version 2 raises the epoch with each marker");
    assert_eq!(check(&producers, 4, 0, 2), Verdict::Append);
    producers.apply(&marker(7, 4, 5, 11));
    assert_eq!(check(&producers, 4, 5, 2), Verdict::Append, "a retry of the marker");
    let fenced = Refusal::TransactionCoordinatorFenced { epoch: 4, current: 5 };
    assert_eq!(check(&producers, 4, 4, 0), Verdict::Refuse(fenced));
    assert_eq!(fenced.name(), "TRANSACTION_COORDINATOR_FENCED");
    assert_eq!(
        producers.check(&marker(7, 0, 0, 11), AppendTerms::of(AppendOrigin::Replication)),
        Verdict::Append
    );
    // The highest epoch cannot be raised, so its marker keeps it.
    let mut producers = Producers::default();
    producers.apply(&transactional(data_event(7, i16::MAX, (0, 0), (10, 10))));
    assert_eq!(check(&producers, i16::MAX, 0, 2), Verdict::Append);
}

#[test]
fn a_transaction_has_to_be_verified_before_its_first_batch() {
    let mut producers = Producers::default();
    let first = transactional(data_event(7, 0, (0, 4), (10, 14)));
    let check = |producers: &Producers, event: &ProducerEvent, guard| {
        producers.check(event, AppendTerms { verification: Some(guard), ..AppendTerms::of(CLIENT) })
    };
    let refused = Verdict::Refuse(Refusal::InvalidTxnState { first_offset: None });
    assert_eq!(check(&producers, &first, VerificationGuard::SENTINEL), refused);
    let guard = producers.start_verification(7, 0, 0, false, 100).unwrap();
    assert_ne!(guard, VerificationGuard::SENTINEL);
    assert_eq!(producers.start_verification(7, 5, 0, false, 100), Ok(guard), "the same transaction");
    assert_eq!(check(&producers, &first, VerificationGuard::SENTINEL), refused);
    assert_eq!(check(&producers, &first, guard), Verdict::Append);
    // The second batch must not arrive before the first one.
    let second = transactional(data_event(7, 0, (5, 9), (15, 19)));
    let early = Refusal::OutOfOrderSequence { sequence: 5, last: -1 };
    assert_eq!(check(&producers, &second, guard), Verdict::Refuse(early));
    producers.apply(&first);
    let open = producers.start_verification(7, 5, 0, false, 100).unwrap();
    assert_eq!(open, VerificationGuard::SENTINEL, "an open transaction needs no verification");
    assert_eq!(check(&producers, &second, open), Verdict::Append);
    let old = Refusal::InvalidProducerEpoch { epoch: -1, current: 0 };
    assert_eq!(producers.start_verification(7, 5, -1, false, 100), Err(old));
    // Old verifications expire.
    let guard = producers.start_verification(8, 0, 0, false, 100).unwrap();
    producers.expire(100);
    let other = transactional(data_event(8, 0, (0, 0), (20, 20)));
    assert_eq!(check(&producers, &other, guard), refused);
}

#[test]
fn producers_expire_unless_a_transaction_is_open() {
    let mut producers = Producers::default();
    producers.apply(&data_event(1, 0, (0, 0), (0, 0)));
    producers.apply(&transactional(data_event(2, 0, (0, 0), (1, 1))));
    producers.apply(&data_event(3, 0, (0, 0), (2, 2)));
    producers.apply(&marker(3, 0, 0, 3));
    assert_eq!(producers.oldest_transaction_timestamp(), Some(1000));
    producers.expire(999);
    assert_eq!(producers.entries().len(), 3);
    producers.expire(1000);
    let left: Vec<i64> = producers.entries().iter().map(|entry| entry.producer_id).collect();
    assert_eq!(left, [2, 3], "the marker at 2000 is newer");
    assert!(producers.get(1).is_none());
    assert_eq!(producers.get(3).unwrap().last_timestamp, 2000);
}

#[test]
fn an_ended_transaction_is_unstable_until_its_marker_is_replicated() {
    let mut producers = Producers::default();
    producers.apply(&transactional(data_event(1, 0, (0, 0), (10, 10))));
    producers.apply(&marker(1, 0, 0, 11));
    assert_eq!((producers.first_undecided_offset(), producers.first_unstable_offset()), (None, Some(10)));
    producers.set_high_watermark(11);
    assert_eq!(producers.first_unstable_offset(), Some(10), "the high watermark is exclusive");
    producers.set_high_watermark(12);
    assert_eq!(producers.first_unstable_offset(), None);
    assert_eq!((last_stable_offset(None, 12), last_stable_offset(Some(20), 12)), (12, 12));
}

#[test]
fn state_is_reloaded_from_the_newest_readable_snapshot() {
    let snapshot = |epoch| {
        let mut entry = ProducerStateEntry::empty(7);
        let last = BatchMetadata { last_sequence: 4, last_offset: 4, offset_delta: 4, timestamp: 5000 };
        entry.add_batch(epoch, last);
        write_producer_snapshot(&[entry])
    };
    let mut broken = snapshot(3);
    broken[20] ^= 1;
    let files = BTreeMap::from([(5, snapshot(1)), (10, snapshot(2)), (15, broken), (90, snapshot(9))]);
    let mut state = ProducerStateManager::new(files.clone(), 1000);
    state.truncate_and_reload(0, 20, 5500);
    assert_eq!(state.snapshots().keys().copied().collect::<Vec<_>>(), [5, 10]);
    assert_eq!((state.end_offset(), state.producers.entries()[0].producer_epoch), (10, 2));

    // After replaying up to the end of the log, a snapshot is taken only once.
    state.producers.apply(&data_event(7, 2, (5, 5), (10, 10)));
    state.set_end_offset(20);
    assert_eq!((state.take_snapshot(), state.take_snapshot()), (Some(20), None));
    let taken = parse_producer_snapshot(&state.snapshots()[&20]).unwrap();
    assert_eq!(snapshot_fields(&taken[0]), (7, 2, 5, 10, 0, 1000, -1, None));

    // Snapshots that belong to no segment are stray, except the last one, which a clean shutdown leaves.
    state.remove_stray_snapshots(&BTreeSet::from([0, 10]));
    assert_eq!(state.snapshots().keys().copied().collect::<Vec<_>>(), [10, 20]);
    state.delete_snapshots_before(20);
    assert_eq!(state.snapshots().keys().copied().collect::<Vec<_>>(), [20]);
    state.truncate_fully_and_start_at(100);
    assert!(state.snapshots().is_empty() && state.producers.entries().is_empty());
    assert_eq!(state.end_offset(), 100);

    let mut expired = ProducerStateManager::new(files, 1000);
    expired.truncate_and_reload(0, 20, 6000);
    assert!(expired.producers.entries().is_empty());
    assert_eq!(expired.end_offset(), 10);
}

#[test]
fn isolation_levels_have_kafkas_names() {
    assert_eq!("read_committed".parse(), Ok(IsolationLevel::ReadCommitted));
    assert_eq!("read_uncommitted".parse(), Ok(IsolationLevel::ReadUncommitted));
    let error = "READ_COMMITTED".parse::<IsolationLevel>().unwrap_err();
    assert!(error.to_string().contains("expected \"read_uncommitted\" or \"read_committed\""), "{error}");
}

/// The markers in the log match what Kafka's reader prints.
#[test]
fn markers_match_kafkas_reading() {
    let dir = data().join("v2_txn");
    let controls: Vec<Value> = json_lines(&dir.join("batches.jsonl"))
        .into_iter()
        .filter(|batch| batch["control"].as_bool().unwrap())
        .collect();
    let mut markers = 0;
    let mut decompressor = Decompressor::new();
    each_batch(&dir, |batch| {
        let Batch::V2(v2) = batch else { panic!("magic") };
        if !v2.is_control() {
            return;
        }
        let expected = &controls[markers];
        markers += 1;
        let Some(ProducerEvent::Marker {
            producer_id,
            producer_epoch,
            committed,
            coordinator_epoch,
            offset,
            timestamp,
        }) = ProducerEvent::of(v2, &mut decompressor).unwrap()
        else {
            panic!("not a marker at {}", v2.base_offset())
        };
        assert_eq!(expected["pid"], producer_id);
        assert_eq!(expected["epoch"], producer_epoch);
        assert_eq!(expected["baseOffset"], offset);
        assert_eq!(expected["maxTimestamp"], timestamp);
        let record = v2.records(&mut decompressor).unwrap().next().unwrap().unwrap();
        let parsed = ControlRecord::parse(record.key(), record.value()).unwrap();
        assert_eq!(parsed, ControlRecord::EndTransaction { committed, version: 0, coordinator_epoch });
    });
    assert_eq!((markers, controls.len()), (16, 16));
}
