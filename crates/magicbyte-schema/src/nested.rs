//! Columns of structs and of lists, each of which may be null.

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_schema::{FieldRef, Fields};

use crate::columns::{Column, Nulls, Offsets};
use crate::failure::Attempt;

/// Structs.
pub(crate) struct Structs<C> {
    pub(crate) columns: Vec<C>,
    /// Names and types, for each of `columns`.
    pub(crate) fields: Fields,
    rows: usize,
    nulls: Nulls,
}

impl<C: Column> Structs<C> {
    pub(crate) fn new(columns: Vec<C>, fields: Fields) -> Self {
        Self { columns, fields, rows: 0, nulls: Nulls::default() }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the row that every column has at its end.
    #[inline]
    pub(crate) fn close_struct(&mut self) {
        self.rows += 1;
    }
}

impl<C: Column> Column for Structs<C> {
    fn len(&self) -> usize {
        self.rows
    }

    fn truncate(&mut self, len: usize) {
        self.rows = len;
        self.nulls.truncate(len);
        self.columns.iter_mut().for_each(|column| column.truncate(len));
    }

    fn close_row(&mut self) -> Attempt<()> {
        self.columns.iter_mut().try_for_each(C::close_row)?;
        self.nulls.push(self.rows);
        self.rows += 1;
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let rows = std::mem::take(&mut self.rows);
        let nulls = self.nulls.finish(rows);
        if self.columns.is_empty() {
            return Arc::new(StructArray::new_empty_fields(rows, nulls));
        }
        let columns = self.columns.iter_mut().map(C::finish).collect();
        Arc::new(StructArray::new(self.fields.clone(), columns, nulls))
    }
}

/// Lists.
pub(crate) struct Lists<C> {
    /// The items of all rows, and of a list that is not closed yet.
    pub(crate) items: C,
    field: FieldRef,
    offsets: Offsets,
    nulls: Nulls,
}

impl<C: Column> Lists<C> {
    pub(crate) fn new(items: C, field: FieldRef) -> Self {
        Self { items, field, offsets: Offsets::new(), nulls: Nulls::default() }
    }

    /// Adds a list of the items since the last one.
    pub(crate) fn close_list(&mut self) -> Attempt<()> {
        self.offsets.push(self.items.len())
    }
}

impl<C: Column> Column for Lists<C> {
    fn len(&self) -> usize {
        self.offsets.rows()
    }

    fn truncate(&mut self, len: usize) {
        self.items.truncate(self.offsets.truncate(len));
        self.nulls.truncate(len);
    }

    fn close_row(&mut self) -> Attempt<()> {
        self.nulls.push(self.offsets.rows());
        self.offsets.push(self.items.len())
    }

    fn finish(&mut self) -> ArrayRef {
        let nulls = self.nulls.finish(self.offsets.rows());
        let items = self.items.finish();
        Arc::new(ListArray::new(Arc::clone(&self.field), self.offsets.finish(), items, nulls))
    }
}
