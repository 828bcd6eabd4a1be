//! The docstrings of `_stubs/compat_builders.pyi`. Written by `make docstrings`.

macro_rules! compat_builders {
    (DefaultRecordMetadata) => {
        r"The result of `append` for a record of magic 2: offset, size in bytes, timestamp in ms."
    };
    (DefaultRecordMetadata.offset) => {
        r"The offset passed to `append`."
    };
    (DefaultRecordMetadata.size) => {
        r"Size of the record including its length field."
    };
    (DefaultRecordMetadata.timestamp) => {
        r"Milliseconds since 1970, as stored."
    };
    (DefaultRecordMetadata.crc) => {
        r"None: in magic 2 only the batch has a checksum."
    };
    (LegacyRecordMetadata) => {
        r"The result of `append` for a message of magic 0 or 1: also its CRC-32; timestamp -1 in magic 0."
    };
    (LegacyRecordMetadata.offset) => {
        r"The offset passed to `append`."
    };
    (LegacyRecordMetadata.crc) => {
        r"The message's CRC-32."
    };
    (LegacyRecordMetadata.size) => {
        r"Size of the message including its offset and size fields."
    };
    (LegacyRecordMetadata.timestamp) => {
        r"Milliseconds since 1970, as stored; -1 in magic 0."
    };
    (_DefaultRecordBatchBuilder) => {
        r"Builds one batch of magic 2. Its base offset is 0; the broker assigns the final offset."
    };
    (_DefaultRecordBatchBuilder.producer_id) => {
        r"The producer's id, -1 for none."
    };
    (_DefaultRecordBatchBuilder.producer_epoch) => {
        r"The producer's epoch, -1 for none."
    };
    (_DefaultRecordBatchBuilder.base_sequence) => {
        r"The first record's sequence number, -1 for none."
    };
    (_DefaultRecordBatchBuilder.append) => {
        r"Appends a record; None if the batch is full. The timestamp is in ms, None for now.

Raises TypeError or AttributeError for wrong types, ValueError for an offset that exceeds 32 bits."
    };
    (_DefaultRecordBatchBuilder.size) => {
        r"Size of the batch: uncompressed until it is built."
    };
    (_DefaultRecordBatchBuilder.build) => {
        r"The finished batch; the same object until the builder changes.

Raises UnsupportedCodecError for an unknown or unavailable codec."
    };
    (AiokafkaDefaultRecordBatchBuilder) => {
        r"aiokafka's `DefaultRecordBatchBuilder`."
    };
    (AiokafkaDefaultRecordBatchBuilder.set_producer_state) => {
        r"Sets the producer's id, epoch and first sequence."
    };
    (AiokafkaDefaultRecordBatchBuilder.size_in_bytes) => {
        r"Size of a record if appended to this batch."
    };
    (AiokafkaDefaultRecordBatchBuilder.size_of) => {
        r"Size of key, value and headers including their lengths."
    };
    (AiokafkaDefaultRecordBatchBuilder.estimate_size_in_bytes) => {
        r"Upper bound for the size of a batch with this single record."
    };
    (KafkaPythonDefaultRecordBatchBuilder) => {
        r"kafka-python's `DefaultRecordBatchBuilder`."
    };
    (KafkaPythonDefaultRecordBatchBuilder._producer_id) => {
        r"The original's own name for the producer's id."
    };
    (KafkaPythonDefaultRecordBatchBuilder._producer_epoch) => {
        r"The original's own name for the producer's epoch."
    };
    (KafkaPythonDefaultRecordBatchBuilder._base_sequence) => {
        r"The original's own name for the first sequence number."
    };
    (KafkaPythonDefaultRecordBatchBuilder.set_producer_state) => {
        r"Sets the producer; raises AssertionError for a combination that Kafka does not allow."
    };
    (KafkaPythonDefaultRecordBatchBuilder.header_size_in_bytes) => {
        r"Size of a batch without records: 61."
    };
    (KafkaPythonDefaultRecordBatchBuilder.size_in_bytes) => {
        r"Size of a record with these deltas."
    };
    (KafkaPythonDefaultRecordBatchBuilder.size_of) => {
        r"Size of key, value and headers including their lengths."
    };
    (KafkaPythonDefaultRecordBatchBuilder.estimate_size_in_bytes) => {
        r"Upper bound for the size of a batch with this single record."
    };
    (_LegacyRecordBatchBuilder) => {
        r"Builds one message set. Its first offset is 0; the broker assigns the final offset."
    };
    (_LegacyRecordBatchBuilder.append) => {
        r"Appends a message; None if the set is full. The timestamp is in ms, None for now.

Raises TypeError for wrong types, ValueError for an offset that exceeds 32 bits."
    };
    (_LegacyRecordBatchBuilder.size) => {
        r"Size of the set: uncompressed until it is built."
    };
    (_LegacyRecordBatchBuilder.build) => {
        r"The finished set; the same object until the builder changes.

Raises UnsupportedCodecError for an unknown or unavailable codec."
    };
    (AiokafkaLegacyRecordBatchBuilder) => {
        r"aiokafka's `LegacyRecordBatchBuilder`."
    };
    (AiokafkaLegacyRecordBatchBuilder.size_in_bytes) => {
        r"Size of a message with this key and value, including its offset and size fields."
    };
    (AiokafkaLegacyRecordBatchBuilder.record_overhead) => {
        r"Size of a message without offset, size, key and value."
    };
    (KafkaPythonLegacyRecordBatchBuilder) => {
        r"kafka-python's `LegacyRecordBatchBuilder`."
    };
    (KafkaPythonLegacyRecordBatchBuilder.size_in_bytes) => {
        r"Size of a message with this key and value, including its offset and size fields."
    };
    (KafkaPythonLegacyRecordBatchBuilder.record_size) => {
        r"Size of a message without its offset and size fields."
    };
    (KafkaPythonLegacyRecordBatchBuilder.record_overhead) => {
        r"Size of a message without offset, size, key and value."
    };
    (KafkaPythonLegacyRecordBatchBuilder.estimate_size_in_bytes) => {
        r"Upper bound for the size of a set with this single message."
    };
}
pub(crate) use compat_builders;
