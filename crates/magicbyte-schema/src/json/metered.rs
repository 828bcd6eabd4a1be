//! JSON values as the validator reads them, with a meter on it.
//!
//! A schema of forty lines can ask for 2^40 looks at one number, and the validator has neither a limit nor a way to stop.
//! But it looks at values through the traits that are implemented here: each look is counted, and one too many unwinds.
//! [`mark`] sees to it that wherever a schema applies others to a value, there is a look at it first.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, cmp, unique};
use serde_json::{Map, Value};

use super::documents::VALUES;
use crate::error::{Result, SchemaError};

/// Stack that validation may take: threads have 2 MiB at least.
const MAX_STACK: usize = 1 << 20;

thread_local! {
    static METER: Cell<Meter> = const { Cell::new(Meter { looks: 0, errors: 0, lowest: 0 }) };
}

#[derive(Clone, Copy)]
struct Meter {
    /// The number of looks that are left.
    looks: u64,
    errors: u64,
    /// The address that the stack may not reach.
    lowest: usize,
}

/// The payload that unwinds the validator.
struct Exhausted;

/// Runs a validator of [`Metered`] values; `None` if it takes more looks or errors than these, or too much stack.
pub(super) fn metered<T>(looks: u64, errors: u64, run: impl FnOnce() -> T) -> Option<T> {
    METER.set(Meter { looks, errors, lowest: stack_pointer().saturating_sub(MAX_STACK) });
    // A validator keeps nothing of a run that was broken off.
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => Some(done),
        Err(payload) if payload.is::<Exhausted>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

#[inline]
fn look() {
    let meter = METER.get();
    match meter.looks.checked_sub(1) {
        Some(looks) => METER.set(Meter { looks, ..meter }),
        None => unwind(),
    }
}

/// A look at which validation may have become deeper.
fn look_deeper() {
    look();
    if stack_pointer() < METER.get().lowest {
        unwind();
    }
}

#[cold]
fn unwind() -> ! {
    // Without the hook that reports panics: it is caught above.
    resume_unwind(Box::new(Exhausted))
}

#[inline(never)]
fn stack_pointer() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}

/// `serde_json`'s values.
pub(super) struct Metered;

impl Json for Metered {
    type Node<'a> = Looked<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Looked<'_>) -> T) -> T {
        *buffer = Value::String(string.to_owned());
        f(Looked(buffer))
    }
}

/// A value that is looked at.
#[derive(Clone, Copy)]
pub(super) struct Looked<'a>(pub(super) &'a Value);

impl<'a> Node<'a, Metered> for Looked<'a> {
    type Object = Members<'a>;
    type Array = Items<'a>;
    type Number = &'a serde_json::Number;

    fn as_object(&self) -> Option<Members<'a>> {
        look();
        self.0.as_object().map(Members)
    }

    fn as_array(&self) -> Option<Items<'a>> {
        look();
        self.0.as_array().map(|items| Items(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        look();
        self.0.as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a serde_json::Number> {
        look();
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        look();
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        look();
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        look_deeper();
        match self.0 {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        look();
        cmp::equal(self.0, expected)
    }

    /// For errors, which keep a copy each, those of all alternatives too: they get nothing, their paths find the value.
    fn to_value(&self) -> Cow<'a, Value> {
        let meter = METER.get();
        match meter.errors.checked_sub(1) {
            Some(errors) => METER.set(Meter { errors, ..meter }),
            None => unwind(),
        }
        Cow::Owned(Value::Null)
    }

    /// Asked for where a schema leads to itself.
    fn identity(&self) -> Option<NodeIdentity> {
        look_deeper();
        Some(NodeIdentity::new(std::ptr::from_ref(self.0).addr()))
    }
}

pub(super) struct Members<'a>(&'a Map<String, Value>);

impl<'a> Object<'a, Metered> for Members<'a> {
    type Node = Looked<'a>;
    type MemberName = &'a str;
    type MembersIter =
        std::iter::Map<serde_json::map::Iter<'a>, fn((&'a String, &'a Value)) -> (&'a str, Looked<'a>)>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Looked<'a>> {
        self.0.get(key).map(Looked)
    }

    fn members(&self) -> Self::MembersIter {
        self.0.iter().map(|(name, value)| (name.as_str(), Looked(value)))
    }
}

pub(super) struct Items<'a>(&'a [Value]);

impl<'a> Array<'a, Metered> for Items<'a> {
    type Node = Looked<'a>;
    type ElementsIter = std::iter::Map<std::slice::Iter<'a, Value>, fn(&'a Value) -> Looked<'a>>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Self::ElementsIter {
        self.0.iter().map(Looked)
    }

    fn is_unique(&self) -> bool {
        unique::is_unique(self.0)
    }
}

/// Keywords that apply schemas to the value itself.
const IN_PLACE: [&str; 11] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "dependentSchemas",
    "dependencies",
    "contains",
];
/// Every one.
const TYPES: &[&str] = &["null", "boolean", "number", "string", "array", "object"];
/// Has a schema that applies others to the value itself check a type first: by default, any.
///
/// # Errors
/// If what is not a schema refers to schemas: it is not seen to.
pub(super) fn mark(schema: &mut Map<String, Value>) -> Result<()> {
    if let Some(keyword) = VALUES.iter().find(|keyword| schema.get(**keyword).is_some_and(refers)) {
        return Err(SchemaError::new(format!("to validate by it: a $ref in {keyword}")));
    }
    if IN_PLACE.iter().any(|keyword| schema.contains_key(*keyword)) {
        schema.entry("type").or_insert_with(|| TYPES.into());
    }
    Ok(())
}

fn refers(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(refers),
        Value::Object(members) => {
            IN_PLACE[..3].iter().any(|keyword| members.contains_key(*keyword)) || members.values().any(refers)
        }
        _ => false,
    }
}
