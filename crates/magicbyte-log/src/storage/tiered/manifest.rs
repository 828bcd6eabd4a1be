//! The manifest of a remote segment (Aiven's `SegmentManifestV1`): its chunks, their compression and
//! encryption, and the positions of its indexes.

use std::ops::Range;

use serde::Deserialize;

use crate::storage::tiered::chunk_index::{ChunkIndex, ChunkIndexJson};
use crate::storage::tiered::encryption::{Encryption, EncryptionJson, EncryptionKeys};

/// The maximum size of a manifest.
pub(super) const MAX_MANIFEST: u64 = 4 << 20;

/// The endings of the files beside a segment, in the order of a manifest.
pub(super) const SIDECARS: [&str; 5] =
    ["index", "timeindex", "snapshot", "leader_epoch_checkpoint", "txnindex"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestJson {
    version: String,
    chunk_index: ChunkIndexJson,
    segment_indexes: SegmentIndexesJson,
    compression: bool,
    encryption: Option<EncryptionJson>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SegmentIndexesJson {
    offset: SegmentIndexJson,
    timestamp: SegmentIndexJson,
    producer_snapshot: SegmentIndexJson,
    leader_epoch: SegmentIndexJson,
    transaction: Option<SegmentIndexJson>,
}

#[derive(Deserialize)]
struct SegmentIndexJson {
    position: i32,
    size: i32,
}

/// The checked content of a manifest.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) chunks: ChunkIndex,
    pub(super) is_compressed: bool,
    pub(super) encryption: Option<Encryption>,
    /// The endings of the files beside the segment, and the files' ranges in the object that holds them all.
    pub(super) sidecars: Vec<(&'static str, Range<u64>)>,
}

impl Manifest {
    /// Reads a manifest. The manifest of an encrypted segment needs the segment's key.
    ///
    /// # Errors
    /// A message about the malformed manifest or the missing key.
    pub(super) fn parse(json: &[u8], keys: &EncryptionKeys) -> Result<Self, String> {
        let json: ManifestJson = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if json.version != "1" {
            return Err(format!("version is {:?}, expected \"1\"", json.version));
        }
        let indexes = json.segment_indexes;
        let parts = [
            Some(indexes.offset),
            Some(indexes.timestamp),
            Some(indexes.producer_snapshot),
            Some(indexes.leader_epoch),
            indexes.transaction,
        ];
        let mut sidecars = Vec::new();
        for (ending, part) in SIDECARS.into_iter().zip(parts) {
            let Some(SegmentIndexJson { position, size }) = part else { continue };
            let (Ok(start), Ok(length)) = (u64::try_from(position), u64::try_from(size)) else {
                return Err(format!("the part {ending} has {size} bytes at {position}, expected 0 or more"));
            };
            // The plugin writes an empty file as nothing, even if it encrypts.
            if length > 0 {
                sidecars.push((ending, start..start + length));
            }
        }
        let manifest = Self {
            chunks: ChunkIndex::new(json.chunk_index)?,
            is_compressed: json.compression,
            encryption: json.encryption.map(|json| Encryption::new(json, keys)).transpose()?,
            sidecars,
        };
        if manifest.is_transformed() {
            manifest.chunks.check_chunk_sizes()?;
        } else if manifest.chunks.stored_size() != manifest.chunks.original_size {
            return Err(format!(
                "its chunks have {} bytes, expected {}: it is neither compressed nor encrypted",
                manifest.chunks.stored_size(),
                manifest.chunks.original_size
            ));
        }
        Ok(manifest)
    }

    /// True if the object differs from the segment.
    pub(super) fn is_transformed(&self) -> bool {
        self.is_compressed || self.encryption.is_some()
    }
}
