//! Structs of messages, from the table `messages.json`: `body.rs` in `src/message` says what they are.
//!
//! The output names the fields, their types and their defaults, for the macros `structure` and `body` there.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

const TABLE: &str = "src/message/messages.json";
/// Lints that are about written code.
const LINTS: &str = "#[allow(clippy::unreadable_literal, clippy::wildcard_imports, reason = \"generated\")]";

/// A message in a range of versions.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    name: String,
    #[serde(rename = "type")]
    role: String,
    api_key: Option<i16>,
    valid_versions: String,
    flexible_versions: String,
    fields: Vec<Field>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Field {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    /// The name of the structure.
    #[serde(rename = "struct")]
    structure: Option<String>,
    versions: String,
    #[serde(default)]
    nullable_versions: String,
    #[serde(default)]
    default: serde_json::Value,
    #[serde(default)]
    fields: Vec<Field>,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={TABLE}");
    println!("cargo::rerun-if-changed=build.rs");
    let table: Vec<Message> = serde_json::from_str(&fs::read_to_string(TABLE)?)?;
    let target = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(target.join("api_keys.rs"), api_keys(&table)?)?;
    let mut out = String::new();
    // The newest definition of a message is its last one: versions that Kafka has removed have no structs.
    let newest: BTreeMap<_, _> = table.iter().map(|message| (message.name.as_str(), message)).collect();
    for name in ["RequestHeader", "ResponseHeader"] {
        let header = newest.get(name).ok_or(name)?;
        let doc = "The fields before the body of a message.";
        write_structure(&mut out, name, doc, &header.fields, &mut Vec::new())?;
    }
    let bodies: Vec<_> = newest.values().filter(|message| message.api().is_some()).collect();
    for message in &bodies {
        write_message(&mut out, message)?;
    }
    let names: Vec<_> = bodies.iter().map(|message| &*message.name).collect();
    writeln!(
        out,
        "#[cfg(test)]\nmacro_rules! all_bodies {{ () => {{ round_trips!({}); }} }}",
        names.join(", ")
    )?;
    fs::write(target.join("body.rs"), out)?;
    Ok(())
}

/// The names, keys and versions of all APIs, for the macro `api_keys`.
fn api_keys(table: &[Message]) -> Result<String, Box<dyn Error>> {
    let mut apis = BTreeMap::new();
    for request in table.iter().filter(|message| message.role == "request") {
        apis.entry(request.api_key.ok_or("a request without a key")?).or_insert_with(Vec::new).push(request);
    }
    let mut out = String::from("api_keys! {\n");
    for (key, requests) in apis {
        // Oldest versions first.
        let (oldest, newest) = (requests[0], requests[requests.len() - 1]);
        let name = newest.name.strip_suffix("Request").ok_or("a request's name")?;
        let (min, max) = (oldest.versions()?.0, newest.versions()?.1);
        let mut flexible = None;
        for request in requests {
            flexible = flexible.or(request.first_flexible()?);
        }
        writeln!(out, "    {name} = {key}, {min} to {max}, {flexible:?};")?;
    }
    Ok(out + "}\n")
}

impl Message {
    /// The name of the API, and whether this is its `Request` or `Response`; none for other messages.
    fn api(&self) -> Option<(&str, &str)> {
        let role = match &*self.role {
            "request" => "Request",
            "response" => "Response",
            _ => return None,
        };
        Some((self.name.strip_suffix(role)?, role))
    }

    /// The oldest and the newest version.
    fn versions(&self) -> Result<(i16, i16), Box<dyn Error>> {
        let (first, last) = self.valid_versions.split_once('-').ok_or("a range of versions")?;
        Ok((first.parse()?, last.parse()?))
    }

    /// The oldest version that is flexible: all after it are, too.
    fn first_flexible(&self) -> Result<Option<i16>, Box<dyn Error>> {
        let Some(first) = self.flexible_versions.strip_suffix('+') else { return Ok(None) };
        let (oldest, newest) = self.versions()?;
        Ok(Some(oldest.max(first.parse()?)).filter(|first| *first <= newest))
    }
}

fn write_message(out: &mut String, message: &Message) -> Result<(), Box<dyn Error>> {
    let name = &message.name;
    let (api, role) = message.api().ok_or("a request or response")?;
    let module = snake_case(name);
    let (first, last) = message.versions()?;
    let ty = type_name(name, &message.fields);
    writeln!(out, "pub use {module}::{name};\nbody!({ty}, {role}, {api}, {first}, {last});")?;
    writeln!(out, "/// Structures of a {name}.\n{LINTS}\npub mod {module} {{\n    use super::*;")?;
    let doc = format!(
        "{} {api} in versions {first} to {last}.",
        if role == "Request" { "A request for" } else { "A response to" }
    );
    let mut written = Vec::new();
    write_structure(out, name, &doc, &message.fields, &mut written)?;
    out.push_str("}\n");
    Ok(())
}

