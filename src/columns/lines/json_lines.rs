//! JSON lines: one object per record.

use arrow_array::Array;

use crate::columns::cells::HeaderLists;
use crate::columns::lines::escape::push_json_string;
use crate::columns::lines::fields::{Cells, Field, timestamp_type};
use crate::columns::lines::payload::PayloadFormat;
use crate::columns::schema::RecordColumn;

/// How keys and values are written; values of headers are written as values are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JsonCells {
    pub(super) key: PayloadFormat,
    pub(super) value: PayloadFormat,
}

impl JsonCells {
    /// Appends a field's cell as JSON.
    #[inline]
    pub(super) fn push(self, field: &Field<'_>, row: usize, out: &mut Vec<u8>) {
        match &field.cells {
            Cells::Int32(array) if array.is_null(row) => push_null(out),
            Cells::Int32(array) if field.column == RecordColumn::TimestampType => {
                let name = timestamp_type(array.value(row));
                push_or_null(name, out, |name, out| push_json_string(name.as_bytes(), out));
            }
            Cells::Int32(array) => push_integer(array.value(row), out),
            Cells::Int64(array) if array.is_null(row) => push_null(out),
            Cells::Int64(array) => push_integer(array.value(row), out),
            Cells::Bool(array) if array.is_null(row) => push_null(out),
            Cells::Bool(array) => out.extend_from_slice(if array.value(row) { b"true" } else { b"false" }),
            Cells::Time(times) => push_integer(times.get(row), out),
            Cells::Text(blobs) => push_or_null(blobs.get(row), out, push_json_string),
            Cells::Payload(blobs) => {
                let format = if field.column == RecordColumn::Key { self.key } else { self.value };
                push_or_null(blobs.get(row), out, |bytes, out| format.push_json(bytes, out));
            }
            Cells::Headers(headers) => self.push_headers(headers, row, out),
        }
    }

    fn push_headers(self, headers: &HeaderLists<'_>, row: usize, out: &mut Vec<u8>) {
        let range = headers.range(row);
        out.push(b'[');
        for at in range.clone() {
            out.extend_from_slice(if at == range.start { b"{\"key\": " } else { b", {\"key\": " });
            push_or_null(headers.keys.get(at), out, push_json_string);
            out.extend_from_slice(b", \"value\": ");
            push_or_null(headers.values.get(at), out, |bytes, out| self.value.push_json(bytes, out));
            out.push(b'}');
        }
        out.push(b']');
    }
}

pub(super) fn push_integer(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn push_null(out: &mut Vec<u8>) {
    out.extend_from_slice(b"null");
}

fn push_or_null<T>(cell: Option<T>, out: &mut Vec<u8>, push: impl FnOnce(T, &mut Vec<u8>)) {
    match cell {
        Some(cell) => push(cell, out),
        None => push_null(out),
    }
}

/// Appends one object per row.
pub(super) fn push_json_lines(fields: &[Field<'_>], rows: usize, cells: JsonCells, out: &mut Vec<u8>) {
    let mut parts = parts_of(fields);
    for row in 0..rows {
        for part in &mut parts {
            match part {
                Part::Each { label, field } => {
                    out.extend_from_slice(label);
                    cells.push(field, row, out);
                }
                Part::Shared(run) => run.push(row, cells, out),
            }
        }
        out.extend_from_slice(if fields.is_empty() { b"{}\n" } else { b"}\n" });
    }
}

/// What a line consists of.
enum Part<'a> {
    /// A field with a value for each row.
    Each { label: Vec<u8>, field: &'a Field<'a> },
    /// Fields that neighbouring rows share.
    Shared(SharedRun<'a>),
}

/// Consecutive fields whose text is kept for as long as their values stay the same.
#[derive(Default)]
struct SharedRun<'a> {
    fields: Vec<(Vec<u8>, &'a Field<'a>)>,
    text: Vec<u8>,
    /// The row whose text that is.
    row: Option<usize>,
}

impl SharedRun<'_> {
    fn push(&mut self, row: usize, cells: JsonCells, out: &mut Vec<u8>) {
        if !self.row.is_some_and(|last| self.fields.iter().all(|(_, field)| field.same(row, last))) {
            self.text.clear();
            for (label, field) in &self.fields {
                self.text.extend_from_slice(label);
                cells.push(field, row, &mut self.text);
            }
        }
        self.row = Some(row);
        out.extend_from_slice(&self.text);
    }
}

fn parts_of<'a>(fields: &'a [Field<'a>]) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let mut label = if at == 0 { b"{".to_vec() } else { b", ".to_vec() };
        push_json_string(field.name.as_bytes(), &mut label);
        label.extend_from_slice(b": ");
        match parts.last_mut() {
            _ if !field.is_shared() => parts.push(Part::Each { label, field }),
            Some(Part::Shared(run)) => run.fields.push((label, field)),
            _ => {
                parts.push(Part::Shared(SharedRun { fields: vec![(label, field)], ..SharedRun::default() }));
            }
        }
    }
    parts
}
