//! The byte inspector: what its page shows of a segment, which it reads in slices.
//!
//! `scripts/inspector.py` compiles this crate to WebAssembly and puts it into the page in `page/`. A worker of the page
//! calls `exports.rs`; everything else works on any [`Source`], so that it is tested without a browser.

#[cfg(target_arch = "wasm32")]
pub mod exports;
mod fields;
#[cfg(target_arch = "wasm32")]
mod memory;
mod segment;
mod sheet;
mod source;

pub use fields::{FieldView, Fields};
pub use segment::Segment;
pub use sheet::{Checkpoint, Row, RowKind, Sheet};
pub use source::Source;
