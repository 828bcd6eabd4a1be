//! Decoding a partition's log to a stream of Arrow batches.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::bytes::Bytes;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use magicbyte::{Decompressor, Error};
use magicbyte_log::{
    DamageMode, Disposition, LogBatches, LogError, LogResult, PartitionLog, Problem, Problems, ReadOptions,
};

use crate::batch_decoder::{BatchDecoder, Checks, Framed};
use crate::record_columns::RecordColumns;
use crate::schema::records_schema;
use crate::selection::Selection;
use crate::source::{Failure, Source};
use crate::stream::{Stream, StreamOptions};

/// The findings of a stream over a log besides records; reset when the stream starts to read.
#[non_exhaustive]
#[derive(Debug, Default)]
pub struct Findings {
    /// The damage skipped so far ([`DamageMode::Permissive`]), including torn tails.
    pub problems: Problems,
    /// The end (exclusive) of what is read: the requested end offset, or the last stable offset. `None` until
    /// the stream has started.
    pub end_offset: Option<i64>,
    /// The sums of what has been read so far.
    pub counts: ReadCounts,
}

/// The sums of one read of a log, so far. The bytes of segments that are in none of the sums were not read:
/// they are outside of the request, or not yet reached.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Batches that were read, including control batches and those of aborted transactions.
    pub batches: u64,
    /// Their bytes.
    pub good_bytes: u64,
    /// Bytes that could not be read.
    pub quarantined_bytes: u64,
    /// Bytes after the last batches.
    pub tail_bytes: u64,
    /// Records delivered.
    pub rows: u64,
}

/// A stream of the data records of a log, as a consumer sees them. Nothing is read before the first Arrow
/// batch is requested. Memory is that of one Arrow batch, or as described at [`StreamOptions::threads`].
#[derive(Debug)]
pub struct LogStream {
    stream: Stream<LogSource>,
    findings: Arc<Mutex<Findings>>,
    /// Rows delivered.
    rows: u64,
}

impl LogStream {
    /// A stream over `log`. `options` selects records and columns; `read` has the other settings, its ranges
    /// are ignored. Damage is reported in `findings`.
    #[must_use]
    pub fn new(
        log: PartitionLog,
        read: ReadOptions,
        options: StreamOptions,
        findings: Arc<Mutex<Findings>>,
    ) -> Self {
        let Selection { start_offset, end_offset, start_timestamp, .. } = options.selection;
        // No record before the start timestamp is selected, so the log is read from there.
        let read = ReadOptions { start_offset, end_offset, start_timestamp, ..read };
        let (schema, threads) = (records_schema(&options.columns, options.flavour), options.threads);
        let (topic, partition) = (log.listing().topic.clone(), log.listing().partition);
        let selection = options.selection;
        let shared = Arc::clone(&findings);
        let source = LogSource {
            partition: log,
            read,
            last: None,
            selection,
            batches: None,
            findings,
            counts: ReadCounts::default(),
            segment: None,
            undecodable_bytes: 0,
        };
        let decoder = move || {
            let columns = RecordColumns::new(&options.columns, options.flavour, &topic, partition);
            // The log's reader has already checked the CRCs of batches.
            let checks = Checks { batches: false, messages: read.check_crcs };
            BatchDecoder::new(columns, Decompressor::with_limit(read.max_decompressed_bytes), checks)
        };
        Self { stream: Stream::new(source, schema, threads, decoder), findings: shared, rows: 0 }
    }

    /// Reads only the last records of this number in the range of offsets, which are looked for when the first
    /// Arrow batch is requested: see [`PartitionLog::start_of_last`]. Ranges of timestamps select from them.
    #[must_use]
    pub fn last(mut self, count: u64) -> Self {
        self.stream.source_mut().last = Some(count);
        self
    }
}

