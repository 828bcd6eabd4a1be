//! Columns that are written by row.
//!
//! Rows come in ascending order, each any number of times or not at all: the last value counts, and a row without one is
//! absent. So nothing is to be done for a field that a message does not have, however many of them its schema has.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, ByteArrayType};
use arrow_array::{ArrayRef, BooleanArray, GenericByteArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::short_bytes::append;
use super::value::{BytesPlace, Place};
use crate::columns::take;
use crate::failure::{Attempt, Failure};

/// The number of rows that a column grows by. Rows that are not written yet are absent.
const AHEAD: usize = 64;

/// Operations of all columns. The type of a column has the methods that write values.
pub(crate) trait Column {
    /// True if this row was written; no later row may have been written.
    fn has(&self, row: usize) -> bool;

    /// Forgets what this row has, and all rows after it.
    fn truncate(&mut self, row: usize);

    /// The rows before `rows` as an array; the column is empty then.
    ///
    /// # Errors
    /// If it would have more than Arrow's offsets can count.
    fn finish(&mut self, rows: usize) -> Attempt<ArrayRef>;
}

/// A bit per row: a boolean, or whether the row has a value.
pub(crate) struct Bits {
    /// The lowest first.
    bytes: Vec<u8>,
    /// The bit of a row that was not written.
    absent: bool,
}

impl Bits {
    /// Bits of rows that have no value as yet.
    pub(crate) fn unset() -> Self {
        Self::new(false)
    }

    fn new(absent: bool) -> Self {
        Self { bytes: Vec::new(), absent }
    }

    #[inline]
    pub(crate) fn set(&mut self, row: usize, bit: bool) {
        if row / 8 >= self.bytes.len() {
            self.grow(row / 8 + AHEAD / 8);
        }
        let byte = &mut self.bytes[row / 8];
        *byte = *byte & !(1 << (row % 8)) | u8::from(bit) << (row % 8);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, bytes: usize) {
        self.bytes.resize(bytes, if self.absent { u8::MAX } else { 0 });
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> bool {
        self.bytes.get(row / 8).map_or(self.absent, |byte| byte & 1 << (row % 8) != 0)
    }

    pub(crate) fn truncate(&mut self, row: usize) {
        self.bytes.truncate(row.div_ceil(8));
        if row / 8 < self.bytes.len() {
            (row..row.next_multiple_of(8)).for_each(|row| self.set(row, self.absent));
        }
    }

    fn finish(&mut self, rows: usize) -> BooleanBuffer {
        self.grow(rows.div_ceil(8));
        BooleanBuffer::new(Buffer::from_vec(take(&mut self.bytes)), 0, rows)
    }

    /// The null buffer of the rows; `None` if all rows have a value.
    pub(crate) fn finish_nulls(&mut self, rows: usize) -> Option<NullBuffer> {
        Some(NullBuffer::new(self.finish(rows))).filter(|nulls| nulls.null_count() > 0)
    }
}

/// The rows that have a value, in a column whose other rows are null. Empty if a row without a value is not
/// null, but has the column's default.
struct Present(Option<Bits>);

impl Present {
    /// For a column whose rows without a value have `absent`, or are null.
    fn unless<V: ?Sized>(absent: Option<&V>) -> Self {
        Self(absent.is_none().then(Bits::unset))
    }

    #[inline]
    fn set(&mut self, row: usize) {
        if let Some(bits) = &mut self.0 {
            bits.set(row, true);
        }
    }

    fn has(&self, row: usize) -> bool {
        self.0.as_ref().is_some_and(|bits| bits.get(row))
    }

    fn truncate(&mut self, row: usize) {
        if let Some(bits) = &mut self.0 {
            bits.truncate(row);
        }
    }

    fn finish_nulls(&mut self, rows: usize) -> Option<NullBuffer> {
        self.0.as_mut().and_then(|bits| bits.finish_nulls(rows))
    }
}

/// Values of one size.
struct Slots<V> {
    values: Vec<V>,
    /// The value of a row without one; a null has this, too.
    absent: V,
    present: Present,
}

impl<V: Copy + Default> Slots<V> {
    fn new(absent: Option<V>) -> Self {
        let present = Present::unless(absent.as_ref());
        Self { values: Vec::new(), absent: absent.unwrap_or_default(), present }
    }

    #[inline]
    fn set(&mut self, row: usize, value: V) {
        if row >= self.values.len() {
            self.grow(row + 1);
        }
        self.values[row] = value;
        self.present.set(row);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, rows: usize) {
        self.values.resize(rows + AHEAD - 1, self.absent);
    }

    fn has(&self, row: usize) -> bool {
        self.present.has(row)
    }

    fn truncate(&mut self, row: usize) {
        self.values.truncate(row);
        self.present.truncate(row);
    }

    fn finish(&mut self, rows: usize) -> (Vec<V>, Option<NullBuffer>) {
        self.values.resize(rows, self.absent);
        let nulls = self.present.finish_nulls(rows);
        (take(&mut self.values), nulls)
    }
}

/// Numbers, and values that Arrow stores as numbers.
pub(crate) struct Numbers<T: ArrowPrimitiveType> {
    slots: Slots<T::Native>,
    data_type: DataType,
}

impl<T: ArrowPrimitiveType> Numbers<T> {
    pub(crate) fn new(absent: Option<T::Native>) -> Self {
        Self::of_type(absent, T::DATA_TYPE)
    }

    /// A column of a type that has parameters: a precision, or a time zone.
    pub(crate) fn of_type(absent: Option<T::Native>, data_type: DataType) -> Self {
        Self { slots: Slots::new(absent), data_type }
    }

    /// The value of a row that is not null.
    pub(crate) fn get(&self, row: usize) -> T::Native {
        self.slots.values.get(row).copied().unwrap_or(self.slots.absent)
    }

    /// Writes as many rows as there are values, the first of them `row`. The column is one that is never null.
    #[inline]
    pub(crate) fn set_all<const N: usize>(
        &mut self,
        row: usize,
        values: &[[u8; N]],
        of_bytes: impl Fn([u8; N]) -> T::Native,
    ) {
        self.slots.values.resize(row, self.slots.absent);
        self.slots.values.extend(values.iter().map(|value| of_bytes(*value)));
    }
}

impl<T: ArrowPrimitiveType> Place<T::Native> for Numbers<T> {
    #[inline]
    fn set(&mut self, row: usize, value: T::Native) {
        self.slots.set(row, value);
    }
}

impl<T: ArrowPrimitiveType> Column for Numbers<T> {
    fn has(&self, row: usize) -> bool {
        self.slots.has(row)
    }

    fn truncate(&mut self, row: usize) {
        self.slots.truncate(row);
    }

    fn finish(&mut self, rows: usize) -> Attempt<ArrayRef> {
        let (values, nulls) = self.slots.finish(rows);
        let array = PrimitiveArray::<T>::new(values.into(), nulls);
        Ok(Arc::new(array.with_data_type(self.data_type.clone())))
    }
}

/// Booleans.
pub(crate) struct Booleans {
    values: Bits,
    present: Present,
}

impl Booleans {
    pub(crate) fn new(absent: Option<bool>) -> Self {
        let present = Present::unless(absent.as_ref());
        Self { values: Bits::new(absent.unwrap_or_default()), present }
    }

    /// The value of a row that is not null.
    pub(crate) fn get(&self, row: usize) -> bool {
        self.values.get(row)
    }
}

impl Place<bool> for Booleans {
    #[inline]
    fn set(&mut self, row: usize, value: bool) {
        self.values.set(row, value);
        self.present.set(row);
    }
}

impl Column for Booleans {
    fn has(&self, row: usize) -> bool {
        self.present.has(row)
    }

    fn truncate(&mut self, row: usize) {
        self.values.truncate(row);
        self.present.truncate(row);
    }

    fn finish(&mut self, rows: usize) -> Attempt<ArrayRef> {
        let nulls = self.present.finish_nulls(rows);
        Ok(Arc::new(BooleanArray::new(self.values.finish(rows), nulls)))
    }
}

/// The starts of the values of each row, and the end of the last values, in a column with 32-bit offsets.
pub(crate) struct Offsets(Vec<i32>);

impl Offsets {
    pub(crate) fn new() -> Self {
        Self(vec![0])
    }

    /// Rows whose end is known.
    #[inline]
    fn rows(&self) -> usize {
        self.0.len() - 1
    }

    /// Ends the next row here.
    #[inline]
    fn push(&mut self, end: usize) -> Attempt<()> {
        let end = i32::try_from(end).map_err(|_| Failure::full())?;
        self.0.push(end);
        Ok(())
    }

    /// Ends all rows before this one, if they are not, where the values so far end.
    #[inline]
    pub(crate) fn end_before(&mut self, row: usize, end: usize) -> Attempt<()> {
        let end = i32::try_from(end).map_err(|_| Failure::full())?;
        while self.0.len() <= row {
            self.0.push(end);
        }
        Ok(())
    }

    /// The start of a row's values, if it is known.
    #[inline]
    pub(crate) fn start(&self, row: usize) -> Option<usize> {
        self.0.get(row).map(|&start| start as usize)
    }

    pub(crate) fn truncate(&mut self, row: usize) {
        self.0.truncate(row + 1);
    }

    /// The offsets of this many rows, the last of which end at `end`.
    pub(crate) fn finish(&mut self, rows: usize, end: usize) -> Attempt<OffsetBuffer<i32>> {
        self.end_before(rows, end)?;
        self.0.truncate(rows + 1);
        let offsets = take(&mut self.0);
        self.0.push(0);
        Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
    }
}

/// Text or bytes. The caller that sets text has checked that it is UTF-8.
pub(crate) struct Bytes<T: ByteArrayType<Offset = i32>> {
    data: Vec<u8>,
    /// The offsets of the rows up to the last row that was written.
    offsets: Offsets,
    /// The value of a row without one; a null is empty.
    absent: Box<[u8]>,
    present: Present,
    kind: std::marker::PhantomData<T>,
}

impl<T: ByteArrayType<Offset = i32>> Bytes<T> {
    pub(crate) fn new(absent: Option<&[u8]>) -> Self {
        let present = Present::unless(absent);
        let absent = absent.unwrap_or_default().into();
        Self { data: Vec::new(), offsets: Offsets::new(), absent, present, kind: std::marker::PhantomData }
    }

    /// Bytes that a row takes at least.
    pub(crate) fn row_size(&self) -> usize {
        size_of::<i32>() + self.absent.len()
    }

    /// The value of a row that is not null.
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        match (self.offsets.start(row), self.offsets.start(row + 1)) {
            (Some(start), Some(end)) => &self.data[start..end],
            _ => &self.absent,
        }
    }

    /// Makes this row the next one.
    #[inline(never)]
    fn skip_to(&mut self, row: usize) -> Attempt<()> {
        if self.offsets.rows() > row {
            self.cut(row);
        }
        if self.absent.is_empty() {
            return self.offsets.end_before(row, self.data.len());
        }
        for _ in self.offsets.rows()..row {
            self.data.extend_from_slice(&self.absent);
            self.offsets.push(self.data.len())?;
        }
        Ok(())
    }

    fn cut(&mut self, row: usize) {
        if let Some(start) = self.offsets.start(row) {
            self.data.truncate(start);
            self.offsets.truncate(row);
        }
    }
}

impl<T: ByteArrayType<Offset = i32>> BytesPlace for Bytes<T> {
    #[inline]
    fn set(&mut self, row: usize, value: &[u8]) -> Attempt<()> {
        if self.offsets.rows() != row {
            self.skip_to(row)?;
        }
        append(&mut self.data, value);
        self.offsets.push(self.data.len())?;
        self.present.set(row);
        Ok(())
    }
}

impl<T: ByteArrayType<Offset = i32>> Column for Bytes<T> {
    fn has(&self, row: usize) -> bool {
        self.present.has(row)
    }

    fn truncate(&mut self, row: usize) {
        self.cut(row);
        self.present.truncate(row);
    }

    fn finish(&mut self, rows: usize) -> Attempt<ArrayRef> {
        self.skip_to(rows)?;
        let nulls = self.present.finish_nulls(rows);
        let offsets = self.offsets.finish(rows, self.data.len())?;
        let data = Buffer::from_vec(take(&mut self.data));
        Ok(Arc::new(GenericByteArray::<T>::new(offsets, data, nulls)))
    }
}
