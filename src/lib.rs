#![doc = include_str!("../README.md")]
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
mod frame;
mod legacy;
pub mod log;
mod parallel;
#[cfg(feature = "python")]
mod python;
mod record;
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
pub use parallel::ParallelBatches;
pub use record::{
    ControlRecord, ControlType, Endpoint, Header, Headers, PartialRecord, RECORD_BATCH_OVERHEAD, Record,
    RecordBatch, RecordIter, TimestampType, Voter,
};
