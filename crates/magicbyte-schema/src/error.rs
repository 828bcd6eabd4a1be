//! The error of a schema; those of a payload are [`RowError`](crate::RowError)s.

use std::fmt;

/// A schema that cannot be used: it cannot be parsed, or its rows have no Arrow type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    message: String,
}

/// The result of work on a schema.
pub type Result<T> = std::result::Result<T, SchemaError>;

impl SchemaError {
    /// An error with this text.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SchemaError {}
