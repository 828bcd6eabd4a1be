//! The table of Kafka's messages: `messages.json`, which `scripts/messages.py` makes from the definitions inside
//! Kafka's jars. The keys are those of the definitions (`MessageSpec`, `FieldSpec`), and `topic`.

use std::sync::LazyLock;

use serde::Deserialize;

use magicbyte::{Error, ErrorKind, Result};

static TABLE: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    // The file is a part of the crate, and read by every test of this folder.
    serde_json::from_str(include_str!("messages.json")).expect("messages.json has the table's form")
});

/// The role of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// The header before the body of a request or response.
    Header,
    /// From a client, or between brokers.
    Request,
    /// The answer to a request of the same API and version.
    Response,
    /// The key of a coordinator's record.
    CoordinatorKey,
    /// The value of a coordinator's record.
    CoordinatorValue,
    /// The value of a record whose type is in a frame around it.
    Metadata,
    /// A part of a record.
    Data,
}

/// A message in a range of versions.
#[doc(hidden)]
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// The topic of a record.
    pub(crate) topic: Option<&'static str>,
    /// The API key of a request or response, or the type of a record. Headers and data have none.
    pub(crate) api_key: Option<i16>,
    #[serde(rename = "type")]
    pub(crate) role: Role,
    pub(crate) name: &'static str,
    pub(crate) valid_versions: Versions,
    pub(crate) flexible_versions: Versions,
    pub fields: Vec<Field>,
}

/// A field of a message or structure.
#[doc(hidden)]
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    /// The name as in Kafka's JSON: the first letter is lowercase.
    pub name: &'static str,
    #[serde(rename = "type")]
    pub(crate) kind: Type,
    pub versions: Versions,
    #[serde(default)]
    pub(crate) nullable_versions: Versions,
    tag: Option<u32>,
    #[serde(default)]
    tagged_versions: Versions,
    /// The flexible versions of the field, if they differ from the message's: the client id is never compact.
    flexible_versions: Option<Versions>,
    pub(crate) default: Option<FieldDefault>,
    pub(crate) secret: Option<Secret>,
    /// The fields of a structure, or of the structures in an array.
    #[serde(default)]
    pub fields: Vec<Field>,
}

/// A field's default other than false, zero or empty.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum FieldDefault {
    /// The default of a bool.
    Bool(bool),
    /// The default of an integer.
    Int(i64),
    /// The text "null", the only text that is a default.
    Null(#[expect(dead_code, reason = "there is one text")] &'static str),
}

/// The condition under which a field's value is secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Secret {
    /// In every message.
    Always,
    /// If it is the value of a secret config, whose name is in the field `name` or `key` beside it.
    Config,
    /// If it has records of `__cluster_metadata`, which hold the passwords and keys of the cluster.
    ClusterMetadata,
}

/// The type of a field, or of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Float64,
    Uuid,
    String,
    Bytes,
    Records,
    Struct,
}

/// A type, as `[]int32`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "&str")]
pub(crate) struct Type {
    pub(crate) array: bool,
    pub(crate) element: Scalar,
}

impl TryFrom<&str> for Type {
    type Error = String;

    fn try_from(text: &str) -> std::result::Result<Self, String> {
        let (array, element) = match text.strip_prefix("[]") {
            Some(element) => (true, element),
            None => (false, text),
        };
        let element = match element {
            "bool" => Scalar::Bool,
            "int8" => Scalar::Int8,
            "int16" => Scalar::Int16,
            "uint16" => Scalar::Uint16,
            "int32" => Scalar::Int32,
            "uint32" => Scalar::Uint32,
            "int64" => Scalar::Int64,
            "float64" => Scalar::Float64,
            "uuid" => Scalar::Uuid,
            "string" => Scalar::String,
            "bytes" => Scalar::Bytes,
            "records" => Scalar::Records,
            "struct" => Scalar::Struct,
            _ => return Err(format!("unknown type {text}")),
        };
        Ok(Self { array, element })
    }
}

/// A range of versions, both ends inclusive: "0-3", "4+", "2" or "none".
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "&str")]
pub struct Versions {
    pub(crate) first: i16,
    pub(crate) last: i16,
}

impl Default for Versions {
    fn default() -> Self {
        Self { first: 0, last: -1 }
    }
}

#[doc(hidden)]
impl Versions {
    pub fn contain(self, version: i16) -> bool {
        (self.first..=self.last).contains(&version)
    }
}

impl TryFrom<&str> for Versions {
    type Error = std::num::ParseIntError;

    fn try_from(text: &str) -> std::result::Result<Self, Self::Error> {
        if text == "none" {
            return Ok(Self::default());
        }
        if let Some(first) = text.strip_suffix('+') {
            return Ok(Self { first: first.parse()?, last: i16::MAX });
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Ok(Self { first: first.parse()?, last: last.parse()? })
    }
}

impl Field {
    /// The tag, if the version has the field as a tagged one.
    #[doc(hidden)]
    #[must_use]
    pub fn tag(&self, version: i16) -> Option<u32> {
        self.tag.filter(|_| self.tagged_versions.contain(version))
    }

    /// True if the lengths of the field are compact in this version; `flexible` says whether the version is flexible.
    pub(crate) fn is_compact(&self, version: i16, flexible: bool) -> bool {
        self.flexible_versions.map_or(flexible, |versions| versions.contain(version))
    }
}

impl Definition {
    /// True if the version has compact lengths and tagged fields (KIP-482).
    pub(crate) fn is_flexible(&self, version: i16) -> bool {
        self.flexible_versions.contain(version)
    }
}

/// The definition of a header by its name.
pub(crate) fn header(name: &str) -> &'static Definition {
    // Both headers are in the table, which is a part of the crate.
    TABLE.iter().find(|one| one.name == name).expect("a header of the table")
}

/// All definitions of an API's requests or responses, oldest versions first.
pub(crate) fn definitions(role: Role, api_key: i16) -> impl Iterator<Item = &'static Definition> {
    TABLE.iter().filter(move |one| one.role == role && one.api_key == Some(api_key))
}

/// The definition of a version.
pub(crate) fn definition(role: Role, api_key: i16, version: i16) -> Result<&'static Definition> {
    let mut found = definitions(role, api_key).peekable();
    let Some(oldest) = found.peek().copied() else {
        return Err(unknown_api(api_key));
    };
    let mut last = oldest;
    for one in found {
        if one.valid_versions.contain(version) {
            return Ok(one);
        }
        last = one;
    }
    let why = format!(
        "{} version {version} is not known: expected {} to {}",
        oldest.name, oldest.valid_versions.first, last.valid_versions.last
    );
    Err(Error::new(ErrorKind::UnsupportedVersion(why)).in_field("requestApiVersion"))
}

#[cold]
pub(crate) fn unknown_api(key: i16) -> Error {
    let why = format!("API key {key} is not known: expected one of Kafka 3.9 to 4.4");
    Error::new(ErrorKind::UnsupportedVersion(why)).in_field("requestApiKey")
}

/// The definition of a part of a topic's records, by their type.
pub(crate) fn record(topic: &str, role: Role, record_type: i16) -> Option<&'static Definition> {
    let found =
        |one: &&Definition| one.role == role && one.api_key == Some(record_type) && one.topic == Some(topic);
    TABLE.iter().find(found)
}

/// The definition of data by its name.
pub(crate) fn data(name: &str) -> Option<&'static Definition> {
    TABLE.iter().find(|one| one.role == Role::Data && one.name == name)
}
