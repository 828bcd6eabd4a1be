//! A laboratory of the format: what a layout costs.
//!
//! - [`cost`]: bytes by field, as they are stored and in the other formats
//! - [`chunk_cost`]: the same for a chunk of a log
//! - `comparison` (feature `experimental-v3`): the same records in each format
//! - `magic3` (feature `experimental-v3`): ideas for the next format, encoded and decoded
//! - [`trial`]: codecs, levels and batch sizes tried on a window of a log
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod chunk_cost;
#[cfg(feature = "experimental-v3")]
pub mod comparison;
pub mod cost;
pub mod dictionary;
#[cfg(feature = "experimental-v3")]
pub mod magic3;
pub mod trial;
