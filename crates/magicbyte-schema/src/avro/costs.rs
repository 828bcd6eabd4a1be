//! Memory that the reader's columns take for a writer's values, besides the bytes that these have.

use std::collections::HashSet;

use serde_json::Value;

use super::columns::data_type;
use super::types::{Kind, TypeId, Types};
use crate::columns::row_size;

/// Costs by the writer's types.
pub(super) struct Costs {
    /// The cost of the row.
    pub(super) row: usize,
    by_type: Vec<usize>,
}

impl Costs {
    /// Nothing costs anything.
    pub(super) const NONE: Self = Self { row: 0, by_type: Vec::new() };

    pub(super) fn new(writer: &Types, reader: &Types) -> Self {
        let by_type = vec![0; writer.len()];
        let mut pairs = Pairs { writer, reader, by_type, seen: HashSet::new() };
        pairs.add(writer.root, reader.root);
        Self { row: width(reader, reader.root), by_type: pairs.by_type }
    }

    /// Bytes for each item of an array or map, for the defaults of a record's fields that the writer does not have, or for a
    /// symbol of an enum.
    pub(super) fn of(&self, id: TypeId) -> usize {
        self.by_type.get(id).copied().unwrap_or_default()
    }
}

/// The writer's types with those that they are read as.
struct Pairs<'a> {
    writer: &'a Types,
    reader: &'a Types,
    by_type: Vec<usize>,
    seen: HashSet<(TypeId, TypeId)>,
}

impl Pairs<'_> {
    fn add(&mut self, from: TypeId, to: TypeId) {
        if !self.seen.insert((from, to)) {
            return;
        }
        let (writer, reader) = (self.writer, self.reader);
        match (&writer.get(from).kind, &reader.get(to).kind) {
            (Kind::Union(branches), _) => branches.iter().for_each(|&branch| self.add(branch, to)),
            (_, Kind::Union(branches)) => branches.iter().for_each(|&branch| self.add(from, branch)),
            (&Kind::Array(item), &Kind::Array(read_as)) => {
                self.charge(from, width(reader, read_as));
                self.add(item, read_as);
            }
            (&Kind::Map(value), &Kind::Map(read_as)) => {
                self.charge(from, size_of::<i64>() + width(reader, read_as));
                self.add(value, read_as);
            }
            (Kind::Enum { symbols, .. }, Kind::Enum { default, .. }) => {
                let longest = symbols.iter().chain(default).map(String::len).max();
                self.charge(from, longest.unwrap_or_default());
            }
            (Kind::Record { name, fields }, Kind::Record { name: read_as, fields: columns })
                if name.is_like(read_as) =>
            {
                let mut missing = 0;
                for column in columns {
                    match fields.iter().find(|field| field.is_like(column)) {
                        Some(field) => self.add(field.of, column.of),
                        None => {
                            let default = column.default.as_ref();
                            missing += default.map_or(0, |default| default_size(reader, column.of, default));
                        }
                    }
                }
                self.charge(from, missing);
            }
            _ => {}
        }
    }

    /// A type that is read as several costs as much as the largest of them.
    fn charge(&mut self, from: TypeId, bytes: usize) {
        self.by_type[from] = self.by_type[from].max(bytes);
    }
}

/// Bytes that a value of a type takes at least. To arrow-avro the null of a fixed has its size.
fn width(types: &Types, id: TypeId) -> usize {
    match &types.get(id).kind {
        Kind::Fixed { size, .. } => size_of::<i64>() + size,
        Kind::Record { fields, .. } => {
            fields.iter().map(|field| width(types, field.of)).sum::<usize>().max(1)
        }
        Kind::Union(branches) => branches.iter().map(|&branch| width(types, branch)).sum(),
        Kind::Array(_) | Kind::Map(_) => size_of::<i64>(),
        _ => row_size(&data_type(types, id)),
    }
}

/// Bytes that a default takes besides the columns of its row.
fn default_size(types: &Types, id: TypeId, default: &Value) -> usize {
    match (&types.get(id).kind, default) {
        (Kind::Union(branches), _) => {
            branches.iter().map(|&branch| default_size(types, branch, default)).max().unwrap_or_default()
        }
        (&Kind::Array(item), Value::Array(items)) => {
            items.iter().map(|value| width(types, item) + default_size(types, item, value)).sum()
        }
        (&Kind::Map(of), Value::Object(entries)) => {
            let size = |(key, value): (&String, &Value)| {
                size_of::<i64>() + key.len() + width(types, of) + default_size(types, of, value)
            };
            entries.iter().map(size).sum()
        }
        (Kind::Record { fields, .. }, Value::Object(values)) => {
            let value = |field: &str| values.get(field);
            let sizes = fields.iter().map(|field| {
                let value = value(&field.name).or(field.default.as_ref());
                value.map_or(0, |value| default_size(types, field.of, value))
            });
            sizes.sum()
        }
        (_, Value::String(text)) => text.len(),
        _ => 0,
    }
}
