"""The steps of reading a partition, for the jobs: JSON in, JSON out, with the shapes of `magicbyte.model`."""

from collections.abc import Sequence
from os import PathLike
from typing import Self, final

from magicbyte._stubs.arrow import ArrowBatch

def list_partition(path: str | PathLike[str], *, include_checkpoints: bool = False) -> str:
    """Lists a partition's directory, or a single file, which may have any name if it begins with a batch: a
    PartitionListing.

    Raises OSError if it cannot be listed, or its path is not UTF-8.
    """

def unreadable_directory(path: str | PathLike[str], why: str) -> str:
    """The PartitionListing of a directory that cannot be listed: this problem, and nothing to read."""

def is_partition(directory: str, names: Sequence[str]) -> bool:
    """True if a directory of this name, with these entries, is a partition: it has a segment; or its name is
    `topic-N`, and it has a compressed segment or a file that a broker keeps beside segments."""

def is_segment_file(name: str) -> bool:
    """True if a name is that of a segment: twenty digits and `.log`, `.log.zst` or `.log.gz`; in tiered
    storage, with an ID after the digits."""

def is_in_name_order(listing: str) -> bool:
    """True if each segment of a PartitionListing begins between its name and the name of the next segment.

    The order of names is then the order of offsets, as a broker leaves it.

    Cost: reads the first header of each segment; in a store, only of segments written after the next segment.
    """

def is_same_file(version: str | None, other: str | None) -> bool:
    """True if two versions of a segment belong to the same file, which may have grown in between."""

def segments_from(listing: str, offset: int) -> str:
    """The segments of a PartitionListing that may hold this offset or later ones: a list of Segments.

    Their names or their first batches tell.

    Cost: that of `is_in_name_order` for the segments before the segment whose name leads to the offset.
    """

def survey_segment(segment: str, before: str | None = None) -> str:
    """Scans the batch headers of a Segment: a Survey.

    `before` is an earlier Survey of the file: if the file has only grown, the scan begins at its end.
    """

@final
class SurveyInParts:
    """The Survey of a Segment that is decoded next, in this process and as a whole.

    Yields the certain part so far whenever `part_bytes` more were scanned, and the whole at last: its end
    (a position in the segment), True if it is the whole, and the Survey. Parts are for plans that are
    `read_uncommitted`. From a store, the whole segment is fetched, ahead of the scan, and kept for decoding.
    """

    def __new__(cls, segment: str, part_bytes: int) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[int, bool, str]: ...

def segment_history(segment: str, *, log_start_offset: int | None = None) -> str:
    """Scans the batch headers of a Segment for its survey and its part of the partition's history. Batches
    that end before the log's start are only counted.
    """

def partition_history(
    listing: str,
    histories: Sequence[str],
    *,
    now: int,
    transaction_max_timeout_ms: int,
    coordinated: Sequence[tuple[int, str, str]],
    bins: int,
    listed: int,
) -> str:
    """Folds the histories of a listing's segments, in any order, into a PartitionHistory.

    `coordinated` has the transactions that the coordinator has open in the partition: producer ID,
    transactional ID, and Kafka's name of the state.
    """

def plan_partition(
    listing: str,
    surveys: Sequence[str],
    *,
    isolation_level: str = "read_uncommitted",
    start_offset: int | None = None,
    end_offset: int | None = None,
    chunk_bytes: int = ...,
) -> str:
    """Folds the Surveys of a listing's segments, in any order, into a PartitionPlan."""

def offset_for_timestamp(plan: str, timestamp: int) -> int | None:
    """The first offset whose record has this timestamp (ms) or a later one; None without one."""

def start_for_timestamp(plan: str, timestamp: int) -> int | None:
    """The offset at which a read of the records from this timestamp (ms) on has to start.

    It is that of the first such record, or an earlier one where damage or a missing segment may hide one.
    None if there is neither.
    """

def trim_chunk(chunk: str) -> str | None:
    """Narrows a Chunk to the bytes of its requested offsets and the damage between them; None for none.

    Adjacent ranges of offsets yield adjacent ranges of bytes. Bytes after the last good batch of the log
    are never included, as they may still be being written.
    """

def reconcile(plan: str, results: Sequence[str]) -> str:
    """Joins the ChunkResults of a plan, in any order, into a PartitionReconciliation."""

@final
class FetchedChunks:
    """The answers to a fetch as chunks, in the order of their offsets: see `PartitionReader.fetch`.

    A thread fetches ahead: two answers of about 2 MiB wait, or of the size of a larger batch.
    """

    def __iter__(self) -> Self: ...
    def __next__(self) -> FetchedChunk: ...
    @property
    def offsets(self) -> tuple[int, int]:
        """The offsets that are fetched, the end exclusive: those that the log had when the fetch began."""

