//! Converting rows of Arrow columns to records.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{
    Array, ArrayAccessor, ArrayRef, BinaryArray, BinaryViewArray, Int64Array, LargeBinaryArray,
    LargeListArray, LargeStringArray, ListArray, PrimitiveArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use crate::builder::RecordsBuilder;
use crate::columns::schema::NO_TIMESTAMP;
use crate::error::{Error, ErrorKind, Result};
use crate::record::header::Header;

/// The columns of an Arrow batch that make up records, found by name: `value` and, if present, `key`,
/// `offset`, `timestamp` and `headers`. Other columns are ignored. A view.
///
/// `value` and `key` are binary or text in any layout, `offset` is int64, `timestamp` is int64 milliseconds
/// or a timestamp of any unit, rounded down to milliseconds (null for none), and `headers` is a list of
/// structs of key and value (text or binary).
#[derive(Debug)]
pub struct Rows<'a> {
    count: usize,
    key: Option<Blobs<'a>>,
    value: Blobs<'a>,
    offset: Option<&'a Int64Array>,
    timestamp: Option<Times<'a>>,
    headers: Option<HeaderLists<'a>>,
}

/// The offset and timestamp of a row whose columns do not have them.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// The offset.
    pub offset: i64,
    /// The timestamp (ms) if there is no column of them. A null in that column is a record without a
    /// timestamp.
    pub timestamp: i64,
}

impl<'a> Rows<'a> {
    /// Finds the columns.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] if there is no column `value`, or a column has another type.
    pub fn of(batch: &'a RecordBatch) -> Result<Self> {
        let column = |name| batch.column_by_name(name);
        let Some(value) = column("value") else { return Err(wrong("there is no column value", "value")) };
        let blobs = |name| column(name).map(|c| Blobs::of(c, name)).transpose();
        let offset = column("offset").map(|offset| {
            offset.as_primitive_opt::<Int64Type>().ok_or_else(|| wrong("offset is not int64", "offset"))
        });
        Ok(Self {
            count: batch.num_rows(),
            key: blobs("key")?,
            value: Blobs::of(value, "value")?,
            offset: offset.transpose()?,
            timestamp: column("timestamp").map(Times::of).transpose()?,
            headers: column("headers").map(HeaderLists::of).transpose()?,
        })
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there is a column `offset`.
    #[must_use]
    pub fn has_offsets(&self) -> bool {
        self.offset.is_some()
    }

    /// Appends the record of one row to `builder`; returns its offset.
    ///
    /// # Errors
    /// Those of [`RecordsBuilder::append`]; [`ErrorKind::InvalidRecord`] for a null offset, or for a null header
    /// key, which Kafka's `DefaultRecord` refuses.
    pub fn append(&self, row: usize, defaults: Defaults, builder: &mut RecordsBuilder) -> Result<i64> {
        let key = self.key.as_ref().and_then(|keys| keys.get(row));
        let timestamp = self.timestamp.as_ref().map_or(defaults.timestamp, |times| times.get(row));
        self.append_row(row, timestamp, (key, self.value.get(row)), defaults.offset, builder)
    }

    /// Appends the records of all rows to `builder`, with consecutive offsets from `defaults.offset` on if
    /// there is no column `offset`. Returns the offset after the last.
    ///
    /// # Errors
    /// Those of [`append`](Self::append); earlier rows have been appended.
    pub fn append_all(&self, mut defaults: Defaults, builder: &mut RecordsBuilder) -> Result<i64> {
        // The types of the columns are matched once per block rather than once per row.
        let (mut keys, mut values) = ([None; BLOCK], [None; BLOCK]);
        let mut times = [defaults.timestamp; BLOCK];
        for start in (0..self.count).step_by(BLOCK) {
            let size = BLOCK.min(self.count - start);
            if let Some(column) = &self.key {
                column.fill(start, &mut keys[..size]);
            }
            self.value.fill(start, &mut values[..size]);
            if let Some(column) = &self.timestamp {
                column.fill(start, &mut times[..size]);
            }
            let cells = times[..size].iter().zip(&keys[..size]).zip(&values[..size]);
            for (row, ((timestamp, key), value)) in (start..).zip(cells) {
                let offset = self.append_row(row, *timestamp, (*key, *value), defaults.offset, builder)?;
                defaults.offset = offset.saturating_add(1);
            }
        }
        Ok(defaults.offset)
    }

    #[inline(always)]
    fn append_row(
        &self,
        row: usize,
        timestamp: i64,
        (key, value): (Option<&[u8]>, Option<&[u8]>),
        default_offset: i64,
        builder: &mut RecordsBuilder,
    ) -> Result<i64> {
        let offset = match self.offset {
            Some(offsets) if offsets.is_null(row) => {
                return Err(Error::new(ErrorKind::InvalidRecord("the offset is null")).in_field("offset"));
            }
            Some(offsets) => offsets.value(row),
            None => default_offset,
        };
        match &self.headers {
            Some(lists) => {
                let headers = lists.get(row)?;
                builder.append(offset, timestamp, key, value, &headers)?;
            }
            None => builder.append(offset, timestamp, key, value, &[])?,
        }
        Ok(offset)
    }
}

/// Rows whose keys and values are looked up together.
const BLOCK: usize = 256;

#[cold]
fn wrong(why: &'static str, column: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOptions(why)).in_field(column)
}

/// A column of nullable bytes, in one of Arrow's layouts.
#[derive(Debug)]
enum Blobs<'a> {
    Null,
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    TextView(&'a StringViewArray),
}

impl<'a> Blobs<'a> {
    fn of(column: &'a ArrayRef, name: &'static str) -> Result<Self> {
        Ok(match column.data_type() {
            DataType::Null => Self::Null,
            DataType::Binary => Self::Binary(column.as_binary()),
            DataType::LargeBinary => Self::LargeBinary(column.as_binary()),
            DataType::BinaryView => Self::BinaryView(column.as_binary_view()),
            DataType::Utf8 => Self::Text(column.as_string()),
            DataType::LargeUtf8 => Self::LargeText(column.as_string()),
            DataType::Utf8View => Self::TextView(column.as_string_view()),
            _ => return Err(wrong("the column is neither binary nor text", name)),
        })
    }

