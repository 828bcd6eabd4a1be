//! CSV by RFC 4180: lines end with CRLF. An empty field is null, and `""` is an empty text.

use arrow_array::Array;

use crate::lines::escape::push_text_of;
use crate::lines::fields::{Cells, Field, timestamp_type};
use crate::lines::json_lines::{bool_text, push_headers, push_integer};
use crate::lines::payload::PayloadFormat;
use crate::lines::rows::LineStyle;
use crate::schema::RecordColumn;

/// The columns of the JSON line, with headers as the JSON text they have there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Csv {
    pub(super) key: PayloadFormat,
    /// The format of values, and of values of headers.
    pub(super) value: PayloadFormat,
    /// True if invisible characters are escaped.
    pub(super) visible: bool,
}

impl Csv {
    /// Appends the first line: the names of the fields.
    pub(super) fn push_header(self, fields: &[Field<'_>], out: &mut Vec<u8>) {
        let names: Vec<_> = fields.iter().map(|field| field.name).collect();
        out.extend_from_slice(names.join(",").as_bytes());
        out.extend_from_slice(self.end(fields.is_empty()));
    }

    fn push_text(self, bytes: Option<&[u8]>, out: &mut Vec<u8>) {
        let Some(bytes) = bytes else { return };
        if !self.visible && std::str::from_utf8(bytes).is_ok() {
            return push_quoted(bytes, out);
        }
        let mut text = Vec::new();
        push_text_of(bytes, self.visible, &mut text);
        push_quoted(&text, out);
    }
}

impl LineStyle for Csv {
    fn label(&self, is_first: bool, _name: &str) -> Vec<u8> {
        if is_first { Vec::new() } else { b",".to_vec() }
    }

    fn push(&self, label: &[u8], field: &Field<'_>, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(label);
        match &field.cells {
            Cells::Int32(array) if array.is_null(row) => {}
            Cells::Int32(array) if field.column == RecordColumn::TimestampType => {
                out.extend_from_slice(timestamp_type(array.value(row)).unwrap_or_default().as_bytes());
            }
            Cells::Int32(array) => push_integer(array.value(row), out),
            Cells::Int64(array) if array.is_null(row) => {}
            Cells::Int64(array) => push_integer(array.value(row), out),
            Cells::Bool(array) if array.is_null(row) => {}
            Cells::Bool(array) => out.extend_from_slice(bool_text(array.value(row))),
            Cells::Time(times) => push_integer(times.get(row), out),
            Cells::Text(blobs) => self.push_text(blobs.get(row), out),
            Cells::Payload(blobs) => {
                match (if field.column == RecordColumn::Key { self.key } else { self.value }, blobs.get(row))
                {
                    (PayloadFormat::Hex | PayloadFormat::Base64, Some(b"")) => push_quoted(b"", out),
                    (format @ (PayloadFormat::Hex | PayloadFormat::Base64), Some(bytes)) => {
                        format.push_digits(bytes, out);
                    }
                    (_, bytes) => self.push_text(bytes, out),
                }
            }
            Cells::Json(array) => {
                self.push_text(array.is_valid(row).then(|| array.value(row).as_bytes()), out);
            }
            Cells::Invalid(array) => self.push_text(array.is_valid(row).then(|| array.value(row)), out),
            Cells::Headers(headers) if headers.range(row).is_empty() => out.extend_from_slice(b"[]"),
            Cells::Headers(headers) => {
                let mut text = Vec::new();
                push_headers(headers, row, self.value, &mut text);
                push_quoted(&text, out);
            }
        }
    }

    fn end(&self, _is_empty: bool) -> &'static [u8] {
        // A terminal turns LF into CRLF itself.
        if self.visible { b"\n" } else { b"\r\n" }
    }
}

/// Appends a field, in quotes if it needs them.
fn push_quoted(text: &[u8], out: &mut Vec<u8>) {
    if !text.is_empty() && !text.iter().any(|byte| matches!(byte, b'"' | b',' | b'\r' | b'\n')) {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    let mut copied = 0;
    for quote in memchr::memchr_iter(b'"', text) {
        // The quote is copied twice: once here, once with what follows.
        out.extend_from_slice(&text[copied..=quote]);
        copied = quote;
    }
    out.extend_from_slice(&text[copied..]);
    out.push(b'"');
}
