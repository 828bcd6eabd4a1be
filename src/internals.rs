//! Parts of the format that the other crates of this workspace are built of. They are not part of the public
//! interface: any version may change them.

pub use crate::be;
pub use crate::bytes::checksum::crc32;
pub use crate::bytes::cursor::Cursor;
pub use crate::bytes::prefetch::following;
pub use crate::bytes::range_checksum::{Algorithm, RangeChecksum};
pub use crate::bytes::varint::{self, Varint};
#[cfg(all(feature = "gzip", feature = "zstd"))]
pub use crate::compression::prefix::{Prefix, PrefixContext};
#[cfg(feature = "zstd")]
pub use crate::compression::zstd;
pub use crate::convert::Encoder;
pub use crate::convert::decoded::Decoded;
pub use crate::convert::filter::{Fate, empty_of, is_bare};
pub use crate::convert::in_place::each_batch;
pub use crate::convert::rebatch::Packer;
pub use crate::frame::{Frame, HEADER_SIZE_UP_TO_MAGIC, LOG_OVERHEAD};
pub use crate::layout::{Body, Steps, Walk};
pub use crate::legacy::builder::{MessageFields, MessageSetBuilder, set_overhead};
pub use crate::legacy::message::{self as legacy_message, RECORD_OVERHEAD_V0};
pub use crate::record::SMALLEST_RECORD;
pub use crate::record::batch_header::{self, BatchHeader};
pub use crate::record::builder::{BatchBuilder, append_batch, representable};
pub use crate::record::encode::{HeaderFields, RecordFields};
pub use crate::sidecar::offset_checkpoint::{LOG_START_OFFSET_CHECKPOINT, offset_in_checkpoint};
pub use crate::sidecar::offset_index::OFFSET_INDEX_ENTRY;
pub use crate::sidecar::time_index::TIME_INDEX_ENTRY;
pub use crate::state::isolation::AbortedByProducer;
pub use crate::state::producer_event::ProducerEvents;
