//! The docstrings of `_stubs/compat_batches.pyi`. Written by `make docstrings`.

macro_rules! compat_batches {
    (_MemoryRecords) => {
        r"The batches in a fetched buffer. A `bytes` object is shared; any other buffer is copied once."
    };
    (_MemoryRecords.size_in_bytes) => {
        r"Size of the whole buffer."
    };
    (_MemoryRecords.has_next) => {
        r"True if `next_batch` would return a batch or raise."
    };
    (_MemoryRecords.next_batch) => {
        r"The next batch as a view; None at the end, or if the batch is incomplete.

Raises CorruptRecordException for an invalid size or magic."
    };
    (_MemoryRecords.valid_bytes) => {
        r"Size of the complete batches at the start of the buffer."
    };
    (AiokafkaMemoryRecords) => {
        r"aiokafka's `MemoryRecords`; accepts only `bytes`."
    };
    (KafkaPythonMemoryRecords) => {
        r"kafka-python's `MemoryRecords`."
    };
    (KafkaPythonMemoryRecords.next) => {
        r"Same as `__next__`."
    };
    (_DefaultRecordBatch) => {
        r"A batch of magic 2, and an iterator over its records.

Header fields are read on access. Iteration decodes the whole batch first, then creates one object
for each record; records before a bad one are returned before CorruptRecordException is raised. Only
`validate_crc` checks the CRC."
    };
    (_DefaultRecordBatch.base_offset) => {
        r"The offset that the records' deltas are relative to."
    };
    (_DefaultRecordBatch.magic) => {
        r"The magic byte, signed."
    };
    (_DefaultRecordBatch.crc) => {
        r"The stored CRC-32C; `validate_crc` checks it."
    };
    (_DefaultRecordBatch.attributes) => {
        r"All 16 bits, signed."
    };
    (_DefaultRecordBatch.compression_type) => {
        r"The codec's number, 0 to 7."
    };
    (_DefaultRecordBatch.timestamp_type) => {
        r"0 for CreateTime, 1 for LogAppendTime."
    };
    (_DefaultRecordBatch.is_transactional) => {
        r"True if the batch is part of a transaction."
    };
    (_DefaultRecordBatch.is_control_batch) => {
        r"True if the batch holds control records."
    };
    (_DefaultRecordBatch.last_offset_delta) => {
        r"The last offset (inclusive) minus the base offset."
    };
    (_DefaultRecordBatch.first_timestamp) => {
        r"The timestamp (ms) that the records' deltas are relative to."
    };
    (_DefaultRecordBatch.max_timestamp) => {
        r"The maximum timestamp, in ms since 1970; -1 for none."
    };
    (_DefaultRecordBatch.producer_id) => {
        r"The producer's id, -1 for none."
    };
    (_DefaultRecordBatch.producer_epoch) => {
        r"The producer's epoch, -1 for none."
    };
    (_DefaultRecordBatch.base_sequence) => {
        r"The first record's sequence number, -1 for none."
    };
    (_DefaultRecordBatch.next_offset) => {
        r"One past the last offset, which compaction preserves."
    };
    (_DefaultRecordBatch.validate_crc) => {
        r"True if the CRC-32C is correct. Raises AssertionError once iteration has started."
    };
    (AiokafkaDefaultRecordBatch) => {
        r"aiokafka's `DefaultRecordBatch`."
    };
    (KafkaPythonDefaultRecordBatch) => {
        r"kafka-python's `DefaultRecordBatch`."
    };
    (KafkaPythonDefaultRecordBatch.next) => {
        r"Same as `__next__`."
    };
    (KafkaPythonDefaultRecordBatch.size_in_bytes) => {
        r"Size according to the length field, including the offset and length fields."
    };
    (KafkaPythonDefaultRecordBatch.leader_epoch) => {
        r"Epoch of the leader that appended the batch, -1 for none."
    };
    (KafkaPythonDefaultRecordBatch.last_offset) => {
        r"Offset of the batch's original last record (inclusive), even if compaction removed it."
    };
    (KafkaPythonDefaultRecordBatch.has_producer_id) => {
        r"True if a producer id is set: above -1."
    };
    (KafkaPythonDefaultRecordBatch.has_sequence) => {
        r"True if a base sequence is set: not -1."
    };
    (KafkaPythonDefaultRecordBatch.last_sequence) => {
        r"The last record's sequence number, -1 for none; wraps from 2**31 - 1 to 0."
    };
    (KafkaPythonDefaultRecordBatch.records_count) => {
        r"The header's record count."
    };
    (_LegacyRecordBatch) => {
        r"One outermost message of magic 0 or 1; each iteration decodes it again."
    };
    (_LegacyRecordBatch.next_offset) => {
        r"One past the message's own offset; the offset of a wrapper is that of its last inner message."
    };
    (_LegacyRecordBatch.validate_crc) => {
        r"True if the outer CRC-32 is correct. In aiokafka, iteration then also checks the inner CRCs."
    };
    (AiokafkaLegacyRecordBatch) => {
        r"aiokafka's `LegacyRecordBatch`."
    };
    (KafkaPythonLegacyRecordBatch) => {
        r"kafka-python's `LegacyRecordBatch`."
    };
    (KafkaPythonLegacyRecordBatch.base_offset) => {
        r"The message's own offset; the offset of a wrapper is that of its last inner message."
    };
    (KafkaPythonLegacyRecordBatch.size_in_bytes) => {
        r"Size of the message including its offset and size fields."
    };
    (KafkaPythonLegacyRecordBatch.timestamp_type) => {
        r"0 for CreateTime, 1 for LogAppendTime, None in magic 0."
    };
    (KafkaPythonLegacyRecordBatch.compression_type) => {
        r"The codec's number, 0 to 7."
    };
    (KafkaPythonLegacyRecordBatch.magic) => {
        r"0 or 1."
    };
}
pub(crate) use compat_batches;
