//! Keys and values as text: a column of UTF-8 or JSON, and a column with the bytes of all other cells.

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use magicbyte_json::is_json;
use magicbyte_log::LogError;

/// The type that keys or values are read as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload {
    /// Bytes, whatever they are.
    #[default]
    Binary,
    /// UTF-8.
    String,
    /// One JSON document in UTF-8, by the grammar of RFC 8259 and without halves of surrogate pairs. The text is kept as it is.
    Json,
}

impl Payload {
    fn holds(self, text: &str) -> bool {
        self != Self::Json || is_json(text)
    }
}

impl FromStr for Payload {
    type Err = LogError;

    fn from_str(name: &str) -> Result<Self, LogError> {
        match name {
            "binary" => Ok(Self::Binary),
            "string" => Ok(Self::String),
            "json" => Ok(Self::Json),
            other => Err(LogError::Usage(format!(
                "keys and values are read as binary, string or json, not {other:?}"
            ))),
        }
    }
}

/// The types that the columns `key` and `value` of the table `records` are read as. A column of text is followed, at
/// the end of the table, by `invalidKey` or `invalidValue`. This column has the bytes of each key or value that is not
/// text of the type, and null for all others. No byte is lost, and a null in both is a null in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Payloads {
    /// The column `key`.
    pub key: Payload,
    /// The column `value`.
    pub value: Payload,
}

/// The counts of keys and values in an Arrow batch that are not the text that they are read as.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Invalid {
    pub(super) keys: u64,
    pub(super) values: u64,
}

impl Payloads {
    /// True if all columns stay as they are.
    #[must_use]
    pub fn are_binary(&self) -> bool {
        *self == Self::default()
    }

    fn of(self, column: &str) -> Payload {
        match column {
            "key" => self.key,
            "value" => self.value,
            _ => Payload::Binary,
        }
    }

    /// The schema of `records` with these columns, made from the schema with binary columns.
    #[must_use]
    pub fn schema(&self, records: &Schema) -> SchemaRef {
        let mut fields = Vec::with_capacity(records.fields().len() + 2);
        let mut invalid = Vec::new();
        for field in records.fields() {
            if self.of(field.name()) == Payload::Binary {
                fields.push(Arc::clone(field));
            } else {
                fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
                invalid.push(Arc::new(Field::new(invalid_name(field.name()), DataType::Binary, true)));
            }
        }
        fields.append(&mut invalid);
        Arc::new(Schema::new(fields))
    }

    /// Turns binary columns into text. Valid text is not copied.
    pub(super) fn convert(self, records: RecordBatch) -> (RecordBatch, Invalid) {
        let mut counts = Invalid::default();
        if self.are_binary() {
            return (records, counts);
        }
        let schema = self.schema(&records.schema());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
        let mut invalid: Vec<ArrayRef> = Vec::new();
        for (field, array) in records.schema().fields().iter().zip(records.columns()) {
            let payload = self.of(field.name());
            let Some(bytes) = array.as_binary_opt::<i32>().filter(|_| payload != Payload::Binary) else {
                arrays.push(Arc::clone(array));
                continue;
            };
            let (text, others) = text_of(bytes, payload);
            let count = (others.len() - others.null_count()) as u64;
            *(if field.name() == "key" { &mut counts.keys } else { &mut counts.values }) += count;
            arrays.push(Arc::new(text));
            invalid.push(Arc::new(others));
        }
        arrays.append(&mut invalid);
        let options = RecordBatchOptions::new().with_row_count(Some(records.num_rows()));
        let converted = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options);
        // Every array has a value for each row, and its column's type.
        (converted.unwrap_or_else(|_| RecordBatch::new_empty(schema)), counts)
    }
}

/// The name of the column with the bytes that are not text of the given column.
pub(super) fn invalid_name(column: &str) -> &'static str {
    if column == "key" { "invalidKey" } else { "invalidValue" }
}

/// The text of a column, and the bytes of the cells that are not such text.
pub(super) fn text_of(bytes: &BinaryArray, payload: Payload) -> (StringArray, BinaryArray) {
    if let Ok(text) = StringArray::try_from_binary(bytes.clone())
        && text.iter().flatten().all(|text| payload.holds(text))
    {
        return (text, BinaryArray::new_null(bytes.len()));
    }
    let texts: Vec<Option<&str>> = bytes
        .iter()
        .map(|value| value.and_then(|value| std::str::from_utf8(value).ok()))
        .map(|text| text.filter(|text| payload.holds(text)))
        .collect();
    let others = bytes.iter().zip(&texts).map(|(value, text)| value.filter(|_| text.is_none())).collect();
    (texts.into_iter().collect(), others)
}
