//! The history of a segment: one scan over its batch headers, together with its survey.

use std::collections::{BTreeMap, HashMap};

use magicbyte::state::{BATCHES_TO_RETAIN, BatchMetadata, is_in_sequence};
use magicbyte::{Batch, RecordBatch, TimestampType};

use crate::error::LogResult;
use crate::history::bins::{Bin, Bins, CODECS, codec_of};
use crate::history::event::HistoryEvent;
use crate::listing::Segment;
use crate::problem::LISTED;
use crate::read::header_scan::survey_with;
use crate::read::header_visitor::{Content, Control, HeaderVisitor};
use crate::read::survey::Survey;
use crate::segment::wrapper::is_wrapper;

/// Offsets that no record has.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct OffsetGap {
    /// First offset of the batch, or of the gap between two batches.
    pub first_offset: i64,
    /// Last offset (inclusive).
    pub last_offset: i64,
    /// The number of these offsets that have no record.
    pub missing: u64,
    /// True if the offsets are missing within one batch rather than between two.
    pub inside: bool,
}

/// A batch of data whose largest timestamp is smaller than that of an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct StepBack {
    /// The batch's base offset.
    pub offset: i64,
    /// Its largest timestamp (ms).
    pub timestamp: i64,
    /// The largest timestamp before it (ms).
    pub before: i64,
}

/// Bytes that are in no batch of the chain of headers.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct SkippedRange {
    /// The segment's file name.
    pub segment: String,
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// True if no batch follows in the segment.
    pub is_tail: bool,
}

/// A segment's survey and history.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct SegmentHistory {
    /// The survey.
    pub survey: Survey,
    /// Producer events.
    pub events: Vec<HistoryEvent>,
    /// The offset of the first record; `None` without batches, or if the first is a wrapper that does not
    /// decode.
    pub first_offset: Option<i64>,
    /// Records according to the headers and, of legacy wrappers, their content.
    pub records: u64,
    /// Records of batches that end before the log's start, which are not counted above.
    pub deleted: u64,
    /// The number of these batches.
    pub deleted_batches: u64,
    /// Legacy wrappers that do not decode: the number of their records is unknown.
    pub unknown_wrappers: u64,
    /// Batches by magic.
    pub magics: BTreeMap<i8, u64>,
    /// Batches by codec, in the order of [`CODECS`].
    pub codecs: [u64; CODECS.len()],
    /// Batches without a producer ID, including those of magic 0 and 1.
    pub without_producer: u64,
    /// Control batches by Kafka's name for their type; `EMPTY` if compaction left no record, `UNREADABLE` if
    /// it cannot be read.
    pub controls: BTreeMap<String, u64>,
    /// The first gaps.
    pub gaps: Vec<OffsetGap>,
    /// The number of gaps.
    pub gap_count: u64,
    /// The number of offsets missing in them.
    pub missing: u64,
    /// The first steps back in time.
    pub steps_back: Vec<StepBack>,
    /// The number of steps back.
    pub step_back_count: u64,
    /// The largest step back (ms).
    pub largest_step_back_ms: u64,
    /// The first byte ranges that are in no batch.
    pub skipped: Vec<SkippedRange>,
    /// The number of such ranges.
    pub skipped_count: u64,
    /// The batches, summarized.
    pub bins: Vec<Bin>,
}

/// Surveys a segment and collects its history in one scan over its headers. Only legacy wrappers are
/// decompressed; only the first record of a control batch is read. Memory grows with producers and
/// transactions, not with batches, as long as sequences are in order. Batches that end before
/// `log_start_offset` are only counted.
///
/// # Errors
/// The errors of [`survey_segment`](crate::steps::survey_segment).
pub fn segment_history(segment: &Segment, log_start_offset: Option<i64>) -> LogResult<SegmentHistory> {
    let mut builder = HistoryBuilder { log_start_offset, ..HistoryBuilder::default() };
    let survey = survey_with(segment, &mut builder)?;
    Ok(builder.finish(survey))
}

