"""Logs as tables: streams of columns over the records of one or several partitions."""

from __future__ import annotations

import json
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from magicbyte._core import ArrowStream, chain_streams
from magicbyte.derived_stream import RecordStream
from magicbyte.enums import IsolationLevel
from magicbyte.extras import naming_extras
from magicbyte.open_partition import LOG_END, OpenPartition, opened_in_turn
from magicbyte.read_accounts import PartitionReads, ReadAccount
from magicbyte.table_options import EVERYTHING, Ranges, TableOptions
from magicbyte.typed_stream import TypedColumn

if TYPE_CHECKING:
    from magicbyte.expressions.record_filter import RecordFilter
    from magicbyte.model import Problem

__all__ = ["LogArrowStream", "Table"]


class _Columns:
    """The columns that are decoded for a stream, and the stream that a condition and schemas make of them."""

    def __init__(self, options: TableOptions, where: RecordFilter | None) -> None:
        columns = options.columns
        for name, column in (("key", options.key), ("value", options.value)):
            if column is not None and (column.column != name or name not in columns):
                raise ValueError(f"{name}: a decoder of {column.column}, for columns {columns}")
        self._columns = columns
        self._typed = options.typed
        # Headers may name the schemas.
        self._selected = list(dict.fromkeys((*columns, "headers"))) if self._typed else list(columns)
        self.decoded = self._selected
        self._filter = where
        if where is not None:
            self.decoded = list(dict.fromkeys((*self._selected, *where.columns)))

    def of(self, decoded: ArrowStream, name: str) -> RecordStream:
        """The stream with the chosen columns, of one with the decoded columns of a partition."""
        stream: RecordStream = decoded
        if self._filter is not None:
            from magicbyte.expressions.stream import SelectedRecords

            stream = SelectedRecords(decoded, self._selected, self._filter, name)
        if self._typed:
            from magicbyte.typed_stream import TypedRecords

            stream = TypedRecords(stream, self._columns, self._typed)
        return stream


class _Part(NamedTuple):
    """The stream of one partition."""

    partition: OpenPartition
    decoded: ArrowStream
    stream: RecordStream

    def account(self) -> ReadAccount:
        listing, counts, end = self.partition.listing, self.decoded.counts, self.decoded.end_offset
        read = counts.good_bytes + counts.quarantined_bytes + counts.tail_bytes
        # A broker may have added to the log since it was opened.
        size = max(read, sum(segment["size"] for segment in listing["segments"]))
        return ReadAccount(
            listing["topic"],
            listing["partition"],
            size,
            counts.batches,
            counts.good_bytes,
            counts.quarantined_bytes,
            counts.tail_bytes,
            size - read,
            counts.rows,
            None if end == LOG_END else end,
            json.loads(self.decoded.problems()),
            self.decoded.problems_left_out(),
        )


