//! Payloads of Kafka keys and values to typed Arrow columns, and back: arrays in, arrays out. Nothing here knows logs,
//! registries or framing: the caller takes the schema's id off a value (`magicbyte::schema_framing`), looks the schema
//! up, and hands over what remains.

pub mod avro;
mod budget;
mod columns;
mod decoded;
mod encoding;
mod error;
mod failure;
pub mod json;
mod nested;
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
