//! Bytes that are in memory already, such as the answer of a broker.

use std::io::{self, Read};
use std::path::Path;

use ::bytes::Bytes;

use crate::storage::file_info::Found;
use crate::storage::open_file::OpenFile;
use crate::storage::store::{Entry, Store};

/// A part of a file, from a position on. The path of the file is only its name.
#[derive(Debug)]
pub(super) struct InMemory {
    pub(super) start: u64,
    pub(super) bytes: Bytes,
}

impl Store for InMemory {
    fn list(&self, _: &Path) -> io::Result<Vec<Entry>> {
        Err(io::ErrorKind::NotADirectory.into())
    }

    fn examine(&self, _: &Path) -> io::Result<Found> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn open(&self, _: &Path, _: u64, _: Option<&str>) -> io::Result<OpenFile> {
        Ok(OpenFile::Memory { start: self.start, bytes: self.bytes.clone() })
    }

    fn open_small(&self, _: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
