//! Compressed segments (`.log.zst`, `.log.gz`), read as their content. Segments and archives are decompressed
//! into temporary files without a name. They have no random access, and every step after the listing needs it.
//! A file is decompressed once, as long as it is in use or among the last files used.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::storage::file_info::{FileInfo, Found, Other, changed, ends_the_run};
use crate::storage::open_file::{Content, OpenFile, Sequential};
use crate::storage::store::{Entry, Store};

/// The maximum size of the temporary files that are not in use, in bytes.
const KEPT: u64 = 4 << 30;
/// The maximum size of a segment: positions in an index have 31 bits.
pub(super) const MAX_SEGMENT: u64 = 2 << 30;
/// The maximum size of an archive that is decompressed.
pub(super) const MAX_ARCHIVE: u64 = 64 << 30;

/// The maximum zstd window of files that are decompressed in parallel: 2^27 bytes, the limit of `zstd -d`
/// without `--long`.
const WINDOW_LOG: u32 = 27;
/// The maximum zstd window (`zstd --long=31`): 2 GiB.
const MAX_WINDOW_LOG: u32 = 31;
static LONG_WINDOW: Mutex<()> = Mutex::new(());

/// The files of a store, with compressed segments as their content.
#[derive(Debug)]
pub(super) struct Unpacked {
    pub(super) files: Arc<dyn Store>,
    /// See [`Mounted::number`](super::mounted::Mounted).
    pub(super) number: u64,
}

impl Unpacked {
    fn content(&self, packing: Packing, path: &Path, identity: String) -> io::Result<Arc<Content>> {
        let open = || {
            let info = self.files.examine(path)?.into_file()?;
            if info.identity() != identity {
                return Err(changed());
            }
            self.files.open(path, info.size, info.version.as_deref())
        };
        let key = (self.number, path.display().to_string(), identity.clone());
        unpack(key, packing, MAX_SEGMENT, open)
    }
}

/// The packing of a compressed segment; None for any other file.
fn packing_of_segment(path: &Path) -> Option<Packing> {
    let name = path.file_name()?.to_str()?;
    let (segment, _) = name.rsplit_once('.')?;
    segment.ends_with(".log").then(|| Packing::of(name)).flatten()
}

impl Store for Unpacked {
    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        self.files.list(directory)
    }

    fn examine(&self, path: &Path) -> io::Result<Found> {
        let found = self.files.examine(path)?;
        let (Found::File(info), Some(packing)) = (&found, packing_of_segment(path)) else { return Ok(found) };
        match self.content(packing, path, info.identity()) {
            Ok(content) => Ok(Found::File(FileInfo {
                size: content.size,
                modified_ms: info.modified_ms,
                version: Some(info.identity()),
                inode: None,
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound || ends_the_run(&error) => Err(error),
            Err(error) => Ok(Found::Other(Other::Unknown, error.to_string())),
        }
    }

    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        self.files.is_directory(path)
    }

    fn open(&self, path: &Path, size: u64, version: Option<&str>) -> io::Result<OpenFile> {
        let Some(packing) = packing_of_segment(path) else { return self.files.open(path, size, version) };
        let identity = match version {
            Some(version) => version.to_owned(),
            None => self.files.examine(path)?.into_file()?.identity(),
        };
        self.content(packing, path, identity).map(OpenFile::Unpacked)
    }

    fn open_small(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        self.files.open_small(path)
    }
}

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Zstd,
    Gzip,
}

impl Packing {
    /// The compression that the end of a name indicates.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1 {
            "zst" | "tzst" => Some(Self::Zstd),
            "gz" | "tgz" => Some(Self::Gzip),
            _ => None,
        }
    }
}

/// The number of the store, path and version.
type Key = (u64, String, String);

/// A file that cannot be decompressed is not tried again.
type Outcome = Result<Arc<Content>, (io::ErrorKind, String)>;
type Slot = Arc<Mutex<Option<Outcome>>>;

static UNPACKED: Mutex<VecDeque<(Key, Slot)>> = Mutex::new(VecDeque::new());

