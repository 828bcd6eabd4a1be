//! Files that are open for reading.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use crate::log::storage::local;
use crate::log::storage::ranges::Ranges;

/// A file that is open for reading.
#[derive(Debug)]
pub(crate) enum OpenFile {
    Local(File),
    Ranges(Ranges),
    /// A range of an archive.
    Member {
        archive: Box<OpenFile>,
        start: u64,
        size: u64,
    },
    Unpacked(Arc<Unpacked>),
}

impl OpenFile {
    /// Reads once at a position; returns the number of bytes read, 0 at the end of the file.
    ///
    /// # Errors
    /// Those of the system, or of the store.
    #[inline]
    pub(crate) fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        match self {
            Self::Local(file) => local::read_at(file, buffer, position),
            Self::Ranges(ranges) => ranges.read_at(buffer, position),
            Self::Member { archive, start, size } => {
                let length = size.saturating_sub(position).min(buffer.len() as u64) as usize;
                archive.read_at(&mut buffer[..length], start.saturating_add(position))
            }
            Self::Unpacked(content) => local::read_at(&content.file, buffer, position),
        }
    }

    /// All bytes of the range will be read, and few others. Only of use for a file that is far away.
    pub(crate) fn read_through(&self, range: &Range<u64>) {
        match self {
            Self::Ranges(ranges) => ranges.read_through(range),
            Self::Member { archive, start, .. } => {
                archive.read_through(&(start + range.start..start + range.end));
            }
            Self::Local(_) | Self::Unpacked(_) => {}
        }
    }

    /// Whether bytes come from far away, so that few are better than many.
    pub(crate) fn is_remote(&self) -> bool {
        match self {
            Self::Ranges(_) => true,
            Self::Member { archive, .. } => archive.is_remote(),
            Self::Local(_) | Self::Unpacked(_) => false,
        }
    }
}

/// What a compressed file holds, in a temporary file.
#[derive(Debug)]
pub(crate) struct Unpacked {
    pub(super) file: File,
    pub(super) size: u64,
}

/// An open file, read from its start.
pub(super) struct Sequential {
    pub(super) file: OpenFile,
    pub(super) position: u64,
}

impl Read for Sequential {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}
