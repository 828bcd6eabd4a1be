//! [`AvroEncoder`].

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, DecimalType, Float32Type, Float64Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, ListArray, MapArray, PrimitiveArray, StringArray,
};
use arrow_schema::{DataType, Fields};

use super::columns::{Members, data_type, with_plain_numbers};
use super::decimal::of_digits;
use super::types::{Kind, Logical, Type, TypeId, Types};
use crate::encoding::{fitted, payloads};
use crate::error::{Result, SchemaError};
use crate::failure::{Attempt, Failure};
use crate::varint;

/// Encodes a column as Avro payloads; its types are those that [`AvroDecoder`](super::AvroDecoder) gives the schema.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{ArrayRef, StringArray};
/// use magicbyte_schema::avro::AvroEncoder;
///
/// let encoder = AvroEncoder::new(r#"["null", "string"]"#, &[])?;
/// let column: ArrayRef = Arc::new(StringArray::from(vec![Some("hi"), None]));
/// let payloads = encoder.encode(&column, b"")?;
/// assert_eq!(payloads.iter().collect::<Vec<_>>(), [Some(&b"\x02\x04hi"[..]), None]);
/// # Ok::<(), magicbyte_schema::SchemaError>(())
/// ```
pub struct AvroEncoder {
    types: Types,
    data_type: DataType,
}

impl AvroEncoder {
    /// An encoder by this schema; arguments are as for [`AvroDecoder::new`](super::AvroDecoder::new).
    ///
    /// # Errors
    /// If it is not an Avro schema, or its values have no Arrow type: a type contains itself.
    pub fn new(schema: &str, references: &[&str]) -> Result<Self> {
        let types = with_plain_numbers(Types::parse(schema, references)?);
        if types.is_recursive {
            return Err(SchemaError::new("values of the schema have no Arrow type: a type contains itself"));
        }
        let data_type = data_type(&types, types.root);
        Ok(Self { types, data_type })
    }

    /// The type that columns have.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Encodes a column, with `prefix` before each payload. A null row is null. Fields of structs are found by their
    /// names; those that are missing are null.
    ///
    /// # Errors
    /// If the column has another type, the payloads have more than 2 GiB, or a value cannot be written: it is null where
    /// the schema has no null, not a symbol of an enum, not as long as a fixed, a timestamp that is not a whole number of
    /// milliseconds, or a decimal with too many digits.
    pub fn encode(&self, column: &ArrayRef, prefix: &[u8]) -> Result<BinaryArray> {
        let column = fitted(column, &self.data_type)?;
        let source = Source::of(&self.types, self.types.root, &column);
        payloads(&column, prefix, |row, out| source.write(row, out))
    }
}

