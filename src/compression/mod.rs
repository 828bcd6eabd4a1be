//! The codecs as Kafka uses them: what each writes, accepts and refuses, with a cap on the output.
//!
//! One file a codec, with both directions: [`Decompressor`] reads the whole payload of a batch into one
//! reused buffer, [`Compressor`] writes it.

pub(crate) mod codec;
pub(crate) mod compressor;
pub(crate) mod decompressor;
#[cfg(feature = "gzip")]
pub(crate) mod gzip;
#[cfg(feature = "lz4")]
pub(crate) mod lz4;
pub(crate) mod output;
pub(crate) mod plain;
#[cfg(feature = "snappy")]
pub(crate) mod snappy;
#[cfg(feature = "snappy")]
pub(crate) mod snappy_block;
#[cfg(feature = "zstd")]
pub(crate) mod zstd;

pub use codec::Compression;
pub use compressor::Compressor;
pub use decompressor::{DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor};
