//! Sparse members of archives (`tar -S`): of a file with holes, an archive has only a map and the bytes between the holes. GNU
//! tar has two kinds of maps: in the headers of its old format, and with pax in the versions 0.0, 0.1 and 1.0 ("Storing Sparse
//! Files" in its manual).

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use crate::storage::open_file::{Composed, OpenFile};
use crate::storage::unpacked::MAX_SEGMENT;

/// The longest map inside of a member, in bytes.
const MAX_MAP: usize = 1 << 20;
const BLOCK: usize = 512;
const DAMAGED: &str = "a sparse file whose map is damaged, inside an archive";
const TOO_LARGE: &str = "a sparse file of more than 2 GiB, which no segment has, inside an archive";
const UNKNOWN: &str = "a sparse file in a format other than those of GNU tar, inside an archive";

/// Bytes of a sparse file that an archive has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Position in the file.
    pub(super) start: u64,
    pub(super) length: u64,
    /// Position in the archive.
    pub(super) stored_at: u64,
}

/// The map of a sparse file. Everything outside of its extents is zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SparseMap {
    pub(super) size: u64,
    pub(super) extents: Arc<[Extent]>,
}

impl SparseMap {
    /// The map of a file of `size` bytes, given the start and length of its extents, which are stored one after the other
    /// in a range of the archive.
    ///
    /// # Errors
    /// What the member is, if it cannot be read: extents that overlap, or that are not in the file or the archive.
    pub(super) fn new(size: u64, ranges: &[(u64, u64)], stored: &Range<u64>) -> Result<Self, &'static str> {
        if size > MAX_SEGMENT {
            return Err(TOO_LARGE);
        }
        let (mut end, mut stored_at) = (0, stored.start);
        let mut extents = Vec::new();
        for &(start, length) in ranges {
            let is_within = start.checked_add(length).is_some_and(|end| end <= size);
            let fits = stored_at.checked_add(length).is_some_and(|end| end <= stored.end);
            if start < end || !is_within || !fits {
                return Err(DAMAGED);
            }
            if length > 0 {
                extents.push(Extent { start, length, stored_at });
            }
            (end, stored_at) = (start + length, stored_at + length);
        }
        Ok(Self { size, extents: extents.into() })
    }

    /// The part of the file that a position is in: the extent, or the end of the hole.
    fn at(&self, position: u64) -> Result<&Extent, u64> {
        let index = self.extents.partition_point(|extent| extent.start + extent.length <= position);
        match self.extents.get(index) {
            Some(extent) if extent.start <= position => Ok(extent),
            Some(extent) => Err(extent.start),
            None => Err(self.size),
        }
    }
}

/// The records `GNU.sparse.*` of a member's extended header.
#[derive(Debug, Default)]
pub(super) struct PaxSparse {
    version: Option<(u64, u64)>,
    major: u64,
    /// The file's name: the member has another one.
    pub(super) name: Option<Vec<u8>>,
    size: Option<u64>,
    ranges: Vec<(u64, u64)>,
    offset: Option<u64>,
    has_map: bool,
    is_sparse: bool,
    is_wrong: bool,
}

impl PaxSparse {
    /// Adds a record of the extended header.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        if key == b"SCHILY.realsize" {
            self.is_sparse = true;
        }
        let Some(key) = key.strip_prefix(b"GNU.sparse.") else { return };
        self.is_sparse = true;
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
        match (key, number) {
            (b"name", _) => self.name = Some(value.to_vec()),
            (b"major", Some(major)) => self.major = major,
            (b"minor", Some(minor)) => self.version = Some((self.major, minor)),
            (b"size" | b"realsize", Some(size)) => self.size = Some(size),
            (b"numblocks", Some(_)) => self.has_map = true,
            (b"offset", Some(offset)) => self.offset = Some(offset),
            (b"numbytes", Some(length)) => match self.offset.take() {
                Some(offset) => self.ranges.push((offset, length)),
                None => self.is_wrong = true,
            },
            (b"map", _) => {
                self.has_map = true;
                match numbers(value, b',') {
                    Some(numbers) if numbers.len().is_multiple_of(2) => self.ranges = pairs(&numbers),
                    _ => self.is_wrong = !value.is_empty(),
                }
            }
            _ => self.is_wrong = true,
        }
    }

    /// The map, given the member's bytes in the archive. None if the member is not sparse.
    ///
    /// # Errors
    /// The errors of reading; the kind of the member, if it cannot be read as a sparse file.
    pub(super) fn map(
        self,
        stored: Range<u64>,
        content: impl Read,
    ) -> io::Result<Option<Result<SparseMap, &'static str>>> {
        if !self.is_sparse {
            return Ok(None);
        }
        let Some(size) = self.size.filter(|_| !self.is_wrong) else { return Ok(Some(Err(UNKNOWN))) };
        Ok(Some(match self.version {
            None if self.has_map => SparseMap::new(size, &self.ranges, &stored),
            // The map is at the member's start, padded to whole blocks.
            Some((1, 0)) => match read_map(content)? {
                Some((ranges, length)) if length <= stored.end - stored.start => {
                    SparseMap::new(size, &ranges, &(stored.start + length..stored.end))
                }
                _ => Err(DAMAGED),
            },
            _ => Err(UNKNOWN),
        }))
    }
}

