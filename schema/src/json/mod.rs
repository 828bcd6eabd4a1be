//! JSON payloads to columns.

mod decoder;
mod shape;
mod value;

pub use decoder::JsonDecoder;
