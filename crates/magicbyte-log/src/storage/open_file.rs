//! Files that are open for reading.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use ::bytes::Bytes;

use crate::storage::positioned;
use crate::storage::ranges::Ranges;

/// A file that is open for reading.
#[doc(hidden)]
#[derive(Debug)]
pub enum OpenFile {
    Local(File),
    Ranges(Ranges),
    /// A range of an archive.
    Member {
        archive: Box<OpenFile>,
        start: u64,
        size: u64,
    },
    Unpacked(Arc<Content>),
    /// A part of a file, whose bytes are in memory from a position on.
    Memory {
        start: u64,
        bytes: Bytes,
    },
    Composed(Box<dyn Composed>),
}

/// A file that is composed from another file while it is read.
#[doc(hidden)]
pub trait Composed: Debug + Send + Sync {
    /// See [`OpenFile::read_at`].
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;
    /// See [`OpenFile::read_through`].
    fn read_through(&self, range: &Range<u64>);
    /// See [`OpenFile::is_remote`].
    fn is_remote(&self) -> bool;
    /// See [`OpenFile::damage`].
    fn damage(&self, range: &Range<u64>) -> Option<String>;
}

#[doc(hidden)]
impl OpenFile {
    /// Reads once at a position; returns the number of bytes read, 0 at the end of the file.
    ///
    /// # Errors
    /// The errors of the system or of the store.
    #[inline]
    pub fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        match self {
            Self::Local(file) => positioned::read_at(file, buffer, position),
            Self::Ranges(ranges) => ranges.read_at(buffer, position),
            Self::Member { archive, start, size } => {
                let length = size.saturating_sub(position).min(buffer.len() as u64) as usize;
                archive.read_at(&mut buffer[..length], start.saturating_add(position))
            }
            Self::Unpacked(content) => positioned::read_at(&content.file, buffer, position),
            Self::Composed(file) => file.read_at(buffer, position),
            Self::Memory { start, bytes } => {
                let at = position.checked_sub(*start).and_then(|at| usize::try_from(at).ok());
                let rest = at.and_then(|at| bytes.get(at..)).unwrap_or_default();
                let length = rest.len().min(buffer.len());
                buffer[..length].copy_from_slice(&rest[..length]);
                Ok(length)
            }
        }
    }

    /// Fills the buffer from a position on; returns the number of bytes read, fewer where the file ends.
    ///
    /// # Errors
    /// The errors of [`read_at`](Self::read_at).
    pub(crate) fn fill(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_at(&mut buffer[filled..], position + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Announces that all bytes of the range will be read, and few others. Useful only for a remote file.
    pub(crate) fn read_through(&self, range: &Range<u64>) {
        match self {
            Self::Ranges(ranges) => ranges.read_through(range),
            Self::Member { archive, start, .. } => {
                archive.read_through(&(start + range.start..start + range.end));
            }
            Self::Composed(file) => file.read_through(range),
            Self::Local(_) | Self::Unpacked(_) | Self::Memory { .. } => {}
        }
    }

    /// Fetches the whole file ahead of use and keeps it for readers that read through it next. Returns false
    /// if that is not possible or not useful.
    pub(crate) fn fetch_for_the_next(&self) -> bool {
        match self {
            Self::Ranges(ranges) => ranges.fetch_for_the_next(),
            Self::Local(_)
            | Self::Member { .. }
            | Self::Unpacked(_)
            | Self::Composed(_)
            | Self::Memory { .. } => false,
        }
    }

    /// True if the bytes come from far away, so that it is better to read few of them.
    pub(crate) fn is_remote(&self) -> bool {
        match self {
            Self::Ranges(_) => true,
            Self::Member { archive, .. } => archive.is_remote(),
            Self::Composed(file) => file.is_remote(),
            Self::Local(_) | Self::Unpacked(_) | Self::Memory { .. } => false,
        }
    }

    /// The reason why bytes of the range, which have been read, are zeros instead of the file's bytes. None
    /// if they are the file's bytes.
    pub(crate) fn damage(&self, range: &Range<u64>) -> Option<String> {
        match self {
            Self::Composed(file) => file.damage(range),
            Self::Local(_)
            | Self::Ranges(_)
            | Self::Member { .. }
            | Self::Unpacked(_)
            | Self::Memory { .. } => None,
        }
    }
}

/// The bytes of a range, or the reason why some of them are missing.
///
/// # Errors
/// The errors of [`OpenFile::read_at`].
#[cfg(feature = "tiered")]
pub(super) fn read_range(file: &OpenFile, range: &Range<u64>) -> io::Result<Result<Vec<u8>, String>> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    let filled = file.fill(&mut bytes, range.start)?;
    if filled < bytes.len() {
        return Ok(Err(format!("the object ends at byte {}", range.start + filled as u64)));
    }
    Ok(Ok(bytes))
}

/// The content of a compressed file, in a temporary file.
#[doc(hidden)]
#[derive(Debug)]
pub struct Content {
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
