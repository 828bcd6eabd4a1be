//! The first pass: collects the keys of a run of chunks, and facts about producers from their batches.

use std::io;
use std::path::{Path, PathBuf};

use magicbyte::internals::ProducerEvents;
use magicbyte::state::ProducerEvent;
use magicbyte::{Batch, Decompressor, Result};

use crate::cleaner::decoded_batch::DecodedBatch;
use crate::cleaner::key_map::{KeyMap, KeyMapOptions};
use crate::cleaner::last_records::record_position;
use crate::cleaner::plan::CleanerChunk;
use crate::error::{LogError, LogResult};
use crate::read::accounting::ChunkResult;
use crate::read::chunk_reader::{BatchCounts, ChunkReader, Disposition};
use crate::read::options::DamageMode;

/// The first pass's result for one chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct IndexedChunk {
    /// [`CleanerChunk::number`].
    pub number: u32,
    /// The number of the chunk's records that have a number.
    pub records: u64,
    /// The account, which the second pass must reproduce.
    pub result: ChunkResult,
    /// [`ChunkReader::checksum`], which the second pass must reproduce.
    pub checksum: u32,
    /// Records selected for redaction: the position of each batch, and the first and last number, from 0, of
    /// each run of its records; both in order.
    #[serde(default)]
    pub selected: Vec<(u64, Vec<(u32, u32)>)>,
}

/// The first pass's result for a run of chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct IndexedKeys {
    /// The result of each chunk.
    pub chunks: Vec<IndexedChunk>,
    /// Producer events, in offset order.
    pub producers: Vec<ProducerEvent>,
    /// The files of spilled keys, by part of the hash.
    pub files: Vec<Option<PathBuf>>,
}

/// Reads adjacent chunks of one log. With `keys`, spills the keys of chunks to be cleaned into files in the
/// given directory, for [`reduce_keys`](crate::steps::reduce_keys). `record_size_limit` is the topic's
/// `max.decompressed.message.bytes`, which makes Kafka's `Cleaner` fail since 4.4.
///
/// # Errors
/// [`LogError::Io`]; [`LogError::Format`] for a record of a compressed batch, in a chunk to be cleaned, that is
/// over the limit; with [`DamageMode::FailFast`], [`LogError::Format`] at the first damage, which otherwise is
/// not an error and is reported by the second pass.
pub fn index_keys(
    chunks: &[CleanerChunk],
    keys: Option<(&Path, KeyMapOptions)>,
    max_decompressed_bytes: usize,
    record_size_limit: Option<usize>,
    mode: DamageMode,
) -> LogResult<IndexedKeys> {
    let mut indexer = Indexer {
        map: keys.map(|(directory, options)| KeyMap::new(directory, options, 0)),
        producers: ProducerEvents::default(),
        decompressor: Decompressor::with_limit(max_decompressed_bytes),
        max_decompressed_bytes,
        record_size_limit,
        mode,
    };
    let indexed = chunks.iter().map(|chunk| indexer.chunk(chunk)).collect::<LogResult<_>>()?;
    Ok(IndexedKeys {
        chunks: indexed,
        producers: indexer.producers.into_events(),
        files: indexer.map.map_or(Ok(Vec::new()), KeyMap::into_files)?,
    })
}

struct Indexer {
    map: Option<KeyMap>,
    producers: ProducerEvents,
    decompressor: Decompressor,
    max_decompressed_bytes: usize,
    record_size_limit: Option<usize>,
    mode: DamageMode,
}

impl Indexer {
    fn chunk(&mut self, cleaner: &CleanerChunk) -> LogResult<IndexedChunk> {
        let chunk = &cleaner.chunk;
        let io = |error: io::Error| LogError::io(chunk.location.path(), error);
        let mut reader = ChunkReader::open(chunk.clone(), true, self.max_decompressed_bytes).map_err(io)?;
        reader = reader.max_problems(0);
        let mut records = 0;
        while let Some((data, disposition)) = reader.next_batch().map_err(io)? {
            reader.check_damage(self.mode)?;
            let batch = data.batch();
            match self.batch(&batch, disposition, cleaner, (records, reader.next_offset())) {
                Ok((counts, put)) => {
                    put?;
                    if has_numbers(disposition) && counts.outside + counts.deleted == 0 {
                        records += counts.announced;
                    }
                    reader.good(&data, batch.last_offset(), disposition, counts);
                }
                Err(error) => reader.bad(&data, &error),
            }
        }
        reader.check_damage(self.mode)?;
        let (result, checksum) = (reader.result().clone(), reader.checksum());
        Ok(IndexedChunk { number: cleaner.number, records, result, checksum, selected: Vec::new() })
    }

    /// The outer error rejects a bad batch; the inner one is a record over the limit, or a map that cannot spill.
    fn batch(
        &mut self,
        batch: &Batch<'_>,
        disposition: Disposition,
        cleaner: &CleanerChunk,
        (first, next_offset): (u64, i64),
    ) -> Result<(BatchCounts, LogResult<()>)> {
        let read = DecodedBatch::read(batch, &mut self.decompressor, &cleaner.chunk, next_offset)?;
        if read.is_outside {
            return Ok((read.counts, Ok(())));
        }
        if let Some(event) = read.event {
            self.producers.add(event);
        }
        let mut put = Ok(());
        if let (Some(limit), true) = (self.record_size_limit, cleaner.cleaned)
            && let Err(error) =
                batch.records_up_to(read.decoded.payload(), limit).and_then(|records| records.visit(|_| {}))
        {
            let path = cleaner.chunk.location.path().to_owned();
            return Ok((read.counts, Err(LogError::Format { path, error })));
        }
        if let (Some(map), true) = (&mut self.map, cleaner.cleaned && read.rises && has_numbers(disposition))
        {
            put = read.records.iter().zip(first..).try_for_each(|(record, number)| match record.key {
                Some(key) => map.put(key, record_position(cleaner.number, number)?),
                None => Ok(()),
            });
        }
        Ok((read.counts, put))
    }
}

/// True if the batch's records have numbers: only delivered data has them.
pub(crate) fn has_numbers(disposition: Disposition) -> bool {
    disposition == Disposition::Rows
}
