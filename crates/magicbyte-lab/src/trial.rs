//! Writing a window of a log with several layouts, to see what each would cost in bytes and time.

use std::collections::HashMap;
use std::time::Instant;

use magicbyte::convert::Converter;
use magicbyte::internals::batch_header::COMPRESSION;
use magicbyte::internals::{BatchBuilder, HeaderFields, append_batch};
use magicbyte::{
    Batch, Batches, Compression, Compressor, Decompressor, Error, RECORD_BATCH_OVERHEAD, Record, Result,
};
use magicbyte_log::steps::{Chunk, ChunkReader};
use magicbyte_log::{ByteRange, LogError, LogResult};

use crate::cost::{Cost, Format, Tally};
use crate::dictionary::{DictionaryTrial, try_dictionary};

/// The number of header keys that a window counts; further ones are counted together.
const HEADER_KEYS: usize = 1000;
/// A producer's default `batch.size`.
const PRODUCER_BATCH: u64 = 16 << 10;

/// A way to write magic 2 batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The codec.
    pub codec: Compression,
    /// Its level; `None` for Kafka's default.
    pub level: Option<i32>,
    /// The maximum size of a batch in bytes, before compression: a producer's `batch.size`. `None` keeps the batches.
    pub batch_bytes: Option<usize>,
}

/// The cost of a layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Trial {
    /// Batches written. The last one of a window is left out if records of the log were still to come for it.
    pub batches: u64,
    /// Bytes of keys, values and headers in them.
    pub content: u64,
    /// Their size before compression.
    pub decompressed: u64,
    /// Their size.
    pub size: u64,
    /// The sum of the ratios of each batch: its size before compression by its size.
    pub batch_ratios: f64,
    /// The time for building and compressing them (ns).
    pub encode_ns: u64,
    /// The time for checking their CRCs, decompressing them and reading their records (ns).
    pub decode_ns: u64,
}

/// Consecutive batches of a log, and their cost in several layouts.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Window {
    /// Batches.
    pub batches: u64,
    /// Batches with a producer ID.
    pub produced: u64,
    /// Bytes as stored of batches of magic 0 and 1.
    pub legacy: u64,
    /// Bytes of these batches with their messages decompressed.
    pub legacy_messages: u64,
    /// Bytes of the same records in magic 2, uncompressed, in batches of about 16 KiB, a producer's default.
    pub legacy_as_batches: u64,
    /// Records.
    pub records: u64,
    /// Bytes as stored.
    pub stored: u64,
    /// Bytes of magic 2 batches with these records, uncompressed.
    pub decompressed: u64,
    /// Bytes of keys, values and headers.
    pub content: u64,
    /// Bytes between these batches that are not good: damage, and a tail.
    pub damaged: u64,
    /// Bytes of record keys.
    pub keys: u64,
    /// Bytes of record values.
    pub values: u64,
    /// The number of times that each header key was seen, and the bytes of these headers' values. Keys that are not UTF-8 are
    /// shown as well as possible; an empty name counts those beyond the first thousand, if there are more.
    pub header_keys: HashMap<String, (u64, u64)>,
    /// The smallest and the largest batch as stored, in bytes.
    pub batch_sizes: (u64, u64),
    /// The savings of a zstd dictionary, which Kafka cannot read. `None` if none was requested, or the window is too
    /// small.
    pub dictionary: Option<DictionaryTrial>,
    /// The layouts' costs, in the order of the layouts.
    pub trials: Vec<Trial>,
}

/// Reads good batches from the first one at or after `position` in the first chunk on, until they have `window_bytes` after
/// decompression, and writes them with each layout. Chunks are adjacent. Memory: some multiples of `window_bytes`, and of the
/// largest batch.
///
/// # Errors
/// [`LogError::Io`]; [`LogError::Usage`] for a layout that cannot be written. Damage is not an error.
pub fn try_layouts(
    chunks: &[Chunk],
    position: u64,
    layouts: &[Layout],
    window_bytes: usize,
    max_decompressed_bytes: usize,
    tries_dictionary: bool,
) -> LogResult<Window> {
    let usage = |error: Error| LogError::Usage(error.to_string());
    let converter = Converter::to_codec(Compression::None, None).map_err(usage)?;
    let mut reader = WindowReader {
        converter: converter.with_limit(max_decompressed_bytes),
        max_decompressed_bytes,
        window_bytes,
        window: Window::default(),
        data: Vec::new(),
        packed: Packed::default(),
        is_full: false,
    };
    for (index, chunk) in chunks.iter().enumerate() {
        if !reader.read(chunk, if index == 0 { position } else { 0 })? {
            break;
        }
    }
    let WindowReader { mut window, data, is_full, packed, .. } = reader;
    window.legacy_as_batches = packed.size();
    if tries_dictionary {
        window.dictionary = try_dictionary(&data);
    }
    for layout in layouts {
        window.trials.push(write(&data, *layout, is_full).map_err(usage)?);
    }
    Ok(window)
}