/// An array, and how its values are written. The array has the type that [`data_type`] says.
enum Source<'a> {
    Null,
    Boolean(&'a BooleanArray),
    Int(&'a PrimitiveArray<Int32Type>),
    Date(&'a PrimitiveArray<Date32Type>),
    Long(&'a PrimitiveArray<Int64Type>),
    Micros(&'a PrimitiveArray<TimestampMicrosecondType>),
    Millis(&'a PrimitiveArray<TimestampMicrosecondType>),
    Float(&'a PrimitiveArray<Float32Type>),
    Double(&'a PrimitiveArray<Float64Type>),
    Bytes(&'a BinaryArray),
    Fixed(&'a BinaryArray, usize),
    /// A decimal, with the size if it is a fixed.
    Decimal128(&'a PrimitiveArray<Decimal128Type>, Option<usize>),
    /// The same as digits, with the number of those behind the point, and of all of them at most.
    Digits(&'a StringArray, Option<usize>, u32, u32),
    String(&'a StringArray),
    Enum(&'a StringArray, HashMap<&'a str, i64>),
    Array(&'a ListArray, Box<Source<'a>>),
    Map(&'a MapArray, &'a StringArray, Box<Source<'a>>),
    Record(Vec<Member<'a>>),
    Union {
        array: &'a ArrayRef,
        null: Option<i64>,
        /// The members. If there are several, only one is set.
        members: Vec<Member<'a>>,
    },
}

/// A field of a record, or a branch of a union.
struct Member<'a> {
    name: &'a str,
    /// The branch, for a member of a union.
    branch: i64,
    array: &'a ArrayRef,
    source: Source<'a>,
    expected: &'static str,
}

impl<'a> Source<'a> {
    fn of(types: &'a Types, id: TypeId, array: &'a ArrayRef) -> Self {
        let Type { kind, logical } = types.get(id);
        match (kind, logical) {
            (_, &Logical::Decimal { precision, scale }) => {
                let size = match kind {
                    Kind::Fixed { size, .. } => Some(*size),
                    _ => None,
                };
                match array.data_type() {
                    DataType::Decimal128(..) => Self::Decimal128(array.as_primitive(), size),
                    _ => Self::Digits(array.as_string(), size, scale, precision),
                }
            }
            (_, Logical::Date) => Self::Date(array.as_primitive()),
            (_, Logical::TimestampMillis | Logical::LocalTimestampMillis) => {
                Self::Millis(array.as_primitive())
            }
            (_, Logical::TimestampMicros | Logical::LocalTimestampMicros) => {
                Self::Micros(array.as_primitive())
            }
            (Kind::Null, _) => Self::Null,
            (Kind::Boolean, _) => Self::Boolean(array.as_boolean()),
            (Kind::Int, _) => Self::Int(array.as_primitive()),
            (Kind::Long, _) => Self::Long(array.as_primitive()),
            (Kind::Float, _) => Self::Float(array.as_primitive()),
            (Kind::Double, _) => Self::Double(array.as_primitive()),
            (Kind::Bytes, _) => Self::Bytes(array.as_binary()),
            (Kind::Fixed { size, .. }, _) => Self::Fixed(array.as_binary(), *size),
            (Kind::String, _) => Self::String(array.as_string()),
            (Kind::Enum { symbols, .. }, _) => {
                let numbered = symbols.iter().map(String::as_str).zip(0..);
                Self::Enum(array.as_string(), numbered.collect())
            }
            (Kind::Array(item), _) => {
                let list = array.as_list();
                Self::Array(list, Box::new(Self::of(types, *item, list.values())))
            }
            (Kind::Map(value), _) => {
                let map = array.as_map();
                Self::Map(map, map.keys().as_string(), Box::new(Self::of(types, *value, map.values())))
            }
            (Kind::Record { fields, .. }, _) => {
                let columns = array.as_struct().columns().iter();
                let members = fields
                    .iter()
                    .zip(columns)
                    .map(|(field, column)| Member::of(types, field.of, column, &field.name, 0));
                Self::Record(members.collect())
            }
            (Kind::Union(branches), _) => Self::union(types, branches, array),
        }
    }

    fn union(types: &'a Types, branches: &'a [TypeId], array: &'a ArrayRef) -> Self {
        let numbered = || branches.iter().copied().zip(0_i64..);
        let of_kind = |is: fn(&Kind) -> bool| numbered().find(|&(id, _)| is(&types.get(id).kind));
        let null = of_kind(|kind| matches!(kind, Kind::Null)).map(|(_, branch)| branch);
        let single = |branch: Option<(TypeId, i64)>| {
            branch.map(|(id, branch)| Member::of(types, id, array, "", branch)).into_iter().collect()
        };
        let members: Vec<Member<'a>> = match Members::of(types, branches) {
            Members::None => Vec::new(),
            Members::One(of) => single(numbered().find(|&(id, _)| id == of)),
            // Every value of either branch is a value of the wider branch.
            Members::Longs => single(of_kind(|kind| matches!(kind, Kind::Long))),
            Members::Doubles => single(of_kind(|kind| matches!(kind, Kind::Double))),
            Members::Several(ids) => {
                let array = array.as_struct();
                let named = fields_of(array.data_type()).iter().zip(array.columns());
                let members = ids.into_iter().zip(named).map(|(of, (field, column))| {
                    let branch = numbered().find(|&(id, _)| id == of).map_or(0, |(_, branch)| branch);
                    Member::of(types, of, column, field.name(), branch)
                });
                members.collect()
            }
        };
        Self::Union { array, null, members }
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) -> Attempt<()> {
        match self {
            Self::Null => {}
            Self::Boolean(array) => out.push(array.value(row).into()),
            Self::Int(array) => put_long(out, array.value(row).into()),
            Self::Date(array) => put_long(out, array.value(row).into()),
            Self::Long(array) => put_long(out, array.value(row)),
            Self::Micros(array) => put_long(out, array.value(row)),
            Self::Millis(array) => {
                let micros = array.value(row);
                if micros % 1000 != 0 {
                    return Err(Failure::new(format!(
                        "a timestamp of {micros} microseconds: expected whole milliseconds"
                    )));
                }
                put_long(out, micros / 1000);
            }
            Self::Float(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
            Self::Double(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
            Self::Bytes(array) => put_bytes(out, array.value(row)),
            Self::String(array) => put_bytes(out, array.value(row).as_bytes()),
            Self::Fixed(array, size) => {
                let value = array.value(row);
                if value.len() != *size {
                    return Err(Failure::new(format!(
                        "a binary of {} bytes: expected a fixed of {size}",
                        value.len()
                    )));
                }
                out.extend_from_slice(value);
            }
            Self::Decimal128(array, size) => {
                let (value, precision, scale) = (array.value(row), array.precision(), array.scale());
                check_digits(value, precision, scale)?;
                put_decimal(out, &value.to_be_bytes(), *size)?;
            }
            Self::Digits(array, size, scale, precision) => {
                put_decimal(out, &of_digits(array.value(row), *scale, *precision)?, *size)?;
            }
            Self::Enum(array, symbols) => put_symbol(out, array.value(row), symbols)?,
            Self::Array(array, item) => {
                let range = range(array.value_offsets(), row);
                put_count(out, range.len());
                for index in range {
                    present(array.values(), index, item, "an item of the array")
                        .and_then(|()| item.write(index, out))
                        .map_err(|failure| failure.in_field("[]"))?;
                }
                // The end of the blocks.
                out.push(0);
            }
            Self::Map(array, keys, value) => write_map(array, keys, value, row, out)?,
            Self::Record(members) => {
                for member in members {
                    present(member.array, row, &member.source, member.expected)
                        .and_then(|()| member.source.write(row, out))
                        .map_err(|failure| failure.in_field(member.name))?;
                }
            }
            Self::Union { array, null, members } => write_union(array, *null, members, row, out)?,
        }
        Ok(())
    }
}

impl<'a> Member<'a> {
    fn of(types: &'a Types, id: TypeId, array: &'a ArrayRef, name: &'a str, branch: i64) -> Self {
        let expected = types.get(id).kind.word();
        Self { name, branch, array, source: Source::of(types, id, array), expected }
    }
}

fn put_symbol(out: &mut Vec<u8>, value: &str, symbols: &HashMap<&str, i64>) -> Attempt<()> {
    match symbols.get(value) {
        Some(&symbol) => put_long(out, symbol),
        None => {
            let (shown, known) = (&value[..value.floor_char_boundary(50)], symbols.len());
            return Err(Failure::new(format!(
                "the string {shown:?}: expected one of the enum's {known} symbols"
            )));
        }
    }
    Ok(())
}

fn write_map(
    array: &MapArray,
    keys: &StringArray,
    value: &Source<'_>,
    row: usize,
    out: &mut Vec<u8>,
) -> Attempt<()> {
    let range = range(array.value_offsets(), row);
    put_count(out, range.len());
    for index in range {
        if keys.is_null(index) {
            return Err(Failure::new("a key that is null: expected a string"));
        }
        let key = keys.value(index);
        put_bytes(out, key.as_bytes());
        present(array.values(), index, value, "a value of the map")
            .and_then(|()| value.write(index, out))
            .map_err(|failure| failure.in_field(key))?;
    }
    // The end of the blocks.
    out.push(0);
    Ok(())
}

/// The branch of the member that is set, and its value; or that of null.
fn write_union(
    array: &ArrayRef,
    null: Option<i64>,
    members: &[Member<'_>],
    row: usize,
    out: &mut Vec<u8>,
) -> Attempt<()> {
    let mut set = members.iter().filter(|member| array.is_valid(row) && member.array.is_valid(row));
    match (set.next(), set.next(), null) {
        (Some(member), None, _) => {
            put_long(out, member.branch);
            member.source.write(row, out).map_err(|failure| match member.name {
                "" => failure,
                name => failure.in_field(name),
            })
        }
        (None, _, Some(null)) => {
            put_long(out, null);
            Ok(())
        }
        (None, _, None) => Err(Failure::new(match members.len() {
            ..2 => "null: expected a value, the union has no null",
            _ => "null, or no member of it is set: expected one, the union has no null",
        })),
        (Some(first), Some(second), _) => {
            let (first, second) = (first.name, second.name);
            Err(Failure::new(format!("{first} and {second} are both set: expected one member of a union")))
        }
    }
}

fn fields_of(of: &DataType) -> &Fields {
    static NONE: std::sync::LazyLock<Fields> = std::sync::LazyLock::new(Fields::empty);
    match of {
        DataType::Struct(fields) => fields,
        _ => &NONE,
    }
}

/// Fails for a null that its type cannot be; a union decides itself.
fn present(array: &ArrayRef, row: usize, source: &Source<'_>, expected: &str) -> Attempt<()> {
    match source {
        Source::Null | Source::Union { .. } => Ok(()),
        _ if array.is_valid(row) => Ok(()),
        _ => Err(Failure::new(format!("null: expected {expected}"))),
    }
}

fn range(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    offsets[row] as usize..offsets[row + 1] as usize
}

fn check_digits(value: i128, precision: u8, scale: i8) -> Attempt<()> {
    Decimal128Type::validate_decimal_precision(value, precision, scale).map_err(|_| {
        let shown = Decimal128Type::format_decimal(value, precision, scale);
        Failure::new(format!("the decimal {shown}: expected at most {precision} digits"))
    })
}

fn put_decimal(out: &mut Vec<u8>, bytes: &[u8], size: Option<usize>) -> Attempt<()> {
    let sign = if bytes[0] & 0x80 == 0 { 0 } else { 0xff };
    let spare = bytes.windows(2).take_while(|pair| pair[0] == sign && (pair[0] ^ pair[1]) & 0x80 == 0);
    let needed = &bytes[spare.count()..];
    match size {
        None => put_bytes(out, needed),
        Some(size) if needed.len() <= size => {
            out.resize(out.len() + size - needed.len(), sign);
            out.extend_from_slice(needed);
        }
        Some(size) => {
            let found = needed.len();
            return Err(Failure::new(format!("a decimal of {found} bytes: expected a fixed of {size}")));
        }
    }
    Ok(())
}

fn put_long(out: &mut Vec<u8>, value: i64) {
    varint::put(out, varint::zigzag(value));
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_long(out, bytes.len() as i64);
    out.extend_from_slice(bytes);
}

/// All items are one block; an empty array or map has none.
fn put_count(out: &mut Vec<u8>, items: usize) {
    if items > 0 {
        put_long(out, items as i64);
    }
}
