//! The second pass: writes a group of segments as one, without superseded, expired or redacted records
//! (`Cleaner.cleanInto`, `MemoryRecords.filterTo`).

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use magicbyte::internals::{Encoder, Fate, empty_of, is_bare};
use magicbyte::state::ProducerEvent;
use magicbyte::{Batch, Batches, ControlType, Decompressor, ErrorKind, Record, RecordBatch, Result};

use crate::cleaner::decoded_batch::DecodedBatch;
use crate::cleaner::index_keys::{IndexedChunk, has_numbers};
use crate::cleaner::key_set::KeySet;
use crate::cleaner::last_records::LastRecords;
use crate::cleaner::plan::{CleanerChunk, SegmentGroup};
use crate::cleaner::prior_state::PriorState;
use crate::cleaner::producer_summary::ProducerSummary;
use crate::error::{LogError, LogResult};
use crate::problem::{LISTED, Problems};
use crate::read::accounting::ChunkResult;
use crate::read::chunk_reader::{BatchCounts, ChunkReader, Disposition};
use crate::read::options::DamageMode;
use crate::segment::reader::SegmentBatch;
use crate::write::options::WriteOptions;
use crate::write::partition_writer::PartitionWriter;
use crate::write::segment_fold::SegmentSummary;

/// The rule for removing records.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Rule {
    /// All but the last record of each key.
    Compact {
        /// The current time (ms).
        now: i64,
        /// `delete.retention.ms`.
        delete_retention_ms: i64,
        /// All of the log's lists from [`reduce_keys`](crate::steps::reduce_keys).
        lists: Vec<PathBuf>,
    },
    /// The selected records.
    Redact(Selection),
}

/// The records to redact, in addition to those in [`IndexedChunk::selected`].
#[derive(Clone, Debug)]
pub struct Selection {
    /// Records with one of these keys.
    pub keys: Arc<KeySet>,
    /// True if the records are kept as tombstones, with key, offset and timestamp but neither value nor
    /// headers.
    pub tombstones: bool,
}

/// Options of cleaning a group.
#[derive(Clone, Debug)]
pub struct CleanOptions {
    /// The rule for removing records.
    pub rule: Rule,
    /// The offset where cleaning ends (exclusive): the batch before it is kept, if necessary without records.
    pub clean_until: i64,
    /// The limit for one batch, stored or decompressed, in bytes.
    pub max_decompressed_bytes: usize,
    /// The handling of damage, and of a batch that can only be copied.
    pub mode: DamageMode,
    /// Options for indexing segments. A group is written as one segment unless its offsets or positions do
    /// not fit.
    pub write: WriteOptions,
}

/// Counts of records and batches by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct CleanCounts {
    /// Records written.
    pub kept: u64,
    /// Records dropped because their key has a later record.
    pub superseded: u64,
    /// Tombstones dropped because their retention time was over.
    pub expired_tombstones: u64,
    /// Records dropped because their transaction was aborted.
    pub aborted: u64,
    /// Records dropped because they have no key.
    pub keyless: u64,
    /// Control records dropped because their transaction was empty and their retention time was over.
    pub markers: u64,
    /// Records dropped because they were selected.
    pub redacted: u64,
    /// Records written as tombstones because they were selected (also counted as kept).
    pub nulled: u64,
    /// Batches copied unchanged.
    pub copied_batches: u64,
    /// Batches rewritten.
    pub rewritten_batches: u64,
    /// Batches that lost no records, only bytes that no reader returns (also counted as rewritten, emptied or
    /// dropped).
    pub stripped_batches: u64,
    /// Batches reduced to their header.
    pub emptied_batches: u64,
    /// Batches dropped entirely.
    pub dropped_batches: u64,
}

/// The offsets of one segment's redacted records (inclusive).
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct RedactedOffsets {
    /// The segment's file name.
    pub segment: String,
    /// The number of records.
    pub records: u64,
    /// The first and last offset of each of the first [`LISTED`] runs.
    pub ranges: Vec<(i64, i64)>,
    /// The number of records in further runs.
    pub records_left_out: u64,
}

