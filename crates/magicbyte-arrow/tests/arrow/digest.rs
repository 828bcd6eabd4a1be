//! Digests of rows with typed keys or values: what changes them, and what becomes of a table without doing so.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array,
    LargeListArray, LargeStringArray, ListArray, RecordBatch, StringArray, StructArray, Time32SecondArray,
    TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;

use magicbyte_arrow::digest_records;

/// Rows of one partition: the value's fields, and other columns.
fn rows(value: Vec<(&str, ArrayRef)>, others: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let count = value[0].1.len();
    let fields = value
        .into_iter()
        .map(|(name, array)| (Arc::new(Field::new(name, array.data_type().clone(), true)), array))
        .collect::<Vec<_>>();
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("topic", Arc::new(StringArray::from(vec!["t"; count]))),
        ("partition", Arc::new(Int32Array::from(vec![0; count]))),
        ("offset", Arc::new(Int64Array::from_iter_values(0..count as i64))),
        ("value", Arc::new(StructArray::from(fields))),
        ("_digest", Arc::new((0..count).map(|_| None::<&[u8]>).collect::<BinaryArray>())),
    ];
    columns.retain(|(name, _)| others.iter().all(|(other, _)| other != name));
    columns.extend(others);
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn digest(value: Vec<(&str, ArrayRef)>) -> u128 {
    digest_of(&rows(value, vec![]))
}

fn digest_of(batch: &RecordBatch) -> u128 {
    let found = digest_records(batch).unwrap();
    assert_eq!(found.len(), 1);
    found[0].digest
}

fn ints(cells: Vec<Option<i32>>) -> ArrayRef {
    Arc::new(Int32Array::from(cells))
}

fn list(cells: Vec<Option<Vec<Option<i32>>>>) -> ArrayRef {
    Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(cells))
}

#[test]
fn what_becomes_of_a_table_does_not_change_them() {
    let name = || -> ArrayRef { Arc::new(StringArray::from(vec![Some("a"), None, Some("")])) };
    let number = || ints(vec![Some(1), Some(-2), None]);
    let first = digest(vec![("a", number()), ("b", name())]);
    // Another order, new fields, wider numbers, other layouts.
    assert_eq!(digest(vec![("b", name()), ("a", number())]), first);
    assert_eq!(digest(vec![("a", number()), ("b", name()), ("c", ints(vec![None; 3]))]), first);
    let wide = Arc::new(Int64Array::from(vec![Some(1), Some(-2), None]));
    let large = Arc::new(LargeStringArray::from(vec![Some("a"), None, Some("")]));
    assert_eq!(digest(vec![("a", wide), ("b", large)]), first);

    let floats = |cells: ArrayRef| digest(vec![("a", cells)]);
    let narrow = Float32Array::from(vec![0.5, -0.0, f32::INFINITY, f32::from_bits(0x7f80_0001)]);
    let wide = Float64Array::from(vec![0.5, -0.0, f64::INFINITY, f64::NAN]);
    assert_eq!(floats(Arc::new(narrow)), floats(Arc::new(wide)));

    let decimals = |precision| -> ArrayRef {
        Arc::new(Decimal128Array::from(vec![-125]).with_precision_and_scale(precision, 2).unwrap())
    };
    assert_eq!(digest(vec![("a", decimals(5))]), digest(vec![("a", decimals(9))]));
    let micros = || -> ArrayRef { Arc::new(TimestampMicrosecondArray::from(vec![7])) };
    let nanos = || -> ArrayRef { Arc::new(TimestampNanosecondArray::from(vec![7000])) };
    assert_eq!(digest(vec![("a", micros())]), digest(vec![("a", nanos())]));
}

