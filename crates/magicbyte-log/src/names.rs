//! The meaning of Kafka's directory and file names.

use std::ffi::OsStr;
use std::path::Path;

use crate::storage;
use crate::storage::remote_names::{partition_below_topic, without_id};

/// The content of a file beside the segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum SidecarKind {
    /// A `.index`: positions by offset.
    #[serde(rename = "index")]
    OffsetIndex,
    /// A `.timeindex`: offsets by timestamp.
    #[serde(rename = "timeindex")]
    TimeIndex,
    /// A `.txnindex`: aborted transactions.
    #[serde(rename = "txnindex")]
    TransactionIndex,
    /// A `.snapshot`: the state of producers.
    #[serde(rename = "snapshot")]
    ProducerSnapshot,
    /// The `leader-epoch-checkpoint`; in tiered storage, each segment has a `.leader_epoch_checkpoint`.
    #[serde(rename = "leader-epoch-checkpoint")]
    LeaderEpochCheckpoint,
    /// The `partition.metadata`: the topic's ID.
    #[serde(rename = "partition.metadata")]
    PartitionMetadata,
}

impl SidecarKind {
    pub(crate) const ALL: [Self; 6] = [
        Self::OffsetIndex,
        Self::TimeIndex,
        Self::TransactionIndex,
        Self::ProducerSnapshot,
        Self::LeaderEpochCheckpoint,
        Self::PartitionMetadata,
    ];

    /// The extension, or the whole name of a file with a fixed name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OffsetIndex => "index",
            Self::TimeIndex => "timeindex",
            Self::TransactionIndex => "txnindex",
            Self::ProducerSnapshot => "snapshot",
            Self::LeaderEpochCheckpoint => "leader-epoch-checkpoint",
            Self::PartitionMetadata => "partition.metadata",
        }
    }

    /// True for an index of a segment, which a broker deletes together with the segment.
    pub(crate) fn is_index(self) -> bool {
        matches!(self, Self::OffsetIndex | Self::TimeIndex | Self::TransactionIndex)
    }

    /// True if each partition has one such file, with a fixed name.
    pub(crate) fn has_fixed_name(self) -> bool {
        matches!(self, Self::LeaderEpochCheckpoint | Self::PartitionMetadata)
    }
}

/// The reason why a file is not read as part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum IgnoreReason {
    /// A broker is about to delete it (`.deleted`).
    Deleted,
    /// A broker's cleaner is writing it (`.cleaned`).
    Cleaned,
    /// A broker is replacing other files with it (`.swap`).
    Swap,
    /// A broker has not finished copying it to tiered storage, according to `__remote_log_metadata` or
    /// because its manifest is missing.
    Unfinished,
    /// A KRaft snapshot, which the caller did not request.
    Checkpoint,
    /// A segment that somebody compressed and that is not read: it is a `.log.lz4`, for example, or the
    /// segment itself is beside it.
    Compressed,
    /// Its name is not one of Kafka's.
    Foreign,
    /// All its offsets are in earlier segments.
    Overlapping,
    /// A leader copied it to tiered storage, but other leaders did not continue that leader's log (an unclean
    /// election).
    Diverged,
    /// A directory.
    Directory,
    /// A FIFO, a socket or a device.
    Special,
    /// It is named like a file of the log but is not a regular file, or its type is unknown.
    Unreadable,
}

impl IgnoreReason {
    /// The reason in lower case, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Cleaned => "cleaned",
            Self::Swap => "swap",
            Self::Unfinished => "unfinished",
            Self::Checkpoint => "checkpoint",
            Self::Compressed => "compressed",
            Self::Foreign => "foreign",
            Self::Overlapping => "overlapping",
            Self::Diverged => "diverged",
            Self::Directory => "directory",
            Self::Special => "special",
            Self::Unreadable => "unreadable",
        }
    }
}

