//! Keys and values that name their schemas, as a typed column.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use magicbyte::schema_framing::{
    Framed, IdSize, KEY_SCHEMA_ID_HEADER, MessageIndexes, SchemaId, VALUE_SCHEMA_ID_HEADER,
};
use magicbyte::{Error, Result};
use magicbyte_schema::{Payload, RowError, SchemaError};

use crate::cells::{Blobs, HeaderLists, wrong};
use crate::payload_decoder::PayloadDecoder;

/// Decodes the column `key` or `value` of batches to typed columns.
///
/// The caller decodes, supplies the schemas of unknown ids, and decodes again.
pub struct SchemaDecoder {
    decoder: PayloadDecoder,
    is_key: bool,
    id_size: IdSize,
    writers: Writers,
    schema: SchemaRef,
    /// Empty between batches, for its memory.
    payloads: Vec<Payload<'static>>,
}

enum Writer {
    /// The decoder's key for the writer.
    Known(u32),
    /// The reason why rows with this schema cannot be decoded.
    Refused(String),
}

/// The writers by the names of their schemas. Most ids are small numbers, and each row looks up its id.
#[derive(Default)]
struct Writers {
    /// Writers by id.
    small: Vec<Option<Writer>>,
    others: HashMap<SchemaId, Writer>,
    /// The number of known writers.
    known: u32,
}

/// Ids below this are in a table.
const SMALL: usize = 1 << 16;
/// The number of other ids beyond which only known ids are remembered: values may name any number of ids.
const MOST_REFUSED: usize = 1 << 16;

impl Writers {
    #[inline(always)]
    fn get(&self, id: SchemaId) -> Option<&Writer> {
        match small(id) {
            Some(index) => self.small.get(index)?.as_ref(),
            None => self.others.get(&id),
        }
    }

    fn insert(&mut self, id: SchemaId, writer: Writer) {
        self.known += u32::from(matches!(writer, Writer::Known(_)));
        match small(id) {
            Some(index) => {
                let end = self.small.len().max(index + 1);
                self.small.resize_with(end, || None);
                self.small[index] = Some(writer);
            }
            None => _ = self.others.insert(id, writer),
        }
    }

    fn forget_refused(&mut self) {
        if self.others.len() > MOST_REFUSED {
            self.others.retain(|_, writer| matches!(writer, Writer::Known(_)));
        }
    }
}

#[inline]
fn small(id: SchemaId) -> Option<usize> {
    match id {
        SchemaId::Id(id) => usize::try_from(id).ok().filter(|&id| id < SMALL),
        SchemaId::Guid(_) => None,
    }
}

/// The memory of more payloads than these is not kept between batches.
const MOST_KEPT: usize = 1 << 17;

/// A row before its schema is looked up.
enum Row<'a> {
    Null,
    Framed(Framed<'a>),
    Unframed(&'a [u8]),
    /// A schema header that has neither of the two forms.
    BadHeader,
}

/// A row that is ready to be decoded.
enum Ready<'a> {
    Null,
    Payload {
        id: Option<i64>,
        writer: u32,
        payload: &'a [u8],
        /// The position in the value at which the payload begins.
        start: usize,
        message_indexes: MessageIndexes,
    },
    Bad {
        id: Option<i64>,
        reason: String,
    },
    /// A schema that was not added.
    Unknown(SchemaId),
}

/// The first rows of a batch, decoded.
#[derive(Debug)]
pub struct TypedRows {
    /// The columns of [`SchemaDecoder::schema`].
    pub batch: RecordBatch,
    /// The number of these rows that name no schema. JSON is decoded all the same; in other formats, each such row is
    /// an error.
    pub unframed: usize,
}

impl SchemaDecoder {
    /// A decoder of the column `value`, or with `is_key` of `key`.
    #[must_use]
    pub fn new(decoder: PayloadDecoder, is_key: bool, id_size: IdSize) -> Self {
        let (name, mark, raw) =
            if is_key { ("key", "_key", "invalidKey") } else { ("value", "", "invalidValue") };
        let schema = Arc::new(Schema::new(vec![
            Field::new(name, decoder.data_type().clone(), true),
            Field::new(format!("{mark}_schema_id"), DataType::Int64, true),
            Field::new(format!("{mark}_error"), DataType::Utf8, true),
            Field::new(raw, DataType::Binary, true),
        ]));
        Self { decoder, is_key, id_size, writers: Writers::default(), schema, payloads: Vec::new() }
    }

