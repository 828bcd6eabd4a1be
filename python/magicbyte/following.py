"""`magicbyte.ingest_stream`: the table of a log that grows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magicbyte.calls import Run, writes
from magicbyte.enums import TableFormat
from magicbyte.errors import RefusedError
from magicbyte.extras import naming_extras
from magicbyte.options.declare import argument
from magicbyte.options.ingest import FollowOptions, IngestOptions, TargetOptions

if TYPE_CHECKING:
    from magicbyte.jobs.ingest import IngestReport

__all__ = ["ingest_stream"]


@dataclass(frozen=True, kw_only=True)
class _Stream(Run, FollowOptions, IngestOptions, TargetOptions):
    """The keywords of `ingest_stream`."""

    format: TableFormat = argument("The format of the table: delta or iceberg.", default="delta")
    stop: threading.Event | None = argument("The stream ends once this is set.", default=None)


@writes(_Stream, IngestOptions, out="The table: a directory or URL, or a name in the catalog.")
def ingest_stream(
    sources: list[str], out: str, given: _Stream, options: IngestOptions
) -> Iterator[IngestReport]:
    """Adds what is new in growing logs to the table `out`, again and again: `ingest --follow`.

    Yields the report of each commit. It may be left, or killed, at any moment: the next one goes on where the
    table's commits end.

    Raises:
        JobError: also if records are deleted before they were read.

    """
    if given.format == "parquet":
        raise RefusedError(
            "a directory of Parquet files has no commits to add to: the format is delta or iceberg"
        )
    with naming_extras("ingest_stream", given.format):
        from magicbyte.lake.stream import ingest_stream
        from magicbyte.lake.table import TableTarget

    return ingest_stream(
        sources,
        TableTarget(given.format, out, given.catalog, given.catalog_properties, given.partition_by),
        given.runner,
        options,
        given.progress,
        choice=given.choice,
        following=given,
        stop=given.stop,
    )
