//! From a JSON Schema to the columns of the values that it describes. docs/schemas.md has the table of types.
//!
//! Drafts 4 to 2020-12, as far as they say what a value is made of. What has no Arrow type is text: its JSON.

use jsonschema::Draft;
use referencing::{Resolved, Resolver};
use serde_json::{Map, Value};

use super::documents::Documents;
use crate::budget::{MAX_COLUMNS, MAX_NESTING};
use crate::error::{Result, SchemaError};

/// The shape of a value. Values of every shape may be null.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Integer,
    /// An integer that is allowed to have more than 64 bits.
    LongInteger,
    Number,
    Boolean,
    String,
    Object(Vec<(String, Shape)>),
    Array(Box<Shape>),
    /// Values of several shapes, or of one that contains itself, as their JSON.
    Several,
    /// Any value, as its JSON: the schema says nothing of it.
    Any,
    /// Any value, some of which have this shape as well; only until a schema is read to its end.
    Sometimes(Box<Shape>),
}

impl Shape {
    /// The shape of what a schema describes; `references` are the documents that it refers to, as name and text.
    pub(crate) fn of(schema: &str, references: &[(&str, &str)]) -> Result<Self> {
        let mut documents = Documents::parse(schema, references)?;
        documents.for_each_schema(&mut |schema| {
            settle_draft(schema);
            Ok(())
        })?;
        let registry = documents.registry()?;
        let scope = Scope {
            resolver: registry.resolver(documents.address()?),
            draft: Draft::default().detect(&documents.root),
        };
        let mut plan = Plan { path: Vec::new(), nesting: 0, columns: 0, is_conditional: false };
        Ok(plan.shape(&documents.root, &scope)?.settled())
    }

    /// The shape when no more parts of the schema may come.
    fn settled(self) -> Self {
        match self {
            Self::Sometimes(_) => Self::Any,
            // Inside another struct, DuckDB reads none whose only field has an empty name.
            Self::Object(fields) if matches!(&fields[..], [(name, _)] if name.is_empty()) => Self::Any,
            Self::Object(fields) => {
                Self::Object(fields.into_iter().map(|(name, shape)| (name, shape.settled())).collect())
            }
            Self::Array(items) => Self::Array(Box::new(items.settled())),
            shape => shape,
        }
    }

    /// True if a column of this shape shows all that one of the other shape would.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Object(_) | Self::Array(_) | Self::Any | Self::Sometimes(_), Self::Several) => false,
            (_, Self::Sometimes(other)) => also(self.clone(), (**other).clone()) == *self,
            (_, Self::Any | Self::Several)
            | (Self::Several, _)
            | (Self::Integer | Self::LongInteger, Self::Number) => true,
            (Self::Object(fields), Self::Object(others)) => others.iter().all(|(name, other)| {
                fields.iter().find(|field| field.0 == *name).is_some_and(|field| field.1.covers(other))
            }),
            (Self::Array(items), Self::Array(others)) => items.covers(others),
            _ => self == other,
        }
    }
}

/// Leaves only drafts that are known: by another `$schema`, a schema is read like one without.
fn settle_draft(schema: &mut Map<String, Value>) {
    let named = schema.get("$schema").and_then(Value::as_str);
    if named.is_some_and(|uri| Draft::from_schema_uri(uri) == Draft::Unknown) {
        schema.remove("$schema");
    }
}

/// The place of a schema: where its references start from, and its draft.
#[derive(Clone)]
struct Scope<'a> {
    resolver: Resolver<'a>,
    draft: Draft,
}

impl<'a> Scope<'a> {
    /// That of a schema inside the one here, which may have an `$id` of its own.
    fn inside(&self, schema: &Value) -> Result<Self> {
        let draft = self.draft.detect(schema);
        let resolver = self.resolver.in_subresource(draft.create_resource_ref(schema));
        Ok(Self { resolver: resolver.map_err(|error| SchemaError::new(error.to_string()))?, draft })
    }

    /// The schema that a reference leads to, and its place.
    fn follow(reference: &str, found: Option<Resolved<'a>>) -> Result<(&'a Value, Self)> {
        let found = found.filter(|found| !found.contents().is_null());
        let found = found.ok_or_else(|| SchemaError::new(format!("the schema has no {reference:?}")))?;
        let (schema, resolver, draft) = found.into_inner();
        Ok((schema, Self { resolver, draft: draft.detect(schema) }))
    }

    /// The schemas that the references of a schema lead to.
    fn referred(&self, schema: &Map<String, Value>) -> Result<Vec<(&'a Value, Self)>> {
        let keywords: &[&str] = match self.draft {
            Draft::Draft201909 => &["$ref", "$recursiveRef"],
            Draft::Draft202012 => &["$ref", "$dynamicRef"],
            _ => &["$ref"],
        };
        let mut schemas = Vec::new();
        for keyword in keywords {
            let Some(reference) = schema.get(*keyword).and_then(Value::as_str) else { continue };
            let found = match *keyword {
                "$recursiveRef" => self.resolver.lookup_recursive_ref(),
                _ => self.resolver.lookup(reference),
            };
            schemas.push(Self::follow(reference, found.ok())?);
        }
        Ok(schemas)
    }
}

