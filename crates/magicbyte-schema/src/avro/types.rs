//! Avro schemas: their JSON, with references, as a table of types that refer to each other by index.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::error::{Result, SchemaError};

/// The maximum number of types, each counted as often as it is used. No schema that people write has more.
const MAX_TYPES: usize = 10_000;
/// The maximum nesting depth of types. Written out, it is below the 128 levels that serde_json reads.
const MAX_DEPTH: usize = 40;

pub(super) type TypeId = usize;

/// A type, and the meaning of its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Type {
    pub(super) kind: Kind,
    pub(super) logical: Logical,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed { name: Name, size: usize },
    Enum { name: Name, symbols: Vec<String>, default: Option<String> },
    Array(TypeId),
    Map(TypeId),
    Union(Vec<TypeId>),
    Record { name: Name, fields: Vec<Field> },
}

/// Logical types with a type of their own in Spark's `from_avro`. Others are read as the type that they are stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logical {
    None,
    Date,
    TimestampMillis,
    TimestampMicros,
    LocalTimestampMillis,
    LocalTimestampMicros,
    Decimal { precision: u32, scale: u32 },
}

#[derive(Clone, Debug)]
pub(super) struct Name {
    /// The full name, with the namespace if there is one.
    pub(super) full: String,
    /// Full names.
    pub(super) aliases: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub name: String,
    pub(super) of: TypeId,
    pub(super) aliases: Vec<String>,
    pub(super) default: Option<Value>,
}

/// A schema with all types that it uses.
#[derive(Clone, Debug)]
pub(super) struct Types {
    types: Vec<Type>,
    pub(super) root: TypeId,
    /// True if a type contains itself.
    pub(super) is_recursive: bool,
    /// For each type the fields whose values take bytes, if it is a record: a list may have any number of others.
    with_bytes: Vec<Box<[usize]>>,
}

impl Types {
    /// Parses a schema; `references` are the texts of the schemas it uses, each after those that it uses itself.
    pub(super) fn parse(text: &str, references: &[&str]) -> Result<Self> {
        let mut parser = Parser { types: Vec::new(), named: HashMap::new(), open: Vec::new() };
        for (number, reference) in references.iter().enumerate() {
            if !references[..number].contains(reference) {
                parser.document(reference)?;
            }
        }
        let root = parser.document(text)?;
        let mut types = Self { types: parser.types, root, is_recursive: false, with_bytes: Vec::new() };
        let mut open = vec![false; types.types.len()];
        let mut count = 0;
        types.is_recursive = types.measure(root, &mut open, 0, &mut count)?;
        let mut known = vec![None; types.types.len()];
        let mut with_bytes = vec![Box::default(); types.types.len()];
        for id in types.reachable() {
            if let Kind::Record { fields, .. } = &types.types[id].kind {
                let has_bytes = |&index: &usize| types.takes_bytes(fields[index].of, &mut known);
                with_bytes[id] = (0..fields.len()).filter(has_bytes).collect();
            }
        }
        types.with_bytes = with_bytes;
        Ok(types)
    }

    /// The indexes of a record's fields whose values take bytes of a payload.
    pub(super) fn fields_with_bytes(&self, record: TypeId) -> &[usize] {
        &self.with_bytes[record]
    }

    /// True if values of a type may take bytes of a payload. The schema uses the type, so that it is not deep.
    fn takes_bytes(&self, id: TypeId, known: &mut [Option<bool>]) -> bool {
        if let Some(takes) = known[id] {
            return takes;
        }
        // A record that contains itself has no value without a union or a list.
        known[id] = Some(true);
        let takes = match &self.types[id].kind {
            Kind::Null | Kind::Fixed { size: 0, .. } => false,
            Kind::Record { fields, .. } => fields.iter().any(|field| self.takes_bytes(field.of, known)),
            _ => true,
        };
        known[id] = Some(takes);
        takes
    }

    /// True if two schemas are equal as Java's are: aliases do not count, nor do types that are not used.
    pub(super) fn are_same(&self, other: &Self) -> bool {
        let (mut open, mut seen) = (vec![(self.root, other.root)], HashSet::new());
        while let Some(pair @ (id, other_id)) = open.pop() {
            if !seen.insert(pair) {
                continue;
            }
            let (one, another) = (self.get(id), other.get(other_id));
            if !one.is_like(another) {
                return false;
            }
            open.extend(one.inner().into_iter().zip(another.inner()));
        }
        true
    }

