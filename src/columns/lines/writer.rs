//! The text of Arrow batches, by the options of a caller.

use arrow_array::RecordBatch;

use crate::columns::lines::fields::Field;
use crate::columns::lines::json_lines::{JsonCells, push_json_lines};
use crate::columns::lines::payload::PayloadFormat;
use crate::log::error::LogResult;

/// How rows are written.
#[derive(Clone, Debug, Default)]
pub struct LineOptions {
    /// How keys are written.
    pub key: PayloadFormat,
    /// How values are written, and values of headers.
    pub value: PayloadFormat,
}

/// Writes rows of the table `records` as JSON lines.
///
/// An object has a field for each column of the batch: `topic`, `partition`, `offset`, `timestamp` (ms, -1 for
/// none; the column `timestampMillis`, or else `timestamp`), `timestampType` by name, `key`, `value`, `headers` as
/// a list of objects with `key` and `value`, then the columns about the record's batch. Invisible characters are
/// escaped.
#[derive(Clone, Debug, Default)]
pub struct LineWriter {
    options: LineOptions,
}

impl LineWriter {
    /// A writer with these options.
    #[must_use]
    pub fn new(options: LineOptions) -> Self {
        Self { options }
    }

    /// Appends the lines of a batch, at most six times its size and that of the columns' names.
    ///
    /// # Errors
    /// [`LogError::Usage`](crate::log::LogError::Usage) names a column that the table `records` does not have, or
    /// that has another type there; nothing is written.
    pub fn write(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> LogResult<()> {
        let fields = Field::all_of(batch)?;
        let cells = JsonCells { key: self.options.key, value: self.options.value };
        push_json_lines(&fields, batch.num_rows(), cells, out);
        Ok(())
    }
}