#[derive(Debug)]
struct LogSource {
    partition: PartitionLog,
    read: ReadOptions,
    last: Option<u64>,
    selection: Selection,
    /// Opened when the first batch is read.
    batches: Option<LogBatches>,
    findings: Arc<Mutex<Findings>>,
    /// The sums but for the rows. Another stream may have reset those in `findings`.
    counts: ReadCounts,
    /// The name of the last batch's segment, to be shared with the next batch.
    segment: Option<Arc<str>>,
    /// The bytes of batches that were read but do not decode.
    undecodable_bytes: u64,
}

fn lock(findings: &Mutex<Findings>) -> MutexGuard<'_, Findings> {
    findings.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LogSource {
    fn open(&self) -> LogResult<LogBatches> {
        let Some(count) = self.last else { return self.partition.batches(self.read) };
        let start = self.partition.start_of_last(count, self.read)?;
        self.partition.batches(ReadOptions { start_offset: start.or(self.read.start_offset), ..self.read })
    }

    fn show_counts(&self, findings: &mut Findings) {
        findings.counts = ReadCounts { rows: findings.counts.rows, ..self.counts };
    }
}

impl Source for LogSource {
    fn next(&mut self) -> Result<Option<Framed>, Failure> {
        if self.batches.is_none() {
            let batches = self.open()?;
            *lock(&self.findings) =
                Findings { end_offset: Some(batches.end_offset()), ..Findings::default() };
            self.batches = Some(batches);
        }
        let Some(batches) = &mut self.batches else { return Ok(None) };
        let (mut passed, mut bytes) = (0, 0);
        let next = batches.find(|batch| {
            let Ok(batch) = batch else { return true };
            passed += 1;
            bytes += batch.data.data().len() as u64;
            batch.disposition == Disposition::Rows
        });
        let (new, unread) = (batches.take_problems(), batches.unread_bytes());
        self.counts.batches += passed;
        self.counts.good_bytes += bytes;
        self.counts.quarantined_bytes = unread.quarantined + self.undecodable_bytes;
        self.counts.tail_bytes = unread.tail;
        {
            let mut findings = lock(&self.findings);
            findings.problems.join(new);
            self.show_counts(&mut findings);
        }
        let Some(batch) = next.transpose()? else { return Ok(None) };
        let selection = Selection {
            start_offset: Some(batch.start_offset),
            end_offset: (batch.end_offset < i64::MAX).then_some(batch.end_offset),
            ..self.selection
        };
        let segment = match self.segment.take().filter(|segment| **segment == *batch.segment) {
            Some(segment) => segment,
            None => batch.segment.as_str().into(),
        };
        self.segment = Some(Arc::clone(&segment));
        let (data, position) = (batch.data.data().clone(), batch.data.position());
        Ok(Some(Framed { data, following: Bytes::new(), position, selection, segment: Some(segment) }))
    }

    fn bad(&mut self, framed: &Framed, error: Error) -> Result<(), Failure> {
        let segment = framed.segment.as_deref().unwrap_or_default();
        let size = framed.data.len() as u64;
        self.undecodable_bytes += size;
        self.counts.batches -= 1;
        self.counts.good_bytes -= size;
        self.counts.quarantined_bytes += size;
        self.show_counts(&mut lock(&self.findings));
        if self.read.mode == DamageMode::FailFast {
            return Err(LogError::Format { path: segment.into(), error }.into());
        }
        // The whole batch is damaged: none of its records are delivered.
        let listing = self.partition.listing();
        let range = framed.position..framed.position + size;
        let problem = Problem::of_bytes(&listing.topic, listing.partition, segment, range, &error);
        lock(&self.findings).problems.note(problem);
        Ok(())
    }
}

impl Iterator for LogStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.stream.next();
        if let Some(Ok(batch)) = &next {
            self.rows += batch.num_rows() as u64;
            lock(&self.findings).counts.rows = self.rows;
        }
        next
    }
}

impl RecordBatchReader for LogStream {
    fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }
}
