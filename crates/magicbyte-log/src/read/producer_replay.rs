//! The producers of a log, as a broker knows them when it has replayed the log's batches (`ProducerStateManager`).

use std::ops::Range;

use magicbyte::Batch;
use magicbyte::state::{ProducerEvent, Producers};

use crate::error::LogResult;
use crate::listing::Segment;
use crate::read::header_scan::survey_with;
use crate::read::header_visitor::{Content, HeaderVisitor};

/// The fold over the batches of a log.
#[doc(hidden)]
#[derive(Debug)]
pub struct ProducerReplay {
    /// The producers.
    pub producers: Producers,
    /// The largest timestamp (ms) of the batches that are not markers; -1 if there are none.
    pub max_timestamp: i64,
    /// The offset after the last batch so far.
    next_offset: i64,
    end: i64,
}

impl ProducerReplay {
    /// Replays the batches with these offsets. The headers of all segments are scanned, which are in the order of their
    /// offsets.
    ///
    /// # Errors
    /// The errors of [`survey_segment`](crate::steps::survey_segment).
    pub fn of<'a>(segments: impl IntoIterator<Item = &'a Segment>, offsets: Range<i64>) -> LogResult<Self> {
        let Range { start, end } = offsets;
        let mut replay = Self { producers: Producers::default(), max_timestamp: -1, next_offset: start, end };
        for segment in segments {
            survey_with(segment, &mut replay)?;
        }
        Ok(replay)
    }
}

impl HeaderVisitor for ProducerReplay {
    fn visit(&mut self, batch: &Batch<'_>, _size: usize, content: Option<&Content>) {
        if batch.last_offset() < self.next_offset || batch.stored_offset() >= self.end {
            return;
        }
        self.next_offset = batch.last_offset().saturating_add(1);
        // The coordinator's clock says nothing about the producers'.
        if !batch.is_control() {
            self.max_timestamp = self.max_timestamp.max(batch.max_timestamp());
        }
        let Some(batch) = batch.as_v2().filter(|batch| batch.producer_id() >= 0) else { return };
        let event = match content.and_then(Content::control) {
            Some(control) => control.producer_event(batch),
            None if batch.is_control() => None,
            None => Some(ProducerEvent::of_data(batch)),
        };
        if let Some(event) = event {
            self.producers.apply(&event);
            // No follower is waited for here, so a transaction that has ended need not be remembered.
            self.producers.set_high_watermark(i64::MAX);
        }
    }
}
