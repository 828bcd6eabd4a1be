//! Kafka's protocol: its messages, the records of its internal topics, and connections as bytes.
//!
//! - [`message`]: requests and responses
//! - [`internal_topics`]: records of `__consumer_offsets`, `__transaction_state`, `__share_group_state` and
//!   `__cluster_metadata`
//! - [`wire`]: frames, and with the feature `wire` captures of connections
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod internal_topics;
#[doc(hidden)]
pub mod internals;
pub mod message;
pub mod wire;
