"""The partitions of a running cluster, as queries plan them and tasks fetch them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from magicbyte import _core
from magicbyte.internal_topics.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from magicbyte.jobs.find.lineage import LogLineage
from magicbyte.lake.ranges import OffsetRange
from magicbyte.live import connect, open_cluster
from magicbyte.spark.cluster_options import ClusterOptions
from magicbyte.spark.losses import Losses
from magicbyte.spark.offsets import EARLIEST, LATEST, Edge, TopicPartition, no_record_at
from magicbyte.spark.options import Options, Topics
from magicbyte.storage.location import ClusterUrl

__all__ = ["ClusterLog", "ClusterWatch", "ends_of", "fetch_range", "starts_of"]

_INTERNAL = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})
"""Kafka's own topics (`Topic.isInternal`): a pattern does not choose them, as in Spark's source."""


@dataclass(frozen=True)
class ClusterLog:
    """The state of a partition at the time of a look."""

    start_offset: int
    """The first offset that retention has left."""
    end_offset: int
    """The end (exclusive) of what a consumer with the query's isolation level reads."""
    lineage: LogLineage
    """The end of all that is replicated. Checkpoints are those of Spark's source, without room for more."""


class ClusterWatch:
    """Looks at the partitions that options select. It is pickled without its connections.

    Errors are those of `open_cluster`, and OSError with the names of broker, topic and partition.
    """

    def __init__(self, cluster: ClusterOptions, topics: Topics, isolation_level: str) -> None:
        self._cluster = cluster
        self._topics = topics
        self._isolation_level = isolation_level
        self._reader: _core.ClusterReader | None = None
        self.unread: list[str] = []
        """Nothing: of a cluster, all is read, or the look fails."""

    @classmethod
    def of(cls, cluster: ClusterOptions, options: Options) -> ClusterWatch:
        """A look at the partitions of a query."""
        return cls(cluster, options.topics, options.isolation_level)

    def partitions(self) -> list[TopicPartition]:
        """The selected partitions that the cluster has, and that it shows to this client."""
        topics = self._topics
        names = topics.names or {topic for topic, _ in topics.partitions or ()}
        found = self._connected().partitions(sorted(names) or None)
        return sorted(
            (topic, partition)
            for topic, partition in found
            if topics.take(topic, partition) and (names or topic not in _INTERNAL)
        )

    def check_exist(self) -> None:
        """Raises ValueError if the cluster does not have what the options name."""
        found = self.partitions()
        missing = (self._topics.names or frozenset()) - {topic for topic, _ in found}
        partitions = self._topics.partitions or frozenset()
        missing |= {f"{topic}-{number}" for topic, number in partitions - {*found}}
        if missing:
            names, servers = ", ".join(sorted(missing)), self._cluster.bootstrap_servers
            raise ValueError(f"{servers}: the cluster has no {names}, or does not show it to this client")

    def look(self) -> dict[TopicPartition, ClusterLog]:
        """The starts and ends of the partitions now."""
        partitions, cluster = self.partitions(), self._connected()
        replicated = cluster.offsets(partitions, "read_uncommitted")
        is_committed = self._isolation_level == "read_committed"
        readable = cluster.offsets(partitions, self._isolation_level) if is_committed else replicated
        return {
            partition: ClusterLog(start, end, LogLineage(None, None, (), high_watermark))
            for partition, (start, high_watermark), (_, end) in zip(
                partitions, replicated, readable, strict=True
            )
        }

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset of each partition whose record has this timestamp (ms) or a later one."""
        found: dict[TopicPartition, int | None] = {}
        for time in sorted({*times.values()}):
            partitions = [partition for partition, wanted in times.items() if wanted == time]
            offsets = self._connected().offsets_for_time(partitions, time)
            found |= zip(partitions, offsets, strict=True)
        return found

    def _connected(self) -> _core.ClusterReader:
        if self._reader is None:
            self._reader = open_cluster(self._cluster.bootstrap_servers, self._cluster.properties)
        return self._reader

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reader": None}


def starts_of(
    edge: Edge, logs: Mapping[TopicPartition, ClusterLog], watch: ClusterWatch
) -> dict[TopicPartition, int]:
    """The first offset to read of each partition.

    Raises:
        ValueError: if a partition has no record at or after a time, and that is an error.

    """
    if edge.offsets is not None:
        return {partition: _resolved(edge.offsets[partition], log) for partition, log in logs.items()}
    times = _times(edge, logs)
    if times is None:
        return {name: log.end_offset if edge.latest else log.start_offset for name, log in logs.items()}
    starts = {}
    for partition, offset in watch.offsets_for_times(times).items():
        if offset is None and edge.strict:
            raise no_record_at(edge, partition, times[partition])
        starts[partition] = logs[partition].end_offset if offset is None else offset
    return starts


def ends_of(
    edge: Edge, logs: Mapping[TopicPartition, ClusterLog], watch: ClusterWatch
) -> dict[TopicPartition, int]:
    """The end (exclusive) of what to read of each partition."""
    ends = {partition: log.end_offset for partition, log in logs.items()}
    if edge.offsets is not None:
        return {partition: _resolved(edge.offsets[partition], log) for partition, log in logs.items()}
    found = watch.offsets_for_times(_times(edge, logs) or {})
    return ends | {partition: offset for partition, offset in found.items() if offset is not None}


def _resolved(offset: int, log: ClusterLog) -> int:
    if offset == EARLIEST:
        return log.start_offset
    return log.end_offset if offset == LATEST else offset


def _times(edge: Edge, logs: Mapping[TopicPartition, ClusterLog]) -> dict[TopicPartition, int] | None:
    if edge.timestamps is not None:
        return dict(edge.timestamps)
    return None if edge.timestamp is None else dict.fromkeys(logs, edge.timestamp)


def fetch_range(
    cluster: ClusterOptions, offsets: OffsetRange, options: Options, losses: Losses
) -> Iterator[_core.FetchedChunk]:
    """Fetches a range of offsets from the leader, ahead of use. Two answers of about 2 MiB wait in memory.

    Offsets that the log no longer has are reported as losses, also if retention overtakes the fetch.
    """
    name, level = offsets.place, options.isolation_level
    # The driver knows that the partition is there.
    url = ClusterUrl("kafka", cluster.bootstrap_servers, *name)
    reader = connect(url, cluster.properties).partition(
        url.of(*name), *name, True, options.max_decompressed_bytes, options.mode
    )
    position = offsets.start
    while position < offsets.end:
        # The fetch tells where it begins: retention may be faster than a question before it.
        fetched = reader.fetch(start_offset=position, end_offset=offsets.end, isolation_level=level)
        start, _ = there = fetched.offsets
        losses.report_outside(name, (position, offsets.end), there)
        position = max(position, start)
        try:
            for chunk in fetched:
                position = json.loads(chunk.to_json())["next_offset"]
                yield chunk
            return
        except OSError:
            if reader.offsets(position, offsets.end, level)[0] <= position:
                raise
