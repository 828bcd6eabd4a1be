"""Surveys of the segments of a store, by threads that run ahead of the decoding, but not far."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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
        self._taken = 0
        """The segment whose survey is taken."""
        self._is_awaited = False
        self._bytes = 0
        """The bytes that have been surveyed and not taken."""
        self._failure: BaseException | None = None
        """The reason why no more surveys follow."""
        self._changed = threading.Condition()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="magicbyte-survey")

    def __enter__(self) -> SurveysAhead:
        for number in range(len(self._segments)):
            self._pool.submit(self._work, number)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._pool.shutdown(cancel_futures=True)

    def stop(self) -> None:
        """Raises `Stopped` in waits for a survey; the threads finish what they are reading, and end."""
        with self._changed:
            self._failure = self._failure or Stopped()
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
            self._changed.wait_for(lambda: found or self._failure)
            self._is_awaited = False
            if self._failure:
                raise self._failure
            surveyed = found.popleft()
            self._bytes -= surveyed.size
            return surveyed

    def _work(self, number: int) -> None:
        try:
            self._survey(number)
        except BaseException as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _survey(self, number: int) -> None:
        if not self._wait(number):
            return
        at = 0
        for end, is_whole, text in _core.SurveyInParts(json.dumps(self._segments[number]), PART_BYTES):
            with self._changed:
                self._found[number].append(Surveyed(text, end - at, is_whole))
                self._bytes += end - at
                self._changed.notify_all()
            if is_whole or not self._wait(number):
                return
            at = end

    def _wait(self, number: int) -> bool:
        """Waits until more of a segment may be surveyed. Returns False if nothing follows."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure or self._may_go_on(number))
            return self._failure is None

    def _may_go_on(self, number: int) -> bool:
        """True if more of a segment may be surveyed."""
        is_first = number == self._taken
        if self._is_awaited:
            return is_first or self._bytes <= _MOST_AHEAD_BYTES
        return (sum(one.size for one in self._found[number]) if is_first else self._bytes) < _AHEAD_BYTES
