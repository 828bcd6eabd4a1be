//! Payloads of Kafka keys and values to typed Arrow columns, and back: arrays in, arrays out. Nothing here knows logs,
//! registries or framing: the caller takes the schema's id off a value (`magicbyte::schema_framing`), looks the schema
//! up, and hands over what remains.
//!
//! ```
//! use magicbyte_schema::{Payload, json::JsonDecoder};
//!
//! let schema = r#"{"type": "object", "properties": {"id": {"type": "integer"}}}"#;
//! let mut decoder = JsonDecoder::new(schema, &[])?;
//! let payload = |text: &'static str| Payload { bytes: Some(text.as_bytes()), ..Default::default() };
//! let decoded = decoder.decode(&[payload(r#"{"id": 5}"#), payload(r#"{"id": "x"}"#)])?;
//! assert_eq!(decoded.values.len(), 2, "an Arrow array of structs");
//! assert_eq!(decoded.errors[0].row, 1, "a bad payload costs its own row");
//! # Ok::<(), magicbyte_schema::SchemaError>(())
//! ```
#![forbid(unsafe_code)]

pub mod avro;
mod budget;
mod calendar;
mod columns;
mod decoded;
mod encoding;
mod error;
mod failure;
pub mod json;
mod nested;
mod not_finite;
mod payload;
pub mod protobuf;
#[cfg(test)]
mod random;
#[cfg(test)]
mod random_schemas;
mod varint;

pub use decoded::{Decoded, RowError};
pub use error::{Result, SchemaError};
pub use payload::Payload;
