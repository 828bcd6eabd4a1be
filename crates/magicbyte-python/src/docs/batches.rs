//! The docstrings of `_stubs/batches.pyi`. Written by `make docstrings`.

macro_rules! batches {
    (read_batches) => {
        r#"Frames `buffer` into batches of mixed magics, without decompressing anything yet.

A `bytes` object is shared; any other buffer is copied once, since it could change. The iterator
raises framing errors. A wrong CRC or a bad record is raised only when a batch's records, columns or
Arrow form are requested, so that its header can still be inspected.

An incomplete batch at the end raises an error whose `kind` is "need_more_bytes", after all others.
With `allow_partial`, as for the response to a fetch, it ends the iteration: `remaining` and `needed`
say what is left."#
    };
    (Batches) => {
        r"An iterator over the batches in a buffer, and an Arrow stream of all its data records."
    };
    (Batches.remaining) => {
        r"Bytes not framed yet: at the end, those of an incomplete last batch (normal in a fetch)."
    };
    (Batches.needed) => {
        r"The minimum number of bytes missing from the next batch; 0 if it is complete or there is none."
    };
    (Batches.to_arrow) => {
        r"The data records of the whole buffer as columns, regardless of what was iterated before.

Like `PartitionLog.to_arrow`, but without topic, partition and segment, which a buffer does not
have. Ranges are compared with a batch's header once its CRC is verified, then with each record;
message sets of magic 0 and 1 are always decoded. Raises ValueError for invalid columns or threads;
damage ends the stream with an error."
    };
    (Batches.__arrow_c_stream__) => {
        r"The stream of `to_arrow()`, or of the requested columns and types if all of them are ours."
    };
    (_Batch) => {
        r"The common part of both kinds of batch; None where a magic has no such field."
    };
    (_Batch.magic) => {
        r"0, 1 or 2."
    };
    (_Batch.base_offset) => {
        r"Offset of the first record; reading it decompresses a compressed legacy batch."
    };
    (_Batch.last_offset) => {
        r"Offset of the batch's original last record (inclusive), even if compaction removed it."
    };
    (_Batch.next_offset) => {
        r"`last_offset + 1`: where a consumer continues."
    };
    (_Batch.position) => {
        r"Byte position of the batch in its input or segment."
    };
    (_Batch.size_in_bytes) => {
        r"Size of the whole batch, including the offset and length fields."
    };
    (_Batch.crc) => {
        r"The stored checksum: CRC-32C in magic 2, CRC-32 of the outer message in magic 0 and 1."
    };
    (_Batch.is_valid) => {
        r"True if the checksum is correct. Never raises."
    };
    (_Batch.compression) => {
        r"The codec. Raises UnsupportedCompressionError for the numbers 5 to 7."
    };
    (_Batch.timestamp_type) => {
        r"The clock that set the timestamps."
    };
    (_Batch.base_timestamp) => {
        r"The timestamp (ms) that the records' deltas are relative to."
    };
    (_Batch.max_timestamp) => {
        r"The maximum timestamp (ms), or the append time; -1 for none."
    };
    (_Batch.delete_horizon_ms) => {
        r"The time (ms) from which tombstones or the marker may be removed, if the cleaner set it."
    };
    (_Batch.partition_leader_epoch) => {
        r"Epoch of the leader that appended the batch; not covered by the CRC."
    };
    (_Batch.record_count) => {
        r"The header's record count; None for a compressed legacy batch until it is decompressed."
    };
    (_Batch.producer_id) => {
        r"The producer's id, -1 for none."
    };
    (_Batch.producer_epoch) => {
        r"The producer's epoch, -1 for none."
    };
    (_Batch.base_sequence) => {
        r"The first record's sequence number, -1 for none."
    };
    (_Batch.last_sequence) => {
        r"The last record's sequence number, -1 for none; wraps from 2**31 - 1 to 0."
    };
    (_Batch.is_transactional) => {
        r"True if the batch is part of a transaction."
    };
    (_Batch.is_control) => {
        r"True if the batch holds a control record, which consumers do not receive."
    };
    (_Batch.columns) => {
        r"All records as four lists; keys and values are copied."
    };
    (_Batch.to_bytes) => {
        r"A copy of the batch's bytes."
    };
    (_Batch.to_arrow) => {
        r"The records as columns, by default offset timestamp (ms) timestampType key value headers.

Like `Batches.to_arrow`, but for this batch alone and including control records. A call takes
microseconds, so read many small batches as one stream instead."
    };
    (RecordBatch) => {
        r"A batch of magic 2."
    };
    (LegacyBatch) => {
        r"One outermost message of magic 0 or 1, with the messages inside it."
    };
}
pub(crate) use batches;
