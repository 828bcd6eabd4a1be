//! Protobuf payloads to columns.

mod decoder;
mod files;
mod leaves;
mod message;
mod plan;
mod structure;
mod wire;

pub use decoder::ProtobufDecoder;
pub use structure::structure;
