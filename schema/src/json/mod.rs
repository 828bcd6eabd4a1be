//! JSON payloads to columns.

mod decoder;
mod encoder;
mod shape;
mod value;

pub use decoder::JsonDecoder;
pub use encoder::JsonEncoder;
