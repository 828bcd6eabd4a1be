//! Rows of the table `records` as text, one line each.

pub(crate) mod csv;
pub(crate) mod escape;
pub(crate) mod fields;
pub(crate) mod format;
pub(crate) mod json_lines;
pub(crate) mod payload;
pub(crate) mod rows;
pub(crate) mod writer;

pub use format::Template;
pub use payload::PayloadFormat;
pub use writer::{LineFormat, LineOptions, LineWriter};
