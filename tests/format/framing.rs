//! Where a batch ends. A cut tail is silent and a corrupt one an error, as in Kafka.

use proptest::prelude::*;

use magicbyte::{Batch, Batches, ErrorKind};
use magicbyte_testing::handmade::{V2, message, plain_record, summary};

fn good() -> Vec<u8> {
    V2::of(&[plain_record(0)]).bytes()
}

fn with_length(mut batch: Vec<u8>, length: i32) -> Vec<u8> {
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch
}

fn with_magic(mut batch: Vec<u8>, magic: u8) -> Vec<u8> {
    batch[16] = magic;
    batch
}

#[test]
fn magics_follow_each_other() {
    let parts = [
        message(0, 0, 0, 0, None, Some(b"old")),
        good(),
        message(1, 1, 0, 5, Some(b"k"), None),
        message(2, 0, 0, 0, None, None),
        good(),
    ];
    let bytes = parts.concat();
    let found: Vec<_> = Batches::at_position(&bytes, 1000).map(Result::unwrap).collect();
    assert_eq!(found.iter().map(Batch::magic).collect::<Vec<_>>(), [0, 2, 1, 0, 2]);
    let mut position = 1000;
    for (part, batch) in parts.iter().zip(&found) {
        assert_eq!((batch.as_bytes(), batch.position()), (&part[..], position));
        position += part.len() as u64;
    }
}

#[test]
fn every_cut_is_silent_and_reports_what_is_missing() {
    for whole in [good(), message(7, 1, 0, 5, Some(b"k"), Some(b"v")), message(7, 0, 0, 5, None, None)] {
        for cut in 1..whole.len() {
            let bytes = [&good()[..], &whole[..cut]].concat();
            let mut batches = Batches::new(&bytes);
            batches.next().unwrap().unwrap();
            assert!(batches.next().is_none(), "cut at {cut}");
            assert_eq!(batches.remaining(), cut);
            // Until the length field is complete, only the missing part of that field is known.
            let expected = if cut < 12 { 12 - cut } else { whole.len() - cut };
            assert_eq!(batches.needed(), expected as u64, "cut at {cut}");
        }
    }
}

#[test]
fn tails() {
    let size = |found| ErrorKind::InvalidSize { found, min: 14, max: i64::from(i32::MAX) - 12 };
    let cases: Vec<(&str, Vec<u8>, Option<ErrorKind>)> = vec![
        ("nothing", vec![], None),
        ("11 zeros", vec![0; 11], None),
        ("12 zeros", vec![0; 12], Some(size(0))),
        ("a page of zeros", vec![0; 4096], Some(size(0))),
        ("length 13", with_length(good(), 13), Some(size(13))),
        ("length -1", with_length(good(), -1), Some(size(-1))),
        ("length -2^31", with_length(good(), i32::MIN), Some(size(i32::MIN.into()))),
        ("length 2^31-1", with_length(good(), i32::MAX), Some(size(i32::MAX.into()))),
        ("length 2^31-1, without magic", with_length(good(), i32::MAX)[..16].to_vec(), None),
        ("the largest length", with_length(good(), i32::MAX - 12), None),
        ("16 bytes, magic unknown", good()[..16].to_vec(), None),
        ("magic 3", with_magic(good(), 3), Some(ErrorKind::UnsupportedMagic(3))),
        (
            "magic 3 of a cut batch",
            with_magic(good(), 3)[..17].to_vec(),
            Some(ErrorKind::UnsupportedMagic(3)),
        ),
        ("magic -1", with_magic(good(), 0xff), Some(ErrorKind::UnsupportedMagic(-1))),
        ("bad length before bad magic", with_magic(with_length(good(), 1), 9), Some(size(1))),
    ];
    for (name, tail, expected) in cases {
        let bytes = [good(), tail.clone()].concat();
        let mut batches = Batches::new(&bytes);
        batches.next().unwrap().unwrap();
        match (batches.next(), expected) {
            (None, None) => assert_eq!(batches.remaining(), tail.len(), "{name}"),
            (Some(Err(error)), Some(kind)) => {
                assert_eq!(error.kind(), &kind, "{name}");
                assert_eq!(error.position(), Some(good().len() as u64), "{name}");
                assert!(batches.next().is_none(), "{name}: continues after an error");
            }
            (found, expected) => panic!("{name}: {found:?}, expected {expected:?}"),
        }
    }
}

/// Lengths that are too short for the header of magic 2, although a legacy message would fit.
#[test]
fn a_magic_2_batch_has_a_whole_header() {
    for length in 14..49 {
        let mut bytes = with_length(good(), length);
        bytes.truncate(12 + length as usize);
        let error = Batches::new(&bytes).next().unwrap().unwrap_err();
        let kind = ErrorKind::InvalidSize { found: length.into(), min: 49, max: i32::MAX.into() };
        assert_eq!(summary(&error), (kind, None, Some("batchLength")));
        assert_eq!((error.position(), error.base_offset()), (Some(0), Some(100)));
    }
}

#[test]
fn from_frame_takes_exactly_one_batch() {
    let batch = good();
    assert!(Batch::from_frame(&batch, 0).is_ok());
    let cut = Batch::from_frame(&batch[..30], 9).unwrap_err();
    assert!(cut.is_incomplete());
    assert_eq!(cut.kind(), &ErrorKind::NeedMoreBytes { needed: batch.len() as u64 - 30 });
    let longer = Batch::from_frame(&[&batch[..], &[0]].concat(), 9).unwrap_err();
    assert!(!longer.is_incomplete());
    assert_eq!((longer.position(), longer.field()), (Some(9), None));
}

/// Bytes that look enough like batches to pass the checks of length and magic.
fn nearly_batches() -> impl Strategy<Value = Vec<u8>> {
    let batch =
        (any::<i64>(), -2..80i32, any::<[u8; 4]>(), 0..4u8, prop::collection::vec(any::<u8>(), 0..80))
            .prop_map(|(offset, length, between, magic, rest)| {
                [&offset.to_be_bytes()[..], &length.to_be_bytes(), &between, &[magic], &rest].concat()
            });
    let noise = prop::collection::vec(any::<u8>(), 0..40);
    prop::collection::vec(prop_oneof![3 => batch, 1 => noise, 2 => Just(good())], 0..6)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn any_bytes_are_batches_then_one_error_or_a_tail(bytes in nearly_batches()) {
        let mut batches = Batches::new(&bytes);
        let mut at = 0;
        let mut failed = false;
        while let Some(batch) = batches.next() {
            prop_assert!(!failed, "continues after an error");
            match batch {
                Ok(batch) => {
                    prop_assert_eq!(batch.position(), at as u64);
                    prop_assert_eq!(batch.as_bytes(), &bytes[at..at + batch.size_in_bytes()]);
                    at += batch.size_in_bytes();
                    let _ = magicbyte_testing::handmade::read_all(batch.as_bytes());
                }
                Err(error) => {
                    prop_assert_eq!(error.position(), Some(at as u64));
                    failed = true;
                }
            }
            prop_assert_eq!(batches.next_position(), at as u64);
            prop_assert_eq!(batches.remaining(), bytes.len() - at);
        }
        // Without an error, what remains is empty or the start of a batch.
        prop_assert_eq!(batches.needed() > 0, !failed && at < bytes.len());
    }
}
