"""The stream reader, which follows growing partition directories.

Bytes after the last whole batch do not count yet, as a broker may be writing them; nor, with
`read_committed`, do records from the first open transaction on. Records above a broker's high watermark wait:
a failover may replace them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from magicbyte import _core
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.plan import Task, tasks_of_chunks
from magicbyte.model import Chunk, Problem
from magicbyte.spark.limits import chunks_between, limit_bytes
from magicbyte.spark.losses import Losses
from magicbyte.spark.micro_batches import MicroBatchReader, Wanted
from magicbyte.spark.offsets import TopicPartition, resolve_start
from magicbyte.spark.options import StreamOptions
from magicbyte.spark.splits import split_tasks
from magicbyte.spark.typed import Decoders
from magicbyte.spark.watch import Log, Watch

__all__ = ["MagicbyteStreamReader"]

_LOGGER = logging.getLogger("magicbyte.stream")


class MagicbyteStreamReader(MicroBatchReader[Log, Task]):
    """Reads one table of growing directories."""

    def __init__(self, options: StreamOptions, columns: tuple[str, ...], decoders: Decoders = ()) -> None:
        watch = Watch(options.read, above_high_watermark=options.above_high_watermark)
        super().__init__(options, columns, decoders, watch)

    def _starts(self, logs: Mapping[TopicPartition, Log]) -> Mapping[TopicPartition, int]:
        starts = {}
        for partition, log in logs.items():
            offset = resolve_start(self._options.read.starting, log.whole, log.end_offset)
            starts[partition] = log.start_offset if offset is None else offset
        return starts

    def _limited(
        self,
        begin: Mapping[TopicPartition, int],
        end: Mapping[TopicPartition, int],
        logs: Mapping[TopicPartition, Log],
    ) -> dict[TopicPartition, int]:
        end = super()._limited(begin, end, logs)
        limit = self._options.max_bytes
        return end if limit is None else limit_bytes(logs, begin, end, limit)

    def _tasks(
        self, wanted: Sequence[Wanted], logs: Mapping[TopicPartition, Log], losses: Losses
    ) -> Sequence[Task]:
        chunks: list[Chunk] = []
        for partition, begin, end in wanted:
            log = logs[partition]
            losses.report_missing_segments(partition, log.whole.plan["problems"], begin, end)
            chunks += chunks_between(log, begin, end)
        read = self._options.read
        tasks = tasks_of_chunks(chunks, LocalEngine().parallelism, read.min_partitions)
        if read.table != "records":
            return tasks
        log_ends = {partition: log.lineage.end_offset for partition, log in logs.items()}
        return split_tasks(tasks, log_ends, read.min_partitions, read.max_records_per_partition)

    def _report(self, problems: Sequence[Problem], losses: Losses) -> None:
        losses.check_files(problems)
        if self._options.read.table != "problems":
            first = problems[0]
            _LOGGER.warning(
                "%s-%d, %s: %d problems; the first: %s. Read all of them with the option table=problems.",
                first["topic"],
                first["partition"],
                first["segment"],
                len(problems),
                first["message"],
            )

    def _chunks(self, task: Task, losses: Losses) -> Iterator[str]:  # files do not lose offsets meanwhile
        self._options.read.mount(self._options.read.paths)
        for chunk in task.chunks:
            trimmed = _core.trim_chunk(chunk)
            if trimmed is not None:
                yield trimmed
