//! The history of a partition: its producers, transactions and leaders, judged by its batch headers. A fold
//! over the histories of its segments; no file is read. A transaction is hanging by the rule of
//! `TransactionsCommand` (`kafka-transactions.sh find-hanging`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use magicbyte::state::{
    AppendOrigin, AppendTerms, BatchMetadata, ProducerEvent, Producers, Refusal, Verdict,
};

use crate::error::LogResult;
use crate::history::bins::{CODECS, at_most};
use crate::history::event::HistoryEvent;
use crate::history::model::{
    Anomaly, ControlCount, HistoryOptions, PartitionHistory, ProducerHistory, TransactionHistory,
    TransactionOutcome,
};
use crate::history::segment_history::{OffsetGap, SegmentHistory, StepBack};
use crate::listing::Listing;
use crate::read::options::PlanOptions;
use crate::read::plan::{Plan, plan_partition};

/// Joins the histories of a listing's segments, given in any order.
///
/// # Errors
/// [`LogError::Usage`](crate::LogError::Usage) if a listed segment has no history.
pub fn partition_history(
    listing: &Listing,
    segments: &[SegmentHistory],
    options: &HistoryOptions,
) -> LogResult<PartitionHistory> {
    let surveys: Vec<_> = segments.iter().map(|segment| segment.survey.clone()).collect();
    let plan = plan_partition(listing, &surveys, PlanOptions::default())?;
    let by_path: HashMap<_, _> =
        segments.iter().map(|segment| (segment.survey.segment.location.path(), segment)).collect();
    let kept: Vec<_> = plan
        .segments
        .iter()
        .filter_map(|planned| by_path.get(planned.segment.location.path()).copied())
        .collect();
    let mut history = PartitionHistory::of(plan, options);
    let mut fold = Fold::new(&history, options);
    let mut bins = Vec::new();
    let mut max_timestamp = -1;
    for segment in kept {
        history.add(segment, &mut max_timestamp, fold.next_offset, options.listed);
        fold.begin_segment(segment);
        let start = fold.next_offset.unwrap_or(i64::MIN);
        for event in segment.events.iter().filter(|event| event.last_offset() >= start) {
            fold.add(event);
        }
        fold.end_segment(segment);
        bins.extend_from_slice(&segment.bins);
    }
    history.bins = at_most(&bins, options.bins.max(1));
    fold.finish(&mut history, options);
    Ok(history)
}

impl PartitionHistory {
    fn of(mut plan: Plan, options: &HistoryOptions) -> Self {
        let problem_count = plan.problems.len() as u64;
        plan.problems.truncate(options.listed);
        let epochs = plan.leader_epochs.entries();
        Self {
            path: plan.path,
            topic: plan.topic,
            partition: plan.partition,
            now: options.now,
            segments: plan.segments.len() as u64,
            bytes: plan.segments.iter().map(|planned| planned.segment.size).sum(),
            batches: plan.segments.iter().map(|planned| planned.batches).sum(),
            records: 0,
            deleted: 0,
            log_start_offset: plan.log_start_offset,
            unknown_wrappers: 0,
            first_offset: plan.first_offset,
            next_offset: plan.next_offset,
            last_stable_offset: plan.last_stable_offset,
            max_timestamp: -1,
            magics: BTreeMap::new(),
            codecs: BTreeMap::new(),
            without_producer: 0,
            controls: Vec::new(),
            leader_epochs: epochs.iter().take(options.listed).copied().collect(),
            leader_epoch_count: epochs.len() as u64,
            producers: Vec::new(),
            producer_count: 0,
            producer_ids: 0,
            transactions: Vec::new(),
            transaction_counts: BTreeMap::new(),
            transaction_steps: Vec::new(),
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
            skipped_count: 0,
            problems: plan.problems,
            problem_count,
            ignored: plan.ignored,
            bin_codecs: CODECS.map(str::to_owned).to_vec(),
            bins: Vec::new(),
        }
    }

