//! Archives (`.tar`, `.tar.gz`, `.tar.zst`), read as directories:
//! `backup.tar/orders-0/00000000000000000000.log`. The members of an uncompressed archive are ranges of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::storage::file_info::{FileInfo, Found, Other, changed};
use crate::storage::open_file::{OpenFile, Sequential};
use crate::storage::sparse::{PaxSparse, SparseMap, SparseMember};
use crate::storage::store::{Entry, Store};
use crate::storage::unpacked::{MAX_ARCHIVE, Packing, unpack};

/// The maximum size of a long name or an extended header, in bytes.
const MAX_EXTENSION: u64 = 1 << 20;
/// The maximum number of members, and the maximum size of all long names and extended headers in bytes. Names
/// are kept in memory.
const MAX_MEMBERS: usize = 1 << 20;
const MAX_EXTENSIONS: u64 = 256 << 20;
/// The size of a header; members are padded to a multiple.
const BLOCK: u64 = 512;
/// The maximum number of extents of all sparse files. Their maps are kept in memory, at 24 bytes per extent.
const MAX_EXTENTS: usize = 1 << 22;
/// The number of archives whose lists of members are kept.
const KEPT: usize = 16;

/// The store inside an archive. The archive itself, and paths outside of it, are paths of the store that has
/// the archive.
#[derive(Debug)]
pub(super) struct Archive {
    files: Arc<dyn Store>,
    /// See [`Mounted::number`](super::mounted::Mounted).
    number: u64,
    path: String,
}

/// The members of an archive.
#[derive(Debug)]
struct Members {
    /// The number of the store, and the archive's path there.
    key: (u64, String),
    info: FileInfo,
    /// The version of the archive's members, which changes with the archive.
    version: String,
    by_name: BTreeMap<String, Member>,
}

#[derive(Clone, Debug)]
struct Member {
    start: u64,
    size: u64,
    modified_ms: i64,
    /// The extents of a sparse file.
    map: Option<SparseMap>,
    /// A description of a member that cannot be read because it is not a regular file.
    other: Option<&'static str>,
}

/// The endings of archives that are read.
const ENDINGS: [&str; 5] = [".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"];

/// A name without the ending of an archive, if it has one.
pub(crate) fn without_archive_ending(name: &str) -> &str {
    stem(name).unwrap_or(name)
}

/// The name of an archive without its ending; None for any other name.
fn stem(name: &str) -> Option<&str> {
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).filter(|stem| !stem.is_empty())
}

static OPENED: Mutex<Vec<Arc<Members>>> = Mutex::new(Vec::new());

/// The archive in a path. None if the path does not lead into an archive. The archive need not exist, but a
/// local directory with such a name is a directory.
fn archive_in(path: &Path) -> Option<&str> {
    let text = path.to_str().filter(|text| text.contains(".t"))?;
    let ends = text.match_indices('/').map(|(at, _)| at).chain([text.len()]);
    let is_archive = |path: &&str| {
        let name = path.rsplit_once('/').map_or(*path, |(_, name)| name);
        stem(name).is_some() && !Path::new(path).is_dir()
    };
    ends.map(|end| &text[..end]).find(is_archive)
}

impl Archive {
    /// The archive that a path leads into; None if it leads into none.
    pub(super) fn at(path: &Path, files: &Arc<dyn Store>, number: u64) -> Option<Self> {
        archive_in(path).map(|path| Self { files: Arc::clone(files), number, path: path.to_owned() })
    }

