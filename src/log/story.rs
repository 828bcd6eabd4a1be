//! A partition's story: what its producers, transactions and leaders did, by the headers of its
//! batches. A fold over the stories of its segments; no file is touched.

use std::collections::{BTreeMap, HashMap};

use super::story_bins::{CODECS, at_most};
use super::story_model::{
    Anomaly, ControlCount, ProducerStory, Story, StoryOptions, TransactionOutcome, TransactionStory,
};
use super::story_segment::{OffsetGap, SegmentStory, StepBack, StoryEvent};
use super::{Listing, LogResult, Plan, PlanOptions, plan_partition};
use crate::state::{AppendOrigin, AppendTerms, BatchMetadata, ProducerEvent, Producers, Refusal, Verdict};

/// Joins the stories of a listing's segments, in any order.
///
/// # Errors
/// [`LogError::Usage`](super::LogError::Usage) if a listed segment has no story.
pub fn tell_story(listing: &Listing, stories: &[SegmentStory], options: StoryOptions) -> LogResult<Story> {
    let surveys: Vec<_> = stories.iter().map(|story| story.survey.clone()).collect();
    let plan = plan_partition(listing, &surveys, PlanOptions::default())?;
    let by_path: HashMap<_, _> = stories.iter().map(|story| (&story.survey.segment.path, story)).collect();
    let kept: Vec<_> =
        plan.segments.iter().filter_map(|one| by_path.get(&one.segment.path).copied()).collect();
    let mut fold = Fold::default();
    let mut story = Story::of(plan, options);
    let mut bins = Vec::new();
    let mut max_timestamp = -1;
    for segment in kept {
        story.add(segment, &mut max_timestamp, fold.next_offset);
        fold.begin_segment(segment);
        let start = fold.next_offset.unwrap_or(i64::MIN);
        for event in segment.events.iter().filter(|event| event.last_offset() >= start) {
            fold.add(event);
        }
        fold.end_segment(segment);
        bins.extend_from_slice(&segment.bins);
    }
    story.max_timestamp = max_timestamp;
    story.bins = at_most(&bins, options.bins.max(1));
    story.gaps.truncate(options.listed);
    story.steps_back.truncate(options.listed);
    fold.finish(&mut story, options);
    Ok(story)
}

impl Story {
    fn of(plan: Plan, options: StoryOptions) -> Self {
        Self {
            path: plan.path,
            topic: plan.topic,
            partition: plan.partition,
            now: options.now,
            segments: plan.segments.len() as u64,
            bytes: plan.segments.iter().map(|one| one.segment.size).sum(),
            batches: plan.segments.iter().map(|one| one.batches).sum(),
            records: 0,
            first_offset: plan.first_offset,
            next_offset: plan.next_offset,
            last_stable_offset: plan.last_stable_offset,
            max_timestamp: -1,
            magics: BTreeMap::new(),
            codecs: BTreeMap::new(),
            without_producer: 0,
            controls: Vec::new(),
            leader_epochs: plan.leader_epochs.entries().to_vec(),
            producers: Vec::new(),
            transactions: Vec::new(),
            anomalies: Vec::new(),
            anomaly_counts: BTreeMap::new(),
            compacted_anomalies: 0,
            gaps: Vec::new(),
            gap_count: 0,
            missing_offsets: 0,
            steps_back: Vec::new(),
            step_back_count: 0,
            largest_step_back_ms: 0,
            skipped: Vec::new(),
            problems: plan.problems,
            ignored: plan.ignored,
            bin_codecs: CODECS.map(str::to_owned).to_vec(),
            bins: Vec::new(),
        }
    }

    /// Sums and lists of a segment.
    fn add(&mut self, segment: &SegmentStory, max_timestamp: &mut i64, next_offset: Option<i64>) {
        self.records += segment.records;
        for (&magic, batches) in &segment.magics {
            *self.magics.entry(magic).or_default() += batches;
        }
        for (name, &batches) in CODECS.iter().zip(&segment.codecs).filter(|(_, batches)| **batches > 0) {
            *self.codecs.entry((*name).to_owned()).or_default() += batches;
        }
        self.without_producer += segment.without_producer;
        for (kind, batches) in &segment.controls {
            match self.controls.iter_mut().find(|one| one.kind == *kind) {
                Some(one) => one.batches += batches,
                None => self.controls.push(ControlCount { kind: kind.clone(), batches: *batches }),
            }
        }
        if let (Some(next), Some(first)) = (next_offset, segment.survey.first_offset)
            && first > next
        {
            let missing = first.abs_diff(next);
            self.gaps.push(OffsetGap { first_offset: next, last_offset: first - 1, missing, inside: false });
            self.gap_count += 1;
            self.missing_offsets = self.missing_offsets.saturating_add(missing);
        }
        self.gaps.extend_from_slice(&segment.gaps);
        self.gap_count += segment.gap_count;
        self.missing_offsets = self.missing_offsets.saturating_add(segment.missing);
        // A segment does not know how late it was before it: its first batch tells.
        if let Some(first) = segment.bins.first()
            && (0..*max_timestamp).contains(&first.max_timestamp)
        {
            let (offset, timestamp, before) = (first.first_offset, first.max_timestamp, *max_timestamp);
            self.steps_back.push(StepBack { offset, timestamp, before });
            self.step_back_count += 1;
            self.largest_step_back_ms = self.largest_step_back_ms.max(before.abs_diff(timestamp));
        }
        *max_timestamp = (*max_timestamp).max(segment.survey.max_timestamp);
        self.steps_back.extend_from_slice(&segment.steps_back);
        self.step_back_count += segment.step_back_count;
        self.largest_step_back_ms = self.largest_step_back_ms.max(segment.largest_step_back_ms);
        self.skipped.extend_from_slice(&segment.skipped);
    }
}

