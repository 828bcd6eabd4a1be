//! A laboratory of the format: what a layout costs.
//!
//! - [`cost`]: bytes by field, as they are stored and in the other formats
//! - [`chunk_cost`]: the same for a chunk of a log
//! - `comparison` (feature `experimental-v3`): the same records in each format
//! - `magic3` (feature `experimental-v3`): ideas for the next format, encoded and decoded
//! - [`trial`]: codecs, levels and batch sizes tried on a window of a log
//!
//! ```
//! use magicbyte::{Batches, Compression, Decompressor, RecordsBuilder};
//! use magicbyte_lab::cost::{Cost, Format, Tally};
//!
//! let mut builder = RecordsBuilder::v2(Compression::None);
//! builder.append(0, 1_700_000_000_000, Some(b"key"), Some(b"value"), &[])?;
//! let batch = builder.build()?;
//!
//! let mut tally = Tally::default();
//! for batch in Batches::new(&batch) {
//!     tally.add(&batch?, &mut Decompressor::new())?;
//! }
//! assert_eq!(Cost::of(&tally, Format::Magic2).total(), batch.len() as u64);
//! assert!(Cost::of(&tally, Format::Magic1).total() < batch.len() as u64, "one record has no batch to share");
//! # Ok::<(), magicbyte::Error>(())
//! ```
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
