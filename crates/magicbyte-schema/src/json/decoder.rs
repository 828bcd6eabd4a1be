//! [`JsonDecoder`].

use arrow_schema::DataType;
use magicbyte_json::unpaired_surrogate;

use super::columns::Values;
use super::integers::Integers;
use super::read::read;
use super::shape::Shape;
use super::validation::Validation;
use crate::budget::Budget;
use crate::columns::Column;
use crate::decoded::{Decoded, RowError};
use crate::error::{Result, SchemaError};
use crate::failure::{Attempt, Failure};
use crate::payload::Payload;

/// Decodes JSON payloads to one column.
///
/// A payload says itself what it holds: its writer's schema does not matter. A name that the schema does not have is left
/// out, a property that the payload does not have is null. An object without properties, a union of several types, and
/// a type that contains itself are text: the JSON as it is in the payload. A number beyond 64 bits is null and named in
/// [`Decoded::errors`], and the rest of its row is kept; [`with_integers`](Self::with_integers) has room for longer ones.
///
/// ```
/// use magicbyte_schema::{Payload, json::JsonDecoder};
///
/// let schema = r#"{"type": "object", "properties": {"id": {"type": "integer"}, "tags": {"type": "object"}}}"#;
/// let mut decoder = JsonDecoder::new(schema, &[])?;
/// let payload = |text: &'static str| Payload { bytes: Some(text.as_bytes()), ..Default::default() };
/// let decoded = decoder.decode(&[payload(r#"{"id": 5, "tags": {"a": 1.50}}"#), payload(r#"{"id": "x"}"#)])?;
/// assert_eq!(decoded.values.len(), 2);
/// assert_eq!(decoded.errors[0].row, 1);
/// assert_eq!(decoded.errors[0].reason, "id: the string \"x\", expected an integer of 64 bits");
/// # Ok::<(), magicbyte_schema::SchemaError>(())
/// ```
pub struct JsonDecoder {
    column: Values,
    data_type: DataType,
    validation: Option<Validation>,
}

impl JsonDecoder {
    /// A decoder to the types of a JSON Schema. `references` are the schemas that it refers to, as name and text.
    ///
    /// # Errors
    /// If it is not JSON, a `$ref` leads nowhere, or it has more than 10,000 columns.
    pub fn new(schema: &str, references: &[(&str, &str)]) -> Result<Self> {
        Self::with_integers(schema, references, Integers::Int64)
    }

    /// The same with another type for the columns of integers.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn with_integers(schema: &str, references: &[(&str, &str)], integers: Integers) -> Result<Self> {
        let (column, data_type) = Values::new(&Shape::of(schema, references)?, integers);
        Ok(Self { column, data_type, validation: None })
    }

    /// A decoder to text: each payload as it is, if it is JSON.
    #[must_use]
    pub fn text() -> Self {
        let (column, data_type) = Values::new(&Shape::Any, Integers::Int64);
        Self { column, data_type, validation: None }
    }

    /// Also validates each payload by its writer's schema ([`add_writer`](Self::add_writer)), and one without a writer by
    /// this one: of what is not valid, the error names the place, the rule and what was expected.
    ///
    /// Drafts 4 to 2020-12, by `$schema`, and by default the newest. `format` is an annotation, unless `with_formats` asks
    /// to check those that the draft defines; encodings of content are not checked.
    /// `$ref` finds what is in the schema or in the references, each a name and a text: nothing is fetched. Bounded by
    /// the payload and the schema, whatever they are: a payload whose validation would take longer is not valid.
    /// Validation that is broken off unwinds, so that a program has to be built with `panic = "unwind"`, the default.
    ///
    /// # Errors
    /// If the schema is not valid itself, a `$ref` leads nowhere, it has more than 10,000 objects, or a pattern has
    /// lookaround or backreferences, which no engine with a bound on its time reads.
    pub fn validate(mut self, reader: Option<(&str, &[(&str, &str)])>, with_formats: bool) -> Result<Self> {
        self.validation = Some(Validation::new(reader, with_formats)?);
        Ok(self)
    }

    /// Adds a writer's schema, by which its payloads are validated; `references` are as in [`new`](Self::new). Without
    /// validation it does not matter.
    ///
    /// # Errors
    /// The errors of [`validate`](Self::validate).
    pub fn add_writer(&mut self, key: u32, schema: &str, references: &[(&str, &str)]) -> Result<()> {
        match &mut self.validation {
            Some(validation) => validation.add_writer(key, schema, references),
            None => Ok(()),
        }
    }

    /// The type of the column.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Decodes payloads, or the first of them; see [`Decoded`].
    ///
    /// # Errors
    /// If a column would have more bytes than Arrow's offsets can count: try fewer payloads. What is wrong with a
    /// payload is in [`Decoded::errors`].
    pub fn decode(&mut self, payloads: &[Payload<'_>]) -> Result<Decoded> {
        let mut errors = Vec::new();
        let mut budget = Budget::new(self.column.row_size());
        for (row, payload) in payloads.iter().enumerate() {
            if !budget.begin(payload.size()) {
                break;
            }
            let failure = match self.decode_one(payload, &mut budget) {
                Ok(None) => continue,
                Ok(Some(lost)) => lost,
                Err(failure) => {
                    self.column.truncate(row);
                    if failure.is_full() || self.column.close_row().is_err() {
                        self.column.truncate(0);
                        return Err(SchemaError::new(failure.text()));
                    }
                    failure
                }
            };
            errors.push(RowError { row, position: failure.position(), reason: failure.text() });
        }
        Ok(Decoded { values: self.column.finish(), errors })
    }

    /// Decodes a payload to a row; returns what the row lacks, if it is kept nevertheless.
    fn decode_one(&mut self, payload: &Payload<'_>, budget: &mut Budget) -> Attempt<Option<Failure>> {
        let Some(bytes) = payload.bytes else { return self.column.close_row().map(|()| None) };
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Failure::at(error.valid_up_to(), "text that is not UTF-8"))?;
        // Also in what the column leaves out: the payload is not JSON to every parser.
        if let Some(position) = unpaired_surrogate(text) {
            return Err(Failure::at(position, "half of a surrogate pair, expected the other half beside it"));
        }
        if let Some(validation) = &self.validation {
            validation.check(text, payload.writer)?;
        }
        read(text, &mut self.column, budget)
    }
}
