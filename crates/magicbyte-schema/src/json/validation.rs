//! Validation of payloads by their schema, beyond the types of the column. The validator is the crate `jsonschema`.

use std::collections::HashMap;
use std::fmt::{self, Write};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::documents::Documents;
use super::metered::{BrokenOff, Looked, Metered, mark, metered};
use super::read::{no_json, number_len};
use crate::budget::MAX_COLUMNS;
use crate::error::{Result, SchemaError};
use crate::failure::{Attempt, Failure};
use crate::payload::Payload;

/// Looks at values that any payload may take, and those for each of its bytes.
const LOOKS: u64 = 1 << 20;
const LOOKS_PER_BYTE: u64 = 1 << 8;
/// Errors that the validator may make to find the first one, and bytes that their paths may take: those of all
/// alternatives count.
const ERRORS: u64 = 1 << 14;
const BYTES_OF_ERRORS: u64 = 1 << 26;
/// Bytes of a compiled regular expression: the time for each byte of a text grows with it.
const PATTERN_SIZE: usize = 1 << 20;
/// Bytes of a message, and of what it quotes.
const LONGEST: usize = 300;
const LONGEST_VALUE: usize = 60;

/// The validators of schemas.
pub(super) struct Validation {
    /// For payloads without a writer.
    reader: Option<Validator<Metered>>,
    writers: HashMap<u32, Validator<Metered>>,
    with_formats: bool,
}

impl Validation {
    pub(super) fn new(reader: Option<(&str, &[(&str, &str)])>, with_formats: bool) -> Result<Self> {
        let reader = reader.map(|(schema, references)| validator(schema, references, with_formats));
        Ok(Self { reader: reader.transpose()?, writers: HashMap::new(), with_formats })
    }

    pub(super) fn add_writer(&mut self, key: u32, schema: &str, references: &[(&str, &str)]) -> Result<()> {
        self.writers.insert(key, validator(schema, references, self.with_formats)?);
        Ok(())
    }

    pub(super) fn check(&self, payload: &str, writer: u32) -> Attempt<()> {
        let validator = match writer {
            Payload::NO_WRITER => self.reader.as_ref(),
            key => self.writers.get(&key),
        };
        let validator = validator.ok_or_else(|| Failure::new("it names no schema to validate it by"))?;
        let value = parsed(payload)?;
        let size = payload.len() as u64;
        let looks = LOOKS.saturating_add(LOOKS_PER_BYTE.saturating_mul(size));
        let errors = ERRORS.min(BYTES_OF_ERRORS / size.max(1));
        match metered(looks, errors, || validator.is_valid(Looked::new(&value))) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let message = metered(looks, errors, || first_error(validator, &value));
                Err(Failure::new(message.unwrap_or_else(|_| {
                    "it is not valid, and its schema has too many alternatives to say where".to_owned()
                })))
            }
            Err(BrokenOff::Inexact) => {
                Err(Failure::new("its schema compares numbers beyond 64 bits, which are not validated"))
            }
            Err(BrokenOff::Exhausted) => Err(Failure::new(format!(
                "validating it takes more than {looks} steps or nests too deep: its schema multiplies"
            ))),
        }
    }
}

/// The value of a payload. A number that is larger than all doubles is the largest one.
fn parsed(payload: &str) -> Attempt<Value> {
    let found = serde_json::from_str(payload);
    let Err(error) = &found else { return Ok(found.unwrap_or_default()) };
    let failure = no_json(error, payload, 0);
    match with_finite_numbers(payload) {
        Some(text) => serde_json::from_str(&text).map_err(|_| failure),
        None => Err(failure),
    }
}