    /// The columns that [`decode`](Self::decode) returns: the typed column, `_schema_id` (null for a GUID), `_error`,
    /// and `invalidValue`, the bytes of a row with an error. For keys, they are `_key_schema_id`, `_key_error`,
    /// `invalidKey`.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The schemas that rows of this batch name and that were not added, in order of their first rows.
    ///
    /// # Errors
    /// If the batch does not have the column, or it is neither binary nor text.
    pub fn new_ids(&self, batch: &RecordBatch) -> Result<Vec<SchemaId>> {
        let mut unknown = UnknownSchemas::default();
        for row in self.rows(batch)?.iter() {
            if let Row::Framed(framed) = row
                && self.writers.get(framed.schema).is_none()
            {
                unknown.add(framed.schema);
            }
        }
        Ok(unknown.ids)
    }

    /// Adds the schema with this id; `references` are those it uses, as name and text, each after those it uses itself.
    /// If it cannot be used, the reason becomes the error of its rows.
    pub fn add_writer(&mut self, id: SchemaId, schema: &str, references: &[(&str, &str)]) {
        let key = self.writers.known;
        match self.decoder.add_writer(key, schema, references) {
            Ok(()) => self.writers.insert(id, Writer::Known(key)),
            Err(error) => self.refuse(id, error.to_string()),
        }
    }

    /// Makes this reason the error of all rows with the id; of a long one, its start.
    pub fn refuse(&mut self, id: SchemaId, mut reason: String) {
        cut(&mut reason);
        self.writers.insert(id, Writer::Refused(reason));
    }

