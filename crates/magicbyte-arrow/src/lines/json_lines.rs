//! JSON lines: one object per record.

use arrow_array::Array;

use crate::cells::HeaderLists;
use crate::lines::escape::{push_json_document, push_json_string};
use crate::lines::fields::{Cells, Field, timestamp_type};
use crate::lines::payload::PayloadFormat;
use crate::lines::rows::LineStyle;
use crate::schema::RecordColumn;

/// Objects, with spaces after colons and commas.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonLines {
    pub(super) key: PayloadFormat,
    /// The format of values, and of values of headers.
    pub(super) value: PayloadFormat,
}

impl LineStyle for JsonLines {
    fn label(&self, is_first: bool, name: &str) -> Vec<u8> {
        let mut label = if is_first { b"{".to_vec() } else { b", ".to_vec() };
        push_json_string(name.as_bytes(), &mut label);
        label.extend_from_slice(b": ");
        label
    }

    #[inline]
    fn push(&self, label: &[u8], field: &Field<'_>, row: usize, out: &mut Vec<u8>) {
        if matches!(field.cells, Cells::Invalid(array) if array.is_null(row)) {
            return;
        }
        out.extend_from_slice(label);
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
            Cells::Bool(array) => out.extend_from_slice(bool_text(array.value(row))),
            Cells::Time(times) => push_integer(times.get(row), out),
            Cells::Text(blobs) => push_or_null(blobs.get(row), out, push_json_string),
            Cells::Payload(blobs) => {
                let format = if field.column == RecordColumn::Key { self.key } else { self.value };
                push_or_null(blobs.get(row), out, |bytes, out| format.push_json(bytes, out));
            }
            Cells::Json(array) if array.is_null(row) => push_null(out),
            Cells::Json(array) => push_json_document(array.value(row), out),
            Cells::Invalid(array) => push_invalid(array.value(row), out),
            Cells::Headers(headers) => push_headers(headers, row, self.value, out),
        }
    }

    fn end(&self, is_empty: bool) -> &'static [u8] {
        if is_empty { b"{}\n" } else { b"}\n" }
    }
}

/// Appends bytes that are no document: a string, or an object with their base64 if they are not UTF-8.
fn push_invalid(bytes: &[u8], out: &mut Vec<u8>) {
    if std::str::from_utf8(bytes).is_ok() {
        push_json_string(bytes, out);
    } else {
        out.extend_from_slice(b"{\"base64\": ");
        PayloadFormat::Base64.push_json(bytes, out);
        out.push(b'}');
    }
}

/// Appends a list of objects with `key` and `value`.
pub(super) fn push_headers(headers: &HeaderLists<'_>, row: usize, format: PayloadFormat, out: &mut Vec<u8>) {
    let range = headers.range(row);
    out.push(b'[');
    for at in range.clone() {
        out.extend_from_slice(if at == range.start { b"{\"key\": " } else { b", {\"key\": " });
        push_or_null(headers.keys.get(at), out, push_json_string);
        out.extend_from_slice(b", \"value\": ");
        push_or_null(headers.values.get(at), out, |bytes, out| format.push_json(bytes, out));
        out.push(b'}');
    }
    out.push(b']');
}

pub(super) fn push_integer(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

pub(super) fn bool_text(value: bool) -> &'static [u8] {
    if value { b"true" } else { b"false" }
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
