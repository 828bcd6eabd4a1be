//! The properties of fields and enums that the syntax of their file decides, or with editions a feature.
//!
//! prost-reflect knows no editions: [`edition`](super::edition) makes a file of an edition one of proto2, whose fields and
//! enums have all their features among their options.

use prost_reflect::{
    DynamicMessage, EnumDescriptor, ExtensionDescriptor, FieldDescriptor, Kind, Syntax, Value,
};

/// Numbers of the values in `google.protobuf.FeatureSet`.
const IMPLICIT: i32 = 2;
const OPEN: i32 = 1;
const DELIMITED: i32 = 2;

/// True if a message says that the field is set, even if it has its default.
pub(super) fn has_presence(field: &FieldDescriptor) -> bool {
    let is_implicit = feature(&field.options(), "field_presence") == Some(IMPLICIT);
    field.supports_presence() && (!is_implicit || !is_scalar(field) || field.containing_oneof().is_some())
}

/// True if the message in a field is stored as a group.
pub(super) fn is_group(field: &FieldDescriptor) -> bool {
    field.is_group() || !is_scalar(field) && !field.is_map() && is_delimited(&field.options())
}

/// The same for an extension.
pub(super) fn is_group_extension(extension: &ExtensionDescriptor) -> bool {
    let is_message = matches!(extension.kind(), Kind::Message(_));
    extension.is_group() || is_message && is_delimited(&extension.options())
}

fn is_delimited(options: &DynamicMessage) -> bool {
    feature(options, "message_encoding") == Some(DELIMITED)
}

/// The index of the oneof that the file has the field in.
pub(super) fn oneof(field: &FieldDescriptor) -> Option<usize> {
    let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic())?;
    field.parent_message().oneofs().position(|other| other == oneof)
}

/// True if a number without a name is not a value of the enum.
pub(super) fn is_closed(of: &EnumDescriptor) -> bool {
    of.parent_file().syntax() == Syntax::Proto2 && feature(&of.options(), "enum_type") != Some(OPEN)
}

/// True if the file has an edition, in which fields have no labels besides `repeated`.
pub(super) fn has_edition(field: &FieldDescriptor) -> bool {
    feature(&field.parent_file().options(), "field_presence").is_some_and(|presence| presence != 0)
}

fn is_scalar(field: &FieldDescriptor) -> bool {
    !matches!(field.kind(), Kind::Message(_))
}

fn feature(options: &DynamicMessage, name: &str) -> Option<i32> {
    let features = options.get_field_by_name("features")?;
    let value = features.as_message()?.get_field_by_name(name)?.into_owned();
    match value {
        Value::EnumNumber(number) => Some(number),
        _ => None,
    }
}
