//! Arrow binary columns: 32-bit offsets and contiguous bytes, copied record by record.

use arrow_array::{BinaryArray, StringArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};

use crate::recycled::Recycled;

/// Collects a binary column. Its size stays below 2 GiB, since Arrow batches are limited to far less (see
/// [`super::DecodeOptions`]).
#[derive(Debug)]
pub(super) struct BinaryColumn {
    offsets: Offsets,
    data: Vec<u8>,
    memory: Recycled,
    valid: NullBufferBuilder,
}

impl Default for BinaryColumn {
    fn default() -> Self {
        Self {
            offsets: Offsets::default(),
            data: Vec::new(),
            memory: Recycled::default(),
            valid: NullBufferBuilder::new(0),
        }
    }
}

impl BinaryColumn {
    /// Rows collected.
    pub(super) fn rows(&self) -> usize {
        self.offsets.rows()
    }

    /// Bytes collected.
    pub(super) fn bytes(&self) -> usize {
        self.data.len()
    }

    pub(super) fn reserve(&mut self, rows: usize) {
        self.offsets.reserve(rows);
    }

    #[inline(always)]
    pub(super) fn push(&mut self, value: Option<&[u8]>) {
        if let Some(bytes) = value {
            self.data.extend_from_slice(bytes);
            self.valid.append_non_null();
        } else {
            self.valid.append_null();
        }
        self.offsets.push(self.data.len());
    }

    pub(super) fn truncate(&mut self, rows: usize, bytes: usize) {
        self.offsets.truncate(rows);
        self.data.truncate(bytes);
        self.valid.truncate(rows);
    }

    pub(super) fn finish(&mut self) -> BinaryArray {
        BinaryArray::new(self.offsets.finish(), self.memory.renew(&mut self.data), self.valid.finish())
    }

    /// Returns the values as UTF-8 text; invalid sequences become U+FFFD, as in Kafka's header keys.
    pub(super) fn finish_text(&mut self) -> StringArray {
        let bytes = self.finish();
        match StringArray::try_from_binary(bytes.clone()) {
            Ok(text) => text,
            Err(_) => bytes.iter().map(|key| key.map(String::from_utf8_lossy)).collect(),
        }
    }
}

/// Arrow's 32-bit offsets: a zero, then the end of each row.
#[derive(Debug)]
pub(super) struct Offsets(Vec<i32>);

impl Default for Offsets {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl Offsets {
    #[inline]
    pub(super) fn push(&mut self, end: usize) {
        self.0.push(end as i32);
    }

    pub(super) fn rows(&self) -> usize {
        self.0.len() - 1
    }

    pub(super) fn reserve(&mut self, rows: usize) {
        self.0.reserve(rows);
    }

    /// Adds rows up to `rows`, all of which end at `end`.
    pub(super) fn resize(&mut self, rows: usize, end: usize) {
        self.0.resize(rows + 1, end as i32);
    }

    pub(super) fn truncate(&mut self, rows: usize) {
        self.0.truncate(rows + 1);
    }

    pub(super) fn finish(&mut self) -> OffsetBuffer<i32> {
        let offsets = renew(&mut self.0);
        self.0.push(0);
        OffsetBuffer::new(offsets.into())
    }
}

/// Takes the collected values, and leaves a vector of a slightly larger capacity, so that the next Arrow
/// batch of similar size does not have to grow.
pub(super) fn renew<T>(column: &mut Vec<T>) -> Vec<T> {
    let capacity = column.len() + column.len() / 4;
    std::mem::replace(column, Vec::with_capacity(capacity))
}
