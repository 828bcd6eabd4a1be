//! Pure folds over batches: what a broker knows of a log without looking at its records.
//!
//! [`Producers`] is the state of idempotent and transactional producers, with the checks a broker makes
//! before it appends; [`AbortedFilter`] what a consumer skips; [`LeaderEpochs`] where leaders began.

mod leader_epochs;
mod producer_check;
mod producer_entry;
pub(crate) mod producer_event;
mod producers;
mod transactions;
mod verification;

pub use leader_epochs::{EpochEntry, LeaderEpochs, Truncation, truncation};
pub use producer_check::{AppendOrigin, AppendTerms, Refusal, Verdict};
pub use producer_entry::{BATCHES_TO_RETAIN, BatchMetadata, ProducerStateEntry, is_in_sequence};
pub use producer_event::ProducerEvent;
pub use producers::{CompletedTransaction, Producers};
pub use transactions::{AbortedFilter, AbortedRange, Admission, TransactionEvent, Transactions};
pub use verification::{VerificationGuard, VerificationState};
