"""A partition's directory, read as one log."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self

from magicbyte import _core
from magicbyte._core import (
    CONSUMED_COLUMNS,
    DEFAULT_MAX_DECOMPRESSED_BYTES,
    LogBatches,
    LogRecords,
    PartitionReader,
)
from magicbyte.enums import DamageMode, IsolationLevel, fails_fast
from magicbyte.errors import RefusedError
from magicbyte.listing import log_start_of
from magicbyte.live import CommandConfig, open_live_partition
from magicbyte.open_partition import OpenPartition
from magicbyte.reconciliation import Reconciliation
from magicbyte.storage.foreign_files import no_segment
from magicbyte.storage.location import cluster_of, locate, refuse_cluster
from magicbyte.storage.mounts import mount
from magicbyte.storage.paths import AnyPath, absolute
from magicbyte.table import Table
from magicbyte.table_options import Ranges

if TYPE_CHECKING:
    from datetime import datetime

    from magicbyte.damage import Rescued
    from magicbyte.model import IgnoredFile, PartitionListing, Segment

__all__ = ["LogBatches", "LogRecords", "PartitionLog", "Reconciliation"]


def _refuse_no_partition(path: str) -> None:
    """Raises ValueError for what is neither a segment nor a partition's directory: nothing would be read."""
    name = os.path.basename(absolute(path))
    if not _core.is_directory(path):
        raise no_segment(path)
    entries = _core.list_directory(path)
    if _core.is_partition(name, [entry for entry, _ in entries]):
        return
    directories = [os.path.join(path, entry) for entry, is_directory in entries if is_directory]
    below = [directory for directory in directories if _has_segments(directory)]
    if not below:
        raise ValueError(
            f"{path} has no segments (files such as {0:020d}.log): expected a partition's directory"
        )
    raise ValueError(
        f"{path} has no segments of its own, but {len(below)} partitions: open one of them,"
        f" such as PartitionLog({min(below)!r}), or all with Log({path!r})"
    )


def _has_segments(path: str) -> bool:
    try:
        return any(_core.is_segment_file(name) for name, _ in _core.list_directory(path))
    except OSError:
        return False


