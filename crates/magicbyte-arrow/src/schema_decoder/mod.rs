//! Keys and values that name their schemas, as a typed column.

mod inflate;
mod located;
mod rows;
mod writers;

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder, TimestampMicrosecondBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use magicbyte::schema_framing::{Framing, MessageIndexes, SchemaId, Window, Windows};
use magicbyte::{Error, Result};
use magicbyte_schema::{Decoded, Payload, RowError, SchemaError};

use crate::payload_decoder::PayloadDecoder;
use inflate::{MAX_INFLATED, inflate};
use located::{Given, Located, Ready};
pub use rows::ColumnFraming;
use rows::{Parts, Row, Rows};
use writers::{Refusal, UnknownSchemas, Writer, Writers};

/// Decodes the column `key` or `value` of batches to typed columns.
///
/// The caller decodes, supplies the schemas of unknown ids, and decodes again.
pub struct SchemaDecoder {
    decoder: PayloadDecoder,
    of: ColumnFraming,
    writers: Writers,
    given: Option<Given>,
    schema: SchemaRef,
    /// Empty between batches, for its memory.
    payloads: Vec<Payload<'static>>,
}

/// The memory of more payloads than these is not kept between batches.
const MAX_KEPT: usize = 1 << 17;

/// The first rows of a batch, decoded.
#[derive(Debug)]
pub struct TypedRows {
    /// The columns of [`SchemaDecoder::schema`].
    pub batch: RecordBatch,
    /// The number of these rows that name no schema. Those of JSON, and those whose schema is given, are decoded all the
    /// same; each other one is an error.
    pub unframed: usize,
    /// The rows whose schema is [`absent`](SchemaDecoder::absent) from the registry, in order.
    pub absent: Vec<usize>,
}

/// The rows of a batch by what they are; their indexes ascend.
#[derive(Default)]
struct Sorted<'a> {
    /// The id of each row.
    ids: Vec<Option<i64>>,
    unframed: Vec<usize>,
    absent: Vec<usize>,
    /// Rows without a payload, and the reasons.
    failed: Vec<(usize, String)>,
    /// Message indexes that the rows themselves do not have.
    paths: Vec<(usize, Vec<i32>)>,
    /// Rows whose payloads have to be inflated, with their writers.
    deflated: Vec<(usize, u32, Parts<'a>)>,
}

impl SchemaDecoder {
    /// A decoder of a column with its framing.
    #[must_use]
    pub fn new(decoder: PayloadDecoder, of: ColumnFraming) -> Self {
        let (name, mark, raw) =
            if of.is_key { ("key", "_key", "invalidKey") } else { ("value", "", "invalidValue") };
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let mut fields = vec![
            Field::new(name, decoder.data_type().clone(), true),
            Field::new(format!("{mark}_schema_id"), DataType::Int64, true),
            Field::new(format!("{mark}_error"), DataType::Utf8, true),
            Field::new(raw, DataType::Binary, true),
        ];
        let times: &[&str] = match of.windows {
            Windows::None | Windows::Auto => &[],
            Windows::Time | Windows::Store => &["start"],
            Windows::Session => &["start", "end"],
        };
        fields
            .extend(times.iter().map(|edge| Field::new(format!("{mark}_window_{edge}"), time.clone(), true)));
        let schema = Arc::new(Schema::new(fields));
        Self { decoder, of, writers: Writers::default(), given: None, schema, payloads: Vec::new() }
    }

