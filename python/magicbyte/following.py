"""`magicbyte.ingest_stream`: the table of a log that grows."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from os import PathLike

from magicbyte.enums import PartitionBy, TableFormat
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.ingest import IngestOptions, IngestReport
from magicbyte.jobs.run.engines import Engine, LocalEngine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.lake.stream import DEFAULT_INTERVAL_SECONDS
from magicbyte.lake.stream import ingest_stream as follow_table
from magicbyte.lake.table import TableTarget
from magicbyte.logs import Sources, paths_of

__all__ = ["ingest_stream"]


def ingest_stream(
    sources: Sources,
    out: str | PathLike[str],
    *,
    format: TableFormat = "delta",
    interval: float = DEFAULT_INTERVAL_SECONDS,
    options: IngestOptions | None = None,
    partition_by: PartitionBy = "topic",
    catalog: str | None = None,
    catalog_properties: Mapping[str, str] | None = None,
    choice: PartitionChoice = EVERYTHING,
    engine: Engine | None = None,
    above_high_watermark: bool = False,
    stop: threading.Event | None = None,
    progress: Progress = NO_PROGRESS,
) -> Iterator[IngestReport]:
    """Adds what is new in growing logs to the table `out`, again and again: `ingest --follow`.

    Yields the report of each commit. It may be left, or killed, at any moment: the next one goes on where the
    table's commits end.

    Args:
        sources: what to read.
        out: the table.
        format: `delta` or `iceberg`.
        interval: seconds from one look at the logs to the next.
        options: which records the table has, and how.
        partition_by: as for `ingest`, as the arguments after it.
        catalog: of an Iceberg table.
        catalog_properties: of the catalog.
        choice: see the module.
        engine: where the tasks run.
        above_high_watermark: do not wait until records are below the high watermark that a broker has in
            `replication-offset-checkpoint`: a failover may replace them.
        stop: once this is set, the stream ends.
        progress: where to report progress.

    Raises:
        JobError: also if records are deleted before they were read.

    """
    if format == "parquet":
        raise RefusedError(
            "a directory of Parquet files has no commits to add to: the format is delta or iceberg"
        )
    target = TableTarget(format, os.fspath(out), catalog, catalog_properties or {}, partition_by)
    return follow_table(
        paths_of(sources),
        target,
        engine or LocalEngine(),
        options or IngestOptions(),
        progress,
        choice=choice,
        interval=interval,
        stop=stop,
        above_high_watermark=above_high_watermark,
    )
