//! The format: what is read, built, converted and refused.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod builder;
mod codecs;
mod control_records;
mod convert;
mod corpus;
mod examples;
mod framing;
mod goldens;
mod hostile;
mod kafka_reading;
mod layout;
mod legacy;
mod parallel;
mod records;
mod schema_framing;
mod state;
