//! Parts of a response: bytes in memory, and byte ranges of files.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use ::bytes::Bytes;

use magicbyte_log::Location;
use magicbyte_log::internals::{open_pinned, read_at};
use magicbyte_log::steps::Chunk;

use crate::outgoing::Outgoing;

/// The buffer where files are copied.
const COPY: usize = 64 << 10;

/// A part of a response.
#[derive(Debug)]
pub(super) enum Part {
    Memory(Bytes),
    File(Span),
}

/// A byte range of a local file.
#[derive(Debug)]
pub(super) struct Span {
    location: Location,
    /// See [`Chunk::version`].
    pin: Option<String>,
    start: u64,
    size: u64,
    file: Option<File>,
}

impl Span {
    pub(super) fn new(chunk: &Chunk, start: u64, size: u64) -> Self {
        Self { location: chunk.location.clone(), pin: chunk.version.clone(), start, size, file: None }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Adds bytes that follow in the same file; false if these do not.
    pub(super) fn extend(&mut self, location: &Location, start: u64, size: u64) -> bool {
        let follows = self.location == *location && self.start + self.size == start;
        if follows {
            self.size += size;
        }
        follows
    }

    /// The bytes, in memory.
    ///
    /// # Errors
    /// If the file cannot be read, or has become shorter.
    pub(super) fn load(&self) -> io::Result<Vec<u8>> {
        let file = open_pinned(self.location.path(), self.pin.as_deref())?;
        let mut data = vec![0; self.size as usize];
        let read = read_at(&file, &mut data, self.start)?;
        if read < data.len() {
            return Err(is_short(&self.location));
        }
        Ok(data)
    }

    /// Opens the file at the range's start.
    ///
    /// # Errors
    /// If the file cannot be opened, or has become shorter.
    pub(super) fn open(&mut self) -> io::Result<()> {
        let mut file = open_pinned(self.location.path(), self.pin.as_deref())?;
        if file.metadata()?.len() < self.start + self.size {
            return Err(is_short(&self.location));
        }
        file.seek(SeekFrom::Start(self.start))?;
        self.file = Some(file);
        Ok(())
    }
}

fn is_short(file: &Location) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("{file} has become shorter"))
}

/// Bytes of a segment, in memory.
///
/// # Errors
/// If they cannot be read, or the file has become shorter.
pub(super) fn load(chunk: &Chunk, range: Range<u64>) -> io::Result<Vec<u8>> {
    let file = chunk.location.open(chunk.size, chunk.version.as_deref())?;
    let mut data = vec![0; (range.end - range.start) as usize];
    let mut filled = 0;
    while filled < data.len() {
        match file.read_at(&mut data[filled..], range.start + filled as u64)? {
            0 => return Err(is_short(&chunk.location)),
            read => filled += read,
        }
    }
    Ok(data)
}

impl Part {
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(span) => span.size,
        }
    }

    /// Appends the part's bytes.
    ///
    /// # Errors
    /// If the file cannot be read, or has become shorter.
    pub(super) fn append_to(&self, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Memory(bytes) => out.extend_from_slice(bytes),
            Self::File(span) => out.extend_from_slice(&span.load()?),
        }
        Ok(())
    }

    /// Sends the part; from an open file without copying it into the process, where the operating system can.
    ///
    /// # Errors
    /// If the client does not take it, or the file has become shorter: the response cannot be completed then.
    pub(super) fn send(&self, out: &mut Outgoing<'_>) -> io::Result<()> {
        match self {
            Self::Memory(bytes) => out.write(bytes),
            Self::File(Span { file: Some(file), size, .. }) => {
                out.flush()?;
                if send_file(file, *size, out)? < *size {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(())
            }
            Self::File(span) => out.write(&span.load()?),
        }
    }
}

/// Sends bytes from a file's position on; returns how many there were. With `sendfile`, as a broker does
/// (`FileRecords.writeTo`): `std::io::copy` uses it only towards files, since a file that changes meanwhile may still
/// change what was sent. Clients find that by the CRC, and logs do not change.
///
/// # Errors
/// If the file cannot be read, or the client does not take the bytes.
#[cfg(target_os = "linux")]
fn send_file(file: &File, size: u64, out: &mut Outgoing<'_>) -> io::Result<u64> {
    use rustix::io::Errno;

    let mut sent = 0;
    while sent < size {
        let left = usize::try_from(size - sent).unwrap_or(usize::MAX);
        match rustix::fs::sendfile(out.stream(), file, None, left) {
            Ok(0) => break,
            Ok(more) => {
                sent += more as u64;
                out.check_time()?;
            }
            Err(Errno::INTR) => {}
            // Not every file system has it.
            Err(Errno::INVAL | Errno::NOSYS) => return Ok(sent + copy_file(file, size - sent, out)?),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sent)
}

#[cfg(not(target_os = "linux"))]
use copy_file as send_file;

fn copy_file(file: &File, size: u64, out: &mut Outgoing<'_>) -> io::Result<u64> {
    let mut file = file.take(size);
    let mut buffer = vec![0; COPY];
    let mut sent = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(sent);
        }
        out.write(&buffer[..read])?;
        sent += read as u64;
    }
}
