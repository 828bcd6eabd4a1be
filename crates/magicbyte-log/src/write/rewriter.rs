//! Reads chunks of a log, converts their batches and writes them into segments: a task of `convert` and
//! `recover`. Gaps and empty batches, which Kafka's `Cleaner` leaves, are kept.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use magicbyte::convert::{Losses, set_partition_leader_epoch};
use magicbyte::internals::{Decoded, Encoder, Packer, each_batch};
use magicbyte::{
    Batch, Batches, Compression, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, ErrorKind, Result,
};

use crate::chunk::Chunk;
use crate::error::{LogError, LogResult};
use crate::problem::{LISTED, Problems};
use crate::read::accounting::ChunkResult;
use crate::read::chunk_reader::{BatchCounts, ChunkReader};
use crate::write::options::WriteOptions;
use crate::write::partition_writer::PartitionWriter;
use crate::write::segment_fold::SegmentSummary;

/// Options for converting batches from one log to another.
#[derive(Clone, Copy, Debug)]
pub struct RewriteOptions {
    /// The magic to write; `None` keeps the magic of each batch.
    pub magic: Option<i8>,
    /// The codec and level to write. `None` keeps the codec of each batch, at Kafka's default level if its
    /// records are compressed again.
    pub compression: Option<(Compression, Option<i32>)>,
    /// Packs records of batches without a producer into batches of up to this many bytes before compression.
    /// Magic 2 only.
    pub rebatch: Option<usize>,
    /// The leader epoch of every magic 2 batch written, from 0 on; `None` keeps the epoch of each batch.
    /// Followers refuse epochs above that of the partition; for another cluster, use 0.
    pub leader_epoch: Option<i32>,
    /// The limit for one batch, stored or decompressed, in bytes.
    pub max_decompressed_bytes: usize,
    /// Options for rolling and indexing segments.
    pub write: WriteOptions,
}

impl Default for RewriteOptions {
    fn default() -> Self {
        Self {
            magic: None,
            compression: None,
            rebatch: None,
            leader_epoch: None,
            max_decompressed_bytes: DEFAULT_MAX_DECOMPRESSED_BYTES,
            write: WriteOptions::default(),
        }
    }
}

/// The result of rewriting a run of chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Rewritten {
    /// The account of each chunk.
    pub results: Vec<ChunkResult>,
    /// Damage, and batches that cannot be converted.
    #[serde(flatten)]
    pub problems: Problems,
    /// The segments written, for [`finish_partition`](crate::finish_partition).
    pub segments: Vec<SegmentSummary>,
    /// Records in the batches written.
    pub records: u64,
    /// The data that was lost because the target magic cannot express it.
    pub losses: Losses,
}

/// Reads adjacent chunks of one partition, in offset order, and writes their batches into segments in
/// `directory`. The first segment has this base offset. If there is no good batch, no file is written. If all
/// good batches end before the log's start, an empty segment is written, whose base offset is the end of the
/// last batch.
///
/// # Errors
/// [`LogError::Io`]; [`LogError::Usage`] for options that exclude each other; [`LogError::Format`] for a
/// batch larger than `segment_bytes`. Damage is not an error.
pub fn rewrite_chunks(
    chunks: &[Chunk],
    directory: impl AsRef<Path>,
    base_offset: i64,
    options: &RewriteOptions,
) -> LogResult<Rewritten> {
    let directory = directory.as_ref();
    let mut rewriter = Rewriter {
        conversion: Conversion::new(options)?,
        decompressor: Decompressor::with_limit(options.max_decompressed_bytes),
        directory,
        base_offset,
        options,
        writer: None,
        modified: None,
        deleted_until: None,
        rewritten: Rewritten::default(),
    };
    chunks.iter().try_for_each(|chunk| rewriter.chunk(chunk))?;
    rewriter.finish()
}

/// The conversion of batches.
enum Conversion {
    Copy,
    Up(Box<Encoder>),
    Recompress(Box<Encoder>),
    Down(Box<Encoder>, i8),
    Rebatch(Box<Packer>),
}

impl Conversion {
    fn new(options: &RewriteOptions) -> LogResult<Self> {
        let usage = |why: &str| Err(LogError::Usage(why.into()));
        let encoder = match options.compression {
            Some((codec, level)) => Encoder::to_codec(codec, level),
            None => Ok(Encoder::default()),
        };
        let encoder = encoder.map_err(|error| LogError::Usage(error.to_string()))?;
        if options.leader_epoch.is_some_and(|epoch| epoch < 0) {
            return usage("a leader epoch is not negative: followers refuse batches without one. Use 0");
        }
        if let (Some(magic), Some((codec, _))) = (options.magic, options.compression) {
            codec.for_magic(magic).map_err(|error| LogError::Usage(error.to_string()))?;
        }
        match (options.magic, options.rebatch) {
            (None | Some(2), Some(size)) => Ok(Self::Rebatch(Box::new(Packer::new(encoder, size)))),
            (_, Some(_)) => usage("rebatching requires magic 2"),
            (Some(2), None) => Ok(Self::Up(Box::new(encoder))),
            (Some(magic @ (0 | 1)), None) => Ok(Self::Down(Box::new(encoder), magic)),
            (None, None) if options.compression.is_some() => Ok(Self::Recompress(Box::new(encoder))),
            (None, None) => Ok(Self::Copy),
            (Some(magic), None) => usage(&format!("magic {magic}: expected 0, 1 or 2")),
        }
    }

