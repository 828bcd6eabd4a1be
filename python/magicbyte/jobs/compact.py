"""The job of `magicbyte compact`: keeps the last record of every key, as Kafka's cleaner does.

>>> import magicbyte, pathlib, tempfile
>>> builder = magicbyte.RecordsBuilder()
>>> builder.append(offset=0, timestamp=1_700_000_000_000, key=b"a", value=b"old")
>>> builder.append(offset=1, timestamp=1_700_000_000_000, key=b"b", value=b"only")
>>> builder.append(offset=2, timestamp=1_700_000_000_000, key=b"a", value=b"new")
>>> directory = pathlib.Path(tempfile.mkdtemp())
>>> (directory / "logs" / "orders-0").mkdir(parents=True)
>>> _ = (directory / "logs" / "orders-0" / f"{0:020}.log").write_bytes(builder.build())

>>> report = magicbyte.compact(directory / "logs", directory / "compacted", all=True)
>>> report["balanced"], report["counts"]["kept"], report["counts"]["superseded"]
(True, 2, 1)
>>> [record.value_bytes for record in magicbyte.PartitionLog(directory / "compacted" / "orders-0").records()]
[b'only', b'new']
"""

from __future__ import annotations

import json
import os
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, cast

from magicbyte import _core
from magicbyte.errors import Error, RefusedError
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.clean import CleanReport, Compaction, IndexedKeys, PassOne, PassTwo, clean
from magicbyte.jobs.cleanup_policy import number_of, select
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.cluster import Cluster, read_cluster, read_configs
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import Planned, count_of
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.log_dir import CLEANER_OFFSET_CHECKPOINT, format_offset_checkpoint, read_offset_checkpoint
from magicbyte.options.command_line import command_line
from magicbyte.options.compact import DAY_MS, CompactOptions

__all__ = ["compact_partitions"]

_LONG = range(1 << 63)
_SEGMENT_BYTES = range(1, 1 << 31)
# Up to the size of Java's largest array.
_RECORD_BYTES = range(1, (1 << 31) - 8)


@dataclass(frozen=True)
class _TopicOptions:
    """The options that a topic's configs decide, if the caller does not."""

    delete_retention_ms: int
    min_compaction_lag_ms: int
    max_decompressed_message_bytes: int
    segment_bytes: int


