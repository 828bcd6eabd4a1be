//! A partition's log as a stream of Arrow batches.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::bytes::Bytes;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use crate::columns::batch_decoder::{BatchDecoder, Checks, Framed};
use crate::columns::record_columns::RecordColumns;
use crate::columns::schema::records_schema;
use crate::columns::selection::Selection;
use crate::columns::source::{Failure, Source};
use crate::columns::stream::{Stream, StreamOptions};
use crate::compression::decompressor::Decompressor;
use crate::error::Error;
use crate::log::error::LogError;
use crate::log::problem::{Problem, Problems};
use crate::log::read::chunk_reader::Disposition;
use crate::log::read::options::{DamageMode, ReadOptions};
use crate::log::read::partition_log::{LogBatches, PartitionLog};

/// What a stream over a log found beside records; it begins anew with the first batch.
#[derive(Debug, Default)]
pub struct Findings {
    /// What was left out so far ([`DamageMode::Permissive`]), torn tails included.
    pub problems: Problems,
    /// Nothing from this offset on: what was asked for, or the last stable offset. None before the start.
    pub end_offset: Option<i64>,
}

/// The data records of a log, as a consumer sees them. Nothing is read before the first batch is asked
/// for; memory is that of one Arrow batch, or as [`StreamOptions::threads`] says.
#[derive(Debug)]
pub struct LogStream(Stream<Log>);

impl LogStream {
    /// Over what the options ask for: `read` says how (its ranges do not count), `options` what.
    #[must_use]
    pub fn new(
        log: PartitionLog,
        read: ReadOptions,
        options: StreamOptions,
        findings: Arc<Mutex<Findings>>,
    ) -> Self {
        let Selection { start_offset, end_offset, start_timestamp, .. } = options.selection;
        // No record before the first one in time is asked for, so the log is read from there.
        let read = ReadOptions { start_offset, end_offset, start_timestamp, ..read };
        let (schema, threads) = (records_schema(&options.columns, options.flavour), options.threads);
        let (topic, partition) = (log.listing().topic.clone(), log.listing().partition);
        let selection = options.selection;
        let source = Log { log, read, selection, batches: None, findings, segment: None };
        let decoder = move || {
            let columns = RecordColumns::new(&options.columns, options.flavour, &topic, partition);
            // The log's reader has checked the CRC of what it gives.
            let checks = Checks { batches: false, messages: read.check_crcs };
            BatchDecoder::new(columns, Decompressor::with_limit(read.max_decompressed_bytes), checks)
        };
        Self(Stream::new(source, schema, threads, decoder))
    }
}

#[derive(Debug)]
struct Log {
    log: PartitionLog,
    read: ReadOptions,
    selection: Selection,
    /// Opened with the first batch.
    batches: Option<LogBatches>,
    findings: Arc<Mutex<Findings>>,
    /// The last batch's, to be shared with the next.
    segment: Option<Arc<str>>,
}

impl Log {
    fn findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Log {
    fn next(&mut self) -> Result<Option<Framed>, Failure> {
        if self.batches.is_none() {
            let batches = self.log.batches(self.read)?;
            *self.findings() =
                Findings { problems: Problems::default(), end_offset: Some(batches.end_offset()) };
            self.batches = Some(batches);
        }
        let Some(batches) = &mut self.batches else { return Ok(None) };
        let next =
            batches.find(|batch| !matches!(batch, Ok(batch) if batch.disposition != Disposition::Rows));
        let new = batches.take_problems();
        self.findings().problems.join(new);
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
        if self.read.mode == DamageMode::FailFast {
            return Err(LogError::Format { path: segment.into(), error }.into());
        }
        // The whole batch is damage: none of its records counts.
        let listing = self.log.listing();
        let end = framed.position + framed.data.len() as u64;
        let range = framed.position..end;
        let problem = Problem::of_bytes(&listing.topic, listing.partition, segment, range, &error);
        self.findings().problems.note(problem);
        Ok(())
    }
}

impl Iterator for LogStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl RecordBatchReader for LogStream {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}
