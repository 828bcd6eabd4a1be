//! The docstrings of `_stubs/compat_records.pyi`. Written by `make docstrings`.

macro_rules! compat_records {
    (AiokafkaDefaultRecord) => {
        r"A record of magic 2; key, value and headers are copied on access."
    };
    (AiokafkaDefaultRecord.offset) => {
        r"Absolute offset in the partition."
    };
    (AiokafkaDefaultRecord.timestamp) => {
        r"Milliseconds since 1970; -1 for none."
    };
    (AiokafkaDefaultRecord.timestamp_type) => {
        r"0 for CreateTime, 1 for LogAppendTime."
    };
    (AiokafkaDefaultRecord.key) => {
        r"The key, copied; None for null."
    };
    (AiokafkaDefaultRecord.value) => {
        r"The value, copied; None for null."
    };
    (AiokafkaDefaultRecord.headers) => {
        r"The headers in order, including duplicates: (str, bytes or None)."
    };
    (AiokafkaDefaultRecord.checksum) => {
        r"None: in magic 2 only the batch has a checksum."
    };
    (AiokafkaLegacyRecord) => {
        r"A message of magic 0 or 1; key and value are copied on access."
    };
    (AiokafkaLegacyRecord.offset) => {
        r"Absolute offset in the partition."
    };
    (AiokafkaLegacyRecord.timestamp) => {
        r"Milliseconds since 1970, or None."
    };
    (AiokafkaLegacyRecord.timestamp_type) => {
        r"0, 1, or None if there is no timestamp."
    };
    (AiokafkaLegacyRecord.key) => {
        r"The key, copied; None for null."
    };
    (AiokafkaLegacyRecord.value) => {
        r"The value, copied; None for null."
    };
    (AiokafkaLegacyRecord.headers) => {
        r"An empty list: magic 0 and 1 have no headers."
    };
    (AiokafkaLegacyRecord.checksum) => {
        r"The message's stored CRC-32."
    };
    (KafkaPythonDefaultRecord) => {
        r"A record of magic 2; key, value and headers are copied on access.

The size is computed from the other arguments; `size_in_bytes` is ignored."
    };
    (KafkaPythonDefaultRecord.offset) => {
        r"Absolute offset in the partition."
    };
    (KafkaPythonDefaultRecord.timestamp) => {
        r"Milliseconds since 1970; -1 for none."
    };
    (KafkaPythonDefaultRecord.timestamp_type) => {
        r"0 for CreateTime, 1 for LogAppendTime."
    };
    (KafkaPythonDefaultRecord.key) => {
        r"The key, copied; None for null."
    };
    (KafkaPythonDefaultRecord.value) => {
        r"The value, copied; None for null."
    };
    (KafkaPythonDefaultRecord.headers) => {
        r"The headers in order, including duplicates: (str, bytes or None)."
    };
    (KafkaPythonDefaultRecord.checksum) => {
        r"None: in magic 2 only the batch has a checksum."
    };
    (KafkaPythonDefaultRecord.size_in_bytes) => {
        r"Size of the record without its length field."
    };
    (KafkaPythonDefaultRecord.validate_crc) => {
        r"True: in magic 2 only the batch has a checksum."
    };
    (KafkaPythonControlRecord) => {
        r"A record of a control batch. Its size is computed; `size_in_bytes` is ignored."
    };
    (KafkaPythonControlRecord.offset) => {
        r"Absolute offset in the partition."
    };
    (KafkaPythonControlRecord.timestamp) => {
        r"Milliseconds since 1970; -1 for none."
    };
    (KafkaPythonControlRecord.timestamp_type) => {
        r"0 for CreateTime, 1 for LogAppendTime."
    };
    (KafkaPythonControlRecord.key) => {
        r"The key, copied; None for null."
    };
    (KafkaPythonControlRecord.value) => {
        r"The value, copied; None for null."
    };
    (KafkaPythonControlRecord.headers) => {
        r"The headers in order, including duplicates: (str, bytes or None)."
    };
    (KafkaPythonControlRecord.checksum) => {
        r"None: in magic 2 only the batch has a checksum."
    };
    (KafkaPythonControlRecord.size_in_bytes) => {
        r"Size of the record without its length field."
    };
    (KafkaPythonControlRecord.version) => {
        r"The version in the key."
    };
    (KafkaPythonControlRecord.type) => {
        r"0 for an abort marker, 1 for a commit marker."
    };
    (KafkaPythonControlRecord.abort) => {
        r"True for an abort marker."
    };
    (KafkaPythonControlRecord.commit) => {
        r"True for a commit marker."
    };
    (KafkaPythonControlRecord.validate_crc) => {
        r"True: in magic 2 only the batch has a checksum."
    };
    (KafkaPythonLegacyRecord) => {
        r"A message of magic 0 or 1; key and value are copied on access.

`validate_crc` compares `crc` with the CRC-32 of a message made from the other arguments; `crc_bytes`
is ignored."
    };
    (KafkaPythonLegacyRecord.offset) => {
        r"Absolute offset in the partition."
    };
    (KafkaPythonLegacyRecord.timestamp) => {
        r"Milliseconds since 1970; None in magic 0."
    };
    (KafkaPythonLegacyRecord.timestamp_type) => {
        r"0, 1, or None in magic 0."
    };
    (KafkaPythonLegacyRecord.key) => {
        r"The key, copied; None for null."
    };
    (KafkaPythonLegacyRecord.value) => {
        r"The value, copied; None for null."
    };
    (KafkaPythonLegacyRecord.headers) => {
        r"An empty list: magic 0 and 1 have no headers."
    };
    (KafkaPythonLegacyRecord.checksum) => {
        r"The message's stored CRC-32."
    };
    (KafkaPythonLegacyRecord.magic) => {
        r"0 or 1."
    };
    (KafkaPythonLegacyRecord.size_in_bytes) => {
        r"Size of the message including its offset and size fields."
    };
    (KafkaPythonLegacyRecord.validate_crc) => {
        r"True if the message's own CRC-32 is correct."
    };
}
pub(crate) use compat_records;
