//! Keys and values that name their schemas, as a typed column.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use magicbyte_schema::avro::AvroDecoder;
use magicbyte_schema::{Decoded, Payload, SchemaError};

use crate::columns::cells::{Blobs, HeaderLists, wrong};
use crate::error::{Error, Result};
use crate::schema_framing::{Framed, IdSize, KEY_SCHEMA_ID_HEADER, SchemaId, VALUE_SCHEMA_ID_HEADER};

/// The decoder of one format.
pub enum PayloadDecoder {
    /// Avro.
    Avro(AvroDecoder),
}

impl PayloadDecoder {
    fn data_type(&self) -> &DataType {
        match self {
            Self::Avro(decoder) => decoder.data_type(),
        }
    }

    fn add_writer(&mut self, key: u32, schema: &str, references: &[&str]) -> SchemaResult<()> {
        match self {
            Self::Avro(decoder) => decoder.add_writer(key, schema, references),
        }
    }

    fn decode(&mut self, payloads: &[Payload<'_>]) -> SchemaResult<Decoded> {
        match self {
            Self::Avro(decoder) => decoder.decode(payloads),
        }
    }
}

type SchemaResult<T> = std::result::Result<T, SchemaError>;

/// Decodes the column `key` or `value` of batches to typed columns.
///
/// The caller asks which ids are new ([`new_ids`](Self::new_ids)), says what their schemas are, and decodes.
pub struct SchemaDecoder {
    decoder: PayloadDecoder,
    is_key: bool,
    id_size: IdSize,
    writers: HashMap<SchemaId, Writer>,
    schema: SchemaRef,
}

enum Writer {
    /// The decoder's key for it.
    Known(u32),
    /// Why rows with it cannot be decoded.
    Refused(String),
}

/// A row before it is decoded.
#[derive(Clone, Copy)]
enum Row<'a> {
    Null,
    Framed(Framed<'a>),
    Unframed,
    /// With a schema header that is neither of the two forms.
    BadHeader,
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
        Self { decoder, is_key, id_size, writers: HashMap::new(), schema }
    }

