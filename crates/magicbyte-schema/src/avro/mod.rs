//! Avro payloads to columns, by the rules of Avro's own Java library.
//!
//! A plan says once how values of a writer's schema are read as values of the reader's. Two things
//! follow a plan: `read`, which fills columns, and `text`, which writes JSON.

mod aliases;
mod columns;
mod cursor;
mod decimal;
mod decoder;
mod default;
mod encoder;
mod plan;
mod read;
mod resolve;
mod target;
mod text;
mod time;
mod types;

pub use decoder::AvroDecoder;
pub use encoder::AvroEncoder;
