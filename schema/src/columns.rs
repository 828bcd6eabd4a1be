//! Columns that grow value by value, and can be cut back when a payload turns out to be bad.
//!
//! The rows before `row` are complete. While `row` is open, a value may be set any number of times; the last one
//! counts. `close_row` completes it, with the column's absent value if none was set.

use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::types::{ArrowPrimitiveType, ByteArrayType};
use arrow_array::{ArrayRef, BooleanArray, GenericByteArray, PrimitiveArray};
use arrow_buffer::{Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::failure::{Attempt, Failure};

/// What all columns do; setting values is up to their types.
pub(crate) trait Column {
    /// Rows, counting an open one that has a value.
    fn len(&self) -> usize;

    /// Cuts the column back to this many complete rows, and forgets what an open row has.
    fn truncate(&mut self, len: usize);

    /// Completes the open row.
    ///
    /// # Errors
    /// Why the row cannot be one of this column.
    fn close_row(&mut self) -> Attempt<()>;

    /// The complete rows as an array; the column is empty then.
    fn finish(&mut self) -> ArrayRef;
}

/// Whether each row is valid.
pub(crate) struct Validity(NullBufferBuilder);

impl Validity {
    pub(crate) fn new() -> Self {
        Self(NullBufferBuilder::new(0))
    }

    pub(crate) fn push(&mut self, valid: bool) {
        self.0.append(valid);
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.0.len() {
            self.0.truncate(len);
        }
    }

    pub(crate) fn finish(&mut self) -> Option<NullBuffer> {
        std::mem::replace(self, Self::new()).0.build()
    }
}

/// Numbers, and what Arrow stores as numbers.
pub(crate) struct Numbers<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    validity: Validity,
    closed: usize,
    /// The value of a row that sets none; `None` is null.
    absent: Option<T::Native>,
    data_type: DataType,
}

impl<T: ArrowPrimitiveType> Numbers<T> {
    pub(crate) fn new(absent: Option<T::Native>) -> Self {
        Self::of_type(absent, T::DATA_TYPE)
    }

    /// With a type that has parameters: a precision, or a time zone.
    pub(crate) fn of_type(absent: Option<T::Native>, data_type: DataType) -> Self {
        Self { values: Vec::new(), validity: Validity::new(), closed: 0, absent, data_type }
    }

    /// The value of a row that has one.
    pub(crate) fn get(&self, row: usize) -> T::Native {
        self.values[row]
    }

    #[inline]
    pub(crate) fn set(&mut self, value: T::Native) {
        match self.values.get_mut(self.closed) {
            Some(open) => *open = value,
            None => self.values.push(value),
        }
    }
}

impl<T: ArrowPrimitiveType> Column for Numbers<T> {
    fn len(&self) -> usize {
        self.values.len()
    }

    fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.validity.truncate(len);
        self.closed = len;
    }

    #[inline]
    fn close_row(&mut self) -> Attempt<()> {
        let set = self.values.len() > self.closed;
        if !set {
            self.values.push(self.absent.unwrap_or_default());
        }
        self.validity.push(set || self.absent.is_some());
        self.closed += 1;
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        self.closed = 0;
        let values = ScalarBuffer::from(std::mem::take(&mut self.values));
        let array = PrimitiveArray::<T>::new(values, self.validity.finish());
        Arc::new(array.with_data_type(self.data_type.clone()))
    }
}

/// Booleans.
pub(crate) struct Booleans {
    values: BooleanBufferBuilder,
    open: Option<bool>,
    validity: Validity,
    absent: Option<bool>,
}

impl Booleans {
    pub(crate) fn new(absent: Option<bool>) -> Self {
        Self { values: BooleanBufferBuilder::new(0), open: None, validity: Validity::new(), absent }
    }

    /// The value of a complete row.
    pub(crate) fn get(&self, row: usize) -> bool {
        self.values.get_bit(row)
    }

    #[inline]
    pub(crate) fn set(&mut self, value: bool) {
        self.open = Some(value);
    }
}

impl Column for Booleans {
    fn len(&self) -> usize {
        self.values.len() + usize::from(self.open.is_some())
    }

    fn truncate(&mut self, len: usize) {
        self.open = None;
        self.values.truncate(len);
        self.validity.truncate(len);
    }

    #[inline]
    fn close_row(&mut self) -> Attempt<()> {
        let value = self.open.take().or(self.absent);
        self.values.append(value.unwrap_or_default());
        self.validity.push(value.is_some());
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(BooleanArray::new(self.values.finish(), self.validity.finish()))
    }
}

/// Where the values of each row of a column with 32-bit offsets end.
pub(crate) struct Offsets(Vec<i32>);

impl Offsets {
    pub(crate) fn new() -> Self {
        Self(vec![0])
    }

    /// Complete rows.
    pub(crate) fn rows(&self) -> usize {
        self.0.len() - 1
    }

    /// Where the complete rows end.
    pub(crate) fn end(&self) -> usize {
        self.0.last().map_or(0, |&end| end as usize)
    }

    /// Where the values of a complete row are.
    pub(crate) fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.0[row] as usize..self.0[row + 1] as usize
    }

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
        OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(&mut self.0, vec![0])))
    }
}

/// Text or bytes. Whoever sets text has checked that it is UTF-8.
pub(crate) struct Bytes<T: ByteArrayType<Offset = i32>> {
    data: Vec<u8>,
    offsets: Offsets,
    open: bool,
    validity: Validity,
    absent: Option<Box<[u8]>>,
    kind: std::marker::PhantomData<T>,
}

impl<T: ByteArrayType<Offset = i32>> Bytes<T> {
    pub(crate) fn new(absent: Option<&[u8]>) -> Self {
        let absent = absent.map(Into::into);
        let (offsets, validity) = (Offsets::new(), Validity::new());
        Self { data: Vec::new(), offsets, open: false, validity, absent, kind: std::marker::PhantomData }
    }

    /// Bytes that a row takes at least.
    pub(crate) fn row_size(&self) -> usize {
        size_of::<i32>() + self.absent.as_ref().map_or(0, |absent| absent.len())
    }

    /// The value of a complete row.
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        &self.data[self.offsets.range(row)]
    }

    #[inline]
    pub(crate) fn set(&mut self, value: &[u8]) {
        if self.open {
            self.data.truncate(self.offsets.end());
        }
        self.data.extend_from_slice(value);
        self.open = true;
    }
}

impl<T: ByteArrayType<Offset = i32>> Column for Bytes<T> {
    fn len(&self) -> usize {
        self.offsets.rows() + usize::from(self.open)
    }

    fn truncate(&mut self, len: usize) {
        self.open = false;
        self.data.truncate(self.offsets.truncate(len));
        self.validity.truncate(len);
    }

    #[inline]
    fn close_row(&mut self) -> Attempt<()> {
        if let (false, Some(absent)) = (self.open, &self.absent) {
            self.data.extend_from_slice(absent);
        }
        self.offsets.push(self.data.len())?;
        self.validity.push(self.open || self.absent.is_some());
        self.open = false;
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let data = Buffer::from_vec(std::mem::take(&mut self.data));
        Arc::new(GenericByteArray::<T>::new(self.offsets.finish(), data, self.validity.finish()))
    }
}
