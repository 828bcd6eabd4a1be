//! The format: what is read, built, converted and refused.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

#[cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
mod builder;
mod codecs;
mod control_records;
#[cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
mod convert;
#[cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
mod corpus;
#[cfg(feature = "lz4")]
mod examples;
#[cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
mod filling;
mod framing;
mod goldens;
mod hostile;
#[cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
mod kafka_reading;
#[cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
mod layout;
mod legacy;
#[cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
mod producer_state;
mod records;
#[cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
mod schema_framing;
#[cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
mod state;
