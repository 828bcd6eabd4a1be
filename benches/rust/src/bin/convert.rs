//! Converts gzip segments of magic 1 to zstd in magic 2, as `convert` does, and compares that with the codecs
//! alone, and two threads with one. Prints a line per round: CPU seconds of the conversion, of the codecs, and
//! of the busier of two threads; then wall-clock seconds of one thread and of two.

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;

use magicbyte::convert::Converter;
use magicbyte::{Batches, Compression, Compressor, Decompressor};
use magicbyte_benches::limits::Piece;
use magicbyte_log::steps::{Chunk, RewriteOptions, rewrite_chunks};
use magicbyte_log::{LogError, LogResult, PartitionLog, PlanOptions};

const USAGE: &str = "usage: convert PARTITION OUT RECORDS ROUNDS";
const CODEC: Compression = Compression::Zstd;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [partition, out, records, rounds] = args.as_slice() else { return Err(USAGE.into()) };
    let (out, records) = (PathBuf::from(out), records.parse::<u64>()?);
    let log = PartitionLog::open(Path::new(partition))?;
    let chunks = log.plan(PlanOptions { chunk_bytes: 1 << 20, ..PlanOptions::default() })?.chunks;
    let mut data = Vec::new();
    for segment in &log.listing().segments {
        data.extend(fs::read(segment.location.path())?);
    }
    let (pieces, sections) = (Piece::all(&data)?, sections(&data)?);
    let (first_half, second_half) = chunks.split_at(chunks.len() / 2);
    for _ in 0..rounds.parse()? {
        let start = ThreadTime::now();
        codecs(&pieces, &sections)?;
        let alone = start.elapsed();

        let clock = Instant::now();
        let (converting, written) = rewrite(&chunks, &out.join("one"))?;
        let one = clock.elapsed();

        let clock = Instant::now();
        let (first, second) = thread::scope(|scope| {
            let first = scope.spawn(|| rewrite(first_half, &out.join("first")));
            let second = rewrite(second_half, &out.join("second"));
            (first.join(), second)
        });
        let two = clock.elapsed();
        let ((first, upper), (second, lower)) = (first.map_err(|_| "a thread panicked")??, second?);
        if (written, upper + lower) != (records, records) {
            return Err(format!("{written} and {upper} + {lower} records instead of {records}").into());
        }
        let seconds =
            [converting, alone, first.max(second), one, two].map(|time| time.as_secs_f64().to_string());
        writeln!(stdout(), "{}", seconds.join(" "))?;
    }
    Ok(())
}

/// Reads, checks, converts, writes and syncs, as a task of `convert` does; returns the thread's CPU time and
/// the number of records.
fn rewrite(chunks: &[Chunk], directory: &Path) -> LogResult<(Duration, u64)> {
    let io = |source| LogError::Io { path: directory.to_owned(), source };
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(io)?;
    }
    fs::create_dir_all(directory).map_err(io)?;
    let options =
        RewriteOptions { magic: Some(2), compression: Some((CODEC, None)), ..RewriteOptions::default() };
    let base_offset = chunks.first().map_or(0, |chunk| chunk.expected_offset);
    let start = ThreadTime::now();
    let rewritten = rewrite_chunks(chunks, directory, base_offset, &options)?;
    Ok((start.elapsed(), rewritten.records))
}

/// The record section of each batch in magic 2, which the conversion compresses.
fn sections(data: &[u8]) -> magicbyte::Result<Vec<Vec<u8>>> {
    let mut converter = Converter::to_codec(Compression::None, None)?;
    let mut sections = Vec::new();
    for batch in Batches::new(data) {
        let mut new = Vec::new();
        converter.up_convert(&batch?, &mut new)?;
        sections.push(new.split_off(magicbyte::RECORD_BATCH_OVERHEAD));
    }
    Ok(sections)
}

/// Only decompresses and compresses the same payloads, with reused contexts.
fn codecs(pieces: &[Piece<'_>], sections: &[Vec<u8>]) -> magicbyte::Result<()> {
    let (mut decompressor, mut compressor) = (Decompressor::new(), Compressor::new(CODEC)?);
    for (piece, section) in pieces.iter().zip(sections) {
        black_box(piece.decompress(&mut decompressor)?);
        black_box(compressor.compress(2, section)?);
    }
    Ok(())
}
