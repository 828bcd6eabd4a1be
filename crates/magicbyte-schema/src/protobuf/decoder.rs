//! [`ProtobufDecoder`].

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow_array::types::Utf8Type;
use arrow_schema::{DataType, Field, Fields};
use prost_reflect::{FileDescriptor, MessageDescriptor};

use super::columns::{Bytes, Column};
use super::json::text_of;
use super::message::{self, Embedded, Label, Message, Messages, Value};
use super::paths::Paths;
use super::shape::Shapes;
use super::value::BytesPlace;
use super::wire::Reader;
use super::{files, indexes, plan};
use crate::budget::Budget;
use crate::decoded::{Decoded, RowError};
use crate::error::{Result, SchemaError};
use crate::failure::{Attempt, Failure};
use crate::payload::Payload;

/// Decodes Protobuf payloads to one column, whatever version of a schema each was written with.
///
/// Fields are found by their numbers, so messages of older and newer versions are read as the reader's. Of the writer's
/// schema only one thing matters: which of its messages a payload is.
///
/// The types are those of Spark's `from_protobuf` with `upcast.unsigned.ints`, `emit.default.values` and
/// `retain.empty.message.types`: no number changes its sign, and null means that a field is absent. A message that
/// contains itself, and so `google.protobuf.Struct`, is text where it does: its JSON.
///
/// ```
/// use magicbyte_schema::{Payload, protobuf::ProtobufDecoder};
///
/// let schema = r#"syntax = "proto3"; message Order { int64 id = 1; repeated string tags = 2; }"#;
/// let mut decoder = ProtobufDecoder::new(schema, &[], &[])?;
/// decoder.add_writer(7, schema, &[])?;
/// let payload = |bytes| Payload { bytes: Some(bytes), writer: 7, message_indexes: &[0] };
/// let decoded = decoder.decode(&[payload(b"\x08\x05\x12\x01a"), payload(b"\x08")])?;
/// assert_eq!(decoded.values.len(), 2);
/// assert_eq!(decoded.errors[0].row, 1);
/// assert_eq!(decoded.errors[0].reason, "id: a varint is cut off");
/// # Ok::<(), magicbyte_schema::SchemaError>(())
/// ```
pub struct ProtobufDecoder {
    target: Target,
    data_type: DataType,
    writers: HashMap<u32, Writer>,
}

enum Target {
    Columns {
        /// Full names of the messages that are read.
        names: Vec<String>,
        /// The message; of several, a message with each of them as a field.
        root: Box<Messages>,
    },
    Text(Bytes<Utf8Type>),
}

struct Writer {
    file: FileDescriptor,
    /// The messages of the schema, if payloads become text.
    shapes: Option<Arc<Shapes>>,
    /// By message indexes.
    messages: HashMap<Vec<i32>, Written>,
    /// Only framings without message indexes need them.
    paths: OnceLock<Paths>,
}

/// The message that the payload before was: mostly, the next one is the same.
struct Last<'a> {
    writer: u32,
    message_indexes: &'a [i32],
    read_as: usize,
}

/// A message that payloads are.
struct Written {
    message: MessageDescriptor,
    /// Which of the decoder's messages it is, if it is one.
    read_as: Option<usize>,
    /// Its shape, if payloads become text.
    shape: Option<(Arc<Shapes>, usize)>,
}

impl ProtobufDecoder {
    /// A decoder to the columns of messages of a schema. `references` are the files that it imports, directly or not, as
    /// name and text; those of `google/protobuf/` and `google/type/` are known, and others that are missing are empty. A text
    /// may be an encoded descriptor in base64.
    ///
    /// `messages` are full names. Without any it is the first message of the file. Of several, each is a field of the
    /// struct, with the message's name, and null in rows of the others.
    ///
    /// # Errors
    /// If the schema does not compile, it has no such message, or a message has more than 10,000 columns.
    pub fn new(schema: &str, references: &[(&str, &str)], messages: &[&str]) -> Result<Self> {
        let file = files::compile(schema, references)?;
        let chosen = match messages {
            [] => {
                let first = file.messages().next();
                vec![first.ok_or_else(|| SchemaError::new("the schema has no message"))?]
            }
            names => names.iter().map(|name| find(&file, name)).collect::<Result<Vec<_>>>()?,
        };
        let planned = chosen.iter().map(plan::columns).collect::<Result<Vec<_>>>()?;
        let names = chosen.iter().map(|message| message.full_name().to_owned()).collect();
        let (root, data_type) = one_of(&chosen, planned);
        let target = Target::Columns { names, root: Box::new(root) };
        Ok(Self { target, data_type, writers: HashMap::new() })
    }