/// The fold over what producers did.
#[derive(Default)]
struct Fold {
    producers: Producers,
    /// Where each producer and epoch stands in the story.
    stories: HashMap<(i64, i16), usize>,
    told: Vec<ProducerStory>,
    /// Each producer's open transaction.
    open: HashMap<i64, TransactionStory>,
    transactions: Vec<TransactionStory>,
    anomalies: Vec<Anomaly>,
    /// Offsets missing in the segments before, and up to each producer's last batch.
    missing: u64,
    missing_until: HashMap<i64, u64>,
    next_offset: Option<i64>,
}

impl Fold {
    fn begin_segment(&mut self, segment: &SegmentStory) {
        if let (Some(next), Some(first)) = (self.next_offset, segment.survey.first_offset)
            && first > next
        {
            self.missing = self.missing.saturating_add(first.abs_diff(next));
        }
    }

    fn end_segment(&mut self, segment: &SegmentStory) {
        self.missing = self.missing.saturating_add(segment.missing);
        let last = segment.bins.last().map(|bin| bin.last_offset.saturating_add(1));
        self.next_offset = self.next_offset.max(last);
    }

    fn add(&mut self, event: &StoryEvent) {
        match event {
            StoryEvent::Data { .. } => self.add_data(event),
            &StoryEvent::Marker { committed: None, producer_id, producer_epoch, offset, .. } => {
                self.producers.apply(&ProducerEvent::EmptyMarker { producer_id, producer_epoch, offset });
            }
            StoryEvent::Marker { .. } => self.add_marker(event),
        }
    }

    fn add_data(&mut self, event: &StoryEvent) {
        let &StoryEvent::Data {
            producer_id,
            producer_epoch,
            transactional,
            base_sequence,
            ref first,
            ref last,
            batches,
            records,
            bytes,
            first_timestamp,
            max_timestamp,
            missing_before,
            missing_until,
        } = event
        else {
            return;
        };
        let (Some(start), Some(end)) = (first.first(), last.last().or(first.last())) else { return };
        // A coordinator writes no sequences.
        let origin = if base_sequence == -1 { AppendOrigin::Coordinator } else { AppendOrigin::Client };
        let sequence_of =
            |batch: &BatchMetadata| if base_sequence == -1 { -1 } else { batch.first_sequence() };
        let data = |batch: &BatchMetadata| ProducerEvent::Data {
            producer_id,
            transactional,
            first_offset: batch.first_offset(),
            producer_epoch,
            base_sequence: sequence_of(batch),
            last_sequence: batch.last_sequence,
            last_offset: batch.last_offset,
            offset_delta: batch.offset_delta,
            timestamp: batch.timestamp,
        };
        let known = self.missing_until.insert(producer_id, self.missing.saturating_add(missing_until));
        let compacted = known.is_some_and(|known| known < self.missing.saturating_add(missing_before));
        let first_offset = start.first_offset();
        self.story_of(producer_id, producer_epoch, first_offset, first_timestamp);
        for (at, batch) in first.iter().enumerate() {
            let verdict = self.producers.check(&data(batch), AppendTerms::of(origin));
            let compacted = compacted && at == 0;
            let offset = batch.first_offset();
            self.note(verdict, producer_id, producer_epoch, offset, sequence_of(batch), compacted);
            self.producers.apply(&data(batch));
        }
        // Each of the others follows the one before; only the last ones are remembered.
        for batch in last {
            self.producers.apply(&data(batch));
        }
        let story = self.story_of(producer_id, producer_epoch, first_offset, first_timestamp);
        if story.batches == 0 {
            story.first_sequence = base_sequence;
        }
        story.last_offset = end.last_offset;
        story.last_sequence = end.last_sequence;
        story.last_timestamp = story.last_timestamp.max(max_timestamp);
        story.batches += batches;
        story.records += records;
        story.bytes += bytes;
        if !transactional {
            return;
        }
        let transaction = self.open.entry(producer_id).or_insert_with(|| TransactionStory {
            first_offset: Some(first_offset),
            first_timestamp: Some(first_timestamp),
            ..TransactionStory::of(producer_id, producer_epoch)
        });
        transaction.last_offset = Some(end.last_offset);
        transaction.last_timestamp = transaction.last_timestamp.max(Some(max_timestamp));
        transaction.batches += batches;
        transaction.records += records;
        transaction.bytes += bytes;
    }