struct WindowReader {
    converter: Converter,
    max_decompressed_bytes: usize,
    window_bytes: usize,
    window: Window,
    /// Magic 2 batches, uncompressed.
    data: Vec<u8>,
    /// The records of magic 0 and 1.
    packed: Packed,
    /// True if the window is full and the log may go on.
    is_full: bool,
}

impl WindowReader {
    /// Returns whether more fits.
    fn read(&mut self, chunk: &Chunk, position: u64) -> LogResult<bool> {
        let io = |error| LogError::io(chunk.location.path(), error);
        let mut reader =
            ChunkReader::open(chunk.clone(), true, self.max_decompressed_bytes).map_err(io)?.max_problems(0);
        while let Some((data, _)) = reader.next_batch().map_err(io)? {
            if data.position() < position {
                continue;
            }
            if self.data.len() >= self.window_bytes {
                self.is_full = true;
                return Ok(false);
            }
            let batch = data.batch();
            if self.add(&batch).is_err() {
                self.window.damaged += data.data().len() as u64;
            }
        }
        let damaged = |range: &ByteRange| range.end.saturating_sub(range.start.max(position));
        self.window.damaged += reader.result().quarantined.iter().map(damaged).sum::<u64>();
        self.window.damaged += reader.result().tail.iter().map(damaged).sum::<u64>();
        Ok(true)
    }

    fn add(&mut self, batch: &Batch<'_>) -> Result<()> {
        let before = self.data.len();
        self.converter.up_convert(batch, &mut self.data)?;
        let window = &mut self.window;
        window.batches += 1;
        window.produced += u64::from(batch.has_producer_id());
        let size = batch.size_in_bytes() as u64;
        window.stored += size;
        let (smallest, largest) = window.batch_sizes;
        window.batch_sizes = (if window.batches == 1 { size } else { smallest.min(size) }, largest.max(size));
        let is_legacy = batch.magic() < 2;
        if is_legacy {
            let format = if batch.magic() == 0 { Format::Magic0 } else { Format::Magic1 };
            let mut tally = Tally::default();
            tally.add(batch, &mut Decompressor::with_limit(self.max_decompressed_bytes))?;
            window.legacy += size;
            window.legacy_messages += Cost::of(&tally, format).total();
        }
        window.decompressed += (self.data.len() - before) as u64;
        let mut decompressor = Decompressor::new();
        for batch in Batches::new(&self.data[before..]) {
            batch?.records(&mut decompressor)?.visit(|record| {
                window.count(&record);
                if is_legacy {
                    self.packed.add(&record);
                }
            })?;
        }
        Ok(())
    }
}

/// The cost of records in batches of a producer.
#[derive(Default)]
struct Packed {
    tally: Tally,
    /// The first record's offset and timestamp, the last offset, and the largest timestamp of the batch begun.
    batch: Option<(i64, i64, i64, i64)>,
    /// Its keys, values and headers, in bytes.
    content: u64,
}

impl Packed {
    fn add(&mut self, record: &Record<'_>) {
        let (offset, timestamp) = (record.offset(), record.timestamp());
        let (base, first, last, max) = self.batch.get_or_insert((offset, timestamp, offset, timestamp));
        let (offset_delta, delta) = (offset.wrapping_sub(*base), timestamp.wrapping_sub(*first));
        (*last, *max) = (offset, timestamp.max(*max));
        let (key, value) = (record.key().map(<[u8]>::len), record.value().map(<[u8]>::len));
        // Messages have no headers.
        self.tally.add_record(offset_delta, delta, key, value, std::iter::empty());
        self.content += content(record);
        if self.content >= PRODUCER_BATCH {
            self.end();
        }
    }

    fn end(&mut self) {
        self.content = 0;
        if let Some((base, first, last, max)) = self.batch.take() {
            self.tally.end_batch(first, max, last.wrapping_sub(base));
        }
    }

    /// The bytes of all records.
    fn size(mut self) -> u64 {
        self.end();
        Cost::of(&self.tally, Format::Magic2).total()
    }
}