    pub(super) fn get(&self, id: TypeId) -> &Type {
        &self.types[id]
    }

    pub(super) fn get_mut(&mut self, id: TypeId) -> &mut Type {
        &mut self.types[id]
    }

    /// The types that the schema uses, each once. Its references may have others.
    pub(super) fn reachable(&self) -> Vec<TypeId> {
        let mut seen = vec![false; self.types.len()];
        let (mut open, mut found) = (vec![self.root], Vec::new());
        while let Some(id) = open.pop() {
            if !std::mem::replace(&mut seen[id], true) {
                found.push(id);
                open.extend(self.get(id).inner());
            }
        }
        found
    }

    /// The number of types; ids are below it.
    pub(super) fn len(&self) -> usize {
        self.types.len()
    }

    /// Returns true if a type below `id` contains itself. Fails for a schema that is too large once it is written out.
    fn measure(&self, id: TypeId, open: &mut [bool], depth: usize, count: &mut usize) -> Result<bool> {
        if open[id] {
            return Ok(true);
        }
        *count += 1;
        if *count > MAX_TYPES || depth > MAX_DEPTH {
            return Err(SchemaError::new(format!(
                "the schema uses more than {MAX_TYPES} types, or nests them deeper than {MAX_DEPTH}"
            )));
        }
        open[id] = true;
        let mut recursive = false;
        for inner in self.get(id).inner() {
            recursive |= self.measure(inner, open, depth + 1, count)?;
        }
        open[id] = false;
        Ok(recursive)
    }
}

impl Type {
    /// The types that it is made of.
    fn inner(&self) -> Vec<TypeId> {
        match &self.kind {
            Kind::Array(of) | Kind::Map(of) => vec![*of],
            Kind::Union(branches) => branches.clone(),
            Kind::Record { fields, .. } => fields.iter().map(|field| field.of).collect(),
            _ => Vec::new(),
        }
    }

    /// True if two types are equal as Java's are, but for the types that they are made of.
    fn is_like(&self, other: &Self) -> bool {
        self.logical == other.logical
            && match (&self.kind, &other.kind) {
                (Kind::Array(_), Kind::Array(_)) | (Kind::Map(_), Kind::Map(_)) => true,
                (Kind::Union(branches), Kind::Union(others)) => branches.len() == others.len(),
                (Kind::Enum { name, symbols, .. }, Kind::Enum { name: other, symbols: others, .. }) => {
                    name == other && symbols == others
                }
                (Kind::Record { name, fields }, Kind::Record { name: other, fields: others }) => {
                    let are_same = |(field, other): (&Field, &Field)| {
                        (&field.name, &field.default) == (&other.name, &other.default)
                    };
                    name == other && fields.len() == others.len() && fields.iter().zip(others).all(are_same)
                }
                (kind, other) => kind == other,
            }
    }
}

/// The name without its namespace.
pub(super) fn short(full: &str) -> &str {
    full.rsplit_once('.').map_or(full, |(_, short)| short)
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.full == other.full
    }
}

impl Kind {
    /// A kind without parameters, by its word.
    fn simple(word: &str) -> Option<Self> {
        Some(match word {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "int" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float,
            "double" => Self::Double,
            "bytes" => Self::Bytes,
            "string" => Self::String,
            _ => return None,
        })
    }

    /// The name, if the type has one.
    pub(super) fn name(&self) -> Option<&Name> {
        match self {
            Self::Fixed { name, .. } | Self::Enum { name, .. } | Self::Record { name, .. } => Some(name),
            _ => None,
        }
    }

    /// True if a value of this type is read as the reader's other type where its union has no branch of this type.
    pub(super) fn promotes_to(&self, reader: &Self) -> bool {
        matches!(
            (self, reader),
            (Self::Int, Self::Long | Self::Float | Self::Double)
                | (Self::Long, Self::Float | Self::Double)
                | (Self::Float, Self::Double)
                | (Self::String, Self::Bytes)
                | (Self::Bytes, Self::String)
        )
    }

