//! Kafka's protocol: its messages, the records of its internal topics, and connections as bytes.
//!
//! - [`message`]: requests and responses
//! - [`internal_topics`]: records of `__consumer_offsets`, `__transaction_state`, `__share_group_state` and
//!   `__cluster_metadata`
//! - [`wire`]: frames, and with the feature `wire` captures of connections
//!
//! Messages have structs with Kafka's names:
//!
//! ```
//! use magicbyte_protocol::message::body::metadata_request::MetadataRequestTopic;
//! use magicbyte_protocol::message::body::{MetadataRequest, MetadataResponse, read_response, write_request};
//!
//! let topic = MetadataRequestTopic { name: Some("orders".into()), ..Default::default() };
//! let request = MetadataRequest { topics: Some(vec![topic]), ..Default::default() };
//! let frame = write_request(&request, 12, 7, Some("reader"))?;
//! # assert_eq!(frame[..8], [0, 3, 0, 12, 0, 0, 0, 7]);
//! // A client sends the length of the frame in four bytes, and the frame. This is what a broker answers, without its
//! // length, if there is no such topic (error 3).
//! # let frame = [
//! #     &[0, 0, 0, 7, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 0, 3, 7][..], b"orders", &[0; 17], &[1],
//! #     &i32::MIN.to_be_bytes(), &[0, 0],
//! # ]
//! # .concat();
//! let (correlation_id, response) = read_response::<MetadataResponse<'_>>(&frame, 12)?;
//! let topic = &response.topics[0];
//! assert_eq!((correlation_id, topic.name.as_deref(), topic.error_code), (7, Some("orders"), 3));
//! # Ok::<(), magicbyte::Error>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod internal_topics;
#[doc(hidden)]
pub mod internals;
pub mod message;
pub mod wire;
