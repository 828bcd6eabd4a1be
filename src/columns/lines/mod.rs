//! Rows of the table `records` as text, one line each.

pub(crate) mod escape;
pub(crate) mod fields;
pub(crate) mod json_lines;
pub(crate) mod payload;
pub(crate) mod writer;

pub use payload::PayloadFormat;
pub use writer::{LineOptions, LineWriter};
