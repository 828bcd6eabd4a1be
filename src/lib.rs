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
//! - [`layout`]: the fields of a batch with their places
//! - [`sidecar`]: the files beside a segment
//! - [`state`]: transactions, idempotent producers and leader epochs, by batch headers
//! - [`schema_framing`]: the schema id before a key or value
//!
//! Other crates are built on this one: `magicbyte-log` (directories of segments), `magicbyte-arrow` (columns),
//! `magicbyte-protocol` (messages), `magicbyte-broker` (the checks of an append), `magicbyte-serve` (a read-only broker),
//! `magicbyte-client` (batches of a running cluster), `magicbyte-lab` (costs).
//!
//! Features: `gzip`, `snappy`, `lz4`, `zstd` (default), `serde` (for the plain-data types).
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod batch;
mod batches;
mod builder;
mod bytes;
mod compression;
pub mod convert;
mod error;
mod frame;
#[doc(hidden)]
pub mod internals;
pub mod layout;
mod legacy;
mod record;
pub mod schema_framing;
pub mod sidecar;
pub mod state;

pub use batch::{Batch, Records};
pub use batches::Batches;
pub use builder::RecordsBuilder;
pub use bytes::checksum::crc32c;
pub use bytes::varint::{decode_varint, encode_varint};
pub use compression::{Compression, Compressor, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor};
pub use error::{Error, ErrorKind, Result};
pub use legacy::{LegacyBatch, MessageIter};
pub use record::{
    ControlRecord, ControlType, Endpoint, Header, Headers, PartialRecord, ProducerState,
    RECORD_BATCH_OVERHEAD, Record, RecordBatch, RecordIter, TimestampType, Voter,
};
