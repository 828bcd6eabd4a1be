//! A broker's checks of a producer's batch before the append (`ProducerAppendInfo`,
//! `UnifiedLog.analyzeAndValidateProducerState`). A check changes no state; the caller applies the verdict or
//! only reports it.

use std::fmt;

use crate::state::producer_entry::{BatchMetadata, ProducerStateEntry, is_in_sequence};
use crate::state::producer_event::ProducerEvent;
use crate::state::verification::{VerificationGuard, VerificationState};

/// The origin of an append (`AppendOrigin`), on which the checks depend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppendOrigin {
    /// Another replica, or a replay of the log: offsets, epochs and sequences are taken as they are.
    Replication,
    /// A group or transaction coordinator, which may write control batches: epochs are checked, sequences are
    /// not.
    Coordinator,
    /// A producer: everything is checked, and duplicates are recognized.
    #[default]
    Client,
    /// The leader of the metadata log, which assigns offsets and epochs itself.
    RaftLeader,
}

impl AppendOrigin {
    /// True if the leader assigns offsets, timestamps and the epoch.
    #[must_use]
    pub fn assigns_offsets(self) -> bool {
        matches!(self, Self::Client | Self::Coordinator)
    }
}

/// The circumstances of an append that are not in the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendTerms {
    /// The origin of the append.
    pub origin: AppendOrigin,
    /// `transaction.version` of a marker: 0 and 1 allow the current producer epoch, 2 requires a higher one.
    /// Use 0 for a replay.
    pub transaction_version: i16,
    /// With `transaction.partition.verification.enable`, the guard that
    /// [`Producers::start_verification`](super::Producers::start_verification) returned for the request, or
    /// [`VerificationGuard::SENTINEL`]. `None` if transactions are not verified.
    pub verification: Option<VerificationGuard>,
}

impl AppendTerms {
    /// The terms for an origin, with transaction version 0 and without verification.
    #[must_use]
    pub fn of(origin: AppendOrigin) -> Self {
        Self { origin, transaction_version: 0, verification: None }
    }
}

/// The decision of a broker about a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Append it.
    Append,
    /// Acknowledge it with these offsets, since it is in the log already.
    Duplicate(BatchMetadata),
    /// Refuse it.
    Refuse(Refusal),
}

/// The reason why a broker refuses a producer's batch.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The epoch is older than the producer's current one; a marker of version 2 needs a newer one.
    InvalidProducerEpoch {
        /// The batch's epoch.
        epoch: i16,
        /// The producer's current epoch.
        current: i16,
    },
    /// The sequence is not the next one.
    OutOfOrderSequence {
        /// The batch's first sequence.
        sequence: i32,
        /// The producer's last sequence; -1 if the batch had to begin with 0.
        last: i32,
    },
    /// The marker comes from a coordinator that was replaced.
    TransactionCoordinatorFenced {
        /// The marker's coordinator epoch.
        epoch: i32,
        /// The current coordinator epoch.
        current: i32,
    },
    /// Non-transactional data while a transaction is open, or data of a transaction that was not verified.
    InvalidTxnState {
        /// First offset of the open transaction; `None` if the batch's transaction was not verified.
        first_offset: Option<i64>,
    },
}

