//! The bodies of the fuzz targets. Each takes any bytes, and panics if the library breaks a guarantee.
//!
//! cargo-fuzz runs them through `fuzz_targets/`, and `crates/magicbyte-testing/tests/fuzz_corpus.rs` over the corpus.
#![allow(clippy::unwrap_used, reason = "a panic is a finding")]

mod append;
mod batches;
mod built;
mod client;
mod codecs;
mod compacted;
mod internal_topics;
mod lab;
mod made;
mod payloads;
mod salvage;
mod schema_avro;
mod schema_json;
mod schema_protobuf;
mod scratch;
mod serve;
mod sidecars;
mod walk;
mod wire;

pub use append::append;
pub use batches::{framing, legacy, magic2};
pub use built::builder;
pub use client::client_response;
pub use codecs::{gzip, lz4, snappy, zstd};
pub use compacted::compact;
pub use internal_topics::internal_topics;
pub use lab::{cost, magic3};
pub use salvage::salvage;
pub use schema_avro::schema_avro;
pub use schema_json::schema_json;
pub use schema_protobuf::schema_protobuf;
pub use serve::serve_request;
pub use sidecars::sidecars;
pub use wire::{message, wire_stream};

/// Panics if the library breaks a guarantee for these bytes.
pub type Target = fn(&[u8]);

/// Every target, with its name, which its corpus shares.
pub const TARGETS: &[(&str, Target)] = &[
    ("framing", framing),
    ("magic2", magic2),
    ("legacy", legacy),
    ("gzip", gzip),
    ("snappy", snappy),
    ("lz4", lz4),
    ("zstd", zstd),
    ("sidecars", sidecars),
    ("salvage", salvage),
    ("compact", compact),
    ("append", append),
    ("builder", builder),
    ("cost", cost),
    ("magic3", magic3),
    ("wire_stream", wire_stream),
    ("message", message),
    ("internal_topics", internal_topics),
    ("schema_avro", schema_avro),
    ("schema_protobuf", schema_protobuf),
    ("schema_json", schema_json),
    ("serve_request", serve_request),
    ("client_response", client_response),
];