    /// The type for a message: `record shop.Order`, `fixed Hash of 16 bytes`, `int`.
    pub(super) fn described(&self) -> String {
        match self {
            Self::Fixed { name, size } => format!("fixed {} of {size} bytes", cut(&name.full)),
            _ => match self.name() {
                Some(name) => format!("{} {}", self.word(), cut(&name.full)),
                None => self.word().to_owned(),
            },
        }
    }

    /// The word for this kind in a schema.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Bytes => "bytes",
            Self::String => "string",
            Self::Fixed { .. } => "fixed",
            Self::Enum { .. } => "enum",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
            Self::Union(_) => "union",
            Self::Record { .. } => "record",
        }
    }
}

impl Logical {
    /// By Avro's rules, a logical type that is unknown or invalid is ignored.
    fn parse(kind: &Kind, object: &Map<String, Value>) -> Self {
        match (object.get("logicalType").and_then(Value::as_str), kind) {
            (Some("date"), Kind::Int) => Self::Date,
            (Some("timestamp-millis"), Kind::Long) => Self::TimestampMillis,
            (Some("timestamp-micros"), Kind::Long) => Self::TimestampMicros,
            (Some("local-timestamp-millis"), Kind::Long) => Self::LocalTimestampMillis,
            (Some("local-timestamp-micros"), Kind::Long) => Self::LocalTimestampMicros,
            (Some("decimal"), Kind::Bytes | Kind::Fixed { .. }) => Self::decimal(kind, object),
            _ => Self::None,
        }
    }

    fn decimal(kind: &Kind, object: &Map<String, Value>) -> Self {
        // Java's `int`s.
        let number = |name: &str| {
            let number = object.get(name)?.as_u64()?;
            i32::try_from(number).ok()?.try_into().ok()
        };
        let scale = if object.contains_key("scale") { number("scale") } else { Some(0) };
        let (Some(precision @ 1..), Some(scale)) = (number("precision"), scale) else { return Self::None };
        let fits = match kind {
            // The digits that any number of so many bytes has.
            Kind::Fixed { size, .. } => {
                *size > 0 && f64::from(precision) <= ((*size as f64 * 8.0 - 1.0) * 2f64.log10()).floor()
            }
            _ => true,
        };
        if fits && scale <= precision { Self::Decimal { precision, scale } } else { Self::None }
    }
}

struct Parser {
    types: Vec<Type>,
    /// By full name.
    named: HashMap<String, TypeId>,
    /// The records whose fields are being parsed.
    open: Vec<TypeId>,
}

impl Parser {
    fn document(&mut self, text: &str) -> Result<TypeId> {
        // Text that is not JSON may be the name of a type: registries accept `string` for `"string"`.
        let document = serde_json::from_str(&without_comments(text)).or_else(|error| {
            match Kind::simple(text.trim()) {
                Some(_) => Ok(Value::from(text.trim())),
                None => Err(SchemaError::new(format!("the schema is not JSON: {error}"))),
            }
        })?;
        self.parse(&document, "")
    }

    fn add(&mut self, kind: Kind, logical: Logical) -> TypeId {
        self.types.push(Type { kind, logical });
        self.types.len() - 1
    }

    /// Recursion ends where serde_json's does, at 128 levels.
    fn parse(&mut self, schema: &Value, namespace: &str) -> Result<TypeId> {
        if self.types.len() > MAX_TYPES {
            return Err(SchemaError::new(format!("the schema has more than {MAX_TYPES} types")));
        }
        match schema {
            Value::String(word) => self.word(word, namespace),
            Value::Array(branches) => self.union(branches, namespace),
            Value::Object(object) => self.object(object, namespace),
            other => Err(SchemaError::new(format!(
                "{}: expected a type: text, an array or an object",
                shown(other)
            ))),
        }
    }

    fn word(&mut self, word: &str, namespace: &str) -> Result<TypeId> {
        if let Some(kind) = Kind::simple(word) {
            return Ok(self.add(kind, Logical::None));
        }
        let named = self.named.get(&qualified(word, namespace)).or_else(|| self.named.get(word));
        named.copied().ok_or_else(|| {
            SchemaError::new(format!(
                "no type is named {}, neither here nor in a reference",
                shown(&word.into())
            ))
        })
    }

