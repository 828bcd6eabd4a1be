//! Files of the editions 2023 and 2024, and some of proto3, as files of proto2.
//!
//! The features of an edition decide for each field and enum what the syntax decides elsewhere. A field that a message has to have,
//! a list that is packed and a closed enum can be said in proto2. For the rest, fields without presence, open enums and messages that
//! are stored as groups, the features stay among the options, where [`features`](super::features) finds them.
//! `utf8_validation` changes nothing: text in a column is UTF-8. `json_format` and the features of languages do not concern payloads.

mod encoded;
mod text;

use prost_reflect::prost_types::uninterpreted_option::NamePart;
use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, UninterpretedOption,
    field_descriptor_proto::{Label, Type},
};

pub(super) use encoded::lower_encoded;
pub(super) use text::as_proto3;

/// The option that holds the default of a field, until it is lowered.
const DEFAULT: &str = "magicbyte.default";
const FEATURES: &str = "features";

/// The features that change how payloads are read.
#[derive(Clone)]
struct Features {
    field_presence: String,
    enum_type: String,
    repeated_field_encoding: String,
    message_encoding: String,
}

/// True for the options that a file of an edition needs.
pub(super) fn is_needed(option: &UninterpretedOption) -> bool {
    option.name.first().is_some_and(|part| {
        part.name_part == FEATURES && !part.is_extension || part.name_part == DEFAULT && part.is_extension
    })
}

/// Makes a file of an edition, which was parsed as one of proto3, one of proto2 with the features in its options.
///
/// # Errors
/// For a feature with a value that does not exist.
pub(super) fn lower(file: &mut FileDescriptorProto) -> Result<(), String> {
    Features::new("EXPLICIT").lower_file(file)
}

/// Makes a file of proto3 one of proto2 with features in its options; it has no options but `packed`.
///
/// # Errors
/// None: it has no features.
pub(super) fn lower_proto3(file: &mut FileDescriptorProto) -> Result<(), String> {
    Features::new("IMPLICIT").lower_file(file)
}

impl Features {
    /// The features of a file that says nothing of them.
    fn new(field_presence: &str) -> Self {
        Self {
            field_presence: field_presence.to_owned(),
            enum_type: "OPEN".to_owned(),
            repeated_field_encoding: "PACKED".to_owned(),
            message_encoding: "LENGTH_PREFIXED".to_owned(),
        }
    }

    fn lower_file(mut self, file: &mut FileDescriptorProto) -> Result<(), String> {
        file.syntax = Some("proto2".to_owned());
        let options = &mut file.options.get_or_insert_default().uninterpreted_option;
        self.take(options)?;
        // So that the file is known to have features.
        options.push(feature("field_presence", "EXPLICIT"));
        file.enum_type.iter_mut().try_for_each(|of| self.lower_enum(of))?;
        file.extension.iter_mut().try_for_each(|field| self.lower_field(field, true))?;
        file.message_type.iter_mut().try_for_each(|message| self.lower_message(message))
    }

    fn lower_message(&self, message: &mut DescriptorProto) -> Result<(), String> {
        let mut features = self.clone();
        if let Some(options) = &mut message.options {
            features.take(&mut options.uninterpreted_option)?;
            // The entries of maps are as they always were.
            if options.map_entry() {
                return Ok(());
            }
        }
        message.enum_type.iter_mut().try_for_each(|of| features.lower_enum(of))?;
        message.extension.iter_mut().try_for_each(|field| features.lower_field(field, true))?;
        message.field.iter_mut().try_for_each(|field| features.lower_field(field, false))?;
        message.nested_type.iter_mut().try_for_each(|inner| features.lower_message(inner))
    }

    fn lower_enum(&self, of: &mut EnumDescriptorProto) -> Result<(), String> {
        let mut features = self.clone();
        let options = of.options.get_or_insert_default();
        features.take(&mut options.uninterpreted_option)?;
        options.uninterpreted_option.push(feature("enum_type", &features.enum_type));
        Ok(())
    }