    /// What [`decode`](Self::decode) returns: the typed column, `_schema_id` (null for a GUID), `_error`, and
    /// `invalidValue`, the bytes of a row with an error. Those of keys are `_key_schema_id`, `_key_error`, `invalidKey`.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The schemas that rows of this batch name and that were not added, in order of their first rows.
    ///
    /// # Errors
    /// If the batch does not have the column, or it is neither binary nor text.
    pub fn new_ids(&self, batch: &RecordBatch) -> Result<Vec<SchemaId>> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut last = None;
        for row in self.rows(batch)? {
            if let Row::Framed(framed) = row
                && last.replace(framed.schema) != Some(framed.schema)
                && !self.writers.contains_key(&framed.schema)
                && seen.insert(framed.schema)
            {
                found.push(framed.schema);
            }
        }
        Ok(found)
    }

    /// Adds the schema with this id; `references` are the texts of those it uses, each after those it uses itself. If it
    /// cannot be used, the reason becomes the error of its rows.
    pub fn add_writer(&mut self, id: SchemaId, schema: &str, references: &[&str]) {
        let key = self.writers.len() as u32;
        match self.decoder.add_writer(key, schema, references) {
            Ok(()) => _ = self.writers.insert(id, Writer::Known(key)),
            Err(error) => self.refuse(id, error.to_string()),
        }
    }

    /// Makes this reason the error of all rows with the id.
    pub fn refuse(&mut self, id: SchemaId, reason: String) {
        self.writers.insert(id, Writer::Refused(reason));
    }

    /// Decodes a batch. It has the column, and maybe `headers`, whose schema header is decisive.
    ///
    /// # Errors
    /// As [`new_ids`](Self::new_ids), and if the column would be larger than Arrow allows. What is wrong with a row is in
    /// its `_error`.
    pub fn decode(&mut self, batch: &RecordBatch) -> std::result::Result<RecordBatch, DecodeError> {
        let rows: Vec<Row<'_>> = self.rows(batch)?.collect();
        let payloads: Vec<Payload<'_>> = rows.iter().map(|row| self.payload(*row)).collect();
        let Decoded { values, errors } = self.decoder.decode(&payloads)?;
        let mut errors = errors.into_iter().peekable();
        let column = self.column(batch)?;
        let mut ids = Int64Builder::with_capacity(rows.len());
        let mut texts = StringBuilder::new();
        let mut raw = BinaryBuilder::new();
        for (index, row) in rows.iter().enumerate() {
            let id = match row {
                Row::Framed(Framed { schema: SchemaId::Id(id), .. }) => Some(*id),
                _ => None,
            };
            ids.append_option(id);
            let error = match row {
                Row::Framed(framed) => match self.writers.get(&framed.schema) {
                    Some(Writer::Known(_)) => errors.next_if(|error| error.row == index).map(|error| {
                        match error.position.map(|position| position + framed.value_offset()) {
                            Some(position) => format!("{} (byte {position})", error.reason),
                            None => error.reason,
                        }
                    }),
                    Some(Writer::Refused(reason)) => Some(reason.clone()),
                    None => Some("its schema was not added".to_owned()),
                },
                Row::Unframed => Some(self.unframed(column.get(index).unwrap_or_default())),
                Row::BadHeader => {
                    Some(format!("the header {} is neither an id nor a GUID", self.header_name()))
                }
                Row::Null => None,
            };
            raw.append_option(error.as_ref().and_then(|_| column.get(index)));
            texts.append_option(error);
        }
        let columns: Vec<ArrayRef> =
            vec![values, Arc::new(ids.finish()), Arc::new(texts.finish()), Arc::new(raw.finish())];
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| SchemaError::new(error.to_string()).into())
    }

    fn payload<'a>(&self, row: Row<'a>) -> Payload<'a> {
        if let Row::Framed(framed) = row
            && let Some(&Writer::Known(writer)) = self.writers.get(&framed.schema)
        {
            return Payload { bytes: Some(framed.payload), writer, message_indexes: &[] };
        }
        Payload::default()
    }

    fn unframed(&self, value: &[u8]) -> String {
        let size = match self.id_size {
            IdSize::Four => 4,
            IdSize::Eight => 8,
        };
        match value.first() {
            None => format!("not framed: no bytes, expected 0x00 and an id of {size} bytes"),
            Some(first @ (0 | 1)) => {
                format!("not framed: {} bytes that begin with {first:#04x}, too few for an id", value.len())
            }
            Some(first) => {
                format!("not framed: begins with {first:#04x}, expected 0x00 and an id of {size} bytes")
            }
        }
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

    fn rows<'a>(&self, batch: &'a RecordBatch) -> Result<impl Iterator<Item = Row<'a>> + use<'a>> {
        let column = self.column(batch)?;
        let headers = batch.column_by_name("headers").map(HeaderLists::of).transpose()?;
        let (name, id_size) = (self.header_name(), self.id_size);
        Ok((0..batch.num_rows()).map(move |row| {
            let Some(value) = column.get(row) else { return Row::Null };
            let header = headers.as_ref().and_then(|headers| {
                let is_named = |item: &usize| headers.keys.get(*item) == Some(name.as_bytes());
                // Of several, the last one counts, as for Kafka's `lastHeader`.
                headers
                    .range(row)
                    .rev()
                    .find(is_named)
                    .map(|item| headers.values.get(item).unwrap_or_default())
            });
            match Framed::parse(value, header, id_size) {
                Ok(Some(framed)) => Row::Framed(framed),
                Ok(None) => Row::Unframed,
                Err(_) => Row::BadHeader,
            }
        }))
    }
}

/// Why a batch could not be decoded.
#[derive(Debug)]
pub enum DecodeError {
    /// It does not have the column.
    Batch(Error),
    /// The column would be too large.
    Column(SchemaError),
}

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
