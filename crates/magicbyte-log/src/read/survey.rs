//! The findings of the first step, which scans one segment's batch headers and checks its sidecars.

use magicbyte::internals::{OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY};
use magicbyte::sidecar::{
    TransactionIndexEntry, parse_offset_index, parse_producer_snapshot, parse_time_index,
    parse_transaction_index,
};
use magicbyte::state::{LeaderEpochs, TransactionEvent};
use magicbyte::{RECORD_BATCH_OVERHEAD, crc32c};

use crate::error::{LogError, LogResult};
use crate::listing::Segment;
use crate::problem::{INDEX_BEYOND_LOG, Problem};
use crate::storage::file_info::{Found, ends_the_run};
use crate::storage::sidecars::{read_index, sidecar_problem};

/// A batch that may start a chunk: its CRC and that of the batch before it hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Border {
    /// Position of the batch.
    pub position: u64,
    /// The offset after the last one of the batch before it.
    pub expected_offset: i64,
}

/// The CRC-32C of a batch's header, which includes the CRC of its records. A later survey recognizes the
/// batch by it. `bytes` begin with the header of a batch that has `size` bytes.
pub(super) fn header_crc(bytes: &[u8], size: usize) -> u32 {
    crc32c(&bytes[..bytes.len().min(size).min(RECORD_BATCH_OVERHEAD)], 0)
}

/// The findings from one segment's headers.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Survey {
    /// The segment, as listed.
    pub segment: Segment,
    /// The number of batches in the chain of headers.
    pub batches: u64,
    /// The offset in the first batch's header (for a legacy wrapper, that of its last message).
    pub first_offset: Option<i64>,
    /// The last offset of the last batch whose CRC holds.
    pub last_offset: Option<i64>,
    /// Where the segment's offsets begin: at the offset in its name, or at the first inside of a renamed file, if
    /// that is lower. The offsets of a KRaft snapshot begin at 0.
    pub base_offset: i64,
    /// The offset that was expected where that batch begins, if it begins later. Nothing in the segment shows
    /// whether offsets are missing there or its offset is wrong.
    pub gap_before_last: Option<i64>,
    /// Offsets missing between adjacent batches or, by its header, within a batch: they were compacted away.
    pub gaps: u64,
    /// The largest timestamp (ms) in any header; -1 if there is none.
    pub max_timestamp: i64,
    /// Where the last batch ends: the file's size if there is no tail.
    pub chain_end: u64,
    /// Where the last batch whose CRC holds ends.
    pub sound_end: u64,
    /// The last batch whose CRC holds: its position, and the CRC-32C of its header.
    #[serde(default)]
    pub last_batch: Option<(u64, u32)>,
    /// The `last_batch` of the survey that this survey continues, since the file has only grown. None after a
    /// scan of the whole file.
    #[serde(default)]
    pub continues: Option<(u64, u32)>,
    /// Borders, about one per 4 MiB, or per 64 MiB of a remote file that is not decoded next.
    pub borders: Vec<Border>,
    /// Transactions' first batches and markers, in offset order.
    pub transactions: Vec<TransactionEvent>,
    /// Position and producer ID of transactional batches, each producer once after each border: a chunk needs
    /// the aborted transactions of these producers only.
    pub transactional: Vec<(u64, i64)>,
    /// Where leader epochs begin, according to the batches.
    pub leader_epochs: LeaderEpochs,
    /// The entries of the segment's `.txnindex`.
    pub transaction_index: Vec<TransactionIndexEntry>,
    /// True if the file has lost its batches. It is empty, but it is not known to have always been empty, or
    /// to have been emptied by Kafka's cleaner. Both leave an empty index beside it.
    pub emptied: bool,
    /// Sidecars that cannot be read, are malformed, or point past the segment.
    pub problems: Vec<Problem>,
    /// The reason why the file could not be read to its end, if it could not.
    pub unreadable: Option<String>,
    /// True if this is a part of the survey ([`SurveyInParts`](crate::steps::SurveyInParts)): the findings
    /// for the bytes before the last border.
    pub is_part: bool,
}