    /// The columns that [`decode`](Self::decode) returns: the typed column, `_schema_id` (null for a GUID), `_error`,
    /// and `invalidValue`, the bytes of a row with an error. For keys, they are `_key_schema_id`, `_key_error`,
    /// `invalidKey`. With windows, there are also the start and for sessions the end: `_key_window_start`, `_key_window_end`.
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
            let Row::Framed(parts) = row else { continue };
            let long = parts.framed.with_long_id(parts.value).filter(|_| self.of.framing == Framing::Auto);
            for named in [Some(parts.framed), long].into_iter().flatten() {
                if self.writers.get(named.schema).is_none() {
                    unknown.add(named.schema);
                }
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
    pub fn refuse(&mut self, id: SchemaId, reason: String) {
        self.writers.insert(id, Writer::Refused(refusal(reason, false)));
    }

    /// The same for a schema that the registry does not have: its rows are in [`TypedRows::absent`].
    pub fn absent(&mut self, id: SchemaId, reason: String) {
        self.writers.insert(id, Writer::Refused(refusal(reason, true)));
    }

    /// Gives the schema of rows that name none, and of those framed by AWS Glue or as single objects whose schema was
    /// refused; `is_sole` gives it to all rows, whatever they name. With `no_ids` bare Avro may also begin like a framed row
    /// whose schema is [`absent`](Self::absent): the row stays absent if this schema does not read it. Of Protobuf it is the
    /// message `message`, by default the first one.
    ///
    /// If it cannot be used, the reason becomes the error of these rows.
    pub fn give(
        &mut self,
        schema: &str,
        references: &[(&str, &str)],
        message: Option<&str>,
        is_sole: bool,
        no_ids: bool,
    ) {
        let key = self.writers.known;
        self.writers.known += 1;
        let (writer, path) = match self.decoder.add_writer(key, schema, references) {
            Ok(()) => match self.decoder.given_path(key, message) {
                Ok(path) => (Writer::Known(key), path),
                Err(reason) => (Writer::Refused(refusal(reason, false)), MessageIndexes::default()),
            },
            Err(error) => (Writer::Refused(refusal(error.to_string(), false)), MessageIndexes::default()),
        };
        self.given = Some(Given { writer, path, is_sole, no_ids });
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
            if let Ready::Payload(Located { writer, path, .. }) = self.ready(row)
                && seen.insert((writer, path.clone()))
                && let Some(name) = decoder.message_name(writer, &path)
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
        let mut payloads = emptied(std::mem::take(&mut self.payloads));
        let mut sorted = self.sorted(&rows, &mut payloads)?;
        for (index, path) in &sorted.paths {
            payloads[*index].message_indexes = path;
        }
        let inflated = inflated(&sorted.deflated);
        if let Some((first_left, ..)) = sorted.deflated.get(inflated.len()) {
            payloads.truncate(*first_left);
        }
        let located = self.located_in(&sorted.deflated, &inflated, &mut sorted.failed);
        for (index, found) in &located {
            payloads[*index] =
                Payload { bytes: Some(found.payload), writer: found.writer, message_indexes: &found.path };
        }
        let decoded = self.decode_windowed(&mut payloads)?;
        if payloads.capacity() <= MAX_KEPT {
            self.payloads = emptied(payloads);
        }
        let Sorted { mut ids, unframed, mut absent, failed, .. } = sorted;
        for error in &decoded.errors {
            if let Some((id, _)) = self.absent_name(&rows.get(error.row)) {
                ids[error.row] = id;
                absent.push(error.row);
            }
        }
        absent.sort_unstable();
        let typed = self.typed(&rows, decoded, ids, failed)?;
        let count = typed.num_rows();
        self.writers.forget_refused();
        Ok(TypedRows {
            batch: typed,
            unframed: unframed.partition_point(|&row| row < count),
            absent: absent.into_iter().take_while(|&row| row < count).collect(),
        })
    }

    /// Sorts the rows of a batch by what they are; each gets a payload, if only an empty one.
    fn sorted<'a>(
        &self,
        rows: &Rows<'a>,
        payloads: &mut Vec<Payload<'a>>,
    ) -> std::result::Result<Sorted<'a>, DecodeError> {
        let mut sorted = Sorted { ids: Vec::with_capacity(rows.count), ..Sorted::default() };
        let mut unknown = UnknownSchemas::default();
        payloads.reserve(rows.count);
        for (index, row) in rows.iter().enumerate() {
            if let Row::Unframed(_) = row {
                sorted.unframed.push(index);
            }
            let (id, payload) = match self.ready(row) {
                Ready::Null => (None, Payload::default()),
                Ready::Bad { id, reason } => {
                    sorted.failed.push((index, reason));
                    (id, Payload::default())
                }
                Ready::Absent { id, reason } => {
                    sorted.absent.push(index);
                    sorted.failed.push((index, reason));
                    (id, Payload::default())
                }
                Ready::Unknown(schema) => {
                    unknown.add(schema);
                    continue;
                }
                Ready::Deflated(writer, parts) => {
                    sorted.deflated.push((index, writer, parts));
                    (None, Payload::default())
                }
                Ready::Payload(Located { id, writer, payload, path, .. }) => {
                    let message_indexes = match path {
                        MessageIndexes::Borrowed(path) => path,
                        MessageIndexes::Owned(path) => {
                            sorted.paths.push((index, path));
                            &[]
                        }
                    };
                    (id, Payload { bytes: Some(payload), writer, message_indexes })
                }
            };
            sorted.ids.push(id);
            payloads.push(payload);
        }
        if unknown.ids.is_empty() { Ok(sorted) } else { Err(DecodeError::UnknownSchemas(unknown.ids)) }
    }

    /// The columns of the rows that were decoded; those that `failed` before are null.
    fn typed(
        &self,
        rows: &Rows<'_>,
        decoded: Decoded,
        ids: Vec<Option<i64>>,
        mut failed: Vec<(usize, String)>,
    ) -> std::result::Result<RecordBatch, SchemaError> {
        let count = decoded.values.len();
        failed.retain(|row| row.0 < count);
        failed.extend(decoded.errors.into_iter().map(|error| {
            let row = error.row;
            (row, self.explained(rows.get(row), error))
        }));
        let mut columns: Vec<ArrayRef> =
            vec![decoded.values, Arc::new(ids.into_iter().take(count).collect::<Int64Array>())];
        columns.extend(error_columns(failed, rows, count));
        let times = self.schema.fields().len() - columns.len();
        if times > 0 {
            columns.extend(window_columns(rows, count).into_iter().take(times));
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| SchemaError::new(error.to_string()))
    }

    /// The payloads in inflated bytes; those that have none fail.
    fn located_in<'p>(
        &self,
        deflated: &[(usize, u32, Parts<'p>)],
        inflated: &'p [std::result::Result<Vec<u8>, String>],
        failed: &mut Vec<(usize, String)>,
    ) -> Vec<(usize, Located<'p>)> {
        let mut found = Vec::new();
        for ((index, writer, parts), bytes) in deflated.iter().zip(inflated) {
            let ready = match bytes {
                Ok(bytes) => self.located(parts, bytes, *writer),
                Err(reason) => {
                    Ready::Bad { id: None, reason: format!("framed by AWS Glue with zlib: {reason}") }
                }
            };
            match ready {
                Ready::Payload(payload) => found.push((*index, payload)),
                Ready::Bad { reason, .. } | Ready::Absent { reason, .. } => failed.push((*index, reason)),
                Ready::Null | Ready::Deflated(..) | Ready::Unknown(_) => {}
            }
        }
        found
    }

    /// Decodes payloads; those that cannot be decoded are tried again without their last bytes, if these are a window.
    fn decode_windowed(&mut self, payloads: &mut [Payload<'_>]) -> std::result::Result<Decoded, SchemaError> {
        let mut decoded = self.decoder.decode(payloads)?;
        if self.of.windows != Windows::Auto {
            return Ok(decoded);
        }
        for windows in [Windows::Session, Windows::Time] {
            let mut tried = Vec::new();
            for error in &decoded.errors {
                let whole = payloads[error.row];
                if let Some((key, _)) = whole.bytes.and_then(|bytes| Window::split_plausible(bytes, windows))
                {
                    payloads[error.row].bytes = Some(key);
                    tried.push((error.clone(), whole));
                }
            }
            if tried.is_empty() {
                continue;
            }
            decoded = self.decoder.decode(payloads)?;
            for error in &mut decoded.errors {
                if let Ok(place) = tried.binary_search_by_key(&error.row, |(before, _)| before.row) {
                    (*error, payloads[error.row]) = tried[place].clone();
                }
            }
        }
        Ok(decoded)
    }

    fn rows<'a>(&self, batch: &'a RecordBatch) -> Result<Rows<'a>> {
        Rows::of(batch, self.of)
    }
}

