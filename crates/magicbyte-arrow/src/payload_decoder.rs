//! The decoders of all formats, with the same calls.

use arrow_schema::DataType;

use magicbyte_schema::avro::AvroDecoder;
use magicbyte_schema::json::JsonDecoder;
use magicbyte_schema::protobuf::ProtobufDecoder;
use magicbyte_schema::{Decoded, Payload, Result};

/// The decoder of one format.
pub enum PayloadDecoder {
    /// Avro.
    Avro(Box<AvroDecoder>),
    /// Protobuf.
    Protobuf(ProtobufDecoder),
    /// JSON, with or without a JSON Schema.
    Json(JsonDecoder),
}

impl PayloadDecoder {
    pub(super) fn data_type(&self) -> &DataType {
        match self {
            Self::Avro(decoder) => decoder.data_type(),
            Self::Protobuf(decoder) => decoder.data_type(),
            Self::Json(decoder) => decoder.data_type(),
        }
    }

    /// `references` are the schemas that it uses, as name and text, each after those that it uses itself.
    pub(super) fn add_writer(&mut self, key: u32, schema: &str, references: &[(&str, &str)]) -> Result<()> {
        match self {
            Self::Avro(decoder) => decoder.add_writer(key, schema, &texts(references)),
            Self::Protobuf(decoder) => decoder.add_writer(key, schema, references),
            Self::Json(decoder) => decoder.add_writer(key, schema, references),
        }
    }

    pub(super) fn decode(&mut self, payloads: &[Payload<'_>]) -> Result<Decoded> {
        match self {
            Self::Avro(decoder) => decoder.decode(payloads),
            Self::Protobuf(decoder) => decoder.decode(payloads),
            Self::Json(decoder) => decoder.decode(payloads),
        }
    }
}

/// Avro's references have their names in their texts.
#[doc(hidden)]
#[must_use]
pub fn texts<'a>(references: &[(&str, &'a str)]) -> Vec<&'a str> {
    references.iter().map(|reference| reference.1).collect()
}
