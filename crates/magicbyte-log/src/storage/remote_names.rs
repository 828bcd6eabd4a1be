//! Names in tiered storage. The ID of a topic follows a hyphen at the end of a directory's name, and the ID
//! of a segment follows a hyphen at the end of a file's stem.

use std::path::Path;

/// The length of an ID in a name (`Uuid.toString`): 16 bytes as base64 for URLs.
pub(crate) const ID_LENGTH: usize = 22;

/// The part of a name in tiered storage before the hyphen and the ID. An ID never looks like the end of
/// `topic-N`: its last character has two bits, so it is not a digit.
pub(crate) fn without_id(name: &str) -> Option<&str> {
    let (rest, id) = name.split_at_checked(name.len().checked_sub(ID_LENGTH)?)?;
    let is_id = id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    rest.strip_suffix('-').filter(|_| is_id && id.ends_with(['A', 'Q', 'g', 'w']))
}

/// Topic and partition of a directory `topic-TOPICID/N` (Aiven's `ObjectKeyFactory`).
pub(crate) fn partition_below_topic(directory: &Path) -> Option<(&str, i32)> {
    let digits = directory.file_name()?.to_str()?;
    let topic = without_id(directory.parent()?.file_name()?.to_str()?).filter(|topic| !topic.is_empty())?;
    let partition = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())??;
    Some((topic, partition))
}