/// The fold over a segment's batches.
#[derive(Debug, Default)]
pub(crate) struct HistoryBuilder {
    log_start_offset: Option<i64>,
    deleted: u64,
    deleted_batches: u64,
    events: Vec<HistoryEvent>,
    /// The index of each producer's last event.
    last: HashMap<i64, usize>,
    first_offset: Option<i64>,
    records: u64,
    unknown_wrappers: u64,
    magics: BTreeMap<i8, u64>,
    codecs: [u64; CODECS.len()],
    without_producer: u64,
    controls: BTreeMap<String, u64>,
    gaps: Vec<OffsetGap>,
    gap_count: u64,
    missing: u64,
    steps_back: Vec<StepBack>,
    step_back_count: u64,
    largest_step_back_ms: u64,
    skipped: Vec<(u64, u64)>,
    skipped_count: u64,
    bins: Bins,
    /// Position where the last batch ended.
    end: u64,
    next_offset: Option<i64>,
    max_timestamp: i64,
}

impl HeaderVisitor for HistoryBuilder {
    fn counts_messages(&self) -> bool {
        true
    }

    fn visit(&mut self, batch: &Batch<'_>, size: usize, content: Option<&Content>) {
        if batch.position() > self.end {
            self.skipped_count += 1;
            if self.skipped.len() < LISTED {
                self.skipped.push((self.end, batch.position()));
            }
        }
        self.end = batch.position() + size as u64;
        if self.log_start_offset.is_some_and(|start| batch.last_offset() < start) {
            self.deleted += known_records(batch, content).map_or(0, |(_, records)| records);
            self.deleted_batches += 1;
            self.next_offset = Some(batch.last_offset().saturating_add(1));
            return;
        }
        *self.magics.entry(batch.magic()).or_default() += 1;
        self.codecs[codec_of(batch)] += 1;
        let missing_before = self.missing;
        let last = batch.last_offset();
        let known = known_records(batch, content);
        let first = known.map_or(last, |(first, _)| first);
        if self.next_offset.is_none() {
            self.first_offset = known.map(|(first, _)| first);
        }
        if let Some(next) = self.next_offset.filter(|&next| next < first && known.is_some()) {
            self.add_gap(next, first - 1, (first - 1).abs_diff(next).saturating_add(1), false);
        }
        let missing_at_start = self.missing;
        let records = known.map_or(0, |(_, records)| records);
        self.unknown_wrappers += u64::from(known.is_none());
        if known.is_some() {
            let span = u64::try_from(last.saturating_sub(first)).map_or(0, |delta| delta.saturating_add(1));
            if span > records {
                self.add_gap(first, last, span - records, true);
            }
        }
        if let Some(batch) = batch.as_v2() {
            let control = content.and_then(Content::control);
            self.add_producer_batch(batch, size, records, control, missing_at_start);
        } else {
            self.without_producer += 1;
        }
        self.records += records;
        self.bins.add(batch, size, first, records, self.missing - missing_before);
        self.next_offset = Some(last.saturating_add(1));
        // The coordinator's clock says nothing about the producers'.
        if !batch.is_control() {
            self.add_timestamp(first, batch.max_timestamp());
        }
    }
}

impl HistoryBuilder {
    fn add_gap(&mut self, first_offset: i64, last_offset: i64, missing: u64, inside: bool) {
        self.gap_count += 1;
        self.missing = self.missing.saturating_add(missing);
        if self.gaps.len() < LISTED {
            self.gaps.push(OffsetGap { first_offset, last_offset, missing, inside });
        }
    }

    fn add_timestamp(&mut self, offset: i64, timestamp: i64) {
        let before = self.max_timestamp;
        if timestamp >= 0 && timestamp < before {
            self.step_back_count += 1;
            self.largest_step_back_ms = self.largest_step_back_ms.max(before.abs_diff(timestamp));
            if self.steps_back.len() < LISTED {
                self.steps_back.push(StepBack { offset, timestamp, before });
            }
        }
        self.max_timestamp = before.max(timestamp);
    }

