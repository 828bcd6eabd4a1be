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
    (VerificationGuard) => {
        r"Represents one verification of a transaction; a new one verifies nothing."
    };
    (ProducerStateManagerCore) => {
        r"See `magicbyte.state.ProducerStateManager`."
    };
}
pub(in crate::python) use state;
