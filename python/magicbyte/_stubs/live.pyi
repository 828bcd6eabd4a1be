"""A running cluster, which is a source as directories are: used by `magicbyte.log` and `magicbyte.logs`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from os import PathLike
from typing import final

from magicbyte._stubs.log import PartitionReader

@final
class LiveCluster:
    """A running cluster as a source. It only reads: it joins no group, and commits nothing.

    The arguments and errors are those of `ClusterReader`; with `tls`, connections are encrypted even if the
    properties do not say so. Reads that are under way at the same time have connections of their own. Ctrl-C
    ends every wait.
    """

    def __new__(
        cls,
        bootstrap_servers: str,
        command_config: str | PathLike[str] | Mapping[str, str] | None = None,
        *,
        tls: bool = False,
    ) -> LiveCluster: ...
    def partitions(self) -> list[tuple[str, int]]:
        """Topic and partition of all partitions that this client may see."""

    def partition(
        self,
        url: str,
        topic: str,
        partition: int,
        check_crcs: bool,
        max_decompressed_bytes: int,
        mode: str,
    ) -> PartitionReader:
        """Reads a partition; nothing is asked for before the first read. `url` is its name in messages."""

def read_in_turn(
    readers: Sequence[PartitionReader],
    ranges: Sequence[tuple[int | None, int | None, int | datetime | None]],
    isolation_level: str,
) -> list[PartitionReader]:
    """Readers for one read of the same partitions, one after the other in this order.

    Partitions of a running cluster that follow each other are fetched together: their offsets are listed at
    once when the first is read, and while one is read, the next ones are fetched ahead, several from each
    broker in one request. Memory is that of a few answers of about 2 MiB, whatever the number of partitions.
    A partition whose first records are deleted meanwhile begins at the start of its log, if no range has a
    start. Other partitions are read as they are.

    Args:
        readers: the partitions.
        ranges: start offset (inclusive), end offset (exclusive) and start timestamp (ms) of each. The readers
            must be asked for these alone.
        isolation_level: that of the read.

    """
