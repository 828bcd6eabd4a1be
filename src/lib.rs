//! Kafka's record format: batches of magic 2 and message sets of magic 0 and 1, read and built.
//!
//! Framing splits bytes into batches and decompresses nothing; a header field costs a load; records are decoded lazily and
//! borrow the input, or the decompression buffer.
//!
//! ```
//! # fn read(bytes: &[u8]) -> magicbyte::Result<()> {
//! let mut decompressor = magicbyte::Decompressor::new();
//! for batch in magicbyte::Batches::new(bytes) {
//!     let batch = batch?;
//!     batch.verify()?;
//!     for record in batch.records(&mut decompressor)? {
//!         let record = record?;
//!         println!("{} {:?}", record.offset(), record.value());
//!     }
//! }
//! # Ok(()) }
//! # read(&[]).unwrap();
//! ```
//!
//! [`RecordsBuilder`] builds batches with the checks that Kafka makes:
//!
//! ```
//! use magicbyte::{Compression, RecordsBuilder};
//!
//! let mut builder = RecordsBuilder::v2(Compression::Lz4);
//! builder.append(0, 1_700_000_000_000, Some(b"key"), Some(b"value"), &[])?;
//! let batch = builder.build()?;
//! # assert_eq!(magicbyte::Batches::new(&batch).count(), 1);
//! # Ok::<(), magicbyte::Error>(())
//! ```
//!
//! An [`Error`] has the kind of damage and its place: byte position, base offset of the batch, index of the record, field.
//! Input is not trusted: no bytes cause a panic, an unbounded allocation or a hang.
//!
//! - [`convert`]: other magics and codecs, merging, splitting, changes in place
//! - [`lab`]: what batches cost, field by field, in each format
//! - [`layout`]: the fields of a batch with their places
//! - [`log`]: a partition's directory, read in full, written, compacted, repaired; [`sidecar`]: the files beside a segment
//! - [`state`]: transactions, idempotent producers and leader epochs, by batch headers
//! - [`schema_framing`]: the schema id before a key or value
//! - [`broker`]: the checks and changes of an append, and a partition in memory
#![cfg_attr(feature = "arrow", doc = "- [`columns`]: Arrow arrays")]
#![cfg_attr(feature = "message", doc = "- [`message`]: the protocol's requests and responses")]
#![cfg_attr(feature = "message", doc = "- [`internal_topics`]: the records of Kafka's internal topics")]
#![cfg_attr(feature = "message", doc = "- [`wire`]: the protocol as bytes on a connection")]
#![cfg_attr(feature = "serve", doc = "- [`serve`]: partition directories as a read-only broker")]
//!
//! Features: `gzip`, `snappy`, `lz4`, `zstd` (default), `arrow` (columns), `message` (the protocol's messages), `wire`
//! (captures of the protocol), `serde` (the plain data of [`log::steps`]), `serve` (the read-only broker),
//! `tiered` (segments in tiered storage as Aiven's plugin writes them), `object-store` (logs in the stores of the crate
//! `object_store`: `log::Bucket`).
#![cfg_attr(not(feature = "python"), forbid(unsafe_code))]
#![deny(unsafe_code)]

mod batch;
mod batches;
pub mod broker;
mod builder;
mod bytes;
#[cfg(feature = "arrow")]
pub mod columns;
mod compression;
pub mod convert;
mod error;
mod error_names;
mod frame;
#[cfg(feature = "message")]
pub mod internal_topics;
pub mod lab;
pub mod layout;
mod legacy;
pub mod log;
#[cfg(feature = "message")]
pub mod message;
mod parallel;
#[cfg(any(feature = "arrow", feature = "serve"))]
mod process;
#[cfg(feature = "python")]
mod python;
mod record;
pub mod schema_framing;
#[cfg(feature = "serve")]
pub mod serve;
pub mod sidecar;
pub mod state;
#[cfg(feature = "message")]
pub mod wire;

pub use batch::{Batch, Records};
pub use batches::Batches;
pub use builder::RecordsBuilder;
pub use bytes::checksum::crc32c;
pub use bytes::varint::{decode_varint, encode_varint};
pub use compression::{Compression, Compressor, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor};
pub use error::{Error, ErrorKind, Result};
pub use legacy::{LegacyBatch, MessageIter};
pub use parallel::ParallelBatches;
pub use record::{
    ControlRecord, ControlType, Endpoint, Header, Headers, PartialRecord, RECORD_BATCH_OVERHEAD, Record,
    RecordBatch, RecordIter, TimestampType, Voter,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
