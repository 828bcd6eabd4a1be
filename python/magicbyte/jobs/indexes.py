"""The check of `magicbyte verify --indexes`: entries that the log contradicts, by the rules of Kafka's
DumpLogSegments.

A `.txnindex` is compared with the markers of the whole directory: a transaction may have begun in an
earlier segment. As in Kafka, an entry's offset has to be the last one of its batch; brokers before 4.1
did not keep to this when a batch or an append held several records.
"""

from __future__ import annotations

import json
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple, TypedDict

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.files.segment import batches
from magicbyte.files.sidecars import Entry, read_sidecar
from magicbyte.jobs.find.partitions import list_directory
from magicbyte.jobs.run.accounting import first_listed
from magicbyte.jobs.run.engines import Engine, LocalEngine
from magicbyte.jobs.run.moving import ATTEMPTS
from magicbyte.jobs.run.plan import plan_partitions
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.model import PartitionListing
from magicbyte.storage.location import locate
from magicbyte.storage.paths import absolute

__all__ = ["IndexReport", "Mismatch", "check_indexes"]

_SUFFIXES = (".index", ".timeindex", ".txnindex")
_PAUSE_SECONDS = 0.05
Mismatch = dict[str, Any]


class IndexReport(TypedDict):
    """The comparison of indexes with their segments."""

    compared: int
    """The number of indexes."""
    mismatches: list[Mismatch]
    """The first `LISTED`; the field `file` names the index."""
    mismatches_left_out: int
    """The number of mismatches that are not listed."""


class _Index(NamedTuple):
    path: str
    log: str


_Files = tuple[tuple[int, int, int] | None, ...]
"""A state that changes with files."""
_Transactions = Callable[[str, _Files], tuple[dict[str, dict[str, Any]], list[tuple[int, int, int]]]]


def check_indexes(
    listings: Sequence[PartitionListing],
    engine: Engine,
    *,
    max_decompressed_bytes: int,
    progress: Progress = NO_PROGRESS,
) -> IndexReport:
    """Compares the indexes of partitions with their segments, which are read from their start.

    Each partition is a task.
    """
    checked = engine.map(
        partial(_check_partition, max_decompressed_bytes=max_decompressed_bytes),
        listings,
        name="magicbyte verify: compare indexes",
        sizes=[sum(segment["size"] for segment in listing["segments"]) for listing in listings],
        progress=progress,
    )
    mismatches, left_out = first_listed(
        [mismatch for one in checked for mismatch in one["mismatches"]],
        sum(one["mismatches_left_out"] for one in checked),
    )
    return IndexReport(
        compared=sum(one["compared"] for one in checked), mismatches=mismatches, mismatches_left_out=left_out
    )


def _check_partition(listing: PartitionListing, max_decompressed_bytes: int) -> IndexReport:
    indexes = list(_indexes_of(listing))
    # All .txnindex files of a partition are compared with one survey of it, while its files stay as they are.
    transactions = lru_cache(maxsize=1)(_transactions)
    found = (
        Mismatch(file=index.path, **mismatch)
        for index in indexes
        for mismatch in _mismatches_of(index, max_decompressed_bytes, transactions)
    )
    listed = list(islice(found, _core.LISTED))
    return IndexReport(compared=len(indexes), mismatches=listed, mismatches_left_out=sum(1 for _ in found))


def _indexes_of(listing: PartitionListing) -> Iterator[_Index]:
    """The indexes of a partition; of a segment given by its name, those beside it."""
    logs = {os.path.splitext(segment["path"])[0]: segment["path"] for segment in listing["segments"]}
    paths = [os.path.join(listing["path"], sidecar["file"]) for sidecar in listing["sidecars"]]
    if not paths:
        beside = (stem + suffix for stem in logs for suffix in _SUFFIXES)
        paths = [path for path in beside if os.path.exists(path)]
    for path in paths:
        stem, suffix = os.path.splitext(path)
        if suffix in _SUFFIXES:
            yield _Index(path, logs.get(stem, stem + ".log"))


def _mismatches_of(
    index: _Index, max_decompressed_bytes: int, transactions: _Transactions
) -> Iterator[Mismatch]:
    """Yields the errors of an index: first in its format, then in its entries.

    An index and its log are compared again, a few times, if a broker has changed one of them meanwhile. An
    index that the broker has deleted has no mismatches.
    """
    for attempts_left in reversed(range(ATTEMPTS)):
        before = _state(index)
        found = _mismatches_now(index, max_decompressed_bytes, transactions)
        first = next(found, None)
        if first is None:
            return
        if first["kind"] == "no_log":
            time.sleep(_PAUSE_SECONDS)  # a broker renames a log before its indexes
        if not locate(index.path).is_still_there():
            return
        if not attempts_left or _state(index) == before:
            yield first
            yield from found
            return


def _state(index: _Index) -> _Files:
    """The state of an index and the files that it is compared with."""
    logs = _logs(os.path.dirname(index.path)) if index.path.endswith(".txnindex") else [index.log]
    return tuple(map(_state_of_file, (index.path, *logs)))


def _logs(directory: str) -> list[str]:
    try:
        names = os.listdir(directory or os.curdir)
    except OSError:
        return []
    return sorted(os.path.join(directory, name) for name in names if name.endswith(".log"))


