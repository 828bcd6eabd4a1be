//! Arrow binary view columns: one view per row, inline or into bytes of a batch or a copy.

use ::bytes::Bytes;
use arrow_array::BinaryViewArray;
use arrow_array::builder::make_view;
use arrow_buffer::{Buffer, NullBufferBuilder};

use crate::binary_column::renew;
use crate::recycled::Recycled;

/// From this average size of records on, views into the batch are worthwhile; copying smaller values is
/// faster (docs/benchmarks.md).
pub(super) const VIEW_FROM: usize = 1 << 10;
/// Values of up to this many bytes are stored in the view itself.
const INLINE: usize = 12;

/// Collects a column of views. Buffer 0 has the copied values, the others are the batches that are viewed in
/// place.
#[derive(Debug)]
pub(super) struct ViewColumn {
    views: Vec<u128>,
    valid: NullBufferBuilder,
    copied: Vec<u8>,
    memory: Recycled,
    pinned: Vec<Buffer>,
    pinned_bytes: usize,
    /// The current batch and the index of its buffer, if its values are viewed in place.
    current: Option<(Bytes, u32)>,
}

impl Default for ViewColumn {
    fn default() -> Self {
        Self {
            views: Vec::new(),
            valid: NullBufferBuilder::new(0),
            copied: Vec::new(),
            memory: Recycled::default(),
            pinned: Vec::new(),
            pinned_bytes: 0,
            current: None,
        }
    }
}

/// The length of the column, to which it can be truncated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ViewMark {
    copied: usize,
    pinned: usize,
    pinned_bytes: usize,
}

impl ViewColumn {
    /// Bytes copied or kept alive by views.
    pub(super) fn bytes(&self) -> usize {
        self.copied.len() + self.pinned_bytes
    }

    pub(super) fn reserve(&mut self, rows: usize) {
        self.views.reserve(rows);
    }

    /// Makes the following values, which are parts of `payload`, views into it, until [`leave`](Self::leave).
    pub(super) fn view_in(&mut self, payload: &Bytes) {
        self.pinned.push(Buffer::from(payload.clone()));
        self.pinned_bytes += payload.len();
        self.current = Some((payload.clone(), self.pinned.len() as u32));
    }

    /// Copies the following values.
    pub(super) fn leave(&mut self) {
        self.current = None;
    }

    #[inline]
    pub(super) fn push(&mut self, value: Option<&[u8]>) {
        let Some(bytes) = value else {
            self.views.push(0);
            self.valid.append_null();
            return;
        };
        self.valid.append_non_null();
        let view = match &self.current {
            Some((payload, buffer)) if bytes.len() > INLINE => {
                let start = bytes.as_ptr() as usize - payload.as_ptr() as usize;
                make_view(bytes, *buffer, start as u32)
            }
            _ if bytes.len() > INLINE => {
                let start = self.copied.len();
                self.copied.extend_from_slice(bytes);
                make_view(bytes, 0, start as u32)
            }
            _ => make_view(bytes, 0, 0),
        };
        self.views.push(view);
    }

    pub(super) fn mark(&self) -> ViewMark {
        let (copied, pinned, pinned_bytes) = (self.copied.len(), self.pinned.len(), self.pinned_bytes);
        ViewMark { copied, pinned, pinned_bytes }
    }

    pub(super) fn truncate(&mut self, rows: usize, mark: ViewMark) {
        self.views.truncate(rows);
        self.valid.truncate(rows);
        self.copied.truncate(mark.copied);
        self.pinned.truncate(mark.pinned);
        self.pinned_bytes = mark.pinned_bytes;
    }

    pub(super) fn finish(&mut self) -> BinaryViewArray {
        let mut buffers = vec![self.memory.renew(&mut self.copied)];
        buffers.append(&mut self.pinned);
        self.pinned_bytes = 0;
        BinaryViewArray::new(renew(&mut self.views).into(), buffers, self.valid.finish())
    }
}
