//! Columns that grow value by value, and can be cut back when a payload turns out to be bad.
//!
//! Every row is complete: `close_row` adds a null, and the methods of a type, such as `push`, add a value.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, ByteArrayType};
use arrow_array::{ArrayRef, BooleanArray, GenericByteArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::failure::{Attempt, Failure};

/// Operations of all columns. The type of a column has the methods that set values.
pub(crate) trait Column {
    /// Rows.
    fn len(&self) -> usize;

    /// Cuts the column back to this many rows.
    fn truncate(&mut self, len: usize);

    /// Adds a row that is null.
    ///
    /// # Errors
    /// If it does not fit this column.
    fn close_row(&mut self) -> Attempt<()>;

    /// The rows as an array; the column is empty then.
    fn finish(&mut self) -> ArrayRef;
}

/// The column of a struct whose message or record has no fields, which Parquet could not store. It is named as in Spark.
pub(crate) const DUMMY: &str = "__dummy_field_in_empty_struct";

/// Bytes that a row takes in a column of this type, null or not.
pub(crate) fn row_size(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => {
            fields.iter().map(|field| row_size(field.data_type())).sum::<usize>().max(1)
        }
        other => other.primitive_width().unwrap_or_default().max(size_of::<i64>()),
    }
}

/// The null rows. Other rows are not listed.
#[derive(Default)]
pub(crate) struct Nulls {
    /// A bit per row, the lowest first, up to the last row that is null.
    bits: Vec<u8>,
}

impl Nulls {
    #[inline]
    pub(crate) fn push(&mut self, row: usize) {
        let byte = row / 8;
        if byte >= self.bits.len() {
            self.bits.resize(byte + 1, 0);
        }
        self.bits[byte] |= 1 << (row % 8);
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.bits.len() * 8 {
            self.bits.truncate(len.div_ceil(8));
            if let (Some(last), kept @ 1..) = (self.bits.last_mut(), len % 8) {
                *last &= (1 << kept) - 1;
            }
        }
    }

    /// Takes the null buffer for a column of this many rows, and leaves no nulls.
    pub(crate) fn finish(&mut self, rows: usize) -> Option<NullBuffer> {
        let mut bits = std::mem::take(&mut self.bits);
        if bits.is_empty() {
            return None;
        }
        bits.resize(rows.div_ceil(8), 0);
        bits.iter_mut().for_each(|byte| *byte = !*byte);
        Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, rows)))
    }
}

/// The maximum room that a column keeps, in bytes.
const MAX_ROOM: usize = 4 << 20;

/// Takes the values of a column. The column keeps room for as many values again, which the next rows mostly need.
pub(crate) fn take<V>(values: &mut Vec<V>) -> Vec<V> {
    let room = values.len().min(MAX_ROOM / size_of::<V>());
    std::mem::replace(values, Vec::with_capacity(room))
}

/// Values of one size.
struct Slots<V> {
    values: Vec<V>,
    nulls: Nulls,
}

impl<V: Copy + Default> Slots<V> {
    fn new() -> Self {
        Self { values: Vec::new(), nulls: Nulls::default() }
    }

    #[inline]
    fn push_null(&mut self) {
        self.nulls.push(self.values.len());
        self.values.push(V::default());
    }

    fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.nulls.truncate(len);
    }

    fn finish(&mut self) -> (Vec<V>, Option<NullBuffer>) {
        let nulls = self.nulls.finish(self.values.len());
        (take(&mut self.values), nulls)
    }
}

/// Numbers, and values that Arrow stores as numbers.
pub(crate) struct Numbers<T: ArrowPrimitiveType> {
    slots: Slots<T::Native>,
    data_type: DataType,
}

impl<T: ArrowPrimitiveType> Numbers<T> {
    pub(crate) fn new() -> Self {
        Self::of_type(T::DATA_TYPE)
    }

    /// A column of a type that has parameters: a precision, or a time zone.
    pub(crate) fn of_type(data_type: DataType) -> Self {
        Self { slots: Slots::new(), data_type }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T::Native) {
        self.slots.values.push(value);
    }
}

