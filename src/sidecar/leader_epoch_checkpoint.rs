//! `leader-epoch-checkpoint`: the start offset of each leader epoch, as text (`LeaderEpochCheckpointFile`).

use crate::error::{ErrorKind, Result};
use crate::state::leader_epochs::EpochEntry;

/// Reads the checkpoint: version 0, a count, and one `epoch startOffset` per line. A checkpoint that ends
/// before its count has no epochs (`CheckpointFile.CheckpointReadBuffer.read`).
///
/// # Errors
/// [`ErrorKind::InvalidSidecar`] naming the rule that is broken.
pub fn parse_leader_epoch_checkpoint(text: &str) -> Result<Vec<EpochEntry>> {
    let invalid = |why| ErrorKind::InvalidSidecar(why);
    let mut lines = text.lines();
    match lines.next() {
        None => return Ok(Vec::new()),
        Some("0") => {}
        Some(_) => return Err(invalid("unknown version of a leader epoch checkpoint").into()),
    }
    let Some(count) = lines.next() else { return Ok(Vec::new()) };
    let count: Option<usize> = count.parse().ok();
    let entry = |line: &str| {
        let (epoch, start_offset) = line.split_once(' ')?;
        Some(EpochEntry { epoch: epoch.parse().ok()?, start_offset: start_offset.trim().parse().ok()? })
    };
    let entries: Option<Vec<_>> = lines.map(entry).collect();
    let entries =
        entries.ok_or(invalid("a line of the leader epoch checkpoint is not an epoch and an offset"))?;
    if Some(entries.len()) != count {
        return Err(invalid("the leader epoch checkpoint's count does not match its lines").into());
    }
    Ok(entries)
}

/// Writes the checkpoint.
#[must_use]
pub fn write_leader_epoch_checkpoint(entries: &[EpochEntry]) -> String {
    let lines = entries.iter().map(|entry| format!("{} {}\n", entry.epoch, entry.start_offset));
    format!("0\n{}\n{}", entries.len(), lines.collect::<String>())
}