    #[inline]
    fn get(&self, row: usize) -> Option<&'a [u8]> {
        let mut cell = [None];
        self.fill(row, &mut cell);
        cell[0]
    }

    /// Writes the cells from row `start` on.
    #[inline]
    fn fill(&self, start: usize, cells: &mut [Option<&'a [u8]>]) {
        match *self {
            Self::Null => cells.fill(None),
            Self::Binary(array) => fill(array, start, cells),
            Self::LargeBinary(array) => fill(array, start, cells),
            Self::BinaryView(array) => fill(array, start, cells),
            Self::Text(array) => fill(array, start, cells),
            Self::LargeText(array) => fill(array, start, cells),
            Self::TextView(array) => fill(array, start, cells),
        }
    }
}

#[inline]
fn fill<'a, A, T>(array: A, start: usize, cells: &mut [Option<&'a [u8]>])
where
    A: ArrayAccessor<Item = &'a T>,
    T: AsRef<[u8]> + ?Sized + 'a,
{
    for (row, cell) in (start..).zip(cells) {
        *cell = array.is_valid(row).then(|| array.value(row).as_ref());
    }
}

/// A column of nullable timestamps.
#[derive(Debug)]
struct Times<'a> {
    values: &'a [i64],
    nulls: Option<&'a NullBuffer>,
    unit: TimeUnit,
}

