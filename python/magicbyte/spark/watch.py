"""Watches growing directories: each look surveys only the segments that have changed."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from magicbyte.jobs.find.lineage import LogLineage, epochs_of
from magicbyte.jobs.find.partitions import list_partitions
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.high_watermarks import high_watermarks, waiting_message
from magicbyte.jobs.run.kept_surveys import KeptSurveys, SegmentState, segment_state
from magicbyte.jobs.run.plan import Planned, Range, plan_surveyed
from magicbyte.listing import (
    checkpointed_epochs,
    cluster_id_of,
    known_topic_id,
    log_start_of,
    unread_segments,
)
from magicbyte.model import PartitionListing, Problem, Survey
from magicbyte.spark.offsets import TopicPartition, log_end, log_start
from magicbyte.spark.options import Options
from magicbyte.spark.paths import expand_paths

__all__ = ["Log", "Watch"]

_LOGGER = logging.getLogger("magicbyte.stream")
_CHUNK_BYTES = 4 << 20
_WHOLE_SEGMENTS = 1 << 62
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Log:
    """The state of a partition at the time of a look, with offsets as a broker would report them."""

    whole: Planned
    """The plan for the whole log, with one chunk for each segment."""
    start_offset: int
    """The first offset that retention has left."""
    lineage: LogLineage
    """The lineage up to the last offset of the log, undecided transactions included."""
    end_offset: int
    """The end (exclusive) of what can be read: whole batches, with `read_committed` only decided
    transactions, and unless requested nothing above the high watermark."""
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

    def __init__(self, options: Options, *, above_high_watermark: bool) -> None:
        self._options = options
        self._above_high_watermark = above_high_watermark
        self._warned = False
        self._surveys = KeptSurveys()
        self._logs: dict[tuple[SegmentState, ...], Log] = {}
        self.unread: list[str] = []
        """The parts that the last look could not read, with the reasons."""

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
        found = {(log.whole.plan["topic"], log.whole.plan["partition"]): log for log in logs.values()}
        return found if self._above_high_watermark else self._below_high_watermarks(listings, found)

    def _below_high_watermarks(
        self, listings: Sequence[PartitionListing], logs: Mapping[TopicPartition, Log]
    ) -> dict[TopicPartition, Log]:
        """The same logs, each up to its high watermark, where that is known."""
        marks = high_watermarks(listings, required=True)
        below = {name: mark for name, mark in marks.items() if mark < logs[name].end_offset}
        if below and not self._warned:
            self._warned = True
            _LOGGER.warning("%s", waiting_message(below, "includeAboveHighWatermark=true"))
        limited = {name: replace(logs[name], end_offset=mark) for name, mark in below.items()}
        return {**logs, **limited}

    def _fold(self, listing: PartitionListing, surveys: list[str]) -> Log:
        whole = plan_surveyed(
            listing,
            surveys,
            isolation_level=self._options.isolation_level,
            chunk_bytes=_WHOLE_SEGMENTS,
        )
        end, high = log_end(whole), whole.plan["next_offset"]
        starts = [segment["base_offset"] for segment in whole.plan["segments"][:1]]
        if whole.plan["first_offset"] is not None:
            starts.append(whole.plan["first_offset"])
        parsed: list[Survey] = [json.loads(text) for text in surveys]
        unreadable = {one["segment"]["path"]: one["unreadable"] or "" for one in parsed if one["unreadable"]}
        lineage = LogLineage(
            known_topic_id(listing),
            cluster_id_of(listing),
            epochs_of(whole.plan, checkpointed_epochs(listing["path"])),
            end if high is None else high,
        )
        start = max(log_start(whole), min(log_start_of(listing) or 0, end))
        return Log(whole, start, lineage, end, unreadable)


def _description(problem: Problem) -> str:
    name = problem["segment"]
    return problem["message"] if name is None else f"{name} {problem['message']}"
