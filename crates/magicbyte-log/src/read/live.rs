//! A partition of a running cluster, which gives offsets instead of files: it is fetched once, in answers, and each answer
//! is a chunk in memory. So the reader of chunks, and whatever is built on it, reads files and answers alike.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use ::bytes::Bytes;
use magicbyte::state::{AbortedTransaction, IsolationLevel};
use magicbyte::{Batch, Batches};

use crate::chunk::{Chunk, MAX_OFFSET};
use crate::error::{LogError, LogResult};
use crate::listing::Listing;
use crate::storage::location::Location;

/// A partition of a running cluster.
pub trait LivePartition: fmt::Debug + Send + Sync {
    /// The start of the log, and the end (exclusive) of what consumers with this isolation level read.
    ///
    /// # Errors
    /// The errors of the cluster, and of the connection to it.
    fn offsets(&self, isolation_level: IsolationLevel) -> io::Result<Range<i64>>;

    /// The first offset whose record has this timestamp (ms) or a later one.
    ///
    /// # Errors
    /// The errors of the cluster, and of the connection to it.
    fn offset_for_timestamp(&self, timestamp: i64) -> io::Result<Option<i64>>;

    /// Fetches a range of offsets, which the log has.
    ///
    /// # Errors
    /// The errors of the cluster, and of the connection to it.
    fn fetch(&self, offsets: Range<i64>, isolation_level: IsolationLevel) -> io::Result<Answers>;
}

/// The answers to a fetch, in the order of their offsets. An error is the last of them.
pub type Answers = Box<dyn Iterator<Item = io::Result<Answer>> + Send>;

/// Whole batches of a partition, as a broker has sent them.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The offset that was asked for. The first batch may begin before it, and later where offsets have no record.
    pub position: i64,
    /// The offset after the last batch.
    pub next_position: i64,
    /// The batches. Their framing was checked, their CRCs were not.
    pub records: Bytes,
    /// Producer and first offset of the aborted transactions that overlap the batches; empty with `read_uncommitted`.
    pub aborted_transactions: Vec<(i64, i64)>,
}

/// A partition of a cluster beside its listing, which has no files.
#[derive(Clone, Debug)]
pub(crate) struct Live(pub(crate) Arc<dyn LivePartition>);

impl Live {
    /// The part of a range of offsets that the log has.
    pub(crate) fn clamped(
        &self,
        listing: &Listing,
        offsets: (Option<i64>, Option<i64>),
        isolation_level: IsolationLevel,
    ) -> LogResult<Range<i64>> {
        let log = self.0.offsets(isolation_level).map_err(|error| failed(listing, error))?;
        let end = offsets.1.map_or(log.end, |end| end.min(log.end));
        let start = offsets.0.map_or(log.start, |start| start.max(log.start));
        Ok(start.min(end)..end)
    }

    pub(crate) fn offset_for_timestamp(&self, listing: &Listing, timestamp: i64) -> LogResult<Option<i64>> {
        self.0.offset_for_timestamp(timestamp).map_err(|error| failed(listing, error))
    }

    /// Fetches a range of offsets.
    pub(crate) fn chunks(
        &self,
        listing: &Listing,
        offsets: Range<i64>,
        isolation_level: IsolationLevel,
    ) -> LogResult<LiveChunks> {
        self.part(listing, offsets.clone(), offsets, isolation_level)
    }

    /// Fetches a part of the requested offsets; see [`PartitionLog::live_part`](crate::PartitionLog::live_part).
    pub(crate) fn part(
        &self,
        listing: &Listing,
        part: Range<i64>,
        requested: Range<i64>,
        isolation_level: IsolationLevel,
    ) -> LogResult<LiveChunks> {
        let answers = if part.is_empty() {
            Box::new(std::iter::empty())
        } else {
            self.0.fetch(part.clone(), isolation_level).map_err(|error| failed(listing, error))?
        };
        let (topic, partition) = (listing.topic.clone(), listing.partition);
        let path = listing.location.path().to_owned();
        Ok(LiveChunks { path, topic, partition, part, requested, answers, fetched_bytes: 0 })
    }
}