    /// Appends the converted batch to `out`; on error `out` is unchanged. A packer may append earlier
    /// batches, or none yet.
    fn convert(&mut self, decoded: &Decoded<'_, '_>, out: &mut Vec<u8>) -> Result<Losses> {
        match self {
            Self::Copy => out.extend_from_slice(decoded.batch.as_bytes()),
            Self::Up(encoder) => encoder.up_convert(decoded, out)?,
            Self::Recompress(encoder) => encoder.recompress(decoded, out)?,
            Self::Down(encoder, magic) => return encoder.down_convert(decoded, *magic, out),
            Self::Rebatch(packer) => packer.push(decoded, out)?,
        }
        Ok(Losses::default())
    }
}

struct Rewriter<'a> {
    conversion: Conversion,
    decompressor: Decompressor,
    directory: &'a Path,
    base_offset: i64,
    options: &'a RewriteOptions,
    /// Created with the first batch.
    writer: Option<PartitionWriter>,
    /// The modification time of the segment being read.
    modified: Option<SystemTime>,
    /// The end of the batches that were left out because they are before the log's start.
    deleted_until: Option<i64>,
    rewritten: Rewritten,
}

impl Rewriter<'_> {
    fn chunk(&mut self, chunk: &Chunk) -> LogResult<()> {
        let io = |error: io::Error| LogError::io(chunk.location.path(), error);
        let mut reader =
            ChunkReader::open(chunk.clone(), true, self.options.max_decompressed_bytes).map_err(io)?;
        reader = reader.max_problems(LISTED);
        // The reader reports a missing segment, and not every file system has times.
        self.modified = chunk.location.modified();
        let mut out = Vec::new();
        while let Some((data, disposition)) = reader.next_batch().map_err(io)? {
            out.clear();
            let converted = self.convert(&data.batch(), chunk, &mut out);
            match converted {
                Ok((counts, losses)) => {
                    self.rewritten.losses += losses;
                    let last_offset = data.batch().last_offset();
                    reader.good(&data, last_offset, disposition, counts);
                    self.write(&mut out, counts.announced)?;
                }
                Err(error) => reader.bad(&data, &error),
            }
        }
        reader.move_problems(&mut self.rewritten.problems);
        self.rewritten.results.push(reader.result().clone());
        Ok(())
    }

    /// Converts the batch and appends it to `out`. Records before the chunk's start are in an earlier
    /// segment. A batch that ends before the log's start is left out. A batch that begins before it keeps the
    /// records that a broker does not return.
    fn convert(
        &mut self,
        batch: &Batch<'_>,
        chunk: &Chunk,
        out: &mut Vec<u8>,
    ) -> Result<(BatchCounts, Losses)> {
        let decoded = Decoded::of(batch, &mut self.decompressor)?;
        let Decoded { count, first_offset, last_offset, .. } = decoded;
        let announced = count.into();
        let mut counts = BatchCounts { announced, first_offset, last_offset, ..BatchCounts::default() };
        if chunk.is_deleted(batch.last_offset()) {
            counts.deleted = counts.announced;
            self.deleted_until = batch.last_offset().checked_add(1);
            return Ok((counts, Losses::default()));
        }
        if let Some(start) =
            chunk.start_offset.filter(|&start| first_offset.is_some_and(|first| first < start))
        {
            if batch.last_offset() >= start {
                let found = batch.stored_offset();
                return Err(batch.place(ErrorKind::OffsetOutOfOrder { found, expected: start }.into()));
            }
            counts.outside = counts.announced;
            return Ok((counts, Losses::default()));
        }
        let losses = self.conversion.convert(&decoded, out)?;
        Ok((counts, losses))
    }

    /// Writes the batches in `out`. If they are legacy, they were converted from one batch with this many
    /// records.
    fn write(&mut self, out: &mut [u8], legacy_records: u64) -> LogResult<()> {
        if out.is_empty() {
            return Ok(());
        }
        if let Some(epoch) = self.options.leader_epoch {
            let set = each_batch(out, |batch| match Batch::from_frame(batch, 0)?.magic() {
                2 => set_partition_leader_epoch(batch, epoch),
                _ => Ok(()),
            });
            set.map_err(|error| LogError::Usage(error.to_string()))?;
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let created = PartitionWriter::create(self.directory, self.base_offset, self.options.write)?;
                none.insert(created)
            }
        };
        if let Some(modified) = self.modified {
            writer.set_modified(modified);
        }
        let mut records = None;
        for batch in Batches::new(out).flatten() {
            writer.append(&batch)?;
            // A legacy batch's header has no record count.
            if let Batch::V2(batch) = &batch {
                *records.get_or_insert(0) += u64::from(batch.record_count().unsigned_abs());
            }
        }
        self.rewritten.records += records.unwrap_or(legacy_records);
        Ok(())
    }

    fn finish(mut self) -> LogResult<Rewritten> {
        if let Conversion::Rebatch(packer) = &mut self.conversion {
            let mut out = Vec::new();
            packer.flush(&mut out).map_err(|error| LogError::Usage(error.to_string()))?;
            self.write(&mut out, 0)?;
        }
        if self.writer.is_none()
            && let Some(end) = self.deleted_until
        {
            let base_offset = end.max(self.base_offset);
            self.writer = Some(PartitionWriter::create(self.directory, base_offset, self.options.write)?);
        }
        if let Some(writer) = self.writer {
            self.rewritten.segments = writer.finish()?;
        }
        Ok(self.rewritten)
    }
}