    fn lower_field(&self, field: &mut FieldDescriptorProto, is_extension: bool) -> Result<(), String> {
        let mut features = self.clone();
        let options = field.options.get_or_insert_default();
        features.take(&mut options.uninterpreted_option)?;
        if let Some(option) = options.uninterpreted_option.pop() {
            field.default_value = Some(default_of(&option, field.r#type));
        }
        let is_repeated = field.label() == Label::Repeated;
        let options = field.options.get_or_insert_default();
        options.uninterpreted_option.push(feature("message_encoding", &features.message_encoding));
        if is_repeated {
            options.packed.get_or_insert(features.repeated_field_encoding == "PACKED");
        } else if field.oneof_index.is_none() && !is_extension {
            options.uninterpreted_option.push(feature("field_presence", &features.field_presence));
            if features.field_presence == "LEGACY_REQUIRED" {
                field.label = Some(Label::Required as i32);
            }
        }
        Ok(())
    }

    /// Takes the features out of options.
    fn take(&mut self, options: &mut Vec<UninterpretedOption>) -> Result<(), String> {
        let mut found = Ok(());
        options.retain(|option| {
            let names: Vec<&str> = option.name.iter().map(|part| part.name_part.as_str()).collect();
            match names.as_slice() {
                [FEATURES, name] => found = found.clone().and(self.set(name, option.identifier_value())),
                [FEATURES] => {
                    for pair in members(option.aggregate_value()).chunks(2) {
                        found = found.clone().and(self.set(pair[0], pair.get(1).unwrap_or(&"")));
                    }
                }
                // Of a language.
                [FEATURES, ..] => {}
                _ => return true,
            }
            false
        });
        found
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let (feature, values): (_, &[&str]) = match name {
            "field_presence" => (&mut self.field_presence, &["EXPLICIT", "IMPLICIT", "LEGACY_REQUIRED"]),
            "enum_type" => (&mut self.enum_type, &["OPEN", "CLOSED"]),
            "repeated_field_encoding" => (&mut self.repeated_field_encoding, &["PACKED", "EXPANDED"]),
            "message_encoding" => (&mut self.message_encoding, &["LENGTH_PREFIXED", "DELIMITED"]),
            _ => return Ok(()),
        };
        if !values.contains(&value) {
            let value = &value[..value.floor_char_boundary(50)];
            return Err(format!("the feature {name} is {value:?}: expected {}", values.join(" or ")));
        }
        value.clone_into(feature);
        Ok(())
    }
}

/// The names and values of a message in Protobuf's text form, in turn. Of a name in brackets, and of a value in braces,
/// there is only the bracket: they belong to languages.
fn members(text: &str) -> Vec<&str> {
    let text = text.trim();
    let mut rest = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let (mut members, mut depth) = (Vec::new(), 0_usize);
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' | '\'' => 1 + closing_quote(&rest[1..], first),
            '{' | '<' | '[' | '}' | '>' | ']' | ':' | ',' | ';' => 1,
            _ if first.is_whitespace() => first.len_utf8(),
            _ => {
                let is_end = |letter: char| letter.is_whitespace() || "{}<>[]:,;\"'".contains(letter);
                rest.find(is_end).unwrap_or(rest.len())
            }
        };
        let (word, others) = rest.split_at(end);
        rest = others;
        match first {
            '}' | '>' | ']' => depth = depth.saturating_sub(1),
            ':' | ',' | ';' => {}
            _ if first.is_whitespace() => {}
            _ if depth == 0 => members.push(word),
            _ => {}
        }
        if matches!(first, '{' | '<' | '[') {
            depth += 1;
        }
    }
    members
}

/// The number of bytes up to and with the quote that ends a string.
fn closing_quote(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        if letter == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    text.len()
}

/// An option that sets a feature.
fn feature(name: &str, value: &str) -> UninterpretedOption {
    let part = |name: &str| NamePart { name_part: name.to_owned(), is_extension: false };
    UninterpretedOption {
        name: vec![part(FEATURES), part(name)],
        identifier_value: Some(value.to_owned()),
        ..UninterpretedOption::default()
    }
}

/// The default of a field, in the form of a descriptor.
fn default_of(option: &UninterpretedOption, of: Option<i32>) -> String {
    if let Some(bytes) = &option.string_value {
        if of == Some(Type::Bytes as i32) {
            return bytes.iter().flat_map(|&byte| std::ascii::escape_default(byte)).map(char::from).collect();
        }
        return String::from_utf8_lossy(bytes).into_owned();
    }
    if let Some(number) = option.positive_int_value {
        return number.to_string();
    }
    if let Some(number) = option.negative_int_value {
        return number.to_string();
    }
    match option.double_value {
        Some(number) => number.to_string(),
        None => option.identifier_value().to_owned(),
    }
}
