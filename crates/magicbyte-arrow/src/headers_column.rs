//! The column `headers`: `list<struct<key, value>>`.

use std::sync::Arc;

use arrow_array::{ListArray, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};

use magicbyte::Headers;

use crate::binary_column::{BinaryColumn, Offsets, renew};
use crate::schema::header_fields;

/// Collects the column `headers`, which is null for a record without headers, as in Spark's Kafka source.
/// Rows without headers, which is most of them, are filled in later.
#[derive(Debug, Default)]
pub(super) struct HeadersColumn {
    offsets: Offsets,
    /// One byte per row, which is faster to write than a bit.
    present: Vec<bool>,
    keys: BinaryColumn,
    values: BinaryColumn,
}

/// The length of the column, to which it can be truncated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeadersMark {
    headers: usize,
    key_bytes: usize,
    value_bytes: usize,
}

impl HeadersColumn {
    /// Bytes collected of keys and values.
    pub(super) fn bytes(&self) -> usize {
        self.keys.bytes() + self.values.bytes()
    }

    /// Sets the headers of this row. Rows without headers may be skipped.
    #[inline(always)]
    pub(super) fn push(&mut self, row: usize, headers: Headers<'_>) {
        if !headers.is_empty() {
            self.push_each(row, headers);
        }
    }

    #[inline(never)]
    fn push_each(&mut self, row: usize, headers: Headers<'_>) {
        self.fill(row);
        for header in headers {
            self.keys.push(Some(header.key));
            self.values.push(header.value);
        }
        self.present.push(true);
        self.offsets.push(self.keys.rows());
    }

    /// Fills in the rows before this one, which have no headers.
    fn fill(&mut self, row: usize) {
        self.present.resize(row, false);
        self.offsets.resize(row, self.keys.rows());
    }

    pub(super) fn mark(&self) -> HeadersMark {
        HeadersMark {
            headers: self.keys.rows(),
            key_bytes: self.keys.bytes(),
            value_bytes: self.values.bytes(),
        }
    }

    pub(super) fn truncate(&mut self, rows: usize, mark: HeadersMark) {
        self.offsets.truncate(rows);
        self.present.truncate(rows);
        self.keys.truncate(mark.headers, mark.key_bytes);
        self.values.truncate(mark.headers, mark.value_bytes);
    }

    pub(super) fn finish(&mut self, rows: usize) -> ListArray {
        self.fill(rows);
        let (keys, values) = (self.keys.finish_text(), self.values.finish());
        let entries = StructArray::new(header_fields(), vec![Arc::new(keys), Arc::new(values)], None);
        let field = Field::new("element", DataType::Struct(header_fields()), true);
        let present = NullBuffer::from(renew(&mut self.present));
        ListArray::new(Arc::new(field), self.offsets.finish(), Arc::new(entries), Some(present))
    }
}
