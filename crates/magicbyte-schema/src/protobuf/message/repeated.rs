//! Repeated fields and maps. Both are lists on the wire, one element after the other, packed or not.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{ArrayRef, BooleanArray, ListArray, MapArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::FieldRef;
use arrow_select::filter::filter;

use super::{Messages, Value};
use crate::failure::Attempt;
use crate::protobuf::columns::{Column, Numbers, Offsets};
use crate::protobuf::value::{ListPlace, MapPlace};
use crate::protobuf::wire::{Reader, Tag, WireType};

/// A repeated field.
pub(crate) struct Lists {
    offsets: Offsets,
    elements: Value,
    /// The number of elements, each complete.
    count: usize,
    field: FieldRef,
    /// Properties of the elements' type.
    packed_as: Option<WireType>,
    closes: bool,
    element_size: usize,
}

impl Lists {
    pub(crate) fn new(elements: Value, field: FieldRef) -> Self {
        let (packed_as, closes) = (elements.packed_as(), elements.closes());
        let element_size = elements.row_size();
        Self { offsets: Offsets::new(), elements, count: 0, field, packed_as, closes, element_size }
    }
}

impl ListPlace for Box<Lists> {
    fn open(&mut self, row: usize) -> Attempt<()> {
        let count = self.count;
        self.offsets.end_before(row, count)
    }

    #[inline(always)]
    fn packed_as(&self) -> Option<WireType> {
        self.packed_as
    }

    #[inline(always)]
    fn read_element(&mut self, tag: Tag, reader: &mut Reader<'_>, depth: u32) -> Attempt<bool> {
        let list = self.as_mut();
        let set = list.elements.read(list.count, tag, reader, depth)?;
        if set {
            reader.budget.spend(list.element_size)?;
            if list.closes {
                list.elements.close(list.count, &mut reader.budget)?;
            }
            list.count += 1;
        }
        Ok(set)
    }

    fn read_fixed(&mut self, reader: &mut Reader<'_>) {
        fn read<const N: usize, T: ArrowPrimitiveType>(
            reader: &mut Reader<'_>,
            to: &mut Numbers<T>,
            start: usize,
            number: impl Fn([u8; N]) -> T::Native,
        ) -> usize {
            let elements = reader.all_fixed();
            to.set_all(start, elements, number);
            elements.len()
        }
        let list = self.as_mut();
        list.count += match &mut list.elements {
            Value::SFixed32(to) => read(reader, to, list.count, i32::from_le_bytes),
            Value::Fixed32(to) => read(reader, to, list.count, |bytes| u32::from_le_bytes(bytes).into()),
            Value::SFixed64(to) => read(reader, to, list.count, i64::from_le_bytes),
            Value::Fixed64(to) => read(reader, to, list.count, |bytes| u64::from_le_bytes(bytes).into()),
            Value::Float(to) => read(reader, to, list.count, f32::from_le_bytes),
            Value::Double(to) => read(reader, to, list.count, f64::from_le_bytes),
            _ => 0,
        };
    }
}

impl Column for Lists {
    fn has(&self, row: usize) -> bool {
        self.offsets.start(row).is_some_and(|start| start < self.count)
    }

    fn truncate(&mut self, row: usize) {
        if let Some(start) = self.offsets.start(row) {
            self.elements.truncate(start);
            self.count = start;
            self.offsets.truncate(row);
        }
    }

    fn finish(&mut self, rows: usize) -> Attempt<ArrayRef> {
        let count = std::mem::take(&mut self.count);
        let elements = self.elements.finish(count)?;
        let offsets = self.offsets.finish(rows, count)?;
        Ok(Arc::new(ListArray::new(self.field.clone(), offsets, elements, None)))
    }
}

/// A map field: on the wire, a repeated message of a key and a value.
pub(crate) struct Maps {
    offsets: Offsets,
    /// Structs of key and value.
    entries: Messages,
    /// The number of entries, each complete.
    count: usize,
    field: FieldRef,
    /// Entries whose key comes again in the same row, by ascending index: the last one counts.
    replaced: Vec<usize>,
}

/// Keys up to this many are compared with each other.
const FEW: usize = 16;

