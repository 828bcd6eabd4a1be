//! The options of a schema, most of which no payload needs.

use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, UninterpretedOption,
};

/// True for an option that is kept.
type Keep = fn(&UninterpretedOption) -> bool;

/// Leaves out services, declarations of options, and options, except those that change how payloads are read, and those to
/// `keep`.
pub(super) fn strip(file: &mut FileDescriptorProto, keep: Keep) {
    file.service.clear();
    file.source_code_info = None;
    if let Some(options) = &mut file.options {
        options.uninterpreted_option.retain(keep);
    }
    strip_extensions(&mut file.extension, keep);
    file.enum_type.iter_mut().for_each(|of| strip_enum(of, keep));
    file.message_type.iter_mut().for_each(|message| strip_message(message, keep));
}

fn strip_message(message: &mut DescriptorProto, keep: Keep) {
    if let Some(options) = &mut message.options {
        // Confluent's Java client makes text of descriptors, in which maps are repeated entries.
        if let Some(is_entry) = flag(&options.uninterpreted_option, "map_entry") {
            options.map_entry = Some(is_entry);
        }
        options.uninterpreted_option.retain(keep);
    }
    message.extension_range.iter_mut().for_each(|range| range.options = None);
    message.oneof_decl.iter_mut().for_each(|oneof| oneof.options = None);
    strip_extensions(&mut message.extension, keep);
    message.field.iter_mut().for_each(|field| strip_field(field, keep));
    message.enum_type.iter_mut().for_each(|of| strip_enum(of, keep));
    message.nested_type.iter_mut().for_each(|inner| strip_message(inner, keep));
}

/// Those of options are in no payload.
fn strip_extensions(extensions: &mut Vec<FieldDescriptorProto>, keep: Keep) {
    extensions.retain(|extension| {
        let extendee = extension.extendee().trim_start_matches('.');
        !(extendee.starts_with("google.protobuf.") && extendee.ends_with("Options"))
    });
    extensions.iter_mut().for_each(|extension| strip_field(extension, keep));
}

fn strip_field(field: &mut FieldDescriptorProto, keep: Keep) {
    if let Some(options) = &mut field.options {
        if let Some(is_packed) = flag(&options.uninterpreted_option, "packed") {
            options.packed = Some(is_packed);
        }
        options.uninterpreted_option.retain(keep);
    }
}

fn strip_enum(of: &mut EnumDescriptorProto, keep: Keep) {
    of.value.iter_mut().for_each(|value| value.options = None);
    if let Some(options) = &mut of.options {
        if let Some(is_aliased) = flag(&options.uninterpreted_option, "allow_alias") {
            options.allow_alias = Some(is_aliased);
        }
        options.uninterpreted_option.retain(keep);
    }
}

/// The value of the option of this name that `google/protobuf/descriptor.proto` declares as a bool.
fn flag(options: &[UninterpretedOption], name: &str) -> Option<bool> {
    let is_named = |option: &&UninterpretedOption| match option.name.as_slice() {
        [part] => part.name_part == name && !part.is_extension,
        _ => false,
    };
    options.iter().find(is_named).map(|option| option.identifier_value() == "true")
}
