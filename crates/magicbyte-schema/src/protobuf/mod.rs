//! Protobuf payloads to columns or text, columns to payloads, and the structure of schemas.

mod columns;
mod decoder;
mod edition;
mod encoder;
mod entries;
mod features;
mod files;
mod indexes;
mod json;
mod known;
mod leaves;
mod message;
mod names;
mod option_values;
mod options;
mod paths;
mod plan;
mod shape;
mod short_bytes;
mod similar_names;
mod structure;
mod tags;
mod time;
mod tokens;
mod tree;
mod value;
mod wire;

pub use decoder::ProtobufDecoder;
pub use encoder::ProtobufEncoder;
pub use structure::structure;