def _state_of_file(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _mismatches_now(
    index: _Index, max_decompressed_bytes: int, transactions: _Transactions
) -> Iterator[Mismatch]:
    path, log = index
    entries, error = read_sidecar(path)
    if error is not None:
        yield {"kind": "malformed", "found": str(error)}
    if not locate(log).is_still_there():
        yield {"kind": "no_log", "expected": log}
    elif path.endswith(".txnindex"):
        yield from _transaction_mismatches(log, entries, transactions)
    elif path.endswith(".timeindex"):
        yield from _time_mismatches(log, entries, max_decompressed_bytes)
    else:
        yield from _offset_mismatches(log, entries, max_decompressed_bytes)


def _offset_mismatches(log: str, entries: list[Entry], max_decompressed_bytes: int) -> Iterator[Mismatch]:
    """Checks that a batch with the entry's last offset begins at each entry's position."""
    wanted = {entry["position"] for entry in entries}
    last_offsets: dict[int, int] = {}
    try:
        for position, batch in batches(log, max_decompressed_bytes):
            if position in wanted:
                last_offsets[position] = batch.last_offset
    except Error as error:
        yield {"kind": "damaged_log", "found": str(error)}
    for entry in entries:
        found = last_offsets.get(entry["position"])
        if found != entry["offset"]:
            actual = "no batch begins there" if found is None else found
            yield {
                "kind": "offset_mismatch",
                "offset": entry["offset"],
                "position": entry["position"],
                "found": actual,
                "expected": entry["offset"],
            }


def _time_mismatches(log: str, entries: list[Entry], max_decompressed_bytes: int) -> Iterator[Mismatch]:
    """Checks that each entry has the last offset and maximum timestamp of a batch, and that times grow."""
    offsets = sorted({entry["offset"] for entry in entries})
    # For each offset, the first batch that does not end before it: its last offset and its largest time.
    found: dict[int, tuple[int, int | str]] = {}
    try:
        for _, batch in batches(log, max_decompressed_bytes):
            end = bisect_right(offsets, batch.last_offset)
            if fresh := offsets[len(found) : end]:
                time = _largest_time(batch) if fresh[-1] == batch.last_offset else -1
                found.update((one, (batch.last_offset, time)) for one in fresh)
    except Error as error:
        yield {"kind": "damaged_log", "found": str(error)}
    previous = -1
    for entry in entries:
        offset, time = entry["offset"], entry["timestamp"]
        last_offset, largest = found.get(offset, (-1, -1))
        fields = {"offset": offset, "timestamp": time}
        if last_offset != offset:
            actual = "no batch from there on" if last_offset == -1 else last_offset
            yield {"kind": "offset_not_found", **fields, "found": actual, "expected": offset}
        else:
            if largest != time:
                yield {"kind": "timestamp_mismatch", **fields, "found": largest, "expected": time}
            if previous >= time:
                yield {"kind": "timestamp_out_of_order", **fields, "found": time, "expected": f"> {previous}"}
        previous = time


def _largest_time(batch: _core.RecordBatch | _core.LegacyBatch) -> int | str:
    try:
        return max((record.timestamp for record in batch), default=-1)
    except Error as error:
        return str(error)


def _transaction_mismatches(
    log: str, entries: list[Entry], transactions: _Transactions
) -> Iterator[Mismatch]:
    """Checks that each aborted transaction with data has an entry, and each entry an abort marker."""
    directory = os.path.dirname(absolute(log))
    surveys, aborted = transactions(directory, tuple(map(_state_of_file, _logs(directory))))
    if os.path.basename(log) not in surveys:
        yield {"kind": "no_log", "expected": f"{log} as a part of the partition"}
        return
    markers = {
        (event["producer_id"], event["offset"])
        for event in surveys[os.path.basename(log)]["transactions"]
        if event["event"] == "end" and not event["committed"]
    }
    known = {(producer_id, last): first for producer_id, first, last in aborted}
    listed = set()
    for entry in entries:
        key = entry["producerId"], entry["lastOffset"]
        listed.add(key)
        fields = {"producer_id": key[0], "first_offset": entry["firstOffset"], "last_offset": key[1]}
        if key not in markers:
            yield {"kind": "no_abort_marker", **fields, "found": "no marker", "expected": "an abort marker"}
        # Compaction may have removed the first records of a transaction, which then seems to begin later.
        elif entry["firstOffset"] > known.get(key, entry["firstOffset"]):
            yield {
                "kind": "first_offset_mismatch",
                **fields,
                "found": known[key],
                "expected": entry["firstOffset"],
            }
    for key in sorted(markers & known.keys() - listed):
        yield {
            "kind": "not_indexed",
            "producer_id": key[0],
            "first_offset": known[key],
            "last_offset": key[1],
            "found": "no entry",
            "expected": "an entry",
        }


def _transactions(
    directory: str, _state: _Files
) -> tuple[dict[str, dict[str, Any]], list[tuple[int, int, int]]]:
    """The surveys of a partition's segments by file name, and its aborted transactions: producer id, first
    offset and last offset of each.
    """
    (planned,) = plan_partitions([list_directory(directory)], LocalEngine())
    surveys = map(json.loads, planned.surveys)
    return {survey["segment"]["file"]: survey for survey in surveys}, json.loads(planned.text)["aborted"]
