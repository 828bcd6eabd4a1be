//! Cells of any column as bytes that say what they hold, and nothing of how it is stored: a table may widen a
//! number, add fields to a struct or put them into another order, and readers choose among Arrow's layouts.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
};
use arrow_array::{Array, ArrayRef, ListArray, OffsetSizeTrait};
use arrow_buffer::{BooleanBuffer, NullBuffer, i256};
use arrow_schema::{DataType, TimeUnit};
use twox_hash::XxHash3_128;

use magicbyte::Result;

use crate::cells::{Blobs, wrong};

/// A function that writes a cell that is not null.
type Write<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + Send + 'a>;

/// A column whose cells can be written.
struct Cells<'a> {
    /// Numbers of all widths are of one kind, as are text and bytes: no two cells of different kinds count as
    /// equal.
    kind: String,
    nulls: Option<NullBuffer>,
    write: Write<'a>,
}

/// Fields with the hashes of their names and kinds: of a struct, or the columns of a table.
pub(super) struct Fields<'a>(Vec<(u64, Cells<'a>)>);

impl<'a> Fields<'a> {
    /// Prepares fields, in any order.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`](magicbyte::ErrorKind::InvalidOptions) for a type that no table of
    /// records has.
    pub(super) fn of(fields: impl Iterator<Item = (&'a str, &'a ArrayRef)>) -> Result<Self> {
        let mut columns = fields
            .map(|(name, column)| {
                let cells = Cells::of(column)?;
                let name = XxHash3_128::oneshot(format!("{}:{name}", cells.kind).as_bytes());
                Ok((name as u64, cells))
            })
            .collect::<Result<Vec<_>>>()?;
        columns.sort_by_key(|(name, _)| *name);
        Ok(Self(columns))
    }

    /// Writes the fields that are not null. A field that is there and null is written as one that is not
    /// there.
    pub(super) fn write(&self, row: usize, bytes: &mut Vec<u8>) {
        for (name, cells) in &self.0 {
            if cells.is_valid(row) {
                bytes.extend_from_slice(&name.to_le_bytes());
                (cells.write)(row, bytes);
            }
        }
        bytes.extend_from_slice(&u64::MAX.to_le_bytes());
    }
}

impl<'a> Cells<'a> {
    fn of(column: &'a ArrayRef) -> Result<Self> {
        let (kind, write): (&str, Write<'a>) = match column.data_type() {
            DataType::List(_) => {
                let lists: &ListArray = column.as_list();
                return Ok(Self::lists(column, lists.value_offsets(), Self::of(lists.values())?));
            }
            DataType::LargeList(_) => {
                let lists = column.as_list::<i64>();
                return Ok(Self::lists(column, lists.value_offsets(), Self::of(lists.values())?));
            }
            DataType::Map(_, _) => {
                let maps = column.as_map();
                let entries = [("key", maps.keys()), ("value", maps.values())];
                let entries = Self::structs(None, Fields::of(entries.into_iter())?);
                return Ok(Self::lists(column, maps.value_offsets(), entries));
            }
            DataType::Struct(fields) => {
                let names = fields.iter().map(|field| field.name().as_str());
                let fields = Fields::of(names.zip(column.as_struct().columns()))?;
                return Ok(Self::structs(column.logical_nulls(), fields));
            }
            DataType::Null => ("null", Box::new(|_, _| {})),
            DataType::Boolean => {
                let cells = column.as_boolean();
                ("boolean", Box::new(|row, bytes| bytes.push(u8::from(cells.value(row)))))
            }
            DataType::Int8 => integers::<Int8Type>(column),
            DataType::Int16 => integers::<Int16Type>(column),
            DataType::Int32 => integers::<Int32Type>(column),
            DataType::Int64 => integers::<Int64Type>(column),
            DataType::UInt8 => integers::<UInt8Type>(column),
            DataType::UInt16 => integers::<UInt16Type>(column),
            DataType::UInt32 => integers::<UInt32Type>(column),
            DataType::Float32 => floats::<Float32Type>(column),
            DataType::Float64 => floats::<Float64Type>(column),
            DataType::Decimal128(_, scale) => {
                let scaled = |unscaled| decimal(i256::from_i128(unscaled), *scale);
                ("decimal", primitives::<Decimal128Type, 33>(column, scaled))
            }
            DataType::Decimal256(_, scale) => {
                ("decimal", primitives::<Decimal256Type, 33>(column, |unscaled| decimal(unscaled, *scale)))
            }
            DataType::Date32 => ("date", primitives::<Date32Type, 4>(column, i32::to_le_bytes)),
            DataType::Timestamp(unit, _) => match unit {
                TimeUnit::Second => ("time", times::<TimestampSecondType>(column, *unit)),
                TimeUnit::Millisecond => ("time", times::<TimestampMillisecondType>(column, *unit)),
                TimeUnit::Microsecond => ("time", times::<TimestampMicrosecondType>(column, *unit)),
                TimeUnit::Nanosecond => ("time", times::<TimestampNanosecondType>(column, *unit)),
            },
            DataType::Duration(unit) => match unit {
                TimeUnit::Second => ("duration", times::<DurationSecondType>(column, *unit)),
                TimeUnit::Millisecond => ("duration", times::<DurationMillisecondType>(column, *unit)),
                TimeUnit::Microsecond => ("duration", times::<DurationMicrosecondType>(column, *unit)),
                TimeUnit::Nanosecond => ("duration", times::<DurationNanosecondType>(column, *unit)),
            },
            _ => {
                let cells = Blobs::of(column, "value").map_err(|_| {
                    wrong("the column has a type that tables of records do not have", "value")
                })?;
                let write = move |row, bytes: &mut Vec<u8>| {
                    let blob = cells.get(row).unwrap_or_default();
                    bytes.extend_from_slice(&(blob.len() as u64).to_le_bytes());
                    bytes.extend_from_slice(blob);
                };
                ("bytes", Box::new(write))
            }
        };
        Ok(Self { kind: kind.to_owned(), nulls: column.logical_nulls(), write })
    }

