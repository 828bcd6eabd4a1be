//! A laboratory of the format: what a layout costs.
//!
//! - [`cost`]: bytes by field, as they are stored and in the other formats
//! - [`chunk_cost`]: the same for a chunk of a log
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
pub mod cost;
pub mod dictionary;
pub mod trial;
