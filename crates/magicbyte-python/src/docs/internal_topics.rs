//! The docstrings of `_stubs/internal_topics.pyi`. Written by `make docstrings`.

macro_rules! internal_topics {
    (decode_record) => {
        r"Decodes a record of `topic` as Kafka's JSON converters do: its type, Kafka's name of the type, the key,
the value's version, and the value.

The name is that of the message, without `Key`; None for an unknown type, of which nothing is
decoded. Only coordinators' records have a key, and tombstones have no value. Bytes are in base64, uuids
in Kafka's text form; tagged fields are present only if they differ from their default. Without `secrets`,
passwords and keys are hidden.

Raises Error with `position` in the key or value."
    };
    (is_secret_record) => {
        r"True if a value of `topic` is a record of a type with secrets, even if it cannot be decoded."
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
(ms) and record offset of each commit, in no particular order. -1 stands for a missing number."
    };
    (CommittedOffsets.pending) => {
        r"The number of offsets in transactions that had not ended."
    };
}
pub(crate) use internal_topics;
