//! The docstrings of `_stubs/sidecars.pyi`. Written by `make docstrings`.

macro_rules! sidecars {
    (read_sidecar) => {
        r"The content of an index, snapshot or checkpoint file.

Raises OSError if it cannot be read, is not a regular file, or is larger than 64 MiB."
    };
    (offset_index) => {
        r"The entries of an `.index`, (offset, position), without the zeros at its end.

Raises Error if the size or the order is wrong; without `check` returns whatever is there."
    };
    (time_index) => {
        r"The entries of a `.timeindex`, (timestamp in ms, offset); otherwise like `offset_index`."
    };
    (transaction_index) => {
        r"The entries of a `.txnindex`: version, producer id, first, last (inclusive), last stable offset."
    };
    (collect_aborted_transactions) => {
        r"The entries of a `.txnindex` relevant to a fetch of offsets from `start` to `end` (exclusive).

And whether no later segment can have more (`TransactionIndex.collectAbortedTxns`)."
    };
    (producer_snapshot) => {
        r"The producers of a `.snapshot`.

Producer id, epoch, last sequence, last offset, offset delta, timestamp (ms), coordinator epoch,
first offset of the open transaction. Raises Error or, for a wrong CRC, CorruptRecordError."
    };
    (leader_epoch_checkpoint) => {
        r"The lines of a `leader-epoch-checkpoint`: epoch, start offset."
    };
    (partition_metadata) => {
        r"The content of a `partition.metadata`: version, topic id."
    };
}
pub(crate) use sidecars;
