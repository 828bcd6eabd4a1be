"""Logs as Polars LazyFrames, which read only what a query needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from magicbyte._core import CONSUMED_COLUMNS
from magicbyte.calls import Sources
from magicbyte.enums import fails_fast
from magicbyte.extras import naming_extras
from magicbyte.live import CommandConfig
from magicbyte.logs import Log
from magicbyte.table import LogArrowStream, Table
from magicbyte.table_options import EVERYTHING, Ranges

if TYPE_CHECKING:
    import polars as pl

__all__ = ["scan"]


def scan(source: Sources | Table | LogArrowStream, *, command_config: CommandConfig = None) -> pl.LazyFrame:
    """A Polars LazyFrame over the records of a log, or of all logs at and below a directory.

    A query reads only the columns that it needs. Comparisons of `offset`, `timestamp`, `topic` and
    `partition` with constants choose partitions and ranges, and `head` ends the read. Polars evaluates every
    filter as well. It passes neither `tail` nor `slice` on: `scan(log.to_arrow(last=10))` has the last
    records of each partition. Partitions are read in turn, with the memory of one Arrow batch.

    Needs `pip install 'magicbyte[polars]'`.

    >>> import magicbyte
    >>> frame = magicbyte.scan("samples")
    >>> frame.filter(topic="clicks").head(2).select("topic", "offset").collect().rows()
    [('clicks', 0), ('clicks', 1)]

    Args:
        source: paths or URLs as for `Log`; a `Log` or `PartitionLog`; or a stream of `to_arrow`, whose
            options and columns the frame has. Otherwise these are topic, partition, offset, timestamp (ms),
            timestampType, key, value and headers.
        command_config: for running clusters, as in `PartitionLog`.

    Raises:
        ValueError: for a stream without columns; for a log in PERMISSIVE mode, since nobody would see what it
            leaves out: give its stream `log.to_arrow()`, whose `problems` and `accounts` tell what all reads
            of the frame have found.
        ModuleNotFoundError: if polars is missing.
        magicbyte.Error: from `collect`, at damage in the ranges that are read.
        RefusedError: if there is no partition, or a source is missing.

    """
    with naming_extras("scan", "polars"):
        import polars as pl
        from polars.io.plugins import register_io_source
    stream = _stream_of(source, command_config)
    schema = pl.Schema(stream)
    if not schema:
        # Polars counts no rows where a source has no columns.
        raise ValueError("scan of a stream without columns: expected one column or more, such as offset")
    return register_io_source(_Source(stream, schema.names()), schema=schema)


def _stream_of(source: Sources | Table | LogArrowStream, command_config: CommandConfig) -> LogArrowStream:
    if command_config is not None and isinstance(source, LogArrowStream | Table):
        raise ValueError("command_config is for the URL of a running cluster; this source is open already")
    if isinstance(source, LogArrowStream):
        return source
    table = source if isinstance(source, Table) else Log(source, command_config=command_config)
    stream = table.to_arrow(["topic", "partition", *CONSUMED_COLUMNS])
    if not all(fails_fast(partition.mode) for partition in stream.partitions):
        raise ValueError(
            "scan of a log in PERMISSIVE mode: expected its stream log.to_arrow(), which keeps the problems"
        )
    return stream


class _Source:
    """The function that Polars calls for each read of the frame."""

    def __init__(self, stream: LogArrowStream, columns: list[str]) -> None:
        self._stream = stream
        self._columns = columns

    def __call__(
        self, columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        """Yields the selected rows.

        Args:
            columns: the columns of the frames; None for all.
            predicate: the condition on rows, over these columns.
            n_rows: the most rows to yield.
            batch_size: the best number of rows of a frame; the core's batches have the size of a cache.

        """
        import polars as pl

        from magicbyte.predicates import Predicate

        wanted = self._columns if columns is None else columns
        ranges = _everywhere if predicate is None else Predicate(predicate).ranges
        for batch in self._stream.read(wanted, ranges) if n_rows != 0 else ():
            frame = pl.DataFrame(batch).select(wanted)
            if predicate is not None:
                frame = frame.filter(predicate)
            if n_rows is not None:
                frame = frame.head(n_rows)
                n_rows -= frame.height
            yield frame
            if n_rows == 0:
                return


def _everywhere(topic: str, partition: int) -> Ranges:
    return EVERYTHING