impl<T: ArrowPrimitiveType> Column for Numbers<T> {
    #[inline]
    fn len(&self) -> usize {
        self.slots.values.len()
    }

    fn truncate(&mut self, len: usize) {
        self.slots.truncate(len);
    }

    #[inline]
    fn close_row(&mut self) -> Attempt<()> {
        self.slots.push_null();
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let (values, nulls) = self.slots.finish();
        let array = PrimitiveArray::<T>::new(values.into(), nulls);
        Arc::new(array.with_data_type(self.data_type.clone()))
    }
}

/// Booleans.
pub(crate) struct Booleans(Slots<bool>);

impl Booleans {
    pub(crate) fn new() -> Self {
        Self(Slots::new())
    }

    #[inline]
    pub(crate) fn push(&mut self, value: bool) {
        self.0.values.push(value);
    }
}

impl Column for Booleans {
    #[inline]
    fn len(&self) -> usize {
        self.0.values.len()
    }

    fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    #[inline]
    fn close_row(&mut self) -> Attempt<()> {
        self.0.push_null();
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let (values, nulls) = self.0.finish();
        let values = BooleanBuffer::collect_bool(values.len(), |row| values[row]);
        Arc::new(BooleanArray::new(values, nulls))
    }
}

/// The ends of the values of each row, in a column with 32-bit offsets.
pub(crate) struct Offsets(Vec<i32>);

impl Offsets {
    pub(crate) fn new() -> Self {
        Self(vec![0])
    }

    #[inline]
    pub(crate) fn rows(&self) -> usize {
        self.0.len() - 1
    }

    /// The place of the values of a row.
    pub(crate) fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.0[row] as usize..self.0[row + 1] as usize
    }

    /// The end of the last row.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.0.last().map_or(0, |&end| end as usize)
    }

    #[inline]
    pub(crate) fn push(&mut self, end: usize) -> Attempt<()> {
        let end = i32::try_from(end).map_err(|_| Failure::full())?;
        self.0.push(end);
        Ok(())
    }

    /// Keeps this many rows, and returns where they end.
    pub(crate) fn truncate(&mut self, rows: usize) -> usize {
        self.0.truncate(rows + 1);
        self.end()
    }

    pub(crate) fn finish(&mut self) -> OffsetBuffer<i32> {
        let offsets = take(&mut self.0);
        self.0.push(0);
        OffsetBuffer::new(ScalarBuffer::from(offsets))
    }
}

/// Text or bytes. The caller that sets text has checked that it is UTF-8.
pub(crate) struct Bytes<T: ByteArrayType<Offset = i32>> {
    data: Vec<u8>,
    offsets: Offsets,
    nulls: Nulls,
    kind: std::marker::PhantomData<T>,
}

impl<T: ByteArrayType<Offset = i32>> Bytes<T> {
    pub(crate) fn new() -> Self {
        let (offsets, nulls) = (Offsets::new(), Nulls::default());
        Self { data: Vec::new(), offsets, nulls, kind: std::marker::PhantomData }
    }

    /// The value of a row.
    pub(crate) fn value(&self, row: usize) -> &[u8] {
        &self.data[self.offsets.range(row)]
    }

    #[inline]
    pub(crate) fn push(&mut self, value: &[u8]) -> Attempt<()> {
        self.data.extend_from_slice(value);
        self.offsets.push(self.data.len())
    }
}

impl<T: ByteArrayType<Offset = i32>> Column for Bytes<T> {
    fn len(&self) -> usize {
        self.offsets.rows()
    }

    fn truncate(&mut self, len: usize) {
        self.data.truncate(self.offsets.truncate(len));
        self.nulls.truncate(len);
    }

    #[inline]
    fn close_row(&mut self) -> Attempt<()> {
        self.nulls.push(self.offsets.rows());
        self.offsets.push(self.data.len())
    }

    fn finish(&mut self) -> ArrayRef {
        let nulls = self.nulls.finish(self.offsets.rows());
        let data = Buffer::from_vec(take(&mut self.data));
        Arc::new(GenericByteArray::<T>::new(self.offsets.finish(), data, nulls))
    }
}