struct Plan {
    /// The schemas whose references are being followed.
    path: Vec<*const Value>,
    nesting: usize,
    columns: usize,
    /// The schema holds only for some values, such as one below `then`.
    is_conditional: bool,
}

impl Plan {
    /// The shape of a schema inside the one of this place.
    fn part(&mut self, schema: &Value, around: &Scope<'_>) -> Result<Shape> {
        self.shape(schema, &around.inside(schema)?)
    }

    fn shape(&mut self, schema: &Value, scope: &Scope<'_>) -> Result<Shape> {
        self.columns += 1;
        if self.columns > MAX_COLUMNS {
            return Err(SchemaError::new(format!("the schema has more than {MAX_COLUMNS} columns")));
        }
        // `true`, `false`, and what is not a schema, describe no types.
        let Some(schema) = schema.as_object() else { return Ok(Shape::Any) };
        if self.nesting == MAX_NESTING {
            return Ok(Shape::Several);
        }
        self.nesting += 1;
        let shape = self.shape_of(schema, scope);
        self.nesting -= 1;
        shape
    }

    fn shape_of(&mut self, schema: &Map<String, Value>, scope: &Scope<'_>) -> Result<Shape> {
        let mut parts = Vec::new();
        for (target, place) in scope.referred(schema)? {
            // A type that contains itself has no Arrow type.
            if self.path.contains(&std::ptr::from_ref(target)) {
                return Ok(Shape::Several);
            }
            self.path.push(target);
            let shape = self.shape(target, &place);
            self.path.pop();
            parts.push(shape?);
        }
        // Before 2019-09, what is beside a `$ref` does not count.
        if parts.is_empty() || scope.draft >= Draft::Draft201909 {
            parts.push(self.own_shape(schema, scope)?);
        }
        Ok(together(parts))
    }

    /// The shape of a schema without its references: a value is of its type and of all its parts.
    fn own_shape(&mut self, schema: &Map<String, Value>, scope: &Scope<'_>) -> Result<Shape> {
        let members = |keyword| schema.get(keyword).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut shapes =
            members("allOf").iter().map(|part| self.part(part, scope)).collect::<Result<Vec<_>>>()?;
        shapes.push(self.typed(schema, scope)?);
        let mut shape = together(shapes);
        let mut conditional = conditional_parts(schema, scope.draft);
        for union in ["anyOf", "oneOf"] {
            if self.is_conditional {
                conditional.extend(members(union));
            } else {
                let shared = self.one_of(members(union), &shape, scope)?;
                shape = together(vec![shape, shared]);
            }
        }
        let is_conditional = std::mem::replace(&mut self.is_conditional, true);
        for part in conditional {
            shape = also(shape, self.part(part, scope)?);
        }
        self.is_conditional = is_conditional;
        Ok(shape)
    }

