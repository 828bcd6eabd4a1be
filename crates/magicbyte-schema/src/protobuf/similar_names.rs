//! Fields of a message whose names are alike, such as `id` and `ID`, or `user_id` and `userId`.
//!
//! `protoc` allows most of them, and the parser of registries all, but prost-reflect refuses names of proto3 that differ only
//! in case and underscores, names that are the same in JSON, and a oneof `_id` beside an `optional` field `id`.

use std::collections::{HashMap, HashSet};

use prost_reflect::prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto};

use super::edition;

/// Makes a file one that prost-reflect takes: fields that have one name in JSON keep their own names there.
///
/// # Errors
/// Those of [`edition::lower_proto3`].
pub(super) fn allow(file: &mut FileDescriptorProto) -> Result<(), String> {
    let is_proto3 = file.syntax() == "proto3";
    let mut has_similar = false;
    for message in &mut file.message_type {
        has_similar |= allow_in(message);
    }
    if is_proto3 && has_similar { edition::lower_proto3(file) } else { Ok(()) }
}

/// Returns true if a message, or one inside it, has fields whose names are alike.
fn allow_in(message: &mut DescriptorProto) -> bool {
    let mut has_similar = false;
    for inner in &mut message.nested_type {
        has_similar |= allow_in(inner);
    }
    rename_oneofs(message);
    let letters = |field: &FieldDescriptorProto| field.name().replace('_', "").to_ascii_lowercase();
    let distinct: HashSet<String> = message.field.iter().map(letters).collect();
    let mut times: HashMap<String, usize> = HashMap::new();
    message.field.iter().for_each(|field| *times.entry(json_name(field)).or_default() += 1);
    for field in message.field.iter_mut().filter(|field| times[&json_name(field)] > 1) {
        field.json_name = Some(field.name().to_owned());
    }
    has_similar || distinct.len() < message.field.len()
}

/// Names the oneofs of `optional` fields as `protoc` does: not like another oneof, or a field.
fn rename_oneofs(message: &mut DescriptorProto) {
    let optional = message.field.iter().filter(|field| field.proto3_optional());
    let made: HashSet<i32> = optional.filter_map(|field| field.oneof_index).collect();
    let mut names: HashSet<String> = message.field.iter().map(|field| field.name().to_owned()).collect();
    let written = (0..).zip(&message.oneof_decl).filter(|(index, _)| !made.contains(index));
    names.extend(written.map(|(_, oneof)| oneof.name().to_owned()));
    for (_, oneof) in (0..).zip(&mut message.oneof_decl).filter(|(index, _)| made.contains(index)) {
        let mut name = oneof.name().to_owned();
        while !names.insert(name.clone()) {
            name.insert(0, 'X');
        }
        oneof.name = Some(name);
    }
}

fn json_name(field: &FieldDescriptorProto) -> String {
    if let Some(name) = &field.json_name {
        return name.clone();
    }
    let mut is_after_underscore = false;
    let letters = field.name().chars().filter_map(|letter| {
        let is_first = std::mem::replace(&mut is_after_underscore, letter == '_');
        (letter != '_').then(|| if is_first { letter.to_ascii_uppercase() } else { letter })
    });
    letters.collect()
}
