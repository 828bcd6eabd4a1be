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
    /// Any value, as its JSON.
    Any,
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
        Plan { path: Vec::new(), nesting: 0, columns: 0 }.shape(&documents.root, &scope)
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
            return Ok(Shape::Any);
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
                return Ok(Shape::Any);
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

    /// The shape of a schema without its references.
    fn own_shape(&mut self, schema: &Map<String, Value>, scope: &Scope<'_>) -> Result<Shape> {
        for union in ["anyOf", "oneOf"] {
            if let Some(members) = schema.get(union).and_then(Value::as_array) {
                return self.one_of(members, scope);
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            let mut shapes = parts.iter().map(|part| self.part(part, scope)).collect::<Result<Vec<_>>>()?;
            shapes.push(self.object(schema, scope)?);
            return Ok(together(shapes));
        }
        match type_of(schema) {
            Some("integer") if is_beyond_64_bits(schema) => Ok(Shape::LongInteger),
            Some("integer") => Ok(Shape::Integer),
            Some("number") => Ok(Shape::Number),
            Some("boolean") => Ok(Shape::Boolean),
            Some("string") => Ok(Shape::String),
            Some("object") => self.object(schema, scope),
            Some("array") => match schema.get("items") {
                Some(items @ Value::Object(_)) => Ok(Shape::Array(Box::new(self.part(items, scope)?))),
                _ => Ok(Shape::Array(Box::new(Shape::Any))),
            },
            _ => Ok(Shape::Any),
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, scope: &Scope<'_>) -> Result<Shape> {
        match schema.get("properties").and_then(Value::as_object) {
            Some(properties) if !properties.is_empty() => {
                let fields = properties
                    .iter()
                    .map(|(name, schema)| Ok((name.clone(), self.part(schema, scope)?)))
                    .collect::<Result<_>>()?;
                Ok(Shape::Object(fields))
            }
            _ => Ok(Shape::Any),
        }
    }

    /// A union is the type that its members share; null is in each.
    fn one_of(&mut self, members: &[Value], scope: &Scope<'_>) -> Result<Shape> {
        let is_null = |member: &Value| member.get("type").and_then(Value::as_str) == Some("null");
        let mut shared = None;
        for member in members.iter().filter(|member| !is_null(member)) {
            let shape = self.part(member, scope)?;
            match shared.get_or_insert_with(|| shape.clone()) {
                same if *same == shape => {}
                _ => return Ok(Shape::Any),
            }
        }
        Ok(shared.unwrap_or(Shape::Any))
    }
}

/// The shape of values that have all of these: for objects, one with the properties of all.
fn together(mut shapes: Vec<Shape>) -> Shape {
    shapes.retain(|shape| *shape != Shape::Any);
    if let [only] = &mut shapes[..] {
        return std::mem::replace(only, Shape::Any);
    }
    let mut fields: Vec<(String, Shape)> = Vec::new();
    for shape in shapes {
        let Shape::Object(members) = shape else { return Shape::Any };
        for (name, shape) in members {
            match fields.iter_mut().find(|field| field.0 == name) {
                None => fields.push((name, shape)),
                Some(field) if field.1 == shape => {}
                Some(field) => field.1 = Shape::Any,
            }
        }
    }
    if fields.is_empty() { Shape::Any } else { Shape::Object(fields) }
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
