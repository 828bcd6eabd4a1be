"""Filter pushdown, which skips topics, partitions and offsets before anything is decoded.

Opt in with the option `filterPushdown` and Spark's `spark.sql.python.filterPushdown.enabled`. Spark applies
every filter again, so it is safe to skip too little; nothing that could match is skipped.

Call `load()` again for every query: Spark 4.3.0 caches the filtered scan of a DataFrame, and reuses it for a
later query of the same DataFrame without filters, which would then miss rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import datasource as spark

from magicbyte import _core
from magicbyte.jobs.run.plan import Planned, Range
from magicbyte.model import PartitionListing
from magicbyte.spark.options import Options
from magicbyte.spark.reader import MagicbyteReader
from magicbyte.spark.typed import Decoders

__all__ = ["PushdownReader"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PushdownReader(MagicbyteReader):
    """A reader that only plans what the pushed filters may match."""

    def __init__(self, options: Options, columns: tuple[str, ...], decoders: Decoders = ()) -> None:
        super().__init__(options, columns, decoders)
        self._filters: list[spark.Filter] = []

    def pushFilters(self, filters: list[spark.Filter]) -> Iterable[spark.Filter]:
        """Remembers the filters for `partitions`, and leaves all of them to Spark as well."""
        self._filters = list(filters)
        return self._filters

    def _choose(self, listings: list[PartitionListing]) -> list[PartitionListing]:
        chosen = super()._choose(listings)
        for column in ("topic", "partition"):
            for wanted in self._equalities(column):
                chosen = [one for one in chosen if one[column] in wanted]
        return chosen

    def _equalities(self, column: str) -> Iterable[list[Any]]:
        for select in self._filters:
            if isinstance(select, spark.EqualTo | spark.EqualNullSafe) and select.attribute == (column,):
                yield [select.value]
            elif isinstance(select, spark.In) and select.attribute == (column,):
                yield list(select.value)

    def _bounds(self, planned: Planned) -> Range:
        start, end = super()._bounds(planned)
        if self._options.table != "records":
            return start, end
        starts = [] if start is None else [start]
        ends = [] if end is None else [end]
        for wanted in self._equalities("offset"):
            offsets = [offset for offset in wanted if offset is not None]
            starts.append(min(offsets, default=0))
            ends.append(max(offsets, default=-1) + 1)
        for select in self._filters:
            if isinstance(select, spark.GreaterThan | spark.GreaterThanOrEqual):
                if select.attribute == ("offset",):
                    starts.append(select.value)
                elif select.attribute == ("timestamp",):
                    starts.append(_first_offset(planned, select.value))
            elif isinstance(select, spark.LessThan | spark.LessThanOrEqual) and select.attribute == (
                "offset",
            ):
                ends.append(select.value + 1)
        return max(starts, default=None), min(ends, default=None)


def _first_offset(planned: Planned, time: datetime) -> int:
    """The first offset whose record may not be older than `time`: all earlier ones fail the filter."""
    millis = (time - _EPOCH) // timedelta(milliseconds=1)
    offset = _core.start_for_timestamp(planned.text, millis)
    return (planned.plan["next_offset"] or 0) if offset is None else offset