    /// A decoder to text: each message as Protobuf's JSON, by the schema that it was written with.
    #[must_use]
    pub fn text() -> Self {
        let target = Target::Text(Bytes::new(None));
        Self { target, data_type: DataType::Utf8, writers: HashMap::new() }
    }

    /// The type of the column: a struct, or text.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Adds the schema that payloads with this key were written with, or replaces it; arguments are as for `new`.
    ///
    /// # Errors
    /// If it does not compile.
    pub fn add_writer(&mut self, key: u32, schema: &str, references: &[(&str, &str)]) -> Result<()> {
        let file = files::compile(schema, references)?;
        let shapes = match self.target {
            Target::Text(_) => Some(Arc::new(Shapes::new(file.parent_pool()))),
            Target::Columns { .. } => None,
        };
        self.writers.insert(key, Writer { file, shapes, messages: HashMap::new(), paths: OnceLock::new() });
        Ok(())
    }

    /// The full name of a message in a writer's schema; `None` if there is no such writer or message.
    #[must_use]
    pub fn message_name(&self, writer: u32, message_indexes: &[i32]) -> Option<String> {
        let message = indexes::message(&self.writers.get(&writer)?.file, message_indexes)?;
        Some(message.full_name().to_owned())
    }

    /// The message indexes of the message with this name, full or without its package, in a writer's schema; of several
    /// without it, of the outermost one. `None` if there is no such writer or message.
    #[must_use]
    pub fn path_of(&self, writer: u32, name: &str) -> Option<&[i32]> {
        self.paths(writer)?.named(name)
    }

    /// The message indexes of the message at this place among all messages of a writer's schema, those inside others and the
    /// entries of maps too, in the order of their full names. `None` if there is no such writer or message.
    #[must_use]
    pub fn path_at(&self, writer: u32, place: u32) -> Option<&[i32]> {
        self.paths(writer)?.at(place)
    }

    fn paths(&self, writer: u32) -> Option<&Paths> {
        let writer = self.writers.get(&writer)?;
        Some(writer.paths.get_or_init(|| Paths::of(&writer.file)))
    }

