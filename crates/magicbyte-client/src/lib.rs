//! Batches of a running Kafka cluster as bytes: a blocking client that only reads.
//!
//! [`Cluster`] finds topics, leaders and offsets; [`Fetcher`] gets ranges of partitions from them: whole batches, byte for byte
//! as they are stored, which [`magicbyte::Batches`] reads. It copies each byte once, from the socket. It joins no groups, commits
//! and produces nothing, and needs no runtime.
//!
//! ```no_run
//! use magicbyte::state::IsolationLevel;
//! use magicbyte::{Batches, Decompressor};
//! use magicbyte_client::{ClientOptions, Cluster, FetchOptions, FetchRange, OffsetSpec};
//!
//! let mut cluster = Cluster::connect("127.0.0.1:9092", ClientOptions::default())?;
//! let partition = ("orders".into(), 0);
//! let mut offset = |spec| {
//!     let listed = cluster.list_offsets(std::slice::from_ref(&partition), spec, IsolationLevel::ReadUncommitted)?;
//!     Ok::<_, magicbyte_client::Error>(listed[&partition].unwrap_or(0))
//! };
//! let (start, end) = (offset(OffsetSpec::Earliest)?, offset(OffsetSpec::Latest)?);
//! let range = FetchRange { topic: "orders".into(), partition: 0, start, end };
//! let mut decompressor = Decompressor::new();
//! for fetched in cluster.fetch(vec![range], FetchOptions::default())? {
//!     for batch in Batches::new(&fetched?.records) {
//!         for record in batch?.records(&mut decompressor)? {
//!             let record = record?;
//!             println!("{} {:?}", record.offset(), record.value());
//!         }
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A broker is not trusted: every wait has a deadline, the size of a response has a limit, and what no broker sends is an
//! error that names broker, topic and partition. No text of an error contains a password, a key or a token.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod address;
mod admin;
mod backoff;
mod cluster;
mod connection;
mod connector;
mod error;
mod fetch_options;
mod fetched;
mod fetcher;
mod frames;
mod groups;
mod offsets;
mod opening;
mod options;
mod partition;
mod position;
mod properties;
mod ready;
mod sasl;
mod socket;
mod stream;
#[cfg(feature = "tls")]
mod tls;

pub use address::Address;
pub use cluster::{Cluster, Leader, Topic};
pub use connection::{Connection, Response, Sent};
#[doc(hidden)]
pub use connector::{Connector, Duplex};
pub use error::{Error, ErrorKind, Result};
pub use fetch_options::{FetchOptions, FetchRange};
pub use fetched::Fetched;
pub use fetcher::Fetcher;
pub use groups::CommittedOffset;
pub use offsets::OffsetSpec;
pub use options::{ClientOptions, RetryListener, Sasl, ScramHash, Secret, Security, TlsOptions, TokenSource};
pub use position::TopicPartition;
