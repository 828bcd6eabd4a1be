//! The Arrow types of an Avro schema, which are those of Spark's `from_avro`, and arrow-avro's arrays as such.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, ListArray, MapArray, NullArray, PrimitiveArray,
    StructArray, UInt32Array, UnionArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{
    ArrowError, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Fields,
    TimeUnit,
};
use arrow_select::take::take;

use super::types::{Kind, Logical, Type, TypeId, Types};

type Converted = Result<ArrayRef, ArrowError>;

/// True if values of this schema have no Arrow type: a type contains itself, or a decimal has too many digits.
pub(super) fn are_text(types: &Types) -> bool {
    let too_long =
        |of: &Type| matches!(of.logical, Logical::Decimal { precision, .. } if precision > MAX_DIGITS);
    types.is_recursive || types.any(types.root, &too_long)
}

const MAX_DIGITS: u32 = DECIMAL256_MAX_PRECISION as u32;

/// The types of a schema whose values become columns. To Spark, a union of an int and a long, or of a float and a double, is
/// one column of numbers, whatever its branches mean.
pub(super) fn with_plain_numbers(mut types: Types) -> Types {
    for id in 0..types.len() {
        let Kind::Union(branches) = &types.get(id).kind else { continue };
        if matches!(Members::of(&types, branches), Members::Longs | Members::Doubles) {
            for branch in branches.clone() {
                types.get_mut(branch).logical = Logical::None;
            }
        }
    }
    types
}

/// The type of a column with such values. Everything in it is nullable, as in a permissive `from_avro`: a row that
/// cannot be decoded is null.
pub(super) fn data_type(types: &Types, id: TypeId) -> DataType {
    let Type { kind, logical } = types.get(id);
    match (kind, *logical) {
        (_, Logical::Date) => DataType::Date32,
        (_, Logical::TimestampMillis | Logical::TimestampMicros) => {
            DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))
        }
        (_, Logical::LocalTimestampMillis | Logical::LocalTimestampMicros) => {
            DataType::Timestamp(TimeUnit::Microsecond, None)
        }
        // `are_text` and the parser bound both numbers.
        (_, Logical::Decimal { precision, scale }) if precision <= u32::from(DECIMAL128_MAX_PRECISION) => {
            DataType::Decimal128(precision as u8, scale as i8)
        }
        (_, Logical::Decimal { precision, scale }) => DataType::Decimal256(precision as u8, scale as i8),
        (Kind::Null, _) => DataType::Null,
        (Kind::Boolean, _) => DataType::Boolean,
        (Kind::Int, _) => DataType::Int32,
        (Kind::Long, _) => DataType::Int64,
        (Kind::Float, _) => DataType::Float32,
        (Kind::Double, _) => DataType::Float64,
        (Kind::Bytes | Kind::Fixed { .. }, _) => DataType::Binary,
        (Kind::String | Kind::Enum { .. }, _) => DataType::Utf8,
        (Kind::Array(item), _) => DataType::List(item_field(data_type(types, *item))),
        (Kind::Map(value), _) => {
            let (entries, _) = entries_field(data_type(types, *value));
            DataType::Map(entries, false)
        }
        (Kind::Record { fields, .. }, _) => {
            let fields = fields.iter().map(|field| Field::new(&field.name, data_type(types, field.of), true));
            DataType::Struct(fields.collect())
        }
        (Kind::Union(branches), _) => match Members::of(types, branches) {
            Members::None => DataType::Null,
            Members::One(id) => data_type(types, id),
            Members::Longs => DataType::Int64,
            Members::Doubles => DataType::Float64,
            Members::Several(ids) => DataType::Struct(member_fields(types, &ids)),
        },
    }
}

const UTC: &str = "UTC";

fn item_field(of: DataType) -> FieldRef {
    Arc::new(Field::new_list_field(of, true))
}

fn entries_field(value: DataType) -> (FieldRef, Fields) {
    let fields = Fields::from(vec![
        Field::new(Field::MAP_KEY_FIELD_DEFAULT_NAME, DataType::Utf8, false),
        Field::new(Field::MAP_VALUE_FIELD_DEFAULT_NAME, value, true),
    ]);
    let name = Field::MAP_ENTRIES_FIELD_DEFAULT_NAME;
    (Arc::new(Field::new(name, DataType::Struct(fields.clone()), false)), fields)
}