def compact_partitions(
    sources: Sequence[str],
    out: str,
    engine: Engine,
    options: CompactOptions,
    progress: Progress = NO_PROGRESS,
    *,
    choice: PartitionChoice = EVERYTHING,
) -> CleanReport:
    """Compacts every partition at and below `sources` into `out`: see `compact`.

    Raises:
        RefusedError: if there is nothing to read, a partition is found twice, or `out` is not empty.
        Error: for the first bad batch, with FAILFAST.

    """
    checkpoint = {} if options.checkpoint is None else _read_checkpoint(options.checkpoint)
    given = read_configs(options)
    now = options.now_ms
    inputs = find_inputs(sources, choice, distinct=True, consult={CLUSTER_METADATA})
    cluster = read_cluster(inputs.consulted_partition(CLUSTER_METADATA), given)
    listings, left_out = select(
        inputs.listings,
        cluster,
        engine,
        progress,
        all_topics=options.all_topics,
        max_decompressed_bytes=options.max_decompressed_bytes,
    )
    topics = {listing["topic"]: _topic_options(cluster, listing["topic"], options) for listing in listings}
    memory_bytes = max(1 << 20, options.memory_bytes // engine.parallelism)
    passes = _Compact(options, now, topics, checkpoint, secrets.randbits(63), memory_bytes)
    return clean(
        replace(inputs, listings=listings),
        out,
        engine,
        passes,
        progress,
        options,
        left_out=left_out,
        command=command_line("compact", [*sources, out], options, choice) if options.certify else None,
    )


def _topic_options(cluster: Cluster, topic: str, options: CompactOptions) -> _TopicOptions:
    def value(given: int | None, name: str, values: range, default: int) -> int:
        if given is not None:
            return given
        number = number_of(cluster, topic, name, values)
        return default if number is None else number

    return _TopicOptions(
        value(options.delete_retention_ms, "delete.retention.ms", _LONG, DAY_MS),
        value(options.min_compaction_lag_ms, "min.compaction.lag.ms", _LONG, 0),
        value(
            options.max_decompressed_message_bytes,
            "max.decompressed.message.bytes",
            _RECORD_BYTES,
            _RECORD_BYTES[-1],
        ),
        value(options.segment_bytes, "segment.bytes", _SEGMENT_BYTES, 1 << 30),
    )


def _read_checkpoint(path: str | PathLike[str]) -> dict[tuple[str, int], int]:
    """Reads a broker's `cleaner-offset-checkpoint`.

    Raises:
        RefusedError: if it is not such a file.
        OSError: if it cannot be read, or is larger than 64 MiB.

    """
    try:
        return read_offset_checkpoint(path)
    except Error as error:
        raise RefusedError(str(error)) from None


@dataclass(frozen=True)
class _Reduction:
    """The files with one part of a log's keys."""

    directory: str
    files: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class _Compact:
    options: CompactOptions
    now: int
    topics: Mapping[str, _TopicOptions]
    checkpoint: Mapping[tuple[str, int], int]
    """The offset up to which the log is clean, by topic and partition."""
    seed: int
    memory_bytes: int

    def reported(self) -> dict[str, Any]:
        given = {name: value for name, value in asdict(self.options).items() if value not in (None, {})}
        for name in ("checkpoint", "topic_config", "server_properties"):
            given.pop(name, None)
        topics = {topic: asdict(own) for topic, own in self.topics.items()}
        return {**given, "now": self.now, "topics": topics}

    def files(self, report: CleanReport) -> dict[str, str]:
        offsets = {
            (partition["topic"], partition["partition"]): partition["clean_until"]
            for partition in report["written"]
        }
        return {CLEANER_OFFSET_CHECKPOINT: format_offset_checkpoint(offsets)}

    def plan(self, planned: Planned) -> Compaction:
        partition = planned.listing["topic"], planned.listing["partition"]
        topic = self.topics[planned.listing["topic"]]
        text = _core.plan_compaction(
            planned.text,
            json.dumps(planned.listing),
            now=self.now,
            delete_retention_ms=topic.delete_retention_ms,
            min_compaction_lag_ms=topic.min_compaction_lag_ms,
            until_offset=self.options.until_offset,
            all=self.options.all,
            first_dirty_offset=self.checkpoint.get(partition),
            segment_bytes=topic.segment_bytes,
            segment_index_bytes=self.options.segment_index_bytes,
        )
        return cast(Compaction, json.loads(text))

    def index(self, task: PassOne) -> str:
        limit = self.topics[task.topic].max_decompressed_message_bytes
        return _core.index_keys(
            list(task.chunks),
            os.path.join(task.directory, f"keys-{uuid.uuid4().hex[:12]}"),
            seed=self.seed,
            memory_bytes=self.memory_bytes,
            # Keys are usually smaller than the log. If it is compressed well, they may go to files again.
            parts=1 if task.whole_log <= self.memory_bytes else 16,
            max_decompressed_bytes=self.options.max_decompressed_bytes,
            record_size_limit=None if limit == _RECORD_BYTES[-1] else limit,
            mode=self.options.mode,
        )

    def between(
        self,
        engine: Engine,
        logs: Sequence[tuple[Compaction, str, Sequence[IndexedKeys]]],
        progress: Progress,
    ) -> list[list[str]]:
        """For each log, the files that list the positions of each key's last record."""
        reductions = [
            [
                _Reduction(directory, files, sum(map(os.path.getsize, files)))
                for part in zip(*(one["files"] for one in keys), strict=True)
                if (files := tuple(file for file in part if file is not None))
            ]
            for _, directory, keys in logs
        ]
        flat = [one for of_log in reductions for one in of_log]
        results = iter(
            engine.map(
                partial(_reduce, seed=self.seed, memory_bytes=self.memory_bytes),
                flat,
                name=f"magicbyte reduce: {count_of(len(flat), 'task')}",
                sizes=[one.size for one in flat],
                progress=progress,
            )
        )
        return [[path for _ in of_log for path in next(results)] for of_log in reductions]

    def clean(self, task: PassTwo, directory: str) -> str:
        return _core.compact_group(
            task.group,
            list(task.indexed),
            task.summary,
            directory,
            lists=task.extra,
            clean_until=task.clean_until,
            now=self.now,
            delete_retention_ms=self.topics[task.topic].delete_retention_ms,
            max_decompressed_bytes=self.options.max_decompressed_bytes,
            index_interval_bytes=self.options.index_interval_bytes,
            mode=self.options.mode,
        )

    @property
    def expired_until(self) -> int | None:
        return self.now - self.options.producer_id_expiration_ms

    def unmatched(self, _matched: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
        return []

    def check(
        self, _directories: Mapping[str, str], _report: CleanReport, _engine: Engine, _progress: Progress
    ) -> None:
        return None


def _reduce(task: _Reduction, seed: int, memory_bytes: int) -> list[str]:
    directory = os.path.join(task.directory, f"places-{uuid.uuid4().hex[:12]}")
    return [
        str(path)
        for path in _core.reduce_keys(list(task.files), directory, seed=seed, memory_bytes=memory_bytes)
    ]
