//! The declarations of a schema as data, for comparing two schemas.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, Syntax};
use serde_json::{Map, Value, json};

use super::{features, files};
use crate::error::Result;

/// The messages of a schema and of the files that it imports, as JSON text; arguments are as for
/// [`ProtobufDecoder::new`](super::ProtobufDecoder::new).
///
/// `package` is the schema's, `messages` has the full names of its outermost messages, in order. `types` describes all
/// messages by their full names: their `package`; `local`, whether the schema itself declares them; `messages`, the
/// full names of those in them; and `fields`, each with `name`, `number`, `oneof`, the `label` that the text gives it,
/// and `type`: `{"kind": "scalar", "name": "int32"}`, and so on with `enum`, `message` and `group`, whose names are
/// full, or `{"kind": "map", "key": .., "value": ..}`. Entries of maps, and the messages that groups are, are in no
/// `messages`.
///
/// ```
/// let schema = r#"syntax = "proto3"; message Order { repeated string tags = 2; }"#;
/// let text = magicbyte_schema::protobuf::structure(schema, &[])?;
/// assert!(text.contains(r#"{"name":"tags","number":2,"label":"repeated","type":{"kind":"scalar","name":"string"}}"#));
/// # Ok::<(), magicbyte_schema::SchemaError>(())
/// ```
///
/// # Errors
/// If the schema does not compile.
pub fn structure(schema: &str, references: &[(&str, &str)]) -> Result<String> {
    let file = files::compile(schema, references)?;
    let mut types = Map::new();
    for message in file.parent_pool().all_messages().filter(|message| !message.is_map_entry()) {
        let local = message.parent_file() == file;
        types.insert(message.full_name().to_owned(), described(&message, local));
    }
    let messages: Vec<String> = file.messages().map(|message| message.full_name().to_owned()).collect();
    Ok(json!({ "package": file.package_name(), "messages": messages, "types": types }).to_string())
}

fn described(message: &MessageDescriptor, local: bool) -> Value {
    // In the order of the file.
    let declared = &message.descriptor_proto().field;
    let fields: Vec<FieldDescriptor> =
        declared.iter().filter_map(|field| message.get_field_by_name(field.name())).collect();
    let groups: Vec<Kind> =
        fields.iter().filter(|field| field.is_group()).map(FieldDescriptor::kind).collect();
    let is_group = |inner: &MessageDescriptor| {
        groups.iter().any(|kind| kind.as_message().is_some_and(|group| group == inner))
    };
    let messages: Vec<String> = message
        .child_messages()
        .filter(|inner| !inner.is_map_entry() && !is_group(inner))
        .map(|inner| inner.full_name().to_owned())
        .collect();
    let fields: Vec<Value> = fields.iter().map(field).collect();
    json!({ "package": message.package_name(), "local": local, "messages": messages, "fields": fields })
}

fn field(field: &FieldDescriptor) -> Value {
    let mut declaration = Map::new();
    declaration.insert("name".to_owned(), field.name().into());
    declaration.insert("number".to_owned(), field.number().into());
    let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
    if let Some(oneof) = &oneof {
        declaration.insert("oneof".to_owned(), oneof.name().into());
    } else if let Some(label) = label(field) {
        declaration.insert("label".to_owned(), label.into());
    }
    declaration.insert("type".to_owned(), type_of(field));
    declaration.into()
}

/// The label that the text gives it.
fn label(field: &FieldDescriptor) -> Option<&'static str> {
    if field.is_map() {
        None
    } else if field.is_list() {
        Some("repeated")
    } else if field.is_required() {
        Some("required")
    } else {
        let is_proto2 = field.parent_file().syntax() == Syntax::Proto2 && !features::has_edition(field);
        let written = is_proto2 || field.field_descriptor_proto().proto3_optional();
        written.then_some("optional")
    }
}

fn type_of(field: &FieldDescriptor) -> Value {
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
            json!({ "kind": "map", "key": type_of(&key), "value": type_of(&value) })
        }
        Kind::Message(message) if features::is_group(field) => named("group", message.full_name()),
        Kind::Message(message) => named("message", message.full_name()),
        Kind::Enum(of) => named("enum", of.full_name()),
        Kind::Double => named("scalar", "double"),
        Kind::Float => named("scalar", "float"),
        Kind::Int32 => named("scalar", "int32"),
        Kind::Int64 => named("scalar", "int64"),
        Kind::Uint32 => named("scalar", "uint32"),
        Kind::Uint64 => named("scalar", "uint64"),
        Kind::Sint32 => named("scalar", "sint32"),
        Kind::Sint64 => named("scalar", "sint64"),
        Kind::Fixed32 => named("scalar", "fixed32"),
        Kind::Fixed64 => named("scalar", "fixed64"),
        Kind::Sfixed32 => named("scalar", "sfixed32"),
        Kind::Sfixed64 => named("scalar", "sfixed64"),
        Kind::Bool => named("scalar", "bool"),
        Kind::String => named("scalar", "string"),
        Kind::Bytes => named("scalar", "bytes"),
    }
}

fn named(kind: &str, name: &str) -> Value {
    json!({ "kind": kind, "name": name })
}