impl<'a> Times<'a> {
    fn of(column: &'a ArrayRef) -> Result<Self> {
        fn values<T>(column: &ArrayRef) -> &[i64]
        where
            T: arrow_array::ArrowPrimitiveType<Native = i64>,
        {
            column.as_primitive_opt::<T>().map_or(&[], |array: &PrimitiveArray<T>| &array.values()[..])
        }
        let (values, unit) = match column.data_type() {
            DataType::Int64 => (values::<Int64Type>(column), TimeUnit::Millisecond),
            DataType::Timestamp(unit, _) => {
                let values = match unit {
                    TimeUnit::Second => values::<TimestampSecondType>(column),
                    TimeUnit::Millisecond => values::<TimestampMillisecondType>(column),
                    TimeUnit::Microsecond => values::<TimestampMicrosecondType>(column),
                    TimeUnit::Nanosecond => values::<TimestampNanosecondType>(column),
                };
                (values, *unit)
            }
            _ => return Err(wrong("timestamp is neither int64 milliseconds nor a timestamp", "timestamp")),
        };
        Ok(Self { values, nulls: column.nulls(), unit })
    }

    fn get(&self, row: usize) -> i64 {
        let mut cell = [0];
        self.fill(row, &mut cell);
        cell[0]
    }

    /// Writes the timestamps (ms) from row `start` on.
    fn fill(&self, start: usize, cells: &mut [i64]) {
        let values = &self.values[start..start + cells.len()];
        let of_unit = |cells: &mut [i64], millis: fn(i64) -> i64| {
            cells.iter_mut().zip(values).for_each(|(cell, time)| *cell = millis(*time));
        };
        match self.unit {
            TimeUnit::Second => of_unit(cells, |time| time.saturating_mul(1000)),
            TimeUnit::Millisecond => cells.copy_from_slice(values),
            TimeUnit::Microsecond => of_unit(cells, |time| time.div_euclid(1000)),
            TimeUnit::Nanosecond => of_unit(cells, |time| time.div_euclid(1_000_000)),
        }
        if let Some(nulls) = self.nulls {
            for (row, cell) in (start..).zip(cells) {
                if nulls.is_null(row) {
                    *cell = NO_TIMESTAMP;
                }
            }
        }
    }
}

/// A column of header lists.
#[derive(Debug)]
struct HeaderLists<'a> {
    lists: Lists<'a>,
    keys: Blobs<'a>,
    values: Blobs<'a>,
}

#[derive(Debug)]
enum Lists<'a> {
    Small(&'a ListArray),
    Large(&'a LargeListArray),
    /// A column of nulls.
    None,
}

impl<'a> HeaderLists<'a> {
    fn of(column: &'a ArrayRef) -> Result<Self> {
        let (lists, items) = match column.data_type() {
            DataType::Null => {
                return Ok(Self { lists: Lists::None, keys: Blobs::Null, values: Blobs::Null });
            }
            DataType::List(_) => (Lists::Small(column.as_list()), column.as_list::<i32>().values()),
            DataType::LargeList(_) => (Lists::Large(column.as_list()), column.as_list::<i64>().values()),
            _ => return Err(wrong("headers is not a list", "headers")),
        };
        let fields = items.as_struct_opt().filter(|fields| fields.num_columns() == 2);
        let Some(fields) = fields else {
            return Err(wrong("headers is not a list of key and value", "headers"));
        };
        let (keys, values) =
            (Blobs::of(fields.column(0), "headers")?, Blobs::of(fields.column(1), "headers")?);
        Ok(Self { lists, keys, values })
    }

    fn get(&self, row: usize) -> Result<Vec<Header<'a>>> {
        let range = match self.lists {
            Lists::Small(lists) if lists.is_valid(row) => {
                let offsets = lists.value_offsets();
                offsets[row] as usize..offsets[row + 1] as usize
            }
            Lists::Large(lists) if lists.is_valid(row) => {
                let offsets = lists.value_offsets();
                offsets[row] as usize..offsets[row + 1] as usize
            }
            _ => 0..0,
        };
        range
            .map(|item| {
                let key = self.keys.get(item).ok_or_else(|| {
                    Error::new(ErrorKind::InvalidRecord("a header's key is null")).in_field("headerKey")
                })?;
                Ok(Header { key, value: self.values.get(item) })
            })
            .collect()
    }
}
