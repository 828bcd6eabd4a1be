//! [`AvroDecoder`].

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, ArrayRef, new_empty_array, new_null_array};
use arrow_schema::{ArrowError, DataType};
use arrow_select::interleave::interleave;

use super::columns::{are_text, data_type};
use super::types::Types;
use super::walk;
use super::writer::{Piece, Reader, Writer};
use crate::decoded::{Decoded, RowError};
use crate::error::{Result, SchemaError};
use crate::payload::Payload;

/// Decodes Avro payloads to one column, whatever schema each was written with.
///
/// The types are those of Spark's `from_avro`, all nullable: an enum is text, a fixed or a UUID in it binary, timestamps
/// are microseconds, a union of several types is a struct of `member0`, `member1`.. with one of them set. If a type of
/// the reader's schema contains itself, or has decimals of more than 76 digits, the column is text: each value as JSON, as
/// it was written.
///
/// ```
/// use magicbyte_schema::{Payload, avro::AvroDecoder};
///
/// let mut decoder = AvroDecoder::new(r#"["null", "string"]"#, &[])?;
/// decoder.add_writer(7, r#""string""#, &[])?;
/// let payloads = [Payload { bytes: Some(b"\x04hi"), writer: 7, ..Default::default() }, Payload::default()];
/// let decoded = decoder.decode(&payloads)?;
/// assert_eq!(decoded.values.as_ref(), &arrow_array::StringArray::from(vec![Some("hi"), None]));
/// # Ok::<(), magicbyte_schema::SchemaError>(())
/// ```
pub struct AvroDecoder {
    /// None if the column is text.
    reader: Option<Reader>,
    data_type: DataType,
    writers: HashMap<u32, Writer>,
}

impl AvroDecoder {
    /// A decoder to the types of this schema. `references` are the texts of the schemas it uses, each after those that
    /// it uses itself.
    ///
    /// # Errors
    /// If it is not an Avro schema.
    pub fn new(reader: &str, references: &[&str]) -> Result<Self> {
        let types = Types::parse(reader, references)?;
        if are_text(&types) {
            return Ok(Self::text());
        }
        let data_type = data_type(&types, types.root);
        Ok(Self { reader: Some(Reader::new(types)), data_type, writers: HashMap::new() })
    }

    /// A decoder to text: each value as JSON, by the schema that it was written with. Bytes are as in Avro's JSON (a
    /// character U+0000 to U+00FF each), decimals are text, dates and timestamps as in ISO 8601, a union is the value in it.
    #[must_use]
    pub fn text() -> Self {
        Self { reader: None, data_type: DataType::Utf8, writers: HashMap::new() }
    }

    /// The type of the column.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Adds the schema that payloads with this key were written with, or replaces it.
    ///
    /// # Errors
    /// If it is not an Avro schema, or the reader's schema cannot read what it wrote.
    pub fn add_writer(&mut self, key: u32, schema: &str, references: &[&str]) -> Result<()> {
        let types = Types::parse(schema, references)?;
        let writer = match &self.reader {
            Some(reader) => Writer::new(types, reader)?,
            None => Writer::of_text(types),
        };
        self.writers.insert(key, writer);
        Ok(())
    }

    /// Decodes payloads; the values are in their order. Nothing is allocated from a count in a payload.
    ///
    /// # Errors
    /// If the column would have more bytes than Arrow's offsets can count: try fewer payloads. What is wrong with a
    /// payload is in [`Decoded::errors`].
    pub fn decode(&mut self, payloads: &[Payload<'_>]) -> Result<Decoded> {
        if u32::try_from(payloads.len()).is_err() {
            return Err(SchemaError::new("more than 4294967295 payloads at once"));
        }
        let Some(reader) = &self.reader else { return self.decode_text(payloads) };
        let mut errors = Vec::new();
        let mut pieces = Vec::new();
        for (key, rows) in groups(payloads) {
            match self.writers.get_mut(&key) {
                Some(writer) => writer.decode(reader, payloads, rows, &mut pieces, &mut errors),
                None => errors.extend(rows.into_iter().map(|row| unknown_writer(row as usize, key))),
            }
        }
        errors.sort_unstable_by_key(|error| error.row);
        let values = in_order(&self.data_type, pieces, payloads.len())
            .map_err(|error| SchemaError::new(format!("the column cannot be put together: {error}")))?;
        Ok(Decoded { values, errors })
    }

    fn decode_text(&self, payloads: &[Payload<'_>]) -> Result<Decoded> {
        let mut errors = Vec::new();
        let mut values = StringBuilder::new();
        for (row, payload) in payloads.iter().enumerate() {
            let Some(bytes) = payload.bytes else {
                values.append_null();
                continue;
            };
            let Some(writer) = self.writers.get(&payload.writer) else {
                values.append_null();
                errors.push(unknown_writer(row, payload.writer));
                continue;
            };
            match walk::text(&writer.types, bytes) {
                Ok(text) if values.values_slice().len() + text.len() > i32::MAX as usize => {
                    return Err(SchemaError::new("the column would have more than 2 GiB of text"));
                }
                Ok(text) => values.append_value(text),
                Err(fault) => {
                    values.append_null();
                    errors.push(RowError { row, position: Some(fault.position), reason: fault.reason });
                }
            }
        }
        Ok(Decoded { values: Arc::new(values.finish()), errors })
    }
}

fn unknown_writer(row: usize, key: u32) -> RowError {
    RowError { row, position: None, reason: format!("no schema was added for the writer {key}") }
}

/// The rows of each writer, without nulls, in order of its first row.
fn groups(payloads: &[Payload<'_>]) -> Vec<(u32, Vec<u32>)> {
    let mut groups: Vec<(u32, Vec<u32>)> = Vec::new();
    let mut places: HashMap<u32, usize, BuildHasherDefault<Itself>> = HashMap::default();
    for (row, payload) in (0_u32..).zip(payloads) {
        if payload.bytes.is_none() {
            continue;
        }
        let place = *places.entry(payload.writer).or_insert_with(|| {
            groups.push((payload.writer, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(row);
    }
    groups
}

/// A key of a writer as its own hash: the caller chooses them, not a payload.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
    }

    fn write_u32(&mut self, key: u32) {
        // The table takes its tags from the highest bits.
        self.0 = u64::from(key) | u64::from(key) << 57;
    }
}

/// The values of all pieces by row, null where no piece has one.
fn in_order(
    data_type: &DataType,
    pieces: Vec<Piece>,
    rows: usize,
) -> std::result::Result<ArrayRef, ArrowError> {
    if let Some(piece) = pieces.iter().find(|piece| piece.values.data_type() != data_type) {
        let found = piece.values.data_type();
        return Err(ArrowError::SchemaError(format!("values of {found}, expected {data_type}")));
    }
    match &pieces[..] {
        [] => {
            return Ok(if rows == 0 { new_empty_array(data_type) } else { new_null_array(data_type, rows) });
        }
        [all] if all.rows.len() == rows => return Ok(Arc::clone(&all.values)),
        _ => {}
    }
    let null = new_null_array(data_type, 1);
    // The null's place, for rows that no piece has.
    let mut places = vec![(pieces.len(), 0); rows];
    for (number, piece) in pieces.iter().enumerate() {
        for (index, &row) in piece.rows.iter().enumerate() {
            places[row as usize] = (number, index);
        }
    }
    let mut arrays: Vec<&dyn Array> = pieces.iter().map(|piece| piece.values.as_ref()).collect();
    arrays.push(null.as_ref());
    interleave(&arrays, &places)
}
