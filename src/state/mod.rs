//! Pure folds over batches: the state that a broker keeps of a log, apart from its records.
//!
//! [`Producers`] is the state of idempotent and transactional producers, with the checks that a broker makes
//! before an append. [`AbortedFilter`] decides which batches a consumer skips. [`LeaderEpochs`] has the start
//! of each leader's epoch.

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
