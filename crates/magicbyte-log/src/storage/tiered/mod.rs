//! Segments in tiered storage as Aiven's plugin writes them, presented as the files of a partition. Each
//! segment has three objects (`ObjectKeyFactory`): `OFFSET-ID.log`, in chunks; `OFFSET-ID.indexes`, all files
//! beside the segment; and `OFFSET-ID.rsm-manifest`, which describes both. Without a manifest, a file is what
//! it seems to be.

mod chunk_index;
mod chunked;
pub(crate) mod encryption;
mod manifest;

use std::collections::HashSet;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::storage::file_info::{
    FileInfo, Found, MAX_SIDECAR_BYTES, Other, changed, ends_the_run, too_large,
};
use crate::storage::open_file::{OpenFile, read_range};
use crate::storage::remote_names::{partition_below_topic, without_id};
use crate::storage::store::{Entry, Store};
use crate::storage::tiered::chunked::Chunked;
use crate::storage::tiered::encryption::{EncryptionKeys, OVERHEAD};
use crate::storage::tiered::manifest::{MAX_MANIFEST, Manifest, SIDECARS};

const MANIFEST: &str = "rsm-manifest";
const INDEXES: &str = "indexes";
/// The number of manifests that are kept.
const KEPT: usize = 64;

/// The files of a store, with the segments of Aiven's plugin as files of a partition.
#[derive(Debug)]
pub(super) struct Tiered {
    pub(super) files: Arc<dyn Store>,
    /// See [`Mounted::number`](super::mounted::Mounted).
    pub(super) number: u64,
    pub(super) keys: EncryptionKeys,
}

/// A segment among all that this process has opened: the number of its store, the keys by which that reads, and the path
/// of the segment's log.
#[derive(Debug, PartialEq)]
struct SegmentKey {
    store: u64,
    keys: EncryptionKeys,
    log: PathBuf,
}

/// A segment with a manifest.
#[derive(Debug)]
struct RemoteSegment {
    key: SegmentKey,
    manifest: Arc<Manifest>,
    /// The object with the log.
    object: FileInfo,
    /// A value that changes with the manifest or the object.
    version: String,
}

static OPENED: Mutex<Vec<Arc<RemoteSegment>>> = Mutex::new(Vec::new());

impl Store for Tiered {
    /// The files that a directory's entries represent. A segment's log and the files beside it replace the
    /// segment's objects. A segment with a wrong manifest becomes an entry that cannot be read.
    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        let entries = self.files.list(directory)?;
        let described: HashSet<PathBuf> = entries
            .iter()
            .filter(|(path, _)| has_ending(path, MANIFEST))
            .filter_map(|(path, _)| log_of(path))
            .collect();
        let is_of_aiven = partition_below_topic(directory).is_some();
        if described.is_empty() && !is_of_aiven {
            return Ok(entries);
        }
        let mut presented = Vec::new();
        for (path, found) in entries {
            let is_object = [MANIFEST, INDEXES, "log"].iter().any(|ending| has_ending(&path, ending));
            match log_of(&path).filter(|_| is_object) {
                Some(log) if described.contains(&log) => {}
                // The manifest is written last.
                Some(log) if is_of_aiven && log == path => {
                    let why = "it has no manifest: it was not copied to its end".to_owned();
                    presented.push((path, Ok(Found::Other(Other::Unfinished, why))));
                }
                _ => presented.push((path, found)),
            }
        }
        for path in described {
            match self.segment(&path) {
                Ok(segment) => presented.extend(segment.iter().flat_map(|segment| segment.files())),
                Err(error) if ends_the_run(&error) => return Err(error),
                Err(error) => presented.push((path, Ok(Found::Other(Other::Unknown, error.to_string())))),
            }
        }
        Ok(presented)
    }

    fn examine(&self, path: &Path) -> io::Result<Found> {
        let Some(log) = may_be_part_of(path) else { return self.files.examine(path) };
        match self.segment(&log) {
            Ok(None) => self.files.examine(path),
            Ok(Some(segment)) => match segment.files().into_iter().find(|(file, _)| file == path) {
                Some((_, found)) => found,
                None => Err(io::ErrorKind::NotFound.into()),
            },
            Err(error) if ends_the_run(&error) => Err(error),
            Err(error) => Ok(Found::Other(Other::Unknown, error.to_string())),
        }
    }

    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        self.files.is_directory(path)
    }

    fn open(&self, path: &Path, size: u64, version: Option<&str>) -> io::Result<OpenFile> {
        let segment = match may_be_part_of(path).filter(|log| log == path) {
            Some(log) => self.last_segment(&log, version)?,
            None => None,
        };
        let Some(segment) = segment else { return self.files.open(path, size, version) };
        let object = self.files.open(path, segment.object.size, segment.object.version.as_deref())?;
        if !segment.manifest.is_transformed() {
            return Ok(object);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let chunked = Chunked::new(Arc::clone(&segment.manifest), object, name);
        Ok(OpenFile::Composed(Box::new(chunked)))
    }

    fn open_small(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        let segment = match may_be_part_of(path).filter(|log| log != path) {
            Some(log) => self.last_segment(&log, None)?,
            None => None,
        };
        let Some(segment) = segment else { return self.files.open_small(path) };
        let content = self.sidecar(&segment, path)?;
        let size = content.len() as u64;
        Ok((Box::new(Cursor::new(content)), size))
    }
}