/// The result of cleaning a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Cleaned {
    /// The account of each chunk.
    pub results: Vec<ChunkResult>,
    /// Damage, and batches that could only be copied.
    #[serde(flatten)]
    pub problems: Problems,
    /// The segments written, for [`finish_partition`](crate::finish_partition).
    pub segments: Vec<SegmentSummary>,
    /// The counts of all chunks.
    pub counts: CleanCounts,
    /// The offsets of redacted records.
    pub redacted: Vec<RedactedOffsets>,
    /// The keys that redacted records had: one bit per number in the [`KeySet`], without trailing zero words.
    pub matched: Vec<u64>,
}

/// Writes a group of segments as one in `directory`, even if no record is left. `indexed` is the first pass's
/// result for the group's chunks.
///
/// # Errors
/// [`LogError::Io`]; [`LogError::Usage`] if the batches have changed since the first pass; with
/// [`DamageMode::FailFast`], [`LogError::Format`] at the first damage, which otherwise is not an error.
pub fn clean_group(
    group: &SegmentGroup,
    indexed: &[IndexedChunk],
    producer_summary: &ProducerSummary,
    directory: impl AsRef<Path>,
    options: &CleanOptions,
) -> LogResult<Cleaned> {
    let directory = directory.as_ref();
    let write = WriteOptions { segment_bytes: i32::MAX as u32, segment_ms: None, ..options.write };
    let mut cleaner = Cleaner {
        encoder: Encoder::default(),
        decompressor: Decompressor::with_limit(options.max_decompressed_bytes),
        producer_summary,
        options,
        writer: PartitionWriter::create(directory, group.base_offset, write)?,
        fates: Vec::new(),
        last: LastRecords::default(),
        record: 0,
        selected: Vec::new(),
        prior: vec![PriorState::default()],
        cleaned: Cleaned::default(),
    };
    for (chunk, indexed) in group.chunks.iter().zip(indexed) {
        cleaner.chunk(chunk, indexed)?;
    }
    let Cleaner { writer, prior, mut cleaned, .. } = cleaner;
    cleaned.segments = writer.finish()?;
    for (segment, prior) in cleaned.segments.iter_mut().zip(prior) {
        prior.apply_to(segment);
        let path = Path::new(&segment.directory).join(format!("{:020}.log", segment.base_offset));
        set_modified(&path, group.modified_ms).map_err(|e| LogError::io(&path, e))?;
    }
    Ok(cleaned)
}

/// A broker uses a segment's age where batches have no timestamps.
fn set_modified(path: &Path, modified_ms: i64) -> io::Result<()> {
    match u64::try_from(modified_ms) {
        Ok(time) => {
            File::options().write(true).open(path)?.set_modified(UNIX_EPOCH + Duration::from_millis(time))
        }
        Err(_) => Ok(()),
    }
}

struct Cleaner<'a> {
    encoder: Encoder,
    decompressor: Decompressor,
    producer_summary: &'a ProducerSummary,
    options: &'a CleanOptions,
    writer: PartitionWriter,
    /// The fates of the current batch's records.
    fates: Vec<Fate>,
    /// The last records in the current chunk.
    last: LastRecords,
    /// The number of the current chunk's next record.
    record: u64,
    /// Runs of selected records of the current batch.
    selected: Vec<(u32, u32)>,
    /// For each segment written, the state before cleaning of the batches that went into it.
    prior: Vec<PriorState>,
    cleaned: Cleaned,
}

/// The result of cleaning a batch.
struct Outcome {
    counts: BatchCounts,
    sums: CleanCounts,
    event: Option<ProducerEvent>,
    is_outside: bool,
    /// True if the records' offsets are out of order, so the batch was copied whole.
    unordered: bool,
}

