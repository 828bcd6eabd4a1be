//! A message that becomes text: its fields, as they are read.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use prost_reflect::Kind;

use super::names::EnumNames;
use super::shape::{FieldShape, Form, Shape, Shapes, Type};
use super::tags::Tags;
use super::value::{BytesPlace, EnumPlace, Fields, ListPlace, MapPlace, MessagePlace, Place, Places, Value};
use super::wire::{Reader, Tag, WireType};
use crate::failure::{Attempt, Failure};

/// Fields of messages.
pub(crate) enum Tree {}

impl Places for Tree {
    type Int32 = Last<i32>;
    type Int64 = Last<i64>;
    type UInt64 = Last<i128>;
    type Float = Last<f32>;
    type Double = Last<f64>;
    type Bool = Last<bool>;
    type Text = Last<Box<[u8]>>;
    type Bytes = Last<Box<[u8]>>;
    type Enum = Numbered;
    type Message = Box<Node>;
    type List = Box<Items>;
    type Map = Box<Entries>;
}

/// The last value that was set; before, the default.
#[derive(Default)]
pub(crate) struct Last<V>(pub(crate) V);

impl<V> Place<V> for Last<V> {
    fn set(&mut self, _row: usize, value: V) {
        self.0 = value;
    }
}

impl BytesPlace for Last<Box<[u8]>> {
    fn set(&mut self, _row: usize, value: &[u8]) -> Attempt<()> {
        self.0 = value.into();
        Ok(())
    }
}

/// A number of an enum.
pub(crate) struct Numbered {
    pub(crate) number: i32,
    pub(crate) names: Arc<EnumNames>,
}

impl EnumPlace for Numbered {
    fn set(&mut self, _row: usize, number: i32, _reader: &mut Reader<'_>) -> Attempt<bool> {
        if self.names.is_closed && self.names.find(number).is_none() {
            return Ok(false);
        }
        self.number = number;
        Ok(true)
    }
}

/// Bytes that a message takes with its first field, and with each further one.
const FIRST_FIELD: usize = 512;
const FIELD: usize = 2 * size_of::<Value<Tree>>();

/// A message.
pub(crate) struct Node {
    pub(crate) shapes: Arc<Shapes>,
    index: usize,
    is_group: bool,
    /// The fields that are set, by their index.
    pub(crate) fields: BTreeMap<usize, Value<Tree>>,
    /// True if a number was skipped that an enum does not have.
    skipped: bool,
}

impl Node {
    pub(crate) fn new(shapes: Arc<Shapes>, index: usize, is_group: bool) -> Self {
        Self { shapes, index, is_group, fields: BTreeMap::new(), skipped: false }
    }

    pub(crate) fn shape(&self) -> &Shape {
        self.shapes.get(self.index)
    }

    /// Completes a message; entries of maps are complete when they are read.
    ///
    /// # Errors
    /// If it, or a message in it, lacks a required field.
    pub(crate) fn close(&self) -> Attempt<()> {
        let shape = self.shape();
        if let Some(missing) = shape.required.iter().find(|index| !self.fields.contains_key(index)) {
            let failure = Failure::new("a required field is missing");
            return Err(failure.in_field(&shape.fields[*missing].name));
        }
        for (&index, value) in &self.fields {
            close(value).map_err(|failure| failure.in_field(&shape.fields[index].name))?;
        }
        Ok(())
    }
}

fn close(value: &Value<Tree>) -> Attempt<()> {
    match value {
        Value::Message(message) => message.close(),
        Value::List(list) => list.items.iter().try_for_each(close),
        _ => Ok(()),
    }
}

impl MessagePlace for Box<Node> {
    fn is_group(&self) -> bool {
        self.is_group
    }

    fn read(&mut self, row: usize, group: Option<u32>, reader: &mut Reader<'_>, depth: u32) -> Attempt<()> {
        self.read_fields(row, group, reader, depth)
    }
}

impl Fields for Node {
    fn tags(&self) -> &Tags {
        &self.shapes.get(self.index).tags
    }

    fn read_field(
        &mut self,
        index: usize,
        row: usize,
        tag: Tag,
        reader: &mut Reader<'_>,
        depth: u32,
    ) -> Attempt<()> {
        let shape = self.shapes.get(self.index);
        let field = &shape.fields[index];
        let is_first = self.fields.is_empty();
        let is_set = match self.fields.entry(index) {
            Entry::Occupied(mut value) => value.get_mut().read(row, tag, reader, depth),
            Entry::Vacant(slot) => {
                let mut value = field.empty(&self.shapes);
                value.read(row, tag, reader, depth).and_then(|is_set| {
                    if is_set {
                        reader.budget.spend(if is_first { FIRST_FIELD } else { FIELD })?;
                        slot.insert(value);
                    }
                    Ok(is_set)
                })
            }
        };
        match (is_set.map_err(|failure| failure.in_field(&field.name))?, field.oneof) {
            (false, _) => self.skipped |= matches!(field.of, Type::Enum(_)) && tag.wire == WireType::Varint,
            (true, None) => {}
            (true, Some(oneof)) => {
                for other in shape.oneofs[oneof].iter().filter(|&&other| other != index) {
                    self.fields.remove(other);
                }
            }
        }
        Ok(())
    }
}

