//! A file read by position in refcounted blocks. It is not mapped, because it may shrink while it is read.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use ::bytes::Bytes;

use magicbyte::ErrorKind;

use crate::storage::file_info::{ends_the_run, unreadable};
use crate::storage::location::Location;
use crate::storage::open_file::OpenFile;

/// The minimum number of bytes that [`Blocks::peek`] reads.
const ASIDE: usize = 16 << 10;
/// The maximum block size of a remote file, unless it is read through: storage reads ahead where that pays.
const REMOTE_BLOCK: usize = 16 << 10;

/// Reads a file through one reused block. The bytes returned keep their block alive, and a block still in use
/// is never overwritten.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// None if the file was deleted after it was listed or cannot be opened; it then counts as empty.
    file: Option<OpenFile>,
    /// True if the name now belongs to another file, or to none.
    is_replaced: bool,
    /// The first failure to open or read the file.
    failure: Option<ErrorKind>,
    /// The size the file had when it was listed: bytes appended later are not read.
    size: u64,
    block_size: usize,
    /// The size of blocks where the file is read through.
    largest_block: usize,
    /// Blocks end here if the requested bytes do.
    end: u64,
    buffer: Arc<Vec<u8>>,
    block: Bytes,
    start: u64,
    /// The position and bytes of the last read by [`Blocks::peek`].
    aside: (u64, Bytes),
    /// The zeros at the end of the file begin in this range, as far as is known.
    zeros_begin: Range<u64>,
}

impl Blocks {
    /// Opens a file with the size and version of its listing. A file that cannot be opened or read has no
    /// bytes, and [`Blocks::missing`] gives the reason: the rest of the run continues without it.
    ///
    /// # Errors
    /// If no file can be opened at all (too many are open), memory is exhausted, or a store fails.
    pub(crate) fn open(
        location: &Location,
        size: u64,
        version: Option<&str>,
        block_size: usize,
    ) -> io::Result<Self> {
        let opened = location.open(size, version);
        let is_replaced = opened.as_ref().is_err_and(|error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
        });
        let (file, failure) = match opened {
            Ok(file) => (Some(file), None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (None, None),
            Err(error) if ends_the_run(&error) => return Err(error),
            Err(error) => (None, Some(unreadable(error))),
        };
        // Bytes in memory are the block, and are not copied.
        let (start, block) = match &file {
            Some(OpenFile::Memory { start, bytes }) => (*start, bytes.clone()),
            _ => (0, Bytes::new()),
        };
        Ok(Self {
            is_replaced,
            failure,
            size,
            largest_block: block_size,
            block_size: if file.as_ref().is_some_and(OpenFile::is_remote) {
                block_size.min(REMOTE_BLOCK)
            } else {
                block_size
            },
            file,
            end: size,
            buffer: Arc::default(),
            block,
            start,
            aside: (0, Bytes::new()),
            zeros_begin: 0..size,
        })
    }

    /// Announces that all bytes of the range will be read, and few others.
    pub(crate) fn read_through(&mut self, range: &Range<u64>) {
        if let Some(file) = &self.file {
            file.read_through(range);
        }
        self.block_size = self.largest_block;
        self.end = range.end;
    }

    /// See [`OpenFile::fetch_for_the_next`].
    pub(crate) fn fetch_for_the_next(&self) -> bool {
        self.file.as_ref().is_some_and(OpenFile::fetch_for_the_next)
    }