impl Cleaner<'_> {
    fn chunk(&mut self, cleaner: &CleanerChunk, indexed: &IndexedChunk) -> LogResult<()> {
        let chunk = &cleaner.chunk;
        let io = |error: io::Error| LogError::io(chunk.location.path(), error);
        let limit = self.options.max_decompressed_bytes;
        let mut reader = ChunkReader::open(chunk.clone(), true, limit).map_err(io)?;
        reader = reader.max_problems(LISTED);
        self.record = 0;
        if let (Rule::Compact { lists, .. }, true) = (&self.options.rule, cleaner.cleaned) {
            self.last = LastRecords::of(cleaner.number, indexed.records, lists)?;
        }
        self.cleaned.redacted.push(RedactedOffsets { segment: chunk.segment.clone(), ..Default::default() });
        let mut out = Vec::new();
        let mut selected = indexed.selected.iter().peekable();
        while let Some((data, disposition)) = reader.next_batch().map_err(io)? {
            out.clear();
            self.selected.clear();
            while let Some((position, runs)) = selected.next_if(|(at, _)| *at <= data.position()) {
                if *position == data.position() {
                    self.selected.extend_from_slice(runs);
                }
            }
            let next_offset = reader.next_offset();
            let batch = data.batch();
            match self.batch(&batch, disposition, cleaner, next_offset, &mut out) {
                Ok(outcome) => {
                    if has_numbers(disposition) && !outcome.is_outside {
                        self.record += outcome.counts.announced;
                    }
                    if outcome.unordered {
                        self.note_unordered(cleaner, &data)?;
                    }
                    self.cleaned.counts.add(&outcome.sums);
                    reader.good(&data, batch.last_offset(), disposition, outcome.counts);
                    for batch in Batches::new(&out).flatten() {
                        self.writer.append(&batch)?;
                    }
                    self.prior.resize_with(self.writer.segments(), PriorState::default);
                    if let (false, Some(prior)) = (outcome.is_outside, self.prior.last_mut()) {
                        prior.add(&batch, outcome.event);
                    }
                }
                Err(error) => reader.bad(&data, &error),
            }
            reader.check_damage(self.options.mode)?;
        }
        reader.check_damage(self.options.mode)?;
        reader.move_problems(&mut self.cleaned.problems);
        // Redaction may have to reject a batch that the first pass, which does not know the keys, accepted.
        // Then the accounts differ although the batches are the same.
        let is_compact = matches!(self.options.rule, Rule::Compact { .. });
        if reader.checksum() != indexed.checksum || is_compact && reader.result() != &indexed.result {
            return Err(LogError::Usage(format!("{}: changed while it was read", chunk.location)));
        }
        self.cleaned.results.push(reader.result().clone());
        if self.cleaned.redacted.last().is_some_and(|redacted| redacted.records == 0) {
            self.cleaned.redacted.pop();
        }
        Ok(())
    }

    fn note_unordered(&mut self, cleaner: &CleanerChunk, data: &SegmentBatch) -> LogResult<()> {
        let (start, size) = (data.position(), data.data().len() as u64);
        let batch = data.batch();
        let error = batch.place(
            ErrorKind::InvalidRecord("the records' offsets do not rise: copied unchanged, not cleaned")
                .into(),
        );
        if self.options.mode == DamageMode::FailFast {
            return Err(LogError::Format { path: cleaner.chunk.location.path().to_owned(), error });
        }
        self.cleaned.problems.note(cleaner.chunk.problem(start..start + size, &error));
        Ok(())
    }

    /// Appends the kept part of the batch to `out`.
    fn batch(
        &mut self,
        batch: &Batch<'_>,
        disposition: Disposition,
        cleaner: &CleanerChunk,
        next_offset: i64,
        out: &mut Vec<u8>,
    ) -> Result<Outcome> {
        // Taken out so that `clean` can borrow the rest.
        let mut decompressor = std::mem::take(&mut self.decompressor);
        let read = DecodedBatch::read(batch, &mut decompressor, &cleaner.chunk, next_offset);
        let outcome = read.and_then(|read| self.clean(&read, disposition, cleaner, out));
        self.decompressor = decompressor;
        outcome
    }

    fn clean(
        &mut self,
        read: &DecodedBatch<'_, '_>,
        disposition: Disposition,
        cleaner: &CleanerChunk,
        out: &mut Vec<u8>,
    ) -> Result<Outcome> {
        let (event, is_outside) = (read.event, read.is_outside);
        let sums = CleanCounts::default();
        let mut outcome = Outcome { counts: read.counts, sums, event, is_outside, unordered: false };
        if is_outside {
            return Ok(outcome);
        }
        let batch = read.decoded.batch;
        let kept_part = match &self.options.rule {
            _ if !cleaner.cleaned => None,
            Rule::Redact(selection) => self.redact(read, selection, disposition, &mut outcome.sums)?,
            Rule::Compact { .. } if !read.rises => {
                outcome.unordered = true;
                None
            }
            Rule::Compact { now, delete_retention_ms, .. } => {
                let times = (*now, *delete_retention_ms);
                Some(self.compact(read, disposition, cleaner, times, &mut outcome.sums))
            }
        };
        let sums = &mut outcome.sums;
        let is_written = match &kept_part {
            Some(Kept::Rewritten { .. }) => true,
            Some(Kept::Nothing) => self.must_stay(batch),
            Some(Kept::Whole) | None => false,
        };
        if is_written && read.overlaps {
            let (found, expected) = (read.counts.first_offset.unwrap_or(0), self.writer.next_offset());
            return Err(batch.place(ErrorKind::OffsetOutOfOrder { found, expected }.into()));
        }
        match kept_part {
            Some(Kept::Rewritten { delete_horizon_ms }) => {
                self.encoder.retain(&read.decoded, &self.fates, delete_horizon_ms, out)?;
                sums.kept += self.fates.iter().filter(|&&fate| fate != Fate::Drop).count() as u64;
                sums.rewritten_batches += 1;
            }
            Some(Kept::Nothing) if is_written => {
                empty_of(&read.decoded, out)?;
                sums.emptied_batches += 1;
            }
            Some(Kept::Nothing) => sums.dropped_batches += 1,
            Some(Kept::Whole) | None => {
                out.extend_from_slice(batch.as_bytes());
                sums.kept += read.counts.announced;
                sums.copied_batches += 1;
            }
        }
        Ok(outcome)
    }

    /// True if the batch must be kept even without records: for a producer's last sequence or epoch, or
    /// because it ends the cleaned part of the log.
    fn must_stay(&self, batch: &Batch<'_>) -> bool {
        let is_last = |batch: &RecordBatch<'_>| {
            batch.producer_id() >= 0 && self.producer_summary.is_last_of_producer(batch)
        };
        let has_producer_state = batch.as_v2().is_some_and(is_last);
        has_producer_state || batch.last_offset().checked_add(1) == Some(self.options.clean_until)
    }

    fn compact(
        &mut self,
        read: &DecodedBatch<'_, '_>,
        disposition: Disposition,
        cleaner: &CleanerChunk,
        (now, delete_retention_ms): (i64, i64),
        sums: &mut CleanCounts,
    ) -> Kept {
        let batch = read.decoded.batch;
        let horizon = batch.delete_horizon_ms();
        let count = read.counts.announced;
        let mut marker_of_empty = false;
        match disposition {
            Disposition::Aborted => {
                sums.aborted += count;
                return Kept::Nothing;
            }
            Disposition::Control => {
                marker_of_empty = match read.control {
                    // Emptied by an earlier cleaning.
                    None => count == 0,
                    Some(ControlType::Abort | ControlType::Commit) => {
                        !self.producer_summary.has_data(batch.stored_offset())
                    }
                    Some(_) => false,
                };
                if marker_of_empty && horizon.is_some_and(|horizon| horizon <= now) {
                    sums.markers += count;
                    return Kept::Nothing;
                }
            }
            Disposition::Rows => {}
        }
        let tombstones_stay = match batch {
            Batch::V2(_) => horizon.is_none_or(|horizon| now < horizon),
            Batch::Legacy(_) => cleaner.retain_legacy_tombstones,
        };
        self.fates.clear();
        let mut has_tombstones = false;
        for (record, number) in read.records.iter().zip(self.record..) {
            let dropped = match record.key {
                _ if disposition == Disposition::Control => None,
                None => Some(&mut sums.keyless),
                Some(_) if !self.last.contains(number) => Some(&mut sums.superseded),
                Some(_) if !record.has_value && !tombstones_stay => Some(&mut sums.expired_tombstones),
                Some(_) => None,
            };
            has_tombstones |= dropped.is_none() && !record.has_value;
            self.fates.push(if dropped.is_some() { Fate::Drop } else { Fate::Keep });
            if let Some(sum) = dropped {
                *sum += 1;
            }
        }
        if self.fates.iter().all(|&fate| fate == Fate::Drop) {
            return Kept::Nothing;
        }
        let sets_horizon = (has_tombstones || marker_of_empty) && horizon.is_none();
        if batch.magic() == 2 && !sets_horizon && self.fates.iter().all(|&fate| fate == Fate::Keep) {
            return Kept::Whole;
        }
        let new = sets_horizon.then(|| now.saturating_add(delete_retention_ms));
        Kept::Rewritten { delete_horizon_ms: new.or(horizon) }
    }

    /// None if the batch is kept whole: no record is removed, and all its bytes are visible to readers.
    fn redact(
        &mut self,
        read: &DecodedBatch<'_, '_>,
        selection: &Selection,
        disposition: Disposition,
        sums: &mut CleanCounts,
    ) -> Result<Option<Kept>> {
        let batch = read.decoded.batch;
        self.fates.clear();
        if disposition == Disposition::Control {
            self.bare(read)?;
        } else {
            self.select(read, selection);
        }
        let fates = &self.fates;
        let count_of = |wanted: Fate| fates.iter().filter(|&&fate| fate == wanted).count() as u64;
        let (dropped, nulled) = (count_of(Fate::Drop), count_of(Fate::Null));
        sums.redacted += dropped;
        sums.nulled += nulled;
        if let Some(redacted) = self.cleaned.redacted.last_mut() {
            redacted.records += dropped + nulled;
            for (record, fate) in read.records.iter().zip(fates) {
                if matches!(fate, Fate::Drop | Fate::Null) {
                    redacted.add(record.offset);
                }
            }
        }
        let keeps_all = fates.iter().all(|&fate| fate == Fate::Keep);
        if keeps_all && !read.decoded.has_unread_bytes()? {
            return Ok(None);
        }
        sums.stripped_batches += u64::from(dropped + nulled == 0);
        if dropped == fates.len() as u64 {
            return Ok(Some(Kept::Nothing));
        }
        Ok(Some(Kept::Rewritten { delete_horizon_ms: batch.delete_horizon_ms() }))
    }

    /// Sets the fates of the records by their keys and their numbers.
    fn select(&mut self, read: &DecodedBatch<'_, '_>, selection: &Selection) {
        let fate = if selection.tombstones { Fate::Null } else { Fate::Drop };
        for (number, record) in (0..).zip(&read.records) {
            let key = record.key.and_then(|key| selection.keys.number_of(key));
            if let Some(key) = key {
                let (word, bit) = (key as usize / 64, key % 64);
                let matched = &mut self.cleaned.matched;
                matched.resize(matched.len().max(word + 1), 0);
                matched[word] |= 1 << bit;
            }
            let run = self.selected.partition_point(|&(_, last)| last < number);
            let is_selected =
                key.is_some() || self.selected.get(run).is_some_and(|&(first, _)| first <= number);
            self.fates.push(if is_selected { fate } else { Fate::Keep });
        }
    }

    /// Sets the fates of control records, which cannot be selected. They are reduced to their meaning. A
    /// producer's batch keeps only its first record; other batches also keep later records with a type.
    fn bare(&mut self, read: &DecodedBatch<'_, '_>) -> Result<()> {
        let is_producers = read.decoded.batch.has_producer_id();
        for (number, record) in read.decoded.records().enumerate() {
            self.fates.push(match record? {
                record if number > 0 && (is_producers || !has_type(&record)) => Fate::Drop,
                record if is_bare(&record) => Fate::Keep,
                _ => Fate::Bare,
            });
        }
        Ok(())
    }
}

