//! What the page is told of segments: all of their bytes, whatever they are, in slices.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use magicbyte::{Batches, Compression, Decompressor, RecordsBuilder};
use magicbyte_inspector::{Row, RowKind, Segment, Sheet, Source};
use magicbyte_log::SegmentReader;
use magicbyte_testing::{files, partitions, repository, scratch};

#[derive(Debug)]
struct Bytes {
    data: Vec<u8>,
    largest_read: AtomicUsize,
}

impl Source for Bytes {
    fn read(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        self.largest_read.fetch_max(buffer.len(), Ordering::Relaxed);
        let rest = self.data.get(position as usize..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

fn open(data: &[u8]) -> (Segment, Arc<Bytes>) {
    let bytes = Arc::new(Bytes { data: data.to_vec(), largest_read: AtomicUsize::new(0) });
    (Segment::new(Arc::clone(&bytes) as _, data.len() as u64), bytes)
}

/// All sheets, whose rows cover every byte once.
fn sheets(segment: &mut Segment, size: usize) -> Vec<Sheet> {
    let mut sheets = Vec::new();
    let mut next = Some(segment.start().unwrap());
    let mut end = 0;
    while let Some(start) = next {
        let sheet = segment.sheet(start).unwrap();
        for row in &sheet.rows {
            assert_eq!(row.position, end);
            assert!(row.size > 0);
            end += row.size;
        }
        next = sheet.next;
        sheets.push(sheet);
    }
    assert_eq!(end, size as u64);
    assert_eq!(sheets.iter().map(|sheet| sheet.good + sheet.quarantined + sheet.tail).sum::<u64>(), end);
    sheets
}

fn rows(sheets: &[Sheet]) -> impl Iterator<Item = &Row> {
    sheets.iter().flat_map(|sheet| &sheet.rows)
}

fn segments() -> Vec<Vec<u8>> {
    let samples = ["archive-0", "clicks-0", "orders-0", "payments-0", "profiles-0", "sensors-0"];
    let directories =
        partitions().into_iter().chain(samples.map(|name| repository().join("samples").join(name)));
    directories.flat_map(|path| files(&path, ".log")).map(|file| std::fs::read(file).unwrap()).collect()
}

#[test]
fn every_record_of_every_segment_is_counted() {
    let mut decompressor = Decompressor::new();
    for data in segments() {
        let whole: Vec<_> = Batches::new(&data).map_while(Result::ok).collect();
        let records: usize =
            whole.iter().map(|batch| batch.records(&mut decompressor).unwrap().count()).sum();
        let (mut segment, _) = open(&data);
        let sheets = sheets(&mut segment, data.len());
        assert_eq!(rows(&sheets).filter(|row| row.kind == RowKind::Good).count(), whole.len());
        assert_eq!(sheets.iter().map(|sheet| sheet.records).sum::<u64>(), records as u64);
        assert_eq!(sheets.iter().map(|sheet| sheet.quarantined).sum::<u64>(), 0);
    }
}

#[test]
fn fields_hold_the_bytes_of_a_batch_in_windows_of_any_size() {
    for data in segments().iter().filter(|data| data.len() < 20_000) {
        let (mut segment, _) = open(data);
        let sheet = segment.sheet(segment.start().unwrap()).unwrap();
        for row in sheet.rows.iter().filter(|row| row.kind == RowKind::Good).step_by(7) {
            let all = segment.fields(row.position, row.size, 0, usize::MAX / 2).unwrap();
            assert_eq!((all.more, &all.error), (false, &None));
            let stored = all.fields.iter().filter(|field| !field.is_decompressed);
            assert_eq!(stored.map(|field| field.size as u64).sum::<u64>(), row.size);
            let (mut first, mut labels) = (0, Vec::new());
            loop {
                let window = segment.fields(row.position, row.size, first, 5).unwrap();
                labels.extend(window.fields.into_iter().map(|field| (field.label, field.meaning)));
                first += 5;
                if !window.more {
                    break;
                }
            }
            let expected: Vec<_> = all.fields.into_iter().map(|field| (field.label, field.meaning)).collect();
            assert_eq!(labels, expected);
        }
    }
}

/// Numbers that look random, the same in each run.
fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

fn damage(data: &mut Vec<u8>, state: &mut u64) {
    let at = random(state) % data.len();
    let length = (random(state) % 300).min(data.len() - at);
    match random(state) % 6 {
        0 => data[at] ^= 1 << (random(state) % 8),
        1 => data[at..at + length].fill(0),
        2 => data[at..at + length].iter_mut().for_each(|byte| *byte = random(state) as u8),
        3 => data.truncate(at.max(1)),
        4 => drop(data.drain(at..at + length)),
        _ => {
            let copy = data[at..at + length].to_vec();
            data.splice(at..at, copy);
        }
    }
}

#[test]
fn damage_costs_itself_and_a_sheet_is_the_same_again() {
    let mut state = 7;
    let mut damaged = 0;
    for original in segments().iter().filter(|data| !data.is_empty() && data.len() < 50_000) {
        for changes in [1, 1, 5] {
            let mut data = original.clone();
            for _ in 0..changes {
                if !data.is_empty() {
                    damage(&mut data, &mut state);
                }
            }
            let (mut segment, _) = open(&data);
            let sheets = sheets(&mut segment, data.len());
            for row in rows(&sheets).filter(|row| row.kind != RowKind::Good) {
                damaged += 1;
                assert!(row.problem.is_some());
                // At least one field, so that the page shows the bytes.
                let fields = segment.fields(row.position, row.size, 0, 400).unwrap();
                assert!(!fields.fields.is_empty() || fields.error.is_some());
            }
            let again = self::sheets(&mut segment, data.len());
            assert_eq!(serde_json::to_string(&sheets).unwrap(), serde_json::to_string(&again).unwrap());
        }
    }
    assert!(damaged > 100);
}

/// Batches of one record each.
fn small_batches(count: i64) -> Vec<u8> {
    let mut builder = RecordsBuilder::v2(Compression::None);
    let mut data = Vec::new();
    for offset in 0..count {
        builder.append(offset, 1_700_000_000_000, None, Some(b"a value"), &[]).unwrap();
        data.extend(builder.build().unwrap());
    }
    data
}

#[test]
fn sheets_are_what_one_reader_finds() {
    let mut data = small_batches(40_000);
    for at in [100, 50_000, 50_100, 1_500_000, 2_999_000] {
        data[at..at + 500].fill(0xee);
    }
    let file = scratch("inspector").join("00000000000000000000.log");
    std::fs::write(&file, &data).unwrap();
    let size = data.len() as u64;
    let mut reader = SegmentReader::open(&file, size, 0..size, 0, i64::MAX).unwrap();
    let mut ends = Vec::new();
    while reader.next().transpose().unwrap().is_some() {
        ends.push(reader.position());
    }
    let (mut segment, bytes) = open(&data);
    let sheets = sheets(&mut segment, data.len());
    assert!(sheets.len() > 10);
    assert_eq!(rows(&sheets).map(|row| row.position + row.size).collect::<Vec<_>>(), ends);
    assert_eq!(rows(&sheets).filter(|row| row.kind == RowKind::Quarantined).count(), 4);
    assert!(bytes.largest_read.load(Ordering::Relaxed) <= 4 << 20);
}

#[test]
fn a_flipped_bit_is_found() {
    let mut data = small_batches(3);
    let size = data.len() / 3;
    data[size + 65] ^= 8;
    let (mut segment, _) = open(&data);
    let sheets = sheets(&mut segment, data.len());
    let row = rows(&sheets).find(|row| row.kind == RowKind::Quarantined).unwrap();
    let fields = segment.fields(row.position, row.size, 0, 400).unwrap();
    let repair = fields.repair.unwrap();
    assert_eq!((repair.at, repair.change.as_str()), (65, "bit 3 of byte 65"));
    assert!(fields.fields.iter().any(|field| field.is_wrong && field.label == "crc"));
    // The batches around it are good.
    assert_eq!(rows(&sheets).filter(|row| row.kind == RowKind::Good).count(), 2);
}

#[test]
fn a_batch_whose_records_do_not_decode_is_damage() {
    let mut data = small_batches(1);
    let last = data.len() - 1;
    data[last] = 2; // a header that is not there
    let crc = magicbyte::crc32c(&data[21..], 0);
    data[17..21].copy_from_slice(&crc.to_be_bytes());
    let (mut segment, _) = open(&data);
    let sheets = sheets(&mut segment, data.len());
    let row = rows(&sheets).next().unwrap();
    assert_eq!((row.kind, row.batch.is_some()), (RowKind::Quarantined, true));
    assert!(row.problem.as_deref().unwrap().contains("headersCount"), "{:?}", row.problem);
}

#[test]
fn files_that_are_no_segments() {
    for data in [&b""[..], b"x", b"hello, world, this is text and not a batch", &[0; 5000], &[0xff; 5000]] {
        let (mut segment, _) = open(data);
        let sheets = sheets(&mut segment, data.len());
        assert_eq!(rows(&sheets).filter(|row| row.kind == RowKind::Good).count(), 0);
        for row in rows(&sheets) {
            segment.fields(row.position, row.size, 0, 10).unwrap();
        }
    }
}

#[derive(Debug)]
struct Unreadable;

impl Source for Unreadable {
    fn read(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err(io::Error::other("the file cannot be read"))
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let mut segment = Segment::new(Arc::new(Unreadable), 100);
    assert!(segment.start().is_err());
    let error = segment.sheet(magicbyte_inspector::Checkpoint { position: 0, expected: 0 }).unwrap_err();
    assert!(error.to_string().contains("the file cannot be read"));
}
