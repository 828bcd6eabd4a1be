//! The producer of a batch: set on a builder that is reused, and in a batch that is built.

use magicbyte::convert::set_producer_state;
use magicbyte::{
    Batch, Batches, Compression, ControlRecord, ErrorKind, Header, ProducerState, RecordsBuilder,
};

/// A reused builder writes the same bytes as a new one with the same producer.
#[test]
fn a_builder_changes_its_producer() {
    let build = |builder: &mut RecordsBuilder, count: i64| {
        (0..count).for_each(|offset| builder.append(offset, 9, None, Some(b"v"), &[]).unwrap());
        builder.build().unwrap()
    };
    for codec in Compression::ALL {
        let mut builder = RecordsBuilder::v2(codec).producer(1, 2, 3);
        let first = build(&mut builder, 4);
        assert_eq!(builder.producer_state(), ProducerState::new(1, 2, 7));
        let states = [
            ProducerState::new(1, 3, 0).transactional(),
            ProducerState::new(9, 0, i32::MAX),
            ProducerState::NONE,
            ProducerState::new(1, 2, 3),
        ];
        for state in states {
            builder.set_producer_state(state).unwrap();
            let mut fresh = RecordsBuilder::v2(codec);
            fresh.set_producer_state(state).unwrap();
            let batch = build(&mut builder, 4);
            assert_eq!(batch, build(&mut fresh, 4));
            let Batch::V2(read) = Batches::new(&batch).next().unwrap().unwrap() else { panic!() };
            assert_eq!(read.producer_state(), state);
        }
        builder.set_producer_state(ProducerState::new(1, 2, 3)).unwrap();
        assert_eq!(build(&mut builder, 4), first);
        // Also while records are collected, since the header is written last.
        builder.append(0, 9, None, Some(b"v"), &[]).unwrap();
        builder.set_producer_state(ProducerState::new(5, 6, 7)).unwrap();
        let batch = builder.build().unwrap();
        let Batch::V2(read) = Batches::new(&batch).next().unwrap().unwrap() else { panic!() };
        assert_eq!(
            (read.producer_state(), builder.producer_state().base_sequence),
            (ProducerState::new(5, 6, 7), 8)
        );
        // Refused states change nothing.
        for (refused, _) in REFUSED_STATES {
            assert!(builder.set_producer_state(refused).is_err());
            assert_eq!(builder.producer_state(), ProducerState::new(5, 6, 8));
        }
    }
    let mut legacy = RecordsBuilder::v1(Compression::None);
    assert!(legacy.set_producer_state(ProducerState::new(1, 2, 3)).is_err());
    legacy.set_producer_state(ProducerState::NONE).unwrap();
}

/// Producers that `MemoryRecordsBuilder` refuses.
const REFUSED_STATES: [(ProducerState, &str); 4] = [
    (ProducerState::NONE.transactional(), "a transactional batch needs a producer id"),
    (ProducerState::new(1, -1, 0), "a producer id needs a producer epoch"),
    (ProducerState::new(1, 0, -1), "a producer id needs a base sequence"),
    (ProducerState::new(1, 0, i32::MIN), "a producer id needs a base sequence"),
];

/// A batch whose producer is rewritten has the bytes that the builder would have given it.
#[test]
fn a_built_batch_changes_its_producer() {
    let states = [
        ProducerState::NONE,
        ProducerState::new(7, 1, 0),
        ProducerState::new(7, 1, 0).transactional(),
        ProducerState::new(i64::MAX, i16::MAX, i32::MAX),
        ProducerState::new(-5, -2, 0),
    ];
    let build = |codec, state: ProducerState| {
        let mut builder = RecordsBuilder::v2(codec).partition_leader_epoch(3);
        builder.set_producer_state(state).unwrap();
        for offset in [4, 6, 9] {
            let headers = [Header { key: b"h", value: None }];
            builder.append(offset, 100 + offset, Some(b"k"), Some(b"value"), &headers).unwrap();
        }
        builder.build().unwrap()
    };
    for codec in Compression::ALL {
        for from in states {
            for to in states {
                let mut batch = build(codec, from);
                set_producer_state(&mut batch, to).unwrap();
                assert_eq!(batch, build(codec, to), "{codec:?} {from:?} {to:?}");
            }
            for (refused, why) in REFUSED_STATES {
                let mut batch = build(codec, from);
                let error = set_producer_state(&mut batch, refused).unwrap_err();
                assert_eq!(error.kind(), &ErrorKind::InvalidOptions(why));
                assert_eq!(batch, build(codec, from), "unchanged");
            }
        }
    }
}

#[test]
fn what_cannot_change_its_producer() {
    let state = ProducerState::new(7, 1, 0);
    let mut legacy = RecordsBuilder::v1(Compression::None);
    legacy.append(0, 0, None, None, &[]).unwrap();
    let error = set_producer_state(&mut legacy.build().unwrap(), state).unwrap_err();
    assert_eq!((error.field(), error.position()), (Some("producerId"), Some(0)));

    let mut builder = RecordsBuilder::v2(Compression::None);
    builder.append(0, 0, None, Some(b"v"), &[]).unwrap();
    let batch = builder.build().unwrap();
    let mut damaged = batch.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let before = damaged.clone();
    let error = set_producer_state(&mut damaged, state).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::CrcMismatch { .. }), "damage is never covered up: {error}");
    assert_eq!(damaged, before);
    for size in 0..batch.len() {
        assert!(set_producer_state(&mut batch[..size].to_vec(), state).is_err());
    }
    assert!(set_producer_state(&mut batch.repeat(2), state).is_err(), "one batch at a time");

    let mut marker = RecordsBuilder::v2(Compression::None).producer(7, 1, -1).transactional().control();
    let end = ControlRecord::EndTransaction { committed: true, version: 0, coordinator_epoch: 0 };
    marker.append_control(0, 0, &end).unwrap();
    let mut marker = marker.build().unwrap();
    assert!(set_producer_state(&mut marker, ProducerState::new(8, 2, -1)).is_err(), "it would leave");
    set_producer_state(&mut marker, ProducerState::new(8, 2, -1).transactional()).unwrap();
    let Batch::V2(read) = Batches::new(&marker).next().unwrap().unwrap() else { panic!() };
    read.verify().unwrap();
    assert_eq!(read.producer_state(), ProducerState::new(8, 2, -1).transactional());
}