/// Writes a structure and those inside it. Kafka's names are unique in a message.
fn write_structure<'t>(
    out: &mut String,
    name: &'t str,
    doc: &str,
    fields: &'t [Field],
    written: &mut Vec<&'t str>,
) -> Result<(), Box<dyn Error>> {
    if written.contains(&name) {
        return Ok(());
    }
    written.push(name);
    writeln!(out, "    structure! {{\n        /// {doc}\n        {} {{", type_name(name, fields))?;
    for field in fields {
        let (doc, ty, default) = (field.doc(), field.ty()?, field.default_value()?);
        let (name, kafka) = (snake_case(&field.name), &field.name);
        writeln!(out, "            /// {doc}\n            {name} {kafka:?}: {ty}{default},")?;
    }
    out.push_str("        }\n    }\n");
    for field in fields {
        if let Some(inner) = &field.structure {
            let doc = format!("A structure in `{}`.", field.name);
            write_structure(out, inner, &doc, &field.fields, written)?;
        }
    }
    Ok(())
}

impl Field {
    fn doc(&self) -> String {
        let versions = match (self.versions.strip_suffix('+'), self.versions.split_once('-')) {
            (Some("0"), _) => "all versions".into(),
            (Some(first), _) => format!("versions {first} and later"),
            (None, Some((first, last))) => format!("versions {first} to {last}"),
            (None, None) => format!("version {}", self.versions),
        };
        format!("Kafka's `{}`, in {versions}.", self.name)
    }

    fn ty(&self) -> Result<String, Box<dyn Error>> {
        let ty = self.value_type()?;
        Ok(if self.is_nullable() { format!("Option<{ty}>") } else { ty })
    }

    /// The type of a value that is not null.
    fn value_type(&self) -> Result<String, Box<dyn Error>> {
        let (is_array, element) = self.element();
        let element = match (element, &self.structure) {
            ("bool", _) => "bool".into(),
            ("int8" | "int16" | "int32" | "int64", _) => element.replace("int", "i"),
            ("uint16" | "uint32", _) => element.replace("uint", "u"),
            ("float64", _) => "f64".into(),
            ("uuid", _) => "[u8; 16]".into(),
            ("string", _) => "Cow<'a, str>".into(),
            ("bytes", _) => "Cow<'a, [u8]>".into(),
            ("records", _) => "Records<'a>".into(),
            (_, Some(name)) => type_name(name, &self.fields),
            (unknown, None) => return Err(format!("{}: the type {unknown}", self.name).into()),
        };
        Ok(if is_array { format!("Vec<{element}>") } else { element })
    }

    /// The default after its sign; empty if it is the type's.
    fn default_value(&self) -> Result<String, Box<dyn Error>> {
        let value = match &self.default {
            serde_json::Value::Null if self.is_nullable() => format!("<{}>::default()", self.value_type()?),
            serde_json::Value::Null => return Ok(String::new()),
            serde_json::Value::Bool(value) => value.to_string(),
            serde_json::Value::Number(number) => number.to_string(),
            serde_json::Value::String(text) if text == "null" => return Ok(String::new()),
            unknown => return Err(format!("{}: the default {unknown}", self.name).into()),
        };
        Ok(if self.is_nullable() { format!(" = Some({value})") } else { format!(" = {value}") })
    }

    /// True for an array, and the type of a value or element.
    fn element(&self) -> (bool, &str) {
        self.kind.strip_prefix("[]").map_or((false, &self.kind), |element| (true, element))
    }

    fn is_nullable(&self) -> bool {
        !matches!(&*self.nullable_versions, "" | "none")
    }

    /// True if the field's type has a lifetime.
    fn borrows(&self) -> bool {
        matches!(self.element().1, "string" | "bytes" | "records") || self.fields.iter().any(Field::borrows)
    }
}

/// A structure's name, with its lifetime if it borrows.
fn type_name(name: &str, fields: &[Field]) -> String {
    if fields.iter().any(Field::borrows) { format!("{name}<'a>") } else { name.into() }
}

/// `maxWaitMs` and `MaxWaitMs` as `max_wait_ms`; a keyword as `r#type`.
fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for (place, c) in name.char_indices() {
        if c.is_ascii_uppercase() && place > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    if matches!(&*out, "match" | "type") { format!("r#{out}") } else { out }
}
