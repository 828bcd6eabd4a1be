//! Damaged segments: batches that were not damaged are delivered, nothing that was never written is, and the
//! accounts balance. The input is a script that makes a segment of valid batches and damages it.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use magicbyte::Decompressor;
use magicbyte_log::steps::{partition_history, segment_history, survey_segment};
use magicbyte_log::{DamageMode, HistoryOptions, PartitionLog, PlanOptions, ReadOptions};

use super::made::{batch, message, noise, record, snappy};
use super::scratch::Scratch;

/// The reader may take the bytes before a batch for the length of a value that contains it, even by chance.
/// These bytes cannot end a length, and damage spares the end of each batch, so here chance is excluded.
const NO_LENGTH: [u8; 5] = [0xff; 5];

/// The input, byte by byte; after its end, zeros.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }
}

/// A batch as it was written, and as it is in the file.
struct Piece {
    written: Vec<u8>,
    bytes: Vec<u8>,
    /// Batches embedded in a value, with the bytes right before them: damage there could turn them into
    /// batches of the log.
    guarded: Range<usize>,
    records: i64,
}

impl Piece {
    fn new(bytes: Vec<u8>, guarded: Range<usize>, records: i64) -> Self {
        Self { written: bytes.clone(), bytes, guarded, records }
    }

    /// The value of the length field.
    fn length(&self) -> Option<i64> {
        Some(i32::from_be_bytes(*self.bytes.get(8..)?.first_chunk()?).into())
    }

    /// Bytes outside of every batch.
    fn garbage(bytes: Vec<u8>) -> Self {
        Self { written: Vec::new(), bytes, guarded: 0..0, records: 0 }
    }
}

/// Whether a damaged length leads to a batch embedded in a value, and what would prove it wrong is damaged as
/// well. Nothing then distinguishes that batch from the log's own.
fn leads_into_a_value(pieces: &[Piece]) -> bool {
    let mut end = 0;
    let starts: Vec<i64> = pieces
        .iter()
        .map(|piece| {
            end += piece.bytes.len() as i64;
            end - piece.bytes.len() as i64
        })
        .collect();
    pieces.iter().enumerate().any(|(index, piece)| {
        let declared = starts[index] + 12 + piece.length().unwrap_or(0);
        let proven = piece.bytes.get(12..) == piece.written.get(12..);
        let holds = |(other, holder): (usize, &Piece)| {
            let inside =
                starts[other] + holder.guarded.start as i64..starts[other] + holder.guarded.end as i64;
            let intact = other == index || holder.bytes.get(8..) == holder.written.get(8..);
            inside.contains(&declared) && !(proven && intact)
        };
        pieces.iter().enumerate().any(holds)
    })
}

/// Whether a damaged length leads exactly to the end of the file, the checksum cannot disprove it, and the
/// header does not show that the next batch follows. What precedes the end may then be the damaged batch's
/// content.
fn leads_to_the_end(pieces: &[Piece]) -> bool {
    const MAGIC_AND_LAST_OFFSET: [Range<usize>; 3] = [0..8, 16..17, 23..27];
    let mut to_the_end: usize = pieces.iter().map(|piece| piece.bytes.len()).sum();
    pieces.iter().enumerate().any(|(index, piece)| {
        let declared = piece.length().map(|length| 12 + length);
        let leads = declared == Some(to_the_end as i64) && to_the_end > piece.bytes.len();
        to_the_end -= piece.bytes.len();
        let proven = piece.bytes.get(12..) == piece.written.get(12..);
        let shows_the_next_batch = piece.written.get(16) == Some(&2)
            && MAGIC_AND_LAST_OFFSET
                .into_iter()
                .all(|at| piece.bytes.get(at.clone()) == piece.written.get(at))
            && pieces.get(index + 1).is_some_and(|next| next.bytes == next.written);
        leads && !proven && !shows_the_next_batch
    })
}

/// The script decides what the segment is made of and how it is damaged.
pub fn salvage(data: &[u8]) {
    let mut script = Script(data);
    let mut pieces = written(&mut script);
    let lost = usize::from(script.byte()) << 2;
    for _ in 0..16 {
        if script.0.is_empty() {
            break;
        }
        damage(&mut pieces, &mut script);
    }
    cut(&mut pieces, lost);
    if leads_into_a_value(&pieces) || leads_to_the_end(&pieces) {
        return;
    }
    let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.iter().copied()).collect();
    check(&pieces, &bytes);
}