impl Tiered {
    /// The content of a file beside a segment.
    fn sidecar(&self, segment: &RemoteSegment, path: &Path) -> io::Result<Vec<u8>> {
        let range = segment.manifest.sidecars.iter().find(|(ending, _)| has_ending(path, ending));
        let Some((_, range)) = range else { return Err(io::ErrorKind::NotFound.into()) };
        if range.end - range.start > MAX_SIDECAR_BYTES {
            return Err(too_large(range.end - range.start));
        }
        let indexes = path.with_extension(INDEXES);
        let invalid = |why: String| {
            let name = indexes.file_name().unwrap_or_default().to_string_lossy();
            let why = format!("bytes {}..{} of {name}: {why}", range.start, range.end);
            io::Error::new(io::ErrorKind::InvalidData, why)
        };
        let info = self.files.examine(&indexes).and_then(Found::into_file);
        let info = info.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => invalid("the object is missing".into()),
            _ => error,
        })?;
        let object = self.files.open(&indexes, info.size, info.version.as_deref())?;
        let mut part = read_range(&object, range)?.map_err(invalid)?;
        if let Some(encryption) = &segment.manifest.encryption {
            encryption.decrypt(&mut part).map_err(invalid)?;
        }
        Ok(part)
    }

    /// The segment of a log as it is now. None if it has no manifest.
    fn segment(&self, log: &Path) -> io::Result<Option<Arc<RemoteSegment>>> {
        let path = log.with_extension(MANIFEST);
        let described = match self.files.examine(&path).and_then(Found::into_file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            described => described?,
        };
        let invalid = |why: String| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {why}"))
        };
        let object = self.files.examine(log).and_then(Found::into_file);
        let object = object.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => invalid("the object that it describes is missing".into()),
            _ => error,
        })?;
        let version = format!("{} {}", described.identity(), object.identity());
        if let Some(known) = self.known(log, Some(&version)) {
            return Ok(Some(known));
        }
        if described.size > MAX_MANIFEST {
            return Err(invalid(format!("{} bytes exceed the limit of {MAX_MANIFEST}", described.size)));
        }
        let file = self.files.open(&path, described.size, described.version.as_deref())?;
        let json = read_range(&file, &(0..described.size))?.map_err(invalid)?;
        let manifest = Arc::new(Manifest::parse(&json, &self.keys).map_err(invalid)?);
        let expected = manifest.chunks.stored_size();
        // A shorter object is read as far as it has chunks.
        if object.size > expected || (object.size < expected && !manifest.is_transformed()) {
            let why = format!("it describes {expected} bytes, and the object has {}", object.size);
            return Err(invalid(why));
        }
        let key = self.key(log);
        let segment = Arc::new(RemoteSegment { key, manifest, object, version });
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|known| known.key != segment.key);
        if opened.len() >= KEPT {
            opened.remove(0);
        }
        opened.push(Arc::clone(&segment));
        Ok(Some(segment))
    }

    /// The segment as it was last opened in this process, if it has the version. Its objects are not
    /// examined.
    fn last_segment(&self, log: &Path, version: Option<&str>) -> io::Result<Option<Arc<RemoteSegment>>> {
        if let Some(known) = self.known(log, version) {
            return Ok(Some(known));
        }
        match (self.segment(log)?, version) {
            (Some(segment), Some(version)) if segment.version != version => Err(changed()),
            (segment, _) => Ok(segment),
        }
    }

    fn known(&self, log: &Path, version: Option<&str>) -> Option<Arc<RemoteSegment>> {
        let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let key = self.key(log);
        let has_version = |known: &RemoteSegment| version.is_none_or(|version| known.version == version);
        opened.iter().find(|known| known.key == key && has_version(known)).cloned()
    }

    fn key(&self, log: &Path) -> SegmentKey {
        SegmentKey { store: self.number, keys: self.keys.clone(), log: log.to_owned() }
    }
}

impl RemoteSegment {
    fn info(&self) -> FileInfo {
        FileInfo {
            size: self.manifest.chunks.original_size,
            modified_ms: self.object.modified_ms,
            version: Some(self.version.clone()),
            inode: None,
        }
    }

