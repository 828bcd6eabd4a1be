//! JSON payloads to columns and back, by the types of a JSON Schema.

mod columns;
mod decoder;
mod documents;
mod encoder;
mod integers;
mod metered;
#[cfg(test)]
mod oracle;
mod read;
mod shape;
mod validation;

pub use decoder::JsonDecoder;
pub use encoder::JsonEncoder;
pub use integers::Integers;