/// The decompressed content of a file, of at most `limit` bytes.
///
/// # Errors
/// If it is damaged ([`io::ErrorKind::InvalidData`]), too large, or cannot be read; if there is no room for it.
pub(super) fn unpack(
    key: Key,
    packing: Packing,
    limit: u64,
    open: impl Fn() -> io::Result<OpenFile>,
) -> io::Result<Arc<Content>> {
    let slot = slot(key);
    // Other threads that need the same file wait here.
    let mut unpacked = slot.lock().unwrap_or_else(PoisonError::into_inner);
    match &*unpacked {
        Some(Ok(content)) => return Ok(Arc::clone(content)),
        Some(Err((kind, why))) => return Err(io::Error::new(*kind, why.clone())),
        None => {}
    }
    let input = || Ok(Sequential { file: open()?, position: 0 });
    let outcome = decompress(input, packing, limit).map(Arc::new);
    if let Err(error) = &outcome
        && matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::FileTooLarge)
    {
        *unpacked = Some(Err((error.kind(), error.to_string())));
    }
    let content = outcome?;
    *unpacked = Some(Ok(Arc::clone(&content)));
    drop(unpacked);
    forget_old();
    Ok(content)
}

fn decompress<R: Read>(
    open: impl Fn() -> io::Result<R>,
    packing: Packing,
    limit: u64,
) -> io::Result<Content> {
    let new_file = || io::Result::Ok(Bounded { file: tempfile::tempfile()?, written: 0, limit });
    let mut file = new_file()?;
    match packing {
        Packing::Gzip => unpack_gzip(open()?, &mut file)?,
        Packing::Zstd => {
            if !unpack_zstd(open()?, &mut file, WINDOW_LOG)? {
                // Decompress one such file at a time: each takes as much memory as its window, or as its
                // content if that is smaller.
                let _turn = LONG_WINDOW.lock().unwrap_or_else(PoisonError::into_inner);
                file = new_file()?;
                if !unpack_zstd(open()?, &mut file, MAX_WINDOW_LOG)? {
                    let why = "zstd: its window has more than 2 GiB, the largest of `zstd --long`";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                }
            }
        }
    }
    Ok(Content { file: file.file, size: file.written })
}

/// The slot of a file, now the last used.
fn slot(key: Key) -> Slot {
    let mut all = UNPACKED.lock().unwrap_or_else(PoisonError::into_inner);
    let cached = all.iter().position(|(other, _)| *other == key).and_then(|index| all.remove(index));
    let (key, slot) = cached.unwrap_or_else(|| (key, Slot::default()));
    all.push_back((key, Arc::clone(&slot)));
    slot
}

fn forget_old() {
    let mut all = UNPACKED.lock().unwrap_or_else(PoisonError::into_inner);
    // A locked slot is being decompressed.
    let size = |slot: &Slot| match slot.try_lock().as_deref() {
        Ok(Some(Ok(content))) => content.size,
        _ => 0,
    };
    let mut total: u64 = all.iter().map(|(_, slot)| size(slot)).sum();
    while total > KEPT && all.len() > 1 {
        let Some((_, slot)) = all.pop_front() else { return };
        total -= size(&slot);
    }
}

/// A file with a maximum size.
struct Bounded {
    file: File,
    written: u64,
    limit: u64,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.written + bytes.len() as u64 > self.limit {
            let why = format!("it has more than {} bytes when decompressed, which is the limit", self.limit);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn unpack_gzip(input: impl Read, output: &mut Bounded) -> io::Result<()> {
    const BUFFER: usize = 256 << 10;
    let mut input = io::BufReader::with_capacity(BUFFER, input);
    let mut buffer = vec![0; BUFFER];
    loop {
        let mut member = flate2::bufread::GzDecoder::new(&mut input);
        loop {
            // Wrong input has several kinds of error.
            let read = member.read(&mut buffer).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
                    io::Error::new(io::ErrorKind::InvalidData, format!("gzip: {error}"))
                }
                _ => error,
            });
            match read? {
                0 => break,
                read => output.write_all(&buffer[..read])?,
            }
        }
        if ends_in_zeros(&mut input)? {
            return Ok(());
        }
    }
}

/// Skips zeros, which gzip ignores after a member: tapes and preallocated files have them. Returns false at
/// any other byte.
fn ends_in_zeros(input: &mut impl io::BufRead) -> io::Result<bool> {
    loop {
        let bytes = input.fill_buf()?;
        let (zeros, length) = (bytes.iter().take_while(|&&byte| byte == 0).count(), bytes.len());
        input.consume(zeros);
        if length == 0 || zeros < length {
            return Ok(length == 0);
        }
    }
}

