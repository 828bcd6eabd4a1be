//! The docstrings of `_stubs/steps.pyi`. Written by `make docstrings`.

macro_rules! steps {
    (list_partition) => {
        r"Lists a partition's directory, or a single file, which may have any name if it begins with a batch: a
PartitionListing.

Raises OSError if it cannot be listed, or its path is not UTF-8."
    };
    (unreadable_directory) => {
        r"The PartitionListing of a directory that cannot be listed: this problem, and nothing to read."
    };
    (is_partition) => {
        r"True if a directory of this name, with these entries, is a partition: it has a segment; or its name is
`topic-N`, and it has a compressed segment or a file that a broker keeps beside segments."
    };
    (is_segment_file) => {
        r"True if a name is that of a segment: twenty digits and `.log`, `.log.zst` or `.log.gz`; in tiered
storage, with an ID after the digits."
    };
    (is_in_name_order) => {
        r"True if each segment of a PartitionListing begins between its name and the name of the next segment.

The order of names is then the order of offsets, as a broker leaves it.

Cost: reads the first header of each segment; in a store, only of segments written after the next segment."
    };
    (segments_from) => {
        r"The segments of a PartitionListing that may hold this offset or later ones: a list of Segments.

Their names or their first batches tell.

Cost: that of `is_in_name_order` for the segments before the segment whose name leads to the offset."
    };
    (survey_segment) => {
        r"Scans the batch headers of a Segment: a Survey.

`before` is an earlier Survey of the file: if the file has only grown, the scan begins at its end."
    };
    (SurveyInParts) => {
        r"The Survey of a Segment that is decoded next, in this process and as a whole.

Yields the certain part so far whenever `part_bytes` more were scanned, and the whole at last: its end
(a position in the segment), True if it is the whole, and the Survey. Parts are for plans that are
`read_uncommitted`. From a store, the whole segment is fetched, ahead of the scan, and kept for decoding."
    };
    (segment_history) => {
        r"Scans the batch headers of a Segment for its survey and its part of the partition's history. Batches
that end before the log's start are only counted."
    };
    (partition_history) => {
        r"Folds the histories of a listing's segments, in any order, into a PartitionHistory.

`coordinated` has the transactions that the coordinator has open in the partition: producer ID,
transactional ID, and Kafka's name of the state."
    };
    (plan_partition) => {
        r"Folds the Surveys of a listing's segments, in any order, into a PartitionPlan."
    };
    (offset_for_timestamp) => {
        r"The first offset whose record has this timestamp (ms) or a later one."
    };
    (trim_chunk) => {
        r"Narrows a Chunk to the bytes of its requested offsets and the damage between them; None for none.

Adjacent ranges of offsets yield adjacent ranges of bytes. Bytes after the last good batch of the log
are never included, as they may still be being written."
    };
    (reconcile) => {
        r"Joins the ChunkResults of a plan, in any order, into a PartitionReconciliation."
    };
    (ChunkDecoder) => {
        r"Decodes one Chunk of a plan into Arrow batches of the table `records`, with Spark's types.

With `string` or `json`, the columns `key` and `value` are text, and `invalidKey` and `invalidValue` at
the end of each batch have the bytes that are not such text (otherwise null). Records with
timestamps (ms) outside the range are counted as outside, like those outside the chunk's offsets."
    };
    (ChunkDecoder.bytes_read) => {
        r"The number of bytes read so far."
    };
    (ChunkDecoder.take_batches) => {
        r"Rows of the table `batches` since the last call, or None."
    };
    (ChunkDecoder.take_problems) => {
        r"Rows of the table `problems` since the last call, or None."
    };
    (ChunkDecoder.checksum) => {
        r"A checksum of the batches so far, the same for every reader of the file."
    };
    (ChunkDecoder.result) => {
        r"The chunk's ChunkResult, complete once the iterator is exhausted."
    };
    (mount_store) => {
        r"Serves all paths that begin with a URL, such as `s3://bucket`, in this process.

The object has the methods of `magicbyte.storage.remote.RemoteStore`. It replaces an earlier store there."
    };
    (add_encryption_key) => {
        r"Makes an RSA private key known, to read encrypted segments in tiered storage, in this process.

Without an ID it is tried for all IDs without a key. Raises ValueError for anything but such a key."
    };
    (list_directory) => {
        r"The names in a directory, an archive or a mounted store, each with True for a directory.

Raises OSError if it cannot be listed."
    };
    (is_stored) => {
        r"True if a path is a URL or leads into an archive, rather than to a local file."
    };
    (is_directory) => {
        r"True if a path is a directory, or an archive, which is read like a directory.

Raises OSError if there is nothing at the path."
    };
    (StoredFile) => {
        r"A file of a store or an archive, or the content of a compressed segment. Raises OSError."
    };
    (StoredFile.size) => {
        r"The size in bytes."
    };
    (StoredFile.read) => {
        r"Bytes at a position; fewer at the end."
    };
}
pub(crate) use steps;
