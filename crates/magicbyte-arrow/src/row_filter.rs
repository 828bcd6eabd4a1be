//! The rows of the table `records` with certain keys, or with a text that a regular expression matches.

use std::collections::HashSet;

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use regex::bytes::Regex;

use magicbyte_log::{LogError, LogResult};

use crate::cells::Blobs;

/// Selects rows by the columns `key` and `value`. A row has to meet every condition that is given.
#[derive(Clone, Debug, Default)]
pub struct RowFilter {
    keys: Option<HashSet<Vec<u8>>>,
    pattern: Option<Regex>,
}

impl RowFilter {
    /// Selects the rows with one of these keys, and those whose key or value the pattern matches. The pattern is a
    /// regular expression of the crate `regex`, which takes linear time; `.` is a character of UTF-8, and `(?-u)` turns
    /// to bytes.
    ///
    /// # Errors
    /// [`LogError::Usage`] if the pattern is not a regular expression, or is too large.
    pub fn new(keys: Option<HashSet<Vec<u8>>>, pattern: Option<&str>) -> LogResult<Self> {
        let pattern = pattern.map(Regex::new).transpose();
        Ok(Self { keys, pattern: pattern.map_err(|error| LogError::Usage(error.to_string()))? })
    }

    /// Which rows are selected.
    ///
    /// # Errors
    /// [`LogError::Usage`] if there is no column `key` or `value`, or one is neither binary nor text.
    pub fn mask(&self, batch: &RecordBatch) -> LogResult<BooleanBuffer> {
        let blobs = |name: &'static str| {
            let column = batch.column_by_name(name);
            column.and_then(|column| Blobs::of(column, name).ok()).ok_or_else(|| {
                LogError::Usage(format!("there is no column {name:?} of bytes or text to select rows by"))
            })
        };
        let (keys, values) = (blobs("key")?, blobs("value")?);
        Ok(BooleanBuffer::collect_bool(batch.num_rows(), |row| {
            let key = keys.get(row);
            self.keys.as_ref().is_none_or(|wanted| key.is_some_and(|key| wanted.contains(key)))
                && self.pattern.as_ref().is_none_or(|pattern| {
                    [key, values.get(row)].into_iter().flatten().any(|bytes| pattern.is_match(bytes))
                })
        }))
    }
}
