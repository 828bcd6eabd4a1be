//! The rows of a batch, taken apart by the framing of their column.

use arrow_array::RecordBatch;

use magicbyte::Result;
use magicbyte::schema_framing::{Framed, Framing, SchemaHeader, Window, Windows};

use crate::cells::{Blobs, HeaderLists, wrong};

/// The column that is decoded, and its framing.
#[derive(Clone, Copy, Debug, Default)]
pub struct ColumnFraming {
    /// The column is `key`, otherwise `value`.
    pub is_key: bool,
    /// How its rows name their schemas.
    pub framing: Framing,
    /// The windows after its rows.
    pub windows: Windows,
}

/// A row before its schema is looked up.
pub(super) enum Row<'a> {
    Null,
    Framed(Parts<'a>),
    Unframed(&'a [u8]),
    /// A header with other content than its name says.
    BadHeader(SchemaHeader),
    /// Too short for a window.
    NoWindow(usize),
}

/// A value with its schema's name.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) value: &'a [u8],
    pub(super) framed: Framed<'a>,
    /// Apicurio's header with the name of a Protobuf message.
    pub(super) type_name: Option<&'a [u8]>,
}

/// What the headers of a row say.
#[derive(Default)]
struct Named<'a> {
    /// The name of the schema.
    schema: Option<(SchemaHeader, &'a [u8])>,
    /// The name of a Protobuf message.
    type_name: Option<&'a [u8]>,
}

/// The rows of a batch.
pub(super) struct Rows<'a> {
    pub(super) column: Blobs<'a>,
    headers: Option<HeaderLists<'a>>,
    of: ColumnFraming,
    pub(super) count: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn of(batch: &'a RecordBatch, of: ColumnFraming) -> Result<Self> {
        let name = if of.is_key { "key" } else { "value" };
        let Some(column) = batch.column_by_name(name) else {
            return Err(wrong("there is no such column", name));
        };
        Ok(Rows {
            column: Blobs::of(column, name)?,
            headers: batch.column_by_name("headers").map(HeaderLists::of).transpose()?,
            of,
            count: batch.num_rows(),
        })
    }

    #[inline(always)]
    pub(super) fn get(&self, row: usize) -> Row<'a> {
        let Some(mut value) = self.column.get(row) else { return Row::Null };
        if matches!(self.of.windows, Windows::Time | Windows::Session | Windows::Store) {
            match Window::split(value, self.of.windows) {
                Some((key, _)) => value = key,
                None => return Row::NoWindow(value.len()),
            }
        }
        let Named { schema: header, type_name } = match &self.headers {
            Some(headers) => self.schema_headers(headers, row),
            None => Named::default(),
        };
        match Framed::parse(value, header, self.of.framing) {
            Ok(Some(framed)) => Row::Framed(Parts { value, framed, type_name }),
            Ok(None) => Row::Unframed(value),
            Err(_) => Row::BadHeader(header.map_or(SchemaHeader::Confluent, |header| header.0)),
        }
    }

    /// Of several headers with one name, the last one counts, as for Kafka's `lastHeader`.
    #[inline]
    fn schema_headers(&self, headers: &HeaderLists<'a>, row: usize) -> Named<'a> {
        let mut named = Named::default();
        for item in headers.range(row) {
            let Some(key) = headers.keys.get(item) else { continue };
            if let Some(name) = SchemaHeader::of(key, self.of.is_key) {
                if name.is_of(self.of.framing) && named.schema.is_none_or(|before| name <= before.0) {
                    named.schema = Some((name, headers.values.get(item).unwrap_or_default()));
                }
            } else if key == SchemaHeader::protobuf_type(self.of.is_key) {
                named.type_name = headers.values.get(item);
            }
        }
        named
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Row<'a>> {
        (0..self.count).map(|row| self.get(row))
    }

    /// The window of a row, if the column has windows.
    pub(super) fn window(&self, row: usize) -> Option<Window> {
        Some(Window::split(self.column.get(row)?, self.of.windows)?.1)
    }
}
