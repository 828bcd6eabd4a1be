//! Protobuf payloads to columns.

mod columns;
mod decoder;
mod encoder;
mod files;
mod leaves;
mod message;
mod paths;
mod plan;
mod structure;
mod wire;

pub use decoder::ProtobufDecoder;
pub use encoder::ProtobufEncoder;
pub use structure::structure;
