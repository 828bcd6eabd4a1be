//! [`AvroDecoder`].

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_avro::reader::Decoder;
use arrow_schema::{ArrowError, DataType};
use arrow_select::interleave::interleave;

use super::columns::{are_text, data_type, with_plain_numbers};
use super::plan::Stop;
use super::target::{Absent, Target};
use super::types::Types;
use super::walk;
use super::writer::{Piece, Reader, Writer};
use crate::budget::Budget;
use crate::columns::{Column, row_size};
use crate::decoded::{Decoded, RowError};
use crate::error::{Result, SchemaError};
use crate::failure::Attempt;
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
    /// The target of plans; nulls if arrow-avro alone fills the column.
    target: Target,
    data_type: DataType,
    writers: HashMap<u32, Writer, BuildHasherDefault<Itself>>,
    /// The key of the last writer that needed arrow-avro, and its decoder. Each decoder takes the memory of a thousand
    /// rows.
    kept: Option<(u32, Decoder)>,
}

impl AvroDecoder {
    /// A decoder to the types of this schema. `references` are the texts of the schemas it uses, each after those that
    /// it uses itself.
    ///
    /// # Errors
    /// If it is not an Avro schema.
    pub fn new(reader: &str, references: &[&str]) -> Result<Self> {
        let types = with_plain_numbers(Types::parse(reader, references)?);
        if are_text(&types) {
            return Ok(Self::text());
        }
        let data_type = data_type(&types, types.root);
        let target = Target::new(&data_type);
        let reader = Some(Reader::new(types, target.is_some()));
        let target = target.unwrap_or(NULLS);
        Ok(Self { reader, target, data_type, writers: HashMap::default(), kept: None })
    }

    /// A decoder to text: each value as JSON, by the schema that it was written with. Bytes are as in Avro's JSON (a
    /// character U+0000 to U+00FF each), decimals are text, dates and timestamps as in ISO 8601, a union is the value in it.
    #[must_use]
    pub fn text() -> Self {
        let (data_type, writers) = (DataType::Utf8, HashMap::default());
        Self { reader: None, target: NULLS, data_type, writers, kept: None }
    }

    /// Leaves all payloads to arrow-avro; whether there was a plan.
    #[cfg(test)]
    pub(super) fn forget_plans(&mut self) -> bool {
        self.writers.values_mut().any(|writer| writer.plan.take().is_some())
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
        self.kept = None;
        self.writers.insert(key, writer);
        Ok(())
    }

