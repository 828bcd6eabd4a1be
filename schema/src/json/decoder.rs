//! [`JsonDecoder`].

use arrow_schema::DataType;
use serde::de::DeserializeSeed;

use super::shape::Shape;
use super::value::{Context, Read, Values};
use crate::columns::Column;
use crate::decoded::{Decoded, RowError};
use crate::error::{Result, SchemaError};
use crate::failure::{Attempt, Failure};
use crate::payload::Payload;

/// Decodes JSON payloads to one column.
///
/// A payload says itself what it holds: its writer's schema does not matter. A name that the schema does not have is left
/// out, a property that the payload does not have is null. An object without properties, a union of several types, and
/// a type that contains itself are text: the JSON as it is in the payload.
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
/// assert_eq!(decoded.errors[0].reason, "id: invalid type: string \"x\", expected an integer of 64 bits");
/// # Ok::<(), magicbyte_schema::SchemaError>(())
/// ```
pub struct JsonDecoder {
    column: Values,
    data_type: DataType,
}

impl JsonDecoder {
    /// A decoder to the types of a JSON Schema. `references` are the schemas that it refers to, as name and text.
    ///
    /// # Errors
    /// If it is not JSON, a `$ref` leads nowhere, or it has more than 10,000 columns.
    pub fn new(schema: &str, references: &[(&str, &str)]) -> Result<Self> {
        let (column, data_type) = Values::new(&Shape::of(schema, references)?);
        Ok(Self { column, data_type })
    }

    /// A decoder to text: each payload as it is, if it is JSON.
    #[must_use]
    pub fn text() -> Self {
        let (column, data_type) = Values::new(&Shape::Any);
        Self { column, data_type }
    }

    /// The type of the column.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Decodes payloads; the values are in their order. Memory is bounded by 512 times the bytes of a payload and 1 MiB.
    ///
    /// # Errors
    /// If a column would have more bytes than Arrow's offsets can count: try fewer payloads. What is wrong with a
    /// payload is in [`Decoded::errors`].
    pub fn decode(&mut self, payloads: &[Payload<'_>]) -> Result<Decoded> {
        let mut errors = Vec::new();
        for (row, payload) in payloads.iter().enumerate() {
            let Err(failure) = self.decode_one(payload) else { continue };
            self.column.truncate(row);
            if failure.is_full() || self.column.close_row().is_err() {
                self.column.truncate(0);
                return Err(SchemaError::new(failure.text()));
            }
            errors.push(RowError { row, position: failure.position(), reason: failure.text() });
        }
        Ok(Decoded { values: self.column.finish(), errors })
    }

    fn decode_one(&mut self, payload: &Payload<'_>) -> Attempt<()> {
        if let Some(bytes) = payload.bytes {
            let text = std::str::from_utf8(bytes)
                .map_err(|error| Failure::at(error.valid_up_to(), "text that is not UTF-8"))?;
            let mut context = Context::new(bytes.len());
            let mut deserializer = serde_json::Deserializer::from_str(text);
            Read { to: &mut self.column, context: &mut context }
                .deserialize(&mut deserializer)
                .and_then(|()| deserializer.end())
                .map_err(|error| context.failure(&error, bytes))?;
        }
        self.column.close_row()
    }
}
