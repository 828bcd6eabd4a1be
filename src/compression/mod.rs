//! The codecs as Kafka uses them: what each one writes, accepts and refuses, with a limit on the output.
//!
//! Each codec has one file, for both directions. [`Decompressor`] reads the payload of a batch into a reused
//! buffer; [`Compressor`] writes one.

pub(crate) mod codec;
pub(crate) mod compressor;
pub(crate) mod decompressor;
#[cfg(feature = "gzip")]
pub(crate) mod gzip;
#[cfg(feature = "lz4")]
pub(crate) mod lz4;
pub(crate) mod output;
pub(crate) mod plain;
#[cfg(all(feature = "gzip", feature = "zstd"))]
pub(crate) mod prefix;
#[cfg(feature = "snappy")]
pub(crate) mod snappy;
#[cfg(feature = "snappy")]
pub(crate) mod snappy_block;
#[cfg(feature = "zstd")]
#[doc(hidden)]
pub mod zstd;

pub use codec::Compression;
pub use compressor::Compressor;
pub use decompressor::{DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor};
