//! The encoders of all formats, with the same calls.

use arrow_array::{ArrayRef, BinaryArray};
use arrow_schema::DataType;

use magicbyte::schema_framing::{IdSize, SchemaId, write_schema_framing};
use magicbyte_schema::avro::AvroEncoder;
use magicbyte_schema::json::JsonEncoder;
use magicbyte_schema::protobuf::ProtobufEncoder;

/// The encoder of one format.
pub enum PayloadEncoder {
    /// Avro.
    Avro(AvroEncoder),
    /// Protobuf.
    Protobuf(ProtobufEncoder),
    /// JSON, by a JSON Schema.
    Json(JsonEncoder),
}

impl PayloadEncoder {
    /// The type that columns have.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        match self {
            Self::Avro(encoder) => encoder.data_type(),
            Self::Protobuf(encoder) => encoder.data_type(),
            Self::Json(encoder) => encoder.data_type(),
        }
    }

    /// The message indexes after the id in the framing; empty unless the format is Protobuf.
    #[must_use]
    pub fn message_indexes(&self) -> &[i32] {
        match self {
            Self::Protobuf(encoder) => encoder.message_indexes(),
            Self::Avro(_) | Self::Json(_) => &[],
        }
    }

    /// Encodes a column: the framing with this id and a payload for each row, or payloads alone, whose framing is in a
    /// header of their records. A null row is null.
    ///
    /// # Errors
    /// If the id does not fit, or as the encoders: the message names row and field.
    pub fn encode(
        &self,
        column: &ArrayRef,
        schema: Option<(SchemaId, IdSize)>,
    ) -> std::result::Result<BinaryArray, EncodeError> {
        let framing = match schema {
            Some((id, size)) => write_schema_framing(id, self.message_indexes(), size)?,
            None => Vec::new(),
        };
        Ok(match self {
            Self::Avro(encoder) => encoder.encode(column, &framing)?,
            Self::Protobuf(encoder) => encoder.encode(column, &framing)?,
            Self::Json(encoder) => encoder.encode(column, &framing)?,
        })
    }
}

/// The reason why a column could not be encoded.
#[non_exhaustive]
#[derive(Debug)]
pub enum EncodeError {
    /// The id does not fit into the framing.
    Framing(magicbyte::Error),
    /// A row, or the column as a whole.
    Column(magicbyte_schema::SchemaError),
}

impl std::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Framing(error) => error.fmt(f),
            Self::Column(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for EncodeError {}

impl From<magicbyte::Error> for EncodeError {
    fn from(error: magicbyte::Error) -> Self {
        Self::Framing(error)
    }
}

impl From<magicbyte_schema::SchemaError> for EncodeError {
    fn from(error: magicbyte_schema::SchemaError) -> Self {
        Self::Column(error)
    }
}