impl Refusal {
    /// Kafka's name of the error (`Errors`).
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::InvalidProducerEpoch { .. } => "INVALID_PRODUCER_EPOCH",
            Self::OutOfOrderSequence { .. } => "OUT_OF_ORDER_SEQUENCE_NUMBER",
            Self::TransactionCoordinatorFenced { .. } => "TRANSACTION_COORDINATOR_FENCED",
            Self::InvalidTxnState { .. } => "INVALID_TXN_STATE",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::InvalidProducerEpoch { epoch, current } => {
                write!(f, "producer epoch {epoch} is too old: the current epoch is {current}")
            }
            Self::OutOfOrderSequence { sequence, last: -1 } => {
                write!(f, "the producer's first sequence is {sequence} instead of 0")
            }
            Self::OutOfOrderSequence { sequence, last } => {
                write!(f, "sequence {sequence} does not follow {last}")
            }
            Self::TransactionCoordinatorFenced { epoch, current } => {
                write!(f, "coordinator epoch {epoch} is too old: the current epoch is {current}")
            }
            Self::InvalidTxnState { first_offset: Some(offset) } => {
                write!(f, "non-transactional data in the transaction that began at offset {offset}")
            }
            Self::InvalidTxnState { first_offset: None } => {
                f.write_str("data of a transaction that was not verified")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Applies the rules to the event of a single batch, given the producer's state.
pub(super) fn check(
    event: &ProducerEvent,
    entry: Option<&ProducerStateEntry>,
    verification: Option<&VerificationState>,
    terms: AppendTerms,
) -> Verdict {
    match refuse(event, entry, verification, terms) {
        Err(refusal) => Verdict::Refuse(refusal),
        Ok(Some(batch)) => Verdict::Duplicate(batch),
        Ok(None) => Verdict::Append,
    }
}

fn refuse(
    event: &ProducerEvent,
    entry: Option<&ProducerStateEntry>,
    verification: Option<&VerificationState>,
    terms: AppendTerms,
) -> Result<Option<BatchMetadata>, Refusal> {
    let open = entry.and_then(|entry| entry.current_txn_first_offset);
    let current = entry.map_or(-1, |entry| entry.producer_epoch);
    match *event {
        ProducerEvent::Data {
            producer_epoch: epoch, base_sequence, last_sequence, transactional, ..
        } => {
            if terms.origin == AppendOrigin::Client
                && let Some(batch) = entry.and_then(|e| e.duplicate_of(epoch, base_sequence, last_sequence))
            {
                return Ok(Some(batch));
            }
            if terms.origin != AppendOrigin::Replication {
                if epoch < current {
                    return Err(Refusal::InvalidProducerEpoch { epoch, current });
                }
                let ongoing = open.is_some() && epoch == current;
                if transactional
                    && !ongoing
                    && let Some(guard) = terms.verification
                    && !guard.verifies(verification)
                {
                    return Err(Refusal::InvalidTxnState { first_offset: None });
                }
            }
            if terms.origin == AppendOrigin::Client {
                check_sequence(epoch, base_sequence, entry, verification)?;
            }
            match open {
                Some(_) if !transactional => Err(Refusal::InvalidTxnState { first_offset: open }),
                _ => Ok(None),
            }
        }
        ProducerEvent::Marker { producer_epoch: epoch, coordinator_epoch, .. } => {
            if terms.origin == AppendOrigin::Replication {
                return Ok(None);
            }
            let too_old = if terms.transaction_version >= 2 {
                // A coordinator retries a marker whose response was lost (KAFKA-19999), and an epoch that
                // cannot be raised any more ends its own transaction.
                let is_allowed = epoch == current && (open.is_none() || epoch == i16::MAX);
                epoch <= current && !is_allowed
            } else {
                epoch < current
            };
            if too_old {
                return Err(Refusal::InvalidProducerEpoch { epoch, current });
            }
            let known = entry.map_or(-1, |entry| entry.coordinator_epoch);
            if known > coordinator_epoch {
                let (epoch, current) = (coordinator_epoch, known);
                return Err(Refusal::TransactionCoordinatorFenced { epoch, current });
            }
            Ok(None)
        }
        ProducerEvent::EmptyMarker { .. } => Ok(None),
    }
}

/// `ProducerAppendInfo.checkSequence`.
fn check_sequence(
    epoch: i16,
    sequence: i32,
    entry: Option<&ProducerStateEntry>,
    verification: Option<&VerificationState>,
) -> Result<(), Refusal> {
    let last = entry.map_or(-1, ProducerStateEntry::last_sequence);
    let has_no_batches = entry.is_none_or(|entry| entry.batches().is_empty());
    if let Some(state) = verification {
        if state.supports_epoch_bump() && sequence != 0 && has_no_batches {
            return Err(Refusal::OutOfOrderSequence { sequence, last: -1 });
        }
        if sequence > state.lowest_sequence() {
            return Err(Refusal::OutOfOrderSequence { sequence, last });
        }
    }
    // Without an epoch the producer is unknown, perhaps because all its records were deleted: any sequence is
    // allowed.
    match entry.map_or(-1, |entry| entry.producer_epoch) {
        -1 => Ok(()),
        current if current != epoch && sequence != 0 => {
            Err(Refusal::OutOfOrderSequence { sequence, last: -1 })
        }
        current if current == epoch && !is_in_sequence(last, sequence) => {
            Err(Refusal::OutOfOrderSequence { sequence, last })
        }
        _ => Ok(()),
    }
}
