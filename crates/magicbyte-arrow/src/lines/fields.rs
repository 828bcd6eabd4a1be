//! The fields of a line: columns of the table `records`, found by name.

use RecordColumn as C;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray,
};

use magicbyte::TimestampType;
use magicbyte_log::{LogError, LogResult};

use crate::cells::{Blobs, HeaderLists, Times};
use crate::schema::RecordColumn;
use crate::text_columns::{Payload, invalid_name, text_of};

/// The columns in the order of their fields. `timestamp` is that in milliseconds, since microseconds do not
/// reach every time; the other column is used if there is no `timestampMillis`.
const ORDER: [RecordColumn; 18] = [
    C::Topic,
    C::Partition,
    C::Offset,
    C::TimestampMillis,
    C::Timestamp,
    C::TimestampType,
    C::Key,
    C::Value,
    C::Headers,
    C::Magic,
    C::Compression,
    C::ProducerId,
    C::ProducerEpoch,
    C::Sequence,
    C::IsTransactional,
    C::LeaderEpoch,
    C::Segment,
    C::Position,
];

/// A column as it is printed.
#[derive(Debug)]
pub(super) struct Field<'a> {
    pub(super) column: RecordColumn,
    pub name: &'static str,
    pub(super) cells: Cells<'a>,
}

/// The cells of a column.
#[derive(Debug)]
pub(super) enum Cells<'a> {
    Int32(&'a Int32Array),
    Int64(&'a Int64Array),
    Bool(&'a BooleanArray),
    Time(Times<'a>),
    Text(Blobs<'a>),
    Payload(Blobs<'a>),
    /// Keys or values that are JSON.
    Json(&'a StringArray),
    /// The bytes of keys or values that are not JSON.
    Invalid(&'a BinaryArray),
    Headers(HeaderLists<'a>),
}

/// The JSON documents of a column of keys or values, and the bytes of the other cells.
pub(super) struct Documents {
    column: RecordColumn,
    valid: StringArray,
    invalid: BinaryArray,
}

impl Documents {
    /// Finds the JSON among the keys or values.
    ///
    /// # Errors
    /// [`LogError::Usage`] if the column is not binary.
    pub(super) fn of(batch: &RecordBatch, column: RecordColumn) -> LogResult<Option<Self>> {
        let Some(array) = batch.column_by_name(column.name()) else { return Ok(None) };
        let bytes = array.as_binary_opt::<i32>().ok_or_else(|| wrong_type(column, array))?;
        let (valid, invalid) = text_of(bytes, Payload::Json);
        Ok(Some(Self { column, valid, invalid }))
    }

    /// Replaces the field of the column, and adds a field for the cells that are not JSON.
    pub(super) fn replace<'a>(&'a self, fields: &mut Vec<Field<'a>>) {
        if let Some(field) = fields.iter_mut().find(|field| field.column == self.column) {
            field.cells = Cells::Json(&self.valid);
            let name = invalid_name(self.column.name());
            fields.push(Field { column: self.column, name, cells: Cells::Invalid(&self.invalid) });
        }
    }
}

#[cold]
fn wrong_type(column: RecordColumn, array: &ArrayRef) -> LogError {
    LogError::Usage(format!("column {:?} has the type {}", column.name(), array.data_type()))
}

impl<'a> Field<'a> {
    /// The fields that a batch has columns for, in the order of a line.
    ///
    /// # Errors
    /// [`LogError::Usage`] for a column that the table does not have, or one of another type.
    pub(super) fn all_of(batch: &'a RecordBatch) -> LogResult<Vec<Self>> {
        let mut arrays: [Option<&ArrayRef>; ORDER.len()] = [None; ORDER.len()];
        for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let column: RecordColumn = field.name().parse()?;
            let index = ORDER.iter().position(|known| *known == column).unwrap_or(0);
            arrays[index] = Some(array);
        }
        let has_millis = arrays[3].is_some();
        let present = ORDER.into_iter().zip(arrays).filter_map(|(column, array)| Some((column, array?)));
        present
            .filter(|(column, _)| *column != C::Timestamp || !has_millis)
            .map(|(column, array)| Self::of(column, array))
            .collect()
    }

    fn of(column: RecordColumn, array: &'a ArrayRef) -> LogResult<Self> {
        let name = column.name();
        let wrong = || wrong_type(column, array);
        let blobs = || Blobs::of(array, name).map_err(|_| wrong());
        let cells = match column {
            C::Topic | C::Compression | C::Segment => Cells::Text(blobs()?),
            C::Key | C::Value => Cells::Payload(blobs()?),
            C::Headers => Cells::Headers(HeaderLists::of(array).map_err(|_| wrong())?),
            C::Timestamp | C::TimestampMillis => Cells::Time(Times::of(array).map_err(|_| wrong())?),
            C::IsTransactional => Cells::Bool(array.as_boolean_opt().ok_or_else(wrong)?),
            C::Offset | C::ProducerId | C::Position => {
                Cells::Int64(array.as_primitive_opt::<Int64Type>().ok_or_else(wrong)?)
            }
            C::Partition | C::TimestampType | C::Magic | C::ProducerEpoch | C::Sequence | C::LeaderEpoch => {
                Cells::Int32(array.as_primitive_opt::<Int32Type>().ok_or_else(wrong)?)
            }
        };
        let name = if column == C::TimestampMillis { C::Timestamp.name() } else { name };
        Ok(Self { column, name, cells })
    }

    /// True if neighbouring rows mostly have the same value: the value of the batch, or of the partition.
    pub(super) fn is_shared(&self) -> bool {
        self.column.is_batch_field() || matches!(self.column, C::Topic | C::Partition)
    }

    /// Sets the flag of each row whose value may differ from that of the row before it; of none for the first.
    pub(super) fn mark_changes(&self, changed: &mut [bool]) {
        match &self.cells {
            Cells::Int32(array) if array.null_count() == 0 => mark(array.values(), changed),
            Cells::Int64(array) if array.null_count() == 0 => mark(array.values(), changed),
            Cells::Bool(array) => mark_each(|row| array.is_valid(row).then(|| array.value(row)), changed),
            Cells::Text(blobs) => mark_each(|row| blobs.get(row), changed),
            _ => changed.fill(true),
        }
    }
}

fn mark<T: PartialEq>(values: &[T], changed: &mut [bool]) {
    for (flag, pair) in changed.iter_mut().skip(1).zip(values.windows(2)) {
        *flag |= pair[0] != pair[1];
    }
}

fn mark_each<T: PartialEq>(value: impl Fn(usize) -> T, changed: &mut [bool]) {
    let mut last = None;
    for (row, flag) in changed.iter_mut().enumerate() {
        let value = Some(value(row));
        *flag |= row > 0 && value != last;
        last = value;
    }
}

/// The name of a number in the column `timestampType`, in Kafka's words.
pub(super) fn timestamp_type(number: i32) -> Option<&'static str> {
    TimestampType::from_id(number).map(TimestampType::name)
}
