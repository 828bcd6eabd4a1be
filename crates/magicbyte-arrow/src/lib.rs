//! Converting batches to Arrow arrays, in one pass from bytes to columns without an object per record; and
//! rows of Arrow arrays to batches.
//!
//! ```
//! use magicbyte_arrow::{LogStream, StreamOptions};
//! use magicbyte_log::{PartitionLog, ReadOptions};
//!
//! # let directory = magicbyte_testing::repository().join("samples/orders-0");
//! let log = PartitionLog::open(&directory)?;
//! let options = StreamOptions { columns: vec!["offset".parse()?, "value".parse()?], ..Default::default() };
//! for batch in LogStream::new(log, ReadOptions::default(), options, Default::default()) {
//!     let batch = batch?; // an arrow_array::RecordBatch of up to about 1 MiB
//!     assert_eq!(batch.num_columns(), 2);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub(crate) mod batch_decoder;
pub(crate) mod batch_headers;
pub(crate) mod batch_table;
pub(crate) mod binary_column;
pub(crate) mod buffer_stream;
pub(crate) mod cell_bytes;
pub(crate) mod cells;
pub(crate) mod chunk_decoder;
pub(crate) mod content_digests;
pub(crate) mod digest;
pub(crate) mod headers_column;
#[doc(hidden)]
pub mod internals;
pub(crate) mod lines;
pub(crate) mod log_stream;
#[cfg(feature = "schemas")]
pub(crate) mod payload_decoder;
#[cfg(feature = "schemas")]
pub(crate) mod payload_encoder;
pub(crate) mod pipeline;
pub(crate) mod problem_table;
pub(crate) mod record_columns;
pub(crate) mod record_digests;
pub(crate) mod recycled;
pub(crate) mod row_digests;
pub(crate) mod row_filter;
pub(crate) mod rows;
pub(crate) mod rows_writer;
pub(crate) mod run_column;
pub(crate) mod schema;
#[cfg(feature = "schemas")]
pub(crate) mod schema_decoder;
pub(crate) mod selection;
pub(crate) mod source;
pub(crate) mod stream;
pub(crate) mod text_columns;
pub(crate) mod view_column;

pub use batch_decoder::MAX_PAYLOAD;
pub use batch_headers::BatchHeaders;
pub use buffer_stream::{BatchStream, batch_to_arrow};
pub use chunk_decoder::{ChunkDecoder, DecodeOptions};
pub use content_digests::digest_contents;
pub use digest::{PartitionDigest, digest_records};
pub use lines::{LineFormat, LineOptions, LineWriter, PayloadFormat, Template};
pub use log_stream::{Findings, LogStream, ReadCounts};
#[cfg(feature = "schemas")]
pub use payload_decoder::PayloadDecoder;
#[cfg(feature = "schemas")]
pub use payload_encoder::{EncodeError, PayloadEncoder};
pub use record_columns::RecordColumns;
pub use record_digests::{
    ChunkDigests, FetchDigests, RangeDigest, RecordDigest, digest_chunk, digest_record, hash_chunk,
};
pub use row_digests::{RowDigests, digest_rows};
pub use row_filter::RowFilter;
pub use rows::{Defaults, Rows};
pub use rows_writer::{RowsOptions, RowsWriter};
pub use schema::{
    Flavour, RecordColumn, Table, batch_headers_schema, batches_schema, columns_of, problems_schema,
    records_schema,
};
#[cfg(feature = "schemas")]
pub use schema_decoder::{ColumnFraming, DecodeError, SchemaDecoder, TypedRows};
pub use selection::Selection;
pub use stream::StreamOptions;
pub use text_columns::{Payload, Payloads};