    /// Adds the counts and lists of a segment.
    fn add(
        &mut self,
        segment: &SegmentHistory,
        max_timestamp: &mut i64,
        next_offset: Option<i64>,
        listed: usize,
    ) {
        if self.magics.is_empty() {
            let start = self.log_start_offset.unwrap_or(i64::MIN);
            self.first_offset = segment.first_offset.map(|first| first.max(start)).or(self.first_offset);
        }
        self.records += segment.records;
        self.deleted += segment.deleted;
        self.batches = self.batches.saturating_sub(segment.deleted_batches);
        self.unknown_wrappers += segment.unknown_wrappers;
        for (&magic, batches) in &segment.magics {
            *self.magics.entry(magic).or_default() += batches;
        }
        for (name, &batches) in CODECS.iter().zip(&segment.codecs).filter(|(_, batches)| **batches > 0) {
            *self.codecs.entry((*name).to_owned()).or_default() += batches;
        }
        self.without_producer += segment.without_producer;
        for (kind, batches) in &segment.controls {
            match self.controls.iter_mut().find(|count| count.kind == *kind) {
                Some(count) => count.batches += batches,
                None => self.controls.push(ControlCount { kind: kind.clone(), batches: *batches }),
            }
        }
        if let (Some(next), Some(first)) = (next_offset, segment.first_offset)
            && first > next
        {
            let missing = first.abs_diff(next);
            let gap = OffsetGap { first_offset: next, last_offset: first - 1, missing, inside: false };
            list(&mut self.gaps, &[gap], listed);
            self.gap_count += 1;
            self.missing_offsets = self.missing_offsets.saturating_add(missing);
        }
        list(&mut self.gaps, &segment.gaps, listed);
        self.gap_count += segment.gap_count;
        self.missing_offsets = self.missing_offsets.saturating_add(segment.missing);
        // A segment does not know the timestamps before it, so compare its first bin that has one.
        if let Some(first) = segment.bins.iter().find(|bin| bin.max_timestamp >= 0)
            && first.max_timestamp < *max_timestamp
        {
            let (offset, timestamp, before) = (first.first_offset, first.max_timestamp, *max_timestamp);
            list(&mut self.steps_back, &[StepBack { offset, timestamp, before }], listed);
            self.step_back_count += 1;
            self.largest_step_back_ms = self.largest_step_back_ms.max(before.abs_diff(timestamp));
        }
        let timestamps = segment.bins.iter().map(|bin| bin.max_timestamp);
        *max_timestamp = timestamps.fold(*max_timestamp, i64::max);
        self.max_timestamp = self.max_timestamp.max(segment.survey.max_timestamp);
        list(&mut self.steps_back, &segment.steps_back, listed);
        self.step_back_count += segment.step_back_count;
        self.largest_step_back_ms = self.largest_step_back_ms.max(segment.largest_step_back_ms);
        list(&mut self.skipped, &segment.skipped, listed);
        self.skipped_count += segment.skipped_count;
    }
}

/// Extends a list up to the limit.
fn list<T: Clone>(all: &mut Vec<T>, more: &[T], listed: usize) {
    let room = listed.saturating_sub(all.len());
    all.extend(more.iter().take(room).cloned());
}

/// The largest transactions of one outcome.
struct Largest {
    most: usize,
    kept: Vec<TransactionHistory>,
}

impl Largest {
    fn new(most: usize) -> Self {
        Self { most, kept: Vec::new() }
    }

    fn add(&mut self, transaction: TransactionHistory) {
        self.kept.push(transaction);
        if self.kept.len() > self.most.saturating_mul(2) {
            self.prune();
        }
    }

    /// Keeps the largest transactions; of equally large transactions, the first stay.
    fn prune(&mut self) {
        self.kept.sort_by_key(|transaction| Reverse(transaction.bytes));
        self.kept.truncate(self.most);
    }

    fn finish(mut self) -> Vec<TransactionHistory> {
        self.prune();
        self.kept
    }
}

/// The number of steps in which transactions are counted.
const STEPS: usize = 120;

/// The number of transactions, and where they begin.
struct Tally {
    committed: u64,
    aborted: u64,
    open: u64,
    hanging: u64,
    /// The log's first offset, and its end.
    offsets: (i64, i64),
    steps: Vec<[u64; 4]>,
}

impl Tally {
    fn add(&mut self, transaction: &TransactionHistory) {
        let (count, at) = match transaction.outcome {
            TransactionOutcome::Committed => (&mut self.committed, 0),
            TransactionOutcome::Aborted => (&mut self.aborted, 1),
            TransactionOutcome::Open => (&mut self.open, 2),
        };
        *count += 1;
        self.hanging += u64::from(transaction.hanging);
        if let Some(offset) = transaction.first_offset {
            self.steps.resize(STEPS, [0; 4]);
            // In 128 bits: an `i64` has no room for the offsets of a log with forged headers, times the steps.
            let (first, end) = self.offsets;
            let span = i128::from(end) - i128::from(first);
            let step = (i128::from(offset) - i128::from(first)) * STEPS as i128 / span.max(1);
            self.steps[step.clamp(0, STEPS as i128 - 1) as usize]
                [if transaction.hanging { 3 } else { at }] += 1;
        }
    }

    fn report(self, history: &mut PartitionHistory) {
        let Self { committed, aborted, open, hanging, steps, .. } = self;
        let counts = [("committed", committed), ("aborted", aborted), ("open", open), ("hanging", hanging)];
        history.transaction_counts = counts.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
        history.transaction_steps = steps;
    }
}