    /// The path inside the archive; none for the archive itself, and for paths outside of it.
    fn inside<'p>(&self, path: &'p Path) -> Option<&'p str> {
        let inside = path.to_str()?.strip_prefix(&self.path)?;
        Some(inside.trim_matches('/')).filter(|name| !name.is_empty() && inside.starts_with('/'))
    }

    /// The members of the archive as it is now.
    fn members(&self) -> io::Result<Arc<Members>> {
        let info = self.files.examine(Path::new(&self.path))?.into_file()?;
        if let Some(known) = self.known(|known| known.info == info) {
            return Ok(known);
        }
        let content = self.open_content(&info)?;
        let size = match &content {
            OpenFile::Unpacked(content) => content.size,
            _ => info.size,
        };
        let by_name = list_members(content, size)?;
        let key = (self.number, self.path.clone());
        let members = Arc::new(Members { key, version: info.identity(), info, by_name });
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|known| known.key != members.key);
        if opened.len() >= KEPT {
            opened.remove(0);
        }
        opened.push(Arc::clone(&members));
        Ok(members)
    }

    /// The members of the archive as it was last listed in this process. They serve for the files beside a
    /// segment, and for members with a pinned version, without a look at the archive for each file.
    fn last_members(&self, version: Option<&str>) -> io::Result<Arc<Members>> {
        let is_wanted = |known: &Members| version.is_none() || version == Some(&known.version);
        if let Some(known) = self.known(is_wanted) {
            return Ok(known);
        }
        let members = self.members()?;
        if is_wanted(&members) { Ok(members) } else { Err(changed()) }
    }

    fn known(&self, is_wanted: impl Fn(&Members) -> bool) -> Option<Arc<Members>> {
        let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of_this = |known: &Members| known.key.0 == self.number && known.key.1 == self.path;
        opened.iter().find(|known| is_of_this(known) && is_wanted(known)).cloned()
    }

    /// The archive without its compression.
    fn open_content(&self, info: &FileInfo) -> io::Result<OpenFile> {
        let open = || self.files.open(Path::new(&self.path), info.size, info.version.as_deref());
        match Packing::of(&self.path) {
            None => open(),
            Some(packing) => {
                let key = (self.number, self.path.clone(), info.identity());
                unpack(key, packing, MAX_ARCHIVE, open).map(OpenFile::Unpacked)
            }
        }
    }
}

impl Store for Archive {
    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        let (members, inside) = match self.inside(directory) {
            Some(inside) => (self.last_members(None)?, inside),
            None => (self.members()?, ""),
        };
        let examined = |name: &str| members.examine(format!("{inside}/{name}").trim_start_matches('/'));
        let names = members.below(inside)?;
        Ok(names.into_iter().map(|name| (directory.join(name), examined(name))).collect())
    }

    fn examine(&self, path: &Path) -> io::Result<Found> {
        match self.inside(path) {
            Some(inside) => self.last_members(None)?.examine(inside),
            None => self.files.examine(path),
        }
    }

    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        let is_archive = path.to_str().is_some_and(|path| path.trim_end_matches('/') == self.path);
        Ok(is_archive || matches!(self.examine(path)?, Found::Other(Other::Directory, _)))
    }

    fn open(&self, path: &Path, size: u64, version: Option<&str>) -> io::Result<OpenFile> {
        let Some(inside) = self.inside(path) else { return self.files.open(path, size, version) };
        let members = self.last_members(version)?;
        let member = members.by_name.get(inside).ok_or_else(missing)?;
        if let Some(what) = member.other {
            let why = format!("it is {what}, not a regular file");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let archive = self.open_content(&members.info)?;
        Ok(match &member.map {
            Some(map) => OpenFile::Composed(Box::new(SparseMember { archive, map: map.clone() })),
            None => OpenFile::Member { archive: Box::new(archive), start: member.start, size: member.size },
        })
    }

    fn open_small(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        if self.inside(path).is_none() {
            return self.files.open_small(path);
        }
        let info = self.examine(path)?.into_file()?;
        let file = self.open(path, info.size, info.version.as_deref())?;
        Ok((Box::new(Sequential { file, position: 0 }), info.size))
    }
}

impl Members {
    /// The names directly below a directory.
    fn below(&self, directory: &str) -> io::Result<BTreeSet<&str>> {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let below = self.by_name.range(prefix.clone()..).map_while(|(name, _)| name.strip_prefix(&prefix));
        let names: BTreeSet<&str> =
            below.map(|rest| rest.split_once('/').map_or(rest, |(name, _)| name)).collect();
        if names.is_empty() && !directory.is_empty() {
            return Err(missing());
        }
        Ok(names)
    }