/// Two to nine batches, of one magic or mixed: plain, compressed, or with batches embedded in a value.
fn written(script: &mut Script<'_>) -> Vec<Piece> {
    let (count, magics) = (2 + script.below(8), script.below(4));
    let mut next_offset = 0;
    (0..count)
        .map(|index| {
            let kind = script.byte();
            let magic = if magics == 3 { usize::from(kind >> 6) % 3 } else { magics } as u8;
            // Every batch is different, so that it is clear which ones are delivered.
            let value = [&[index as u8], &noise(index as u64, 4 * script.below(64))[..], &NO_LENGTH].concat();
            let piece = match (kind & 7, magic) {
                (0..=4, 2) => plain(next_offset, 1 + i64::from(kind >> 3 & 3), &value),
                (0..=4, _) => Piece::new(message(next_offset, magic, 0, 1000, &value), 0..0, 1),
                (5, 2) => {
                    let payload = snappy(&record(0, b"key", &value, b""));
                    Piece::new(batch(next_offset, 2, 1, 1000, &payload), 0..0, 1)
                }
                _ => with_embedded_batches(next_offset, magic, kind, &value),
            };
            next_offset += piece.records;
            piece
        })
        .collect()
}

fn plain(offset: i64, records: i64, value: &[u8]) -> Piece {
    let payload: Vec<u8> = (0..records).flat_map(|delta| record(delta, b"key", value, b"")).collect();
    Piece::new(batch(offset, 0, records as i32, 1000, &payload), 0..0, records)
}

/// A batch with whole batches embedded in its value or a header; their offsets are chosen to fool a reader.
fn with_embedded_batches(offset: i64, magic: u8, kind: u8, own: &[u8]) -> Piece {
    let distance = [0, 1, 2, 3, 40, 1000][usize::from(kind >> 3) % 6];
    let sent: Vec<u8> = (0..3)
        .flat_map(|index| match kind >> 5 & 1 {
            0 => batch(offset + distance + index, 0, 1, 1000, &record(0, b"sent as data", own, b"")),
            _ => message(offset + distance + index, 1, 0, 1000, &[b"sent as data: ", own].concat()),
        })
        .collect();
    let (bytes, records) = match magic {
        2 => {
            let (value, header) =
                if kind >> 4 & 1 == 0 { (&sent[..], &b""[..]) } else { (&b"v"[..], &sent[..]) };
            let payload = [record(0, b"key", own, b""), record(1, b"key", value, header)].concat();
            (batch(offset, 0, 2, 1000, &payload), 2)
        }
        _ => (message(offset, magic, 0, 1000, &sent), 1),
    };
    let start = bytes.windows(sent.len()).position(|window| window == sent).unwrap();
    Piece::new(bytes, start - 8..start + sent.len(), records)
}

/// One act of damage: to bytes of a batch, or between batches.
fn damage(pieces: &mut Vec<Piece>, script: &mut Script<'_>) {
    let (way, index, value) = (script.below(9), script.below(pieces.len()), script.byte());
    let at = usize::from(script.byte()) << 8 | usize::from(script.byte());
    let piece = &mut pieces[index];
    let size = piece.bytes.len();
    let length = |size: i32| (8..12, size.to_be_bytes().to_vec());
    let (range, new) = match way {
        0 => (at % size.max(1)..at % size.max(1) + 1, vec![value]),
        1 => (at % 61..at % 61 + 1, vec![value]),
        2 => length((size as i32).wrapping_add(i32::from(value as i8)) - 12),
        3 => length([0, 13, 14, 48, 49, 60, -1, i32::MAX, i32::MIN, 1 << 20][usize::from(value) % 10]),
        4 => length(at as i32 * (i32::from(value) + 1)),
        5 => (0..61, vec![0; 61]),
        6 => (0..61, noise(value.into(), 61)),
        7 => {
            let fill = usize::from(value) % 64 + 1;
            (at % size.max(1)..at % size.max(1) + fill, vec![(at >> 8) as u8; fill])
        }
        _ => {
            let mut filled = if value & 1 == 0 { noise(value.into(), at % 512) } else { vec![0; at % 512] };
            filled.extend(NO_LENGTH);
            return pieces.insert(index, Piece::garbage(filled));
        }
    };
    let spares_guarded = range.end <= piece.guarded.start || range.start >= piece.guarded.end;
    if range.end + NO_LENGTH.len() <= size && spares_guarded {
        piece.bytes[range].copy_from_slice(&new);
    }
}

/// Cuts up to `rest` bytes off the end, but keeps embedded batches whole.
fn cut(pieces: &mut [Piece], mut rest: usize) {
    for piece in pieces.iter_mut().rev() {
        let cut = rest.min(piece.bytes.len().saturating_sub(piece.guarded.end));
        piece.bytes.truncate(piece.bytes.len() - cut);
        rest -= cut;
        if !piece.bytes.is_empty() {
            return;
        }
    }
}