    /// The log, and the files beside it.
    fn files(&self) -> Vec<Entry> {
        let added = if self.manifest.encryption.is_some() { OVERHEAD } else { 0 };
        let sidecars = self.manifest.sidecars.iter().map(|(ending, range)| {
            let size = (range.end - range.start).saturating_sub(added);
            let info = FileInfo { size, modified_ms: self.object.modified_ms, version: None, inode: None };
            (self.key.log.with_extension(ending), Ok(Found::File(info)))
        });
        sidecars.chain([(self.key.log.clone(), Ok(Found::File(self.info())))]).collect()
    }
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|extension| extension == ending)
}

/// The log of the segment that a file `OFFSET-ID.ENDING` belongs to.
fn log_of(path: &Path) -> Option<PathBuf> {
    without_id(path.file_stem()?.to_str()?)?;
    Some(path.with_extension("log"))
}

/// The log of the segment with a manifest that a path may belong to. The path is the log itself, or a file
/// beside it. Directories `topic-N-TOPICID` have no manifests (`LocalTieredStorage`), so no store is queried
/// for them.
fn may_be_part_of(path: &Path) -> Option<PathBuf> {
    let log = log_of(path)?;
    let is_presented = log == path || SIDECARS.iter().any(|ending| has_ending(path, ending));
    let directory = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    (is_presented && directory.is_none_or(|name| without_id(name).is_none())).then_some(log)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::fs;

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use rsa::rand_core::{TryCryptoRng, TryRng};
    use rsa::{Oaep, PrivateKey};
    use sha3::Sha3_512;

    use super::*;
    use crate::storage::local::Local;

    /// Numbers for keys that protect nothing.
    struct Numbers(u64);

    impl TryRng for Numbers {
        type Error = Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            self.try_next_u64().map(|number| number as u32)
        }

        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            // SplitMix64.
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            Ok(mixed ^ (mixed >> 31))
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
            for byte in bytes {
                *byte = self.try_next_u64()? as u8;
            }
            Ok(())
        }
    }

    impl TryCryptoRng for Numbers {}

    fn segment(key: &PrivateKey, directory: &Path) -> PathBuf {
        let log = directory.join("00000000000000000000-9ReE-tebSsmSlbyz2x-Ljg.log");
        let data_key = key
            .as_public_key()
            .encrypt(&mut Numbers(2), Oaep::<Sha3_512>::new(), &[7; 32])
            .map(|encrypted| STANDARD.encode(encrypted))
            .unwrap();
        let manifest = serde_json::json!({
            "version": "1",
            "chunkIndex": {
                "type": "fixed", "originalChunkSize": 100, "originalFileSize": 72,
                "transformedChunkSize": 128, "finalTransformedChunkSize": 100,
            },
            "segmentIndexes": {
                "offset": {"position": 0, "size": 0}, "timestamp": {"position": 0, "size": 0},
                "producerSnapshot": {"position": 0, "size": 0}, "leaderEpoch": {"position": 0, "size": 0},
            },
            "compression": false,
            "encryption": {"dataKey": format!("key1:{data_key}"), "aad": STANDARD.encode([1; 32])},
        });
        fs::write(log.with_extension(MANIFEST), manifest.to_string()).unwrap();
        fs::write(&log, [0; 100]).unwrap();
        log
    }

    #[test]
    fn the_keys_of_one_store_are_not_those_of_another() {
        let directory = tempfile::tempdir().unwrap();
        let key = PrivateKey::new(&mut Numbers(1), 2048).unwrap();
        let other = PrivateKey::new(&mut Numbers(3), 2048).unwrap();
        let log = segment(&key, directory.path());
        let tiered = |keys: &EncryptionKeys| Tiered { files: Arc::new(Local), number: 0, keys: keys.clone() };
        let with = |keys: &EncryptionKeys| tiered(keys).segment(&log).map(|found| found.is_some());
        let (named, unnamed) =
            (EncryptionKeys::of(&[(Some("key1"), &key)]), EncryptionKeys::of(&[(None, &key)]));
        let wrong = EncryptionKeys::of(&[(Some("key1"), &other), (None, &key)]);
        for _ in 0..2 {
            assert!(with(&named).unwrap());
            assert!(with(&unnamed).unwrap());
            // Neither finds what the others have opened.
            let missing = with(&EncryptionKeys::default()).unwrap_err().to_string();
            assert!(missing.contains("encrypted with the key \"key1\": pass that"), "{missing}");
            let refused = with(&wrong).unwrap_err().to_string();
            assert!(refused.contains("none of those that were passed"), "{refused}");
        }
        assert!(tiered(&named).known(&log, None).is_some());
        assert!(tiered(&EncryptionKeys::default()).known(&log, None).is_none());
    }
}
