//! Shared by the tests of all crates: the partitions in `tests/data/kafka`, Kafka's own reading of them, batches made by hand,
//! and a measure of memory.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "it is for tests"
)]

/// The Rust examples of the documents, which run as tests. They are here because this crate is not published: a package
/// does not have these files.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/guide/rust.md")]
mod documents {}

pub mod handmade;
pub mod memory;

use std::fs;
use std::path::{Path, PathBuf};

use magicbyte::Record;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The top of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `tests/data/kafka`.
pub fn data() -> PathBuf {
    repository().join("tests/data/kafka")
}

/// Every partition directory, sorted.
pub fn partitions() -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(data()).unwrap().map(|e| e.unwrap().path()).collect();
    found.retain(|p| p.is_dir());
    found.sort();
    assert_eq!(found.len(), 48);
    found
}

/// An empty directory for a test of this name.
pub fn scratch(name: &str) -> PathBuf {
    // The program is in `deps` of a profile's folder.
    let program = std::env::current_exe().unwrap();
    let dir = program.parent().and_then(Path::parent).unwrap().join("tmp").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// The files of a directory whose names end with `ending`, sorted.
pub fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    found.retain(|p| p.to_str().unwrap().ends_with(ending));
    found.sort();
    found
}

/// The lines of a JSONL file.
pub fn json_lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The digest of records that Kafka's reader and this project's tests compute alike.
#[derive(Default)]
pub struct CanonicalDigest(Sha256);

impl CanonicalDigest {
    pub fn add(&mut self, record: &Record<'_>) {
        let hex = |bytes: Option<&[u8]>| bytes.map_or("null".into(), hex::encode);
        let headers: String =
            record.headers().map(|h| format!("{}={};", hex::encode(h.key), hex(h.value))).collect();
        let line = format!(
            "{}\t{}\t{}\t{}\t{}\t{headers}\n",
            record.offset(),
            record.timestamp(),
            record.timestamp_type().name(),
            hex(record.key()),
            hex(record.value()),
        );
        self.0.update(line);
    }

    pub fn finish(self) -> String {
        hex::encode(self.0.finalize())
    }
}
