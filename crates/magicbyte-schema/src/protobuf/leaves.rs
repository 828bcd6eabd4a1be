//! Columns of values that are more than a number or a string on the wire.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::types::{ArrowPrimitiveType, Utf8Type};

use super::columns::{Bytes, Column, Numbers};
use super::json;
use super::names::EnumNames;
use super::shape::Shapes;
use super::tree::Node;
use super::value::{BytesPlace, EnumPlace, Fields, Place};
use super::wire::{Reader, WireType};
use crate::budget::Budget;
use crate::failure::{Attempt, Failure};

/// Names of an enum's values. A number without a name is its digits, as in Protobuf's JSON.
pub(crate) struct Names {
    names: Arc<EnumNames>,
    skipped: bool,
    text: Bytes<Utf8Type>,
}

impl Names {
    pub(crate) fn new(names: Arc<EnumNames>, absent: Option<i32>) -> Self {
        let text = Bytes::new(absent.map(|number| names.find(number).unwrap_or("0").as_bytes()));
        Self { names, skipped: false, text }
    }

    /// True if a number was skipped since the last call.
    pub(crate) fn take_skipped(&mut self) -> bool {
        std::mem::take(&mut self.skipped)
    }

    pub(crate) fn row_size(&self) -> usize {
        self.text.row_size()
    }
}

impl EnumPlace for Names {
    fn set(&mut self, row: usize, number: i32, reader: &mut Reader<'_>) -> Attempt<bool> {
        match self.names.find(number) {
            Some(name) => {
                reader.budget.spend(name.len())?;
                self.text.set(row, name.as_bytes())?;
            }
            None if self.names.is_closed => {
                self.skipped = true;
                return Ok(false);
            }
            None => self.text.set(row, number.to_string().as_bytes())?,
        }
        Ok(true)
    }
}

impl Column for Names {
    fn has(&self, row: usize) -> bool {
        self.text.has(row)
    }

    fn truncate(&mut self, row: usize) {
        self.skipped = false;
        self.text.truncate(row);
    }

    fn finish(&mut self, rows: usize) -> Attempt<ArrayRef> {
        self.text.finish(rows)
    }
}

/// A `Timestamp` or `Duration` in microseconds. Nanoseconds below that are cut off, as Spark does.
pub(crate) struct Micros<T: ArrowPrimitiveType<Native = i64>> {
    seconds: i64,
    nanos: i32,
    open: bool,
    micros: Numbers<T>,
}

impl<T: ArrowPrimitiveType<Native = i64>> Micros<T> {
    pub(crate) fn new(micros: Numbers<T>) -> Self {
        Self { seconds: 0, nanos: 0, open: false, micros }
    }

    /// Reads a message, or a piece of one, of the row that is closed next. Both types have the same fields.
    pub(crate) fn read(&mut self, group: Option<u32>, reader: &mut Reader<'_>, depth: u32) -> Attempt<()> {
        self.open = true;
        while let Some(tag) = reader.next_field(group)? {
            match (tag.number, tag.wire) {
                (1, WireType::Varint) => self.seconds = reader.varint()? as i64,
                (2, WireType::Varint) => self.nanos = reader.varint()? as i32,
                _ => reader.skip(tag, depth)?,
            }
        }
        Ok(())
    }

    /// The row that is closed next has a value, though no field may come.
    pub(crate) fn open(&mut self) {
        self.open = true;
    }

    /// Completes a row.
    pub(crate) fn close(&mut self, row: usize) -> Attempt<()> {
        if self.open {
            let micros = self.seconds.checked_mul(1_000_000);
            let Some(micros) = micros.and_then(|m| m.checked_add(i64::from(self.nanos.div_euclid(1000))))
            else {
                let reason = format!("{} seconds are more than 64 bits of microseconds", self.seconds);
                return Err(Failure::new(reason));
            };
            self.micros.set(row, micros);
            self.reset();
        }
        Ok(())
    }

    fn reset(&mut self) {
        (self.seconds, self.nanos, self.open) = (0, 0, false);
    }
}

impl<T: ArrowPrimitiveType<Native = i64>> Column for Micros<T> {
    fn has(&self, row: usize) -> bool {
        self.open || self.micros.has(row)
    }

    fn truncate(&mut self, row: usize) {
        self.reset();
        self.micros.truncate(row);
    }

    fn finish(&mut self, rows: usize) -> Attempt<ArrayRef> {
        self.micros.finish(rows)
    }
}

/// Messages as Protobuf's JSON: messages that contain messages of the same type, for which there is no Arrow type.
pub(crate) struct JsonText {
    shapes: Arc<Shapes>,
    index: usize,
    /// How deep these messages are in others.
    depth: u32,
    /// The message of the row that is closed next.
    node: Option<Node>,
    text: Bytes<Utf8Type>,
}

impl JsonText {
    /// `index` is that of the message in the shapes.
    pub(crate) fn new(shapes: Arc<Shapes>, index: usize) -> Self {
        Self { shapes, index, depth: 0, node: None, text: Bytes::new(None) }
    }

    /// Reads a message, or a piece of one, of the row that is closed next.
    pub(crate) fn read(&mut self, group: Option<u32>, reader: &mut Reader<'_>, depth: u32) -> Attempt<()> {
        self.depth = depth;
        self.node().read_fields(0, group, reader, depth)
    }

    /// The row that is closed next has a message, though no field may come.
    pub(crate) fn open(&mut self) {
        self.node();
    }

    fn node(&mut self) -> &mut Node {
        self.node.get_or_insert_with(|| Node::new(Arc::clone(&self.shapes), self.index, false))
    }

    /// Completes a row.
    pub(crate) fn close(&mut self, row: usize, budget: &mut Budget) -> Attempt<()> {
        if let Some(node) = self.node.take() {
            node.close()?;
            self.text.set(row, &json::text(&node, self.depth, budget)?)?;
        }
        Ok(())
    }
}

impl Column for JsonText {
    fn has(&self, row: usize) -> bool {
        self.node.is_some() || self.text.has(row)
    }

    fn truncate(&mut self, row: usize) {
        self.node = None;
        self.text.truncate(row);
    }

    fn finish(&mut self, rows: usize) -> Attempt<ArrayRef> {
        self.text.finish(rows)
    }
}
