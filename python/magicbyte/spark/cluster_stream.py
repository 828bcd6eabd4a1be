"""The stream reader of a running cluster: each micro-batch has ranges of offsets, which tasks fetch."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from magicbyte import _core
from magicbyte.lake.ranges import OffsetRange
from magicbyte.model import Problem
from magicbyte.spark.cluster import ClusterLog, ClusterWatch, fetch_range, starts_of
from magicbyte.spark.cluster_options import ClusterOptions
from magicbyte.spark.losses import Losses
from magicbyte.spark.micro_batches import MicroBatchReader, Wanted
from magicbyte.spark.offset_ranges import split_ranges
from magicbyte.spark.offsets import TopicPartition
from magicbyte.spark.options import StreamOptions
from magicbyte.spark.positions import Position, StreamOffset
from magicbyte.spark.typed import Decoders

__all__ = ["ClusterStreamReader"]

# Those of Spark's source (`fetchOffset.numRetries`, `fetchOffset.retryIntervalMs`).
_RETRIES = 3
_RETRY_SECONDS = 1.0


class ClusterStreamReader(MicroBatchReader[ClusterLog, OffsetRange]):
    """Reads one table of a running cluster. Offsets in checkpoints are those of Spark's Kafka source."""

    def __init__(
        self,
        cluster: ClusterOptions,
        options: StreamOptions,
        columns: tuple[str, ...],
        decoders: Decoders = (),
    ) -> None:
        self._cluster = cluster
        self._partitions = ClusterWatch.of(cluster, options.read)
        super().__init__(options, columns, decoders, self._partitions)

    def initialOffset(self) -> StreamOffset:
        """Where the options start the query. Topics and partitions that they name must be there then."""
        self._partitions.check_exist()
        return super().initialOffset()

    def _starts(self, logs: Mapping[TopicPartition, ClusterLog]) -> Mapping[TopicPartition, int]:
        return starts_of(self._options.read.starting, logs, self._partitions)

    def _look_from(self, positions: Mapping[TopicPartition, Position]) -> Mapping[TopicPartition, ClusterLog]:
        """Looks again before it believes that a log is shorter or gone: a new leader may not know at once."""
        for _ in range(_RETRIES):
            logs = self._look()
            if all(
                name in logs and position.offset <= logs[name].lineage.end_offset
                for name, position in positions.items()
            ):
                return logs
            time.sleep(_RETRY_SECONDS)
        return self._look()

    def _resumed(
        self, begin: Mapping[TopicPartition, int], logs: Mapping[TopicPartition, ClusterLog]
    ) -> Mapping[TopicPartition, int]:
        """Continues as Spark's source does: at the end of a log that has become shorter, and not at all in a
        partition that is gone, which is new when it comes back.
        """
        resumed = {name: offset for name, offset in begin.items() if name in logs}
        targets = self._target or {}
        for name, offset in resumed.items():
            log = logs[name]
            if offset > log.lineage.end_offset:
                resumed[name] = min(log.end_offset, targets.get(name, log.end_offset))
        return resumed

    def _wanted(
        self,
        starts: Mapping[TopicPartition, Position],
        ends: Mapping[TopicPartition, Position],
        logs: Mapping[TopicPartition, ClusterLog],
        losses: Losses,
    ) -> list[Wanted]:
        """The offsets of a micro-batch that the logs have. Positions that `_resumed` gave up are lost."""
        forward = dict(ends)
        for name, start in sorted(starts.items(), key=lambda item: item[0]):
            if name not in ends:
                why = "the partition was gone. Once it is back, it is read from its start"
                losses.report(name, start.offset, None, why)
            elif (end := ends[name].offset) < start.offset:
                del forward[name]
                why = f"the log ended earlier. The stream goes on at offset {end}"
                losses.report(name, end, start.offset - 1, why)
        return super()._wanted(starts, forward, logs, losses)

    def _tasks(
        self,
        wanted: Sequence[Wanted],
        logs: Mapping[TopicPartition, ClusterLog],  # the offsets are enough
        losses: Losses,  # tasks report what retention takes later
    ) -> Sequence[OffsetRange]:
        ranges = [OffsetRange(*partition, begin, end) for partition, begin, end in wanted]
        read = self._options.read
        return split_ranges(ranges, read.min_partitions, read.max_records_per_partition)

    def _report(self, problems: Sequence[Problem], losses: Losses) -> None:
        if self._options.read.table != "problems":
            losses.report_damage(problems)

    def _chunks(self, task: OffsetRange, losses: Losses) -> Iterator[_core.FetchedChunk]:
        return fetch_range(self._cluster, task, self._options.read, losses)
