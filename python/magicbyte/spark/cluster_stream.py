"""The stream reader of a running cluster: each micro-batch has ranges of offsets, which tasks fetch."""

from __future__ import annotations

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
from magicbyte.spark.positions import StreamOffset
from magicbyte.spark.typed import Decoders

__all__ = ["ClusterStreamReader"]


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
