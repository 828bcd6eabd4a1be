//! The text of Arrow batches, by the options of a caller.

use arrow_array::RecordBatch;

use magicbyte_log::{LogError, LogResult};

use crate::lines::csv::Csv;
use crate::lines::fields::{Documents, Field};
use crate::lines::format::{Template, TemplateStyle};
use crate::lines::json_lines::JsonLines;
use crate::lines::payload::PayloadFormat;
use crate::lines::rows::push_lines;
use crate::schema::RecordColumn;

/// The format of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineFormat {
    /// One JSON object per line. Invisible characters are escaped.
    #[default]
    Json,
    /// CSV by RFC 4180, with the columns of the JSON line, and headers as their JSON text. An empty field is null, and
    /// `""` is an empty text.
    Csv,
    /// A format string of kcat.
    Template(Template),
}

/// Options for writing rows.
#[derive(Clone, Debug, Default)]
pub struct LineOptions {
    /// The format of a line.
    pub format: LineFormat,
    /// The format of keys.
    pub key: PayloadFormat,
    /// The format of values, and of values of headers.
    pub value: PayloadFormat,
    /// True if invisible characters of a record are always escaped, for a terminal. JSON always escapes them.
    pub visible: bool,
    /// The text that a template shows for a key or value that is null.
    pub null: String,
}

/// Writes rows of the table `records` as lines of text.
///
/// A line has a field for each column of the batch: `topic`, `partition`, `offset`, `timestamp` (ms, -1 for none;
/// the column `timestampMillis`, or else `timestamp`), `timestampType` by name, `key`, `value`, `headers` as a list
/// of objects with `key` and `value`, then the columns about the record's batch.
#[derive(Clone, Debug, Default)]
pub struct LineWriter {
    options: LineOptions,
}

impl LineWriter {
    /// A writer with these options.
    ///
    /// # Errors
    /// [`LogError::Usage`] if keys or values are to be JSON in a template.
    pub fn new(options: LineOptions) -> LogResult<Self> {
        let is_template = matches!(options.format, LineFormat::Template(_));
        if is_template && [options.key, options.value].contains(&PayloadFormat::Json) {
            let why = "a format string writes keys and values as utf-8, hex or base64, not as JSON";
            return Err(LogError::Usage(why.into()));
        }
        Ok(Self { options })
    }

    /// Appends the bytes before the lines: the names of the columns for CSV, otherwise nothing.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn write_header(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> LogResult<()> {
        let LineOptions { key, value, visible, .. } = self.options;
        if self.options.format == LineFormat::Csv {
            self.with_fields(batch, |fields| {
                Csv { key, value, visible }.push_header(fields, out);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Appends the lines of a batch.
    ///
    /// # Errors
    /// [`LogError::Usage`] names a column that the table `records` does not have, that has another type there, or that a
    /// template needs; nothing is written.
    pub fn write(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> LogResult<()> {
        let LineOptions { key, value, visible, .. } = self.options;
        self.with_fields(batch, |fields| {
            let rows = batch.num_rows();
            match &self.options.format {
                LineFormat::Json => push_lines(fields, rows, &JsonLines { key, value }, out),
                LineFormat::Csv => push_lines(fields, rows, &Csv { key, value, visible }, out),
                LineFormat::Template(template) => {
                    let null = &self.options.null;
                    let style = TemplateStyle { template, key, value, visible, null };
                    return style.push_all(fields, rows, out);
                }
            }
            Ok(())
        })
    }

    fn with_fields(
        &self,
        batch: &RecordBatch,
        work: impl FnOnce(&[Field<'_>]) -> LogResult<()>,
    ) -> LogResult<()> {
        let documents = |format, column| match format {
            PayloadFormat::Json => Documents::of(batch, column),
            _ => Ok(None),
        };
        let keys = documents(self.options.key, RecordColumn::Key)?;
        let values = documents(self.options.value, RecordColumn::Value)?;
        let mut fields = Field::all_of(batch)?;
        for documents in [&keys, &values].into_iter().flatten() {
            documents.replace(&mut fields);
        }
        work(&fields)
    }
}
