"""Watches growing directories: each look surveys only the segments that have changed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from magicbyte.jobs.engines import LocalEngine
from magicbyte.jobs.kept_surveys import KeptSurveys, SegmentState, segment_state
from magicbyte.jobs.partitions import list_partitions
from magicbyte.jobs.plan import Planned, Range, plan_surveyed
from magicbyte.listing import log_start_of, unread_segments
from magicbyte.model import PartitionListing, Problem, Survey
from magicbyte.spark.offsets import TopicPartition, log_end
from magicbyte.spark.options import Options
from magicbyte.spark.paths import expand_paths

__all__ = ["Log", "Watch"]

_CHUNK_BYTES = 4 << 20
_WHOLE_SEGMENTS = 1 << 62
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Log:
    """The state of a partition at the time of a look, with offsets as a broker would report them."""

    whole: Planned
    """The plan for all of it, with one chunk for each segment."""
    start_offset: int
    """The first offset that retention has left."""
    end_offset: int
    """The end (exclusive) of what can be read: whole batches, and with `read_committed` only decided
    transactions."""
    high_offset: int
    """The offset after the last one in the log, undecided transactions included."""
    unreadable: Mapping[str, str]
    """The paths of segments that cannot be read, with the reason."""

    def plan(self, offsets: Range) -> Planned:
        """The plan for some of the offsets, in chunks of about 4 MiB."""
        isolation_level = self.whole.plan["isolation_level"]
        return plan_surveyed(
            self.whole.listing,
            self.whole.surveys,
            isolation_level=isolation_level,
            offsets=offsets,
            chunk_bytes=_CHUNK_BYTES,
        )


class Watch:
    """Looks at the partitions that a stream's options select. It is pickled, so it holds plain data only."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._surveys = KeptSurveys()
        self._logs: dict[tuple[SegmentState, ...], Log] = {}
        self.unread: list[str] = []
        """What the last look could not read, and why."""

    def look(self) -> dict[TopicPartition, Log]:
        """Lists the partitions, surveys what has changed, and plans; there may be no partitions yet."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._look()
            except FileNotFoundError:  # a broker has just rolled or deleted a segment
                time.sleep(_PAUSE_SECONDS)
        return self._look()

    def _look(self) -> dict[TopicPartition, Log]:
        paths = expand_paths(self._options.paths)
        self._options.mount(paths)
        listings = list_partitions(paths, self._options.choice, distinct=True, may_be_none=True)
        take = self._options.topics.take
        listings = [one for one in listings if take(one["topic"], one["partition"])]
        # The offsets of missing segments are known: they are losses only of ranges that include them.
        problems = (problem for one in listings for problem in unread_segments(one))
        unread = [problem for problem in problems if problem["kind"] != "missing_segment"]
        listings = [one for one in listings if one["segments"]]
        logs = {}
        for listing, surveys in zip(listings, self._surveys.survey(listings, LocalEngine()), strict=True):
            states = tuple(map(segment_state, listing["segments"]))
            known = self._logs.get(states)
            if known is None or known.whole.plan["log_start_offset"] != log_start_of(listing):
                known = self._fold(listing, surveys)
            logs[states] = known
        self.unread = [f"{one['topic']}-{one['partition']}: {_description(one)}" for one in unread]
        self.unread += [f"{path}: {why}" for log in logs.values() for path, why in log.unreadable.items()]
        self._logs = {states: log for states, log in logs.items() if self._surveys.states >= {*states}}
        return {(log.whole.plan["topic"], log.whole.plan["partition"]): log for log in logs.values()}

    def _fold(self, listing: PartitionListing, surveys: list[str]) -> Log:
        whole = plan_surveyed(
            listing,
            surveys,
            isolation_level=self._options.isolation_level,
            chunk_bytes=_WHOLE_SEGMENTS,
        )
        end, high = log_end(whole), whole.plan["next_offset"]
        # A renamed segment may begin before the offset in its name.
        starts = [segment["base_offset"] for segment in listing["segments"][:1]]
        if whole.plan["first_offset"] is not None:
            starts.append(whole.plan["first_offset"])
        parsed: list[Survey] = [json.loads(text) for text in surveys]
        unreadable = {one["segment"]["path"]: one["unreadable"] or "" for one in parsed if one["unreadable"]}
        start = min(starts, default=0)
        start = max(start, min(log_start_of(listing) or 0, end))
        return Log(whole, start, end, end if high is None else high, unreadable)


def _description(problem: Problem) -> str:
    name = problem["segment"]
    return problem["message"] if name is None else f"{name} {problem['message']}"
