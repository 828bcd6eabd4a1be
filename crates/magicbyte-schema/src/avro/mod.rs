//! Avro payloads to columns: common schemas by a plan of our own, which takes half the time, all others by
//! [arrow-avro](https://docs.rs/arrow-avro), with what that lacks: a bad payload costs only
//! its own row, several writers' schemas in one call, types other than records at the top, references, unions as
//! Spark has them, and text for what has no Arrow type.

#[cfg(test)]
mod agreement;
mod columns;
mod costs;
mod decoder;
mod encoder;
mod plan;
mod target;
mod time;
mod types;
mod walk;
mod writer;

pub use decoder::AvroDecoder;
pub use encoder::AvroEncoder;
