"""Surveys of growing logs: a segment is surveyed again only once it has changed, and then only its end."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence, Set

from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import survey
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.model import PartitionListing, Segment, Survey

__all__ = ["KeptSurveys", "SegmentState", "segment_state"]

_SETTLED_MILLIS = 1000
"""Timestamps of files are coarser than writes."""

SegmentState = tuple[str, int, int, str]
"""The attributes that show a change of a segment: path, size, time of the last change, version in a store."""


def segment_state(segment: Segment) -> SegmentState:
    """The state of a segment when it was listed."""
    return segment["path"], segment["size"], segment["modified_ms"], segment["version"]


class KeptSurveys:
    """Keeps the surveys of segments from one look at the log for the next one. Can be pickled."""

    def __init__(self) -> None:
        self._texts: dict[SegmentState, str] = {}
        self._last: dict[str, str] = {}
        """The last surveys by path, also those of segments that may have changed by now."""

    @property
    def states(self) -> Set[SegmentState]:
        """The states of segments whose surveys are kept."""
        return self._texts.keys()

    def survey(
        self, listings: Sequence[PartitionListing], engine: Engine, progress: Progress = NO_PROGRESS
    ) -> list[list[str]]:
        """Does what `plan.survey` does, and forgets the segments that are no longer listed."""
        now = time.time_ns() // 1_000_000
        texts = dict(self._texts)
        changed: list[PartitionListing] = []
        for one in listings:
            if segments := [each for each in one["segments"] if segment_state(each) not in texts]:
                changed.append({**one, "segments": segments})
        unsettled = set()
        if changed:
            for one, found in zip(changed, survey(changed, engine, progress, self._last), strict=True):
                for state, text in zip(map(segment_state, one["segments"]), found, strict=True):
                    texts[state] = text
                    if not _is_settled(state, text, now):
                        unsettled.add(state)
        surveys = [[texts[segment_state(segment)] for segment in listing["segments"]] for listing in listings]
        listed = {segment_state(segment) for listing in listings for segment in listing["segments"]}
        self._texts = {state: texts[state] for state in listed - unsettled}
        self._last = {state[0]: texts[state] for state in listed}
        return surveys


def _is_settled(state: SegmentState, text: str, now: int) -> bool:
    """True if the same state will mean the same content. Otherwise, a tail may still become a batch."""
    found: Survey = json.loads(text)
    if found["unreadable"]:
        return False
    _, size, modified_ms, _ = state
    return modified_ms + _SETTLED_MILLIS < now or found["sound_end"] == size