class LogArrowStream:
    """The data records of a log as columns, for any Arrow consumer; see `Table.to_arrow`.

    Each consumer gets a fresh stream; `problems`, `accounts` and `end_offset` describe the latest one, at any
    time. `magicbyte.scan` adds the reads of its frame to them, as sums for each partition.
    """

    def __init__(self, partitions: Sequence[OpenPartition], options: TableOptions) -> None:
        self._partitions = partitions
        self._options = options
        self._reads = self._no_reads()
        self._where = _filter_of(options)
        self._columns = _Columns(options, self._where)
        # Checks the options, and has the schema.
        self._first = self._part(partitions[0], self._columns, options)

    def _no_reads(self) -> list[PartitionReads]:
        return [PartitionReads() for _ in self._partitions]

    @staticmethod
    def _part(partition: OpenPartition, columns: _Columns, options: TableOptions) -> _Part:
        decoded = partition.decoded(columns.decoded, options)
        return _Part(partition, decoded, columns.of(decoded, partition.name))

    def __arrow_c_schema__(self) -> object:
        return self._first.stream.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A stream from the beginning, cheap until its first batch is requested.

        A requested schema is honoured if all its columns and types are ours; otherwise the consumer has
        to convert, as the interface says.
        """
        options = self._options
        partitions = self._in_turn(self._partitions, [options] * len(self._partitions))
        parts = [self._part(partition, self._columns, options) for partition in partitions]
        self._reads = self._no_reads()
        for reads, part in zip(self._reads, parts, strict=True):
            reads.begin(part)
        if options.where is None and not options.typed:
            return chain_streams([part.decoded for part in parts], requested_schema)
        import pyarrow as pa

        schema = pa.schema(self._first.stream)
        batches = (pa.record_batch(batch) for part in parts for batch in part.stream)
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)

    def read(self, columns: Sequence[str], ranges: Callable[[str, int], Ranges | None]) -> Iterator[Any]:
        """Yields Arrow batches of records, partition after partition, and adds the read to the accounts.

        Args:
            columns: the wanted columns, which all batches have.
            ranges: the ranges of a topic's partition that are wanted; None for no rows. Other rows of the
                partition may be yielded, too.

        """
        decoded = _Columns(self._options.narrowed(columns, EVERYTHING), self._where)
        chosen = [
            (partition, reads, self._options.narrowed(columns, wanted))
            for partition, reads in zip(self._partitions, self._reads, strict=True)
            if (wanted := ranges(partition.listing["topic"], partition.listing["partition"])) is not None
        ]
        narrowed = [options for _, _, options in chosen]
        in_turn = self._in_turn([partition for partition, _, _ in chosen], narrowed)
        for partition, (_, reads, options) in zip(in_turn, chosen, strict=True):
            part = self._part(partition, decoded, options)
            with reads.under_way(part):
                yield from part.stream

    def _in_turn(
        self, partitions: Sequence[OpenPartition], options: Sequence[TableOptions]
    ) -> Sequence[OpenPartition]:
        if self._options.last is not None:
            # The last records of a partition are looked for in reads of their own.
            return partitions
        ranges = [one.ranges for one in options]
        return opened_in_turn(partitions, ranges, self._options.isolation_level)

    def __repr__(self) -> str:
        names = ", ".join(partition.name for partition in self._partitions[:3])
        left_out = len(self._partitions) - 3
        return f"<LogArrowStream of {names}{f' and {left_out:,} more' if left_out > 0 else ''}>"

    def _repr_html_(self) -> str:
        """A table of the columns, and once records have been read one of the accounts, for notebooks."""
        from magicbyte.html import table

        columns = table(repr(self), ("column", "Arrow type"), self._first.stream.fields)
        names = ("topic", "partition", "size", "good_bytes", "quarantined_bytes", "tail_bytes", "rows")
        rows = [[getattr(account, name) for name in names] for account in self.accounts]
        return columns + table("Read so far", names, rows) if rows else columns

    def __reduce__(self) -> tuple[type[LogArrowStream], tuple[Sequence[OpenPartition], TableOptions]]:
        return LogArrowStream, (self._partitions, self._options)

    @property
    def partitions(self) -> Sequence[OpenPartition]:
        """The partitions, in the order in which they are read."""
        return self._partitions

    @property
    def problems(self) -> list[Problem]:
        """The problems so far in PERMISSIVE mode, torn tails included: the first 1000 of each partition."""
        return [problem for account in self.accounts for problem in account.problems]

    @property
    def problems_left_out(self) -> int:
        """The number of further problems."""
        return sum(account.problems_left_out for account in self.accounts)

    @property
    def accounts(self) -> list[ReadAccount]:
        """The account of each partition that a read has reached, in the order in which they are read."""
        return [account for reads in self._reads if (account := reads.account) is not None]

    @property
    def end_offset(self) -> int | None:
        """The end of a partition's last read (exclusive), as in `LogBatches`; of several, see `accounts`."""
        account = self._reads[0].account if len(self._partitions) == 1 else None
        return None if account is None else account.end_offset


def _filter_of(options: TableOptions) -> RecordFilter | None:
    if options.where is None:
        return None
    if options.views:
        raise ValueError("where: rows of views are not selected; leave out views")
    if not isinstance(options.where, str):
        raise TypeError(f"where: expected an SQL expression, not {type(options.where).__name__}")
    from magicbyte.expressions.record_filter import RecordFilter

    return RecordFilter(options.where)


def _count(last: int | None) -> int | None:
    """The number of last records; a log has fewer than `LOG_END`."""
    if last is None:
        return None
    if isinstance(last, bool) or not hasattr(last, "__index__"):
        raise TypeError(f"last {last!r}: expected a number of records, as an int")
    count = operator.index(last)
    if count < 0:
        raise ValueError(f"last {count}: expected 0 or more records")
    return min(count, LOG_END)


