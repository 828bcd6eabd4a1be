//! The docstrings of `_stubs/arrow.pyi`. Written by `make docstrings`.

macro_rules! arrow {
    (ArrowStream) => {
        r"Records as columns, for any Arrow consumer: pyarrow, polars, DuckDB, pandas.

Each consumer gets a new stream; memory is bounded regardless of the input's size."
    };
    (ArrowStream.__arrow_c_stream__) => {
        r"A stream from the beginning; cheap until its first batch is requested.

A requested schema is used if all its columns and types are ours, and otherwise ignored: the
interface leaves the cast to the consumer."
    };
    (ArrowStream.problems) => {
        r"What the last stream over a log has left out so far, as JSON: see `PartitionLog.problems`."
    };
    (ArrowStream.problems_left_out) => {
        r"How many more problems there were: see `PartitionLog.problems_left_out`."
    };
    (ArrowStream.end_offset) => {
        r"Where the last stream over a log ends (exclusive): see `PartitionLog.end_offset`."
    };
    (ArrowBatch) => {
        r"One Arrow record batch; `pyarrow.record_batch(batch)` takes it without a copy."
    };
    (ArrowBatch.num_rows) => {
        r"The number of rows."
    };
    (ArrowSchema) => {
        r"An Arrow schema."
    };
    (arrow_schema) => {
        r"The Arrow schema of the table `records` (with these columns), `batches` or `problems`.

`key_as` and `value_as` are as in ChunkDecoder."
    };
    (digest_records) => {
        r"Counts and digests of rows of the table `records`, to compare a table with its log.

Returns topic, partition, number of rows, first offset, last offset and digest of each partition in each
record batch of `data`, any object with Arrow's PyCapsule interface. The digest is the sum of the rows'
128-bit XXH3 hashes modulo 2**128: the order of the rows does not matter, and the digest of several
batches is the sum of theirs. Hashed are offset, timestamp in milliseconds, timestamp type, key, value and
headers; a null key or value counts as its bytes in `invalidKey` or `invalidValue`. The digest finds rows
that were changed, lost or doubled, but does not withstand somebody who looks for rows with the same sum.

Rows with the column `_digest` have typed keys or values. Hashed are their cells that are not null, by
name: neither new fields nor the order of fields nor the width of numbers matter, and an empty list counts
as null. What is in `_digest`, 16 bytes (big-endian) or null, is added: whoever writes rows puts there
what makes their digest that of the records that they were made from.

Raises:
    InvalidRecordError: a topic, partition or offset is null.
    ValueError: a column is missing or has another type; a digest does not have 16 bytes."
    };
}
pub(crate) use arrow;
