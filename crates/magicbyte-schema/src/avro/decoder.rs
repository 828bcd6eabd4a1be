//! [`AvroDecoder`].

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use arrow_schema::DataType;

use super::columns::{data_type, with_plain_numbers};
use super::plan::Plan;
use super::resolve::resolve;
use super::target::Target;
use super::types::Types;
use crate::budget::Budget;
use crate::columns::{Bytes, Column, row_size};
use crate::decoded::{Decoded, RowError};
use crate::error::{Result, SchemaError};
use crate::failure::Attempt;
use crate::payload::Payload;

/// Decodes Avro payloads to one column, whatever schema each was written with.
///
/// The types are those of Spark's `from_avro`, all nullable: an enum is text, a fixed or a UUID in it binary, timestamps
/// are microseconds, a union of several types is a struct of `member0`, `member1`.. with one of them set. Decimals
/// of more than 38 digits are text. If a type of the reader's schema contains itself, the whole column is text: each value
/// as JSON.
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
    /// `None` if each value is read as it was written.
    reader: Option<Reader>,
    /// True if the column is JSON text.
    is_text: bool,
    target: Target,
    data_type: DataType,
    writers: HashMap<u32, Writer, BuildHasherDefault<Itself>>,
}

/// The reader's schema.
struct Reader {
    /// The schema that was given.
    given: Types,
    /// The schema with the types of the columns.
    types: Types,
}

/// A writer's schema.
struct Writer {
    types: Types,
    plan: Plan,
}

impl AvroDecoder {
    /// A decoder to the types of this schema. `references` are the texts of the schemas it uses, each after those that
    /// it uses itself.
    ///
    /// # Errors
    /// If it is not an Avro schema.
    pub fn new(reader: &str, references: &[&str]) -> Result<Self> {
        let given = Types::parse(reader, references)?;
        if given.is_recursive {
            return Ok(Self { reader: Some(Reader { types: given.clone(), given }), ..Self::text() });
        }
        let types = with_plain_numbers(given.clone());
        let (data_type, target) = (data_type(&types, types.root), Target::new(&types, types.root));
        let reader = Some(Reader { given, types });
        Ok(Self { reader, is_text: false, target, data_type, writers: HashMap::default() })
    }

    /// A decoder to text: each value as JSON, by the schema that it was written with. Bytes are as in Avro's JSON (a
    /// character U+0000 to U+00FF each), decimals are text, dates and timestamps as in ISO 8601, a union is the value in it.
    #[must_use]
    pub fn text() -> Self {
        let (target, writers) = (Target::Text(Bytes::new()), HashMap::default());
        Self { reader: None, is_text: true, target, data_type: DataType::Utf8, writers }
    }

    /// The type of the column.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Adds the schema that payloads with this key were written with, or replaces it.
    ///
    /// # Errors
    /// If it is not an Avro schema, or the reader's schema can read nothing that it wrote.
    pub fn add_writer(&mut self, key: u32, schema: &str, references: &[&str]) -> Result<()> {
        let types = Types::parse(schema, references)?;
        let plan = match &self.reader {
            Some(reader) => resolve(&types, &reader.types, types.are_same(&reader.given))?,
            None => resolve(&types, &types, true)?,
        };
        if let Some(reason) = plan.refusal() {
            return Err(SchemaError::new(format!("the schema cannot be read as the reader's: {reason}")));
        }
        self.writers.insert(key, Writer { types, plan });
        Ok(())
    }

    /// Decodes payloads, or the first of them; see [`Decoded`]. Nothing is allocated from a count in a payload.
    ///
    /// # Errors
    /// If the column would have more bytes than Arrow's offsets can count: try fewer payloads. What is wrong with a
    /// payload is in [`Decoded::errors`].
    pub fn decode(&mut self, payloads: &[Payload<'_>]) -> Result<Decoded> {
        let mut errors = Vec::new();
        if let Err(failure) = self.read_all(payloads, &mut errors) {
            self.target.truncate(0);
            return Err(SchemaError::new(failure.text()));
        }
        Ok(Decoded { values: self.target.finish(), errors })
    }

    /// Reads as many payloads as the budget has room for.
    fn read_all(&mut self, payloads: &[Payload<'_>], errors: &mut Vec<RowError>) -> Attempt<()> {
        let mut budget = Budget::new(row_size(&self.data_type));
        // Mostly, the next payload is of the same writer.
        let mut last = None;
        for (row, payload) in payloads.iter().enumerate() {
            if !budget.begin(payload.size()) {
                break;
            }
            let Some(bytes) = payload.bytes else {
                self.target.close_row()?;
                continue;
            };
            let writer = match last {
                Some((key, writer)) if key == payload.writer => Some(writer),
                _ => {
                    self.writers.get(&payload.writer).inspect(|writer| last = Some((payload.writer, *writer)))
                }
            };
            let Some(writer) = writer else {
                errors.push(unknown_writer(row, payload.writer));
                self.target.close_row()?;
                continue;
            };
            let read = match &mut self.target {
                Target::Text(to) if self.is_text => {
                    let reader = self.reader.as_ref().map_or(&writer.types, |reader| &reader.types);
                    let text = writer.plan.text(&writer.types, reader, bytes, &mut budget);
                    text.and_then(|text| to.push(text.as_bytes()))
                }
                to => writer.plan.read(&writer.types, bytes, to, &mut budget),
            };
            match read {
                Ok(()) => {}
                Err(failure) if failure.is_full() => return Err(failure),
                Err(failure) => {
                    errors.push(RowError { row, position: failure.position(), reason: failure.text() });
                    self.target.truncate(row);
                    self.target.close_row()?;
                }
            }
        }
        Ok(())
    }
}

fn unknown_writer(row: usize, key: u32) -> RowError {
    RowError { row, position: None, reason: format!("no schema was added for the writer {key}") }
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
