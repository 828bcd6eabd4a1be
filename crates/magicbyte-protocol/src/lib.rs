//! Kafka's protocol: its messages, the records of its internal topics, and connections as bytes.
//!
//! - [`message`]: requests and responses
//! - [`internal_topics`]: records of `__consumer_offsets`, `__transaction_state`, `__share_group_state` and
//!   `__cluster_metadata`
//! - [`wire`]: frames, and with the feature `wire` captures of connections
//!
//! ```
//! use magicbyte_protocol::message::{apis, read_request};
//!
//! // ApiVersions 0 with the correlation id 7, as a client sends it, without the four bytes of its length.
//! let request = read_request(&[0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff])?;
//! let name = apis().into_iter().find(|api| api.key == request.api_key).map(|api| api.name);
//! assert_eq!((name, request.api_version), (Some("ApiVersions"), 0));
//! # Ok::<(), magicbyte::Error>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod internal_topics;
#[doc(hidden)]
pub mod internals;
pub mod message;
pub mod wire;
