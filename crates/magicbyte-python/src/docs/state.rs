//! The docstrings of `_stubs/state.pyi`. Written by `make docstrings`.

macro_rules! state {
    (AbortedFilter) => {
        r"Which batches of a fetch a `read_committed` consumer delivers; see `magicbyte.state`."
    };
    (AbortedFilter.admit) => {
        r"The fate of the next batch: `deliver`, `aborted` or `control`."
    };
    (LeaderEpochsCore) => {
        r"See `magicbyte.state.LeaderEpochs`."
    };
    (LeaderEpochsCore.truncation) => {
        r"Where a follower with these epochs truncates its log, and the requests it made to find that."
    };
    (VerificationGuard) => {
        r"Represents one verification of a transaction; a new one verifies nothing."
    };
    (ProducerStateManagerCore) => {
        r"See `magicbyte.state.ProducerStateManager`."
    };
    (ProducerStateManagerCore.check) => {
        r"The verdict or Kafka's error, its message, and the earlier batch that a duplicate repeats.

A batch is (first sequence, first offset, last sequence, last offset, timestamp in ms)."
    };
    (ProducerStateManagerCore.apply) => {
        r"Applies the batch; returns the transaction that it ends, None for none.

A transaction is (producer id, first offset, last offset, whether committed, last stable offset)."
    };
    (ProducerStateManagerCore.apply_together) => {
        r"Applies batches that were appended together; returns the transactions that they end."
    };
    (ProducerStateManagerCore.producers) => {
        r"All producers in the order in which they appeared.

A producer is (id, epoch, coordinator epoch, last timestamp in ms, first offset of its open
transaction or None, its last batches as in `check`)."
    };
}
pub(crate) use state;