    /// The full names of the Protobuf messages in the rows, as far as their schemas were added, in order of their first
    /// rows.
    ///
    /// # Errors
    /// The errors of [`new_ids`](Self::new_ids).
    pub fn messages(&self, batch: &RecordBatch) -> Result<Vec<String>> {
        let PayloadDecoder::Protobuf(decoder) = &self.decoder else { return Ok(Vec::new()) };
        let mut seen = HashSet::new();
        let mut names = Vec::new();
        for row in self.rows(batch)?.iter() {
            if let Ready::Payload { writer, message_indexes, .. } = self.ready(row)
                && seen.insert((writer, message_indexes.clone()))
                && let Some(name) = decoder.message_name(writer, &message_indexes)
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Decodes the rows of a batch, or the first of them, at least one: those whose columns have room in memory, see
    /// [`Decoded`](magicbyte_schema::Decoded). The batch has the column, and maybe `headers`, whose schema header is decisive.
    ///
    /// # Errors
    /// [`DecodeError::UnknownSchemas`] before anything is decoded, if rows name schemas that were neither added nor refused; as
    /// [`new_ids`](Self::new_ids); and if the column would be larger than Arrow allows. What is wrong with a row is in its
    /// `_error`.
    pub fn decode(&mut self, batch: &RecordBatch) -> std::result::Result<TypedRows, DecodeError> {
        let rows = self.rows(batch)?;
        let mut unframed = Vec::new();
        let mut failed = Vec::new();
        let mut ids = Int64Builder::with_capacity(rows.count);
        let mut payloads = emptied(std::mem::take(&mut self.payloads));
        payloads.reserve(rows.count);
        let mut paths = Vec::new();
        let mut unknown = UnknownSchemas::default();
        for index in 0..rows.count {
            let row = rows.get(index);
            if let Row::Unframed(_) = row {
                unframed.push(index);
            }
            let (id, payload) = match self.ready(row) {
                Ready::Null => (None, Payload::default()),
                Ready::Bad { id, reason } => {
                    failed.push((index, reason));
                    (id, Payload::default())
                }
                Ready::Unknown(schema) => {
                    unknown.add(schema);
                    continue;
                }
                Ready::Payload { id, writer, payload, message_indexes, .. } => {
                    let message_indexes = match message_indexes {
                        MessageIndexes::Borrowed(path) => path,
                        MessageIndexes::Owned(path) => {
                            paths.push((index, path));
                            &[]
                        }
                    };
                    (id, Payload { bytes: Some(payload), writer, message_indexes })
                }
            };
            ids.append_option(id);
            payloads.push(payload);
        }
        if !unknown.ids.is_empty() {
            return Err(DecodeError::UnknownSchemas(unknown.ids));
        }
        for (index, path) in &paths {
            payloads[*index].message_indexes = path;
        }
        let decoded = self.decoder.decode(&payloads)?;
        let count = decoded.values.len();
        failed.retain(|row| row.0 < count);
        unframed.retain(|&row| row < count);
        if payloads.capacity() <= MOST_KEPT {
            self.payloads = emptied(payloads);
        }
        failed.extend(decoded.errors.into_iter().map(|error| {
            let start = match self.ready(rows.get(error.row)) {
                Ready::Payload { start, .. } => start,
                Ready::Null | Ready::Bad { .. } | Ready::Unknown(_) => 0,
            };
            (error.row, shown(error, start))
        }));
        failed.sort_unstable_by_key(|row| row.0);
        let mut texts = StringBuilder::new();
        let mut raw = BinaryBuilder::new();
        let mut next = 0;
        for (row, reason) in failed {
            texts.append_nulls(row - next);
            raw.append_nulls(row - next);
            texts.append_value(reason);
            raw.append_option(rows.column.get(row));
            next = row + 1;
        }
        texts.append_nulls(count - next);
        raw.append_nulls(count - next);
        self.writers.forget_refused();
        let ids = ids.finish().slice(0, count);
        let columns: Vec<ArrayRef> =
            vec![decoded.values, Arc::new(ids), Arc::new(texts.finish()), Arc::new(raw.finish())];
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| SchemaError::new(error.to_string()))?;
        Ok(TypedRows { batch, unframed: unframed.len() })
    }

    #[inline(always)]
    fn ready<'a>(&self, row: Row<'a>) -> Ready<'a> {
        let framed = match row {
            Row::Null => return Ready::Null,
            Row::Unframed(value) => return self.unframed(value),
            Row::BadHeader => {
                let reason = format!("the header {} is neither an id nor a GUID", self.header_name());
                return Ready::Bad { id: None, reason };
            }
            Row::Framed(framed) => framed,
        };
        let id = match framed.schema {
            SchemaId::Id(id) => Some(id),
            SchemaId::Guid(_) => None,
        };
        let writer = match self.writers.get(framed.schema) {
            Some(Writer::Known(writer)) => *writer,
            Some(Writer::Refused(reason)) => return Ready::Bad { id, reason: reason.clone() },
            None => return Ready::Unknown(framed.schema),
        };
        let (message_indexes, payload, start) = match self.decoder {
            PayloadDecoder::Protobuf(_) => match framed.message_indexes() {
                Ok((indexes, payload)) => {
                    let indexes_size = framed.payload.len() - payload.len();
                    (indexes, payload, framed.value_offset() + indexes_size)
                }
                Err(error) => return Ready::Bad { id, reason: error.to_string() },
            },
            _ => (MessageIndexes::default(), framed.payload, framed.value_offset()),
        };
        Ready::Payload { id, writer, payload, start, message_indexes }
    }

    fn unframed<'a>(&self, value: &'a [u8]) -> Ready<'a> {
        if let PayloadDecoder::Json(_) = self.decoder
            && !matches!(value.first(), None | Some(0 | 1))
        {
            let (writer, message_indexes) = (Payload::NO_WRITER, MessageIndexes::default());
            return Ready::Payload { id: None, writer, payload: value, start: 0, message_indexes };
        }
        let size = match self.id_size {
            IdSize::Four => 4,
            IdSize::Eight => 8,
        };
        let reason = match value.first() {
            None => format!("not framed: no bytes, expected 0x00 and an id of {size} bytes"),
            Some(first @ (0 | 1)) => {
                format!("not framed: {} bytes that begin with {first:#04x}, too few for an id", value.len())
            }
            Some(first) => {
                format!("not framed: begins with {first:#04x}, expected 0x00 and an id of {size} bytes")
            }
        };
        Ready::Bad { id: None, reason }
    }

    fn column<'a>(&self, batch: &'a RecordBatch) -> Result<Blobs<'a>> {
        let name = if self.is_key { "key" } else { "value" };
        match batch.column_by_name(name) {
            Some(column) => Blobs::of(column, name),
            None => Err(wrong("there is no such column", name)),
        }
    }

    fn header_name(&self) -> &'static str {
        if self.is_key { KEY_SCHEMA_ID_HEADER } else { VALUE_SCHEMA_ID_HEADER }
    }

    fn rows<'a>(&self, batch: &'a RecordBatch) -> Result<Rows<'a>> {
        Ok(Rows {
            column: self.column(batch)?,
            headers: batch.column_by_name("headers").map(HeaderLists::of).transpose()?,
            header_name: self.header_name(),
            id_size: self.id_size,
            count: batch.num_rows(),
        })
    }
}

