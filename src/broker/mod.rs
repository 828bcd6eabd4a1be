//! What a broker does with batches that are sent to it: the checks and changes of an append
//! (`LogValidator`, `UnifiedLog`), and a partition in memory to test producers and consumers with.

mod analysis;
mod append_config;
mod append_error;
mod append_validator;
mod assignment;
mod partition_fetch;
mod partition_simulator;
mod record_checks;
mod rewriting;
mod simulated_log;

pub use crate::state::AppendOrigin;
pub use append_config::{AppendConfig, TargetCompression};
pub use append_error::{AppendError, ErrorCode, MAX_RECORD_ERRORS, RecordError, RecordErrorKind};
pub use append_validator::{Append, AppendInfo, AppendValidator, ConversionStats, check_produce_request};
pub use partition_fetch::{AbortedTransaction, Fetched, IsolationLevel, ListedOffset, OffsetSpec};
pub use partition_simulator::{Appended, PartitionSimulator, TransactionEnd};
