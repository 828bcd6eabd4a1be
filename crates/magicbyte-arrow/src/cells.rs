//! Cells of Arrow columns, whichever layout of Arrow they are in: bytes and text, timestamps, headers.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{
    Array, ArrayAccessor, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeListArray,
    LargeStringArray, ListArray, PrimitiveArray, StringArray, StringViewArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use magicbyte::{Error, ErrorKind, Header, Result};

use crate::schema::NO_TIMESTAMP;

#[cold]
pub(super) fn wrong(why: &'static str, column: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOptions(why)).in_field(column)
}

/// A column of nullable bytes, in one of Arrow's layouts.
#[derive(Debug)]
pub(super) enum Blobs<'a> {
    Null,
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    TextView(&'a StringViewArray),
}

impl<'a> Blobs<'a> {
    pub(super) fn of(column: &'a ArrayRef, name: &'static str) -> Result<Self> {
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

    #[inline(always)]
    pub(super) fn get(&self, row: usize) -> Option<&'a [u8]> {
        match *self {
            Self::Null => None,
            Self::Binary(array) => cell(array, row),
            Self::LargeBinary(array) => cell(array, row),
            Self::BinaryView(array) => cell(array, row),
            Self::Text(array) => cell(array, row),
            Self::LargeText(array) => cell(array, row),
            Self::TextView(array) => cell(array, row),
        }
    }

    /// Writes the cells from row `start` on.
    #[inline]
    pub(super) fn fill(&self, start: usize, cells: &mut [Option<&'a [u8]>]) {
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
    A: ArrayAccessor<Item = &'a T> + Copy,
    T: AsRef<[u8]> + ?Sized + 'a,
{
    for (row, to) in (start..).zip(cells) {
        *to = cell(array, row);
    }
}

#[inline]
fn cell<'a, A, T>(array: A, row: usize) -> Option<&'a [u8]>
where
    A: ArrayAccessor<Item = &'a T>,
    T: AsRef<[u8]> + ?Sized + 'a,
{
    array.is_valid(row).then(|| array.value(row).as_ref())
}

/// A column of nullable timestamps.
#[derive(Debug)]
pub(super) struct Times<'a> {
    values: &'a [i64],
    nulls: Option<&'a NullBuffer>,
    unit: TimeUnit,
}

impl<'a> Times<'a> {
    pub(super) fn of(column: &'a ArrayRef) -> Result<Self> {
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

    pub(super) fn get(&self, row: usize) -> i64 {
        let mut cell = [0];
        self.fill(row, &mut cell);
        cell[0]
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// Writes the timestamps (ms) from row `start` on.
    pub(super) fn fill(&self, start: usize, cells: &mut [i64]) {
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
pub(super) struct HeaderLists<'a> {
    lists: Lists<'a>,
    pub(super) keys: Blobs<'a>,
    pub(super) values: Blobs<'a>,
}

#[derive(Debug)]
enum Lists<'a> {
    Small(&'a ListArray),
    Large(&'a LargeListArray),
    /// A column of nulls.
    None,
}

impl<'a> HeaderLists<'a> {
    pub(super) fn of(column: &'a ArrayRef) -> Result<Self> {
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

    /// Where the headers of a row are in `keys` and `values`.
    #[inline]
    pub(super) fn range(&self, row: usize) -> Range<usize> {
        match self.lists {
            Lists::Small(lists) if lists.is_valid(row) => {
                let offsets = lists.value_offsets();
                offsets[row] as usize..offsets[row + 1] as usize
            }
            Lists::Large(lists) if lists.is_valid(row) => {
                let offsets = lists.value_offsets();
                offsets[row] as usize..offsets[row + 1] as usize
            }
            _ => 0..0,
        }
    }

    pub(super) fn get(&self, row: usize) -> Result<Vec<Header<'a>>> {
        let header = |item| {
            let key = self.keys.get(item).ok_or_else(|| {
                Error::new(ErrorKind::InvalidRecord("a header's key is null")).in_field("headerKey")
            })?;
            Ok(Header { key, value: self.values.get(item) })
        };
        self.range(row).map(header).collect()
    }
}
