//! Validation of payloads by their schema, beyond the types of the column. The validator is the crate `jsonschema`.

use std::collections::HashMap;
use std::fmt::{self, Write};

use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::documents::Documents;
use super::metered::{Looked, Metered, mark, metered};
use super::read::no_json;
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
        let value: Value = serde_json::from_str(payload).map_err(|error| no_json(&error, payload, 0))?;
        let size = payload.len() as u64;
        let looks = LOOKS.saturating_add(LOOKS_PER_BYTE.saturating_mul(size));
        let errors = ERRORS.min(BYTES_OF_ERRORS / size.max(1));
        match metered(looks, errors, || validator.is_valid(Looked(&value))) {
            Some(true) => Ok(()),
            Some(false) => {
                let message = metered(looks, errors, || first_error(validator, &value));
                Err(Failure::new(message.unwrap_or_else(|| {
                    "it is not valid, and its schema has too many alternatives to say where".to_owned()
                })))
            }
            None => Err(Failure::new(format!(
                "validating it takes more than {looks} steps or nests too deep: its schema multiplies"
            ))),
        }
    }
}

/// The place in the value, the fault there, and the rule that reports it.
fn first_error(validator: &Validator<Metered>, value: &Value) -> String {
    let Err(error) = validator.validate(Looked(value)) else { return "it is not valid".to_owned() };
    let pointer = error.instance_path().as_str();
    let shown = value.pointer(pointer).map_or_else(String::new, |value| cut(LONGEST_VALUE, value));
    let what = cut(LONGEST, error.masked_with(shown));
    let at = if pointer.is_empty() { String::new() } else { format!("{}: ", cut(LONGEST, pointer)) };
    format!("{at}{what} (rule {})", cut(LONGEST, error.schema_path()))
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
