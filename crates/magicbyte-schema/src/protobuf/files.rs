//! The files of a Protobuf schema: as text, or as a registry's clients may send it, an encoded descriptor in base64.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::FileDescriptor;
use protox::Compiler;
use protox::file::{File, FileResolver, GoogleFileResolver};

use crate::error::{Result, SchemaError};

/// The name of the file that nothing imports.
const ROOT: &str = "the schema";

/// Imports that a registry provides, besides Google's.
const CONFLUENT: [(&str, &str); 2] = [
    ("confluent/meta.proto", include_str!("confluent_meta.proto")),
    ("confluent/type/decimal.proto", include_str!("confluent_decimal.proto")),
];

/// Compiles a schema with the files that it imports, each under its import's name. Google's own files are known.
pub(crate) fn compile(text: &str, references: &[(&str, &str)]) -> Result<FileDescriptor> {
    let imports = CONFLUENT.iter().chain(references);
    let imports = imports.map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
    let resolver = Resolver { google: GoogleFileResolver::new(), root: text.to_owned(), imports };
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.open_file(ROOT).map_err(|error| SchemaError::new(shown(&error)))?;
    let file = compiler.descriptor_pool().get_file_by_name(ROOT);
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
            ROOT => Some(&self.root),
            _ => self.imports.get(name),
        };
        let Some(text) = text else {
            return Err(protox::Error::file_not_found(name));
        };
        let file = parse(name, text)?;
        // The walk and the JSON form take the types of this package as Google defines them.
        if file.file_descriptor_proto().package() == "google.protobuf" {
            let reason = format!("{name}: the package google.protobuf has only Google's own files");
            return Err(protox::Error::new(reason));
        }
        Ok(file)
    }
}

fn parse(name: &str, text: &str) -> std::result::Result<File, protox::Error> {
    let parsed = File::from_source(name, text);
    let Err(error) = parsed else { return parsed };
    let Ok(encoded) = STANDARD.decode(text.trim()) else { return Err(error) };
    let mut descriptor = File::decode_file_descriptor_proto(encoded.as_slice())
        .map_err(|error| protox::Error::new(format!("{name}: {error}")))?
        .file_descriptor_proto()
        .clone();
    // Its own name may be any, even that of one of its imports.
    descriptor.name = Some(name.to_owned());
    Ok(File::from_file_descriptor_proto(descriptor))
}

/// With the causes.
fn shown(error: &protox::Error) -> String {
    let mut text = format!("{error:?}");
    text.truncate(text.floor_char_boundary(1000));
    text
}