/// The state of a partition's directory on a broker, judged by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DirectoryState {
    /// The log of a partition: `topic-N`.
    #[default]
    Current,
    /// A copy that will replace the log in another directory of the broker: `topic-N.ID-future`.
    Future,
    /// A log that the cluster did not assign to the broker when it started: `topic-N.ID-stray`.
    Stray,
    /// A log that a broker is about to delete: `topic-N.ID-delete`.
    Deleted,
    /// The segments of a log that a broker copied to tiered storage: `topic-N-TOPICID`, with files such as
    /// `00000000000000000042-SEGMENTID.log` (`LocalTieredStorage`), or `topic-TOPICID/N` (Aiven's plugin).
    Remote,
}

impl DirectoryState {
    /// The state in lower case, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Future => "future",
            Self::Stray => "stray",
            Self::Deleted => "deleted",
            Self::Remote => "remote",
        }
    }
}

/// The topic, the partition and the state in the name of a directory, given its absolute path: `topic-N`, `topic-N.ID-delete` and similar
/// names (`UnifiedLog`), `topic-N-TOPICID`, or `topic-TOPICID/N`. None for any other name.
pub(crate) fn partition_of(absolute: &Path) -> Option<(String, i32, DirectoryState)> {
    if let Some((topic, partition)) = partition_below_topic(absolute) {
        return Some((topic.to_owned(), partition, DirectoryState::Remote));
    }
    let name = topic_of(absolute);
    let (topic, partition, state) = parse_directory(&name)?;
    Some((topic.to_owned(), partition, state))
}

/// The topic of a directory whose name is not that of a partition: it is partition 0 of a topic with that name.
pub(crate) fn topic_of(absolute: &Path) -> String {
    let name = display_name(absolute.file_name().unwrap_or_default());
    storage::without_archive_ending(&name).to_owned()
}

/// True if a directory with this name and these entries is a partition. It has a segment, or its name is
/// `topic-N` and it has a compressed segment or a file that a broker keeps beside segments.
#[must_use]
pub fn is_partition<'a>(directory: &str, names: impl Iterator<Item = &'a str>) -> bool {
    let is_named = parse_directory(storage::without_archive_ending(directory)).is_some();
    names.map(classify).any(|kind| match kind {
        FileKind::Segment(_) | FileKind::Packed(_) => true,
        FileKind::Sidecar(_) | FileKind::Ignored(IgnoreReason::Compressed) => is_named,
        FileKind::Checkpoint(_) | FileKind::Ignored(_) => false,
    })
}

/// True if a name is the name of a segment: twenty digits and `.log`, `.log.zst` or `.log.gz`. In tiered
/// storage, an ID follows the digits.
#[must_use]
pub fn is_segment_file(name: &str) -> bool {
    matches!(classify(name), FileKind::Segment(_) | FileKind::Packed(_))
}

fn parse_directory(name: &str) -> Option<(&str, i32, DirectoryState)> {
    if let Some(stem) = without_id(name) {
        let (topic, number) = stem.rsplit_once('-')?;
        return (!topic.is_empty()).then_some((topic, parse_partition(number)?, DirectoryState::Remote));
    }
    let (stem, state) = match name.rsplit_once('.') {
        Some((stem, rest)) => match rest.rsplit_once('-') {
            Some((_, "future")) => (stem, DirectoryState::Future),
            Some((_, "stray")) => (stem, DirectoryState::Stray),
            Some((_, "delete")) => (stem, DirectoryState::Deleted),
            _ => (name, DirectoryState::Current),
        },
        None => (name, DirectoryState::Current),
    };
    let (topic, number) = stem.rsplit_once('-')?;
    (!topic.is_empty()).then_some((topic, parse_partition(number)?, state))
}

/// A file name as text; if it is not UTF-8, its bytes are escaped, so that no two names look the same.
pub(crate) fn display_name(name: &OsStr) -> String {
    name.to_str().map_or_else(|| name.as_encoded_bytes().escape_ascii().to_string(), str::to_owned)
}

fn parse_partition(digits: &str) -> Option<i32> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// The ending of the leader epochs of one segment in tiered storage.
const REMOTE_LEADER_EPOCHS: &str = "leader_epoch_checkpoint";

