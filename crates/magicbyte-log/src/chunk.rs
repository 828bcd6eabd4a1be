//! A byte range of a segment: the input of one task.

use std::ops::Range;

use magicbyte::Error;
use magicbyte::state::AbortedTransaction;

use crate::listing::Segment;
use crate::problem::Problem;
use crate::storage::location::Location;
use crate::storage::pin::is_pin;

/// The distance between the survey's borders, and the default size of a chunk: 4 MiB.
pub const DEFAULT_CHUNK_BYTES: u64 = 4 << 20;

/// The largest offset of a log: an offset follows it.
pub(crate) const MAX_OFFSET: i64 = i64::MAX - 1;

/// A byte range of a segment, cut at borders, with everything needed to decode it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Chunk {
    /// The segment; its path in JSON.
    #[serde(rename = "path")]
    pub location: Location,
    /// The segment's file name.
    pub segment: String,
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The segment's size when it was listed.
    pub size: u64,
    /// The segment's version when it was listed, see [`Segment::version`].
    #[serde(default)]
    pub version: Option<String>,
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// The smallest offset the first batch can have.
    pub expected_offset: i64,
    /// The largest offset the segment can hold, inclusive.
    pub max_offset: i64,
    /// The smallest offset that can follow the chunk, if anything does.
    pub next_offset: Option<i64>,
    /// The log's start, if records before it are to be left out.
    #[serde(default)]
    pub log_start_offset: Option<i64>,
    /// The first requested offset.
    pub start_offset: Option<i64>,
    /// The requested offsets end before this one.
    pub end_offset: Option<i64>,
    /// The aborted transactions that overlap the chunk; empty unless `read_committed`.
    pub aborted: Vec<AbortedTransaction>,
}

impl Chunk {
    /// True if the offset is before the log's start.
    #[doc(hidden)]
    #[must_use]
    pub fn is_deleted(&self, offset: i64) -> bool {
        self.log_start_offset.is_some_and(|start| offset < start)
    }

    /// True if the bytes are those of a local file, rather than fetched, decompressed or restored.
    #[doc(hidden)]
    #[must_use]
    pub fn is_of_local_file(&self) -> bool {
        self.location.is_live() && self.version.as_deref().is_none_or(is_pin)
    }

    /// True if only some of the chunk's offsets were requested.
    pub(crate) fn is_limited(&self) -> bool {
        self.start_offset.is_some() || self.end_offset.is_some()
    }

    /// A problem with a byte range of the chunk.
    #[doc(hidden)]
    #[must_use]
    pub fn problem(&self, range: Range<u64>, error: &Error) -> Problem {
        Problem::of_bytes(&self.topic, self.partition, &self.segment, range, error)
    }

    /// A byte range of a segment whose offsets begin at `base`, without filters. A range inside the segment
    /// can be given a better `expected_offset`.
    pub(crate) fn of(segment: &Segment, base: i64, range: std::ops::Range<u64>) -> Self {
        Self {
            location: segment.location.clone(),
            segment: segment.file.clone(),
            topic: segment.topic.clone(),
            partition: segment.partition,
            size: segment.size,
            version: segment.version.clone(),
            start: range.start,
            end: range.end,
            expected_offset: base,
            max_offset: MAX_OFFSET,
            next_offset: None,
            log_start_offset: None,
            start_offset: None,
            end_offset: None,
            aborted: Vec::new(),
        }
    }
}
