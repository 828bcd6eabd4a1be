//! Batches to Arrow arrays, one pass from bytes to columns with no object a record; and rows to batches.

mod batch_decoder;
mod batch_table;
mod binary_column;
mod buffer_stream;
mod chunk_decoder;
mod headers_column;
mod log_stream;
mod pipeline;
mod problem_table;
mod record_columns;
mod recycled;
mod rows;
mod rows_writer;
mod run_column;
mod schema;
mod selection;
mod stream;
mod view_column;

pub use batch_decoder::MAX_PAYLOAD;
pub use buffer_stream::{BatchStream, batch_to_arrow};
pub use chunk_decoder::{ChunkDecoder, DecodeOptions};
pub use log_stream::{Findings, LogStream};
pub use record_columns::RecordColumns;
pub use rows::{Defaults, Rows};
pub use rows_writer::{RowsOptions, RowsWriter};
pub use schema::{Flavour, RecordColumn, Table, batches_schema, columns_of, problems_schema, records_schema};
pub use selection::Selection;
pub use stream::StreamOptions;
