//! The headers of records that name a schema.

use super::Framing;

/// The header with the schema of a record's key.
pub const KEY_SCHEMA_ID_HEADER: &str = "__key_schema_id";
/// The header with the schema of a record's value.
pub const VALUE_SCHEMA_ID_HEADER: &str = "__value_schema_id";

/// A header that names the schema of a key or value; of several, the smallest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SchemaHeader {
    /// Confluent's: an id or a GUID as it would be in the value.
    Confluent,
    /// Apicurio's `globalId`: 8 bytes.
    ApicurioGlobalId,
    /// Apicurio's `contentId`: 8 bytes.
    ApicurioContentId,
    /// Apicurio's `contentHash`, or `artifactId` with `groupId` and `version`: text.
    ApicurioOther,
}

const KEY_HEADERS: [(&str, SchemaHeader); 5] = [
    (KEY_SCHEMA_ID_HEADER, SchemaHeader::Confluent),
    ("apicurio.key.globalId", SchemaHeader::ApicurioGlobalId),
    ("apicurio.key.contentId", SchemaHeader::ApicurioContentId),
    ("apicurio.key.contentHash", SchemaHeader::ApicurioOther),
    ("apicurio.key.artifactId", SchemaHeader::ApicurioOther),
];
const VALUE_HEADERS: [(&str, SchemaHeader); 5] = [
    (VALUE_SCHEMA_ID_HEADER, SchemaHeader::Confluent),
    ("apicurio.value.globalId", SchemaHeader::ApicurioGlobalId),
    ("apicurio.value.contentId", SchemaHeader::ApicurioContentId),
    ("apicurio.value.contentHash", SchemaHeader::ApicurioOther),
    ("apicurio.value.artifactId", SchemaHeader::ApicurioOther),
];

impl SchemaHeader {
    /// The headers of keys or values by their keys, in the order in which they count.
    #[must_use]
    pub fn all(is_key: bool) -> &'static [(&'static str, Self)] {
        if is_key { &KEY_HEADERS } else { &VALUE_HEADERS }
    }

    /// The header with this key, for keys or values; `None` if it is another one.
    #[must_use]
    pub fn of(key: &[u8], is_key: bool) -> Option<Self> {
        Self::all(is_key).iter().find(|header| header.0.as_bytes() == key).map(|header| header.1)
    }

    /// The key of Apicurio's header with the name of a Protobuf message, without its package.
    #[must_use]
    pub fn protobuf_type(is_key: bool) -> &'static [u8] {
        if is_key { b"apicurio.protobuf.type.key" } else { b"apicurio.protobuf.type" }
    }

    /// True if values with this framing may have the header.
    #[must_use]
    pub fn is_of(self, framing: Framing) -> bool {
        match framing {
            Framing::Auto => true,
            Framing::Confluent => self == Self::Confluent,
            Framing::Apicurio => self != Self::Confluent,
            Framing::Glue | Framing::SingleObject | Framing::Bare => false,
        }
    }
}
