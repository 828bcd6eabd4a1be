"""Surveys of the segments of a store, by threads that run ahead of the decoding, but not far."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

from magicbyte import _core
from magicbyte.jobs.run.plan import MIB
from magicbyte.model import Segment

__all__ = ["PART_BYTES", "Stopped", "Surveyed", "SurveysAhead"]

PART_BYTES = 16 * MIB
"""The bytes of a segment to survey before more of it can be planned."""
_AHEAD_BYTES = 32 * MIB
"""The distance of the survey ahead of the decoding: so short that fetched data can reuse space."""
_MOST_AHEAD_BYTES = 2048 * MIB
"""The distance while the decoding waits for the survey, so that no thread is idle: no longer than the ranges
of a store that are kept (`crates/magicbyte-log/src/storage/range_cache.rs`)."""


class Stopped(Exception):
    """No more surveys follow, because the job has failed."""


@dataclass(frozen=True)
class Surveyed:
    """A survey of a segment or of its first part."""

    text: str
    """A Survey, as JSON text."""
    size: int
    """The number of bytes beyond those of the previous survey."""
    is_whole: bool
    """True if this is the survey of the whole segment."""


class SurveysAhead:
    """The surveys of segments, in order, each in parts. The threads run inside of `with`."""

    def __init__(self, segments: Sequence[Segment], threads: int) -> None:
        self._segments = segments
        self._found: list[deque[Surveyed]] = [deque() for _ in segments]
        self._begun = 0
        """The number of segments that have been begun."""
        self._taken = 0
        """The segment whose survey is taken."""
        self._is_awaited = False
        self._bytes = 0
        """The bytes that have been surveyed and not taken."""
        self._is_stopped = False
        self._failure: BaseException | None = None
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._work, name=f"magicbyte-survey-{number}")
            for number in range(min(threads, len(segments)))
        ]

    def __enter__(self) -> SurveysAhead:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        for thread in self._threads:
            thread.join()

    def stop(self) -> None:
        """Raises `Stopped` in waits for a survey; the threads finish what they are reading, and end."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[Surveyed]:
        for number in range(len(self._segments)):
            is_whole = False
            while not is_whole:
                surveyed = self._take(number)
                is_whole = surveyed.is_whole
                yield surveyed

    def _take(self, number: int) -> Surveyed:
        found = self._found[number]
        with self._changed:
            self._taken, self._is_awaited = number, not found
            self._changed.notify_all()
            self._changed.wait_for(lambda: found or self._ends)
            self._is_awaited = False
            if self._failure:
                raise self._failure
            if self._is_stopped:
                raise Stopped
            surveyed = found.popleft()
            self._bytes -= surveyed.size
            return surveyed

    @property
    def _ends(self) -> bool:
        return self._is_stopped or self._failure is not None

    def _work(self) -> None:
        try:
            while (number := self._begin()) is not None:
                self._survey(number)
        except BaseException as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _begin(self) -> int | None:
        """Waits until the next segment may be surveyed. Returns None if there is none."""

        def has_none() -> bool:
            return self._ends or self._begun == len(self._segments)

        with self._changed:
            self._changed.wait_for(lambda: has_none() or self._may_go_on(self._begun))
            if has_none():
                return None
            self._begun += 1
            return self._begun - 1

    def _survey(self, number: int) -> None:
        at = 0
        for end, is_whole, text in _core.SurveyInParts(json.dumps(self._segments[number]), PART_BYTES):
            with self._changed:
                self._found[number].append(Surveyed(text, end - at, is_whole))
                self._bytes += end - at
                self._changed.notify_all()
                if not is_whole:
                    self._changed.wait_for(lambda: self._ends or self._may_go_on(number))
                if self._ends:
                    return
            at = end

    def _may_go_on(self, number: int) -> bool:
        """True if more of a segment may be surveyed."""
        is_first = number == self._taken
        if self._is_awaited:
            return is_first or self._bytes <= _MOST_AHEAD_BYTES
        return (sum(one.size for one in self._found[number]) if is_first else self._bytes) < _AHEAD_BYTES
