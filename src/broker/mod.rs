//! What a broker does with batches that are sent to it: the checks and changes of an append
//! (`LogValidator`, `UnifiedLog`), and a partition in memory to test producers and consumers with.

mod analysis;
mod append_config;
mod append_error;
mod append_validator;
mod assignment;
mod record_checks;
mod rewriting;

pub use append_config::{AppendConfig, AppendOrigin, TargetCompression};
pub use append_error::{AppendError, ErrorCode, MAX_RECORD_ERRORS, RecordError, RecordErrorKind};
pub use append_validator::{Append, AppendInfo, AppendValidator, ConversionStats, check_produce_request};