    /// Decodes payloads, or the first of them; see [`Decoded`]. Nothing is allocated from a count in a payload.
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
        let mut budget = Budget::new(row_size(&self.data_type));
        let (rows, others) =
            read_by_plans(&self.writers, payloads, &mut self.target, &mut budget, &mut errors)
                .inspect_err(|_| self.target.truncate(0))
                .map_err(|failure| SchemaError::new(failure.text()))?;
        let mut read = self.target.finish();
        if read.data_type() != &self.data_type {
            read = new_null_array(&self.data_type, rows);
        }
        let mut pieces = Vec::new();
        for (key, rows) in groups(payloads, others) {
            if let Some(writer) = self.writers.get(&key) {
                let mut decoder = self.kept.take_if(|kept| kept.0 == key).map(|kept| kept.1);
                writer.decode(reader, payloads, rows, &mut decoder, &mut pieces, &mut errors);
                self.kept = decoder.map(|decoder| (key, decoder));
            }
        }
        errors.sort_unstable_by_key(|error| error.row);
        let values = in_order(read, pieces)
            .map_err(|error| SchemaError::new(format!("the column cannot be put together: {error}")))?;
        Ok(Decoded { values, errors })
    }

    fn decode_text(&self, payloads: &[Payload<'_>]) -> Result<Decoded> {
        let mut errors = Vec::new();
        let mut values = StringBuilder::new();
        let mut budget = Budget::new(row_size(&self.data_type));
        for (row, payload) in payloads.iter().enumerate() {
            if !budget.begin(payload.size()) {
                break;
            }
            let Some(bytes) = payload.bytes else {
                values.append_null();
                continue;
            };
            let Some(writer) = self.writers.get(&payload.writer) else {
                values.append_null();
                errors.push(unknown_writer(row, payload.writer));
                continue;
            };
            match walk::text(&writer.types, bytes, &mut budget) {
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

/// Nothing is read into it.
const NULLS: Target = Target::Null(Absent::NONE);

/// Reads the payloads whose writers have plans, as many as the budget has room for. Returns how many payloads these are, and
/// the rows of those that arrow-avro reads; they are null here.
fn read_by_plans(
    writers: &HashMap<u32, Writer, BuildHasherDefault<Itself>>,
    payloads: &[Payload<'_>],
    to: &mut Target,
    budget: &mut Budget,
    errors: &mut Vec<RowError>,
) -> Attempt<(usize, Vec<u32>)> {
    let mut others = Vec::new();
    // Mostly, the next payload is of the same writer.
    let mut last = None;
    for (row, payload) in payloads.iter().enumerate() {
        if !budget.begin(payload.size()) {
            return Ok((row, others));
        }
        let Some(bytes) = payload.bytes else {
            to.close_row()?;
            continue;
        };
        let writer = match last {
            Some((key, writer)) if key == payload.writer => Some(writer),
            _ => writers.get(&payload.writer).inspect(|writer| last = Some((payload.writer, *writer))),
        };
        let Some(writer) = writer else {
            errors.push(unknown_writer(row, payload.writer));
            to.close_row()?;
            continue;
        };
        let Some(plan) = &writer.plan else {
            match writer.check(row, bytes, budget) {
                Ok(()) => others.push(row as u32),
                Err(error) => errors.push(error),
            }
            to.close_row()?;
            continue;
        };
        errors.push(match plan.read_payload(&writer.types, bytes, to, budget) {
            Ok(()) => continue,
            Err(Stop::Failed(failure)) if failure.is_full() => return Err(failure),
            Err(Stop::Failed(failure)) => {
                RowError { row, position: failure.position(), reason: failure.text() }
            }
            Err(Stop::Invalid) => writer.fault(row, bytes, budget),
        });
        to.truncate(row);
        to.close_row()?;
    }
    Ok((payloads.len(), others))
}

/// These rows by their writers, in order of their first rows.
fn groups(payloads: &[Payload<'_>], rows: Vec<u32>) -> Vec<(u32, Vec<u32>)> {
    let mut groups: Vec<(u32, Vec<u32>)> = Vec::new();
    let mut places: HashMap<u32, usize, BuildHasherDefault<Itself>> = HashMap::default();
    for row in rows {
        let writer = payloads[row as usize].writer;
        let index = *places.entry(writer).or_insert_with(|| {
            groups.push((writer, Vec::new()));
            groups.len() - 1
        });
        groups[index].1.push(row);
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

/// The values of all pieces by row; those that no piece has are as they were read.
fn in_order(read: ArrayRef, pieces: Vec<Piece>) -> std::result::Result<ArrayRef, ArrowError> {
    let (data_type, rows) = (read.data_type(), read.len());
    if let Some(piece) = pieces.iter().find(|piece| piece.values.data_type() != data_type) {
        let found = piece.values.data_type();
        return Err(ArrowError::SchemaError(format!("values of {found}, expected {data_type}")));
    }
    match &pieces[..] {
        [] => return Ok(read),
        [all] if all.rows.len() == rows => return Ok(Arc::clone(&all.values)),
        _ => {}
    }
    let mut places: Vec<_> = (0..rows).map(|row| (pieces.len(), row)).collect();
    for (number, piece) in pieces.iter().enumerate() {
        for (index, &row) in piece.rows.iter().enumerate() {
            places[row as usize] = (number, index);
        }
    }
    let mut arrays: Vec<&dyn Array> = pieces.iter().map(|piece| piece.values.as_ref()).collect();
    arrays.push(read.as_ref());
    interleave(&arrays, &places)
}