/// Replaces each number that is larger than all doubles by the largest one; returns `None` if there is nothing to
/// replace.
fn with_finite_numbers(payload: &str) -> Option<String> {
    let (mut finite, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(&byte) = payload.as_bytes().get(at) {
        at += match byte {
            b'"' => string_len(&payload.as_bytes()[at..]),
            b'-' | b'0'..=b'9' => {
                let length = number_len(&payload.as_bytes()[at..]).unwrap_or(1);
                let number: f64 = payload[at..at + length].parse().unwrap_or_default();
                if number.is_infinite() {
                    finite.push_str(&payload[copied..at]);
                    finite.push_str(&format!("{:e}", f64::MAX.copysign(number)));
                    copied = at + length;
                }
                length
            }
            _ => 1,
        };
    }
    (copied > 0).then(|| finite + &payload[copied..])
}

/// The bytes of the string that these begin with, and of its quotes.
fn string_len(text: &[u8]) -> usize {
    let mut end = 1;
    loop {
        match text.get(end) {
            Some(b'\\') => end += 2,
            Some(b'"') => return end + 1,
            Some(_) => end += 1,
            None => return end,
        }
    }
}

/// The place in the value, the fault there, and the rule that reports it.
fn first_error(validator: &Validator<Metered>, value: &Value) -> String {
    let Err(error) = validator.validate(Looked::new(value)) else { return "it is not valid".to_owned() };
    let pointer = error.instance_path().as_str();
    let shown = value.pointer(pointer).map_or_else(String::new, |value| cut(LONGEST_VALUE, value));
    let rule = error.schema_path().as_str();
    let what = match error.kind() {
        // Its own fault is that of a name, which it has.
        ValidationErrorKind::PropertyNames { error } => cut(LONGEST, error),
        ValidationErrorKind::Contains => {
            let count = ["minContains", "maxContains"].into_iter().find(|keyword| rule.ends_with(keyword));
            match count {
                Some("minContains") => {
                    format!("{shown} has fewer items that contains allows than minContains")
                }
                Some(_) => format!("{shown} has more items that contains allows than maxContains"),
                None => cut(LONGEST, error.masked_with(shown)),
            }
        }
        _ => cut(LONGEST, error.masked_with(shown)),
    };
    let at = if pointer.is_empty() { String::new() } else { format!("{}: ", cut(LONGEST, pointer)) };
    format!("{at}{what} (rule {})", cut(LONGEST, rule))
}

/// The reason why a schema is of no use for validation.
fn unusable(error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().as_str();
    let what = cut(LONGEST, error);
    let keyword = pointer.rsplit('/').next().unwrap_or_default();
    if keyword == "pattern" || pointer.contains("/patternProperties") {
        return format!(
            "to validate by it: {}: {what}: lookaround, backreferences and more than {PATTERN_SIZE} bytes are not read",
            cut(LONGEST, pointer)
        );
    }
    let at = if pointer.is_empty() { String::new() } else { format!("{}: ", cut(LONGEST, pointer)) };
    format!("to validate by it: {at}{what}")
}

fn validator(schema: &str, references: &[(&str, &str)], with_formats: bool) -> Result<Validator<Metered>> {
    let mut documents = Documents::parse(schema, references)?;
    let objects = objects(&documents.root) + documents.others.documents.iter().map(objects).sum::<usize>();
    if objects > MAX_COLUMNS {
        return Err(SchemaError::new(format!(
            "the schema has more than {MAX_COLUMNS} objects, too many to validate by"
        )));
    }
    documents.for_each_schema(&mut mark)?;
    let Documents { root, others } = documents;
    let draft = Draft::default().detect(&root);
    let mut options = jsonschema::options_for::<Metered>()
        .with_retriever(others)
        .should_validate_formats(with_formats)
        // Annotations, as in the newest drafts and for other validators.
        .without_content_media_type_support("application/json")
        .without_content_encoding_support("base64")
        // Without backtracking: time is bounded by the text and the pattern.
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_SIZE));
    if draft < Draft::Draft7 {
        // The draft does not define them, but the crate does.
        for name in ["date", "time", "idn-email"] {
            options = options.with_format(name, |_| true);
        }
    }
    options.build(&root).map_err(|error| SchemaError::new(unusable(&error)))
}

/// The number of objects in a document, including the document itself.
fn objects(document: &Value) -> usize {
    match document {
        Value::Object(members) => 1 + members.values().map(objects).sum::<usize>(),
        Value::Array(items) => items.iter().map(objects).sum(),
        _ => 0,
    }
}

/// Text for a message: of a long one, the start.
fn cut(longest: usize, text: impl fmt::Display) -> String {
    let mut cut = Cut { text: String::new(), longest };
    if write!(cut, "{text}").is_err() {
        cut.text.push_str("...");
    }
    cut.text
}

/// Text that takes no more than its longest.
struct Cut {
    text: String,
    longest: usize,
}

impl Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.floor_char_boundary(self.longest - self.text.len());
        self.text.push_str(&text[..end]);
        if end < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}
