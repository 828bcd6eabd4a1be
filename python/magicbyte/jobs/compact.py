"""The job behind `magicbyte compact`: keeps the last record of every key, as Kafka's cleaner does.

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
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from os import PathLike
from typing import cast

from magicbyte import _core
from magicbyte.enums import DamageMode
from magicbyte.jobs.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.clean import CleanReport, Compaction, IndexedKeys, PassOne, PassTwo, clean
from magicbyte.jobs.engines import Engine, LocalEngine
from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.plan import Planned, count_of
from magicbyte.jobs.progress import NO_PROGRESS, Progress

__all__ = ["CompactOptions", "compact", "compact_partitions", "read_checkpoint"]

DAY_MS = 24 * 60 * 60 * 1000
_CHECKPOINT = "cleaner-offset-checkpoint"


@dataclass(frozen=True)
class CompactOptions:
    """How logs are compacted. Options have the names of Kafka's configs, if there is one; times are ms."""

    now: int
    """The current time."""
    delete_retention_ms: int = DAY_MS
    """How long tombstones and the markers of empty transactions are kept."""
    min_compaction_lag_ms: int = 0
    """Segments with a record younger than this are copied."""
    until_offset: int | None = None
    """Nothing is cleaned from the segment with this offset on."""
    all: bool = False
    """Clean the last segment too, which a broker leaves alone because it writes to it."""
    checkpoint: dict[tuple[str, int], int] = field(default_factory=dict)
    """By topic and partition: the offset up to which the log is clean. Decides when tombstones of magic 0
    and 1 may be removed."""
    producer_id_expiration_ms: int = DAY_MS
    """Producers that have been silent for this long are forgotten: their last batch need not be kept."""
    segment_bytes: int = 1 << 30
    """Neighbouring segments become one if they are not larger than this together."""
    segment_index_bytes: int = 10 << 20
    """The same limit for their indexes."""
    index_interval_bytes: int = 4096
    """Bytes of log between two index entries."""
    memory_bytes: int = 128 << 20
    """Bytes for the maps of keys of all running tasks together; larger maps go to files."""
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES
    """The limit for one batch, stored or decompressed."""
    mode: DamageMode = "PERMISSIVE"
    """Whether a bad batch is quarantined or ends the job with an error."""
    topic_ids: dict[str, str] = field(default_factory=dict)
    """The id of each topic, for `partition.metadata`; without one, a broker creates that file."""