fn has_type(record: &Record<'_>) -> bool {
    record.key().is_some_and(|key| ControlType::parse(key).is_ok())
}

impl RedactedOffsets {
    fn add(&mut self, offset: i64) {
        let is_full = self.ranges.len() >= LISTED;
        match self.ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(offset) => *last = offset,
            _ if is_full => self.records_left_out += 1,
            _ => self.ranges.push((offset, offset)),
        }
    }
}

/// The part of a batch that is kept.
enum Kept {
    Whole,
    Rewritten { delete_horizon_ms: Option<i64> },
    Nothing,
}

impl CleanCounts {
    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        let Self {
            kept,
            superseded,
            expired_tombstones,
            aborted,
            keyless,
            markers,
            redacted,
            nulled,
            copied_batches,
            rewritten_batches,
            stripped_batches,
            emptied_batches,
            dropped_batches,
        } = other;
        self.kept += kept;
        self.superseded += superseded;
        self.expired_tombstones += expired_tombstones;
        self.aborted += aborted;
        self.keyless += keyless;
        self.markers += markers;
        self.redacted += redacted;
        self.nulled += nulled;
        self.copied_batches += copied_batches;
        self.rewritten_batches += rewritten_batches;
        self.stripped_batches += stripped_batches;
        self.emptied_batches += emptied_batches;
        self.dropped_batches += dropped_batches;
    }
}
