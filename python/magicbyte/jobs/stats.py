"""Statistics: what the batches of each partition say, and the time range of their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypedDict

import pyarrow.compute as pc

from magicbyte.jobs.accounting import by_plan, reconcile_partitions
from magicbyte.jobs.engines import Engine
from magicbyte.jobs.model import PartitionReconciliation
from magicbyte.jobs.partitions import list_partitions
from magicbyte.jobs.plan import Task, plan_partitions, task_name, tasks_of
from magicbyte.jobs.progress import NO_PROGRESS, Progress
from magicbyte.jobs.reading import ReadOptions, read_chunk

__all__ = ["PartitionStats", "Stats", "StatsReport", "statistics"]


class Stats(TypedDict):
    """Counts over batches and records; sizes are bytes, times milliseconds (None: no time)."""

    segments: int
    size: int
    batches: int
    records: int
    control_records: int
    uncompressed_size: int
    codecs: dict[str, int]
    """Batches a compression codec."""
    magics: dict[str, int]
    """Batches a magic."""
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


@dataclass
class _Counts:
    """The counts of one chunk, which add up."""

    batches: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By codec and magic."""
    uncompressed_size: int = 0
    times: list[int] = field(default_factory=list)
    """The smallest and the largest, if there is any."""


def _count_task(task: Task, options: ReadOptions) -> list[tuple[str, _Counts]]:
    return [_count_chunk(chunk, options) for chunk in task.chunks]


def _count_chunk(chunk: str, options: ReadOptions) -> tuple[str, _Counts]:
    counts = _Counts()
    result = ""
    for item in read_chunk(chunk, options):
        if isinstance(item, str):
            result = item
        elif item.table == "batches":
            columns = (item.batch.column(name).to_pylist() for name in ("compression", "magic"))
            counts.batches.update((codec, str(magic)) for codec, magic in zip(*columns, strict=True))
            counts.uncompressed_size += pc.sum(item.batch.column("uncompressedSize")).as_py() or 0
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
    codecs: Counter[str] = Counter()
    magics: Counter[str] = Counter()
    for chunk in chunks:
        for (codec, magic), count in chunk.batches.items():
            codecs[codec] += count
            magics[magic] += count
    times = _extremes(time for chunk in chunks for time in chunk.times)
    return Stats(
        segments=sum(len(one["segments"]) for one in partitions),
        size=sum(one["size"] for one in partitions),
        batches=codecs.total(),
        records=sum(one["rows"] for one in partitions),
        control_records=sum(one["control"] for one in partitions),
        uncompressed_size=sum(chunk.uncompressed_size for chunk in chunks),
        codecs=dict(sorted(codecs.items())),
        magics=dict(sorted(magics.items())),
        min_timestamp=times[0] if times else None,
        max_timestamp=times[1] if times else None,
        problems=sum(one["problems"] for one in partitions),
    )