impl Maps {
    pub(crate) fn new(entries: Messages, field: FieldRef) -> Self {
        Self { offsets: Offsets::new(), entries, count: 0, field, replaced: Vec::new() }
    }

    /// Completes a row.
    pub(super) fn close(&mut self, row: usize) {
        let Some(start) = self.offsets.start(row) else { return };
        let end = self.count;
        let mut replaced = Vec::new();
        if end - start <= FEW {
            let again = |&entry: &usize| (entry + 1..end).any(|later| self.key(later) == self.key(entry));
            replaced.extend((start..end).filter(again));
        } else {
            let mut seen = HashSet::with_capacity(end - start);
            replaced.extend((start..end).rev().filter(|&entry| !seen.insert(self.key(entry))));
            replaced.reverse();
        }
        self.replaced.extend(replaced);
    }

    fn key(&self, entry: usize) -> Key<'_> {
        match &self.entries.fields[0].value {
            Value::Int32(keys) | Value::SInt32(keys) | Value::SFixed32(keys) => {
                Key::Number(keys.get(entry).into())
            }
            Value::UInt32(keys)
            | Value::Fixed32(keys)
            | Value::Int64(keys)
            | Value::SInt64(keys)
            | Value::SFixed64(keys) => Key::Number(keys.get(entry).into()),
            Value::UInt64(keys) | Value::Fixed64(keys) => Key::Number(keys.get(entry)),
            Value::Bool(keys) => Key::Number(keys.get(entry).into()),
            Value::String(keys) => Key::Text(keys.get(entry)),
            // Protobuf allows no other types.
            _ => Key::Number(entry as i128),
        }
    }
}

impl MapPlace for Box<Maps> {
    #[inline(never)]
    fn read(&mut self, row: usize, reader: &mut Reader<'_>, depth: u32) -> Attempt<bool> {
        let map = self.as_mut();
        map.offsets.end_before(row, map.count)?;
        reader.check_depth(depth + 1)?;
        reader.budget.spend(map.entries.row_size)?;
        let entry = map.count;
        reader.delimited(|reader| map.entries.read(entry, None, reader, depth + 1))?;
        let skipped = match &mut map.entries.fields[1].value {
            // An entry without a value has the value's default.
            Value::Message(value) => {
                value.open(entry);
                false
            }
            Value::Enum(value) => value.take_skipped(),
            _ => false,
        };
        if skipped {
            // Then the whole entry is an unknown field.
            map.entries.truncate(entry);
            return Ok(false);
        }
        map.entries.close(entry, &mut reader.budget)?;
        map.count += 1;
        Ok(true)
    }
}

#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Number(i128),
    Text(&'a [u8]),
}

impl Column for Maps {
    fn has(&self, row: usize) -> bool {
        self.offsets.start(row).is_some_and(|start| start < self.count)
    }

    fn truncate(&mut self, row: usize) {
        if let Some(start) = self.offsets.start(row) {
            self.entries.truncate(start);
            self.count = start;
            self.replaced.truncate(self.replaced.partition_point(|&entry| entry < start));
            self.offsets.truncate(row);
        }
    }

    fn finish(&mut self, rows: usize) -> Attempt<ArrayRef> {
        let count = std::mem::take(&mut self.count);
        let mut entries = self.entries.finish(count)?;
        let mut offsets = self.offsets.finish(rows, count)?;
        let replaced = std::mem::take(&mut self.replaced);
        if !replaced.is_empty() {
            let mut kept = vec![true; entries.len()];
            replaced.iter().for_each(|&entry| kept[entry] = false);
            let before = |&end: &i32| end - replaced.partition_point(|&entry| entry < end as usize) as i32;
            offsets = OffsetBuffer::new(offsets.iter().map(before).collect());
            entries = keep(&entries, kept);
        }
        Ok(Arc::new(MapArray::new(self.field.clone(), offsets, entries.as_struct().clone(), None, false)))
    }
}

fn keep(entries: &ArrayRef, kept: Vec<bool>) -> ArrayRef {
    // It fails only if the two have different lengths.
    filter(entries, &BooleanArray::from(kept)).unwrap_or_else(|_| entries.clone())
}
