"""Watches growing directories: each look surveys only the segments that have changed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from magicbyte.jobs.engines import LocalEngine
from magicbyte.jobs.partitions import list_partitions
from magicbyte.jobs.plan import Planned, Range, plan_surveyed, survey
from magicbyte.listing import unread_segments
from magicbyte.model import PartitionListing, Problem, Segment, Survey
from magicbyte.spark.offsets import TopicPartition, log_end
from magicbyte.spark.options import Options
from magicbyte.spark.paths import expand_paths
from magicbyte.storage.mounts import mount

__all__ = ["Log", "Watch"]

_CHUNK_BYTES = 4 << 20
_WHOLE_SEGMENTS = 1 << 62
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.1
_SETTLED_MILLIS = 1000
"""Timestamps of files are coarser than writes."""

_Key = tuple[str, int, int, str | None]


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
        self._surveys: dict[_Key, str] = {}
        self._logs: dict[tuple[_Key, ...], Log] = {}
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
        now = time.time_ns() // 1_000_000
        paths = expand_paths(self._options.paths)
        mount(paths, self._options.storage or None)
        listings = list_partitions(paths, distinct=True, may_be_none=True)
        take = self._options.topics.take
        listings = [one for one in listings if take(one["topic"], one["partition"])]
        # The offsets of missing segments are known: they are losses only of ranges that include them.
        problems = (problem for one in listings for problem in unread_segments(one))
        unread = [problem for problem in problems if problem["kind"] != "missing_segment"]
        listings = [one for one in listings if one["segments"]]
        self._survey(listings)
        logs = {}
        for listing in listings:
            keys = tuple(map(_key, listing["segments"]))
            log = self._logs.get(keys) or self._fold(listing, keys)
            logs[keys] = log
        self.unread = [f"{one['topic']}-{one['partition']}: {_description(one)}" for one in unread]
        self.unread += [f"{path}: {why}" for log in logs.values() for path, why in log.unreadable.items()]
        unreadable = {path for log in logs.values() for path in log.unreadable}
        segments = (segment for one in listings for segment in one["segments"])
        kept = {_key(one) for one in segments if self._is_settled(one, now) and one["path"] not in unreadable}
        self._surveys = {key: text for key, text in self._surveys.items() if key in kept}
        self._logs = {keys: log for keys, log in logs.items() if kept.issuperset(keys)}
        return {(log.whole.plan["topic"], log.whole.plan["partition"]): log for log in logs.values()}

    def _is_settled(self, segment: Segment, now: int) -> bool:
        """Whether the same size and time mean the same content. If not, a tail may still become a batch."""
        if segment["modified_ms"] + _SETTLED_MILLIS < now:
            return True
        survey: Survey = json.loads(self._surveys[_key(segment)])
        return survey["sound_end"] == segment["size"]

    def _survey(self, listings: list[PartitionListing]) -> None:
        segments = [segment for one in listings for segment in one["segments"]]
        changed = [segment for segment in segments if _key(segment) not in self._surveys]
        if changed:
            (texts,) = survey([{**listings[0], "segments": changed}], LocalEngine())
            self._surveys.update(zip(map(_key, changed), texts, strict=True))

    def _fold(self, listing: PartitionListing, keys: tuple[_Key, ...]) -> Log:
        whole = plan_surveyed(
            listing,
            [self._surveys[key] for key in keys],
            isolation_level=self._options.isolation_level,
            chunk_bytes=_WHOLE_SEGMENTS,
        )
        end, high = log_end(whole), whole.plan["next_offset"]
        # A renamed segment may begin before the offset in its name.
        starts = [segment["base_offset"] for segment in listing["segments"][:1]]
        if whole.plan["first_offset"] is not None:
            starts.append(whole.plan["first_offset"])
        surveys: list[Survey] = [json.loads(text) for text in whole.surveys]
        unreadable = {one["segment"]["path"]: one["unreadable"] or "" for one in surveys if one["unreadable"]}
        return Log(whole, min(starts, default=0), end, end if high is None else high, unreadable)


def _description(problem: Problem) -> str:
    name = problem["segment"]
    return problem["message"] if name is None else f"{name} {problem['message']}"


def _key(segment: Segment) -> _Key:
    return segment["path"], segment["size"], segment["modified_ms"], segment["version"]