class PartitionLog(Table):
    """The segments of a partition's directory, read in offset order.

    Opening lists the directory. Files are read when records are requested, block by block: memory is one
    block plus the largest batch, whatever the size of the log. Deleted, swapped and foreign files are
    listed in `ignored` and never read. A segment that cannot be read, or that is missing between two
    others, is damage like any other. The log begins where the broker's `log-start-offset-checkpoint`, in the
    directory above, says: older records were deleted, and a broker does not return them.

    A partition of a running cluster is read by its offsets: every read asks where the log begins and ends
    at that moment, ends there, and fetches the range once while it is decoded, with the memory of a few
    answers of about 2 MiB. No group is joined and nothing is committed. `segments` and `ignored` are empty,
    and the column `position` counts the bytes that were fetched. With `read_committed`, the broker tells
    which transactions were aborted.

    Every call of `batches`, `records` or `to_arrow` is a read of its own, with its own problems; several
    can be under way at the same time. A log is also a context manager: once it is closed, it gives no new
    reads or streams; those that it has given go on.

    Times are milliseconds since 1970, or `datetime` with a time zone.

    Args:
        path: the directory, or a single `.log` or `.checkpoint` file; also a URL (`mount_storage` takes its
            options), a path into an archive, such as `backup.tar/orders-0`, or a partition of a running
            cluster:
            `kafka://host:9092/orders/0`, or `kafkas://` with TLS.
        check_crcs: verify checksums.
        max_decompressed_bytes: the limit for one batch, stored or decompressed.
        include_deleted_records: whether records before the log's start are read, too.
        mode: FAILFAST raises an error at damage; PERMISSIVE leaves damaged batches out and reports them
            in `problems` of the iterator or stream.
        command_config: for a running cluster, a file of properties of Kafka's own clients:
            security.protocol, sasl.*, and ssl.* with PEM.

    Raises:
        OSError: if the directory cannot be read, or its path is not UTF-8; if a running cluster does not
            answer or refuses (ConnectionError, TimeoutError, PermissionError).
        RefusedError: for a file that is not a segment; if the cluster has no such partition, or an address or
            property is invalid.
        ValueError: for an unknown mode, or a directory without segments that is not named like a partition:
            `Log` opens a directory of partitions.

    """

    def __init__(
        self,
        path: AnyPath,
        *,
        check_crcs: bool = True,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        include_deleted_records: bool = False,
        mode: DamageMode = "FAILFAST",
        command_config: CommandConfig = None,
    ) -> None:
        fails_fast(mode)  # raises for an unknown mode
        cluster = cluster_of(path)
        if cluster is not None:
            reader = open_live_partition(
                cluster,
                command_config,
                check_crcs=check_crcs,
                max_decompressed_bytes=max_decompressed_bytes,
                mode=mode,
            )
            self._open(reader, mode)
            return
        if command_config is not None:
            raise RefusedError("command_config is for a running cluster, such as kafka://host:9092/topic/0")
        mount([path])
        listing = _core.list_log(locate(path).path, include_deleted_records=include_deleted_records)
        self._open(PartitionReader(listing, check_crcs, max_decompressed_bytes, mode), mode)
        if not self._listing["segments"] and not self._listing["problems"]:
            _refuse_no_partition(self.path)

    @classmethod
    def of_listing(
        cls,
        listing: PartitionListing,
        *,
        check_crcs: bool = True,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        mode: DamageMode = "FAILFAST",
    ) -> Self:
        """Opens files that have been listed; they may be in several directories, such as local segments and
        those in tiered storage. The arguments are those of the class.
        """
        fails_fast(mode)
        return cls._of_reader(
            PartitionReader(json.dumps(listing), check_crcs, max_decompressed_bytes, mode), mode
        )

    @classmethod
    def _of_reader(cls, reader: PartitionReader, mode: DamageMode) -> Self:
        log = cls.__new__(cls)
        log._open(reader, mode)
        return log

    def _open(self, reader: PartitionReader, mode: DamageMode) -> None:
        self._listing: PartitionListing = json.loads(reader.listing())
        self._closed = False
        self._opened = OpenPartition(reader, self._listing, mode)

    @property
    def path(self) -> str:
        """The directory or file, or the URL of a partition of a running cluster."""
        return self._listing["path"]

    @property
    def topic(self) -> str:
        """The topic, from the directory's name `topic-N`."""
        return self._listing["topic"]

    @property
    def partition(self) -> int:
        """The partition, from the directory's name."""
        return self._listing["partition"]

    @property
    def name(self) -> str:
        """`topic-N`, as Kafka names the directory."""
        return f"{self.topic}-{self.partition}"

    @property
    def size(self) -> int:
        """Bytes of all segments, as of when the log was opened; 0 for a running cluster, which tells none."""
        return sum(segment["size"] for segment in self.segments)

    @property
    def segments(self) -> list[Segment]:
        """The segment files in offset order; a running cluster shows none."""
        return self._listing["segments"]

    @property
    def ignored(self) -> list[IgnoredFile]:
        """Files that are not part of the log, with the reason."""
        return self._listing["ignored"]

    @property
    def closed(self) -> bool:
        """True if the log has been closed."""
        return self._closed

    def close(self) -> None:
        """Ends the use of the log: its methods raise ValueError from now on.

        Iterators and streams of `to_arrow` that exist can still be read: they open files for themselves.
        """
        self._closed = True

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if cluster_of(self.path) is not None:
            return f"<PartitionLog {self.path}>"
        return f"<PartitionLog {self.name}: {len(self.segments)} segments, {self.size} bytes>"

    def _repr_html_(self) -> str:
        """A table of the segments for notebooks."""
        from magicbyte.html import table

        rows = [(segment["file"], segment["base_offset"], segment["size"]) for segment in self.segments]
        return table(repr(self), ("segment", "base offset", "bytes"), rows)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"the log {self.path} is closed")

    def batches(
        self,
        start_offset: int | None = None,
        start_timestamp: int | datetime | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        *,
        end_offset: int | None = None,
    ) -> LogBatches:
        """Iterates over the batches of the requested range, control batches included.

        The first and the last batch may hold records outside the range. `read_committed` leaves out
        batches of aborted transactions. Arguments and errors are those of `records`.
        """
        self._check_open()
        return self._opened.batches(Ranges(start_offset, end_offset, start_timestamp), isolation_level)

    def records(
        self,
        start_offset: int | None = None,
        start_timestamp: int | datetime | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        *,
        end_offset: int | None = None,
    ) -> LogRecords:
        """Iterates over the data records in offset order, as a consumer sees them.

        Args:
            start_offset: the first offset (inclusive).
            start_timestamp: start at the first record with this timestamp (ms) or a later one, or before it
                at damage that may hide an earlier one.
            isolation_level: `read_committed` leaves out aborted transactions and ends at the last stable
                offset, the iterator's `end_offset`. It trusts the markers in the log alone, so the whole
                log is surveyed first.
            end_offset: the end (exclusive).

        Raises:
            magicbyte.Error: at damage, with FAILFAST, after the records before it.

        """
        self._check_open()
        return self._opened.reader.records(
            start_offset=start_offset,
            end_offset=end_offset,
            start_timestamp=start_timestamp,
            isolation_level=isolation_level,
        )

    def offset_for_timestamp(self, timestamp: int | datetime) -> int | None:
        """The first offset whose record has this timestamp (ms) or a later one.

        None if no readable record has. Damage is passed over.
        """
        self._check_open()
        return self._opened.reader.offset_for_timestamp(timestamp)

    def verify(self, isolation_level: IsolationLevel = "read_uncommitted") -> Reconciliation:
        """Decodes every record of every segment and accounts for every byte; keeps nothing."""
        self._check_open()
        return Reconciliation(json.loads(self._opened.reader.verify(isolation_level)))

    def _open_partitions(self) -> Sequence[OpenPartition]:
        self._check_open()
        return [self._opened]

    @property
    def _default_columns(self) -> Sequence[str]:
        return CONSUMED_COLUMNS

    def rescue(self) -> Iterator[Rescued]:
        """Yields every quarantined range: its bytes, a repair if one flipped bit (or a wrong length or
        magic) explains the damage, and the records before it as suspects. Writes nothing.
        """
        from magicbyte.damage import rescue

        self._check_open()
        refuse_cluster(self.path)
        return rescue(
            self.path,
            max_decompressed_bytes=self._opened.reader.max_decompressed_bytes,
            log_start_offset=log_start_of(self._listing),
        )
