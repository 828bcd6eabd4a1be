//! Features of an encoded descriptor, for which prost's types of descriptors have no fields.

use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, UninterpretedOption,
};
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, Value};

use super::{feature, lower};

/// Numbers of the editions 2023 and 2024.
const EDITIONS: [i32; 2] = [1000, 1001];

/// Lowers the file that `encoded` is.
///
/// # Errors
/// For another edition, and as [`lower`].
pub(crate) fn lower_encoded(file: &mut FileDescriptorProto, encoded: &[u8]) -> Result<(), String> {
    let pool = DescriptorPool::global();
    let Some(of) = pool.get_message_by_name("google.protobuf.FileDescriptorProto") else { return Ok(()) };
    let message = DynamicMessage::decode(of, encoded).map_err(|error| error.to_string())?;
    let edition = message.get_field_by_name("edition").and_then(|edition| edition.as_enum_number());
    if !edition.is_some_and(|edition| EDITIONS.contains(&edition)) {
        return Err(format!(
            "the edition {}: expected 1000 (2023) or 1001 (2024)",
            edition.unwrap_or_default()
        ));
    }
    file.options.get_or_insert_default().uninterpreted_option.extend(features(&message));
    each(&message, "message_type", &mut file.message_type, add_to_message);
    each(&message, "enum_type", &mut file.enum_type, add_to_enum);
    each(&message, "extension", &mut file.extension, add_to_field);
    lower(file)
}

fn add_to_message(message: &DynamicMessage, to: &mut DescriptorProto) {
    to.options.get_or_insert_default().uninterpreted_option.extend(features(message));
    each(message, "nested_type", &mut to.nested_type, add_to_message);
    each(message, "enum_type", &mut to.enum_type, add_to_enum);
    each(message, "field", &mut to.field, add_to_field);
    each(message, "extension", &mut to.extension, add_to_field);
}

fn add_to_enum(message: &DynamicMessage, to: &mut EnumDescriptorProto) {
    to.options.get_or_insert_default().uninterpreted_option.extend(features(message));
}

fn add_to_field(message: &DynamicMessage, to: &mut FieldDescriptorProto) {
    to.options.get_or_insert_default().uninterpreted_option.extend(features(message));
}

/// The declarations in a field of a descriptor, which `to` has, too.
fn each<T>(message: &DynamicMessage, field: &str, to: &mut [T], add: fn(&DynamicMessage, &mut T)) {
    let Some(found) = message.get_field_by_name(field) else { return };
    let found = found.as_list().unwrap_or_default();
    for (found, to) in found.iter().filter_map(Value::as_message).zip(to) {
        add(found, to);
    }
}

/// The features that a declaration has itself.
fn features(message: &DynamicMessage) -> Vec<UninterpretedOption> {
    let options = message.get_field_by_name("options");
    let features = options.as_ref().and_then(|options| options.as_message()?.get_field_by_name("features"));
    let Some(features) = features.as_ref().and_then(|features| features.as_message()) else {
        return Vec::new();
    };
    let named = features.fields().filter_map(|(field, value)| {
        let Kind::Enum(of) = field.kind() else { return None };
        let value = of.get_value(value.as_enum_number()?)?;
        Some(feature(field.name(), value.name()))
    });
    named.collect()
}
