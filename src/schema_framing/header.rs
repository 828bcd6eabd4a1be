//! The headers of records that name a schema.

use super::Framing;

/// The header with the schema of a record's key.
pub const KEY_SCHEMA_ID_HEADER: &str = "__key_schema_id";
/// The header with the schema of a record's value.
pub const VALUE_SCHEMA_ID_HEADER: &str = "__value_schema_id";

const APICURIO_KEY: &[u8] = b"apicurio.key.";
const APICURIO_VALUE: &[u8] = b"apicurio.value.";

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

impl SchemaHeader {
    /// The header with this key, for keys or values; `None` if it is another one.
    #[must_use]
    pub fn of(key: &[u8], is_key: bool) -> Option<Self> {
        let (confluent, apicurio) = if is_key {
            (KEY_SCHEMA_ID_HEADER, APICURIO_KEY)
        } else {
            (VALUE_SCHEMA_ID_HEADER, APICURIO_VALUE)
        };
        if key == confluent.as_bytes() {
            return Some(Self::Confluent);
        }
        match key.strip_prefix(apicurio)? {
            b"globalId" => Some(Self::ApicurioGlobalId),
            b"contentId" => Some(Self::ApicurioContentId),
            b"contentHash" | b"artifactId" => Some(Self::ApicurioOther),
            _ => None,
        }
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
