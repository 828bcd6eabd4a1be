//! The docstrings of `_stubs/records.pyi`. Written by `make docstrings`.

macro_rules! records {
    (RecordIterator) => {
        r"Iterates over the records of one batch."
    };
    (Record) => {
        r"One record. Views keep its whole batch alive and never change; `*_bytes` are copies.

Records can be compared, hashed and pickled; a pickled record is a copy without its batch."
    };
    (Record.offset) => {
        r"Absolute offset in the partition."
    };
    (Record.timestamp) => {
        r"Milliseconds since 1970; -1 for none."
    };
    (Record.timestamp_type) => {
        r"The clock that set the timestamp."
    };
    (Record.key) => {
        r"The key as a read-only view; None for null."
    };
    (Record.value) => {
        r"The value as a read-only view; None for null."
    };
    (Record.key_bytes) => {
        r"A copy of the key: faster than a view for small keys."
    };
    (Record.value_bytes) => {
        r"A copy of the value: faster than a view for small values."
    };
    (Record.headers) => {
        r"The headers in order, including duplicates; key bytes that are not UTF-8 as surrogate escapes."
    };
    (Record.headers_raw) => {
        r"The headers in order as copied bytes."
    };
    (Record.last_header) => {
        r"The last header with this key, as in `headers`; None if there is none (Java's `lastHeader`).

A str is compared as UTF-8, with surrogate escapes for bytes that are not."
    };
    (Record.headers_for) => {
        r"The headers with this key in order (Java's `Headers.headers(key)`)."
    };
    (Record.sequence) => {
        r"The producer's sequence number, -1 for none; None in magic 0 and 1."
    };
    (Record.attributes) => {
        r"The record's own attributes byte, 0 to 255."
    };
    (Record.to_dict) => {
        r"The fields by name, except `control`; key, value and headers are copies (`bytes`)."
    };
    (Record.control) => {
        r"For a record of a control batch, its `type` and payload. Raises Error if it is malformed."
    };
    (unpickle_record) => {
        r"Creates the record that `pickle` has read. Raises ValueError for any other arguments."
    };
}
pub(crate) use records;