    fn union(&mut self, branches: &[Value], namespace: &str) -> Result<TypeId> {
        let mut ids = Vec::with_capacity(branches.len());
        let mut seen = HashSet::with_capacity(branches.len());
        for branch in branches {
            let id = self.parse(branch, namespace)?;
            let kind = &self.types[id].kind;
            if matches!(kind, Kind::Union(_)) {
                return Err(SchemaError::new("a union has a union in it"));
            }
            let known = kind.name().map_or_else(|| kind.word().to_owned(), |name| name.full.clone());
            if seen.contains(&known) {
                return Err(SchemaError::new(format!("a union has the type {} twice", cut(&known))));
            }
            seen.insert(known);
            ids.push(id);
        }
        Ok(self.add(Kind::Union(ids), Logical::None))
    }

    fn object(&mut self, object: &Map<String, Value>, namespace: &str) -> Result<TypeId> {
        let word = match object.get("type") {
            Some(Value::String(word)) => word.as_str(),
            // A type in an inner pair of braces.
            Some(inner) => return self.parse(inner, namespace),
            None => return Err(SchemaError::new("a type has no \"type\"")),
        };
        let kind = match word {
            "array" => Kind::Array(self.parse(member(object, "items")?, namespace)?),
            "map" => Kind::Map(self.parse(member(object, "values")?, namespace)?),
            "record" | "error" => return self.record(object, namespace),
            "enum" => {
                let symbols = texts(object, "symbols")?;
                let default = object.get("default").and_then(Value::as_str).map(str::to_owned);
                Kind::Enum { name: name_of(object, namespace)?, symbols, default }
            }
            "fixed" => {
                let size = member(object, "size")?.as_u64().and_then(|size| i32::try_from(size).ok());
                let Some(size) = size else {
                    return Err(SchemaError::new("the size of a fixed is not a number from 0 to 2147483647"));
                };
                Kind::Fixed { name: name_of(object, namespace)?, size: size as usize }
            }
            word => match Kind::simple(word) {
                Some(kind) => kind,
                None => return self.word(word, namespace),
            },
        };
        let logical = Logical::parse(&kind, object);
        let name = kind.name().map(|name| name.full.clone());
        let id = self.add(kind, logical);
        name.map_or(Ok(id), |name| self.define(name, id))
    }

    fn record(&mut self, object: &Map<String, Value>, namespace: &str) -> Result<TypeId> {
        let name = name_of(object, namespace)?;
        let full = name.full.clone();
        let own_namespace = full.rsplit_once('.').map_or("", |(namespace, _)| namespace);
        let id = self.add(Kind::Record { name: name.clone(), fields: Vec::new() }, Logical::None);
        // Before its fields, which may refer to it, but may not define it.
        let earlier = *self.named.entry(full.clone()).or_insert(id);
        if self.open.contains(&earlier) {
            return Err(defined_twice(full));
        }
        self.open.push(id);
        let Value::Array(list) = member(object, "fields")? else {
            return Err(SchemaError::new(format!("the fields of {full} are not a list")));
        };
        let mut fields: Vec<Field> = Vec::with_capacity(list.len());
        let mut names = HashSet::with_capacity(list.len());
        for declaration in list {
            let Value::Object(declaration) = declaration else {
                return Err(SchemaError::new(format!("a field of {full} is not an object")));
            };
            let Some(field) = member(declaration, "name")?.as_str() else {
                return Err(SchemaError::new(format!("a field of {full} has a name that is not text")));
            };
            if field.contains('\0') {
                let shown = shown(&field.into());
                return Err(SchemaError::new(format!(
                    "{full} has a field {shown}: no column has \\0 in its name"
                )));
            }
            if !names.insert(field) {
                return Err(SchemaError::new(format!("{full} has two fields {}", shown(&field.into()))));
            }
            let of = self.parse(member(declaration, "type")?, own_namespace)?;
            let aliases =
                if declaration.contains_key("aliases") { texts(declaration, "aliases")? } else { Vec::new() };
            fields.push(Field {
                name: field.to_owned(),
                of,
                aliases,
                default: declaration.get("default").cloned(),
            });
        }
        self.types[id].kind = Kind::Record { name, fields };
        self.open.pop();
        self.define(full, id)
    }

