"""The records that a command prints: ranges of offsets and times, and a limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import click

from magicbyte.cli import options as shared
from magicbyte.jobs.run.ranges import Ranges

__all__ = ["Selection", "options", "ranges"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Selection(Ranges):
    """The records that are printed."""

    max_records: int | None = None

    def includes(self, offset: int, timestamp: int) -> bool:
        """True if a record is in range."""
        return (
            (self.start_offset is None or offset >= self.start_offset)
            and (self.end_offset is None or offset < self.end_offset)
            and (self.start_timestamp is None or timestamp >= self.start_timestamp)
            and (self.end_timestamp is None or timestamp < self.end_timestamp)
        )

    def may_include(self, base_offset: int, last_offset: int, max_timestamp: int) -> bool:
        """True if a batch with this header can hold a record in range."""
        return (
            (self.start_offset is None or last_offset >= self.start_offset)
            and (self.end_offset is None or base_offset < self.end_offset)
            and (self.start_timestamp is None or max_timestamp >= self.start_timestamp)
        )

    @property
    def has_times(self) -> bool:
        """True if there is a range of times."""
        return self.start_timestamp is not None or self.end_timestamp is not None

    @property
    def has_ranges(self) -> bool:
        """True if any range is given."""
        return self.start_offset is not None or self.end_offset is not None or self.has_times


def options(command: F) -> F:
    """The options of a `Selection`; the command gets it as `selection`."""

    @wraps(command)
    def with_selection(ranges: Ranges, max_records: int | None, **others: Any) -> Any:
        selection = Selection(
            ranges.start_offset,
            ranges.end_offset,
            ranges.start_timestamp,
            ranges.end_timestamp,
            max_records,
        )
        return command(selection=selection, **others)

    with_limit = click.option(
        "--max-records", type=shared.COUNT, metavar="N", help="Stop after N records, or N batches."
    )(with_selection)
    return cast(F, ranges(with_limit))


def ranges(command: F) -> F:
    """The options of `Ranges`; the command gets them as `ranges`."""

    @wraps(command)
    def with_ranges(
        start_offset: int | None,
        end_offset: int | None,
        start_timestamp: int | None,
        end_timestamp: int | None,
        **others: Any,
    ) -> Any:
        given = Ranges(start_offset, end_offset, start_timestamp, end_timestamp)
        return command(ranges=given, **others)

    decorated: Callable[..., Any] = with_ranges
    for option in (
        click.option("--end-timestamp", type=shared.TIME, help="The end of the time range, exclusive."),
        click.option(
            "--start-timestamp",
            type=shared.TIME,
            help="The start of the time range: ISO 8601, or milliseconds or seconds since 1970.",
        ),
        click.option(
            "--end-offset",
            type=shared.OFFSET,
            metavar="OFFSET",
            help="The end of the offset range, exclusive.",
        ),
        click.option("--start-offset", type=shared.OFFSET, metavar="OFFSET", help="The first offset."),
    ):
        decorated = option(decorated)
    return cast(F, decorated)
