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
}
pub(in crate::python) use arrow;
