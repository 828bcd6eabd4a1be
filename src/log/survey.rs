//! The first step: a scan over one segment's batch headers. Nothing is decompressed; only what
//! others will rely on (markers, first batches of transactions, borders) has its CRC checked.

use std::collections::VecDeque;
use std::path::Path;

use ::bytes::Bytes;

use super::blocks::Blocks;
use super::plan::{DEFAULT_CHUNK_BYTES, Problem};
use super::seek::{read_sidecar, sidecar_path};
use super::{
    AbortedTransaction, EpochEntry, LogError, LogResult, Segment, parse_offset_index,
    parse_producer_snapshot, parse_time_index, parse_transaction_index,
};
use crate::Decompressor;
use crate::batches::{Batch, Frame};
use crate::record::{ControlType, RECORD_BATCH_OVERHEAD};
use crate::state::transactions::{TransactionEvent, Transactions};

/// Headers stand close together: small blocks, and whole batches are stepped over.
const BLOCK: usize = 64 << 10;
/// How many batches from the end are tried for one whose CRC holds.
const LAST_BATCHES: usize = 16;
/// Larger batches are not loaded to check a CRC here.
const MAX_CHECKED: usize = 64 << 20;

/// Where a batch begins that may start a chunk: it and the batch before it have right CRCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Border {
    /// Position of the batch.
    pub position: u64,
    /// One behind the last offset of the batch before it.
    pub expected_offset: i64,
}

/// What the headers of one segment say.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Survey {
    /// The segment, as listed.
    pub segment: Segment,
    /// Batches in the chain of headers.
    pub batches: u64,
    /// The offset in the first batch's header (a legacy wrapper's: that of its last message).
    pub first_offset: Option<i64>,
    /// The last offset of the last batch whose CRC holds.
    pub last_offset: Option<i64>,
    /// The largest timestamp (ms) in any header, -1 for none.
    pub max_timestamp: i64,
    /// Where the chain of headers ends: the file's size if all of it frames.
    pub chain_end: u64,
    /// Borders, about every 4 MiB.
    pub borders: Vec<Border>,
    /// What the segment says about transactions.
    pub transactions: Vec<TransactionEvent>,
    /// Where leader epochs begin, by the batches.
    pub leader_epochs: Vec<EpochEntry>,
    /// What the segment's `.txnindex` says.
    pub transaction_index: Vec<AbortedTransaction>,
    /// Sidecars that break their format or point past the segment.
    pub problems: Vec<Problem>,
}

impl Survey {
    /// Where the segment's offsets begin: its name says so, unless all offsets inside lie before
    /// it (a renamed file); those of a KRaft snapshot begin at 0.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        let named = self.segment.base_offset;
        match (self.segment.is_checkpoint, self.last_offset) {
            (true, _) => 0,
            (false, Some(last)) if last < named => self.first_offset.unwrap_or(named).min(last),
            _ => named,
        }
    }

    fn add_problem(&mut self, ending: &str, kind: &str, message: String) {
        let file = sidecar_path(&self.segment, ending);
        let file = file.file_name().unwrap_or_default().to_string_lossy();
        self.problems.push(Problem::of_file(&self.segment, &file, kind, message));
    }

    /// Reads the segment's indexes: those that cannot be right are named. The log is read without
    /// them all the same.
    fn check_sidecars(&mut self) -> LogResult<()> {
        let base = self.segment.base_offset;
        if let Some(data) = read_sidecar(&self.segment, "index")? {
            match parse_offset_index(&data, base) {
                Err(error) => self.add_problem("index", error.kind().name(), error.to_string()),
                Ok(entries) => {
                    let beyond =
                        entries.iter().filter(|e| u64::from(e.position) >= self.chain_end.max(1)).count();
                    if beyond > 0 {
                        let message = format!("{beyond} entries point past the segment's last batch");
                        self.add_problem("index", "index_beyond_log", message);
                    }
                }
            }
        }
        if let Some(data) = read_sidecar(&self.segment, "timeindex")?
            && let Err(error) = parse_time_index(&data, base)
        {
            self.add_problem("timeindex", error.kind().name(), error.to_string());
        }
        if let Some(data) = read_sidecar(&self.segment, "txnindex")? {
            match parse_transaction_index(&data) {
                Ok(entries) => self.transaction_index = entries,
                Err(error) => self.add_problem("txnindex", error.kind().name(), error.to_string()),
            }
        }
        if let Some(data) = read_sidecar(&self.segment, "snapshot")?
            && let Err(error) = parse_producer_snapshot(&data)
        {
            self.add_problem("snapshot", error.kind().name(), error.to_string());
        }
        Ok(())
    }
}

/// Scans the headers of a segment.
///
/// # Errors
/// [`LogError::Io`] if the file cannot be read; damaged bytes only end the chain.
pub fn survey_segment(segment: &Segment) -> LogResult<Survey> {
    let path = Path::new(&segment.path);
    let io = |error| LogError::io(path, error);
    let mut scan = Scan {
        blocks: Blocks::open(path, segment.size, BLOCK).map_err(io)?,
        transactions: Transactions::default(),
        decompressor: Decompressor::new(),
        recent: VecDeque::with_capacity(LAST_BATCHES),
        survey: Survey {
            segment: segment.clone(),
            batches: 0,
            first_offset: None,
            last_offset: None,
            max_timestamp: -1,
            chain_end: 0,
            borders: Vec::new(),
            transactions: Vec::new(),
            leader_epochs: Vec::new(),
            transaction_index: Vec::new(),
            problems: Vec::new(),
        },
    };
    while scan.step().map_err(io)? {}
    scan.find_last_offset().map_err(io)?;
    scan.survey.check_sidecars()?;
    Ok(scan.survey)
}

