//! A broker's side of produce and fetch: the checks and changes of an append (`LogValidator`, `UnifiedLog`),
//! and an in-memory partition for testing producers and consumers.
//!
//! ```
//! use magicbyte::{Compression, RecordsBuilder};
//! use magicbyte_broker::{AppendConfig, PartitionSimulator};
//!
//! let mut builder = RecordsBuilder::v2(Compression::None).producer(4711, 0, 0);
//! builder.append(0, 0, None, Some(b"value"), &[])?;
//! let batch = builder.build()?;
//!
//! let mut partition = PartitionSimulator::new(AppendConfig::default())?;
//! assert!(!partition.produce(&batch, 11)?.duplicate);
//! assert!(partition.produce(&batch, 11)?.duplicate, "sent twice, stored once");
//! assert_eq!(partition.log_end_offset(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub(crate) mod analysis;
pub(crate) mod append;
pub(crate) mod append_config;
pub(crate) mod append_error;
pub(crate) mod append_validator;
pub(crate) mod assignment;
pub(crate) mod consumed_log;
mod error_names;
#[doc(hidden)]
pub mod internals;
pub(crate) mod partition_fetch;
pub(crate) mod partition_simulator;
pub(crate) mod record_checks;
pub(crate) mod rewriting;
pub(crate) mod simulated_log;

pub use analysis::check_produce_request;
pub use append::{Append, AppendInfo, ConversionStats};
pub use append_config::{AppendConfig, TargetCompression};
pub use append_error::{AppendError, ErrorCode, MAX_RECORD_ERRORS, RecordError, RecordErrorKind};
pub use append_validator::AppendValidator;
pub use consumed_log::{ListedOffset, OffsetSpec};
pub use partition_fetch::Fetched;
pub use partition_simulator::{Appended, PartitionSimulator, TransactionEnd};
