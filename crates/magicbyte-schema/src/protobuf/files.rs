//! The files of a Protobuf schema: as text, or as a registry's clients may send it, an encoded descriptor in base64.
//!
//! Registries keep schemas whose imports they do not have, and options that nothing declares. What a payload needs are
//! messages and enums, so services and options are left out before a file is compiled, and a file that is not there is
//! empty: only a type that a field has and no file declares is an error.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::FileDescriptor;
use prost_reflect::prost_types::FileDescriptorProto;
use protox::Compiler;
use protox::file::{File, FileResolver, GoogleFileResolver};

use super::options::strip;
use super::{edition, entries, known, option_values, similar_names};
use crate::error::{Result, SchemaError};

/// The name of the file that nothing imports.
const ROOT: &str = "the schema";

/// Compiles a schema with the files that it imports, each under its import's name. Google's own files are known, and
/// [those of registries](known).
pub(crate) fn compile(text: &str, references: &[(&str, &str)]) -> Result<FileDescriptor> {
    let imports = references.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
    let resolver = Resolver { google: GoogleFileResolver::new(), root: text.to_owned(), imports };
    let mut compiler = Compiler::with_file_resolver(resolver);
    if let Err(error) = compiler.open_file(ROOT) {
        let mut text = shown(&error);
        let pool = compiler.descriptor_pool();
        let missing = pool.files().filter(|file| file.file_descriptor_proto() == &empty(file.name()));
        let missing: Vec<_> = missing.map(|file| file.name().to_owned()).take(10).collect();
        if !missing.is_empty() {
            text.push_str(&format!("; no reference has the name {}", missing.join(", ")));
        }
        return Err(SchemaError::new(text));
    }
    let pool = compiler.descriptor_pool();
    entries::check(&pool)?;
    let file = pool.get_file_by_name(ROOT);
    file.ok_or_else(|| SchemaError::new("the schema has no file"))
}

struct Resolver {
    google: GoogleFileResolver,
    root: String,
    imports: HashMap<String, String>,
}

impl FileResolver for Resolver {
    fn open_file(&self, name: &str) -> std::result::Result<File, protox::Error> {
        if let Ok(file) = self.google.open_file(name) {
            return Ok(file);
        }
        let text = match name {
            ROOT => Some(self.root.as_str()),
            _ => self.imports.get(name).map(String::as_str).or_else(|| known::text(name)),
        };
        let Some(text) = text else {
            return Ok(File::from_file_descriptor_proto(empty(name)));
        };
        let file = parse(name, text)?;
        // The reader and the JSON form take the types of this package as Google defines them.
        if file.package() == "google.protobuf" {
            let reason = format!("{name}: the package google.protobuf has only Google's own files");
            return Err(protox::Error::new(reason));
        }
        Ok(File::from_file_descriptor_proto(file))
    }
}

/// A file that declares nothing.
fn empty(name: &str) -> FileDescriptorProto {
    FileDescriptorProto { name: Some(name.to_owned()), ..FileDescriptorProto::default() }
}

fn parse(name: &str, text: &str) -> std::result::Result<FileDescriptorProto, protox::Error> {
    let mut file = declared(name, text)?;
    similar_names::allow(&mut file).map_err(|reason| protox::Error::new(format!("{name}: {reason}")))?;
    Ok(file)
}

/// The file as it is declared, without what payloads do not need; one of an edition is one of proto2.
fn declared(name: &str, text: &str) -> std::result::Result<FileDescriptorProto, protox::Error> {
    let failed = |reason: String| protox::Error::new(format!("{name}: {reason}"));
    let text = &*option_values::readable(text);
    let as_proto3 = edition::as_proto3(text).map_err(failed)?;
    match (File::from_source(name, as_proto3.as_deref().unwrap_or(text)), STANDARD.decode(text.trim())) {
        (Ok(file), _) if as_proto3.is_some() => {
            let mut file = file.file_descriptor_proto().clone();
            strip(&mut file, edition::is_needed);
            edition::lower(&mut file).map_err(failed)?;
            Ok(file)
        }
        (Ok(file), _) => {
            let mut file = file.file_descriptor_proto().clone();
            strip(&mut file, |_| false);
            Ok(file)
        }
        (Err(error), Err(_)) => Err(error),
        (Err(_), Ok(encoded)) => {
            let file = File::decode_file_descriptor_proto(encoded.as_slice());
            let mut file = file.map_err(|error| failed(error.to_string()))?.file_descriptor_proto().clone();
            strip(&mut file, |_| false);
            if file.syntax() == "editions" {
                edition::lower_encoded(&mut file, &encoded).map_err(failed)?;
            }
            // Its own name may be any, even that of one of its imports.
            file.name = Some(name.to_owned());
            Ok(file)
        }
    }
}

/// With the causes.
fn shown(error: &protox::Error) -> String {
    let mut text = format!("{error:?}");
    text.truncate(text.floor_char_boundary(1000));
    text
}
