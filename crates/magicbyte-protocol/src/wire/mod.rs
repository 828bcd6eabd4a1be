//! Kafka's protocol as bytes on a connection.
//!
//! [`FrameDecoder`] cuts a stream into frames.
#![cfg_attr(
    feature = "wire",
    doc = "[`Exchanges`] reads captures: packets, TCP streams, frames, and requests with their responses. All of it \
           hands out bytes; [`message`](crate::message) reads them, and [`record_sets`] finds the batches in them."
)]

#[cfg(feature = "wire")]
mod connection;
#[cfg(feature = "wire")]
mod connections;
#[cfg(feature = "wire")]
mod direction;
#[cfg(feature = "wire")]
pub(crate) mod exchange;
#[cfg(feature = "wire")]
pub(crate) mod exchanges;
#[cfg(feature = "wire")]
mod fragments;
pub(crate) mod frames;
#[cfg(feature = "wire")]
mod layers;
#[cfg(feature = "wire")]
mod packets;
#[cfg(feature = "wire")]
pub(crate) mod record_sets;
#[cfg(feature = "wire")]
mod requests;
#[cfg(feature = "wire")]
mod segment;
#[cfg(feature = "wire")]
mod stream;
#[cfg(feature = "wire")]
mod tunnels;

#[cfg(feature = "wire")]
pub use exchange::{Exchange, RequestHead, WireSummary};
#[cfg(feature = "wire")]
pub use exchanges::Exchanges;
pub use frames::{FrameDecoder, MAX_FRAME_BYTES};
#[cfg(feature = "wire")]
pub use record_sets::{RecordSet, record_sets};
