//! The documents that a schema is made of, and their addresses. Where a reference leads is up to the crate
//! `referencing`, for columns and for the validator.

use std::collections::HashMap;

use jsonschema::{Draft, Retrieve, Uri, uri};
use referencing::{Registry, SPECIFICATIONS, UriRef};
use serde_json::{Map, Value};

use crate::error::{Result, SchemaError};

/// Keywords with schemas by names, which may be those of keywords.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Keywords with values instead of schemas.
pub(super) const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];

/// A schema, and those that it refers to: nothing else is ever fetched.
pub(super) struct Documents {
    pub(super) root: Value,
    pub(super) others: Others,
}

/// The schemas that a schema refers to.
pub(super) struct Others {
    pub(super) documents: Vec<Value>,
    /// Indexes of `documents`.
    addresses: HashMap<String, usize>,
}

impl Documents {
    /// `references` are the documents that the schema refers to, as name and text.
    ///
    /// Each has an address by its name, one by its name relative to the schema's `$id`, and its own `$id`. A reference
    /// that is written like a name leads there, whatever `$id` it stands under.
    pub(super) fn parse(schema: &str, references: &[(&str, &str)]) -> Result<Self> {
        let root = parsed("the schema", schema)?;
        let base = id_of(&root).and_then(|id| uri::from_str(&legal(id)).ok());
        let mut names = HashMap::new();
        let mut addresses = HashMap::new();
        let mut documents = Vec::new();
        for (index, (name, text)) in references.iter().enumerate() {
            let document = parsed(name, text)?;
            let named = legal(name);
            let absolute = uri::from_str(&named);
            if let Ok(address) = &absolute {
                names.insert(*name, key(address));
            }
            let relative = base.as_ref().map(|base| uri::resolve_against(&base.borrow(), &named));
            let own = id_of(&document).map(|id| uri::from_str(&legal(id)));
            for address in [Some(absolute), relative, own].into_iter().flatten().flatten() {
                addresses.insert(key(&address), index);
            }
            documents.push(document);
        }
        let mut all = Self { root, others: Others { documents, addresses } };
        all.for_each_schema(&mut |schema| {
            for keyword in ["$id", "id"] {
                if let Some(Value::String(id)) = schema.get_mut(keyword) {
                    *id = legal(id);
                }
            }
            for keyword in ["$ref", "$dynamicRef"] {
                if let Some(Value::String(reference)) = schema.get_mut(keyword) {
                    *reference = leading(reference, &names);
                }
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Calls a function with each object in a place for schemas, those inside it first.
    pub(super) fn for_each_schema(
        &mut self,
        change: &mut impl FnMut(&mut Map<String, Value>) -> Result<()>,
    ) -> Result<()> {
        for_each_schema(&mut self.root, change)?;
        self.others.documents.iter_mut().try_for_each(|document| for_each_schema(document, change))
    }

    /// The address of the schema itself; without an `$id`, the one of all that is relative.
    pub(super) fn address(&self) -> Result<Uri<String>> {
        let id = id_of(&self.root).unwrap_or_default();
        let place = id.split_once('#').map_or(id, |split| split.0);
        uri::from_str(place).map_err(|error| SchemaError::new(error.to_string()))
    }

    /// Everything that references may lead to. What they name besides is null, which is no schema.
    pub(super) fn registry(&self) -> Result<Registry<'_>> {
        let others = self.others.addresses.iter();
        let others = others.map(|(address, index)| (address.clone(), &self.others.documents[*index]));
        let root = [(self.address()?.as_str().to_owned(), &self.root)];
        // A document that names no draft is of the schema's.
        let draft = Draft::default().detect(&self.root);
        let resource = |value| draft.detect(value).create_resource_ref(value);
        let resources = others.chain(root).map(|(address, value)| (address, resource(value)));
        SPECIFICATIONS
            .extend(resources)
            .and_then(|builder| builder.retriever(Nothing).retrieve_known_draft_meta_schemas(false).prepare())
            .map_err(|error| SchemaError::new(error.to_string()))
    }
}

impl Retrieve for Others {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> std::result::Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        match self.addresses.get(&key(uri)) {
            Some(&index) => Ok(self.documents[index].clone()),
            None => Err("no reference of the schema has this name".into()),
        }
    }
}

/// Finds null wherever it is asked: a reference that no value meets may lead nowhere.
struct Nothing;

impl Retrieve for Nothing {
    fn retrieve(
        &self,
        _: &Uri<String>,
    ) -> std::result::Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Value::Null)
    }
}

fn parsed(name: &str, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| SchemaError::new(format!("{name} is not JSON: {error}")))
}

fn id_of(document: &Value) -> Option<&str> {
    document.get("$id").or_else(|| document.get("id"))?.as_str()
}

fn key(address: &Uri<String>) -> String {
    address.strip_fragment().as_str().to_owned()
}

/// A reference as an address: it may be written like a name.
fn leading(reference: &str, names: &HashMap<&str, String>) -> String {
    let (place, fragment) = reference.split_at(reference.find('#').unwrap_or(reference.len()));
    match names.get(place) {
        Some(address) => format!("{address}{fragment}"),
        None => legal(reference),
    }
}

/// An address with an escape for each character that no address may have, as in names with spaces or brackets.
fn legal(address: &str) -> String {
    let (place, fragment) = address.split_at(address.find('#').unwrap_or(address.len()));
    let mut escaped = String::with_capacity(address.len());
    for (at, byte) in place.bytes().enumerate() {
        let is_escape =
            || place.as_bytes()[at + 1..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count() > 1;
        match byte {
            b'%' if is_escape() => escaped.push('%'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => escaped.push(char::from(byte)),
            _ if b"-._~:/?@!$&'()*+,;=".contains(&byte) => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    // A colon that ends no scheme.
    if UriRef::parse(escaped.as_str()).is_err() {
        escaped.insert_str(0, "./");
    }
    escaped + fragment
}

fn for_each_schema(
    document: &mut Value,
    change: &mut impl FnMut(&mut Map<String, Value>) -> Result<()>,
) -> Result<()> {
    match document {
        Value::Array(items) => items.iter_mut().try_for_each(|item| for_each_schema(item, change)),
        Value::Object(schema) => {
            for (keyword, value) in schema.iter_mut() {
                match value {
                    Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                        named.values_mut().try_for_each(|value| for_each_schema(value, change))?;
                    }
                    _ if VALUES.contains(&keyword.as_str()) => {}
                    _ => for_each_schema(value, change)?,
                }
            }
            change(schema)
        }
        _ => Ok(()),
    }
}
