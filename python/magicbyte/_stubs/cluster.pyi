"""A running cluster, which is read for its digests."""

from collections.abc import Sequence
from os import PathLike
from typing import final

@final
class ClusterReader:
    """Reads a running cluster; it neither joins groups nor writes anything.

    `bootstrap_servers` is `"host:port,host:port"`, and `command_config` a file of properties of Kafka's own
    clients, for TLS and SASL. Every wait has a deadline. Raises ValueError for properties that are not valid,
    ConnectionError, TimeoutError and PermissionError with the names of broker, topic and partition.
    """

    def __new__(
        cls, bootstrap_servers: str, command_config: str | PathLike[str] | None = None
    ) -> ClusterReader: ...
    def partitions(self) -> list[tuple[str, int]]:
        """The topic and partition of all partitions that this client may see."""

    def offsets(self, partitions: Sequence[tuple[str, int]], isolation_level: str) -> list[tuple[int, int]]:
        """The start and the end (exclusive) of each partition: the end of what a consumer with this isolation
        level reads."""

    def digest(
        self,
        ranges: Sequence[tuple[str, int, int, int]],
        width: int,
        isolation_level: str,
        max_decompressed_bytes: int,
    ) -> list[tuple[str, int, int, list[tuple[int, int, int]], int, list[tuple[int, int, str]], int]]:
        """Fetches ranges of offsets, and digests their records as `digest_chunk` does.

        A range is a topic, a partition, the first offset and the end (exclusive). The call returns after
        about 64 MiB. For each range: topic, partition, the next offset to fetch, which is the end or larger
        if the range is done; the digests; the bytes of the batches; the offsets (first, end) of batches that
        do not decode, with the reason, and the number of those that are not listed.
        """