/// The elements of a repeated field.
pub(crate) struct Items {
    pub(crate) items: Vec<Value<Tree>>,
    of: Type,
    shapes: Arc<Shapes>,
}

impl ListPlace for Box<Items> {
    fn open(&mut self, _row: usize) -> Attempt<()> {
        Ok(())
    }

    fn packed_as(&self) -> Option<WireType> {
        match self.of {
            Type::Message(..) => None,
            _ => self.of.single(&self.shapes).packed_as(),
        }
    }

    fn read_element(&mut self, tag: Tag, reader: &mut Reader<'_>, depth: u32) -> Attempt<bool> {
        let mut element = self.of.single(&self.shapes);
        let is_one = element.read(0, tag, reader, depth)?;
        if is_one {
            reader.budget.spend(FIELD)?;
            self.items.push(element);
        }
        Ok(is_one)
    }
}

/// The entries of a map, in the order of their keys.
pub(crate) struct Entries {
    pub(crate) entries: BTreeMap<Key, Value<Tree>>,
    /// Makes entries.
    entry: Node,
}

/// The key of an entry.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Number(i128),
    Text(Box<[u8]>),
}

impl MapPlace for Box<Entries> {
    fn read(&mut self, _row: usize, reader: &mut Reader<'_>, depth: u32) -> Attempt<bool> {
        reader.check_depth(depth + 1)?;
        let mut entry = Node::new(Arc::clone(&self.entry.shapes), self.entry.index, false);
        reader.delimited(|reader| entry.read_fields(0, None, reader, depth + 1))?;
        if entry.skipped {
            // Then the whole entry is an unknown field.
            return Ok(false);
        }
        // A message that is absent may lack required fields.
        for index in [0, 1] {
            if !entry.fields.contains_key(&index) {
                let empty = entry.shape().fields[index].empty(&entry.shapes);
                entry.fields.insert(index, empty);
            }
        }
        entry.close()?;
        reader.budget.spend(FIRST_FIELD)?;
        if let (Some(key), Some(value)) = (entry.fields.remove(&0), entry.fields.remove(&1)) {
            self.entries.insert(key.into(), value);
        }
        Ok(true)
    }
}

impl From<Value<Tree>> for Key {
    fn from(key: Value<Tree>) -> Self {
        match key {
            Value::Int32(key) | Value::SInt32(key) | Value::SFixed32(key) => Self::Number(key.0.into()),
            Value::UInt32(key)
            | Value::Fixed32(key)
            | Value::Int64(key)
            | Value::SInt64(key)
            | Value::SFixed64(key) => Self::Number(key.0.into()),
            Value::UInt64(key) | Value::Fixed64(key) => Self::Number(key.0),
            Value::Bool(key) => Self::Bool(key.0),
            Value::String(key) => Self::Text(key.0),
            // Protobuf allows no other types.
            _ => Self::Text(Box::default()),
        }
    }
}

impl FieldShape {
    /// The value before anything is read.
    pub(crate) fn empty(&self, shapes: &Arc<Shapes>) -> Value<Tree> {
        match (self.form, &self.of) {
            (Form::List, of) => {
                let (of, shapes) = (of.clone(), Arc::clone(shapes));
                Value::List(Box::new(Items { items: Vec::new(), of, shapes }))
            }
            (Form::Map, &Type::Message(entry, _)) => {
                let entry = Node::new(Arc::clone(shapes), entry, false);
                Value::Map(Box::new(Entries { entries: BTreeMap::new(), entry }))
            }
            (_, of) => of.single(shapes),
        }
    }
}

impl Type {
    /// One value with the default.
    fn single(&self, shapes: &Arc<Shapes>) -> Value<Tree> {
        let kind = match self {
            &Self::Message(index, is_group) => {
                return Value::Message(Box::new(Node::new(Arc::clone(shapes), index, is_group)));
            }
            Self::Enum(names) => {
                return Value::Enum(Numbered { number: names.default, names: Arc::clone(names) });
            }
            Self::Scalar(kind) => kind,
        };
        match kind {
            Kind::Int32 => Value::Int32(Last::default()),
            Kind::Sint32 => Value::SInt32(Last::default()),
            Kind::Sfixed32 => Value::SFixed32(Last::default()),
            Kind::Uint32 => Value::UInt32(Last::default()),
            Kind::Fixed32 => Value::Fixed32(Last::default()),
            Kind::Int64 => Value::Int64(Last::default()),
            Kind::Sint64 => Value::SInt64(Last::default()),
            Kind::Sfixed64 => Value::SFixed64(Last::default()),
            Kind::Uint64 => Value::UInt64(Last::default()),
            Kind::Fixed64 => Value::Fixed64(Last::default()),
            Kind::Float => Value::Float(Last::default()),
            Kind::Double => Value::Double(Last::default()),
            Kind::Bool => Value::Bool(Last::default()),
            Kind::String => Value::String(Last::default()),
            Kind::Bytes | Kind::Message(_) | Kind::Enum(_) => Value::Bytes(Last::default()),
        }
    }
}
