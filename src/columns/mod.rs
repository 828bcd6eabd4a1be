//! Batches to Arrow arrays, one pass from bytes to columns with no object a record; and rows to batches.

mod batch_table;
mod chunk_decoder;
mod log_stream;
mod problem_table;
mod record_columns;
mod rows;
mod rows_writer;
mod schema;
mod stream;

pub use chunk_decoder::{ChunkDecoder, DecodeOptions};
pub use log_stream::LogStream;
pub use record_columns::{BLOCK, RecordColumns};
pub use rows::{Defaults, Rows};
pub use rows_writer::{RowsOptions, RowsWriter};
pub use schema::{Flavour, RecordColumn, Table, batches_schema, problems_schema, records_schema};
#[cfg(feature = "python")]
pub(crate) use stream::batch_schema;
pub use stream::{BatchStream, batch_to_arrow};
