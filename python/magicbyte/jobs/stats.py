"""Statistics: what the batches of each partition say, and the time range of their records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte.jobs.accounting import by_plan, reconcile_partitions
from magicbyte.jobs.engines import Engine
from magicbyte.jobs.model import PartitionReconciliation
from magicbyte.jobs.partitions import list_partitions
from magicbyte.jobs.plan import Task, plan_partitions, task_name, tasks_of
from magicbyte.jobs.progress import NO_PROGRESS, Progress
from magicbyte.jobs.reading import ReadOptions, read_chunk

__all__ = ["Group", "PartitionStats", "Stats", "StatsReport", "statistics"]


class Group(TypedDict):
    """The batches that have something in common; sizes are bytes."""

    batches: int
    records: int
    size: int
    """As stored, headers of batches included."""
    uncompressed_size: int
    """The records after decompression."""
    ratio: float | None
    """`uncompressed_size / size`; None without bytes."""


class Stats(TypedDict):
    """Counts over batches and records; sizes are bytes, times milliseconds (None: no time)."""

    segments: int
    size: int
    batches: int
    records: int
    control_records: int
    uncompressed_size: int
    ratio: float | None
    """`uncompressed_size` to the size of the batches as stored; None without batches."""
    codecs: dict[str, Group]
    magics: dict[str, Group]
    producers: dict[str, Group]
    """By producer id; `-1`: batches without one, those of magic 0 and 1 among them."""
    batch_sizes: dict[str, Group]
    """By the size of the batch: each key is the power of two that it does not exceed."""
    min_timestamp: int | None
    max_timestamp: int | None
    problems: int


class PartitionStats(Stats):
    """Those of one partition."""

    path: str
    topic: str
    partition: int
    first_offset: int | None
    last_offset: int | None


class StatsReport(TypedDict):
    """What `statistics` returns."""

    total: Stats
    partitions: list[PartitionStats]
    balanced: bool


class _Kind(NamedTuple):
    """What batches are counted by."""

    codec: str
    magic: str
    producer: str
    size: str


class _Sums(NamedTuple):
    batches: int = 0
    records: int = 0
    size: int = 0
    uncompressed_size: int = 0


@dataclass
class _Counts:
    """The counts of one chunk, which add up."""

    kinds: dict[_Kind, _Sums] = field(default_factory=dict)
    times: list[int] = field(default_factory=list)
    """The smallest and the largest, if there is any."""

    def add(self, batches: pa.RecordBatch) -> None:
        columns = (batches.column(name).to_pylist() for name in _COLUMNS)
        for codec, magic, producer, size, count, uncompressed in zip(*columns, strict=True):
            # A codec that does not exist has no name; a batch that was not decoded no sums.
            known = codec or "unknown", str(magic), str(-1 if producer is None else producer)
            kind = _Kind(*known, str(1 << (size - 1).bit_length()))
            self.kinds[kind] = _sum(
                (self.kinds.get(kind, _Sums()), _Sums(1, count or 0, size, uncompressed or 0))
            )


_COLUMNS = ("compression", "magic", "producerId", "size", "count", "uncompressedSize")


def _sum(parts: Iterable[_Sums]) -> _Sums:
    return _Sums(*map(sum, zip(_Sums(), *parts, strict=True)))


def _count_task(task: Task, options: ReadOptions) -> list[tuple[str, _Counts]]:
    return [_count_chunk(chunk, options) for chunk in task.chunks]


def _count_chunk(chunk: str, options: ReadOptions) -> tuple[str, _Counts]:
    counts = _Counts()
    result = ""
    for item in read_chunk(chunk, options):
        if isinstance(item, str):
            result = item
        elif item.table == "batches":
            counts.add(item.batch)
        elif item.table == "records":
            times = item.batch.column("timestampMillis")
            # -1 stands for "no timestamp".
            extremes = pc.min_max(times.filter(pc.not_equal(times, -1))).as_py()
            if extremes["min"] is not None:
                counts.times = _extremes([*counts.times, extremes["min"], extremes["max"]])
    return result, counts


def _extremes(times: Iterable[int]) -> list[int]:
    known = list(times)
    return [min(known), max(known)] if known else []


def statistics(
    sources: Sequence[str],
    engine: Engine,
    *,
    max_decompressed_bytes: int,
    progress: Progress = NO_PROGRESS,
) -> StatsReport:
    """Counts over all partitions at and below `sources`; every record is decoded for it."""
    listings = list_partitions(sources)
    plans = plan_partitions(listings, engine, progress=progress)
    tasks = tasks_of(plans, engine.parallelism)
    options = ReadOptions(("timestampMillis",), True, max_decompressed_bytes)
    answers = engine.map(
        partial(_count_task, options=options),
        tasks,
        name=task_name("stats", tasks),
        sizes=[task.size for task in tasks],
        progress=progress,
    )
    counted = [chunk for answer in answers for chunk in answer]
    reconciled = reconcile_partitions(plans, (result for result, _ in counted))
    partitions = [
        PartitionStats(
            path=one["path"],
            topic=one["topic"],
            partition=one["partition"],
            first_offset=one["first_offset"],
            last_offset=one["last_offset"],
            **_stats_of([counts for _, counts in own], [one]),
        )
        for one, own in zip(reconciled, by_plan(plans, counted), strict=True)
    ]
    return StatsReport(
        total=_stats_of([counts for _, counts in counted], reconciled),
        partitions=partitions,
        balanced=all(one["balanced"] for one in reconciled),
    )


def _stats_of(chunks: Sequence[_Counts], partitions: Sequence[PartitionReconciliation]) -> Stats:
    kinds = [item for chunk in chunks for item in chunk.kinds.items()]
    total = _group(sums for _, sums in kinds)
    times = _extremes(time for chunk in chunks for time in chunk.times)
    return Stats(
        segments=sum(len(one["segments"]) for one in partitions),
        size=sum(one["size"] for one in partitions),
        batches=total["batches"],
        records=sum(one["rows"] for one in partitions),
        control_records=sum(one["control"] for one in partitions),
        uncompressed_size=total["uncompressed_size"],
        ratio=total["ratio"],
        codecs=_groups((kind.codec, sums) for kind, sums in kinds),
        magics=_groups((kind.magic, sums) for kind, sums in kinds),
        producers=_groups(((kind.producer, sums) for kind, sums in kinds), order=int),
        batch_sizes=_groups(((kind.size, sums) for kind, sums in kinds), order=int),
        min_timestamp=times[0] if times else None,
        max_timestamp=times[1] if times else None,
        problems=sum(one["problems"] for one in partitions),
    )


def _groups(items: Iterable[tuple[str, _Sums]], order: Callable[[str], str | int] = str) -> dict[str, Group]:
    parts: defaultdict[str, list[_Sums]] = defaultdict(list)
    for name, sums in items:
        parts[name].append(sums)
    return {name: _group(parts[name]) for name in sorted(parts, key=order)}


def _group(parts: Iterable[_Sums]) -> Group:
    sums = _sum(parts)
    return Group(
        batches=sums.batches,
        records=sums.records,
        size=sums.size,
        uncompressed_size=sums.uncompressed_size,
        ratio=round(sums.uncompressed_size / sums.size, 4) if sums.size else None,
    )
