"""Local and remote segments of a partition as one log, as a broker with tiered storage reads them
(`RemoteLogManager`).

A broker deletes a local segment once it is in tiered storage and old enough (`local.retention.ms`), so the
remote segments come first, and the local ones follow; in between, many are in both places.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from magicbyte._core import Record
from magicbyte.internal_topics.names import REMOTE_LOG_METADATA
from magicbyte.internal_topics.remote_segments import RemoteSegmentsState, RemoteSegmentState
from magicbyte.jobs.find.problems import offsets_text, partition_problem
from magicbyte.jobs.find.remote_lineage import diverged_segments, segment_id
from magicbyte.jobs.find.replay import Batch, replay
from magicbyte.listing import topic_id_of
from magicbyte.model import IgnoredFile, PartitionListing, Problem

__all__ = ["join_remote"]

_MISSING = "missing_segment"


def join_remote(listings: Sequence[PartitionListing]) -> list[PartitionListing]:
    """Joins each partition of a broker with its remote segments, if both are there.

    Remote segments that the broker still has are not read: they are `ignored`, as `overlapping`. If
    `__remote_log_metadata` is there, those that it says are deleted, or not copied to their end, are not
    read either, and neither are those outside the lineage of the leader epochs (`diverged`). The segments of
    a topic with another ID, which was deleted and created again, remain a partition of their own, and so do
    those whose partition is not there.
    """
    if not any(listing["state"] == "remote" for listing in listings):
        return list(listings)
    states = _states(listings)
    local = {_name(listing): listing for listing in listings if listing["state"] == "current"}
    listings = [
        _of_lineage(_live(listing, states), local.get(_name(listing)), states)
        if listing["state"] == "remote"
        else listing
        for listing in listings
    ]
    remote = {_name(listing): listing for listing in listings if listing["state"] == "remote"}
    joined: list[PartitionListing] = []
    used: set[tuple[str, int, str | None]] = set()
    for listing in listings:
        if listing["state"] == "current" and (other := remote.get(_name(listing))) is not None:
            used.add(_name(listing))
            joined.append(_joined(listing, other))
        else:
            joined.append(listing)
    return [one for one in joined if one["state"] != "remote" or _name(one) not in used]


def _states(listings: Iterable[PartitionListing]) -> RemoteSegmentsState:
    """The state of remote segments in the brokers' log. Damage to it is a problem of its own partition."""
    states = RemoteSegmentsState()

    def apply(batch: Batch, record: Record) -> None:
        if not batch.is_control:
            states.replay(record.value_bytes)

    for listing in listings:
        if listing["topic"] == REMOTE_LOG_METADATA and listing["state"] == "current":
            replay(listing["path"], apply)
    return states


def _live(remote: PartitionListing, states: RemoteSegmentsState) -> PartitionListing:
    topic_id = topic_id_of(remote)
    segments, ignored = [], list(remote["ignored"])
    for segment in remote["segments"]:
        state = states.state(topic_id, remote["partition"], segment_id(segment))
        if state in (None, RemoteSegmentState.COPY_SEGMENT_FINISHED):
            segments.append(segment)
        else:
            reason = "unfinished" if state is RemoteSegmentState.COPY_SEGMENT_STARTED else "deleted"
            ignored.append(IgnoredFile(file=segment["file"], size=segment["size"], reason=reason))
    return {**remote, "segments": segments, "ignored": ignored}


def _of_lineage(
    remote: PartitionListing, local: PartitionListing | None, states: RemoteSegmentsState
) -> PartitionListing:
    diverged = {one["file"]: one for one in diverged_segments(remote, local, states)}
    left_out = [IgnoredFile(file=name, size=one["size"], reason="diverged") for name, one in diverged.items()]
    segments = [segment for segment in remote["segments"] if segment["file"] not in diverged]
    return {**remote, "segments": segments, "ignored": [*remote["ignored"], *left_out]}


def _name(listing: PartitionListing) -> tuple[str, int, str | None]:
    return listing["topic"], listing["partition"], topic_id_of(listing)


def _joined(local: PartitionListing, remote: PartitionListing) -> PartitionListing:
    begin = min((segment["base_offset"] for segment in local["segments"]), default=None)
    earlier = [segment for segment in remote["segments"] if begin is None or segment["base_offset"] < begin]
    in_both = [
        IgnoredFile(file=segment["file"], size=segment["size"], reason="overlapping")
        for segment in remote["segments"][len(earlier) :]
    ]
    problems = local["problems"]
    if earlier:
        problems = list(_still_missing(local, earlier[0]["base_offset"]))
    return {
        **local,
        "segments": [*earlier, *local["segments"]],
        "ignored": [*local["ignored"], *remote["ignored"], *in_both],
        "problems": [*remote["problems"], *problems],
    }


def _still_missing(local: PartitionListing, begin: int) -> Iterable[Problem]:
    """The problems of the local part, but for offsets that are in remote segments, which begin at `begin`."""
    first_local = min((segment["base_offset"] for segment in local["segments"]), default=None)
    for problem in local["problems"]:
        first, last = problem["first_lost_offset"], problem["last_lost_offset"]
        is_before = (
            problem["kind"] == _MISSING
            and last is not None
            and first_local is not None
            and last < first_local
        )
        if not is_before and not (problem["kind"] == _MISSING and problem["segment"] is None):
            yield problem
        elif is_before and first is not None and first < begin:
            yield partition_problem(
                local["topic"],
                local["partition"],
                _MISSING,
                f"no file has {offsets_text(first, begin - 1)}: the first leader epoch starts at {first}, "
                f"the first segment in tiered storage at {begin}",
                first_lost_offset=first,
                last_lost_offset=begin - 1,
            )