/// The fold over producer events.
struct Fold {
    listed: usize,
    producers: Producers,
    /// The index of each producer and epoch in `histories`.
    indexes: HashMap<(i64, i16), usize>,
    histories: Vec<ProducerHistory>,
    /// Each producer's open transaction.
    open: HashMap<i64, TransactionHistory>,
    committed: Largest,
    aborted: Largest,
    tally: Tally,
    anomalies: Vec<Anomaly>,
    anomaly_counts: BTreeMap<String, u64>,
    compacted_anomalies: u64,
    /// Offsets missing in the segments before this one.
    missing: u64,
    /// Offsets missing up to each producer's last batch.
    missing_until: HashMap<i64, u64>,
    next_offset: Option<i64>,
}

impl Fold {
    fn new(history: &PartitionHistory, options: &HistoryOptions) -> Self {
        let offsets = (history.first_offset.unwrap_or(0), history.next_offset.unwrap_or(0));
        Self {
            listed: options.listed,
            producers: Producers::default(),
            indexes: HashMap::new(),
            histories: Vec::new(),
            open: HashMap::new(),
            committed: Largest::new(options.listed),
            aborted: Largest::new(options.listed),
            tally: Tally { committed: 0, aborted: 0, open: 0, hanging: 0, offsets, steps: Vec::new() },
            anomalies: Vec::new(),
            anomaly_counts: BTreeMap::new(),
            compacted_anomalies: 0,
            missing: 0,
            missing_until: HashMap::new(),
            next_offset: None,
        }
    }

    fn begin_segment(&mut self, segment: &SegmentHistory) {
        if let (Some(next), Some(first)) = (self.next_offset, segment.survey.first_offset)
            && first > next
        {
            self.missing = self.missing.saturating_add(first.abs_diff(next));
        }
    }

    fn end_segment(&mut self, segment: &SegmentHistory) {
        self.missing = self.missing.saturating_add(segment.missing);
        let last = segment.bins.last().map(|bin| bin.last_offset.saturating_add(1));
        self.next_offset = self.next_offset.max(last);
    }

    fn add(&mut self, event: &HistoryEvent) {
        match event {
            HistoryEvent::Data { .. } => self.add_data(event),
            &HistoryEvent::Marker { committed: None, producer_id, producer_epoch, offset, .. } => {
                self.producers.apply(&ProducerEvent::EmptyMarker { producer_id, producer_epoch, offset });
            }
            HistoryEvent::Marker { .. } => self.add_marker(event),
        }
    }