    /// Gives a name to a type. Like Java, takes the earlier one of two equal types with one name.
    fn define(&mut self, name: String, id: TypeId) -> Result<TypeId> {
        let earlier = *self.named.entry(name.clone()).or_insert(id);
        if self.are_equal(earlier, id) { Ok(earlier) } else { Err(defined_twice(name)) }
    }

    fn are_equal(&self, earlier: TypeId, id: TypeId) -> bool {
        let mut open = vec![(earlier, id)];
        while let Some((id, other_id)) = open.pop() {
            // Types with names are the same ones: only the outermost was not looked up by its name.
            if id == other_id {
                continue;
            }
            let (one, another) = (&self.types[id], &self.types[other_id]);
            if !one.is_like(another) {
                return false;
            }
            open.extend(one.inner().into_iter().zip(another.inner()));
        }
        true
    }
}

/// The text with spaces for the comments, `//` to the end of a line and `/* */`, which Java's parser allows in schemas.
/// Messages about the text name its lines and columns, so both stay.
fn without_comments(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut rest, mut in_string) = (text, false);
    while let Some(at) = rest.find(if in_string { ['"', '\\'] } else { ['"', '/'] }) {
        let (before, from) = rest.split_at(at);
        let end = match from.as_bytes() {
            [b'"', ..] => {
                in_string = !in_string;
                1
            }
            // The character after it, which may be of several bytes, ends no string.
            [b'\\', ..] => 1 + from[1..].chars().next().map_or(0, char::len_utf8),
            [b'/', b'/', ..] => from.find('\n').unwrap_or(from.len()),
            [b'/', b'*', ..] => from.find("*/").map_or(from.len(), |end| end + 2),
            _ => 1,
        };
        out.push_str(before);
        match from.as_bytes() {
            [b'/', b'/' | b'*', ..] => {
                out.extend(from[..end].chars().map(|shown| if shown == '\n' { '\n' } else { ' ' }));
            }
            _ => out.push_str(&from[..end]),
        }
        rest = &from[end..];
    }
    if out.is_empty() { text.into() } else { (out + rest).into() }
}

fn defined_twice(name: String) -> SchemaError {
    SchemaError::new(format!("the type {} is defined twice, differently", shown(&name.into())))
}

fn member<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a Value> {
    object.get(name).ok_or_else(|| {
        SchemaError::new(format!("{}: expected {name:?}", shown(&Value::Object(object.clone()))))
    })
}

fn texts(object: &Map<String, Value>, name: &str) -> Result<Vec<String>> {
    let texts = member(object, name)?.as_array().and_then(|list| {
        list.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    });
    texts.ok_or_else(|| SchemaError::new(format!("{name} is not a list of texts")))
}

fn name_of(object: &Map<String, Value>, namespace: &str) -> Result<Name> {
    let Some(name) = member(object, "name")?.as_str().filter(|name| !name.is_empty()) else {
        return Err(SchemaError::new("the name of a type is not text"));
    };
    let own_namespace = object.get("namespace").and_then(Value::as_str).unwrap_or(namespace);
    let full = qualified(name, own_namespace);
    let space = full.rsplit_once('.').map_or("", |(namespace, _)| namespace);
    let aliases = if object.contains_key("aliases") { texts(object, "aliases")? } else { Vec::new() };
    let aliases = aliases.iter().map(|alias| qualified(alias, space)).collect();
    Ok(Name { full, aliases })
}

/// The full name: one with a dot is that already.
fn qualified(name: &str, namespace: &str) -> String {
    if name.contains('.') {
        // An empty namespace before the dot means that there is none.
        name.trim_start_matches('.').to_owned()
    } else if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}.{name}")
    }
}

/// A part of a schema for a message.
pub(super) fn shown(value: &Value) -> String {
    cut(&value.to_string()).into_owned()
}

/// Text for a message: of a long one, the start. Names have any length, and messages may be many.
fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(100) {
        None => text.into(),
        Some((end, _)) => format!("{}...", &text[..end]).into(),
    }
}