fn member_fields(types: &Types, ids: &[TypeId]) -> Fields {
    ids.iter()
        .enumerate()
        .map(|(index, &id)| Field::new(format!("member{index}"), data_type(types, id), true))
        .collect()
}

/// The members of a union without its null, by the rules of Spark's `SchemaConverters`.
pub(super) enum Members {
    None,
    One(TypeId),
    /// An int and a long.
    Longs,
    /// A float and a double.
    Doubles,
    Several(Vec<TypeId>),
}

impl Members {
    pub(super) fn of(types: &Types, branches: &[TypeId]) -> Self {
        let ids: Vec<TypeId> =
            branches.iter().copied().filter(|&id| !matches!(types.get(id).kind, Kind::Null)).collect();
        let kinds: Vec<&Kind> = ids.iter().map(|&id| &types.get(id).kind).collect();
        match kinds[..] {
            [] => Self::None,
            [_] => Self::One(ids[0]),
            [Kind::Int, Kind::Long] | [Kind::Long, Kind::Int] => Self::Longs,
            [Kind::Float, Kind::Double] | [Kind::Double, Kind::Float] => Self::Doubles,
            _ => Self::Several(ids),
        }
    }
}

/// An array of arrow-avro's, with the type that [`data_type`] says.
pub(super) fn converted(types: &Types, id: TypeId, array: &ArrayRef) -> Converted {
    let Type { kind, logical } = types.get(id);
    match (kind, array.data_type()) {
        (Kind::Union(branches), DataType::Union(..)) => union(types, branches, array.as_union()),
        // With one branch and null, or with a writer's schema that is not a union.
        (Kind::Union(branches), _) => match Members::of(types, branches) {
            Members::One(id) => converted(types, id, array),
            _ => Ok(Arc::clone(array)),
        },
        (Kind::Record { fields, .. }, DataType::Struct(_)) => {
            let (_, columns, nulls) = array.as_struct().clone().into_parts();
            let columns = fields
                .iter()
                .zip(&columns)
                .map(|(field, column)| converted(types, field.of, column))
                .collect::<Result<Vec<_>, _>>()?;
            let named = fields.iter().zip(&columns);
            let named =
                named.map(|(field, column)| Field::new(&field.name, column.data_type().clone(), true));
            let length = array.len();
            Ok(Arc::new(StructArray::try_new_with_length(named.collect(), columns, nulls, length)?))
        }
        (Kind::Array(item), DataType::List(_)) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let values = converted(types, *item, &values)?;
            let field = item_field(values.data_type().clone());
            Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls)?))
        }
        (Kind::Map(value), DataType::Map(..)) => {
            let (_, offsets, entries, nulls, _) = array.as_map().clone().into_parts();
            let values = converted(types, *value, entries.column(1))?;
            let (field, fields) = entries_field(values.data_type().clone());
            let entries = StructArray::try_new(fields, vec![Arc::clone(entries.column(0)), values], None)?;
            Ok(Arc::new(MapArray::try_new(field, offsets, entries, nulls, false)?))
        }
        // Types that `Types::wrapped` replaces by a record.
        (Kind::Null, DataType::Struct(_)) => Ok(Arc::new(NullArray::new(array.len()))),
        (Kind::Fixed { size: 0, .. }, DataType::Struct(_)) => {
            let offsets = offsets(array.len(), 0)?;
            Ok(Arc::new(BinaryArray::try_new(offsets, Buffer::default(), array.nulls().cloned())?))
        }
        (Kind::Enum { .. }, DataType::Dictionary(..)) => {
            let symbols = array.as_dictionary::<Int32Type>();
            take(symbols.values(), symbols.keys(), None)
        }
        (Kind::Fixed { .. }, DataType::FixedSizeBinary(size)) => {
            let values = array.as_fixed_size_binary();
            let offsets = offsets(array.len(), *size as usize)?;
            let bytes = values.values().slice_with_length(0, array.len() * *size as usize);
            Ok(Arc::new(BinaryArray::try_new(offsets, bytes, values.nulls().cloned())?))
        }
        (_, DataType::Decimal128(precision, _)) => {
            array.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision)?;
            Ok(Arc::clone(array))
        }
        (_, DataType::Decimal256(precision, _)) => {
            array.as_primitive::<Decimal256Type>().validate_decimal_precision(*precision)?;
            Ok(Arc::clone(array))
        }
        (_, DataType::Timestamp(TimeUnit::Millisecond, _)) => {
            let millis = array.as_primitive::<TimestampMillisecondType>();
            let micros = millis.try_unary::<_, TimestampMicrosecondType, _>(|millis| {
                millis.checked_mul(1000).ok_or_else(|| {
                    let why = format!("a timestamp of {millis} ms has no number of microseconds");
                    ArrowError::ArithmeticOverflow(why)
                })
            })?;
            Ok(Arc::new(micros.with_timezone_opt(timezone(*logical))))
        }
        (_, DataType::Timestamp(TimeUnit::Microsecond, _)) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().clone();
            Ok(Arc::new(micros.with_timezone_opt(timezone(*logical))))
        }
        _ => Ok(Arc::clone(array)),
    }
}