    /// Decodes payloads, or the first of them; see [`Decoded`].
    ///
    /// # Errors
    /// If a column would have more bytes than Arrow's offsets can count: try fewer payloads. What is wrong with a
    /// payload is in [`Decoded::errors`].
    pub fn decode(&mut self, payloads: &[Payload<'_>]) -> Result<Decoded> {
        let mut errors = Vec::new();
        let mut last = None;
        let mut budget = Budget::new(match &self.target {
            Target::Columns { root, .. } => root.row_size(),
            Target::Text(text) => text.row_size(),
        });
        let mut rows = 0;
        for (row, payload) in payloads.iter().enumerate() {
            if !budget.begin(payload.size()) {
                break;
            }
            rows += 1;
            let Err(failure) = self.decode_one(row, payload, &mut last, &mut budget) else { continue };
            let column = self.target.column();
            column.truncate(row);
            if failure.is_full() {
                column.truncate(0);
                return Err(SchemaError::new(failure.text()));
            }
            errors.push(RowError { row, position: failure.position(), reason: failure.text() });
        }
        let column = self.target.column();
        match column.finish(rows) {
            Ok(values) => Ok(Decoded { values, errors }),
            Err(failure) => {
                column.truncate(0);
                Err(SchemaError::new(failure.text()))
            }
        }
    }

    fn decode_one<'a>(
        &mut self,
        row: usize,
        payload: &Payload<'a>,
        last: &mut Option<Last<'a>>,
        budget: &mut Budget,
    ) -> Attempt<()> {
        let Some(bytes) = payload.bytes else { return Ok(()) };
        let read_as = match last {
            Some(last) if last.is_of(payload) => last.read_as,
            _ => {
                let &Payload { writer, message_indexes, .. } = payload;
                let Some(of) = self.writers.get_mut(&writer) else {
                    return Err(Failure::new(format!("no schema was added for the writer {writer}")));
                };
                let written = of.message(message_indexes, &self.target)?;
                let names = match &mut self.target {
                    Target::Text(text) => {
                        let Some((shapes, index)) = &written.shape else { return Ok(()) };
                        return text.set(row, &text_of(shapes, *index, bytes, budget)?);
                    }
                    Target::Columns { names, .. } => names,
                };
                let Some(read_as) = written.read_as else {
                    let (found, expected) = (written.message.full_name(), names.join(" or "));
                    return Err(Failure::new(format!("it is a message {found}: expected {expected}")));
                };
                last.insert(Last { writer, message_indexes, read_as }).read_as
            }
        };
        let Target::Columns { names, root } = &mut self.target else { return Ok(()) };
        let mut reader = Reader::new(bytes, *budget);
        let read = root.read_payload(row, read_as, names.len(), &mut reader);
        *budget = reader.budget;
        read?;
        root.close(row, budget).map_err(|failure| failure.or_at(bytes.len()))
    }
}

impl Last<'_> {
    #[inline]
    fn is_of(&self, payload: &Payload<'_>) -> bool {
        let same = std::ptr::eq(self.message_indexes, payload.message_indexes)
            || self.message_indexes == payload.message_indexes;
        same && self.writer == payload.writer
    }
}

impl Target {
    fn column(&mut self) -> &mut dyn Column {
        match self {
            Self::Columns { root, .. } => root.as_mut(),
            Self::Text(text) => text,
        }
    }
}

impl Writer {
    fn message(&mut self, indexes: &[i32], target: &Target) -> Attempt<&Written> {
        if !self.messages.contains_key(indexes) {
            let message = indexes::message(&self.file, indexes).ok_or_else(|| {
                Failure::new(format!("the schema has no message with the indexes {indexes:?}"))
            })?;
            let shape = self.shapes.as_ref().map(|shapes| (Arc::clone(shapes), shapes.index_of(&message)));
            let read_as = match target {
                Target::Columns { names, .. } => names.iter().position(|name| name == message.full_name()),
                Target::Text(_) => None,
            };
            self.messages.insert(indexes.to_vec(), Written { message, read_as, shape });
        }
        Ok(&self.messages[indexes])
    }
}

pub(super) fn find(file: &FileDescriptor, name: &str) -> Result<MessageDescriptor> {
    file.parent_pool()
        .get_message_by_name(name)
        .ok_or_else(|| SchemaError::new(format!("the schema has no message {name}")))
}

/// The only message, or one with a field for each of them.
fn one_of(messages: &[MessageDescriptor], mut planned: Vec<(Messages, DataType)>) -> (Messages, DataType) {
    if planned.len() == 1 {
        return planned.remove(0);
    }
    let mut fields = Vec::new();
    let mut arrow = Vec::new();
    for (message, (columns, data_type)) in messages.iter().zip(planned) {
        let same = messages.iter().filter(|other| other.name() == message.name()).count();
        let name = if same == 1 { message.name() } else { message.full_name() };
        arrow.push(Field::new(name, data_type, true));
        let column = Message::Struct(Box::new(columns));
        let value = Value::Message(Embedded { is_group: false, column });
        fields.push(message::Field { number: 0, value, label: Label::None });
    }
    let arrow = Fields::from(arrow);
    (Messages::new(fields, arrow.clone(), Box::default()), DataType::Struct(arrow))
}
