//! Arrow's binary view: a view a row, inline, or into bytes that were read or that are copied here.

use ::bytes::Bytes;
use arrow_array::BinaryViewArray;
use arrow_array::builder::make_view;
use arrow_buffer::{Buffer, NullBufferBuilder};

use crate::columns::binary_column::renew;
use crate::columns::recycled::Recycled;

/// Values of at least this many bytes are worth a view into the batch they came in; copying smaller ones
/// is quicker (docs/benchmarks.md). Twelve bytes and less stand in the view itself.
pub(super) const VIEW_FROM: usize = 1 << 10;
const INLINE: usize = 12;

/// Views of values. Buffer 0 has the values copied, the others are batches that are viewed in place.
#[derive(Debug)]
pub(super) struct ViewColumn {
    views: Vec<u128>,
    valid: NullBufferBuilder,
    copied: Vec<u8>,
    memory: Recycled,
    pinned: Vec<Buffer>,
    pinned_bytes: usize,
    /// The batch at hand, if its values are viewed in place: where it is and its buffer's number.
    at_hand: Option<(Bytes, u32)>,
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
            at_hand: None,
        }
    }
}

/// How full the column is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ViewMark {
    copied: usize,
    pinned: usize,
    pinned_bytes: usize,
}

impl ViewColumn {
    /// Bytes copied, and bytes kept alive by views into them.
    pub(super) fn bytes(&self) -> usize {
        self.copied.len() + self.pinned_bytes
    }

    pub(super) fn reserve(&mut self, rows: usize) {
        self.views.reserve(rows);
    }

    /// The values that follow are parts of `payload`, until [`leave`](Self::leave).
    pub(super) fn view_in(&mut self, payload: &Bytes) {
        self.pinned.push(Buffer::from(payload.clone()));
        self.pinned_bytes += payload.len();
        self.at_hand = Some((payload.clone(), self.pinned.len() as u32));
    }

    /// The values that follow are copied.
    pub(super) fn leave(&mut self) {
        self.at_hand = None;
    }

    #[inline]
    pub(super) fn push(&mut self, value: Option<&[u8]>) {
        let Some(bytes) = value else {
            self.views.push(0);
            self.valid.append_null();
            return;
        };
        self.valid.append_non_null();
        let view = match &self.at_hand {
            Some((payload, number)) if bytes.len() > INLINE => {
                let start = bytes.as_ptr() as usize - payload.as_ptr() as usize;
                make_view(bytes, *number, start as u32)
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