@final
class FetchedChunk:
    """A chunk whose bytes are in memory, for `ChunkDecoder` and `check_chunk`."""

    def to_json(self) -> str:
        """The chunk as JSON, without its bytes."""

def join_results(results: Sequence[str]) -> str:
    """Joins the ChunkResults of chunks that follow each other into one; of none, into an empty one."""

def reconcile_fetched(listing: str, isolation_level: str, results: Sequence[str]) -> str:
    """Joins the results of all chunks of a fetch, or of the fetches of neighbouring parts, in order: a
    PartitionReconciliation as JSON.

    Its bytes are those that were fetched, and it has no segments.
    """

def check_chunk(chunk: str | FetchedChunk, max_decompressed_bytes: int) -> tuple[str, str]:
    """Decodes every record of a Chunk: its ChunkResult, and the first `LISTED` problems with their rest.

    The problems are a JSON object: the list `problems`, and the number `problems_left_out`. Raises OSError if
    the file cannot be opened.
    """

def digest_chunk(
    chunk: str, width: int, max_decompressed_bytes: int, with_control: bool = True
) -> tuple[list[tuple[int, int, int]], str, str]:
    """Decodes every record of a Chunk, and adds up hashes of the records in each range of `width` offsets.

    Returns the number of each range that has records (an offset divided by `width`), the records in it, and
    the sum of their hashes modulo 2**128; then the ChunkResult and the problems as `check_chunk` does. A hash
    is that of offset, timestamp, its type, key, value, headers, and whether it is a control record; codec,
    magic and batch make no difference. `with_control=False` leaves out control records, which no table has.
    Raises OSError if the file cannot be opened.
    """

def hash_chunk(chunk: str) -> int:
    """The 128-bit XXH3 of the bytes of a Chunk of a local file, whatever the file's version is by now.

    It proves that an earlier `digest_chunk` saw the same bytes. Raises OSError if the file cannot be read, or
    ends before the chunk does.
    """

@final
class ChunkDecoder:
    """Decodes one Chunk into Arrow batches of the table `records`, with Spark's types.

    With `string` or `json`, the columns `key` and `value` are text, and `invalidKey` and `invalidValue` at
    the end of each batch have the bytes that are not such text (otherwise null). Records with
    timestamps (ms) outside the range are counted as outside, like those outside the chunk's offsets.
    """

    def __new__(
        cls,
        chunk: str | FetchedChunk,
        *,
        columns: Sequence[str],
        max_batch_bytes: int = ...,
        max_batch_rows: int = ...,
        max_decompressed_bytes: int = ...,
        batches_table: bool = True,
        check_crcs: bool = True,
        mode: str = "PERMISSIVE",
        key_as: str = "binary",
        value_as: str = "binary",
        start_timestamp: int | None = None,
        end_timestamp: int | None = None,
    ) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> ArrowBatch: ...
    def take_batches(self) -> ArrowBatch | None:
        """Rows of the table `batches` since the last call, or None."""
    def take_problems(self) -> ArrowBatch | None:
        """Rows of the table `problems` since the last call, or None."""
    @property
    def checksum(self) -> int:
        """A checksum of the batches so far, the same for every reader of the file."""
    def result(self) -> str:
        """The chunk's ChunkResult, complete once the iterator is exhausted."""

def mount_store(prefix: str, store: object) -> None:
    """Serves all paths that begin with a URL, such as `s3://bucket`, in this process.

    The object has the methods of `magicbyte.storage.remote.RemoteStore`. It replaces an earlier store there.
    """

def add_encryption_key(pem: str, key_id: str | None) -> None:
    """Makes an RSA private key known, to read encrypted segments in tiered storage, in this process.

    Without an ID it is tried for all IDs without a key. Raises ValueError for anything but such a key.
    """

def list_directory(path: str | PathLike[str]) -> list[tuple[str, bool]]:
    """The names in a directory, an archive or a mounted store, each with True for a directory.

    Raises OSError if it cannot be listed.
    """

def is_stored(path: str | PathLike[str]) -> bool:
    """True if a path is a URL or leads into an archive, rather than to a local file."""

def is_directory(path: str | PathLike[str]) -> bool:
    """True if a path is a directory, or an archive, which is read like a directory.

    Raises OSError if there is nothing at the path.
    """

@final
class StoredFile:
    """A file of a store or an archive, or the content of a compressed segment. Raises OSError."""

    def __new__(cls, path: str | PathLike[str]) -> Self: ...
    @property
    def size(self) -> int:
        """The size in bytes."""

    def read(self, position: int, length: int) -> bytes:
        """Bytes at a position; fewer at the end."""