/// The state of the file, for failure messages.
impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.written.get(16) {
            None => "garbage".into(),
            Some(magic) => format!("magic {magic}, {} records", self.records),
        };
        write!(f, "{kind}, {} bytes", self.bytes.len())?;
        if !self.guarded.is_empty() {
            write!(f, ", batches at {:?}", self.guarded)?;
        }
        let differ = |&at: &usize| self.bytes.get(at) != self.written.get(at);
        match (0..self.written.len()).find(differ) {
            Some(first) => {
                write!(f, ", damaged from {first} on: {:02x?}", self.bytes.get(..61.min(self.bytes.len())))
            }
            None => Ok(()),
        }
    }
}

/// Every byte is in a batch of the history, or in a range that it lists as skipped.
fn check_history(log: &PartitionLog, size: u64) {
    let segment = &log.listing().segments[0];
    let found = segment_history(segment, None).unwrap();
    assert_eq!(found.survey, survey_segment(segment).unwrap());
    assert_eq!(found.bins.iter().map(|bin| bin.batches).sum::<u64>(), found.survey.batches);
    let batches: u64 = found.bins.iter().map(|bin| bin.bytes).sum();
    let skipped: u64 = found.skipped.iter().map(|range| range.end - range.start).sum();
    assert_eq!(batches + skipped, size);
    let options = HistoryOptions {
        now: 0,
        transaction_max_timeout_ms: 0,
        coordinated: Vec::new(),
        bins: 10,
        listed: 5,
    };
    let history = partition_history(log.listing(), &[found], &options).unwrap();
    assert!(history.bins.len() <= 10 && history.gaps.len() <= 5);
}

fn check(pieces: &[Piece], bytes: &[u8]) {
    thread_local!(static SCRATCH: Scratch = Scratch::new());
    let log = SCRATCH.with(|scratch| {
        scratch.segment(bytes);
        PartitionLog::open(scratch.partition()).unwrap()
    });
    let sums = log.verify(PlanOptions::default()).unwrap();
    assert!(sums.balanced, "{sums:?}");
    assert_eq!(sums.good_bytes + sums.quarantined_bytes + sums.tail_bytes, bytes.len() as u64);
    let cut = log.verify(PlanOptions { chunk_bytes: 1, ..PlanOptions::default() }).unwrap();
    assert_eq!(cut, sums, "small chunks change the accounts: {pieces:#?}");
    check_history(&log, bytes.len() as u64);

    // The checksum identifies a batch; it does not cover the offset and the leader epoch, which may be
    // forged.
    let known: HashMap<&[u8], usize> = pieces
        .iter()
        .enumerate()
        .filter_map(|(index, piece)| Some((piece.written.get(16..)?, index)))
        .collect();
    let (delivered, rows) = delivered(&log, pieces, &known);
    assert_eq!(rows, sums.rows, "verify and batches disagree on the number of records: {pieces:#?}");
    assert!(delivered.is_sorted_by(|a, b| a < b), "out of order or twice: {delivered:?} of {pieces:#?}");
    // A forged offset under a valid checksum may contradict the neighbours.
    let forged =
        |piece: &Piece| piece.written.get(16..) == piece.bytes.get(16..) && piece.bytes != piece.written;
    if !pieces.iter().any(forged) {
        let intact = |piece: &Piece| !piece.written.is_empty() && piece.bytes == piece.written;
        let expected: Vec<usize> = (0..pieces.len()).filter(|&index| intact(&pieces[index])).collect();
        assert_eq!(delivered, expected, "undamaged batches are lost: {pieces:#?} {sums:?}");
    }
}

/// The indexes of the batches that are delivered, and the number of records. Fails on a batch that was never
/// written.
fn delivered(log: &PartitionLog, pieces: &[Piece], known: &HashMap<&[u8], usize>) -> (Vec<usize>, u64) {
    let options = ReadOptions { mode: DamageMode::Permissive, ..ReadOptions::default() };
    let mut decompressor = Decompressor::new();
    let (mut found, mut rows) = (Vec::new(), 0);
    for batch in log.batches(options).unwrap() {
        let batch = batch.unwrap();
        let Some(&index) = known.get(&batch.data.data()[16..]) else {
            panic!("a batch at {} was never written to the log: {pieces:#?}", batch.data.position())
        };
        found.push(index);
        let records = batch.data.batch().records(&mut decompressor).unwrap();
        rows += records.map(Result::unwrap).count() as u64;
    }
    (found, rows)
}
