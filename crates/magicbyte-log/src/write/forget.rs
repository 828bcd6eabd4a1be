//! The producers of a log that goes to another cluster (`ProducerStateManager`): others have their ids there.

use std::fs;
use std::path::Path;

use magicbyte::sidecar::{parse_producer_snapshot, write_producer_snapshot};
use magicbyte::state::ProducerStateEntry;

use crate::error::{LogError, LogResult};
use crate::names::{FileKind, SidecarKind, classify};
use crate::write::durable::{replace_file, sync_directory};

/// Rewrites the snapshots of a partition's directory so that they only have the open transactions; returns those at the
/// end of the log.
///
/// In another cluster, somebody else gets the ids of the producers. A broker that knew the old sequences would refuse the
/// new producer's batches, or take them for duplicates, and drop them silently. An open transaction stays: without it,
/// the records that are not committed would be.
///
/// # Errors
/// [`LogError::Io`], and [`LogError::Format`] for a snapshot that is damaged.
pub fn forget_producers(directory: impl AsRef<Path>) -> LogResult<Vec<ProducerStateEntry>> {
    let directory = directory.as_ref();
    let io = |error| LogError::io(directory, error);
    let mut newest = (String::new(), Vec::new());
    for file in fs::read_dir(directory).map_err(io)? {
        let file = file.map_err(io)?;
        let Ok(name) = file.file_name().into_string() else { continue };
        if !matches!(classify(&name), FileKind::Sidecar(SidecarKind::ProducerSnapshot)) {
            continue;
        }
        let path = file.path();
        let data = fs::read(&path).map_err(|error| LogError::io(&path, error))?;
        let producers =
            parse_producer_snapshot(&data).map_err(|error| LogError::Format { path: path.clone(), error })?;
        let open: Vec<_> = producers.iter().filter_map(without_sequences).collect();
        replace_file(&path, &write_producer_snapshot(&open))?;
        if name > newest.0 {
            newest = (name, open);
        }
    }
    sync_directory(directory)?;
    Ok(newest.1)
}

/// A producer with an open transaction, as a broker knows one of which it has no batch. The epoch is that of a new
/// producer, which would be refused after a higher one.
fn without_sequences(producer: &ProducerStateEntry) -> Option<ProducerStateEntry> {
    let first_offset = producer.current_txn_first_offset?;
    let mut kept = ProducerStateEntry::empty(producer.producer_id);
    kept.producer_epoch = 0;
    kept.coordinator_epoch = producer.coordinator_epoch;
    kept.last_timestamp = producer.last_timestamp;
    kept.current_txn_first_offset = Some(first_offset);
    Some(kept)
}