fn failed(listing: &Listing, error: io::Error) -> LogError {
    LogError::io(listing.location.path(), error)
}

/// The answers to a fetch as chunks. Their positions count the bytes that were fetched.
pub struct LiveChunks {
    path: PathBuf,
    topic: String,
    partition: i32,
    part: Range<i64>,
    requested: Range<i64>,
    answers: Answers,
    fetched_bytes: u64,
}

impl fmt::Debug for LiveChunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveChunks")
            .field("path", &self.path)
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}

impl LiveChunks {
    /// The offsets that are fetched, of those that were asked for: the part that the log has.
    #[must_use]
    pub fn offsets(&self) -> Range<i64> {
        self.part.clone()
    }

    /// The batches of an answer that end before the next part begins.
    fn of_part(&self, records: Bytes) -> Bytes {
        if self.part.end >= self.requested.end {
            return records;
        }
        let mut batches = Batches::new(&records);
        let mut end = 0;
        while let Some(Ok(batch)) = batches.next() {
            if batch.last_offset() >= self.part.end {
                return records.slice(..end);
            }
            end = batches.next_position() as usize;
        }
        records
    }

    fn chunk(&mut self, answer: Answer) -> Chunk {
        let Answer { position, next_position, records, aborted_transactions } = answer;
        let start = self.fetched_bytes;
        let end = start + records.len() as u64;
        self.fetched_bytes = end;
        Chunk {
            expected_offset: expected_offset(&records, position),
            aborted: aborted_ranges(&records, &aborted_transactions),
            location: Location::in_memory(self.path.clone(), start, records),
            segment: String::new(),
            topic: self.topic.clone(),
            partition: self.partition,
            size: end,
            version: None,
            start,
            end,
            max_offset: MAX_OFFSET,
            next_offset: Some(next_position),
            log_start_offset: None,
            start_offset: Some(self.requested.start),
            end_offset: Some(self.requested.end),
        }
    }
}

impl Iterator for LiveChunks {
    type Item = LogResult<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.answers.next()? {
            Ok(mut answer) => {
                answer.records = self.of_part(answer.records);
                (!answer.records.is_empty()).then(|| Ok(self.chunk(answer)))
            }
            Err(error) => Some(Err(LogError::io(&self.path, error))),
        }
    }
}

/// The smallest offset of the first batch. It is before the position if that is inside the batch. After a gap
/// that is wider than a segment can be, it is the batch's own.
fn expected_offset(records: &[u8], position: i64) -> i64 {
    match Batches::new(records).next() {
        Some(Ok(Batch::V2(first))) if first.base_offset() > position.saturating_add(i32::MAX.into()) => {
            first.base_offset()
        }
        Some(Ok(Batch::V2(first))) => first.base_offset().min(position),
        // A wrapper's first offset is inside it.
        _ => 0,
    }
}

/// The aborted transactions with their ends: each ends at the next marker of its producer, if that is here.
fn aborted_ranges(records: &[u8], aborted: &[(i64, i64)]) -> Vec<AbortedTransaction> {
    let mut open: BTreeSet<(i64, i64)> = aborted.iter().copied().collect();
    let mut ranges = Vec::with_capacity(open.len());
    if open.is_empty() {
        return ranges;
    }
    let markers = Batches::new(records).map_while(Result::ok).filter(Batch::is_control);
    for marker in markers {
        let Some(marker) = marker.as_v2() else { continue };
        let (producer_id, last_offset) = (marker.producer_id(), marker.base_offset());
        let ended = open.extract_if((producer_id, i64::MIN)..(producer_id, last_offset), |_| true);
        ranges.extend(ended.map(|(_, first_offset)| AbortedTransaction {
            producer_id,
            first_offset,
            last_offset,
        }));
    }
    ranges.extend(open.into_iter().map(|(producer_id, first_offset)| AbortedTransaction {
        producer_id,
        first_offset,
        last_offset: MAX_OFFSET,
    }));
    ranges
}
