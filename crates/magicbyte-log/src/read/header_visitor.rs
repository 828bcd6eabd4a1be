//! Visitors of a scan over batch headers: what they are shown of each batch.

use magicbyte::state::ProducerEvent;
use magicbyte::{Batch, ControlType, RecordBatch};

use crate::segment::wrapper::InnerMessages;

/// Receives the batches of a survey's scan.
#[doc(hidden)]
pub trait HeaderVisitor: Send {
    /// Receives the header of the log's next batch, and what the header does not say, if that can be read.
    fn visit(&mut self, batch: &Batch<'_>, size: usize, content: Option<&Content>);

    /// True if the scan decompresses legacy wrappers to count their messages.
    fn counts_messages(&self) -> bool {
        false
    }

    /// True if the scan reads the first record of every control batch, not only of markers.
    fn reads_controls(&self) -> bool {
        true
    }
}

impl<V: HeaderVisitor> HeaderVisitor for &mut V {
    fn visit(&mut self, batch: &Batch<'_>, size: usize, content: Option<&Content>) {
        (**self).visit(batch, size, content);
    }

    fn counts_messages(&self) -> bool {
        (**self).counts_messages()
    }

    fn reads_controls(&self) -> bool {
        (**self).reads_controls()
    }
}

/// The visitor of a survey that nobody else looks at.
impl HeaderVisitor for () {
    fn visit(&mut self, _batch: &Batch<'_>, _size: usize, _content: Option<&Content>) {}

    fn reads_controls(&self) -> bool {
        false
    }
}

/// The part of a batch that only its records show.
#[doc(hidden)]
pub enum Content {
    /// The first record of a control batch.
    Control(Control),
    /// The messages of a legacy wrapper.
    Messages(InnerMessages),
}

impl Content {
    /// The first record of a control batch.
    pub(crate) fn control(&self) -> Option<&Control> {
        match self {
            Self::Control(control) => Some(control),
            Self::Messages(_) => None,
        }
    }
}

/// The first record of a control batch. Its `kind` is None in a batch that compaction emptied.
#[doc(hidden)]
pub struct Control {
    pub(crate) kind: Option<ControlType>,
    /// The coordinator epoch of a marker whose value can be read.
    pub(crate) coordinator_epoch: Option<i32>,
    /// Timestamp in milliseconds.
    pub(crate) timestamp: i64,
}

impl Control {
    /// True for a commit, false for an abort; None for any other record. Only the key counts, as in Kafka.
    pub(crate) fn committed(&self) -> Option<bool> {
        match self.kind {
            Some(ControlType::Commit) => Some(true),
            Some(ControlType::Abort) => Some(false),
            _ => None,
        }
    }
    /// The event of the producer whose batch this is the first record of; None unless it ends a transaction.
    pub(crate) fn producer_event(&self, batch: &RecordBatch<'_>) -> Option<ProducerEvent> {
        let (producer_id, producer_epoch) = (batch.producer_id(), batch.producer_epoch());
        let offset = batch.base_offset();
        if self.kind.is_none() {
            return Some(ProducerEvent::EmptyMarker { producer_id, producer_epoch, offset });
        }
        Some(ProducerEvent::Marker {
            producer_id,
            producer_epoch,
            committed: self.committed()?,
            coordinator_epoch: self.coordinator_epoch.unwrap_or(-1),
            offset,
            timestamp: self.timestamp,
        })
    }
}