fn timezone(logical: Logical) -> Option<&'static str> {
    matches!(logical, Logical::TimestampMillis | Logical::TimestampMicros).then_some(UTC)
}

/// The offsets of `rows` values of one size.
fn offsets(rows: usize, size: usize) -> Result<OffsetBuffer<i32>, ArrowError> {
    if rows.checked_mul(size).is_none_or(|end| i32::try_from(end).is_err()) {
        return Err(ArrowError::OffsetOverflowError(rows.saturating_mul(size)));
    }
    Ok(OffsetBuffer::from_repeated_length(size, rows))
}

fn union(types: &Types, branches: &[TypeId], array: &UnionArray) -> Converted {
    let rows = array.len();
    match Members::of(types, branches) {
        Members::None => Ok(Arc::new(NullArray::new(rows))),
        Members::One(id) => member(types, branches, id, array),
        Members::Longs => {
            let int = of_kind(types, branches, array, |kind| matches!(kind, Kind::Int))?;
            let long = of_kind(types, branches, array, |kind| matches!(kind, Kind::Long))?;
            Ok(widened::<Int32Type, Int64Type>(&int, &long, i64::from))
        }
        Members::Doubles => {
            let float = of_kind(types, branches, array, |kind| matches!(kind, Kind::Float))?;
            let double = of_kind(types, branches, array, |kind| matches!(kind, Kind::Double))?;
            Ok(widened::<Float32Type, Float64Type>(&float, &double, f64::from))
        }
        Members::Several(ids) => {
            let columns = ids.iter().map(|&id| member(types, branches, id, array));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let null = branches.iter().position(|&id| matches!(types.get(id).kind, Kind::Null));
            let nulls =
                null.map(|null| array.type_ids().iter().map(|&id| id != null as i8).collect::<NullBuffer>());
            let fields = member_fields(types, &ids);
            Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, rows)?))
        }
    }
}

fn of_kind(types: &Types, branches: &[TypeId], array: &UnionArray, is: fn(&Kind) -> bool) -> Converted {
    match branches.iter().find(|&&id| is(&types.get(id).kind)) {
        Some(&id) => member(types, branches, id, array),
        None => Err(ArrowError::SchemaError("a union without its branch".into())),
    }
}

/// The values of one branch, null in the rows of the others.
fn member(types: &Types, branches: &[TypeId], id: TypeId, array: &UnionArray) -> Converted {
    let Some(branch) = branches.iter().position(|&other| other == id) else {
        return Err(ArrowError::SchemaError("a union without its branch".into()));
    };
    // An i8 counts all branches; arrow-avro refuses more.
    let branch = branch as i8;
    let child = converted(types, id, array.child(branch))?;
    let rows: UInt32Array = (0..array.len())
        .map(|row| (array.type_id(row) == branch).then(|| array.value_offset(row) as u32))
        .collect();
    take(&child, &rows, None)
}

fn widened<N: ArrowPrimitiveType, W: ArrowPrimitiveType>(
    narrow: &ArrayRef,
    wide: &ArrayRef,
    widen: fn(N::Native) -> W::Native,
) -> ArrayRef {
    let (narrow, wide) = (narrow.as_primitive::<N>(), wide.as_primitive::<W>());
    let values = narrow.iter().zip(wide).map(|(narrow, wide)| wide.or(narrow.map(widen)));
    Arc::new(values.collect::<PrimitiveArray<W>>())
}
