"""The rows and columns of a table, and their narrowing by what a query needs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from magicbyte.enums import IsolationLevel
from magicbyte.typed_stream import TypedColumn

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EVERYTHING", "Ranges", "TableOptions"]


class Ranges(NamedTuple):
    """Ranges of offsets and timestamps; None leaves a side open."""

    start_offset: int | None = None
    """The first offset (inclusive)."""
    end_offset: int | None = None
    """The end of the offsets (exclusive)."""
    start_timestamp: int | datetime | None = None
    """The earliest timestamp (ms, inclusive)."""
    end_timestamp: int | datetime | None = None
    """The end of the timestamps (ms, exclusive)."""


EVERYTHING = Ranges()


class TableOptions(NamedTuple):
    """The rows and columns of a table: the arguments of `Table.to_arrow`, where they are described."""

    columns: Sequence[str]
    ranges: Ranges
    last: int | None
    where: str | None
    key: TypedColumn | None
    value: TypedColumn | None
    views: bool
    isolation_level: IsolationLevel
    threads: int

    @property
    def typed(self) -> list[TypedColumn]:
        """The converters to typed columns."""
        return [column for column in (self.key, self.value) if column is not None]

    def narrowed(self, wanted: Collection[str], ranges: Ranges) -> TableOptions:
        """The options of a read for the columns `wanted`, and for no rows outside of `ranges`.

        The read may still return more of both: rows, since ranges of timestamps are not intersected, and
        the columns that others are made of.
        """
        # Rows are counted from the end of the range, so another range would have other last rows.
        kept = self.ranges if self.last is not None else _intersection(self.ranges, ranges)
        key, value = _wanted(self.key, wanted), _wanted(self.value, wanted)
        made_of = {column.column for column in (key, value) if column is not None}
        columns = [name for name in self.columns if name in wanted or name in made_of]
        return self._replace(columns=columns, ranges=kept, key=key, value=value)


def _intersection(options: Ranges, query: Ranges) -> Ranges:
    starts = [start for start in (options.start_offset, query.start_offset) if start is not None]
    ends = [end for end in (options.end_offset, query.end_offset) if end is not None]
    earliest, latest = options.start_timestamp, options.end_timestamp
    return Ranges(
        max(starts, default=None),
        min(ends, default=None),
        query.start_timestamp if earliest is None else earliest,
        query.end_timestamp if latest is None else latest,
    )


def _wanted(typed: TypedColumn | None, wanted: Collection[str]) -> TypedColumn | None:
    """The converter, if any of its columns is wanted."""
    if typed is None:
        return None
    import pyarrow as pa

    alone: pa.Schema = pa.schema([(typed.column, pa.binary())])
    return typed if any(name in wanted for name in typed.replaced(alone).names) else None
