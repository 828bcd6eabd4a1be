//! `partition.metadata`: the topic's id, as text (`PartitionMetadataFile`).

use crate::error::{ErrorKind, Result};

/// The content of `partition.metadata`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// The file's version, 0.
    pub version: i32,
    /// The topic's id in Kafka's URL-safe base64 form.
    pub topic_id: String,
}

/// Reads `partition.metadata`.
///
/// # Errors
/// [`ErrorKind::InvalidSidecar`] if the version is not 0 or the id is missing.
pub fn parse_partition_metadata(text: &str) -> Result<PartitionMetadata> {
    let field = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
    };
    match (field("version"), field("topic_id")) {
        (Some("0"), Some(id)) if id.len() == 22 => {
            Ok(PartitionMetadata { version: 0, topic_id: id.to_owned() })
        }
        (Some("0"), _) => Err(ErrorKind::InvalidSidecar("partition.metadata has no topic_id").into()),
        _ => Err(ErrorKind::InvalidSidecar("unknown version of partition.metadata").into()),
    }
}

/// Writes `partition.metadata`.
#[must_use]
pub fn write_partition_metadata(metadata: &PartitionMetadata) -> String {
    format!("version: {}\ntopic_id: {}", metadata.version, metadata.topic_id)
}
