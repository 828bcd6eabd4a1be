//! Writes large segments, intact, damaged and forged, and times passes over their bytes.
//! `benches/python/segments.py` compares the results.

#[allow(dead_code, reason = "shared with the bench, which also prints names")]
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write, stdout};
use std::path::Path;

use cpu_time::ProcessTime;

use magicbyte::{Batches, Compression, Decompressor, RECORD_BATCH_OVERHEAD};
use magicbyte_benches::pass::pass;
use magicbyte_benches::sets::{SHAPES, Shape, set};
use magicbyte_log::steps::{partition_history, segment_history, survey_segment};
use magicbyte_log::{HistoryOptions, PartitionLog, PlanOptions};

const USAGE: &str =
    "usage: segment generate DIRECTORY\n       segment verify|survey|explain|read SEGMENT ROUNDS";
const FILE: &str = "00000000000000000000.log";
const LARGE: u64 = 1 << 30;
const FORGED: usize = 256 << 20;
const BAD_BATCHES: u64 = 50;
/// No batch has more records: base offsets are this far apart.
const RECORDS: i64 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["generate", directory] => generate(Path::new(directory)),
        [verb @ ("verify" | "survey" | "explain" | "read"), segment, rounds] => {
            for _ in 0..rounds.parse()? {
                let start = ProcessTime::now();
                let found = go_over(verb, Path::new(segment))?;
                let seconds = start.elapsed().as_secs_f64();
                writeln!(stdout(), "{seconds} {} {} {}", found.batches, found.bad_ranges, peak_memory()?)?;
            }
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

/// What a pass found in a segment; all zero for a plain read.
#[derive(Default)]
struct Found {
    batches: u64,
    bad_ranges: usize,
}

fn go_over(verb: &str, segment: &Path) -> Result<Found, Box<dyn Error>> {
    if verb == "read" {
        let mut file = File::open(segment)?;
        let mut block = vec![0; 1 << 20];
        while file.read(&mut block)? > 0 {}
        return Ok(Found::default());
    }
    let log = PartitionLog::open(segment.parent().ok_or(USAGE)?)?;
    if verb == "survey" {
        let survey = survey_segment(&log.listing().segments[0])?;
        return Ok(Found { batches: survey.batches, bad_ranges: 0 });
    }
    if verb == "explain" {
        // The survey's scan, which also gives the state of all producers at the end of the log.
        let segments = [segment_history(&log.listing().segments[0], None)?];
        let options = HistoryOptions {
            now: 0,
            transaction_max_timeout_ms: 0,
            coordinated: Vec::new(),
            bins: 320,
            listed: 1000,
        };
        let history = partition_history(log.listing(), &segments, &options)?;
        return Ok(Found { batches: history.batches, bad_ranges: history.anomalies.len() });
    }
    let sums = log.verify(PlanOptions::default())?;
    if !sums.balanced {
        return Err("not balanced".into());
    }
    Ok(Found { batches: sums.good_batches, bad_ranges: sums.segments[0].result.quarantined_ranges as usize })
}

/// Peak memory of this process, in KiB.
fn peak_memory() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn generate(directory: &Path) -> Result<(), Box<dyn Error>> {
    let large = checked_set(SHAPES[0])?;
    let batches = framed(&large)?;
    let total = LARGE * batches.len() as u64 / large.len() as u64;
    write_batches(&directory.join("whole-0"), &batches, total, |_, _| ())?;
    write_batches(&directory.join("damaged-0"), &batches, total, |index, batch| {
        // Evenly spread, without the first and the last batch.
        let nth = (index + 1) * (BAD_BATCHES + 1) / total;
        if nth > index * (BAD_BATCHES + 1) / total && nth <= BAD_BATCHES {
            spoil(batch, nth);
        }
    })?;
    write_forged(&directory.join("forged-0"), batches[0])?;
    let small = checked_set(SHAPES[3])?;
    let batches = framed(&small)?;
    let total = LARGE * batches.len() as u64 / small.len() as u64;
    write_batches(&directory.join("small-0"), &batches, total, |_, _| ())
}

fn checked_set(shape: Shape) -> Result<Vec<u8>, Box<dyn Error>> {
    let (data, expected) = set(shape, Compression::None);
    let found = pass(&data, &mut Decompressor::new())?;
    if found == expected { Ok(data) } else { Err(format!("{found:?} instead of {expected:?}").into()) }
}

fn framed(data: &[u8]) -> magicbyte::Result<Vec<&[u8]>> {
    Batches::new(data).map(|batch| batch.map(|batch| batch.as_bytes())).collect()
}

/// Takes batches in turn, with increasing offsets, which no CRC covers.
fn write_batches(
    directory: &Path,
    batches: &[&[u8]],
    total: u64,
    change: impl Fn(u64, &mut [u8]),
) -> Result<(), Box<dyn Error>> {
    let mut out = create(directory)?;
    for (index, source) in (0..total).zip(batches.iter().cycle()) {
        let mut batch = with_offset(source, RECORDS * index as i64);
        change(index, &mut batch);
        out.write_all(&batch)?;
    }
    Ok(out.flush()?)
}

fn with_offset(batch: &[u8], offset: i64) -> Vec<u8> {
    [&offset.to_be_bytes(), &batch[8..]].concat()
}

fn spoil(batch: &mut [u8], nth: u64) {
    let size = batch.len();
    match nth % 6 {
        0 => batch[..RECORD_BATCH_OVERHEAD].fill(0),
        1 => batch[8..12].copy_from_slice(&(3 * size as i32).to_be_bytes()),
        2 => batch[8..12].copy_from_slice(&49i32.to_be_bytes()),
        3 => batch[8] ^= 0x80, // a negative length
        4 => batch[size / 2] ^= 1,
        _ => {
            let mut noise = nth;
            for byte in batch {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (noise >> 56) as u8;
            }
        }
    }
}

/// Between two good batches: headers in which every field but the CRC could be right, and whose lengths lead
/// to each other, to distant headers, and to headers outside the window.
fn write_forged(directory: &Path, batch: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut out = create(directory)?;
    out.write_all(batch)?;
    let headers = FORGED / RECORD_BATCH_OVERHEAD;
    for index in 0..headers {
        let mut header = with_offset(&batch[..RECORD_BATCH_OVERHEAD], RECORDS + index as i64);
        let length = [1, 1000, 60_000][index % 3] * RECORD_BATCH_OVERHEAD - 12;
        header[8..12].copy_from_slice(&(length as i32).to_be_bytes());
        header[17..21].copy_from_slice(&(index as u32).to_be_bytes()); // CRC
        header[23..27].fill(0); // last offset delta
        header[57..61].copy_from_slice(&1i32.to_be_bytes()); // record count
        out.write_all(&header)?;
    }
    out.write_all(&with_offset(batch, RECORDS + headers as i64))?;
    Ok(out.flush()?)
}

fn create(directory: &Path) -> Result<BufWriter<File>, Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    Ok(BufWriter::with_capacity(1 << 20, File::create(directory.join(FILE))?))
}