#[test]
fn fields_at_any_depth_may_be_added() {
    let entries = |fields: Vec<(&str, ArrayRef)>| -> ArrayRef {
        let fields = fields
            .into_iter()
            .map(|(name, array)| (Arc::new(Field::new(name, array.data_type().clone(), true)), array))
            .collect::<Vec<_>>();
        let items: ArrayRef = Arc::new(StructArray::from(fields));
        let field = Arc::new(Field::new("item", items.data_type().clone(), true));
        Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([2, 1]), items, None))
    };
    let x = || ints(vec![Some(1), None, Some(3)]);
    let old = digest(vec![("l", entries(vec![("x", x())]))]);
    assert_eq!(digest(vec![("l", entries(vec![("y", ints(vec![None; 3])), ("x", x())]))]), old);
    assert_ne!(digest(vec![("l", entries(vec![("y", ints(vec![None, Some(0), None])), ("x", x())]))]), old);
    assert_ne!(digest(vec![("l", entries(vec![("y", x())]))]), old);
}

#[test]
fn lists_that_are_null_count_as_empty_ones() {
    let small = list(vec![Some(vec![Some(1), None]), None, Some(vec![])]);
    let large: ArrayRef = Arc::new(LargeListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(1), None]),
        Some(vec![]),
        None,
    ]));
    let first = digest(vec![("l", small)]);
    assert_eq!(digest(vec![("l", large)]), first);
    let one_null = list(vec![Some(vec![Some(1), None]), Some(vec![None]), None]);
    assert_ne!(digest(vec![("l", one_null)]), first);
    let other_order = list(vec![Some(vec![None, Some(1)]), None, None]);
    assert_ne!(digest(vec![("l", other_order)]), first);
}

#[test]
fn every_cell_counts() {
    let first = digest(vec![("a", ints(vec![Some(1), Some(2)])), ("b", ints(vec![None, Some(1)]))]);
    for (a, b) in [
        (vec![Some(2), Some(1)], vec![None, Some(1)]),
        (vec![Some(1), Some(2)], vec![Some(1), None]),
        (vec![Some(1), None], vec![None, Some(1)]),
        (vec![None, Some(2)], vec![Some(1), Some(1)]),
        (vec![Some(1), Some(2)], vec![Some(0), Some(1)]),
    ] {
        assert_ne!(digest(vec![("a", ints(a)), ("b", ints(b))]), first);
    }
    // What is nowhere a number is not equal to one, and what is in another column is something else.
    let text: ArrayRef = Arc::new(StringArray::from(vec!["1", "2"]));
    assert_ne!(digest(vec![("a", text), ("b", ints(vec![None, Some(1)]))]), first);
    let value = || vec![("a", ints(vec![Some(1)]))];
    let plain = digest(value());
    for name in ["_error", "_key_error", "_schema_id", "_key_schema_id", "key", "invalidKey", "invalidValue"]
    {
        assert_ne!(digest_of(&rows(value(), vec![(name, ints(vec![Some(1)]))])), plain, "{name}");
        assert_eq!(digest_of(&rows(value(), vec![(name, ints(vec![None]))])), plain, "{name}");
    }
    assert_eq!(digest_of(&rows(value(), vec![("of somebody else", ints(vec![Some(1)]))])), plain);
}

#[test]
fn what_the_column_holds_is_added() {
    let value = || vec![("a", ints(vec![Some(1), Some(2)]))];
    let with =
        |cells: Vec<Option<&[u8]>>| rows(value(), vec![("_digest", Arc::new(BinaryArray::from(cells)))]);
    let none = digest(value());
    let five = 5u128.to_be_bytes();
    assert_eq!(digest_of(&with(vec![None, Some(&five)])), none.wrapping_add(5));
    assert_eq!(digest_of(&with(vec![Some(&u128::MAX.to_be_bytes()), Some(&five)])), none.wrapping_add(4));
    assert!(digest_records(&with(vec![None, Some(&five[1..])])).is_err());
    let times: ArrayRef = Arc::new(Time32SecondArray::from(vec![1, 2]));
    assert!(digest_records(&rows(vec![("a", times)], vec![])).is_err());
}