struct Scan {
    blocks: Blocks,
    transactions: Transactions,
    decompressor: Decompressor,
    /// Position and size of the last batches.
    recent: VecDeque<(u64, usize)>,
    survey: Survey,
}

impl Scan {
    /// Looks at the next header; false at the end of the chain.
    fn step(&mut self) -> std::io::Result<bool> {
        let position = self.survey.chain_end;
        let header = self.blocks.at(position, RECORD_BATCH_OVERHEAD)?;
        let rest = self.blocks.size() - position;
        let size = match Frame::read(&header) {
            Ok(Frame::Whole { size }) => size,
            Ok(Frame::Cut { needed }) => header.len() + needed as usize,
            Err(_) => return Ok(false),
        };
        if size as u64 > rest || header.len() < 17 || header[16] == 2 && header.len() < RECORD_BATCH_OVERHEAD
        {
            return Ok(false);
        }
        // The header alone, taken for a batch: its facts are there, its records are not.
        let Ok(batch) = Batch::from_header(&header, position) else { return Ok(false) };
        if self.survey.borders.last().map_or(0, |border| border.position) + DEFAULT_CHUNK_BYTES <= position {
            self.add_border(position, size)?;
        }
        self.survey.batches += 1;
        self.survey.first_offset.get_or_insert(batch.stored_offset());
        self.survey.max_timestamp = self.survey.max_timestamp.max(batch.max_timestamp());
        if let Batch::V2(batch) = batch {
            let epoch = batch.partition_leader_epoch();
            if self.survey.leader_epochs.last().is_none_or(|entry| entry.epoch < epoch) && epoch >= 0 {
                self.survey.leader_epochs.push(EpochEntry { epoch, start_offset: batch.base_offset() });
            }
            if batch.is_transactional() {
                let (producer_id, offset) = (batch.producer_id(), batch.base_offset());
                if batch.is_control() {
                    if let Some(committed) = self.read_marker(position, size)? {
                        self.add_event(TransactionEvent::End { producer_id, offset, committed });
                    }
                } else if !self.transactions.is_open(producer_id) && self.verified(position, size)?.is_some()
                {
                    self.add_event(TransactionEvent::Begin { producer_id, offset });
                }
            }
        }
        if self.recent.len() == LAST_BATCHES {
            self.recent.pop_front();
        }
        self.recent.push_back((position, size));
        self.survey.chain_end = position + size as u64;
        Ok(self.survey.chain_end < self.blocks.size())
    }

    fn add_event(&mut self, event: TransactionEvent) {
        self.transactions.apply(event);
        self.survey.transactions.push(event);
    }

    /// A border needs two sound batches: the one before gives the offset to go on from.
    fn add_border(&mut self, position: u64, size: usize) -> std::io::Result<()> {
        let Some(&(previous, previous_size)) = self.recent.back() else { return Ok(()) };
        let Some(before) = self.verified(previous, previous_size)? else { return Ok(()) };
        let Ok(last) = Batch::from_frame(&before, previous).map(|batch| batch.last_offset()) else {
            return Ok(());
        };
        let Some(data) = self.verified(position, size)? else { return Ok(()) };
        let sound = Batch::from_frame(&data, position).is_ok_and(|batch| batch.stored_offset() > last);
        if sound {
            self.survey.borders.push(Border { position, expected_offset: last.saturating_add(1) });
        }
        Ok(())
    }

    /// The batch's bytes if its CRC holds.
    fn verified(&mut self, position: u64, size: usize) -> std::io::Result<Option<Bytes>> {
        if size > MAX_CHECKED {
            return Ok(None);
        }
        let data = self.blocks.at(position, size)?;
        let sound = Batch::from_frame(&data, position).is_ok_and(|batch| batch.verify().is_ok());
        Ok(sound.then_some(data))
    }

    /// Whether the control batch commits or aborts; none if it does neither or is damaged.
    fn read_marker(&mut self, position: u64, size: usize) -> std::io::Result<Option<bool>> {
        let Some(data) = self.verified(position, size)? else { return Ok(None) };
        let first_key = |decompressor: &mut Decompressor| {
            let batch = Batch::from_frame(&data, position)?;
            let record = batch.records(decompressor)?.next().transpose()?;
            record.and_then(|record| record.key().map(ControlType::parse)).transpose()
        };
        // Only the first record counts, as in Kafka; a batch emptied by compaction has none.
        Ok(match first_key(&mut self.decompressor) {
            Ok(Some(ControlType::Commit)) => Some(true),
            Ok(Some(ControlType::Abort)) => Some(false),
            _ => None,
        })
    }

    fn find_last_offset(&mut self) -> std::io::Result<()> {
        for (position, size) in std::mem::take(&mut self.recent).into_iter().rev() {
            if let Some(data) = self.verified(position, size)? {
                self.survey.last_offset =
                    Batch::from_frame(&data, position).ok().map(|batch| batch.last_offset());
                break;
            }
        }
        Ok(())
    }
}
