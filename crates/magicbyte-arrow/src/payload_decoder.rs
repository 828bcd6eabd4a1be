//! The decoders of all formats, with the same calls.

use arrow_schema::DataType;

use magicbyte::schema_framing::{Message, MessageIndexes};
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
    pub(crate) fn data_type(&self) -> &DataType {
        match self {
            Self::Avro(decoder) => decoder.data_type(),
            Self::Protobuf(decoder) => decoder.data_type(),
            Self::Json(decoder) => decoder.data_type(),
        }
    }

    /// `references` are the schemas that it uses, as name and text, each after those that it uses itself.
    pub(crate) fn add_writer(&mut self, key: u32, schema: &str, references: &[(&str, &str)]) -> Result<()> {
        match self {
            Self::Avro(decoder) => decoder.add_writer(key, schema, &texts(references)),
            Self::Protobuf(decoder) => decoder.add_writer(key, schema, references),
            Self::Json(decoder) => decoder.add_writer(key, schema, references),
        }
    }

    /// The message indexes of a Protobuf message in a writer's schema, and what it lacks if it does not have that message.
    pub(crate) fn message_path(
        &self,
        writer: u32,
        message: Message<'_>,
    ) -> std::result::Result<MessageIndexes, String> {
        let Self::Protobuf(decoder) = self else { return Ok(MessageIndexes::default()) };
        let (path, missing) = match message {
            Message::Path(path) => return Ok(path),
            Message::Name(name) => (decoder.path_of(writer, name), format!("named {name}")),
            Message::Sorted(place) => (decoder.path_at(writer, place), format!("at the place {place}")),
        };
        let path = path.ok_or_else(|| format!("the schema has no message {missing}"))?;
        Ok(path.to_vec().into())
    }

    /// True if a writer's schema has a Protobuf message at this path.
    pub(crate) fn has_message(&self, writer: u32, path: &[i32]) -> bool {
        matches!(self, Self::Protobuf(decoder) if decoder.message_name(writer, path).is_some())
    }

    /// The message indexes of a Protobuf message of a writer's schema that is chosen by its name; by default, the first one.
    pub(crate) fn given_path(
        &self,
        writer: u32,
        message: Option<&str>,
    ) -> std::result::Result<MessageIndexes, String> {
        let message = message.map_or(Message::Path(MessageIndexes::Borrowed(&[0])), Message::Name);
        self.message_path(writer, message)
    }

    pub(crate) fn decode(&mut self, payloads: &[Payload<'_>]) -> Result<Decoded> {
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
