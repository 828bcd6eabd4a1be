//! The plan for a pair of schemas, by the rules of `org.apache.avro.Resolver`.
//!
//! A pair that Java cannot resolve is refused where a value of it is met, and not before: an array of such values may be
//! empty.

use std::collections::{HashMap, HashSet};

use super::aliases::Aliases;
use super::columns::data_type;
use super::default::Room;
use super::plan::{Choice, Default, Encoded, Items, Node, NodeId, Plan, Record, Step};
use super::types::{Field, Kind, Name, Type, TypeId, Types, short};
use crate::columns::row_size;
use crate::error::{Result, SchemaError};

/// Nodes of a plan. Records that contain each other may be paired in any way.
const MAX_NODES: usize = 100_000;
/// Records in records, counting those that contain themselves once for each record that they are paired with.
const MAX_DEPTH: usize = 400;

/// The plan for payloads of the writer's schema.
///
/// `are_same` if the schemas are equal: Java leaves such a schema as it is, and an alias may be the name of another field.
///
/// # Errors
/// If the plan would be too large. Values that the reader cannot take are nodes of the plan.
pub(super) fn resolve(writer: &Types, reader: &Types, are_same: bool) -> Result<Plan> {
    let aliases = if are_same { Aliases::default() } else { Aliases::of(reader) };
    let mut resolver = Resolver {
        writer,
        reader,
        aliases,
        nodes: Vec::new(),
        named: HashMap::new(),
        equal: HashMap::new(),
        sizes: HashMap::new(),
        defaults: Room::new(),
        depth: 0,
    };
    let root = resolver.node(Written { by: By::Writer, id: writer.root }, reader.root)?;
    Ok(Plan { nodes: resolver.nodes, root })
}

/// A type whose values are read.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Written {
    by: By,
    id: TypeId,
}

impl Written {
    fn with(self, id: TypeId) -> Self {
        Self { id, ..self }
    }
}

/// The schema that values are written with: defaults are written with the reader's.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum By {
    Writer,
    Reader,
}

/// The reason why a record has no whole node.
enum Unread {
    /// The reader cannot take it.
    Refused(String),
    /// The plan would be too large.
    TooLarge(SchemaError),
}

impl From<SchemaError> for Unread {
    fn from(error: SchemaError) -> Self {
        Self::TooLarge(error)
    }
}

struct Resolver<'a> {
    writer: &'a Types,
    reader: &'a Types,
    aliases: Aliases<'a>,
    nodes: Vec<Node>,
    /// The nodes of records and enums; records that contain themselves are still without some fields.
    named: HashMap<(Written, TypeId), NodeId>,
    /// The named types that were compared; true for equal ones.
    equal: HashMap<(Written, TypeId), bool>,
    /// The sizes of items in the reader's columns.
    sizes: HashMap<TypeId, usize>,
    defaults: Room,
    depth: usize,
}