class Table(ABC):
    """Records with columns, for any Arrow consumer."""

    @abstractmethod
    def _open_partitions(self) -> Sequence[OpenPartition]:
        """The partitions, in the order in which they are read."""

    @property
    @abstractmethod
    def _default_columns(self) -> Sequence[str]:
        """The columns of a stream for which none are named."""

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        *,
        views: bool = False,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: int | datetime | None = None,
        end_timestamp: int | datetime | None = None,
        last: int | None = None,
        where: str | None = None,
        key: TypedColumn | None = None,
        value: TypedColumn | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        threads: int = 1,
    ) -> LogArrowStream:
        """The data records as columns, for any Arrow consumer.

        `pa.table(log.to_arrow(["offset", "value"]))`, `pl.DataFrame(...)`, DuckDB's `select ... from
        stream`. Each consumer gets a fresh stream, which reads partition after partition. Memory is that
        of one Arrow batch of about 1 MiB, or of the largest batch of the log. At damage the stream ends with
        an error or, with PERMISSIVE, reports it in `problems`; `accounts` has the bytes of each partition.

        Args:
            columns: by default offset, timestamp (ms), timestampType, key, value and headers, and in a `Log`
                topic and partition before them; also timestampMillis, magic, compression, producerId,
                producerEpoch, sequence, isTransactional, leaderEpoch, segment and position. If all columns
                come from batch headers, or there are none (to count rows), batches are not decompressed, and
                damage inside their records goes unnoticed.
            views: make values `binary_view`. Values of up to 12 bytes are stored in the view itself. In
                batches whose records average 1 KiB or more, views point into the buffer that was read or
                decompressed instead of a copy; the buffer stays in memory as long as one of its values.
            start_offset: the first offset (inclusive).
            end_offset: the end (exclusive).
            start_timestamp: leave out every record with an earlier timestamp (ms), wherever it is; `records`
                starts at the first record that late and keeps all that follow.
            end_timestamp: leave out every record with this timestamp (ms) or a later one.
            last: only the last records of this number in the range of offsets, of each partition. Timestamps
                and `where` select from them. They are looked for when the first batch is requested, from
                the end on. In PERMISSIVE mode, batches that do not decode have no records.
            where: leave out every record for which this condition, in DuckDB's SQL over offset, timestamp,
                timestampMillis, key, value, keyBytes, valueBytes, headers, topic and partition, is not true;
                the guide describes it. Where it fails for a record, the stream ends with an error that names
                the record. Needs `pip install 'magicbyte[sql]'`, and does not go with views.
            key: a `magicbyte.schema.ColumnDecoder`, which decodes the keys by the schemas that they name.
                docs/schemas.md has the columns; a key that cannot be decoded is null, whatever the mode.
            value: the same for the values.
            isolation_level: as in `records`.
            threads: the number of decoding threads, the caller's included. The order is kept, and Arrow
                batches are smaller. With more than one, each thread adds up to seven Arrow batches and half
                a MiB.

        Raises:
            ValueError: for an unknown column, fewer than 1 or more than 256 threads, a negative `last`, or an
                expression that is not valid.
            TypeError: for a `last` that is no integer.
            ModuleNotFoundError: with an expression, if duckdb or pyarrow is missing; with typed columns, if
                pyarrow is.

        """
        if isinstance(columns, str):
            raise TypeError(f"columns {columns!r}: expected a sequence of names, not a str")
        names = list(self._default_columns if columns is None else columns)
        ranges = Ranges(start_offset, end_offset, start_timestamp, end_timestamp)
        options = TableOptions(
            names, ranges, _count(last), where, key, value, views, isolation_level, threads
        )
        with naming_extras("to_arrow", "arrow" if where is None else "sql"):
            return LogArrowStream(self._open_partitions(), options)

    def __arrow_c_schema__(self) -> object:
        return self.to_arrow().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All records as from `to_arrow()`: `pa.table(log)`, `pl.DataFrame(log)`, DuckDB's `from log`.

        A requested schema is honoured if all its columns and types are ours.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)