/// Places and lengths of the parts of a file that are stored.
type Extents = Vec<(u64, u64)>;

/// The map at the start of a member of version 1.0: decimal numbers, each in a line; the first is the number of extents.
/// Returns its extents, and how many bytes it has.
fn read_map(mut content: impl Read) -> io::Result<Option<(Extents, u64)>> {
    let mut map = Vec::new();
    let mut block = [0; BLOCK];
    let mut lines = 0;
    while map.len() < MAX_MAP {
        if let Err(error) = content.read_exact(&mut block) {
            return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
        }
        map.extend_from_slice(&block);
        lines += memchr::memchr_iter(b'\n', &block).count();
        // The count is in the first block, or the map is damaged.
        let Some(end) = memchr::memchr(b'\n', &map[..BLOCK]) else { return Ok(None) };
        let count = numbers(&map[..end], b'\n').and_then(|first| usize::try_from(*first.first()?).ok());
        let Some(wanted) = count.and_then(|count| count.checked_mul(2)) else { return Ok(None) };
        if lines > wanted {
            let last = memchr::memchr_iter(b'\n', &map).nth(wanted).unwrap_or(end);
            let ranges = map.get(end + 1..last).map_or(Some(Vec::new()), |lines| numbers(lines, b'\n'));
            return Ok(ranges.map(|numbers| (pairs(&numbers), map.len() as u64)));
        }
    }
    Ok(None)
}

fn numbers(text: &[u8], separator: u8) -> Option<Vec<u64>> {
    text.split(|&byte| byte == separator)
        .map(|number| std::str::from_utf8(number).ok()?.parse().ok())
        .collect()
}

