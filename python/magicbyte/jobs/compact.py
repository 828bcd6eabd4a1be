"""The job behind `magicbyte compact`: the last record of every key, as Kafka's cleaner leaves it."""

from __future__ import annotations

import json
import os
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import cast

from magicbyte import _core
from magicbyte.jobs.clean import CleanReport, Compaction, IndexedKeys, PassOne, PassTwo, clean
from magicbyte.jobs.engines import Engine
from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.plan import Planned, count_of
from magicbyte.jobs.progress import NO_PROGRESS, Progress

__all__ = ["CompactOptions", "compact", "read_checkpoint"]

DAY_MS = 24 * 60 * 60 * 1000
CHECKPOINT = "cleaner-offset-checkpoint"


@dataclass(frozen=True)
class CompactOptions:
    """How a log is compacted; the names of Kafka's configs where it has one. Times are ms."""

    now: int
    """The time it is."""
    delete_retention_ms: int = DAY_MS
    """How long tombstones and the markers of empty transactions stay."""
    min_compaction_lag_ms: int = 0
    """Segments with a later record stay as they are."""
    until_offset: int | None = None
    """Nothing from the segment with this offset on is cleaned."""
    all: bool = False
    """Clean the last segment too: a broker leaves it alone, since it writes there."""
    checkpoint: dict[tuple[str, int], int] = field(default_factory=dict)
    """By topic and partition: up to where the log is clean, for tombstones of magic 0 and 1."""
    producer_id_expiration_ms: int = DAY_MS
    """A producer silent for so long is forgotten: its last batch is not kept for its sake."""
    segment_bytes: int = 1 << 30
    """Neighbouring segments that are not larger together become one."""
    segment_index_bytes: int = 10 << 20
    """The same for their indexes."""
    index_interval_bytes: int = 4096
    """Bytes of log between two index entries."""
    memory: int = 128 << 20
    """Bytes for the maps of keys, of all tasks that run at a time; more goes to files."""
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES
    """The cap on one batch, stored or decompressed."""
    fail_fast: bool = False
    """The first bad batch ends the job with its error, instead of being quarantined."""
    topic_ids: dict[str, str] = field(default_factory=dict)
    """By topic: its id, for `partition.metadata`; without it a broker writes that file."""


def compact(
    sources: Sequence[str],
    out: str,
    engine: Engine,
    options: CompactOptions,
    progress: Progress = NO_PROGRESS,
) -> CleanReport:
    """Compacts every partition at and below `sources` into `out`, a directory a partition.

    `out` gets a `cleaner-offset-checkpoint` too, from which a broker's cleaner goes on.

    Raises:
        RefusedError: nothing to read, a partition found twice, or `out` is there already.
        Error: with `fail_fast`, the first bad batch.

    """
    memory = max(1 << 20, options.memory // engine.parallelism)
    passes = _Compact(options, secrets.randbits(63), memory)
    told = {name: value for name, value in asdict(options).items() if value not in (None, {})}
    told.pop("checkpoint", None)
    return clean(
        sources,
        out,
        engine,
        passes,
        progress,
        options=told,
        topic_ids=options.topic_ids,
        fail_fast=options.fail_fast,
        files=_checkpoint_of,
    )


def _checkpoint_of(report: CleanReport) -> dict[str, str]:
    lines = [f"{one['topic']} {one['partition']} {one['clean_until']}" for one in report["written"]]
    return {CHECKPOINT: "\n".join(["0", str(len(lines)), *lines, ""])}


def read_checkpoint(path: str) -> dict[tuple[str, int], int]:
    """Reads a broker's `cleaner-offset-checkpoint` (`CheckpointFile`, version 0).

    Raises:
        RefusedError: the file is none.
        OSError: it cannot be read, or is larger than 64 MiB.

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
            f"{path} is no cleaner-offset-checkpoint: the version 0, the number of lines, then a line"
            " `topic partition offset` each"
        ) from None
    return offsets


@dataclass(frozen=True)
class _Reduction:
    """The files of one part of a log's keys."""

    directory: str
    files: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class _Compact:
    options: CompactOptions
    seed: int
    memory: int

    def plan(self, planned: Planned) -> Compaction:
        place = planned.listing["topic"], planned.listing["partition"]
        text = _core.plan_compaction(
            planned.text,
            json.dumps(planned.listing),
            now=self.options.now,
            delete_retention_ms=self.options.delete_retention_ms,
            min_compaction_lag_ms=self.options.min_compaction_lag_ms,
            until_offset=self.options.until_offset,
            all=self.options.all,
            first_dirty_offset=self.options.checkpoint.get(place),
            segment_bytes=self.options.segment_bytes,
            segment_index_bytes=self.options.segment_index_bytes,
        )
        return cast(Compaction, json.loads(text))

    def index(self, task: PassOne) -> str:
        return _core.index_keys(
            list(task.chunks),
            os.path.join(task.directory, f"keys-{uuid.uuid4().hex[:12]}"),
            seed=self.seed,
            memory=self.memory,
            # Keys are smaller than the log, unless it is compressed well: then they go to files again.
            parts=1 if task.whole_log <= self.memory else 16,
            max_decompressed_bytes=self.options.max_decompressed_bytes,
            fail_fast=self.options.fail_fast,
        )

    def between(
        self,
        engine: Engine,
        logs: Sequence[tuple[Compaction, str, Sequence[IndexedKeys]]],
        progress: Progress,
    ) -> list[list[str]]:
        """Of each log the lists of the places of last records."""
        reductions = [
            [
                _Reduction(place, files, sum(map(os.path.getsize, files)))
                for part in zip(*(one["files"] for one in answers), strict=True)
                if (files := tuple(file for file in part if file is not None))
            ]
            for _, place, answers in logs
        ]
        flat = [one for of_log in reductions for one in of_log]
        done = iter(
            engine.map(
                partial(_reduce, seed=self.seed, memory=self.memory),
                flat,
                name=f"magicbyte reduce: {count_of(len(flat), 'task')}",
                sizes=[one.size for one in flat],
                progress=progress,
            )
        )
        return [[path for _ in of_log for path in next(done)] for of_log in reductions]

    def clean(self, task: PassTwo, directory: str) -> str:
        return _core.compact_group(
            task.group,
            list(task.indexed),
            task.facts,
            directory,
            lists=task.found,
            clean_until=task.clean_until,
            now=self.options.now,
            delete_retention_ms=self.options.delete_retention_ms,
            max_decompressed_bytes=self.options.max_decompressed_bytes,
            index_interval_bytes=self.options.index_interval_bytes,
            fail_fast=self.options.fail_fast,
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


def _reduce(task: _Reduction, seed: int, memory: int) -> list[str]:
    directory = os.path.join(task.directory, f"places-{uuid.uuid4().hex[:12]}")
    return [str(path) for path in _core.reduce_keys(list(task.files), directory, seed=seed, memory=memory)]
