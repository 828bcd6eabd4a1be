//! The docstrings of `_stubs/internal_topics.pyi`. Written by `make docstrings`.

macro_rules! internal_topics {
    (decode_record) => {
        r"Decodes a record of `topic` as Kafka's JSON converters do: its type and Kafka's name of that, the key,
the value's version, and the value.

The name is that of the message, without `Key`; None for a type that is not known, of which nothing is
decoded. Only coordinators' records have a key, and tombstones have no value. Bytes are in base64, uuids
in Kafka's text form, and tagged fields only there if they differ from their default. Without `secrets`,
passwords and keys are hidden.

Raises Error with `position` in the key or value."
    };
    (is_secret_record) => {
        r"Whether a value of `topic` is a record of a type with secrets, also if it cannot be decoded."
    };
    (decode_data) => {
        r"Decodes `ConsumerProtocolSubscription` or `ConsumerProtocolAssignment`, after its version.

Raises Error with `position`."
    };
    (CommittedOffsets) => {
        r"The committed offsets that the records of a partition of `__consumer_offsets` add up to. Takes memory
for each group's partitions, not for the records."
    };
    (CommittedOffsets.replay) => {
        r"Applies the commits of the next batch, or the end of a transaction. Returns its records of other
types as offset, key and value, and the offset and error of each commit that does not decode.

Raises Error if the batch does not decode."
    };
    (CommittedOffsets.commits) => {
        r"Group, topic, partition, offset, leader epoch, metadata, commit timestamp (ms), expire timestamp
(ms) and record offset of each commit, in no order. -1 where there is no such number."
    };
    (CommittedOffsets.pending) => {
        r"How many offsets belong to transactions that had not ended."
    };
}
pub(crate) use internal_topics;