    /// True if the bytes come from far away.
    pub(crate) fn is_remote(&self) -> bool {
        self.file.as_ref().is_some_and(OpenFile::is_remote)
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The reason why bytes that were listed are missing.
    pub(crate) fn missing(&self) -> ErrorKind {
        match (&self.failure, &self.file) {
            (Some(kind), _) => kind.clone(),
            (None, Some(_)) => ErrorKind::FileTruncated,
            (None, None) => ErrorKind::FileMissing,
        }
    }

    /// True if the file was deleted or replaced after it was listed.
    pub(crate) fn is_replaced(&self) -> bool {
        self.is_replaced
    }

    /// The first failure to open or read the file, if there was one.
    pub(crate) fn failure(&self) -> Option<&ErrorKind> {
        self.failure.as_ref()
    }

    /// The reason why bytes of the range, which have been read, are not the file's bytes. None if they are.
    pub(crate) fn damage(&self, range: &Range<u64>) -> Option<ErrorKind> {
        self.file.as_ref()?.damage(range).map(unreadable)
    }

    /// `length` bytes at `position`, or fewer where the file ends (or has become shorter).
    pub(crate) fn at(&mut self, position: u64, length: usize) -> io::Result<Bytes> {
        let wanted = (length as u64).min(self.size.saturating_sub(position)) as usize;
        let inside =
            position.checked_sub(self.start).filter(|&at| at + wanted as u64 <= self.block.len() as u64);
        let at = match inside {
            Some(at) => at as usize,
            None => {
                self.load(position, wanted)?;
                0
            }
        };
        Ok(self.block.slice(at..self.block.len().min(at + wanted)))
    }

    /// Like [`Blocks::at`], without moving the block.
    pub(crate) fn peek(&mut self, position: u64, length: usize) -> io::Result<Bytes> {
        let wanted = (length as u64).min(self.size.saturating_sub(position)) as usize;
        let slice = |start: u64, bytes: &Bytes| {
            let at = usize::try_from(position.checked_sub(start)?).ok()?;
            (at + wanted <= bytes.len()).then(|| bytes.slice(at..at + wanted))
        };
        if let Some(bytes) = slice(self.start, &self.block).or_else(|| slice(self.aside.0, &self.aside.1)) {
            return Ok(bytes);
        }
        let Some(file) = &self.file else { return Ok(Bytes::new()) };
        let mut bytes = vec![0; wanted.max(ASIDE)];
        let filled = fill(file, &mut bytes, position, &mut self.failure)?;
        bytes.truncate((filled as u64).min(self.size - position.min(self.size)) as usize);
        self.aside = (position, bytes.into());
        Ok(self.aside.1.slice(..wanted.min(self.aside.1.len())))
    }

    /// The number of consecutive zero bytes from `position`.
    pub(crate) fn zeros_from(&mut self, position: u64) -> io::Result<u64> {
        let mut at = position;
        loop {
            let block = self.at(at, self.block_size)?;
            let zeros = block.iter().take_while(|&&byte| byte == 0).count();
            at += zeros as u64;
            if zeros < block.len() || block.is_empty() {
                return Ok(at - position);
            }
        }
    }

    /// True if there are only zeros from `position` to the end of the file. No byte is read twice for this, since
    /// damage may ask it of the same zeros again and again.
    pub(crate) fn is_zero_from(&mut self, position: u64) -> io::Result<bool> {
        if position < self.zeros_begin.start {
            return Ok(false);
        }
        let mut at = position;
        while at < self.zeros_begin.end {
            let piece = self.peek(at, ASIDE)?;
            let zeros = piece.iter().take_while(|&&byte| byte == 0).count();
            at += zeros as u64;
            if zeros < piece.len() || piece.is_empty() {
                self.zeros_begin.start = at + 1;
                return Ok(false);
            }
        }
        self.zeros_begin.end = self.zeros_begin.end.min(position);
        Ok(true)
    }

    fn load(&mut self, position: u64, wanted: usize) -> io::Result<()> {
        self.block = Bytes::new();
        let Some(file) = &self.file else { return Ok(()) };
        let rest = self.size.saturating_sub(position);
        let block = (self.block_size as u64).min(self.end.saturating_sub(position));
        let length = block.max(wanted as u64).min(rest) as usize;
        if Arc::get_mut(&mut self.buffer)
            .is_none_or(|buffer| buffer.capacity() > 8 * length.max(self.block_size))
        {
            self.buffer = Arc::default();
        }
        let buffer = Arc::get_mut(&mut self.buffer).ok_or_else(|| io::Error::other("the block is in use"))?;
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        let filled = fill(file, &mut buffer[..length], position, &mut self.failure)?;
        self.start = position;
        self.block = Bytes::from_owner(SharedBlock(Arc::clone(&self.buffer))).slice(..filled);
        Ok(())
    }
}

struct SharedBlock(Arc<Vec<u8>>);

impl AsRef<[u8]> for SharedBlock {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Fills `buffer` from `position`; returns the number of bytes read. Bytes that the system cannot read count
/// as missing: unlike [`OpenFile::fill`], this keeps what was read before them.
fn fill(
    file: &OpenFile,
    buffer: &mut [u8],
    position: u64,
    failure: &mut Option<ErrorKind>,
) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], position + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if ends_the_run(&error) => return Err(error),
            Err(error) => {
                failure.get_or_insert_with(|| unreadable(error));
                break;
            }
        }
    }
    Ok(filled)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Nothing is mapped at address 0: reading there fails with an I/O error, as on a bad disk.
    const UNREADABLE: &str = "/proc/self/mem";

    #[test]
    fn what_was_read_before_stays() {
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/segment/blocks.rs");
        let mut blocks = Blocks::open(&source.into(), 1 << 20, None, 16).expect("opened");
        assert_eq!(blocks.at(0, 3).expect("read").as_ref(), b"//!");
        assert_eq!(blocks.missing(), ErrorKind::FileTruncated);
        assert!(blocks.failure().is_none());
        let mut failure = None;
        let file = OpenFile::Local(std::fs::File::open(UNREADABLE).expect("opened"));
        assert_eq!(fill(&file, &mut [0; 8], 0, &mut failure).expect("nothing fatal"), 0);
        blocks.failure = failure;
        assert_eq!(blocks.at(0, 3).expect("read").as_ref(), b"//!");
        assert_eq!(blocks.missing().name(), "file_unreadable");
    }
}
