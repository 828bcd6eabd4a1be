//! JSON values as the validator reads them, with a meter on it.
//!
//! A schema of forty lines can ask for 2^40 looks at one number, and the validator has neither a limit nor a way to stop.
//! But it looks at values through the traits that are implemented here: each look is counted, and one too many unwinds.
//! [`mark`] sees to it that wherever a schema applies others to a value, there is a look at it first.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object, cmp, unique};
use serde_json::{Map, Value};

use super::documents::VALUES;
use crate::error::SchemaError;

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

/// The reason why a run was broken off: it unwinds the validator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BrokenOff {
    /// It takes too many looks or errors, or too much stack.
    Exhausted,
    /// It depends on digits that a double does not have.
    Inexact,
}

/// Runs a validator of [`Metered`] values, which may take so many looks and errors.
pub(super) fn metered<T>(looks: u64, errors: u64, run: impl FnOnce() -> T) -> Result<T, BrokenOff> {
    METER.set(Meter { looks, errors, lowest: stack_pointer().saturating_sub(MAX_STACK) });
    // A validator keeps nothing of a run that was broken off.
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| match payload.downcast::<BrokenOff>() {
        Ok(reason) => *reason,
        Err(payload) => resume_unwind(payload),
    })
}

#[inline]
fn look() {
    let meter = METER.get();
    match meter.looks.checked_sub(1) {
        Some(looks) => METER.set(Meter { looks, ..meter }),
        None => unwind(BrokenOff::Exhausted),
    }
}

/// A look at which validation may have become deeper.
fn look_deeper() {
    look();
    if stack_pointer() < METER.get().lowest {
        unwind(BrokenOff::Exhausted);
    }
}

#[cold]
fn unwind(reason: BrokenOff) -> ! {
    // Without the hook that reports panics: it is caught above.
    resume_unwind(Box::new(reason))
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
        f(Looked { value: buffer, is_name: true })
    }
}

/// A value that is looked at.
#[derive(Clone, Copy)]
pub(super) struct Looked<'a> {
    value: &'a Value,
    /// True for the name of a property, which no path finds.
    is_name: bool,
}

impl<'a> Looked<'a> {
    pub(super) fn new(value: &'a Value) -> Self {
        Self { value, is_name: false }
    }
}

/// A number that is looked at. An integer beyond 64 bits is the closest double, which is on the same side of limits within
/// 64 bits.
pub(super) struct Number<'a>(&'a serde_json::Number);

impl JsonNumber for Number<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.0.as_u64()
    }

    fn as_i64(&self) -> Option<i64> {
        self.0.as_i64()
    }

    fn as_f64(&self) -> Option<f64> {
        self.0.as_f64()
    }

    /// Asked for where all digits count.
    fn as_str(&self) -> Cow<'_, str> {
        if may_be_rounded(self.0) {
            unwind(BrokenOff::Inexact);
        }
        JsonNumber::as_str(self.0)
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        Cow::Borrowed(self.0)
    }

    fn is_integer(&self) -> bool {
        self.0.is_integer()
    }

    fn is_written_as_integer(&self) -> bool {
        self.0.is_written_as_integer()
    }
}

/// True for a double that may have been an integer of more than 64 bits.
fn may_be_rounded(number: &serde_json::Number) -> bool {
    const BEYOND: f64 = (1_u64 << 63) as f64;
    number.is_f64() && number.as_f64().is_some_and(|number| number.abs() >= BEYOND)
}

/// True if one of the numbers in a value may have been an integer of more than 64 bits.
fn has_rounded(value: &Value) -> bool {
    match value {
        Value::Number(number) => may_be_rounded(number),
        Value::Array(items) => items.iter().any(has_rounded),
        Value::Object(members) => members.values().any(has_rounded),
        _ => false,
    }
}

impl<'a> Node<'a, Metered> for Looked<'a> {
    type Object = Members<'a>;
    type Array = Items<'a>;
    type Number = Number<'a>;

    fn as_object(&self) -> Option<Members<'a>> {
        look();
        self.value.as_object().map(Members)
    }

    fn as_array(&self) -> Option<Items<'a>> {
        look();
        self.value.as_array().map(|items| Items(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        look();
        self.value.as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<Number<'a>> {
        look();
        self.value.as_number().map(Number)
    }

    fn as_boolean(&self) -> Option<bool> {
        look();
        self.value.as_bool()
    }

    fn is_null(&self) -> bool {
        look();
        self.value.is_null()
    }

    fn json_type(&self) -> JsonType {
        look_deeper();
        match self.value {
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
        // Numbers that are not equal as doubles are not equal.
        let is_equal = cmp::equal(self.value, expected);
        if is_equal && has_rounded(expected) {
            unwind(BrokenOff::Inexact);
        }
        is_equal
    }

    /// For errors, which keep a copy each, those of all alternatives too: they get nothing, their paths find the value.
    fn to_value(&self) -> Cow<'a, Value> {
        let meter = METER.get();
        match meter.errors.checked_sub(1) {
            Some(errors) => METER.set(Meter { errors, ..meter }),
            None => unwind(BrokenOff::Exhausted),
        }
        Cow::Owned(if self.is_name { self.value.clone() } else { Value::Null })
    }

    /// Asked for where a schema leads to itself.
    fn identity(&self) -> Option<NodeIdentity> {
        look_deeper();
        Some(NodeIdentity::new(std::ptr::from_ref(self.value).addr()))
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
        self.0.get(key).map(Looked::new)
    }

    fn members(&self) -> Self::MembersIter {
        self.0.iter().map(|(name, value)| (name.as_str(), Looked::new(value)))
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
        self.0.iter().map(Looked::new)
    }

    fn is_unique(&self) -> bool {
        let is_unique = unique::is_unique(self.0);
        if !is_unique && self.0.iter().any(has_rounded) {
            unwind(BrokenOff::Inexact);
        }
        is_unique
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
pub(super) fn mark(schema: &mut Map<String, Value>) -> crate::error::Result<()> {
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