    /// The file or directory at a path inside the archive.
    fn examine(&self, name: &str) -> io::Result<Found> {
        let Some(member) = self.by_name.get(name) else {
            self.below(name)?;
            return Ok(Found::Other(Other::Directory, "it is a directory, not a regular file".into()));
        };
        Ok(match member.other {
            Some(what) => Found::Other(Other::Special, format!("it is {what}, not a regular file")),
            None => Found::File(FileInfo {
                size: member.size,
                modified_ms: member.modified_ms,
                version: Some(self.version.clone()),
                inode: None,
            }),
        })
    }
}

fn missing() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the archive has no such member")
}

/// Lists the members. Of two members with one name, the later member counts, as for tar itself.
fn list_members(file: OpenFile, size: u64) -> io::Result<BTreeMap<String, Member>> {
    let mut reader = Seeking { size, file: Sequential { file, position: 0 } };
    let mut sparse = check_headers(&mut reader, MAX_MEMBERS)?;
    reader.rewind()?;
    let mut members = BTreeMap::new();
    let (mut sparse_bytes, mut extents): (u64, usize) = (0, 0);
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries_with_seek()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        let mut pax = PaxSparse::default();
        for record in entry.pax_extensions()?.into_iter().flatten() {
            let record = record?;
            pax.add(record.key_bytes(), record.value_bytes());
        }
        let path = pax.name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let name = match std::str::from_utf8(&path) {
            Ok(name) => name.to_owned(),
            Err(_) => path.escape_ascii().to_string(),
        };
        let stored = entry.raw_file_position()..entry.raw_file_position().saturating_add(entry.size());
        let map = match kind.is_gnu_sparse() {
            true => sparse.remove(&entry.raw_header_position()),
            false => pax.map(stored, &mut entry)?,
        };
        let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
        let other = match kind {
            tar::EntryType::Regular | tar::EntryType::Continuous | tar::EntryType::GNUSparse => None,
            tar::EntryType::Directory => continue,
            tar::EntryType::Symlink | tar::EntryType::Link => Some("a link inside an archive"),
            _ => Some("a special file inside an archive"),
        };
        let (map, not_read) = match map {
            Some(Ok(map)) => (Some(map), None),
            Some(Err(what)) => (None, Some(what)),
            None => (None, None),
        };
        // Holes cost nothing in an archive, but are read as zeros.
        sparse_bytes = sparse_bytes.saturating_add(map.as_ref().map_or(0, |map| map.size));
        extents += map.as_ref().map_or(0, |map| map.extents.len());
        if extents > MAX_EXTENTS {
            let why = format!("tar: the maps of its sparse files have more than {MAX_EXTENTS} extents");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        if sparse_bytes > MAX_ARCHIVE {
            let why = format!("tar: its sparse files have more than {MAX_ARCHIVE} bytes, which is the limit");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        let member = Member {
            start: entry.raw_file_position(),
            size: map.as_ref().map_or(entry.size(), |map| map.size),
            modified_ms: entry.header().mtime().unwrap_or(0).saturating_mul(1000) as i64,
            map,
            other: other.or(not_read),
        };
        members.insert(parts.join("/"), member);
    }
    Ok(members)
}

/// The maps of sparse members in the old format, by the position of the member's header.
type SparseMaps = HashMap<u64, Result<SparseMap, &'static str>>;

/// Walks over all headers before the library does. The library reads long names, extended headers and the
/// maps of sparse files whole, and keeps all names. Returns the maps, which the library does not expose.
///
/// # Errors
/// If they would take too much memory ([`io::ErrorKind::InvalidData`]), or cannot be read.
fn check_headers(reader: &mut Seeking, max_members: usize) -> io::Result<SparseMaps> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut maps = SparseMaps::new();
    let (mut position, mut members, mut extensions) = (0, 0, 0);
    loop {
        reader.seek(SeekFrom::Start(position))?;
        let mut header = tar::Header::new_old();
        // The library reports where an archive is cut, and wrong checksums.
        if !fill(reader, header.as_mut_bytes())? || header.as_bytes().iter().all(|&byte| byte == 0) {
            return Ok(maps);
        }
        if members == max_members {
            return Err(invalid(format!("tar: the archive has more than {max_members} members")));
        }
        members += 1;
        let kind = header.entry_type();
        let size = header.entry_size()?;
        let mut start = position + BLOCK;
        let mut extension = match kind {
            _ if kind.is_gnu_longname() || kind.is_gnu_longlink() => size,
            _ if kind.is_pax_global_extensions() || kind.is_pax_local_extensions() => size,
            _ => 0,
        };
        if let (true, Some(gnu)) = (kind.is_gnu_sparse(), header.as_gnu()) {
            let mut ranges = ranges_of(&gnu.sparse);
            let mut is_extended = gnu.is_extended();
            while is_extended && extension <= MAX_EXTENSION {
                let mut more = tar::GnuExtSparseHeader::new();
                if !fill(reader, more.as_mut_bytes())? {
                    break;
                }
                match (&mut ranges, ranges_of(more.sparse())) {
                    (Some(ranges), Some(more)) => ranges.extend(more),
                    _ => ranges = None,
                }
                is_extended = more.is_extended();
                (start, extension) = (start + BLOCK, extension + BLOCK);
            }
            let stored = start..start.saturating_add(size);
            let map = match (ranges, gnu.real_size()) {
                (Some(ranges), Ok(size)) => SparseMap::new(size, &ranges, &stored),
                _ => Err("a sparse file whose map is damaged, inside an archive"),
            };
            maps.insert(position, map);
        }
        extensions += extension.min(MAX_EXTENSION);
        if extensions > MAX_EXTENSIONS {
            return Err(invalid(format!("tar: the extended headers have more than {MAX_EXTENSIONS} bytes")));
        }
        if extension > MAX_EXTENSION {
            return Err(invalid(format!(
                "tar: the extended header at byte {position} has {extension} bytes, more than {MAX_EXTENSION}"
            )));
        }
        let blocks = size.div_ceil(BLOCK).checked_mul(BLOCK);
        let Some(next) = blocks.and_then(|bytes| start.checked_add(bytes)) else {
            return Err(invalid(format!("tar: the member at byte {position} has {size} bytes")));
        };
        position = next;
    }
}