/// Schemas that were not added, each once.
#[derive(Default)]
struct UnknownSchemas {
    ids: Vec<SchemaId>,
    seen: HashSet<SchemaId>,
}

impl UnknownSchemas {
    #[cold]
    fn add(&mut self, schema: SchemaId) {
        if self.ids.last() != Some(&schema) && self.seen.insert(schema) {
            self.ids.push(schema);
        }
    }
}

/// The memory of payloads, for others.
fn emptied<'a>(mut payloads: Vec<Payload<'_>>) -> Vec<Payload<'a>> {
    payloads.clear();
    // In place, as the two types have one layout.
    payloads.into_iter().map(|_| Payload::default()).collect()
}

/// The rows of a batch.
struct Rows<'a> {
    column: Blobs<'a>,
    headers: Option<HeaderLists<'a>>,
    header_name: &'static str,
    id_size: IdSize,
    count: usize,
}

impl<'a> Rows<'a> {
    #[inline(always)]
    fn get(&self, row: usize) -> Row<'a> {
        let Some(value) = self.column.get(row) else { return Row::Null };
        let header = self.headers.as_ref().and_then(|headers| {
            let is_named = |item: &usize| headers.keys.get(*item) == Some(self.header_name.as_bytes());
            // The last of several headers counts, as for Kafka's `lastHeader`.
            let item = headers.range(row).rev().find(is_named)?;
            Some(headers.values.get(item).unwrap_or_default())
        });
        match Framed::parse(value, header, self.id_size) {
            Ok(Some(framed)) => Row::Framed(framed),
            Ok(None) => Row::Unframed(value),
            Err(_) => Row::BadHeader,
        }
    }

    fn iter(&self) -> impl Iterator<Item = Row<'a>> {
        (0..self.count).map(|row| self.get(row))
    }
}

/// The text of an error in a payload that begins at this byte of its value.
fn shown(mut error: RowError, start: usize) -> String {
    cut(&mut error.reason);
    match error.position {
        Some(position) => format!("{} (byte {})", error.reason, position + start),
        None => error.reason,
    }
}

/// Bytes of a reason: a schema may have names of any length, and each row repeats them.
const MAX_REASON: usize = 500;

fn cut(reason: &mut String) {
    if reason.len() > MAX_REASON {
        reason.truncate(reason.floor_char_boundary(MAX_REASON));
        reason.push_str("...");
    }
}

/// The reason why a batch could not be decoded.
#[non_exhaustive]
#[derive(Debug)]
pub enum DecodeError {
    /// These have to be added or refused first; in order of their first rows.
    UnknownSchemas(Vec<SchemaId>),
    /// The batch does not have the column.
    Batch(Error),
    /// The column would be too large.
    Column(SchemaError),
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownSchemas(ids) => {
                write!(f, "{} unknown schemas, the first {:?}", ids.len(), ids.first())
            }
            Self::Batch(error) => error.fmt(f),
            Self::Column(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DecodeError {}

impl From<Error> for DecodeError {
    fn from(error: Error) -> Self {
        Self::Batch(error)
    }
}

impl From<SchemaError> for DecodeError {
    fn from(error: SchemaError) -> Self {
        Self::Column(error)
    }
}