    fn add_marker(&mut self, event: &StoryEvent) {
        let &StoryEvent::Marker {
            producer_id,
            producer_epoch,
            committed: Some(committed),
            coordinator_epoch,
            offset,
            timestamp,
        } = event
        else {
            return;
        };
        let marker = ProducerEvent::Marker {
            producer_id,
            producer_epoch,
            committed,
            coordinator_epoch,
            offset,
            timestamp,
        };
        let verdict = self.producers.check(&marker, AppendTerms::of(AppendOrigin::Coordinator));
        let completed = self.producers.apply(&marker);
        self.producers.set_high_watermark(i64::MAX);
        let open = self.open.remove(&producer_id);
        // The transaction is told in the epoch of its data.
        let epoch = open.as_ref().map_or(producer_epoch, |open| open.producer_epoch);
        let story = self.story_of(producer_id, epoch, offset, timestamp);
        story.last_offset = story.last_offset.max(offset);
        story.last_timestamp = story.last_timestamp.max(timestamp);
        match (&open, committed) {
            (None, _) => story.empty_markers += 1,
            (Some(_), true) => story.committed += 1,
            (Some(_), false) => story.aborted += 1,
        }
        if epoch != producer_epoch {
            self.story_of(producer_id, producer_epoch, offset, timestamp);
        }
        self.note(verdict, producer_id, producer_epoch, offset, -1, false);
        self.transactions.push(TransactionStory {
            outcome: if committed { TransactionOutcome::Committed } else { TransactionOutcome::Aborted },
            marker_offset: Some(offset),
            marker_epoch: Some(producer_epoch),
            coordinator_epoch: Some(coordinator_epoch),
            marker_timestamp: Some(timestamp),
            last_stable_offset: completed.map(|completed| completed.last_stable_offset),
            ..open.unwrap_or_else(|| TransactionStory::of(producer_id, producer_epoch))
        });
    }

    fn story_of(&mut self, id: i64, epoch: i16, offset: i64, timestamp: i64) -> &mut ProducerStory {
        let at = *self.stories.entry((id, epoch)).or_insert(self.told.len());
        if at == self.told.len() {
            self.told.push(ProducerStory {
                producer_id: id,
                producer_epoch: epoch,
                first_offset: offset,
                last_offset: offset,
                first_sequence: -1,
                last_sequence: -1,
                first_timestamp: timestamp,
                last_timestamp: timestamp,
                batches: 0,
                records: 0,
                bytes: 0,
                committed: 0,
                aborted: 0,
                empty_markers: 0,
                duplicates: 0,
                refused: 0,
                is_current: false,
                current_txn_first_offset: None,
                coordinator_epoch: -1,
            });
        }
        &mut self.told[at]
    }

    fn note(&mut self, verdict: Verdict, id: i64, epoch: i16, offset: i64, sequence: i32, compacted: bool) {
        let (kind, message) = match verdict {
            Verdict::Append => return,
            Verdict::Duplicate(before) => {
                self.story_of(id, epoch, offset, -1).duplicates += 1;
                let (first, last) = (before.first_offset(), before.last_offset);
                let message = format!(
                    "sequences {sequence}..={} came before, at offsets {first}..={last}",
                    before.last_sequence
                );
                ("DUPLICATE_SEQUENCE_NUMBER", message)
            }
            Verdict::Refuse(refusal) => {
                self.story_of(id, epoch, offset, -1).refused += 1;
                (refusal.name(), refusal.to_string())
            }
        };
        self.anomalies.push(Anomaly {
            kind: kind.to_owned(),
            producer_id: id,
            producer_epoch: epoch,
            offset,
            sequence,
            compacted: compacted && matches!(verdict, Verdict::Refuse(Refusal::OutOfOrderSequence { .. })),
            message,
        });
    }

    fn finish(mut self, story: &mut Story, options: StoryOptions) {
        for entry in self.producers.entries() {
            let Some(&at) = self.stories.get(&(entry.producer_id, entry.producer_epoch)) else { continue };
            let told = &mut self.told[at];
            told.is_current = true;
            told.coordinator_epoch = entry.coordinator_epoch;
            told.current_txn_first_offset = entry.current_txn_first_offset;
        }
        for mut open in self.open.into_values() {
            let heard = self.producers.get(open.producer_id).map_or(-1, |entry| entry.last_timestamp);
            let age = options.now.saturating_sub(heard);
            open.age_ms = Some(age);
            open.hanging = age > options.max_transaction_timeout_ms;
            self.transactions.push(open);
        }
        self.transactions.sort_by_key(|one| one.first_offset.or(one.marker_offset));
        self.told.sort_by_key(|one| one.first_offset);
        for anomaly in &self.anomalies {
            *story.anomaly_counts.entry(anomaly.kind.clone()).or_default() += 1;
            story.compacted_anomalies += u64::from(anomaly.compacted);
        }
        self.anomalies.truncate(options.listed);
        story.anomalies = self.anomalies;
        story.transactions = self.transactions;
        story.producers = self.told;
    }
}
