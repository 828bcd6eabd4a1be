//! Pure folds over batches: what a broker knows of a log without looking at its records.
//!
//! [`Producers`] is the state of idempotent and transactional producers, with the checks a broker makes
//! before it appends; [`AbortedFilter`] what a consumer skips; [`LeaderEpochs`] where leaders began.

pub(crate) mod isolation;
pub(crate) mod leader_epochs;
pub(crate) mod producer_check;
pub(crate) mod producer_entry;
pub(crate) mod producer_event;
pub(crate) mod producers;
pub(crate) mod transactions;
pub(crate) mod verification;

pub use isolation::{AbortedTransaction, IsolationLevel, UnknownIsolationLevel, last_stable_offset};
pub use leader_epochs::{EpochEntry, LeaderEpochs, Truncation, truncation};
pub use producer_check::{AppendOrigin, AppendTerms, Refusal, Verdict};
pub use producer_entry::{BATCHES_TO_RETAIN, BatchMetadata, ProducerStateEntry, is_in_sequence};
pub use producer_event::ProducerEvent;
pub use producers::{CompletedTransaction, Producers};
pub use transactions::{AbortedFilter, Admission, TransactionEvent, Transactions};
pub use verification::{VerificationGuard, VerificationState};
