//! The docstrings of `_stubs/broker.pyi`. Written by `make docstrings`.

macro_rules! broker {
    (AppendValidatorCore) => {
        r"`magicbyte.broker.AppendValidator` without its dataclasses: the config is a mapping of all fields."
    };
    (AppendValidatorCore.validate) => {
        r"The stored batches, and the other fields of `AppendInfo`; None if there is no complete batch.

Raises:
    AppendError: The append is refused."
    };
    (check_produce_request) => {
        r"The checks on a produce request's records that a broker makes before a partition sees them.

Raises:
    AppendError: The request is refused."
    };
    (PartitionSimulatorCore) => {
        r"`magicbyte.broker.PartitionSimulator` without its dataclasses.

Appends return the fields of `AppendInfo` after the records, and whether the batch is a duplicate.
The methods that read or change the log raise AppendError, except `elect_leader`."
    };
    (PartitionSimulatorCore.produce) => {
        r"Appends the records of a produce request of this version of the API."
    };
    (PartitionSimulatorCore.append) => {
        r"Appends batches of this origin."
    };
    (PartitionSimulatorCore.end_transaction) => {
        r"Appends a transaction marker."
    };
    (PartitionSimulatorCore.fetch) => {
        r"Records, high watermark, last stable offset, log start offset, aborted transactions.

An aborted transaction is (producer id, first offset, last offset (inclusive))."
    };
    (PartitionSimulatorCore.list_offset) => {
        r"Timestamp, offset, leader epoch; -1 is the latest, -2 the earliest, -3 the largest timestamp."
    };
    (PartitionSimulatorCore.producers) => {
        r"The state of each producer: see `ProducerStateManagerCore.producers`."
    };
}
pub(crate) use broker;