def compact(
    source: str | PathLike[str],
    out: str | PathLike[str],
    *,
    now: int | None = None,
    delete_retention_ms: int = DAY_MS,
    min_compaction_lag_ms: int = 0,
    until_offset: int | None = None,
    all: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    producer_id_expiration_ms: int = DAY_MS,
    segment_bytes: int = 1 << 30,
    memory_bytes: int = 128 << 20,
    mode: DamageMode = "PERMISSIVE",
    topic_ids: Mapping[str, str] | None = None,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
    engine: Engine | None = None,
) -> CleanReport:
    """Writes every partition at and below `source` to `out` with only the last record of each key.

    As `magicbyte compact`, by the rules of Kafka's `LogCleaner`: whole segments are cleaned, up to the last
    stable offset and without the last segment; everything else is copied. `source` is only read, and `out`
    is published when everything is done.

    Args:
        source: a partition's directory, or a directory with partitions below it.
        out: a directory that does not exist or is empty. It gets a directory for each partition, a
            `cleaner-offset-checkpoint`, and the report as `reconciliation.json`.
        now: the current time (ms since 1970); None for the clock's.
        delete_retention_ms: how long tombstones and the markers of empty transactions are kept.
        min_compaction_lag_ms: segments with a record younger than this are copied.
        until_offset: nothing is cleaned from the segment with this offset (inclusive) on.
        all: clean the last segment too.
        checkpoint: a broker's `cleaner-offset-checkpoint`, which decides when tombstones of magic 0 and 1
            may be removed.
        producer_id_expiration_ms: producers that have been silent for this long are forgotten: their last
            batch need not be kept.
        segment_bytes: neighbouring segments become one if they are not larger than this together.
        memory_bytes: for the maps of keys of all running tasks together; larger maps go to files next to
            `out`.
        mode: what happens at damage.
        topic_ids: the id of each topic, for `partition.metadata`; without one, a broker creates that file.
        max_decompressed_bytes: the limit for one batch, stored or decompressed; larger ones are damage.
        engine: where the tasks run; None for one thread per core. `magicbyte.jobs.engines.SparkEngine(spark)`
            runs them on Spark.

    Returns:
        What became of every record and byte: the content of `reconciliation.json`.

    Raises:
        RefusedError: if there is nothing to read, a partition is found twice, `out` is not empty, or
            `checkpoint` is not such a file.
        Error: for the first bad batch, with FAILFAST.
        OSError: if a file cannot be read or written.

    """
    options = CompactOptions(
        now=round(time.time() * 1000) if now is None else now,
        delete_retention_ms=delete_retention_ms,
        min_compaction_lag_ms=min_compaction_lag_ms,
        until_offset=until_offset,
        all=all,
        checkpoint={} if checkpoint is None else read_checkpoint(os.fspath(checkpoint)),
        producer_id_expiration_ms=producer_id_expiration_ms,
        segment_bytes=segment_bytes,
        memory_bytes=memory_bytes,
        max_decompressed_bytes=max_decompressed_bytes,
        mode=mode,
        topic_ids=dict(topic_ids or {}),
    )
    return compact_partitions([os.fspath(source)], os.fspath(out), engine or LocalEngine(), options)


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
    memory_bytes = max(1 << 20, options.memory_bytes // engine.parallelism)
    passes = _Compact(options, secrets.randbits(63), memory_bytes)
    reported = {name: value for name, value in asdict(options).items() if value not in (None, {})}
    reported.pop("checkpoint", None)
    return clean(
        sources,
        out,
        engine,
        passes,
        progress,
        choice=choice,
        options=reported,
        topic_ids=options.topic_ids,
        mode=options.mode,
        files=_checkpoint_of,
    )


def _checkpoint_of(report: CleanReport) -> dict[str, str]:
    lines = [f"{one['topic']} {one['partition']} {one['clean_until']}" for one in report["written"]]
    return {_CHECKPOINT: "\n".join(["0", str(len(lines)), *lines, ""])}


def read_checkpoint(path: str) -> dict[tuple[str, int], int]:
    """Reads a broker's `cleaner-offset-checkpoint` (`CheckpointFile`, version 0): offsets by topic and
    partition.

    Raises:
        RefusedError: if it is not such a file.
        OSError: if it cannot be read, or is larger than 64 MiB.

    """
    text = _core.read_sidecar(path).decode(errors="replace")
    version, count, *lines = [*text.splitlines(), "", ""]
    try:
        entries = [line.split(" ") for line in lines if line]
        offsets = {(topic, int(partition)): int(offset) for topic, partition, offset in entries}
        if version != "0" or int(count) != len(offsets):
            raise ValueError
    except ValueError:
        raise RefusedError(
            f"{path} is not a cleaner-offset-checkpoint: version 0, the number of entries, then one line"
            " `topic partition offset` for each"
        ) from None
    return offsets


@dataclass(frozen=True)
class _Reduction:
    """The files with one part of a log's keys."""

    directory: str
    files: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class _Compact:
    options: CompactOptions
    seed: int
    memory_bytes: int

    def plan(self, planned: Planned) -> Compaction:
        partition = planned.listing["topic"], planned.listing["partition"]
        text = _core.plan_compaction(
            planned.text,
            json.dumps(planned.listing),
            now=self.options.now,
            delete_retention_ms=self.options.delete_retention_ms,
            min_compaction_lag_ms=self.options.min_compaction_lag_ms,
            until_offset=self.options.until_offset,
            all=self.options.all,
            first_dirty_offset=self.options.checkpoint.get(partition),
            segment_bytes=self.options.segment_bytes,
            segment_index_bytes=self.options.segment_index_bytes,
        )
        return cast(Compaction, json.loads(text))

    def index(self, task: PassOne) -> str:
        return _core.index_keys(
            list(task.chunks),
            os.path.join(task.directory, f"keys-{uuid.uuid4().hex[:12]}"),
            seed=self.seed,
            memory_bytes=self.memory_bytes,
            # Keys are usually smaller than the log. If it is compressed well, they may go to files again.
            parts=1 if task.whole_log <= self.memory_bytes else 16,
            max_decompressed_bytes=self.options.max_decompressed_bytes,
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
            now=self.options.now,
            delete_retention_ms=self.options.delete_retention_ms,
            max_decompressed_bytes=self.options.max_decompressed_bytes,
            index_interval_bytes=self.options.index_interval_bytes,
            mode=self.options.mode,
        )

    @property
    def expired_until(self) -> int | None:
        return self.options.now - self.options.producer_id_expiration_ms

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
