//! Chunks narrowed to ranges of offsets: consecutive ranges leave nothing out, and share no bytes except
//! those of a batch that both ranges need.

use magicbyte_log::steps::{Chunk, trim_chunk};
use magicbyte_log::{PartitionLog, Piece, PlanOptions, SegmentReader};
use magicbyte_testing::partitions;

/// The stored offset, last offset, start and end of each batch of a chunk.
fn batches(chunk: &Chunk) -> Vec<(i64, i64, u64, u64)> {
    let range = chunk.start..chunk.end;
    let pieces = SegmentReader::open(
        chunk.location.clone(),
        chunk.size,
        range,
        chunk.expected_offset,
        chunk.max_offset,
    );
    let batch_of = |piece| match piece {
        Piece::Batch(read) => {
            let (batch, end) = (read.batch(), read.position() + read.data().len() as u64);
            Some((batch.stored_offset(), batch.last_offset(), read.position(), end))
        }
        _ => None,
    };
    pieces.unwrap().filter_map(|piece| batch_of(piece.unwrap())).collect()
}

#[test]
fn consecutive_ranges_leave_nothing_out() {
    let mut cuts = 0;
    for dir in partitions() {
        let plan = PartitionLog::open(&dir).unwrap().plan(PlanOptions::default()).unwrap();
        for chunk in &plan.chunks {
            let batches = batches(chunk);
            let last_end = batches.last().map_or(chunk.start, |batch| batch.3);
            for offset in batches.iter().flat_map(|batch| [batch.1, batch.1 + 1]) {
                let context = format!("{} {} at {offset}", dir.display(), chunk.segment);
                let before = trim_chunk(Chunk { end_offset: Some(offset), ..chunk.clone() }).unwrap();
                let after = trim_chunk(Chunk { start_offset: Some(offset), ..chunk.clone() }).unwrap();
                let end = before.as_ref().map_or(chunk.start, |trimmed| trimmed.end);
                let start = after.as_ref().map_or(chunk.end, |trimmed| trimmed.start);
                let split = batches.iter().find(|batch| batch.2 == start && batch.3 == end);
                assert!(start == end || split.is_some_and(|batch| batch.1 >= offset), "{context}");
                assert_eq!(before.map_or(chunk.start, |trimmed| trimmed.start), chunk.start, "{context}");
                if let Some(after) = after {
                    let expected = batches.iter().rev().find(|batch| batch.3 <= start);
                    assert_eq!(
                        after.expected_offset,
                        expected.map_or(chunk.expected_offset, |batch| batch.1 + 1),
                        "{context}"
                    );
                    assert_eq!(after.end, chunk.end, "{context}");
                }
                cuts += 1;
            }
            // Bytes after the last batch of a log belong to no range.
            let everything = Chunk { end_offset: Some(i64::MAX), ..chunk.clone() };
            let end = if chunk.next_offset.is_some() { chunk.end } else { last_end };
            assert_eq!(trim_chunk(everything).unwrap().map_or(chunk.start, |trimmed| trimmed.end), end);
        }
    }
    assert!(cuts > 500, "{cuts}");
}

#[test]
fn chunks_outside_are_not_opened() {
    let dir = partitions().into_iter().find(|dir| dir.ends_with("v2_none")).unwrap();
    let plan = PartitionLog::open(&dir).unwrap().plan(PlanOptions::default()).unwrap();
    let nowhere = Chunk { location: "/proc/self/mem/x".into(), ..plan.chunks[1].clone() };
    for (start_offset, end_offset) in [(Some(244), None), (None, Some(104)), (Some(300), Some(900))] {
        let outside = Chunk { start_offset, end_offset, ..nowhere.clone() };
        assert_eq!(trim_chunk(outside).unwrap(), None);
    }
    // A chunk that cannot be read is not narrowed; its reader reports the error.
    let unreadable = Chunk { start_offset: Some(150), ..nowhere };
    assert_eq!(trim_chunk(unreadable.clone()).unwrap(), Some(unreadable));
}
