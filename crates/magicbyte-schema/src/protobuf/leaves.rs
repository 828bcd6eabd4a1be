//! Columns of values that are more than a number or a string on the wire.

use std::io::{self, Write};

use arrow_array::ArrayRef;
use arrow_array::types::{ArrowPrimitiveType, Utf8Type};
use prost_reflect::{DynamicMessage, EnumDescriptor, MessageDescriptor, Syntax};

use super::columns::{Bytes, Column, Numbers};
use super::wire::{Reader, WireType};
use crate::budget::Budget;
use crate::failure::{Attempt, Failure};

/// Names of an enum's values. A number without a name is its digits, as in Protobuf's JSON.
pub(crate) struct Names {
    names: NamesByNumber,
    /// In a proto2 enum, a number without a name is an unknown field.
    closed: bool,
    skipped: bool,
    text: Bytes<Utf8Type>,
}

/// Names by number. A number with several names has the first of them.
type NamesByNumber = Box<[(i32, Box<str>)]>;

impl Names {
    pub(crate) fn new(descriptor: &EnumDescriptor, absent: Option<i32>) -> Self {
        let declared = &descriptor.enum_descriptor_proto().value;
        let mut names: Vec<_> = declared.iter().map(|value| (value.number(), value.name().into())).collect();
        names.sort_by_key(|&(number, _)| number);
        names.dedup_by_key(|&mut (number, _)| number);
        let names: NamesByNumber = names.into();
        let absent = absent.map(|number| find(&names, number).unwrap_or("0").as_bytes());
        let text = Bytes::new(absent);
        let closed = descriptor.parent_file().syntax() == Syntax::Proto2;
        Self { names, closed, skipped: false, text }
    }

    /// Returns whether the number is a value of the enum.
    pub(crate) fn set(&mut self, row: usize, number: i32, reader: &mut Reader<'_>) -> Attempt<bool> {
        match find(&self.names, number) {
            Some(name) => {
                reader.budget.spend(name.len())?;
                self.text.set(row, name.as_bytes())?;
            }
            None if self.closed => {
                self.skipped = true;
                return Ok(false);
            }
            None => self.text.set(row, number.to_string().as_bytes())?,
        }
        Ok(true)
    }

    /// True if a number was skipped since the last call.
    pub(crate) fn take_skipped(&mut self) -> bool {
        std::mem::take(&mut self.skipped)
    }

    pub(crate) fn row_size(&self) -> usize {
        self.text.row_size()
    }
}

fn find(names: &[(i32, Box<str>)], number: i32) -> Option<&str> {
    // Most enums count from 0.
    let entry = match names.get(number as usize) {
        Some(entry) if entry.0 == number => entry,
        _ => &names[names.binary_search_by_key(&number, |entry| entry.0).ok()?],
    };
    Some(&entry.1)
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
    pub(crate) fn read(&mut self, reader: &mut Reader<'_>, depth: u32) -> Attempt<()> {
        reader.check_depth(depth)?;
        self.open = true;
        while let Some(tag) = reader.next_field(None)? {
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
    descriptor: MessageDescriptor,
    is_group: bool,
    /// The message on the wire. Of several in one row, one after the other: that is how they merge.
    wire: Vec<u8>,
    open: bool,
    text: Bytes<Utf8Type>,
}

impl JsonText {
    pub(crate) fn new(descriptor: MessageDescriptor, is_group: bool) -> Self {
        Self { descriptor, is_group, wire: Vec::new(), open: false, text: Bytes::new(None) }
    }

    pub(crate) fn is_group(&self) -> bool {
        self.is_group
    }

    /// Adds a message, or a piece of one, to the row that is closed next.
    pub(crate) fn add(&mut self, message: &[u8]) {
        self.wire.extend_from_slice(message);
        self.open = true;
    }

    /// Completes a row.
    pub(crate) fn close(&mut self, row: usize, budget: &mut Budget) -> Attempt<()> {
        if self.open {
            self.text.set(row, &json(&self.descriptor, &self.wire, budget)?)?;
            self.reset();
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.wire.clear();
        self.open = false;
    }
}

impl Column for JsonText {
    fn has(&self, row: usize) -> bool {
        self.open || self.text.has(row)
    }

    fn truncate(&mut self, row: usize) {
        self.reset();
        self.text.truncate(row);
    }

    fn finish(&mut self, rows: usize) -> Attempt<ArrayRef> {
        self.text.finish(rows)
    }
}

/// A message as Protobuf's JSON.
pub(crate) fn json(descriptor: &MessageDescriptor, message: &[u8], budget: &mut Budget) -> Attempt<Vec<u8>> {
    let message = DynamicMessage::decode(descriptor.clone(), message)
        .map_err(|error| Failure::new(error.to_string()))?;
    let mut text = Bounded { text: Vec::new(), max: budget.left() };
    match serde_json::to_writer(&mut text, &message) {
        Ok(()) => budget.spend(text.text.len()).map(|()| text.text),
        Err(error) if error.is_io() => Err(budget.exceeded()),
        Err(error) => Err(Failure::new(format!("it has no JSON form: {error}"))),
    }
}

/// Text that does not become longer than this.
struct Bounded {
    text: Vec<u8>,
    max: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.max - self.text.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
