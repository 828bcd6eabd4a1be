"""Offsets that should have been read but are lost: an error, or with `failOnDataLoss=false` a warning."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pyarrow as pa

from magicbyte.errors import JobError
from magicbyte.jobs.find.lineage import Divergence
from magicbyte.jobs.find.problems import offsets_text, partition_problem
from magicbyte.jobs.run.reading import record_batch_of, table_schema
from magicbyte.model import Problem
from magicbyte.spark.offsets import TopicPartition

__all__ = ["Losses"]

_LOGGER = logging.getLogger("magicbyte.stream")
_FILE_KINDS = ("file_missing", "file_truncated", "file_unreadable")


class Losses:
    """The losses of a query, or of one step of a stream: raised as errors, or logged and kept as rows of
    `problems`.
    """

    def __init__(self, *, fail: bool, logged: set[str]) -> None:
        """`logged` outlives a step, so that a message is not logged again at every trigger."""
        self._fail = fail
        self._logged = logged
        self._rows: list[Problem] = []

    def report(self, partition: TopicPartition, first: int, last: int | None, why: str) -> None:
        """Reports that offsets from `first` to `last` (inclusive; None: to the end) cannot be read."""
        topic, number = partition
        offsets = f"offsets from {first} on" if last is None else offsets_text(first, last)
        message = f"magicbyte: {topic}-{number}: {offsets} cannot be read: {why}"
        self._refuse(message)
        self._warn(message)
        self._rows.append(
            partition_problem(
                topic, number, "data_loss", message, first_lost_offset=first, last_lost_offset=last
            )
        )

    def report_outside(
        self, partition: TopicPartition, wanted: tuple[int, int], log: tuple[int, int]
    ) -> None:
        """Reports the offsets of a range that a log does not have. Both ends are exclusive."""
        (start, end), (log_start, log_end) = wanted, log
        if start < min(log_start, end):
            self.report(partition, start, min(log_start, end) - 1, "the log begins later")
        if max(log_end, start) < end:
            self.report(partition, max(log_end, start), end - 1, "the log ends earlier")

    def report_divergence(self, partition: TopicPartition, first: int, last: int, found: Divergence) -> None:
        """Reports that records from `first` to `last` (inclusive) were read, and that the log, which diverges
        from what was read, may have others there.
        """
        topic, number = partition
        message = f"magicbyte: {topic}-{number}: {found}"
        self._refuse(message, f"continues at offset {found.offset} of the log")
        self._warn(message)
        self._rows.append(
            partition_problem(
                topic, number, "log_diverged", message, first_lost_offset=first, last_lost_offset=last
            )
        )

    def report_missing_segments(
        self, partition: TopicPartition, problems: Iterable[Problem], begin: int, end: int
    ) -> None:
        """Reports segments that are missing between others, as far as the range includes them."""
        for problem in problems:
            first, last = problem["first_lost_offset"], problem["last_lost_offset"]
            if problem["kind"] == "missing_segment" and first is not None and last is not None:
                first, last = max(first, begin), min(last, end - 1)
                if first <= last:
                    self.report(partition, first, last, problem["message"])

    def check_unread(self, unread: Iterable[str]) -> None:
        """Refuses files that cannot be read, since their offsets are unknown."""
        for description in unread:
            message = f"magicbyte: {description}"
            self._refuse(message)
            self._warn(message)

    def check_files(self, problems: Iterable[Problem]) -> None:
        """Refuses problems that mean that a planned file has disappeared or cannot be read."""
        for problem in problems:
            if problem["kind"] in _FILE_KINDS:
                file = f"magicbyte: {problem['topic']}-{problem['partition']}, {problem['segment']}"
                self._refuse(f"{file}: offsets from {problem['first_lost_offset']} on: {problem['message']}")

    def report_damage(self, problems: Iterable[Problem]) -> None:
        """Reports the offsets of batches that are damaged."""
        for problem in problems:
            first, last = problem["first_lost_offset"], problem["last_lost_offset"]
            if first is not None:
                self.report((problem["topic"], problem["partition"]), first, last, problem["message"])

    def rows_of(self, table: str) -> list[pa.RecordBatch]:
        """The losses so far as rows of a table, at most one batch: only `problems` has rows of them."""
        if table != "problems" or not self._rows:
            return []
        return [record_batch_of(self._rows, table_schema("problems"))]

    def _warn(self, message: str) -> None:
        if message not in self._logged:
            self._logged.add(message)
            _LOGGER.warning("%s", message)

    def _refuse(self, message: str, otherwise: str = "continues without them") -> None:
        if self._fail:
            raise JobError(f"{message} (failOnDataLoss=false {otherwise})")
