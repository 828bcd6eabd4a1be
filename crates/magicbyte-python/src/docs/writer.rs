//! The docstrings of `_stubs/writer.pyi`. Written by `make docstrings`.

macro_rules! writer {
    (begin_partition) => {
        r"Creates the hidden directory in which the partition `target` is written, and returns its path.

A target can have only one writer at a time.

Raises:
    ValueError: The directory exists. It may belong to another writer or to one that was killed, so
        removing it is up to the caller.
    FileExistsError: The target exists and is not an empty directory."
    };
    (PartitionWriter) => {
        r"Writes batches of one partition into segments with their `.index` and `.timeindex`.

`directory` (created if missing) is that of `begin_partition` or, if several tasks write, one inside
it; `base_offset` is the first offset of the log or of the task's part. The other parameters are
Kafka's topic configs; without `segment_ms` segments are not rolled by time."
    };
    (PartitionWriter.next_offset) => {
        r"The smallest offset the next batch can have."
    };
    (PartitionWriter.append) => {
        r"Appends the complete batches in `data`; returns their number.

A batch without a leader epoch gets that of the batch before it, or 0: followers refuse others.

Raises:
    Error: Names the first batch that is damaged, out of order or larger than a segment. Those
        before it were appended, and the writer remains usable.
    OSError: A file could not be written; the writer is no longer usable."
    };
    (PartitionWriter.finish) => {
        r"Closes and syncs the last segment; returns the SegmentSummaries for `finish_partition`."
    };
    (finish_partition) => {
        r"Completes the partition `target` from the segments in these SegmentSummaries, in any order.

Writes what spans segments (`.txnindex`, `.snapshot`, `leader-epoch-checkpoint`), and
`partition.metadata` if there is a topic id; syncs; finally renames the directory to `target`. With
`epochs_of`, a directory, the leader epochs continue those of its checkpoint.

Raises:
    ValueError: Segments overlap, are elsewhere or differ from their summary; the topic id is invalid.
    FileExistsError: The target already exists."
    };
    (rebuild_sidecars) => {
        r"Rebuilds a partition's sidecars from its segments in place, as a broker does after a crash.

Between segments, producers last heard from at or before `expired_until` (ms) are forgotten, as a
broker does by its clock. The report is a list of RebuiltFile: file, change, size.

Raises:
    Error: There are bytes that are not a valid batch; a tail after the last batch is left out."
    };
    (rewrite_chunks) => {
        r"Reads adjacent chunks of a partition, converts their batches, and writes them as segments.

The first segment has this base offset. Returns JSON: `results`, a ChunkResult as text for each chunk,
the first `problems` and `problems_left_out`, `segments` for `finish_partition` with their `batches`
and `size`, the number of `records` written, `losses`.

Raises:
    ValueError: The options exclude each other, or the codec does not have the level.
    Error: A batch is larger than a segment.
    OSError: A file could not be read or written."
    };
    (set_aside) => {
        r"The ChunkResult of a chunk that is not read."
    };
    (RowsWriter) => {
        r#"Writes the rows of one partition as segments: for `df.write.format("magicbyte")`.

`directory` is one for `finish_partition`; `timestamp` (ms) is that of rows without such a column."#
    };
    (RowsWriter.append) => {
        r"Appends the rows of Arrow data; see `RecordsBuilder.append_arrow`.

Raises ValueError, naming the row, for offsets that do not increase or a null header key."
    };
    (RowsWriter.finish) => {
        r"Closes the last segment: SegmentSummaries, rows, first offset, the offset after the last."
    };
}
pub(crate) use writer;
