"""Partitions of a running broker, which appends, rolls, cleans and deletes while a job reads them.

A problem counts once its files have held still: as long as they change, the partition is listed again, and
its changed parts are surveyed and decoded again, a few times.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, cast

from magicbyte.jobs.find.partitions import list_directory
from magicbyte.listing import is_live
from magicbyte.model import ChunkResult, PartitionCheckpoints, PartitionListing, Problem, Survey
from magicbyte.storage.location import locate

__all__ = ["ATTEMPTS", "doubted_by_plan", "doubted_by_results", "look_again", "of_each_segment"]

ATTEMPTS = 5
"""The maximum number of looks at a partition that changes. Then its problems are taken as they are."""

_LOGGER = logging.getLogger("magicbyte.jobs")

Doubted = Collection[str | None]
"""The names of files with problems; None for a problem of the partition as a whole."""


def doubted_by_plan(problems: Iterable[Problem], surveys: Iterable[Survey]) -> set[str | None]:
    """The files of a partition with problems, and those that do not end with a batch."""
    torn = {
        survey["segment"]["file"] for survey in surveys if survey["sound_end"] < survey["segment"]["size"]
    }
    return {*(problem["segment"] for problem in problems), *torn}


def doubted_by_results(results: Iterable[ChunkResult]) -> set[str | None]:
    """The files of a partition with bytes that could not be decoded."""
    return {result["segment"] for result in results if result["quarantined_bytes"] or _is_torn(result)}


def _is_torn(result: ChunkResult) -> bool:
    return result["tail"] is not None and result["tail"]["reason"] == "partial_batch"


def look_again(listing: PartitionListing, doubted: Doubted) -> PartitionListing:
    """Lists a local directory again if the doubted files have changed.

    Returns `listing` itself if they have not. A partition that a broker has deleted meanwhile becomes one
    without files, with a note to the logger `magicbyte.jobs`.
    """
    if not doubted or is_live(listing) or not _is_live_directory(listing):
        return listing
    try:
        now = list_directory(listing["path"])
    except FileNotFoundError:
        if not (listing["segments"] or listing["sidecars"]):
            return listing  # only what names it is there
        _LOGGER.warning("%s is not read: it was deleted while the log was read", listing["path"])
        return {**listing, "checkpoints": None, "segments": [], "sidecars": [], "ignored": [], "problems": []}
    except OSError:
        return listing
    now["checkpoints"] = _checkpoints(listing, now)
    now["include_deleted_records"] = listing["include_deleted_records"]
    changed = list(_state(listing, listing, doubted)) != list(_state(now, listing, doubted))
    return now if changed else listing


def of_each_segment(
    before: PartitionListing,
    results: Sequence[str],
    now: PartitionListing,
    work: Callable[[PartitionListing], Sequence[str]],
) -> list[str]:
    """A result for each segment of `now`: that for the same segment of `before`, or one of `work`."""
    known = dict(zip(map(json.dumps, before["segments"]), results, strict=True))
    new = [segment for segment in now["segments"] if json.dumps(segment) not in known]
    known.update(zip(map(json.dumps, new), work({**now, "segments": new}), strict=True))
    return [known[json.dumps(segment)] for segment in now["segments"]]


def _is_live_directory(listing: PartitionListing) -> bool:
    path = listing["path"]
    is_in_it = all(
        path in (segment["path"], os.path.dirname(segment["path"])) for segment in listing["segments"]
    )
    return is_in_it and locate(path).is_live


def _checkpoints(before: PartitionListing, now: PartitionListing) -> PartitionCheckpoints | None:
    """The checkpoints, without the log start if the broker has deleted segments after it wrote that."""
    checkpoints, start = before["checkpoints"], _begin(now)
    if checkpoints is None or start is None:
        return checkpoints
    written = checkpoints["log_start_offset"]
    if written is None or written >= start:
        return checkpoints
    has_moved = (_begin(before) or 0) < start
    return {**checkpoints, "log_start_offset": None} if has_moved else checkpoints


def _begin(listing: PartitionListing) -> int | None:
    return listing["segments"][0]["base_offset"] if listing["segments"] else None


def _state(listing: PartitionListing, before: PartitionListing, doubted: Doubted) -> Iterator[Any]:
    """The state of the doubted files, and the segments up to the last one of `before`."""
    last = before["segments"][-1] if before["segments"] else None
    names = {_stem(name) for name in doubted if name is not None}
    if last is not None and None in doubted:
        names.add(_stem(last["file"]))
    end = last["base_offset"] if last else 0
    yield [
        segment["file"] for segment in listing["segments"] if last is None or segment["base_offset"] <= end
    ]
    files = cast(Sequence[Any], (*listing["segments"], *listing["sidecars"], *listing["ignored"]))
    yield [file for file in files if _stem(file["file"]) in names]


def _stem(name: str) -> str:
    return name.partition(".")[0]