/// The kind of a file in a partition's directory, judged by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A `.log` with its base offset.
    Segment(i64),
    /// A segment compressed with zstd or gzip (`.log.zst`, `.log.gz`).
    Packed(i64),
    /// A KRaft snapshot with its end offset.
    Checkpoint(i64),
    Sidecar(SidecarKind),
    Ignored(IgnoreReason),
}

/// The endings of compressed segments that are read.
const PACKED: [&str; 2] = ["zst", "gz"];
/// The endings of compressed segments that are not read.
const COMPRESSED: [&str; 4] = ["lz4", "sz", "bz2", "xz"];

pub(crate) fn classify(file: &str) -> FileKind {
    for reason in [IgnoreReason::Deleted, IgnoreReason::Cleaned, IgnoreReason::Swap] {
        if file.strip_suffix(reason.name()).is_some_and(|rest| rest.ends_with('.')) {
            return FileKind::Ignored(reason);
        }
    }
    let foreign = FileKind::Ignored(IgnoreReason::Foreign);
    let mut kinds = SidecarKind::ALL.into_iter();
    if let Some(kind) = kinds.clone().find(|kind| kind.has_fixed_name() && kind.name() == file) {
        return FileKind::Sidecar(kind);
    }
    let Some((stem, extension)) = file.split_once('.') else { return foreign };
    if extension == "checkpoint" {
        let parts = stem.split_once('-').filter(|(_, epoch)| epoch.parse::<u32>().is_ok());
        return parts.and_then(|(offset, _)| base_offset(offset)).map_or(foreign, FileKind::Checkpoint);
    }
    let remote = without_id(stem);
    let Some(offset) = base_offset(remote.unwrap_or(stem)) else { return foreign };
    if remote.is_some() && extension == REMOTE_LEADER_EPOCHS {
        return FileKind::Sidecar(SidecarKind::LeaderEpochCheckpoint);
    }
    if extension == "log" {
        return FileKind::Segment(offset);
    }
    match extension.strip_prefix("log.") {
        Some(ending) if PACKED.contains(&ending) => return FileKind::Packed(offset),
        Some(ending) if COMPRESSED.contains(&ending) => return FileKind::Ignored(IgnoreReason::Compressed),
        _ => {}
    }
    kinds.find(|kind| !kind.has_fixed_name() && kind.name() == extension).map_or(foreign, FileKind::Sidecar)
}

/// The base offset in the name of a segment, or of a file beside it (`LogFileUtils`): `00000000000000000042.index`,
/// or in tiered storage `00000000000000000042-ID.index`.
pub(crate) fn base_offset_of(file: &str) -> Option<i64> {
    let (stem, _) = file.split_once('.')?;
    base_offset(without_id(stem).unwrap_or(stem))
}

/// Kafka writes offsets in names with 20 digits.
fn base_offset(stem: &str) -> Option<i64> {
    (stem.len() == 20 && stem.bytes().all(|b| b.is_ascii_digit())).then(|| stem.parse().ok()).flatten()
}