    fn structs(nulls: Option<NullBuffer>, fields: Fields<'a>) -> Self {
        let write = move |row, bytes: &mut Vec<u8>| fields.write(row, bytes);
        Self { kind: "struct".to_owned(), nulls, write: Box::new(write) }
    }

    /// Lists, or maps. An empty one counts as null, since pyiceberg reads null as empty.
    fn lists<O: OffsetSizeTrait>(column: &dyn Array, offsets: &'a [O], items: Self) -> Self {
        let range = move |row: usize| offsets[row].as_usize()..offsets[row + 1].as_usize();
        let has_items = |row| column.is_valid(row) && !range(row).is_empty();
        let nulls = BooleanBuffer::collect_bool(column.len(), has_items);
        let kind = format!("list of {}", items.kind);
        let write = move |row, bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(&(range(row).len() as u64).to_le_bytes());
            for item in range(row) {
                let is_valid = items.is_valid(item);
                bytes.push(u8::from(is_valid));
                if is_valid {
                    (items.write)(item, bytes);
                }
            }
        };
        Self { kind, nulls: Some(NullBuffer::new(nulls)), write: Box::new(write) }
    }

    fn is_valid(&self, row: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
    }
}

fn primitives<'a, T: ArrowPrimitiveType, const SIZE: usize>(
    column: &'a ArrayRef,
    bytes_of: impl Fn(T::Native) -> [u8; SIZE] + Send + 'a,
) -> Write<'a> {
    let cells = column.as_primitive::<T>().values();
    Box::new(move |row, bytes| bytes.extend_from_slice(&bytes_of(cells[row])))
}

fn integers<T: ArrowPrimitiveType<Native: Into<i64>>>(column: &ArrayRef) -> (&'static str, Write<'_>) {
    ("integer", primitives::<T, 8>(column, |number| number.into().to_le_bytes()))
}

fn floats<T: ArrowPrimitiveType<Native: Into<f64>>>(column: &ArrayRef) -> (&'static str, Write<'_>) {
    let bytes_of = |number: T::Native| {
        // Widening a number that is not one may change its bits.
        let wide: f64 = number.into();
        (if wide.is_nan() { f64::NAN } else { wide }).to_le_bytes()
    };
    ("float", primitives::<T, 8>(column, bytes_of))
}

fn times<T: ArrowPrimitiveType<Native = i64>>(column: &ArrayRef, unit: TimeUnit) -> Write<'_> {
    let nanos: i128 = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    primitives::<T, 16>(column, move |time| (i128::from(time) * nanos).to_le_bytes())
}

fn decimal(unscaled: i256, scale: i8) -> [u8; 33] {
    let mut bytes = [scale.to_le_bytes()[0]; 33];
    bytes[1..].copy_from_slice(&unscaled.to_le_bytes());
    bytes
}