/// The payloads of the first of these rows, at least one: as many as have room in memory.
fn inflated(deflated: &[(usize, u32, Parts<'_>)]) -> Vec<std::result::Result<Vec<u8>, String>> {
    let mut payloads = Vec::new();
    let mut size = 0;
    for (_, _, parts) in deflated {
        if size >= MAX_INFLATED {
            break;
        }
        let payload = inflate(parts.framed.payload);
        size += payload.as_ref().map_or(0, Vec::len);
        payloads.push(payload);
    }
    payloads
}

/// The columns with the error and the bytes of each row that has one.
fn error_columns(mut failed: Vec<(usize, String)>, rows: &Rows<'_>, count: usize) -> [ArrayRef; 2] {
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
    [Arc::new(texts.finish()), Arc::new(raw.finish())]
}

/// The starts and the ends of windows; null without one, and for a time beyond 64 bits of microseconds.
fn window_columns(rows: &Rows<'_>, count: usize) -> [ArrayRef; 2] {
    let times = |edge: fn(Window) -> Option<i64>| {
        let mut times = TimestampMicrosecondBuilder::new().with_timezone("UTC");
        for row in 0..count {
            times.append_option(rows.window(row).and_then(edge).and_then(|millis| millis.checked_mul(1000)));
        }
        Arc::new(times.finish()) as ArrayRef
    };
    [times(|window| Some(window.start)), times(|window| window.end)]
}

/// The memory of payloads, for others.
fn emptied<'a>(mut payloads: Vec<Payload<'_>>) -> Vec<Payload<'a>> {
    payloads.clear();
    // In place, as the two types have one layout.
    payloads.into_iter().map(|_| Payload::default()).collect()
}

/// The text of an error in a payload that begins at this byte of its value.
fn shown(mut error: RowError, start: usize) -> String {
    cut(&mut error.reason);
    match error.position {
        Some(position) => format!("{} (byte {})", error.reason, position + start),
        None => error.reason,
    }
}

/// A refusal; of a long reason, there is the start.
fn refusal(mut reason: String, is_absent: bool) -> Refusal {
    cut(&mut reason);
    Refusal { reason, is_absent }
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