/// The name of the segment that a file is beside.
pub(crate) fn segment_of(file: &str) -> String {
    format!("{}.log", file.split_once('.').map_or(file, |(stem, _)| stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, topic, partition, state) in [
            ("/x/orders-12", "orders", 12, DirectoryState::Current),
            ("/x/my-topic-0", "my-topic", 0, DirectoryState::Current),
            ("/x/t-3.0f3e-delete", "t", 3, DirectoryState::Deleted),
            ("/x/a.b-delete-7.0f3e-future", "a.b-delete", 7, DirectoryState::Future),
            ("/x/t-3.0f3e-stray", "t", 3, DirectoryState::Stray),
        ] {
            assert_eq!(partition_of(Path::new(name)), Some((topic.into(), partition, state)));
        }
        for (name, topic) in [("/x/v2_txn", "v2_txn"), ("/x/t.old-delete", "t.old-delete")] {
            assert_eq!(partition_of(Path::new(name)), None);
            assert_eq!(topic_of(Path::new(name)), topic);
        }
        assert_eq!(classify("00000000000000000042.log"), FileKind::Segment(42));
        assert_eq!(classify("42.log"), FileKind::Ignored(IgnoreReason::Foreign));
        assert_eq!(classify("00000000000000000042.log.swap"), FileKind::Ignored(IgnoreReason::Swap));
        assert_eq!(classify("00000000000000000042-0000000005.checkpoint"), FileKind::Checkpoint(42));
        assert_eq!(classify("99999999999999999999.log"), FileKind::Ignored(IgnoreReason::Foreign));
        assert!(matches!(
            classify("00000000000000000042.index.deleted"),
            FileKind::Ignored(IgnoreReason::Deleted)
        ));
        let compressed = FileKind::Ignored(IgnoreReason::Compressed);
        assert_eq!(classify("00000000000000000042.log.zst"), FileKind::Packed(42));
        assert_eq!(classify("00000000000000000042.log.lz4"), compressed);
        assert_eq!(classify("00000000000000000042.log.txt"), FileKind::Ignored(IgnoreReason::Foreign));
        assert_eq!(classify("swap"), FileKind::Ignored(IgnoreReason::Foreign));
        assert_eq!(classify("42-5.checkpoint"), FileKind::Ignored(IgnoreReason::Foreign));
        for (name, kind) in [
            ("00000000000000000042.index", SidecarKind::OffsetIndex),
            ("00000000000000000042.timeindex", SidecarKind::TimeIndex),
            ("00000000000000000042.txnindex", SidecarKind::TransactionIndex),
            ("00000000000000000042.snapshot", SidecarKind::ProducerSnapshot),
            ("leader-epoch-checkpoint", SidecarKind::LeaderEpochCheckpoint),
            ("partition.metadata", SidecarKind::PartitionMetadata),
        ] {
            assert!(matches!(classify(name), FileKind::Sidecar(sidecar) if sidecar == kind), "{name}");
        }
        let fixed = "00000000000000000042.leader-epoch-checkpoint";
        assert!(matches!(classify(fixed), FileKind::Ignored(IgnoreReason::Foreign)));
    }

    #[test]
    fn names_in_tiered_storage() {
        let name = |path| partition_of(Path::new(path));
        let remote = ("my-topic".into(), 3, DirectoryState::Remote);
        assert_eq!(name("/x/my-topic-3-R5ONT1_KRNm0plmgy-N-1A"), Some(remote));
        let local = ("my-topic-3-R5ONT1_KRNm0plmgy-N".into(), 12, DirectoryState::Current);
        assert_eq!(name("/x/my-topic-3-R5ONT1_KRNm0plmgy-N-12"), Some(local));
        assert_eq!(name("/x/topic-R5ONT1_KRNm0plmgy-N-1A"), None);
        let id = "9ReE-tebSsmSlbyz2x-Ljg";
        for (ending, kind) in [
            ("log", FileKind::Segment(42)),
            ("log.zst", FileKind::Packed(42)),
            ("index", FileKind::Sidecar(SidecarKind::OffsetIndex)),
            ("snapshot", FileKind::Sidecar(SidecarKind::ProducerSnapshot)),
            ("leader_epoch_checkpoint", FileKind::Sidecar(SidecarKind::LeaderEpochCheckpoint)),
            ("leader-epoch-checkpoint", FileKind::Ignored(IgnoreReason::Foreign)),
        ] {
            let file = format!("00000000000000000042-{id}.{ending}");
            assert_eq!(classify(&file), kind, "{file}");
            assert_eq!(base_offset_of(&file), Some(42));
            assert_eq!(is_segment_file(&file), ending.starts_with("log"));
        }
        for file in
            ["00000000000000000042-short.log", &format!("42-{id}.log"), &format!("-{id}.log"), "é-.log"]
        {
            assert_eq!(classify(file), FileKind::Ignored(IgnoreReason::Foreign), "{file}");
        }
    }
}