impl<'a> Resolver<'a> {
    fn written(&self, of: Written) -> &'a Type {
        match of.by {
            By::Writer => self.writer.get(of.id),
            By::Reader => self.reader.get(of.id),
        }
    }

    /// The full name of a type as the reader calls it.
    fn name(&self, of: Written, full: &'a str) -> &'a str {
        match of.by {
            By::Writer => self.aliases.of_type(full),
            By::Reader => full,
        }
    }

    /// True if an enum or a fixed has the reader's name, whatever the namespace. Where an alias gives it another one, its own
    /// counts as well: Java's reader fails there, and Java's `SchemaCompatibility` finds no fault.
    fn is_called(&self, from: Written, name: &'a Name, reader: &Name) -> bool {
        [self.name(from, &name.full), &name.full].iter().any(|name| short(name) == short(&reader.full))
    }

    /// The name of a field as the reader calls it, in a record that the reader calls `record`.
    fn field_name(&self, of: Written, record: &str, field: &'a str) -> &'a str {
        match of.by {
            By::Writer => self.aliases.of_field(record, field),
            By::Reader => field,
        }
    }

    fn add(&mut self, node: Node) -> Result<NodeId> {
        if self.nodes.len() >= MAX_NODES {
            return Err(SchemaError::new(format!(
                "the writer's and the reader's schema have more than {MAX_NODES} pairs of types"
            )));
        }
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    fn node(&mut self, from: Written, to: TypeId) -> Result<NodeId> {
        let node = match (&self.written(from).kind, &self.reader.get(to).kind) {
            (Kind::Union(branches), _) => self.union(from, branches, to)?,
            (_, Kind::Union(branches)) => match self.choice(from, branches)? {
                Some(choice) => Node::Branch(choice),
                None => self.refused(from, to),
            },
            (Kind::Record { .. }, Kind::Record { .. }) => return self.record(from, to),
            (&Kind::Array(item), &Kind::Array(read_as)) => Node::Array(self.items(from.with(item), read_as)?),
            (&Kind::Map(value), &Kind::Map(read_as)) => Node::Map(self.items(from.with(value), read_as)?),
            (Kind::Enum { .. }, Kind::Enum { .. }) => {
                if let Some(&node) = self.named.get(&(from, to)) {
                    return Ok(node);
                }
                let node = self.leaf(from, to);
                let id = self.add(node)?;
                self.named.insert((from, to), id);
                return Ok(id);
            }
            _ => self.leaf(from, to),
        };
        self.add(node)
    }

    /// A value without others in it.
    fn leaf(&self, from: Written, to: TypeId) -> Node {
        match (&self.written(from).kind, &self.reader.get(to).kind) {
            (Kind::Null, Kind::Null) => Node::Null,
            (Kind::Boolean, Kind::Boolean) => Node::Boolean,
            (Kind::Int, Kind::Float) => Node::IntAsFloat,
            (Kind::Int, Kind::Int | Kind::Long | Kind::Double) => Node::Int,
            (Kind::Long, Kind::Float) => Node::LongAsFloat,
            (Kind::Long, Kind::Long | Kind::Double) => Node::Long,
            (Kind::Float, Kind::Float | Kind::Double) => Node::Float,
            (Kind::Double, Kind::Double) => Node::Double,
            (Kind::Bytes | Kind::String, Kind::Bytes | Kind::String) => Node::Sized,
            (Kind::Fixed { name, size }, Kind::Fixed { name: reader, size: read_as })
                if size == read_as && self.is_called(from, name, reader) =>
            {
                Node::Fixed(*size)
            }
            (Kind::Enum { name, symbols, .. }, Kind::Enum { name: reader, symbols: known, default })
                if self.is_called(from, name, reader) =>
            {
                let known: HashSet<&String> = known.iter().collect();
                let default = default.as_ref().filter(|default| known.contains(default));
                let read_as = |symbol: &String| match known.contains(symbol) {
                    true => Ok(symbol.as_str().into()),
                    false => {
                        default.map(|default| default.as_str().into()).ok_or_else(|| symbol.as_str().into())
                    }
                };
                Node::Enum(symbols.iter().map(read_as).collect())
            }
            _ => self.refused(from, to),
        }
    }

    fn refused(&self, from: Written, to: TypeId) -> Node {
        let (writer, reader) = (self.written(from).kind.described(), self.reader.get(to).kind.described());
        Node::Refused(format!("the writer's {writer} cannot be read as the reader's {reader}").into())
    }

    fn items(&mut self, from: Written, to: TypeId) -> Result<Items> {
        // A schema that contains itself becomes text, which has no size before it is written.
        let size = match (self.reader.is_recursive, self.sizes.get(&to)) {
            (true, _) => 0,
            (false, Some(&size)) => size,
            (false, None) => {
                let size = size_of::<i64>() + row_size(&data_type(self.reader, to));
                self.sizes.insert(to, size);
                size
            }
        };
        Ok(Items { node: self.node(from, to)?, written_as: from.id, size })
    }

    fn union(&mut self, from: Written, branches: &'a [TypeId], to: TypeId) -> Result<Node> {
        let own = match &self.reader.get(to).kind {
            Kind::Union(own) => Some(own),
            _ => None,
        };
        let equal = own.filter(|_| self.is_equal(from, to));
        let mut choices = Vec::with_capacity(branches.len());
        for (index, branch) in branches.iter().map(|&branch| from.with(branch)).enumerate() {
            choices.push(match (equal, own) {
                (Some(own), _) => Choice { branch: index, node: self.node(branch, own[index])? },
                (None, Some(own)) => match self.choice(branch, own)? {
                    Some(choice) => choice,
                    None => {
                        let refused = self.refused(branch, to);
                        Choice { branch: 0, node: self.add(refused)? }
                    }
                },
                (None, None) => Choice { branch: 0, node: self.node(branch, to)? },
            });
        }
        Ok(Node::Union(choices))
    }

    /// The branch of the reader's union for a type that is not a union.
    fn choice(&mut self, from: Written, branches: &'a [TypeId]) -> Result<Option<Choice>> {
        let Some(branch) = self.first_match(from, branches)? else { return Ok(None) };
        Ok(Some(Choice { branch, node: self.node(from, branches[branch])? }))
    }

    /// The branch with the same type and full name; else the record with this structure, if possible one with the name; else
    /// the first type that the value can be promoted to; else, where Java's reader fails and Java's `SchemaCompatibility`
    /// finds no fault, the enum or fixed with this name in another namespace, or with the name that an alias replaced.
    fn first_match(&mut self, from: Written, branches: &'a [TypeId]) -> Result<Option<usize>> {
        let (reader, kind) = (self.reader, &self.written(from).kind);
        let name = kind.name().map(|name| self.name(from, &name.full));
        let named = |branch: TypeId| reader.get(branch).kind.name().map(|name| name.full.as_str());
        let is_alike =
            |branch: TypeId| std::mem::discriminant(kind) == std::mem::discriminant(&reader.get(branch).kind);
        let exact = branches.iter().position(|&branch| is_alike(branch) && named(branch) == name);
        if exact.is_some() {
            return Ok(exact);
        }
        let has_name = |branch: TypeId| named(branch).map(short) == name.map(short);
        if !matches!(kind, Kind::Record { .. }) {
            let promoted = branches.iter().position(|&branch| kind.promotes_to(&reader.get(branch).kind));
            let moved = || branches.iter().position(|&branch| is_alike(branch) && has_name(branch));
            let own_name = kind.name().map(|name| short(&name.full));
            let unrenamed = || {
                branches.iter().position(|&branch| is_alike(branch) && named(branch).map(short) == own_name)
            };
            return Ok(promoted.or_else(moved).or_else(unrenamed));
        }
        let mut like = None;
        for (index, &branch) in branches.iter().enumerate().filter(|(_, branch)| is_alike(**branch)) {
            if (like.is_none() || has_name(branch)) && self.is_readable(from, branch)? {
                like = Some(index);
            }
        }
        Ok(like)
    }

    /// True if the fields of a record are readable as they stand; what is in them may not be.
    fn is_readable(&mut self, from: Written, to: TypeId) -> Result<bool> {
        let id = self.record(from, to)?;
        let is_refused = |node: NodeId| matches!(self.nodes[node], Node::Refused(_));
        Ok(match &self.nodes[id] {
            Node::Record(record) => {
                !record.steps.iter().any(|step| matches!(*step, Step::Read { node, .. } if is_refused(node)))
            }
            _ => false,
        })
    }

    fn record(&mut self, from: Written, to: TypeId) -> Result<NodeId> {
        if let Some(&node) = self.named.get(&(from, to)) {
            return Ok(node);
        }
        let is_empty = matches!(&self.reader.get(to).kind, Kind::Record { fields, .. } if fields.is_empty());
        let id = self.add(Node::Record(Record { steps: Vec::new(), defaults: Vec::new(), is_empty }))?;
        // Before its fields, which may contain it.
        self.named.insert((from, to), id);
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SchemaError::new(format!("the schemas nest more than {MAX_DEPTH} pairs of records")));
        }
        match self.fields(from, to, id) {
            Err(Unread::Refused(reason)) => self.nodes[id] = Node::Refused(reason.into()),
            Err(Unread::TooLarge(error)) => return Err(error),
            Ok(()) => {}
        }
        self.depth -= 1;
        Ok(id)
    }

    /// Adds the fields of a record to its node.
    fn fields(&mut self, from: Written, to: TypeId, id: NodeId) -> std::result::Result<(), Unread> {
        let (Kind::Record { name, fields }, Kind::Record { fields: own, .. }) =
            (&self.written(from).kind, &self.reader.get(to).kind)
        else {
            return Ok(());
        };
        let record = self.name(from, &name.full);
        let places: HashMap<&str, usize> = own.iter().map(|field| field.name.as_str()).zip(0..).collect();
        let mut found = HashSet::new();
        for field in fields {
            let name = self.field_name(from, record, &field.name);
            if !found.insert(name) {
                return Err(Unread::Refused(format!(
                    "by the reader's aliases, {record} has two fields {name}"
                )));
            }
            let step = match places.get(name) {
                Some(&place) => {
                    Step::Read { field: place, node: self.node(from.with(field.of), own[place].of)? }
                }
                None => Step::Skip(field.of),
            };
            if let Node::Record(record) = &mut self.nodes[id] {
                record.steps.push(step);
            }
        }
        for (index, field) in own.iter().enumerate().filter(|(_, field)| !found.contains(field.name.as_str()))
        {
            if field.default.is_none()
                && let Some(place) = self.skipped_alias(fields, field, id)
            {
                let node = self.node(from.with(fields[place].of), field.of)?;
                if let Node::Record(record) = &mut self.nodes[id] {
                    record.steps[place] = Step::Read { field: index, node };
                }
                continue;
            }
            let value = self.default(field)?;
            if let Node::Record(record) = &mut self.nodes[id] {
                record.defaults.push(Default { field: index, value });
            }
        }
        if let (By::Writer, Node::Record(record)) = (from.by, &mut self.nodes[id]) {
            let with_bytes = self.writer.fields_with_bytes(from.id);
            let mut index = 0;
            record.steps.retain(|step| {
                index += 1;
                !matches!(step, Step::Skip(_)) || with_bytes.binary_search(&(index - 1)).is_ok()
            });
        }
        Ok(())
    }

    /// The field of the writer's record that an alias of the reader's field names, though the records have different
    /// names: Java's reader fails there, and Java's `SchemaCompatibility` finds no fault.
    fn skipped_alias(&self, fields: &[Field], field: &Field, id: NodeId) -> Option<usize> {
        let Node::Record(record) = &self.nodes[id] else { return None };
        let mut written = fields.iter().zip(&record.steps);
        written.position(|(written, step)| {
            matches!(step, Step::Skip(_)) && field.aliases.contains(&written.name)
        })
    }

    /// The default of a field; `None` for a null.
    fn default(&mut self, field: &Field) -> std::result::Result<Option<Encoded>, Unread> {
        let refused = |reason: String| Unread::Refused(format!("{}: {reason}", field.name));
        let Some(default) = &field.default else {
            return Err(refused("the writer's record does not have it, and it has no default".to_owned()));
        };
        let payload = self.defaults.payload(self.reader, field.of, default);
        let payload = payload.map_err(|reason| refused(format!("its default cannot be read: {reason}")))?;
        let is_null_first = match &self.reader.get(field.of).kind {
            Kind::Null => true,
            Kind::Union(branches) => {
                branches.first().is_some_and(|&first| matches!(self.reader.get(first).kind, Kind::Null))
            }
            _ => false,
        };
        // Elsewhere Java writes an array or a map without items for it.
        if default.is_null() && is_null_first {
            return Ok(None);
        }
        let node = self.node(Written { by: By::Reader, id: field.of }, field.of)?;
        Ok(Some(Encoded { payload, node }))
    }

    /// True if two types have the same structure and short names: unions of such types are read branch by branch.
    fn is_equal(&mut self, from: Written, to: TypeId) -> bool {
        let mut seen = HashMap::new();
        let is_equal = self.are_equal(from, to, &mut seen);
        // What was found equal may be so only if an outer type is.
        self.equal.extend(seen.into_iter().filter(|found| is_equal || !found.1));
        is_equal
    }

    fn are_equal(&self, from: Written, to: TypeId, seen: &mut HashMap<(Written, TypeId), bool>) -> bool {
        let (writer, reader) = (&self.written(from).kind, &self.reader.get(to).kind);
        if let (Some(name), Some(own)) = (writer.name(), reader.name())
            && short(self.name(from, &name.full)) != short(&own.full)
        {
            return false;
        }
        match (writer, reader) {
            (&Kind::Array(item), &Kind::Array(own)) | (&Kind::Map(item), &Kind::Map(own)) => {
                self.are_equal(from.with(item), own, seen)
            }
            (Kind::Fixed { size, .. }, Kind::Fixed { size: own, .. }) => size == own,
            (Kind::Enum { symbols, .. }, Kind::Enum { symbols: own, .. }) => {
                if let Some(&equal) = self.equal.get(&(from, to)) {
                    return equal;
                }
                *seen.entry((from, to)).or_insert_with(|| symbols == own)
            }
            (Kind::Union(branches), Kind::Union(own)) => {
                branches.len() == own.len()
                    && branches
                        .iter()
                        .zip(own)
                        .all(|(&branch, &own)| self.are_equal(from.with(branch), own, seen))
            }
            (Kind::Record { name, fields }, Kind::Record { fields: own, .. }) => {
                if let Some(&equal) = self.equal.get(&(from, to)).or_else(|| seen.get(&(from, to))) {
                    return equal;
                }
                // So that a record that contains itself is equal if the rest is.
                seen.insert((from, to), true);
                let record = self.name(from, &name.full);
                let equal = fields.len() == own.len()
                    && fields.iter().zip(own).all(|(field, own)| {
                        let name = self.field_name(from, record, &field.name);
                        name == own.name && self.are_equal(from.with(field.of), own.of, seen)
                    });
                seen.insert((from, to), equal);
                equal
            }
            _ => std::mem::discriminant(writer) == std::mem::discriminant(reader),
        }
    }
}
