//! Steps that the encoders of all formats share: from a column with the types of the schema to a payload for each row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, ListArray, MapArray, StructArray, new_null_array};
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields};

use crate::error::{Result, SchemaError};
use crate::failure::{Attempt, Failure};

/// The column as one of this type: fields of structs are found by name, and one that is missing is null. Names of list
/// items and of the entries of maps do not matter, nor does it whether a field may be null.
pub(crate) fn fitted(array: &ArrayRef, expected: &DataType) -> Result<ArrayRef> {
    fit(array, expected).map_err(|failure| SchemaError::new(failure.text()))
}

fn fit(array: &ArrayRef, expected: &DataType) -> Attempt<ArrayRef> {
    match (array.data_type(), expected) {
        (DataType::Struct(found), DataType::Struct(fields)) => {
            if let Some(extra) = found.iter().find(|field| fields.find(field.name()).is_none()) {
                return Err(Failure::new("the schema has no such field").in_field(extra.name()));
            }
            let array = array.as_struct();
            let columns = fields.iter().map(|field| match array.column_by_name(field.name()) {
                Some(column) => {
                    fit(column, field.data_type()).map_err(|failure| failure.in_field(field.name()))
                }
                None => Ok(new_null_array(&loose(field.data_type()), array.len())),
            });
            let columns = columns.collect::<Attempt<Vec<_>>>()?;
            let fields: Fields = fields.iter().map(nullable).collect();
            let fitted =
                StructArray::try_new_with_length(fields, columns, array.nulls().cloned(), array.len());
            fitted.map(|array| Arc::new(array) as ArrayRef).map_err(|error| Failure::new(error.to_string()))
        }
        (DataType::List(_), DataType::List(item)) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let values = fit(&values, item.data_type()).map_err(|failure| failure.in_field("[]"))?;
            let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
            let fitted = ListArray::try_new(field, offsets, values, nulls);
            fitted.map(|array| Arc::new(array) as ArrayRef).map_err(|error| Failure::new(error.to_string()))
        }
        (DataType::Map(..), DataType::Map(entries, _)) => {
            let DataType::Struct(pair) = entries.data_type() else {
                return Err(Failure::new("a map without keys and values"));
            };
            let (_, offsets, entries, nulls, _) = array.as_map().clone().into_parts();
            let keys = fit(entries.column(0), pair[0].data_type()).map_err(|f| f.in_field("key"))?;
            let values = fit(entries.column(1), pair[1].data_type()).map_err(|f| f.in_field("value"))?;
            let fields: Fields = vec![
                Field::new(Field::MAP_KEY_FIELD_DEFAULT_NAME, keys.data_type().clone(), false),
                Field::new(Field::MAP_VALUE_FIELD_DEFAULT_NAME, values.data_type().clone(), true),
            ]
            .into();
            let entries =
                Field::new(Field::MAP_ENTRIES_FIELD_DEFAULT_NAME, DataType::Struct(fields.clone()), false);
            let fitted = StructArray::try_new(fields, vec![keys, values], None)
                .and_then(|pairs| MapArray::try_new(Arc::new(entries), offsets, pairs, nulls, false));
            fitted.map(|array| Arc::new(array) as ArrayRef).map_err(|error| Failure::new(error.to_string()))
        }
        (found, expected) if found == expected => Ok(Arc::clone(array)),
        // A column without any value fits everywhere.
        (DataType::Null, expected) => Ok(new_null_array(&loose(expected), array.len())),
        (found, expected) => Err(Failure::new(format!("the column's type is {found}, expected {expected}"))),
    }
}

fn nullable(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_nullable(true).with_data_type(loose(field.data_type())))
}

/// The type as `fit` makes it.
fn loose(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(nullable).collect()),
        DataType::List(item) => {
            DataType::List(Arc::new(Field::new_list_field(loose(item.data_type()), true)))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => {
                let fields: Fields = vec![
                    Field::new(Field::MAP_KEY_FIELD_DEFAULT_NAME, loose(pair[0].data_type()), false),
                    Field::new(Field::MAP_VALUE_FIELD_DEFAULT_NAME, loose(pair[1].data_type()), true),
                ]
                .into();
                let name = Field::MAP_ENTRIES_FIELD_DEFAULT_NAME;
                DataType::Map(Arc::new(Field::new(name, DataType::Struct(fields), false)), false)
            }
            _ => data_type.clone(),
        },
        other => other.clone(),
    }
}

/// Payloads of all rows: `prefix`, and what `write` appends; a null row is null.
pub(crate) fn payloads(
    values: &dyn Array,
    prefix: &[u8],
    mut write: impl FnMut(usize, &mut Vec<u8>) -> Attempt<()>,
) -> Result<BinaryArray> {
    let mut data = Vec::new();
    let mut offsets = Vec::with_capacity(values.len() + 1);
    let mut validity = NullBufferBuilder::new(values.len());
    offsets.push(0);
    for row in 0..values.len() {
        let valid = values.is_valid(row);
        validity.append(valid);
        if valid {
            data.extend_from_slice(prefix);
            write(row, &mut data)
                .map_err(|failure| SchemaError::new(format!("row {row}: {}", failure.text())))?;
        }
        let end = i32::try_from(data.len());
        offsets.push(end.map_err(|_| SchemaError::new("the payloads have more than 2 GiB: try fewer rows"))?);
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(BinaryArray::new(offsets, Buffer::from_vec(data), validity.finish()))
}
