//! What a broker says to a producer's batch before it appends it (`ProducerAppendInfo`,
//! `UnifiedLog.analyzeAndValidateProducerState`). The verdict changes nothing: who asked applies it,
//! or only notes it.

use std::fmt;

use crate::state::producer_entry::{BatchMetadata, ProducerStateEntry, is_in_sequence};
use crate::state::producer_event::ProducerEvent;
use crate::state::verification::{VerificationGuard, VerificationState};

/// Who appends (`AppendOrigin`): what is checked differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppendOrigin {
    /// Another replica, or the log itself on a replay: offsets, epochs and sequences stay as they are.
    Replication,
    /// A coordinator of groups or transactions, which may write control batches: epochs are checked;
    /// sequences, which it does not write, are not.
    Coordinator,
    /// A producer: everything is checked, and what came before is recognized.
    #[default]
    Client,
    /// The leader of the metadata log, which gave offsets and epochs itself.
    RaftLeader,
}

/// What the batch does not say about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendTerms {
    /// Where it comes from.
    pub origin: AppendOrigin,
    /// `transaction.version` of a marker: 0 and 1 take a marker of the current epoch, 2 wants a higher
    /// one. A batch does not tell it; a replay takes 0.
    pub transaction_version: i16,
    /// With `transaction.partition.verification.enable`: what
    /// [`Producers::start_verification`](super::Producers::start_verification) gave for the request,
    /// or [`VerificationGuard::SENTINEL`]. None: nothing is verified.
    pub verification: Option<VerificationGuard>,
}

impl AppendTerms {
    /// Those of an origin, transactions of version 0, nothing verified.
    #[must_use]
    pub fn of(origin: AppendOrigin) -> Self {
        Self { origin, transaction_version: 0, verification: None }
    }
}

/// What a broker does with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It appends it.
    Append,
    /// It has it already and answers with these offsets.
    Duplicate(BatchMetadata),
    /// It refuses it.
    Refuse(Refusal),
}

/// Why a broker refuses a producer's batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The epoch is older than the producer's; a marker's of version 2 must be newer.
    InvalidProducerEpoch {
        /// The batch's.
        epoch: i16,
        /// The one known.
        current: i16,
    },
    /// The sequence is not the next one.
    OutOfOrderSequence {
        /// The batch's first.
        sequence: i32,
        /// The last one known; -1 where the batch had to begin with 0.
        last: i32,
    },
    /// The marker comes from a coordinator that was replaced.
    TransactionCoordinatorFenced {
        /// The marker's.
        epoch: i32,
        /// The one known.
        current: i32,
    },
    /// Data outside of the transaction that is open, or of one that nobody knows of.
    InvalidTxnState {
        /// Where the open transaction began; none if the batch's own was not verified.
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
                write!(f, "producer epoch {epoch} is too old: {current} is known")
            }
            Self::OutOfOrderSequence { sequence, last: -1 } => {
                write!(f, "sequence {sequence} where the producer had to begin with 0")
            }
            Self::OutOfOrderSequence { sequence, last } => {
                write!(f, "sequence {sequence} does not follow {last}")
            }
            Self::TransactionCoordinatorFenced { epoch, current } => {
                write!(f, "coordinator epoch {epoch} is too old: {current} is known")
            }
            Self::InvalidTxnState { first_offset: Some(offset) } => {
                write!(f, "data outside of the transaction that is open since offset {offset}")
            }
            Self::InvalidTxnState { first_offset: None } => {
                f.write_str("data of a transaction that was not verified")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// The rules, given what is known of the producer. For [`ProducerEvent`]s of one batch each.
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
                // A marker that was written is written again if its answer was lost (KAFKA-19999); an
                // epoch that cannot grow any more ends its transaction.
                let again = epoch == current && (open.is_none() || epoch == i16::MAX);
                epoch <= current && !again
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
    let nothing_known = entry.is_none_or(|entry| entry.batches().is_empty());
    if let Some(state) = verification {
        if state.supports_epoch_bump() && sequence != 0 && nothing_known {
            return Err(Refusal::OutOfOrderSequence { sequence, last: -1 });
        }
        if sequence > state.lowest_sequence() {
            return Err(Refusal::OutOfOrderSequence { sequence, last });
        }
    }
    // Without an epoch nothing is known of the producer, all its records may have been deleted: any
    // sequence will do.
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
