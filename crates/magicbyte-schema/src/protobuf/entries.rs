//! Entries of maps: `map<K, V> m = 1` is short for `repeated MEntry m = 1` and a message `MEntry` with
//! `option map_entry = true`.
//!
//! Descriptors have the long form, and so has the text that Confluent's Java client makes of them.

use prost_reflect::{Cardinality, DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use crate::error::{Result, SchemaError};

/// Refuses entries that no compiler makes: the columns of a map are those of its key and its value.
pub(super) fn check(pool: &DescriptorPool) -> Result<()> {
    let refused = |name: &str, reason: &str| {
        Err(SchemaError::new(format!("{name}: {reason}: option map_entry is for what map<..> stands for")))
    };
    for message in pool.all_messages().filter(MessageDescriptor::is_map_entry) {
        if !is_entry(&message) {
            let reason = "the map entry is not a key = 1 of an integer, bool or string, and a value = 2";
            return refused(message.full_name(), reason);
        }
    }
    for field in pool.all_messages().flat_map(|message| message.fields().collect::<Vec<_>>()) {
        let Kind::Message(entry) = field.kind() else { continue };
        if entry.is_map_entry() && !is_map(&field, &entry) {
            let entry = entry.full_name();
            let reason = format!(
                "its type is the map entry {entry}, expected a repeated field beside its entry, with its name"
            );
            return refused(field.full_name(), &reason);
        }
    }
    let is_entry = |kind: Kind| kind.as_message().is_some_and(MessageDescriptor::is_map_entry);
    match pool.all_extensions().find(|extension| is_entry(extension.kind())) {
        Some(extension) => refused(extension.full_name(), "an extension is no map"),
        None => Ok(()),
    }
}

fn is_entry(message: &MessageDescriptor) -> bool {
    let is_single = |field: &FieldDescriptor| {
        field.cardinality() == Cardinality::Optional && field.containing_oneof().is_none()
    };
    let field = |number| message.get_field(number).filter(is_single);
    match (field(1), field(2)) {
        (Some(key), Some(_)) => message.fields().len() == 2 && is_key(&key.kind()),
        _ => false,
    }
}

fn is_key(of: &Kind) -> bool {
    !matches!(of, Kind::Double | Kind::Float | Kind::Bytes | Kind::Enum(_) | Kind::Message(_))
}

/// Clients differ in where the name of an entry has capitals.
fn is_map(field: &FieldDescriptor, entry: &MessageDescriptor) -> bool {
    let letters = |name: &str| name.replace('_', "").to_ascii_lowercase();
    field.cardinality() == Cardinality::Repeated
        && entry.parent_message().as_ref() == Some(field.parent_message())
        && letters(entry.name()) == letters(field.name()) + "entry"
}
