//! A laboratory of the format: what a layout costs.
//!
//! - [`cost`]: bytes by field, as they are stored and in the other formats
//! - [`chunk_cost`]: the same for a chunk of a log
//! - `magic3` (feature `experimental-v3`): ideas for the next format, encoded and decoded
//! - [`trial`]: codecs, levels and batch sizes tried on a window of a log

pub mod chunk_cost;
pub mod cost;
#[cfg(feature = "experimental-v3")]
pub mod magic3;
pub mod trial;
