//! Reading and writing the files beside a segment. These functions work on bytes and open no files.

pub(crate) mod leader_epoch_checkpoint;
pub(crate) mod offset_checkpoint;
pub(crate) mod offset_index;
pub(crate) mod partition_metadata;
pub(crate) mod producer_snapshot;
pub(crate) mod producer_state_manager;
pub(crate) mod time_index;
pub mod transaction_index;

pub use leader_epoch_checkpoint::{parse_leader_epoch_checkpoint, write_leader_epoch_checkpoint};
pub use offset_index::{OffsetIndexEntry, offset_index_entries, parse_offset_index, write_offset_index};
pub use partition_metadata::{PartitionMetadata, parse_partition_metadata, write_partition_metadata};
pub use producer_snapshot::{parse_producer_snapshot, write_producer_snapshot};
pub use producer_state_manager::ProducerStateManager;
pub use time_index::{TimeIndexEntry, parse_time_index, time_index_entries, write_time_index};
pub use transaction_index::{
    TransactionIndexEntry, collect_aborted_transactions, parse_transaction_index, write_transaction_index,
};