/// Decompresses frames. Returns false if a frame has a window of more than 2 to the power of `window_log`
/// bytes.
fn unpack_zstd(mut input: impl Read, output: &mut Bounded, window_log: u32) -> io::Result<bool> {
    use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

    /// The error code from `ZSTD_ErrorCode`, for which the crate has no name.
    const WINDOW_TOO_LARGE: usize = 0usize.wrapping_sub(16);
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let failed = |code| invalid(format!("zstd: {}", zstd_safe::get_error_name(code)));
    let mut context = DCtx::create();
    context.set_parameter(DParameter::WindowLogMax(window_log)).map_err(failed)?;
    let mut compressed = vec![0; DCtx::in_size().max(256 << 10)];
    let mut buffer = vec![0; DCtx::out_size().max(256 << 10)];
    // 0 between frames.
    let mut expected = 0;
    loop {
        let read = input.read(&mut compressed)?;
        if read == 0 {
            return match expected {
                0 => Ok(true),
                _ => Err(invalid("zstd: it ends within a frame".into())),
            };
        }
        let mut source = InBuffer::around(&compressed[..read]);
        loop {
            let mut target = OutBuffer::around(&mut buffer[..]);
            expected = match context.decompress_stream(&mut target, &mut source) {
                Err(WINDOW_TOO_LARGE) => return Ok(false),
                outcome => outcome.map_err(failed)?,
            };
            let is_full = target.pos() == target.capacity();
            output.write_all(target.as_slice())?;
            // A further call after the end of a frame would expect another one.
            if source.pos() == read && (expected == 0 || !is_full) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bombs_are_stopped_at_the_limit() {
        let zeros = vec![0; 1 << 20];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&zeros).expect("compressed");
        let gzip = gzip.finish().expect("compressed");
        let mut zstd = vec![0; 1 << 20];
        let written = zstd_safe::compress(&mut zstd[..], &zeros, 3).expect("compressed");
        zstd.truncate(written);
        for (packing, data) in [(Packing::Gzip, gzip), (Packing::Zstd, zstd)] {
            let size = |limit| decompress(|| Ok(&data[..]), packing, limit).map(|content| content.size);
            assert_eq!(size(1 << 20).expect("within the limit"), 1 << 20);
            assert_eq!(size((1 << 20) - 1).expect_err("too large").kind(), io::ErrorKind::FileTooLarge);
            for end in 1..data.len() {
                let cut = decompress(|| Ok(&data[..end]), packing, 1 << 20);
                assert_eq!(cut.expect_err("cut").kind(), io::ErrorKind::InvalidData, "{packing:?} {end}");
            }
            let twice = [&data[..], &data[..]].concat();
            let content = decompress(|| Ok(&twice[..]), packing, 2 << 20);
            assert_eq!(content.expect("two frames").size, 2 << 20);
        }
    }

    #[test]
    fn gzip_ignores_zeros_at_the_end_only() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"content").expect("compressed");
        let gzip = gzip.finish().expect("compressed");
        let size = |end: &[u8]| {
            let data = [&gzip[..], end].concat();
            decompress(|| Ok(&data[..]), Packing::Gzip, 100).map(|content| content.size).map_err(|e| e.kind())
        };
        assert_eq!(size(&[0; 1]), Ok(7));
        assert_eq!(size(&[0; 1 << 20]), Ok(7));
        assert_eq!(size(b"\0\0garbage"), Err(io::ErrorKind::InvalidData));
        assert_eq!(size(b"garbage"), Err(io::ErrorKind::InvalidData));
        assert!(decompress(|| Ok(&[0; 512][..]), Packing::Gzip, 100).is_err());
    }

    #[test]
    fn windows_up_to_2_gib_are_read() {
        // A frame without a content size, and one raw block of a byte.
        let frame = |log: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3, 9, 0, 0, b'x'];
        let read = |frames: &[u8]| decompress(|| Ok(frames), Packing::Zstd, 100).map(|content| content.size);
        for log in [20, 27, 28, 31] {
            assert_eq!(read(&frame(log)).expect("read"), 1, "{log}");
        }
        // The second frame has the long window; nothing of the first is there twice.
        assert_eq!(read(&[frame(20), frame(28)].concat()).expect("read"), 2);
        let refused = read(&frame(32)).expect_err("more than 2 GiB");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        assert!(refused.to_string().contains("more than 2 GiB"), "{refused}");
    }
}
