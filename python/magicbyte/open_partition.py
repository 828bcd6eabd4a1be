"""A partition that has been opened: how its batches and columns are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from magicbyte._core import ArrowStream, LogBatches, PartitionReader, read_in_turn
from magicbyte.enums import DamageMode, IsolationLevel
from magicbyte.table_options import Ranges, TableOptions

if TYPE_CHECKING:
    from magicbyte.model import PartitionListing

__all__ = ["LOG_END", "OpenPartition", "opened_in_turn"]

LOG_END = 2**63 - 1
"""The end of a read that ends with the log."""


class OpenPartition(NamedTuple):
    """A partition, and how it is read."""

    reader: PartitionReader
    listing: PartitionListing
    mode: DamageMode

    @property
    def name(self) -> str:
        """`topic-N`, as Kafka names the directory."""
        return f"{self.listing['topic']}-{self.listing['partition']}"

    def decoded(self, columns: Sequence[str], options: TableOptions) -> ArrowStream:
        """The stream of these columns of the records in the ranges."""
        ranges = options.ranges
        return self.reader.to_arrow(
            columns,
            views=options.views,
            start_offset=ranges.start_offset,
            end_offset=ranges.end_offset,
            start_timestamp=ranges.start_timestamp,
            end_timestamp=ranges.end_timestamp,
            last=options.last,
            threads=options.threads,
            isolation_level=options.isolation_level,
        )

    def batches(self, ranges: Ranges, isolation_level: IsolationLevel) -> LogBatches:
        """Iterates over the batches of the ranges, from the first record at the start timestamp on."""
        return self.reader.batches(
            start_offset=ranges.start_offset,
            end_offset=ranges.end_offset,
            start_timestamp=ranges.start_timestamp,
            isolation_level=isolation_level,
        )


def opened_in_turn(
    partitions: Sequence[OpenPartition], ranges: Sequence[Ranges], isolation_level: IsolationLevel
) -> list[OpenPartition]:
    """The partitions for one read of these ranges in turn; see `magicbyte._core.read_in_turn`."""
    wanted = [(one.start_offset, one.end_offset, one.start_timestamp) for one in ranges]
    readers = read_in_turn([partition.reader for partition in partitions], wanted, isolation_level)
    return [partition._replace(reader=reader) for partition, reader in zip(partitions, readers, strict=True)]
