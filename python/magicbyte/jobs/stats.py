"""The job of `magicbyte stats`: counts over the batches of each partition, and its time range."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte import _core
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.partitions import SkippedDirectory, find_inputs
from magicbyte.jobs.run.accounting import reconcile_partitions
from magicbyte.jobs.run.decode_partitions import DecodeJob, decode_partitions
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.live_partitions import live_partitions
from magicbyte.jobs.run.plan import DecodeTask
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.run.reading import ReadOptions, check_column_limit, read_chunk
from magicbyte.live import CommandConfig, split_sources
from magicbyte.model import PartitionReconciliation

__all__ = ["Group", "PartitionStats", "Stats", "StatsReport", "TopicStats", "statistics"]


class Group(TypedDict):
    """Counts over batches with something in common; sizes are bytes."""

    batches: int
    records: int
    size: int
    """The bytes as stored, including batch headers."""
    uncompressed_size: int
    """The bytes of the records after decompression."""
    ratio: float | None
    """`uncompressed_size / size`; None if there are no bytes."""


class Stats(TypedDict):
    """Counts over batches and records. Sizes are bytes; times are milliseconds, or None if there are none."""

    segments: int
    size: int
    batches: int
    records: int
    control_records: int
    uncompressed_size: int
    ratio: float | None
    """`uncompressed_size` divided by the size of the batches as stored; None if there are no batches."""
    codecs: dict[str, Group]
    magics: dict[str, Group]
    producers: dict[str, Group]
    """The `LISTED` producers with the most bytes, by producer id. `-1` is for batches without a producer id,
    such as all of magic 0 and 1."""
    other_producers: Group
    """The producers that are not listed."""
    producer_count: int
    """All producers; batches without a producer id count as one."""
    batch_sizes: dict[str, Group]
    """Batches by their size, rounded up to a power of two."""
    min_timestamp: int | None
    max_timestamp: int | None
    problems: int


class PartitionStats(Stats):
    """The statistics of one partition."""

    path: str
    topic: str
    partition: int
    first_offset: int | None
    last_offset: int | None


class TopicStats(Stats):
    """The statistics of one topic."""

    topic: str
    partitions: int


class StatsReport(TypedDict):
    """The statistics of all partitions and topics, and their total."""

    total: Stats
    topics: list[TopicStats]
    partitions: list[PartitionStats]
    skipped: list[SkippedDirectory]
    balanced: bool


_KIND = ("compression", "magic", "producerId", "batchSize")
"""The columns that batches are grouped by; `batchSize` is the size rounded up to a power of two."""
_SUMS = ("batches", "records", "size", "uncompressedSize")
_KINDS = pa.schema(
    [
        ("compression", pa.string()),
        ("magic", pa.int32()),
        ("producerId", pa.int64()),
        ("batchSize", pa.int64()),
        *((name, pa.int64()) for name in _SUMS),
    ]
)
_MOST_TABLES = 64


class _Counts(NamedTuple):
    """The counts of some chunks of a partition, which can be added up."""

    directory: str
    """The partition's directory."""
    results: list[str]
    """The `ChunkResult` of each chunk, as JSON text."""
    kinds: pa.Table
    """One row per kind of batch. A table, since there can be as many producers as batches."""
    times: list[int]
    """The smallest and the largest timestamp, or nothing."""


def _kinds_of(batches: pa.RecordBatch) -> pa.Table:
    """Counts rows of the table `batches` by kind."""
    size = batches.column("size")
    powers = [1 << (one - 1).bit_length() for one in size.to_pylist()]
    columns = {
        # An unknown codec has no name, and a batch that was not decoded has no sums.
        "compression": pc.fill_null(batches.column("compression"), "unknown"),
        "magic": batches.column("magic"),
        "producerId": pc.fill_null(batches.column("producerId"), -1),
        "batchSize": pa.array(powers, pa.int64()),
        "batches": pa.array([1] * batches.num_rows, pa.int64()),
        "records": pc.fill_null(batches.column("count"), 0).cast(pa.int64()),
        "size": size,
        "uncompressedSize": pc.fill_null(batches.column("uncompressedSize"), 0),
    }
    return _added([pa.table(columns, schema=_KINDS)])


def _added(tables: Iterable[pa.Table], by: Sequence[str] = _KIND) -> pa.Table:
    """Adds up tables of counts by kind, or by some of its columns."""
    table = pa.concat_tables([_KINDS.empty_table(), *tables])
    sums = table.group_by(list(by), use_threads=False).aggregate([(name, "sum") for name in _SUMS])
    return sums.rename_columns([name.removesuffix("_sum") for name in sums.column_names])


def _count_task(task: DecodeTask, options: ReadOptions) -> list[_Counts]:
    """Returns one result for each partition that the task has chunks of."""
    return [
        _count_chunks(directory, chunks, options) for directory, chunks in groupby(task.chunks, _directory_of)
    ]


def _directory_of(chunk: str) -> str:
    path: str = json.loads(chunk)["path"]
    return os.path.dirname(path)


