//! Plain Arrow binary: 32-bit offsets and one run of bytes, copied as records come.

use arrow_array::{BinaryArray, StringArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};

use crate::columns::recycled::Recycled;

/// Its size stays below 2 GiB because an Arrow batch is cut long before (see [`super::DecodeOptions`]).
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

    /// As UTF-8, U+FFFD for what is not, as Kafka's own header keys.
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

    /// More rows, up to `rows`, that all end here.
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

/// What was collected. A little more room than it took is kept ready, so that the next Arrow batch of the
/// same kind need not grow.
pub(super) fn renew<T>(column: &mut Vec<T>) -> Vec<T> {
    let capacity = column.len() + column.len() / 4;
    std::mem::replace(column, Vec::with_capacity(capacity))
}
