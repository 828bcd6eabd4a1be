"""Offsets that were to be read and are gone: an error, or with `failOnDataLoss=false` a warning."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from magicbyte.jobs.failure import JobError
from magicbyte.model import Problem
from magicbyte.jobs.reading import record_batch_of, table_schema
from magicbyte.spark.offsets import Place

__all__ = ["Losses"]

_LOGGER = logging.getLogger("magicbyte.stream")
_FILE_KINDS = ("file_missing", "file_truncated", "file_unreadable")


class Losses:
    """What a step of a stream finds lost: raised, or logged and kept as rows of `problems`."""

    def __init__(self, *, fail: bool, said: set[str]) -> None:
        """`said` outlives the step: it keeps the log from saying the same at every trigger."""
        self._fail = fail
        self._said = said
        self._rows: list[Problem] = []

    def report(self, place: Place, first: int, last: int | None, why: str) -> None:
        """Offsets from `first` to `last` (inclusive; None: whatever came) cannot be read."""
        topic, partition = place
        offsets = f"from {first} on" if last is None else f"{first}..={last}"
        message = f"magicbyte: {topic}-{partition}: offsets {offsets} cannot be read: {why}"
        self._refuse(message)
        self._say(message)
        self._rows.append(
            Problem(
                topic=topic,
                partition=partition,
                segment=None,
                kind="data_loss",
                start=None,
                end=None,
                base_offset=None,
                record_index=None,
                field=None,
                first_lost_offset=first,
                last_lost_offset=last,
                message=message,
            )
        )

    def report_missing_segments(
        self, place: Place, problems: Iterable[Problem], begin: int, end: int
    ) -> None:
        """Reports segments that a plan misses between the others, as far as they are asked for."""
        for problem in problems:
            first, last = problem["first_lost_offset"], problem["last_lost_offset"]
            if problem["kind"] == "missing_segment" and first is not None and last is not None:
                first, last = max(first, begin), min(last, end - 1)
                if first <= last:
                    self.report(place, first, last, problem["message"])

    def check_unread(self, unread: Iterable[str]) -> None:
        """Refuses what is there and cannot be looked into: nobody knows which offsets it has."""
        for what in unread:
            message = f"magicbyte: {what}"
            self._refuse(message)
            self._say(message)

    def check_files(self, problems: Iterable[Mapping[str, Any]]) -> None:
        """Refuses rows of `problems` that mean that a planned file went away or cannot be read."""
        for problem in problems:
            if problem["kind"] in _FILE_KINDS:
                place = f"magicbyte: {problem['topic']}-{problem['partition']}, {problem['segment']}"
                self._refuse(f"{place}: offsets from {problem['firstLostOffset']} on: {problem['message']}")

    def rows(self) -> pa.RecordBatch:
        """The losses as rows of the table `problems`."""
        return record_batch_of(self._rows, table_schema("problems"))

    def _say(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            _LOGGER.warning("%s", message)

    def _refuse(self, message: str) -> None:
        if self._fail:
            raise JobError(f"{message} (failOnDataLoss=false goes on without them)")