    fn add_producer_batch(
        &mut self,
        batch: &RecordBatch<'_>,
        size: usize,
        records: u64,
        control: Option<&Control>,
        missing_before: u64,
    ) {
        let (producer_id, producer_epoch) = (batch.producer_id(), batch.producer_epoch());
        if producer_id < 0 {
            self.without_producer += 1;
        }
        if batch.is_control() {
            self.add_control_batch(batch, control);
            return;
        }
        if producer_id < 0 {
            return;
        }
        let this = BatchMetadata {
            last_sequence: batch.last_sequence(),
            last_offset: batch.last_offset(),
            offset_delta: batch.last_offset_delta(),
            timestamp: batch.max_timestamp(),
        };
        if let Some(&at) = self.last.get(&producer_id)
            && let HistoryEvent::Data {
                producer_epoch: epoch,
                transactional,
                first,
                last,
                batches,
                records: sum,
                bytes,
                max_timestamp,
                missing_until,
                ..
            } = &mut self.events[at]
            && *epoch == producer_epoch
            && *transactional == batch.is_transactional()
            && last
                .last()
                .or(first.last())
                .is_some_and(|before| follows(before.last_sequence, batch.base_sequence()))
        {
            if first.len() < BATCHES_TO_RETAIN {
                first.push(this);
            } else {
                if last.len() == BATCHES_TO_RETAIN {
                    last.remove(0);
                }
                last.push(this);
            }
            *batches += 1;
            *sum += records;
            *bytes += size as u64;
            *max_timestamp = this.timestamp.max(*max_timestamp);
            *missing_until = self.missing;
            return;
        }
        let has_first_time = batch.delete_horizon_ms().is_none()
            && batch.timestamp_type() == TimestampType::CreateTime
            && batch.base_timestamp() >= 0;
        self.last.insert(producer_id, self.events.len());
        self.events.push(HistoryEvent::Data {
            producer_id,
            producer_epoch,
            transactional: batch.is_transactional(),
            base_sequence: batch.base_sequence(),
            first: vec![this],
            last: Vec::new(),
            batches: 1,
            records,
            bytes: size as u64,
            first_timestamp: if has_first_time { batch.base_timestamp() } else { this.timestamp },
            max_timestamp: this.timestamp,
            missing_before,
            missing_until: self.missing,
        });
    }

    fn add_control_batch(&mut self, batch: &RecordBatch<'_>, control: Option<&Control>) {
        let name = match control {
            None => "UNREADABLE",
            Some(control) => control.kind.map_or("EMPTY", |kind| kind.name()),
        };
        *self.controls.entry(name.to_owned()).or_default() += 1;
        let (producer_id, Some(control)) = (batch.producer_id(), control) else { return };
        let committed = control.committed();
        // Other kinds of control records end no transaction.
        if producer_id < 0 || (committed.is_none() && control.kind.is_some()) {
            return;
        }
        self.last.insert(producer_id, self.events.len());
        self.events.push(HistoryEvent::Marker {
            producer_id,
            producer_epoch: batch.producer_epoch(),
            committed,
            coordinator_epoch: control.coordinator_epoch.unwrap_or(-1),
            offset: batch.base_offset(),
            timestamp: control.timestamp,
        });
    }

    fn finish(self, survey: Survey) -> SegmentHistory {
        let segment = &survey.segment;
        let range =
            |(start, end), is_tail| SkippedRange { segment: segment.file.clone(), start, end, is_tail };
        let mut skipped: Vec<_> = self.skipped.into_iter().map(|bounds| range(bounds, false)).collect();
        let has_tail = self.end < segment.size;
        if has_tail {
            skipped.push(range((self.end, segment.size), true));
        }
        SegmentHistory {
            events: self.events,
            first_offset: self.first_offset,
            records: self.records,
            deleted: self.deleted,
            deleted_batches: self.deleted_batches,
            unknown_wrappers: self.unknown_wrappers,
            magics: self.magics,
            codecs: self.codecs,
            without_producer: self.without_producer,
            controls: self.controls,
            gaps: self.gaps,
            gap_count: self.gap_count,
            missing: self.missing,
            steps_back: self.steps_back,
            step_back_count: self.step_back_count,
            largest_step_back_ms: self.largest_step_back_ms,
            skipped,
            skipped_count: self.skipped_count + u64::from(has_tail),
            bins: self.bins.finish(),
            survey,
        }
    }
}

/// A batch's first offset and the number of its records; `None` for a wrapper that does not decode, whose
/// header has neither.
fn known_records(batch: &Batch<'_>, content: Option<&Content>) -> Option<(i64, u64)> {
    let stored = batch.stored_offset();
    match (batch.as_v2(), content) {
        (Some(batch), _) => Some((stored, u64::try_from(batch.record_count()).unwrap_or(0))),
        (None, Some(Content::Messages(messages))) => Some((messages.first_offset, messages.count)),
        (None, _) => (!is_wrapper(batch)).then_some((stored, 1)),
    }
}

/// True if a batch continues a run. A coordinator's batches, which have no sequences, always do.
fn follows(last: i32, next: i32) -> bool {
    if next == -1 { last == -1 } else { last != -1 && is_in_sequence(last, next) }
}