def _count_chunks(
    directory: str, chunks: Iterable[str | _core.FetchedChunk], options: ReadOptions
) -> _Counts:
    results: list[str] = []
    kinds: list[pa.Table] = []
    times: list[int] = []
    for item in (item for chunk in chunks for item in read_chunk(chunk, options)):
        if isinstance(item, str):
            results.append(item)
        elif item.table == "batches":
            kinds.append(_kinds_of(item.batch))
            if len(kinds) == _MOST_TABLES:
                kinds = [_added(kinds)]
        elif item.table == "records":
            known = item.batch.column("timestampMillis")
            # -1 means that there is no timestamp.
            extremes = pc.min_max(known.filter(pc.not_equal(known, -1))).as_py()
            if extremes["min"] is not None:
                times = _extremes([*times, extremes["min"], extremes["max"]])
    return _Counts(directory, results, _added(kinds), times)


def _extremes(times: Iterable[int]) -> list[int]:
    known = list(times)
    return [min(known), max(known)] if known else []


def statistics(
    sources: Sequence[str],
    engine: Engine,
    *,
    max_decompressed_bytes: int,
    choice: PartitionChoice = EVERYTHING,
    command_config: CommandConfig = None,
    progress: Progress = NO_PROGRESS,
) -> StatsReport:
    """Counts over all partitions at and below `sources`, decoding every record.

    Partitions of running clusters are fetched one after the other, by this process.

    Raises:
        OSError: if a cluster does not answer or refuses.
        RefusedError: if there is nothing to read, or `max_decompressed_bytes` is more than tables can hold.

    """
    check_column_limit("max_decompressed_bytes", max_decompressed_bytes)
    files, clusters = split_sources(sources, command_config)
    live = live_partitions(clusters, command_config, choice, max_decompressed_bytes)
    inputs = find_inputs(files, choice, may_be_none=bool(clusters))
    options = ReadOptions(("timestampMillis",), True, max_decompressed_bytes)
    plans, task_results = decode_partitions(
        DecodeJob(
            lambda: partial(_count_task, options=options),
            "stats",
            lambda counts: (text for one in counts for text in one.results),
            writes_files=False,
        ),
        inputs.listings,
        engine,
        progress=progress,
    )
    counted = [counts for result in task_results for counts in result]
    reconciled = reconcile_partitions(plans, (result for one in counted for result in one.results))
    for one in live:
        path = json.loads(one.listing)["path"]
        counts = _count_chunks(path, one.chunks(), options)
        counted.append(counts)
        reconciled.append(one.reconciled(counts.results))
    by_directory = defaultdict(list)
    for counts in counted:
        by_directory[counts.directory].append(counts)
    partitions = [
        PartitionStats(
            path=partition["path"],
            topic=partition["topic"],
            partition=partition["partition"],
            first_offset=partition["first_offset"],
            last_offset=partition["last_offset"],
            **_stats_of(by_directory[partition["path"]], [partition]),
        )
        for partition in reconciled
    ]
    by_topic: dict[str, list[PartitionReconciliation]] = defaultdict(list)
    for partition in reconciled:
        by_topic[partition["topic"]].append(partition)
    topics = [
        TopicStats(
            topic=topic,
            partitions=len(own),
            **_stats_of([counts for one in own for counts in by_directory[one["path"]]], own),
        )
        for topic, own in by_topic.items()
    ]
    return StatsReport(
        total=_stats_of(counted, reconciled),
        topics=topics,
        partitions=partitions,
        skipped=inputs.skipped,
        balanced=all(partition["balanced"] for partition in reconciled),
    )


def _stats_of(counted: Sequence[_Counts], partitions: Sequence[PartitionReconciliation]) -> Stats:
    kinds = _added(one.kinds for one in counted)
    total = _group(kinds)
    times = _extremes(time for one in counted for time in one.times)
    producers = _added([kinds], ["producerId"]).sort_by([("size", "descending"), ("producerId", "ascending")])
    return Stats(
        segments=sum(len(partition["segments"]) for partition in partitions),
        size=sum(partition["size"] for partition in partitions),
        batches=total["batches"],
        records=sum(partition["rows"] for partition in partitions),
        control_records=sum(partition["control"] for partition in partitions),
        uncompressed_size=total["uncompressed_size"],
        ratio=total["ratio"],
        codecs=_groups(_added([kinds], ["compression"])),
        magics=_groups(_added([kinds], ["magic"])),
        producers=_groups(producers.slice(0, _core.LISTED)),
        other_producers=_group(producers.slice(_core.LISTED)),
        producer_count=producers.num_rows,
        batch_sizes=_groups(_added([kinds], ["batchSize"])),
        min_timestamp=times[0] if times else None,
        max_timestamp=times[1] if times else None,
        problems=sum(partition["problems"] for partition in partitions),
    )


def _groups(sums: pa.Table) -> dict[str, Group]:
    """One group for each row, by the first column."""
    ordered = sums.sort_by(sums.column_names[0])
    names = ordered.column(0).to_pylist()
    return {str(name): _group(ordered.slice(at, 1)) for at, name in enumerate(names)}


def _group(sums: pa.Table) -> Group:
    batches, records, size, uncompressed = (pc.sum(sums.column(name)).as_py() or 0 for name in _SUMS)
    return Group(
        batches=batches,
        records=records,
        size=size,
        uncompressed_size=uncompressed,
        ratio=round(uncompressed / size, 4) if size else None,
    )
