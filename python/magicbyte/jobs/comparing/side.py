"""A side of a comparison, whatever it is: files, a running cluster, or a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from magicbyte.enums import IsolationLevel
from magicbyte.jobs.comparing.differences import Bounds, Records
from magicbyte.jobs.comparing.digest_cache import DigestCache, Digests
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.model import Place, Problem

__all__ = ["Side", "TableOfRecords"]


class Side(Records, Protocol):
    """The partitions of a side, and digests of their records."""

    places: set[Place]
    """The partitions of this side. A table does not name those without rows."""
    size: int
    """The bytes that were compared: of segments, of batches that were fetched, of rows in memory."""
    problems: list[Problem]
    problems_left_out: int

    @property
    def read_bytes(self) -> int:
        """Bytes whose records were read; the digests of the others were in the cache."""

    def digests(
        self, places: Sequence[Place], cache: DigestCache, progress: Progress = NO_PROGRESS
    ) -> list[Digests]:
        """The digests of partitions."""

    def bounds(self, place: Place) -> Bounds:
        """The offsets that a partition should have, after its digests were made."""


class TableOfRecords(Side, Protocol):
    """A table of `ingest` as a side."""

    isolation_level: IsolationLevel
    """The isolation level of its records."""

    def check_comparable(self) -> None:
        """Raises RefusedError if the table holds a selection of records, which no log can be compared
        with.
        """