impl Survey {
    pub(super) fn new(segment: &Segment) -> Self {
        Self {
            segment: segment.clone(),
            batches: 0,
            first_offset: None,
            last_offset: None,
            base_offset: if segment.is_checkpoint { 0 } else { segment.base_offset },
            gap_before_last: None,
            gaps: 0,
            max_timestamp: -1,
            chain_end: 0,
            sound_end: 0,
            last_batch: None,
            continues: None,
            borders: Vec::new(),
            transactions: Vec::new(),
            transactional: Vec::new(),
            leader_epochs: LeaderEpochs::default(),
            transaction_index: Vec::new(),
            emptied: false,
            problems: Vec::new(),
            unreadable: None,
            is_part: false,
        }
    }

    fn add_problem(&mut self, ending: &str, kind: &str, message: String) {
        let file = self.segment.sidecar_name(ending);
        self.problems.push(self.segment.problem(&file, kind, message));
    }

    /// Checks the segment's sidecars and reports wrong ones; the log is read either way.
    pub(super) fn check_sidecars(&mut self) -> LogResult<()> {
        let base = self.segment.base_offset;
        self.emptied = self.segment.size == 0 && !self.segment.is_checkpoint;
        if let Some(data) = self.read_index("index", OFFSET_INDEX_ENTRY)? {
            match parse_offset_index(&data, base) {
                Err(error) => self.add_problem("index", error.kind().name(), error.to_string()),
                Ok(entries) => {
                    self.emptied &= !entries.is_empty();
                    let is_beyond =
                        |end: u64| entries.iter().filter(|entry| u64::from(entry.position) >= end).count();
                    let beyond = is_beyond(self.chain_end.max(1));
                    // A broker writes to the log before the index, so the log now has the batches of
                    // additional index entries.
                    let written = || self.segment.location.size_if_written(self.segment.version.as_deref());
                    if beyond > 0 && written().is_none_or(|size| is_beyond(size) > 0) {
                        let what = if beyond == 1 { "entry points" } else { "entries point" };
                        let message = format!("{beyond} {what} past the end of the segment's last batch");
                        self.add_problem("index", INDEX_BEYOND_LOG, message);
                    }
                }
            }
        }
        if let Some(data) = self.read_index("timeindex", TIME_INDEX_ENTRY)?
            && let Err(error) = parse_time_index(&data, base)
        {
            self.add_problem("timeindex", error.kind().name(), error.to_string());
        }
        if let Some(data) = self.read_sidecar("txnindex")? {
            match parse_transaction_index(&data) {
                Ok(entries) => self.transaction_index = entries,
                Err(error) => self.add_problem("txnindex", error.kind().name(), error.to_string()),
            }
        }
        if let Some(data) = self.read_sidecar("snapshot")?
            && let Err(error) = parse_producer_snapshot(&data)
        {
            self.add_problem("snapshot", error.kind().name(), error.to_string());
        }
        Ok(())
    }

    /// The content of an index up to its last entry. An index has at most one entry per batch, and one more
    /// at its end.
    fn read_index(&mut self, ending: &str, entry: usize) -> LogResult<Option<Vec<u8>>> {
        let reach = self.batches.saturating_add(1).saturating_mul(entry as u64);
        self.read(ending, reach)
    }

    /// The content of a file beside the segment.
    fn read_sidecar(&mut self, ending: &str) -> LogResult<Option<Vec<u8>>> {
        self.read(ending, u64::MAX)
    }

    /// Reads a file beside the segment, see [`read_index`]; reports a file that cannot be read.
    fn read(&mut self, ending: &str, reach: u64) -> LogResult<Option<Vec<u8>>> {
        let file = self.segment.sidecar(ending);
        read_index(&file, reach).or_else(|error| {
            if ends_the_run(&error) {
                return Err(LogError::io(file.path(), error));
            }
            // The listing has reported what is not a regular file.
            if matches!(file.examine(), Ok(Found::File(_))) {
                let (kind, message) = sidecar_problem(&error);
                self.add_problem(ending, kind, message);
            }
            Ok(None)
        })
    }
}