    fn add_data(&mut self, event: &HistoryEvent) {
        let &HistoryEvent::Data {
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
        // If offsets vanished since the producer's last batch, compaction may have taken the sequences that are missing
        // now: then the gap is not the producer's fault.
        let known = self.missing_until.insert(producer_id, self.missing.saturating_add(missing_until));
        let compacted = known.is_some_and(|known| known < self.missing.saturating_add(missing_before));
        let first_offset = start.first_offset();
        // Creates the history first: `note` would create it without a timestamp.
        self.history_of(producer_id, producer_epoch, first_offset, first_timestamp);
        for (at, batch) in first.iter().enumerate() {
            let verdict = self.producers.check(&data(batch), AppendTerms::of(origin));
            let compacted = compacted && at == 0;
            let offset = batch.first_offset();
            self.note(verdict, producer_id, producer_epoch, offset, sequence_of(batch), compacted);
            self.producers.apply(&data(batch));
        }
        // The other batches are in sequence; only the last ones are remembered.
        for batch in last {
            self.producers.apply(&data(batch));
        }
        let history = self.history_of(producer_id, producer_epoch, first_offset, first_timestamp);
        if history.batches == 0 {
            history.first_sequence = base_sequence;
        }
        history.last_offset = end.last_offset;
        history.last_sequence = end.last_sequence;
        history.last_timestamp = history.last_timestamp.max(max_timestamp);
        history.batches += batches;
        history.records += records;
        history.bytes += bytes;
        if !transactional {
            return;
        }
        let transaction = self.open.entry(producer_id).or_insert_with(|| TransactionHistory {
            first_offset: Some(first_offset),
            first_timestamp: Some(first_timestamp),
            ..TransactionHistory::of(producer_id, producer_epoch)
        });
        transaction.last_offset = Some(end.last_offset);
        transaction.last_timestamp = transaction.last_timestamp.max(Some(max_timestamp));
        transaction.batches += batches;
        transaction.records += records;
        transaction.bytes += bytes;
    }

    fn add_marker(&mut self, event: &HistoryEvent) {
        let &HistoryEvent::Marker {
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
        // No follower is waited for here, so a transaction that has ended need not be remembered.
        self.producers.set_high_watermark(i64::MAX);
        let open = self.open.remove(&producer_id);
        // The transaction counts in the epoch of its data.
        let epoch = open.as_ref().map_or(producer_epoch, |open| open.producer_epoch);
        let history = self.history_of(producer_id, epoch, offset, timestamp);
        history.last_offset = history.last_offset.max(offset);
        history.last_timestamp = history.last_timestamp.max(timestamp);
        match (&open, committed) {
            (None, _) => history.empty_markers += 1,
            (Some(_), true) => history.committed += 1,
            (Some(_), false) => history.aborted += 1,
        }
        if epoch != producer_epoch {
            self.history_of(producer_id, producer_epoch, offset, timestamp);
        }
        self.note(verdict, producer_id, producer_epoch, offset, -1, false);
        let ended = TransactionHistory {
            outcome: if committed { TransactionOutcome::Committed } else { TransactionOutcome::Aborted },
            marker_offset: Some(offset),
            marker_epoch: Some(producer_epoch),
            coordinator_epoch: Some(coordinator_epoch),
            marker_timestamp: Some(timestamp),
            last_stable_offset: completed.map(|completed| completed.last_stable_offset),
            ..open.unwrap_or_else(|| TransactionHistory::of(producer_id, producer_epoch))
        };
        self.tally.add(&ended);
        if committed { &mut self.committed } else { &mut self.aborted }.add(ended);
    }

    fn history_of(&mut self, id: i64, epoch: i16, offset: i64, timestamp: i64) -> &mut ProducerHistory {
        let at = *self.indexes.entry((id, epoch)).or_insert(self.histories.len());
        if at == self.histories.len() {
            self.histories.push(ProducerHistory {
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
        &mut self.histories[at]
    }

    fn note(&mut self, verdict: Verdict, id: i64, epoch: i16, offset: i64, sequence: i32, compacted: bool) {
        let (kind, message) = match verdict {
            Verdict::Append => return,
            Verdict::Duplicate(before) => {
                self.history_of(id, epoch, offset, -1).duplicates += 1;
                let (first, last) = (before.first_offset(), before.last_offset);
                let message = format!(
                    "sequences {sequence}..={} were appended before, at offsets {first}..={last}",
                    before.last_sequence
                );
                ("DUPLICATE_SEQUENCE_NUMBER", message)
            }
            Verdict::Refuse(refusal) => {
                self.history_of(id, epoch, offset, -1).refused += 1;
                (refusal.name(), refusal.to_string())
            }
        };
        let compacted = compacted && matches!(verdict, Verdict::Refuse(Refusal::OutOfOrderSequence { .. }));
        *self.anomaly_counts.entry(kind.to_owned()).or_default() += 1;
        self.compacted_anomalies += u64::from(compacted);
        if self.anomalies.len() < self.listed {
            self.anomalies.push(Anomaly {
                kind: kind.to_owned(),
                producer_id: id,
                producer_epoch: epoch,
                offset,
                sequence,
                compacted,
                message,
            });
        }
    }

    fn finish(mut self, history: &mut PartitionHistory, options: &HistoryOptions) {
        for entry in self.producers.entries() {
            let Some(&at) = self.indexes.get(&(entry.producer_id, entry.producer_epoch)) else { continue };
            let history = &mut self.histories[at];
            history.is_current = true;
            history.coordinator_epoch = entry.coordinator_epoch;
            history.current_txn_first_offset = entry.current_txn_first_offset;
        }
        let mut transactions = Vec::new();
        for mut open in self.open.into_values() {
            let last_timestamp =
                self.producers.get(open.producer_id).map_or(-1, |entry| entry.last_timestamp);
            let age = options.now.saturating_sub(last_timestamp);
            open.age_ms = Some(age);
            let known = options.coordinated.iter().find(|known| known.producer_id == open.producer_id);
            open.hanging = known.is_none() && age > options.transaction_max_timeout_ms;
            open.transactional_id = known.map(|known| known.transactional_id.clone());
            open.coordinator_state = known.map(|known| known.state.clone());
            self.tally.add(&open);
            transactions.push(open);
        }
        transactions.sort_by_key(|transaction| {
            (!transaction.hanging, Reverse(transaction.bytes), transaction.first_offset)
        });
        transactions.extend(self.aborted.finish());
        transactions.extend(self.committed.finish());
        transactions.truncate(options.listed);
        transactions.sort_by_key(|transaction| transaction.first_offset.or(transaction.marker_offset));
        history.producer_count = self.histories.len() as u64;
        history.producer_ids =
            self.histories.iter().map(|history| history.producer_id).collect::<HashSet<_>>().len() as u64;
        self.histories.sort_by_key(|history| (Reverse(history.bytes), history.first_offset));
        self.histories.truncate(options.listed);
        self.histories.sort_by_key(|history| history.first_offset);
        self.tally.report(history);
        history.anomaly_counts = self.anomaly_counts;
        history.compacted_anomalies = self.compacted_anomalies;
        history.anomalies = self.anomalies;
        history.transactions = transactions;
        history.producers = self.histories;
    }
}
