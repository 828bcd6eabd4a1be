//! From a JSON Schema to the columns of the values that it describes. docs/schemas.md has the table of types.
//!
//! Drafts 4 to 2020-12, as far as they say what a value is made of. What has no Arrow type is text: its JSON.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::budget::{MAX_COLUMNS, MAX_NESTING};
use crate::error::{Result, SchemaError};

/// The shape of a value. Values of every shape may be null.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Integer,
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
        let root = parse("the schema", schema)?;
        let mut others = HashMap::new();
        for (name, text) in references {
            let document = parse(name, text)?;
            if let Some(id) = id_of(&document) {
                others.insert(id.trim_end_matches('#').to_owned(), document.clone());
            }
            others.insert((*name).to_owned(), document);
        }
        let mut plan = Plan { root: &root, others: &others, path: Vec::new(), nesting: 0, columns: 0 };
        plan.shape(&root, &root)
    }
}

pub(super) fn parse(name: &str, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| SchemaError::new(format!("{name} is not JSON: {error}")))
}

pub(super) fn id_of(document: &Value) -> Option<&str> {
    document.get("$id").or_else(|| document.get("id"))?.as_str()
}

struct Plan<'a> {
    root: &'a Value,
    others: &'a HashMap<String, Value>,
    /// The references that are being followed.
    path: Vec<*const Value>,
    nesting: usize,
    columns: usize,
}

impl<'a> Plan<'a> {
    /// `document` is where references that begin with `#` lead.
    fn shape(&mut self, schema: &'a Value, document: &'a Value) -> Result<Shape> {
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
        let shape = self.shape_of(schema, document);
        self.nesting -= 1;
        shape
    }

    fn shape_of(&mut self, schema: &'a Map<String, Value>, document: &'a Value) -> Result<Shape> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.follow(reference, document);
        }
        for union in ["anyOf", "oneOf"] {
            if let Some(members) = schema.get(union).and_then(Value::as_array) {
                return self.one_of(members, document);
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            return self.all_of(schema, parts, document);
        }
        match type_of(schema) {
            Some("integer") => Ok(Shape::Integer),
            Some("number") => Ok(Shape::Number),
            Some("boolean") => Ok(Shape::Boolean),
            Some("string") => Ok(Shape::String),
            Some("object") => self.object(schema, document),
            Some("array") => match schema.get("items") {
                Some(items @ Value::Object(_)) => Ok(Shape::Array(Box::new(self.shape(items, document)?))),
                _ => Ok(Shape::Array(Box::new(Shape::Any))),
            },
            _ => Ok(Shape::Any),
        }
    }

    fn object(&mut self, schema: &'a Map<String, Value>, document: &'a Value) -> Result<Shape> {
        match schema.get("properties").and_then(Value::as_object) {
            Some(properties) if !properties.is_empty() => {
                let fields = properties
                    .iter()
                    .map(|(name, schema)| Ok((name.clone(), self.shape(schema, document)?)))
                    .collect::<Result<_>>()?;
                Ok(Shape::Object(fields))
            }
            _ => Ok(Shape::Any),
        }
    }

    /// A union is the type that its members share; null is in each.
    fn one_of(&mut self, members: &'a [Value], document: &'a Value) -> Result<Shape> {
        let is_null = |member: &Value| member.get("type").and_then(Value::as_str) == Some("null");
        let mut shared = None;
        for member in members.iter().filter(|member| !is_null(member)) {
            let shape = self.shape(member, document)?;
            match shared.get_or_insert_with(|| shape.clone()) {
                same if *same == shape => {}
                _ => return Ok(Shape::Any),
            }
        }
        Ok(shared.unwrap_or(Shape::Any))
    }

    /// An object with the properties of all parts.
    fn all_of(
        &mut self,
        schema: &'a Map<String, Value>,
        parts: &'a [Value],
        document: &'a Value,
    ) -> Result<Shape> {
        let mut shapes = parts.iter().map(|part| self.shape(part, document)).collect::<Result<Vec<_>>>()?;
        shapes.push(self.object(schema, document)?);
        shapes.retain(|shape| *shape != Shape::Any);
        if shapes.len() == 1 {
            return Ok(shapes.remove(0));
        }
        let mut fields: Vec<(String, Shape)> = Vec::new();
        for shape in shapes {
            let Shape::Object(members) = shape else { return Ok(Shape::Any) };
            for (name, shape) in members {
                match fields.iter_mut().find(|field| field.0 == name) {
                    None => fields.push((name, shape)),
                    Some(field) if field.1 == shape => {}
                    Some(field) => field.1 = Shape::Any,
                }
            }
        }
        Ok(if fields.is_empty() { Shape::Any } else { Shape::Object(fields) })
    }

    fn follow(&mut self, reference: &str, document: &'a Value) -> Result<Shape> {
        let missing = || SchemaError::new(format!("the schema has no {reference:?}"));
        let (name, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let document = match name {
            "" => document,
            _ if id_of(self.root).is_some_and(|id| id.trim_end_matches('#') == name) => self.root,
            _ => self.others.get(name).ok_or_else(missing)?,
        };
        let target = match fragment {
            "" => document,
            pointer => document.pointer(pointer).ok_or_else(missing)?,
        };
        // A type that contains itself has no Arrow type.
        if self.path.contains(&std::ptr::from_ref(target)) {
            return Ok(Shape::Any);
        }
        self.path.push(std::ptr::from_ref(target));
        let shape = self.shape(target, document);
        self.path.pop();
        shape
    }
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
