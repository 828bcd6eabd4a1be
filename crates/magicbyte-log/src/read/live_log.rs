//! The log of a partition of a running cluster, fetched as chunks.

use std::ops::Range;

use magicbyte::state::IsolationLevel;

use crate::error::LogResult;
use crate::read::live::{Live, LiveChunks};
use crate::read::partition_log::PartitionLog;

impl PartitionLog {
    /// The part of a range of offsets that a running cluster has; `None` for files.
    ///
    /// # Errors
    /// [`LogError::Io`].
    #[doc(hidden)]
    pub fn live_offsets(
        &self,
        offsets: (Option<i64>, Option<i64>),
        isolation_level: IsolationLevel,
    ) -> LogResult<Option<Range<i64>>> {
        let clamped = |live: &Live| live.clamped(self.listing(), offsets, isolation_level);
        self.live().map(clamped).transpose()
    }

    /// Fetches the part of a range of offsets that a running cluster has, as chunks in memory; `None` for files.
    ///
    /// # Errors
    /// [`LogError::Io`].
    #[doc(hidden)]
    pub fn live_chunks(
        &self,
        offsets: (Option<i64>, Option<i64>),
        isolation_level: IsolationLevel,
    ) -> LogResult<Option<LiveChunks>> {
        self.live_part((None, None), offsets, isolation_level)
    }

    /// Fetches one of the neighbouring parts into which a request is divided, as far as a running cluster has it; `None`
    /// for files.
    ///
    /// A batch that extends past the end of a part belongs to the next one. Records outside of `requested`, which
    /// the first and the last batch may have, are counted as such.
    ///
    /// # Errors
    /// [`LogError::Io`].
    #[doc(hidden)]
    pub fn live_part(
        &self,
        part: (Option<i64>, Option<i64>),
        requested: (Option<i64>, Option<i64>),
        isolation_level: IsolationLevel,
    ) -> LogResult<Option<LiveChunks>> {
        let (Some(live), Some(requested)) = (self.live(), self.live_offsets(requested, isolation_level)?)
        else {
            return Ok(None);
        };
        let end = part.1.map_or(requested.end, |end| end.min(requested.end));
        let start = part.0.map_or(requested.start, |start| start.max(requested.start));
        live.part(self.listing(), start.min(end)..end, requested, isolation_level).map(Some)
    }
}