impl Window {
    fn count(&mut self, record: &Record<'_>) {
        self.records += 1;
        self.content += content(record);
        self.keys += record.key().map_or(0, <[u8]>::len) as u64;
        self.values += record.value().map_or(0, <[u8]>::len) as u64;
        for header in record.headers() {
            let mut key = String::from_utf8_lossy(header.key);
            if self.header_keys.len() >= HEADER_KEYS && !self.header_keys.contains_key(&*key) {
                key = "".into();
            }
            let (count, bytes) = match self.header_keys.get_mut(&*key) {
                Some(counted) => counted,
                None => self.header_keys.entry(key.into_owned()).or_default(),
            };
            *count += 1;
            *bytes += header.value.map_or(0, <[u8]>::len) as u64;
        }
    }
}

/// Bytes of key, value and headers.
fn content(record: &Record<'_>) -> u64 {
    let key_and_value = record.key().map_or(0, <[u8]>::len) + record.value().map_or(0, <[u8]>::len);
    (key_and_value + record.headers().parts().0.len()) as u64
}

/// Writes the uncompressed batches in `data`.
fn write(data: &[u8], layout: Layout, leaves_last_out: bool) -> Result<Trial> {
    let compressor = Compressor::with_level(layout.codec, layout.level)?;
    let mut writer =
        Writer { compressor, decompressor: Decompressor::new(), out: Vec::new(), trial: Trial::default() };
    match layout.batch_bytes {
        None => writer.keep_batches(data)?,
        Some(size) => writer.pack(data, size, leaves_last_out)?,
    }
    Ok(writer.trial)
}

struct Writer {
    compressor: Compressor,
    decompressor: Decompressor,
    out: Vec<u8>,
    trial: Trial,
}

impl Writer {
    fn keep_batches(&mut self, data: &[u8]) -> Result<()> {
        for batch in Batches::new(data) {
            let batch = batch?;
            let begin = Instant::now();
            let Some(v2) = batch.as_v2() else { continue };
            let mut header = v2.header();
            header.attributes = header.attributes & !i16::from(COMPRESSION) | self.compressor.codec() as i16;
            let payload = &batch.as_bytes()[RECORD_BATCH_OVERHEAD..];
            self.out.clear();
            append_batch(&header, self.compressor.compress(2, payload)?, &mut self.out)?;
            self.written(begin, batch.size_in_bytes())?;
        }
        Ok(())
    }

    fn pack(&mut self, data: &[u8], size: usize, leaves_last_out: bool) -> Result<()> {
        let mut section = BatchBuilder::new();
        let mut decompressor = Decompressor::new();
        let mut begin = Instant::now();
        for batch in Batches::new(data) {
            for record in batch?.records(&mut decompressor)? {
                let record = record?;
                let headers = HeaderFields::Stored(record.headers());
                let of = |section: &BatchBuilder| {
                    let position = (record.offset(), record.timestamp());
                    section.fields(position, record.attributes(), (record.key(), record.value()), headers)
                };
                let is_full = RECORD_BATCH_OVERHEAD + section.records_size() + of(&section).size() > size;
                if section.count() > 0 && (is_full || section.check_offset(record.offset()).is_err()) {
                    self.finish(&section, begin)?;
                    begin = Instant::now();
                    section.start(record.offset(), record.timestamp());
                } else if section.count() == 0 {
                    section.start(record.offset(), record.timestamp());
                }
                let fields = of(&section);
                section.append(&fields);
            }
        }
        // A last batch that is alone says more than none.
        if section.count() > 0 && (!leaves_last_out || self.trial.batches == 0) {
            self.finish(&section, begin)?;
        }
        Ok(())
    }

    fn finish(&mut self, section: &BatchBuilder, begin: Instant) -> Result<()> {
        self.out.clear();
        section.finish(section.header(), &mut self.compressor, &mut self.out)?;
        self.written(begin, RECORD_BATCH_OVERHEAD + section.records_size())
    }

    /// Counts the batch in `out`, and reads it.
    fn written(&mut self, begin: Instant, decompressed: usize) -> Result<()> {
        self.trial.encode_ns += begin.elapsed().as_nanos() as u64;
        self.trial.batches += 1;
        self.trial.decompressed += decompressed as u64;
        self.trial.size += self.out.len() as u64;
        self.trial.batch_ratios += decompressed as f64 / self.out.len() as f64;
        let begin = Instant::now();
        let batch = Batch::from_frame(&self.out, 0)?;
        batch.verify()?;
        let mut sum = 0;
        batch.records(&mut self.decompressor)?.visit(|record| sum += content(&record))?;
        self.trial.content += sum;
        self.trial.decode_ns += begin.elapsed().as_nanos() as u64;
        Ok(())
    }
}
