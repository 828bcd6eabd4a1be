//! Options of serving.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::archive::ServedTopic;
use crate::archived_groups::GroupMetadata;
use crate::committed::CommittedOffset;
use crate::transactions::TransactionMetadata;

/// Options of a server: the data that it serves, and the way it does.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// The host and port that clients are told to connect to. By default, a client is told the host and port that it
    /// has connected to.
    pub advertised_listener: Option<(String, u16)>,
    /// True if batches of magic 0 and 1 are converted to magic 2, which some clients need.
    pub to_magic_2: bool,
    /// The time (ms) as of which logs are served: they end before the first batch with a later timestamp.
    pub as_of: Option<i64>,
    /// True if logs end at their last stable offset and have no records of aborted transactions, whatever a client
    /// requests.
    pub read_committed_only: bool,
    /// True if the logs grow: their directories are listed again when a client reads at the end.
    pub follow: bool,
    /// Known properties of the topics, by name.
    pub topics: BTreeMap<String, ServedTopic>,
    /// The groups of the archived cluster, by name. One that has only committed offsets need not be among them.
    pub groups: BTreeMap<String, GroupMetadata>,
    /// Committed offsets of groups: group, topic, partition, offset.
    pub committed: Vec<(String, String, i32, CommittedOffset)>,
    /// The states of transactional ids in the archived cluster, by id.
    pub transactions: BTreeMap<String, TransactionMetadata>,
    /// The limits.
    pub limits: ServeLimits,
}

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeLimits {
    /// The maximum number of connections; more are closed at once.
    pub connections: usize,
    /// The maximum size of a request in bytes; a connection with a larger one is closed.
    pub request_bytes: usize,
    /// The time that a client may take for its next request, or to receive a response. After it, the connection is
    /// closed.
    pub idle: Duration,
}

impl Default for ServeLimits {
    /// 256 connections, requests of 2 MiB, 10 minutes (`connections.max.idle.ms`).
    fn default() -> Self {
        Self { connections: 256, request_bytes: 2 << 20, idle: Duration::from_mins(10) }
    }
}