/// The start and length of each extent; None if one is not a number.
fn ranges_of(headers: &[tar::GnuSparseHeader]) -> Option<Vec<(u64, u64)>> {
    let known = headers.iter().filter(|header| !header.is_empty());
    known.map(|header| Some((header.offset().ok()?, header.length().ok()?))).collect()
}

/// Fills the buffer; returns false if the archive ends before.
fn fill(reader: &mut Seeking, buffer: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// A file with a position.
struct Seeking {
    file: Sequential,
    size: u64,
}

impl Read for Seeking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Seek for Seeking {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(distance) => self.size.checked_add_signed(distance),
            SeekFrom::Current(distance) => self.file.position.checked_add_signed(distance),
        };
        // A member cannot end after the archive.
        let position = position.filter(|&position| position <= self.size.saturating_add(512));
        self.file.position = position.ok_or_else(|| {
            io::Error::new(io::ErrorKind::UnexpectedEof, "tar: the archive ends within a member")
        })?;
        Ok(self.file.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(names: &[&str]) -> Seeking {
        let mut archive = tar::Builder::new(tempfile::tempfile().expect("created"));
        for name in names {
            let mut header = tar::Header::new_gnu();
            header.set_size(0);
            archive.append_data(&mut header, name, io::empty()).expect("written");
        }
        let file = archive.into_inner().expect("written");
        let size = file.metadata().expect("examined").len();
        Seeking { size, file: Sequential { file: OpenFile::Local(file), position: 0 } }
    }

    #[test]
    fn what_would_take_memory_is_refused() {
        let refused =
            |names: &[&str]| check_headers(&mut archive(names), 3).map(drop).map_err(|e| e.to_string());
        assert_eq!(refused(&["a", "b", "c"]), Ok(()));
        assert_eq!(refused(&["a", "b", "c", "d"]), Err("tar: the archive has more than 3 members".into()));
        let long = |length: usize| format!("{}.log", "x/".repeat(length / 2));
        assert_eq!(refused(&[&long(1000)]), Ok(()));
        let why = refused(&[&long(MAX_EXTENSION as usize)]).expect_err("too long");
        assert!(why.starts_with("tar: the extended header at byte 0 has 10485"), "{why}");
    }
}
