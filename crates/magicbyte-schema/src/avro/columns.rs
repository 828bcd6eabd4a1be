//! The Arrow types of an Avro schema, which are those of Spark's `from_avro`.

use std::sync::Arc;

use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, Fields, TimeUnit};

use super::types::{Kind, Logical, Type, TypeId, Types};
use crate::columns::DUMMY;

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
        (_, Logical::Decimal { precision, scale }) => match u8::try_from(precision) {
            Ok(digits @ ..=DECIMAL128_MAX_PRECISION) => DataType::Decimal128(digits, scale as i8),
            // Spark and others have no longer ones, and read no file that has them.
            _ => DataType::Utf8,
        },
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
        // Parquet has no column for a record without fields.
        (Kind::Record { fields, .. }, _) if fields.is_empty() => {
            DataType::Struct(vec![Field::new(DUMMY, DataType::Utf8, true)].into())
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
