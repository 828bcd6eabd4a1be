"""A running cluster, which is read for its digests and its batches."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, final

@final
class ClusterReader:
    """Reads a running cluster; it neither joins groups nor writes anything.

    `bootstrap_servers` is `"host:port,host:port"`, and `command_config` a file of properties of Kafka's own
    clients, or a dict of them, for TLS and SASL; `tls` demands TLS also without them. `on_retry` is called
    with the error of each attempt that is repeated, before the wait; it must not use this object. Every wait
    has a deadline. Raises ValueError for properties that are not valid, ConnectionError, TimeoutError and
    PermissionError with the names of broker, topic and partition.
    """

    def __new__(
        cls,
        bootstrap_servers: str,
        command_config: str | PathLike[str] | Mapping[str, str] | None = None,
        *,
        tls: bool = False,
        on_retry: Callable[[str], object] | None = None,
    ) -> ClusterReader: ...
    def partitions(self, topics: Sequence[str] | None = None) -> list[tuple[str, int]]:
        """The topic and partition of all partitions that this client may see, or of those of the named topics
        that exist."""

    def offsets(self, partitions: Sequence[tuple[str, int]], isolation_level: str) -> list[tuple[int, int]]:
        """The start and the end (exclusive) of each partition: the end of what a consumer with this isolation
        level reads."""

    def committed_offsets(self, group: str) -> list[tuple[str, int, int, int | None, str]]:
        """Topic, partition, committed offset, leader epoch and metadata of a group's positions; nothing if
        the cluster has no such group. The leader epoch is that of the last consumed record, None if it is
        unknown.
        """

    def digest(
        self,
        ranges: Sequence[tuple[str, int, int, int]],
        width: int,
        isolation_level: str,
        max_decompressed_bytes: int,
        with_control: bool = True,
    ) -> list[tuple[str, int, int, list[tuple[int, int, int]], int, list[tuple[int, int, str]], int]]:
        """Fetches ranges of offsets, and digests their records as `digest_chunk` does.

        A range is a topic, a partition, the first offset and the end (exclusive). The call returns after
        about 64 MiB. For each range: topic, partition, the next offset to fetch, which is the end or larger
        if the range is done; the digests; the bytes of the batches; the offsets (first, end) of batches that
        do not decode, with the reason, and the number of those that are not listed.
        """

    def digest_records(self, offsets: Sequence[tuple[str, int, int]]) -> list[str | None]:
        """Fetches the record at each topic, partition and offset, which the log has, and digests it: the
        128-bit XXH3 of which `digest` has the sums, as 32 hexadecimal digits. None if the leader has no
        record there, or one that does not decode.
        """

    def copy_batches(
        self,
        ranges: Sequence[
            tuple[str, int, int, int, str | PathLike[str], int | None, Sequence[tuple[int, int, bool]]]
        ],
        segment_bytes: int,
    ) -> str:
        """Fetches ranges of offsets, and appends their batches to segments, byte for byte.

        A range is a topic, a partition, the first offset, the end (exclusive), the directory, the base offset
        of the segment that grows there, or None if the next batch begins one, and the transactions that are
        open: producer id, first offset, and `OpenTransaction.is_overlapped`. The call returns after about
        64 MiB, or when a partition or a broker has failed for as long as errors are retried. CRCs are
        checked; a batch that fails is written as it is. The result is a list of `CopiedBatches` as JSON, with
        the digests of the last records (see `digest_records`).
        Raises OSError if a file cannot be written.
        """

    def offsets_for_time(self, partitions: Sequence[tuple[str, int]], timestamp: int) -> list[int | None]:
        """The offset of the first record of each partition with this timestamp (ms) or a later one; None if
        there is none.
        """

    def ends_of_leader_epochs(self, epochs: Sequence[tuple[str, int, int]]) -> list[tuple[int, int] | None]:
        """The last leader epoch up to the given one and its end (exclusive) in the log of the current leader,
        for each topic, partition and epoch; None if the leader does not know this epoch or a later one, or is
        older than Kafka 2.1.
        """

    def leader_epochs(self, partitions: Sequence[tuple[str, int]]) -> list[list[tuple[int, int]]]:
        """The epochs in the log of each partition's leader, and the offsets where they begin, in order: the
        last 1000; none if the leader is older than Kafka 2.1. An epoch may have no batch.

        A request for each epoch.
        """

    def describe(self, api_key: int, body: dict[str, Any], node_id: int | None = None) -> dict[str, Any]:
        """Sends a request that describes the cluster to any broker, or to the one with this id.

        The APIs are Metadata, ApiVersions, ListConfigResources, ListGroups, and those that describe ACLs,
        configs, client quotas, log dirs, users, the quorum, groups of every kind and offsets of share groups;
        the version is the newest that both sides know. Fields that are left out have Kafka's defaults. The
        error codes in the response are not checked.
        """

    def metadata(
        self,
    ) -> tuple[str | None, list[int], list[tuple[str, str | None, dict[int, list[int]]]]]:
        """The id of the cluster, the ids of its brokers, and the topics that this client may see.

        A topic has its name, its id, and by partition the brokers of its replicas, the preferred leader
        first. An id is None where the brokers are too old to tell it.
        """

def whole_batches(
    path: str | PathLike[str],
    position: int,
    next_offset: int,
    end_offset: int,
    open_transactions: Sequence[tuple[int, int, bool]],
) -> tuple[int, str]:
    """Finds the batches with good CRCs at `position` of a segment and after it, without a gap between them.

    The first one has the offset `next_offset` or a later one, and none begins at `end_offset` or later.
    `open_transactions` has those that are open before it (see `ClusterReader.copy_batches`). The position
    after the last of them is returned with their sums and the digest of the last record, `AppendedBatches` as
    JSON. Raises OSError if the segment cannot be read.
    """