fn pairs(numbers: &[u64]) -> Vec<(u64, u64)> {
    numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// A sparse member that is open.
#[derive(Debug)]
pub(super) struct SparseMember {
    pub(super) archive: OpenFile,
    pub(super) map: SparseMap,
}

impl Composed for SparseMember {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let length = self.map.size.saturating_sub(position).min(buffer.len() as u64);
        match self.map.at(position) {
            Ok(extent) => {
                let inside = position - extent.start;
                let length = length.min(extent.length - inside) as usize;
                self.archive.read_at(&mut buffer[..length], extent.stored_at + inside)
            }
            Err(end) => {
                let length = length.min(end.saturating_sub(position)) as usize;
                buffer[..length].fill(0);
                Ok(length)
            }
        }
    }

    fn read_through(&self, range: &Range<u64>) {
        for extent in self.map.extents.iter() {
            let start = range.start.max(extent.start);
            let end = range.end.min(extent.start + extent.length);
            if start < end {
                let first = extent.stored_at + (start - extent.start);
                self.archive.read_through(&(first..first + (end - start)));
            }
        }
    }

    fn is_remote(&self) -> bool {
        self.archive.is_remote()
    }

    fn damage(&self, _range: &Range<u64>) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(member: &SparseMember, step: usize) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), vec![1; step]);
        loop {
            match member.read_at(&mut buffer, all.len() as u64).expect("readable") {
                0 => return all,
                read => all.extend_from_slice(&buffer[..read]),
            }
        }
    }

    #[test]
    fn holes_are_zeros() -> io::Result<()> {
        let file = tempfile::tempfile()?;
        io::Write::write_all(&mut &file, b"..abcdefg")?;
        let map = SparseMap::new(20, &[(1, 3), (4, 0), (10, 4), (20, 0)], &(2..9)).expect("a map");
        let member = SparseMember { archive: OpenFile::Local(file), map };
        for step in 1..25 {
            assert_eq!(read_all(&member, step), b"\0abc\0\0\0\0\0\0defg\0\0\0\0\0\0");
        }
        Ok(())
    }

    #[test]
    fn wrong_maps() {
        let map = |size, ranges: &[(u64, u64)]| SparseMap::new(size, ranges, &(0..100)).map(|_| ());
        assert_eq!(map(50, &[(0, 10), (40, 10)]), Ok(()));
        assert_eq!(map(0, &[]), Ok(()));
        let damaged: [&[(u64, u64)]; 5] =
            [&[(0, 51)], &[(10, 10), (0, 5)], &[(0, 10), (9, 1)], &[(51, 0)], &[(u64::MAX, 1)]];
        for ranges in damaged {
            assert_eq!(map(50, ranges), Err(DAMAGED), "{ranges:?}");
        }
        assert_eq!(map(200, &[(0, 60), (60, 60)]), Err(DAMAGED));
        assert_eq!(map(MAX_SEGMENT + 1, &[]), Err(TOO_LARGE));
    }

    #[test]
    fn maps_of_pax() {
        let of = |records: &[(&str, &str)], content: &[u8]| {
            let mut pax = PaxSparse::default();
            records.iter().for_each(|(key, value)| pax.add(key.as_bytes(), value.as_bytes()));
            pax.map(1000..2000, content).expect("read").map(|map| map.map(|map| map.extents.to_vec()))
        };
        let extent = |start, length, stored_at| Extent { start, length, stored_at };
        assert_eq!(of(&[("mtime", "1")], b""), None);
        let v1 = [("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "900")];
        let mut content = b"2\n5\n10\n800\n100\n".to_vec();
        content.resize(BLOCK, 0);
        let expected = vec![extent(5, 10, 1512), extent(800, 100, 1522)];
        assert_eq!(of(&v1, &content), Some(Ok(expected.clone())));
        let none = {
            let mut none = b"0\n".to_vec();
            none.resize(BLOCK, 0);
            none
        };
        assert_eq!(of(&v1, &none), Some(Ok(vec![])));
        for wrong in
            [&b"2\n5\n10\n"[..], b"", b"x\n", b"99999999999999999999\n", b"1\n-1\n5\n", &[b'1'; BLOCK]]
        {
            let mut content = wrong.to_vec();
            content.resize(if wrong.is_empty() { 0 } else { BLOCK }, 0);
            assert_eq!(of(&v1, &content), Some(Err(DAMAGED)), "{wrong:?}");
        }
        let shifted = vec![extent(5, 10, 1000), extent(800, 100, 1010)];
        let v01 =
            [("GNU.sparse.size", "900"), ("GNU.sparse.map", "5,10,800,100"), ("GNU.sparse.numblocks", "2")];
        assert_eq!(of(&v01, b""), Some(Ok(shifted.clone())));
        let mut v00 = vec![("GNU.sparse.size", "900"), ("GNU.sparse.numblocks", "2")];
        v00.extend([("GNU.sparse.offset", "5"), ("GNU.sparse.numbytes", "10")]);
        v00.extend([("GNU.sparse.offset", "800"), ("GNU.sparse.numbytes", "100")]);
        assert_eq!(of(&v00, b""), Some(Ok(shifted)));
        for unknown in [
            &[("GNU.sparse.major", "2"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "9")][..],
            &[("GNU.sparse.map", "5,10,800"), ("GNU.sparse.size", "900")],
            &[("GNU.sparse.map", "5,10")],
            &[("GNU.sparse.size", "900")],
            &[("GNU.sparse.size", "900"), ("GNU.sparse.numbytes", "5")],
            &[("SCHILY.realsize", "900")],
        ] {
            assert_eq!(of(unknown, b""), Some(Err(UNKNOWN)), "{unknown:?}");
        }
    }
}
