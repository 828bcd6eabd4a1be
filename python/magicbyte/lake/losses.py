"""Records of a log that a job could not read or decode, and what becomes of them in its table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from magicbyte import _core
from magicbyte.jobs.find.problems import offsets_text, partition_problem
from magicbyte.jobs.run.holes import Hole, joined
from magicbyte.jobs.run.plan import Planned
from magicbyte.jobs.run.reading import UNKNOWN_SCHEMAS
from magicbyte.jobs.run.sums import TopicPartition
from magicbyte.lake.table import UnsettledError
from magicbyte.lake.write import Written
from magicbyte.listing import first_offset_of
from magicbyte.model import PartitionListing, PartitionReconciliation, Problem
from magicbyte.options.ranges import Ranges

__all__ = [
    "HOLE",
    "gap_before",
    "holes_in",
    "refuse_losses",
    "remembered_holes",
    "undecoded_in",
    "without_ends",
]

HOLE = "hole"
"""The kind of a problem: the table lacks what an earlier job passed."""
_MOST = 1 << 63
_LOSSES = (
    "data_loss",
    "directory_unreadable",
    "file_missing",
    "file_truncated",
    "file_unreadable",
    "partial_batch",
)
"""Kinds of problems: bytes of the log that were not read, or are not there."""


def gap_before(planned: Planned, start: int | None, ranges: Ranges) -> Iterator[Problem]:
    """The offsets between the table, which ends before `start`, and the log, if that begins after them."""
    plan = planned.plan
    base = plan["segments"][0]["base_offset"] if plan["segments"] else first_offset_of(planned.listing)
    if start is None or base is None:
        return
    begin = max(base, plan["log_start_offset"] or 0)
    begin = min(begin, _MOST if ranges.end_offset is None else ranges.end_offset)
    if begin > (first := max(start, ranges.start_offset or 0)):
        yield partition_problem(
            plan["topic"],
            plan["partition"],
            "data_loss",
            f"the table ends before offset {first}, and the log begins at {begin}: "
            "what was between them is in neither",
            first_lost_offset=first,
            last_lost_offset=begin - 1,
        )


def holes_in(
    problems: Iterable[Problem], listing: PartitionListing, start: int, end: int
) -> tuple[Hole, ...]:
    """The offsets from `start` to `end` (exclusive) that problems of a partition may have cost."""
    place = listing["topic"], listing["partition"]
    found = (
        _cost(problem, listing, end)
        for problem in problems
        if (problem["topic"], problem["partition"]) == place
    )
    return joined(Hole(max(start, hole.start), min(hole.end, end)) for hole in found if hole is not None)


def _cost(problem: Problem, listing: PartitionListing, end: int) -> Hole | None:
    first, last, segment = (
        problem["first_lost_offset"],
        problem["last_lost_offset"],
        problem["segment"],
    )
    if first is not None:
        return Hole(first, end if last is None else last + 1)
    if problem["kind"] in _LOSSES and segment is not None and _core.is_segment_file(segment):
        # A file that could not be read at all has the offsets from its name to the next one's.
        base = int(segment.partition(".")[0])
        later = (one["base_offset"] for one in listing["segments"] if one["base_offset"] > base)
        return Hole(base, min(later, default=end)) if problem["start"] is None else None
    return None


def undecoded_in(written: Iterable[Written]) -> dict[TopicPartition, tuple[Hole, ...]]:
    """The holes of each partition with rows that were not decoded, since the registry did not have their
    schemas.
    """
    found: dict[TopicPartition, tuple[Hole, ...]] = {}
    # Nearly no account has any.
    for text in (text for partition in written for text in partition.results if UNKNOWN_SCHEMAS in text):
        account = json.loads(text)
        place = account["topic"], account["partition"]
        holes = [Hole(*hole) for hole in account.get(UNKNOWN_SCHEMAS, ())]
        found[place] = joined([*found.get(place, ()), *holes])
    return found


def remembered_holes(listing: PartitionListing, holes: Iterable[Hole]) -> Iterator[Problem]:
    """Holes of the table, as problems."""
    begin = first_offset_of(listing) or 0
    for hole in holes:
        what = (
            f"the log begins at {begin} by now, so they are lost; ingest --repair acknowledges that"
            if hole.end <= begin
            else "ingest --repair adds those that the log has by now"
        )
        yield partition_problem(
            listing["topic"],
            listing["partition"],
            HOLE,
            f"the table lacks records of {offsets_text(hole.start, hole.end - 1)}, which were lost, unread "
            f"or of an unknown schema when an earlier run passed them: {what}",
            first_lost_offset=hole.start,
            last_lost_offset=hole.end - 1,
        )


def without_ends(
    problems: Iterable[Problem], partitions: Sequence[PartitionReconciliation]
) -> Iterator[Problem]:
    """Leaves out what is no problem in a log that is being written: bytes at its end that may become a batch,
    and index entries of batches that were appended after it was listed.
    """
    ends = {
        (partition["topic"], partition["partition"]): partition["segments"][-1]
        for partition in partitions
        if partition["segments"]
    }
    for problem in problems:
        last, segment = ends.get((problem["topic"], problem["partition"])), problem["segment"]
        if last is not None and segment is not None:
            tail = last["tail"]
            if tail is not None and (segment, problem["start"]) == (last["file"], tail["start"]):
                continue
            if problem["kind"] == "index_beyond_log" and segment.startswith(last["file"].removesuffix("log")):
                continue
        yield problem


def refuse_losses(
    table: str, problems: Iterable[Problem], left_out: int, starts: Mapping[TopicPartition, int]
) -> None:
    """Raises UnsettledError for records that are not in the log's files, or in files that cannot be read."""
    if left_out:
        raise UnsettledError(f"{table}: nothing is added, since there are too many problems to list them all")
    for problem in problems:
        place, segment, last = (
            (problem["topic"], problem["partition"]),
            problem["segment"],
            problem["last_lost_offset"],
        )
        is_log = segment is None or _core.is_segment_file(segment)
        is_lost = problem["kind"] in _LOSSES and is_log
        is_lost |= problem["kind"] == "missing_segment" and (last is None or last >= starts.get(place, 0))
        if is_lost:
            name = f"{problem['topic']}-{problem['partition']}" + (f"/{segment}" if segment else "")
            raise UnsettledError(
                f"{table}: nothing is added, since {name} is not whole: {problem['message']};"
                " without --follow, what is lost is left out and named, and then this can go on"
            )
