//! What lies in a partition's directory: segments, sidecars, and files that are no part of the log.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::{LogError, LogResult};

/// One `.log` (or `.checkpoint`) file, its size as it was when listed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Segment {
    /// The whole path.
    pub path: String,
    /// The name alone.
    pub file: String,
    /// The topic, from the directory's name `topic-N`.
    pub topic: String,
    /// The partition, from the directory's name.
    pub partition: i32,
    /// The base offset, from the file's name.
    pub base_offset: i64,
    /// Bytes.
    pub size: u64,
    /// Last modification, milliseconds since 1970.
    pub modified_ms: i64,
    /// Whether it is a KRaft snapshot, whose offsets start at 0 whatever its name.
    pub is_checkpoint: bool,
}

/// An index, snapshot or checkpoint file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sidecar {
    /// The name.
    pub file: String,
    /// Bytes.
    pub size: u64,
    /// The ending, or the whole name of those that have a fixed one.
    pub kind: String,
}

/// A file that is not read as part of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IgnoredFile {
    /// The name.
    pub file: String,
    /// Bytes.
    pub size: u64,
    /// `deleted`, `cleaned`, `swap`, `checkpoint`, `foreign` or `overlapping`.
    pub reason: String,
}

/// A partition's directory. Every file in it is in exactly one of the three lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Listing {
    /// The directory.
    pub path: String,
    /// From the directory's name `topic-N`; the whole name if it has no such form.
    pub topic: String,
    /// From the directory's name, 0 if it has no such form.
    pub partition: i32,
    /// In offset order.
    pub segments: Vec<Segment>,
    /// In name order.
    pub sidecars: Vec<Sidecar>,
    /// In name order.
    pub ignored: Vec<IgnoredFile>,
}

/// Lists a partition's directory; a single `.log` or `.checkpoint` file counts as a directory
/// with just that file. KRaft `.checkpoint` snapshots are segments of the listing only on request.
///
/// # Errors
/// [`LogError::Io`] if it cannot be read.
pub fn list_partition(path: &Path, include_checkpoints: bool) -> LogResult<Listing> {
    let is_file = path.is_file();
    let directory = if is_file { path.parent().unwrap_or(Path::new(".")) } else { path };
    let (topic, partition) = topic_and_partition(directory);
    let mut listing = Listing { path: path.display().to_string(), topic, partition, ..Listing::default() };
    if is_file {
        listing.add(path, true)?;
    } else {
        for entry in fs::read_dir(path).map_err(|e| LogError::io(path, e))? {
            let entry = entry.map_err(|e| LogError::io(path, e))?.path();
            if entry.is_file() {
                listing.add(&entry, include_checkpoints)?;
            }
        }
    }
    listing.segments.sort_by(|a, b| (a.base_offset, &a.file).cmp(&(b.base_offset, &b.file)));
    listing.sidecars.sort_by(|a, b| a.file.cmp(&b.file));
    listing.ignored.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(listing)
}

impl Listing {
    fn add(&mut self, path: &Path, include_checkpoints: bool) -> LogResult<()> {
        let metadata = path.metadata().map_err(|e| LogError::io(path, e))?;
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let size = metadata.len();
        match classify(&file) {
            FileKind::Segment(base_offset) => self.add_segment(path, file, base_offset, &metadata, false),
            FileKind::Checkpoint(end_offset) if include_checkpoints => {
                self.add_segment(path, file, end_offset, &metadata, true);
            }
            FileKind::Checkpoint(_) => {
                self.ignored.push(IgnoredFile { file, size, reason: "checkpoint".into() });
            }
            FileKind::Sidecar(kind) => self.sidecars.push(Sidecar { file, size, kind: kind.into() }),
            FileKind::Ignored(reason) => self.ignored.push(IgnoredFile { file, size, reason: reason.into() }),
        }
        Ok(())
    }

    fn add_segment(
        &mut self,
        path: &Path,
        file: String,
        base_offset: i64,
        metadata: &fs::Metadata,
        is_checkpoint: bool,
    ) {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        self.segments.push(Segment {
            path: path.display().to_string(),
            file,
            topic: self.topic.clone(),
            partition: self.partition,
            base_offset,
            size: metadata.len(),
            modified_ms: modified.map_or(0, |since| since.as_millis() as i64),
            is_checkpoint,
        });
    }
}

enum FileKind {
    Segment(i64),
    Checkpoint(i64),
    Sidecar(&'static str),
    Ignored(&'static str),
}

fn classify(file: &str) -> FileKind {
    for (suffix, reason) in [(".deleted", "deleted"), (".cleaned", "cleaned"), (".swap", "swap")] {
        if file.ends_with(suffix) {
            return FileKind::Ignored(reason);
        }
    }
    for name in ["leader-epoch-checkpoint", "partition.metadata"] {
        if file == name {
            return FileKind::Sidecar(name);
        }
    }
    let Some((stem, ending)) = file.split_once('.') else { return FileKind::Ignored("foreign") };
    match (ending, base_offset(stem)) {
        ("log", Some(offset)) => FileKind::Segment(offset),
        ("index", Some(_)) => FileKind::Sidecar("index"),
        ("timeindex", Some(_)) => FileKind::Sidecar("timeindex"),
        ("txnindex", Some(_)) => FileKind::Sidecar("txnindex"),
        ("snapshot", Some(_)) => FileKind::Sidecar("snapshot"),
        ("checkpoint", _) => match stem
            .split_once('-')
            .and_then(|(offset, epoch)| epoch.parse::<u32>().ok().and(base_offset(offset)))
        {
            Some(offset) => FileKind::Checkpoint(offset),
            None => FileKind::Ignored("foreign"),
        },
        _ => FileKind::Ignored("foreign"),
    }
}

/// Kafka writes offsets in names with 20 digits.
fn base_offset(stem: &str) -> Option<i64> {
    (stem.len() == 20 && stem.bytes().all(|b| b.is_ascii_digit())).then(|| stem.parse().ok()).flatten()
}

/// `topic-N`, or `topic-N.<hash>-delete` and the like of directories on their way out.
fn topic_and_partition(directory: &Path) -> (String, i32) {
    let absolute = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let name = absolute.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = match name.rsplit_once('.') {
        Some((stem, rest)) if ["-delete", "-future", "-stray"].iter().any(|s| rest.ends_with(s)) => stem,
        _ => &name,
    };
    match stem.rsplit_once('-').and_then(|(topic, n)| Some((topic, parse_partition(n)?))) {
        Some((topic, partition)) if !topic.is_empty() => (topic.to_owned(), partition),
        _ => (name, 0),
    }
}

fn parse_partition(digits: &str) -> Option<i32> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(topic_and_partition(Path::new("/x/orders-12")), ("orders".into(), 12));
        assert_eq!(topic_and_partition(Path::new("/x/my-topic-0")), ("my-topic".into(), 0));
        assert_eq!(topic_and_partition(Path::new("/x/t-3.0f3e-delete")), ("t".into(), 3));
        assert_eq!(topic_and_partition(Path::new("/x/v2_txn")), ("v2_txn".into(), 0));
        assert!(matches!(classify("00000000000000000042.log"), FileKind::Segment(42)));
        assert!(matches!(classify("42.log"), FileKind::Ignored("foreign")));
        assert!(matches!(classify("00000000000000000042.log.swap"), FileKind::Ignored("swap")));
        assert!(matches!(classify("00000000000000000042-0000000005.checkpoint"), FileKind::Checkpoint(42)));
        assert!(matches!(classify("99999999999999999999.log"), FileKind::Ignored("foreign")));
    }
}
