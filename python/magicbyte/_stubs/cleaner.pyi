"""The steps of `compact` and `redact`: JSON in, JSON out, with the shapes of `magicbyte.jobs.clean`."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Self, final

from typing_extensions import Buffer

def plan_compaction(
    plan: str,
    listing: str,
    *,
    now: int,
    delete_retention_ms: int = ...,
    min_compaction_lag_ms: int = 0,
    until_offset: int | None = None,
    all: bool = False,
    first_dirty_offset: int | None = None,
    segment_bytes: int = ...,
    segment_index_bytes: int = ...,
) -> str:
    """Decides what to clean in a log and how to group its segments: a Compaction.

    `plan` covers the whole log, `listing` is its directory's; times are in ms. Only entire segments are
    cleaned, up to the last stable offset and `until_offset`, and the last segment only with `all`.
    """

def plan_redaction(plan: str) -> str:
    """The Compaction that rewrites every segment of a log on its own."""

def index_keys(
    chunks: list[str],
    directory: str | PathLike[str] | None = None,
    *,
    seed: int = 0,
    memory_bytes: int = ...,
    parts: int = 16,
    max_decompressed_bytes: int = ...,
    record_size_limit: int | None = None,
    mode: str = "PERMISSIVE",
) -> str:
    """The first pass, over a run of CleanerChunks: an IndexedKeys.

    With a directory the keys are written to files in it, one for each part of the hash, from a map of
    `memory_bytes`. `seed` is random, but the same for all tasks of a log.

    Raises:
        Error: A record of a compressed batch has more bytes than `record_size_limit`; with "FAILFAST", at the
            first damage.
        OSError: A file could not be read or written.
    """

def reduce_keys(
    files: Sequence[str], directory: str | PathLike[str], *, seed: int, memory_bytes: int = ...
) -> list[Path]:
    """Reduces the files of one part of the hash to sorted lists of the places of each key's last record."""

def producer_summary(
    producers: list[str], groups: list[tuple[int, int]], *, expired_until: int | None = None
) -> list[str]:
    """A log's producers and transactions, for each group of offsets (first, last).

    `producers` are those of each IndexedKeys, in offset order; producers last heard from at or before
    `expired_until` (ms) are forgotten.
    """

def compact_group(
    group: str,
    indexed: list[str],
    summary: str,
    directory: str | PathLike[str],
    *,
    lists: Sequence[str],
    clean_until: int,
    now: int,
    delete_retention_ms: int,
    max_decompressed_bytes: int = ...,
    index_interval_bytes: int = ...,
    mode: str = "PERMISSIVE",
) -> str:
    """The second pass, over a group of segments: writes them as one without superseded or expired records.

    Returns JSON: `results`, a ChunkResult as text for each chunk, the first `problems` and
    `problems_left_out`, `segments` for `finish_partition` with their `batches` and `size`, `counts`,
    `redacted`.

    Raises:
        Error: With "FAILFAST", at the first damage or the first batch that could only be copied.
        ValueError: The files have changed since the first pass.
        OSError: A file could not be read or written.
    """

@final
class KeySet:
    """Keys to be forgotten: about a hundred bytes of memory for each, besides the key itself."""

    def __new__(cls, keys: list[Buffer]) -> Self: ...
    def find(self, data: Buffer) -> int | None:
        """Where one of the keys first occurs in `data`, ignoring keys with less than eight non-zero bytes."""

def redact_group(
    group: str,
    indexed: list[str],
    summary: str,
    directory: str | PathLike[str],
    *,
    keys: KeySet,
    tombstones: bool,
    clean_until: int,
    max_decompressed_bytes: int = ...,
    index_interval_bytes: int = ...,
    mode: str = "PERMISSIVE",
) -> str:
    """Like `compact_group`, but without the records that have one of these keys, or that `indexed` selects.

    A chunk's `selected` are pairs of a batch's position and runs of records in it (first and last number),
    in order. With `tombstones` these records stay, without value and headers. The result also has
    `matched`, the keys that were found: one bit for each key, 64 to a number.
    """

def check_segment(
    path: str | PathLike[str], keys: KeySet, *, tombstones: bool, max_decompressed_bytes: int = ...
) -> str:
    """Reads a segment that `redact_group` wrote and looks for what should not be there.

    Returns JSON: `leaks`, the number of places that hold one of the keys or bytes that no reader returns,
    with `first_leaks`; `in_keys`, `in_values` and `in_headers`, the number of records that hold one of the
    keys elsewhere.

    Raises:
        OSError: The file could not be read.
    """