    /// The shape that the type alone says.
    fn typed(&mut self, schema: &Map<String, Value>, scope: &Scope<'_>) -> Result<Shape> {
        match type_of(schema) {
            Some("integer") if is_beyond_64_bits(schema) => Ok(Shape::LongInteger),
            Some("integer") => Ok(Shape::Integer),
            Some("number") => Ok(Shape::Number),
            Some("boolean") => Ok(Shape::Boolean),
            Some("string") => Ok(Shape::String),
            Some("object") => self.object(schema, scope),
            Some("array") => Ok(Shape::Array(Box::new(self.items(schema, scope)?))),
            None if schema.get("type").is_some_and(Value::is_array) => Ok(Shape::Several),
            _ => Ok(Shape::Any),
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, scope: &Scope<'_>) -> Result<Shape> {
        // Arrow's C interface ends names at a zero.
        let can_be_columns =
            |names: &Map<String, Value>| !names.is_empty() && names.keys().all(|name| !name.contains('\0'));
        match schema.get("properties").and_then(Value::as_object) {
            Some(properties) if can_be_columns(properties) => {
                let fields = properties
                    .iter()
                    .map(|(name, schema)| Ok((name.clone(), self.part(schema, scope)?)))
                    .collect::<Result<_>>()?;
                Ok(Shape::Object(fields))
            }
            _ => Ok(Shape::Any),
        }
    }

    /// The shape of the items of an array.
    fn items(&mut self, schema: &Map<String, Value>, scope: &Scope<'_>) -> Result<Shape> {
        let Some(items @ Value::Object(_)) = schema.get("items") else { return Ok(Shape::Any) };
        let mut shape = self.part(items, scope)?;
        // From 2020-12 on, `items` says nothing of the first items if these have schemas of their own.
        if scope.draft == Draft::Draft202012 {
            for first in schema.get("prefixItems").and_then(Value::as_array).into_iter().flatten() {
                if self.part(first, scope)? != shape {
                    shape = Shape::Several;
                }
            }
        }
        Ok(shape)
    }

    /// The shape that the members of a union share, or `Any` if none has more than the `own` shape of the schema around
    /// them. Null is in each.
    fn one_of(&mut self, members: &[Value], own: &Shape, scope: &Scope<'_>) -> Result<Shape> {
        let is_null = |member: &Value| {
            let listed = |member: &Value| Some(member.get("enum")?.as_array()?.iter().all(Value::is_null));
            member.get("type").and_then(Value::as_str) == Some("null")
                || member.get("const").is_some_and(Value::is_null)
                || listed(member).unwrap_or(false)
        };
        let members = members.iter().filter(|member| !is_null(member));
        let mut shapes = members.map(|member| self.part(member, scope)).collect::<Result<Vec<_>>>()?;
        if shapes.iter().all(|shape| own.covers(shape)) {
            return Ok(Shape::Any);
        }
        let is_shared = shapes.windows(2).all(|pair| pair[0] == pair[1]);
        Ok(shapes.pop().filter(|_| is_shared).unwrap_or(Shape::Several))
    }
}

/// The schemas in a schema that hold for those of its values that meet a condition.
fn conditional_parts(schema: &Map<String, Value>, draft: Draft) -> Vec<&Value> {
    let mut parts = Vec::new();
    if draft >= Draft::Draft7 && schema.contains_key("if") {
        parts.extend(["if", "then", "else"].iter().filter_map(|keyword| schema.get(*keyword)));
    }
    // Validators take `dependencies` in all drafts.
    for (keyword, since) in [("dependentSchemas", Draft::Draft201909), ("dependencies", Draft::Draft4)] {
        let named = schema.get(keyword).and_then(Value::as_object).filter(|_| draft >= since);
        parts.extend(named.into_iter().flat_map(Map::values));
    }
    parts
}

/// The shape of values of a shape, some of which have the other one as well: with all properties of both. Those of the
/// other one alone are of any type, since the values that do not have that shape may have them, too.
fn also(shape: Shape, other: Shape) -> Shape {
    use Shape::{Any, Array, Object, Several, Sometimes};
    match (shape, other) {
        (shape, Sometimes(other)) => also(shape, *other),
        (Object(mut fields), Object(others)) => {
            for (name, other) in others {
                let place = fields.iter().position(|field| field.0 == name).unwrap_or_else(|| {
                    fields.push((name, Any));
                    fields.len() - 1
                });
                let shape = &mut fields[place].1;
                *shape = also(std::mem::replace(shape, Any), other);
            }
            Object(fields)
        }
        (Array(items), Array(others)) => Array(Box::new(also(*items, *others))),
        (Object(_) | Array(_), Several) => Several,
        (Any, other @ (Object(_) | Array(_) | Several)) => Sometimes(Box::new(other)),
        (Sometimes(shape), other @ (Object(_) | Array(_) | Several)) => {
            Sometimes(Box::new(both(*shape, other).unwrap_or(Several)))
        }
        (shape, _) => shape,
    }
}

/// The shape of values that have all of these: for objects, one with the properties of all. Values that no shape allows
/// are any.
fn together(shapes: Vec<Shape>) -> Shape {
    shapes.into_iter().map(Some).reduce(|shape, other| both(shape?, other?)).flatten().unwrap_or(Shape::Any)
}

/// The shape of values that have both; `None` if no value can.
fn both(shape: Shape, other: Shape) -> Option<Shape> {
    use Shape::{Any, Array, Integer, LongInteger, Number, Object, Several, Sometimes};
    Some(match (shape, other) {
        (shape, Any) | (Any, shape) => shape,
        (shape, other) if shape == other => shape,
        (shape, Sometimes(other)) | (Sometimes(other), shape) => also(shape, *other),
        (Several, Object(_) | Array(_)) | (Object(_) | Array(_), Several) => Several,
        (Several, shape) | (shape, Several) => shape,
        (LongInteger, Integer | Number) | (Integer | Number, LongInteger) => LongInteger,
        (Integer, Number) | (Number, Integer) => Integer,
        (Object(mut fields), Object(others)) => {
            for (name, other) in others {
                match fields.iter_mut().find(|field| field.0 == name) {
                    None => fields.push((name, other)),
                    Some((_, shape)) => *shape = together(vec![std::mem::replace(shape, Any), other]),
                }
            }
            Object(fields)
        }
        (Array(items), Array(others)) => Array(Box::new(together(vec![*items, *others]))),
        _ => return None,
    })
}

/// True for numbers that are allowed to need more than 64 bits.
fn is_beyond_64_bits(schema: &Map<String, Value>) -> bool {
    let bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
    let mut bounds = bounds.iter().filter_map(|bound| schema.get(*bound)?.as_f64());
    bounds.any(|bound| bound.abs() > 2_f64.powi(63))
}

/// The only type besides null.
fn type_of(schema: &Map<String, Value>) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => Some(name),
        Some(Value::Array(names)) => {
            let names: Vec<&str> =
                names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect();
            match names[..] {
                [name] => Some(name),
                ["integer", "number"] | ["number", "integer"] => Some("number"),
                _ => None,
            }
        }
        _ if schema.contains_key("properties") => Some("object"),
        _ => {
            // Values that are listed have a type, too.
            let listed = schema.get("enum").and_then(Value::as_array)?;
            listed.iter().all(|value| value.is_string() || value.is_null()).then_some("string")
        }
    }
}
