//! Protobuf payloads to columns.

mod decoder;
mod files;
mod leaves;
mod message;
mod plan;
mod wire;

pub use decoder::ProtobufDecoder;
