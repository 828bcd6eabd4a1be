//! Partition directories as a read-only broker: every Kafka client can read them. Nothing is ever written.
//!
//! [`ReadOnlyBroker`] answers requests, [`Server`] listens for them. A thread for each connection; batches go from the
//! files to the clients without a copy. What is damaged is left out, as if it had been compacted away, and listed in
//! the topic [`PROBLEMS_TOPIC`].
//!
//! ```no_run
//! use magicbyte_log::PartitionLog;
//! use magicbyte_serve::{ReadOnlyBroker, ServeOptions, Server};
//!
//! let log = PartitionLog::open("backup/orders-0")?;
//! let broker = ReadOnlyBroker::new(vec![log.listing().clone()], ServeOptions::default());
//! let server = Server::start(broker, "127.0.0.1:9092")?;
//! println!("{}", server.address());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod administration;
pub(crate) mod archive;
pub(crate) mod archived_groups;
mod assignors;
mod batch_map;
pub(crate) mod broker;
mod caller;
mod classic_group;
mod cluster;
mod commits;
pub(crate) mod committed;
mod configs;
mod connection;
mod consumer_group;
mod consumer_members;
mod coordinator;
mod fetch;
mod fetch_sessions;
mod group;
mod group_list;
mod groups;
mod limits;
mod lock;
mod log_dirs;
mod members;
mod memory;
mod offsets;
pub(crate) mod options;
mod outgoing;
mod partition;
mod patterns;
pub(crate) mod problem_log;
mod producers;
mod recipient;
mod request;
mod requested;
mod response;
pub(crate) mod server;
mod share_groups;
mod span;
mod stopping;
pub(crate) mod transactions;
mod view;

pub use archive::ServedTopic;
pub use archived_groups::{GroupMetadata, GroupType};
pub use broker::ReadOnlyBroker;
pub use committed::CommittedOffset;
pub use options::{ServeLimits, ServeOptions};
pub use problem_log::PROBLEMS_TOPIC;
pub use server::Server;
pub use transactions::TransactionMetadata;
