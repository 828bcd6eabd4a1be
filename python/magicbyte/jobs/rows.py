"""Rows of Arrow batches written as partitions: what `df.write.format("magicbyte")` does.

A task writes the rows it is given, a directory a topic and partition; the driver joins what all tasks
wrote in the order of offsets, adds the sidecars, and gives each partition its name.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte import _core
from magicbyte.jobs.failure import JobError, RefusedError
from magicbyte.jobs.workspace import UNFINISHED, sync, write_text

__all__ = ["COLUMNS", "Part", "RowsOptions", "commit_rows", "staging_in", "write_rows"]

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
"""`value` is needed; the others are those of Spark's Kafka sink, and offset and timestamp."""


@dataclass(frozen=True)
class RowsOptions:
    """How rows become segments."""

    topic: str | None = None
    """Of rows, if there is no such column."""
    compression: int = 0
    """The codec's number."""
    level: int | None = None
    batch_bytes: int = 256 << 10
    """A batch is built when it has about this many bytes."""
    segment_bytes: int = 1 << 30
    timestamp: int = -1
    """Milliseconds, of rows without one."""


@dataclass(frozen=True)
class Part:
    """What one task wrote of one partition."""

    topic: str
    partition: int
    segments: tuple[str, ...]
    """SegmentSummaries, as the core's JSON texts."""
    rows: int
    first_offset: int
    next_offset: int
    has_offsets: bool
    """Whether the rows said their offsets."""


def staging_in(path: str) -> str:
    """Makes the hidden directory in which a job's tasks write: its own, more may write into `path`.

    If the job is killed it stays. Readers pass it over; nothing tells it from one that is written, as no
    process lives from a job's begin to its end, so it is for the operator to remove.
    """
    staging = os.path.join(os.path.abspath(path), f".{uuid.uuid4().hex[:12]}{UNFINISHED}")
    os.makedirs(staging)
    return staging


def write_rows(batches: Iterable[pa.RecordBatch], staging: str, options: RowsOptions) -> list[Part]:
    """Writes a task's rows; their order in each partition is kept.

    Raises:
        ValueError: a row that is no record; the message names it.

    """
    attempt = os.path.join(staging, f"attempt-{uuid.uuid4().hex[:12]}")
    writers: dict[tuple[str, int], _core.RowsWriter] = {}
    has_offsets = False
    for batch in batches:
        has_offsets = "offset" in batch.schema.names
        for place, rows in _by_partition(batch, options.topic):
            if place not in writers:
                writers[place] = _core.RowsWriter(
                    os.path.join(attempt, f"{place[0]}-{place[1]}"),
                    compression=options.compression,
                    level=options.level,
                    batch_bytes=options.batch_bytes,
                    segment_bytes=options.segment_bytes,
                    timestamp=options.timestamp,
                )
            writers[place].append(rows)
    parts = []
    for (topic, partition), writer in sorted(writers.items()):
        segments, rows_written, first, behind = writer.finish()
        if first is not None:
            part = Part(topic, partition, tuple(segments), rows_written, first, behind, has_offsets)
            parts.append(part)
    return parts


def _by_partition(
    batch: pa.RecordBatch, default: str | None
) -> Iterator[tuple[tuple[str, int], pa.RecordBatch]]:
    """A batch's rows by topic and partition, in their order."""
    if batch.num_rows == 0:
        return
    topics = batch.column("topic") if "topic" in batch.schema.names else pa.nulls(batch.num_rows, pa.string())
    topics = pc.fill_null(topics, default) if default is not None else topics
    if topics.null_count:
        raise ValueError("a row has no topic: give the column topic, or the option topic")
    partitions = (
        pc.fill_null(batch.column("partition"), 0)
        if "partition" in batch.schema.names
        else pa.array([0] * batch.num_rows, pa.int32())
    )
    keys = pa.table({"topic": topics, "partition": partitions})
    places = keys.group_by(["topic", "partition"], use_threads=False).aggregate([]).to_pylist()
    for place in places:
        topic, partition = place["topic"], place["partition"]
        if not _is_topic(topic) or partition < 0:
            raise ValueError(f"{topic!r}, {partition} is no topic and partition")
        if len(places) == 1:
            yield (topic, partition), batch
            return
        mask = pc.and_(pc.equal(topics, topic), pc.equal(partitions, partition))
        yield (topic, partition), batch.filter(mask)


def _is_topic(name: str) -> bool:
    """As `org.apache.kafka.common.internals.Topic.validate`."""
    legal = all(letter.isascii() and (letter.isalnum() or letter in "._-") for letter in name)
    return legal and 0 < len(name) < 250 and name not in (".", "..")


def commit_rows(path: str, staging: str, parts: Sequence[Part]) -> None:
    """Makes partitions of what the tasks wrote, below `path`: all of them, or after a failure none.

    `reconciliation-JOB.json` beside them says how many rows came in, and how many records and bytes
    a reader finds in the files. It comes last: where it is missing, the job was killed among its renames.

    Raises:
        RefusedError: a partition is there already; rows of one partition came from several tasks
            without saying their offsets, or with offsets that overlap.
        JobError: a reader finds not what came in.

    """
    by_place: dict[tuple[str, int], list[Part]] = defaultdict(list)
    for part in parts:
        by_place[part.topic, part.partition].append(part)
    for (topic, partition), of_partition in by_place.items():
        _check(path, f"{topic}-{partition}", of_partition)
    done = os.path.join(staging, "done")
    os.makedirs(done)
    places = []
    for number, (place, of_partition) in enumerate(sorted(by_place.items())):
        # A number: with what is put around it while it is written, a topic's name can be too long.
        target = os.path.join(done, str(number))
        directory = _core.begin_partition(target)
        summaries = [
            json.dumps(_moved(json.loads(summary), str(directory)))
            for part in of_partition
            for summary in part.segments
        ]
        _core.finish_partition(target, summaries)
        places.append(_Place(*place, target, sum(part.rows for part in of_partition)))
    report = _reconciliation(places)
    if not report["balanced"]:
        raise JobError(f"not every row is found again, nothing is published: {json.dumps(report)}")
    job = os.path.basename(staging).removeprefix(".").removesuffix(UNFINISHED)
    reconciliation = os.path.join(staging, f"reconciliation-{job}.json")
    write_text(reconciliation, json.dumps(report, indent=1))
    moves = [(place.directory, os.path.join(path, f"{place.topic}-{place.partition}")) for place in places]
    _move_all([*moves, (reconciliation, os.path.join(path, os.path.basename(reconciliation)))])
    sync(path)
    shutil.rmtree(staging)


def _move_all(moves: Sequence[tuple[str, str]]) -> None:
    """Renames all, or after a failure none."""
    moved: list[tuple[str, str]] = []
    try:
        for source, target in moves:
            if os.path.lexists(target):
                raise RefusedError(f"{target} came into being while the job ran: nothing is published")
            os.rename(source, target)
            moved.append((source, target))
    except BaseException:
        for source, target in reversed(moved):
            os.rename(target, source)
        raise


@dataclass(frozen=True)
class _Place:
    """A partition that is written, and not yet published."""

    topic: str
    partition: int
    directory: str
    rows: int
    """That came in."""


def _reconciliation(places: Sequence[_Place]) -> dict[str, object]:
    """What came in, and what a reader finds in the files written."""
    partitions = []
    for place in places:
        log = _core.PartitionLogCore(place.directory)
        found = json.loads(log.verify("read_uncommitted", _core.DEFAULT_MAX_DECOMPRESSED_BYTES))
        partitions.append(
            {
                "topic": place.topic,
                "partition": place.partition,
                "rows": place.rows,
                "records": found["rows"],
                "size": found["size"],
                "segments": len(found["segments"]),
                "first_offset": found["first_offset"],
                "last_offset": found["last_offset"],
                "balanced": found["balanced"] and found["rows"] == place.rows,
            }
        )
    balanced = all(one["balanced"] for one in partitions)
    return {"magicbyte": _core.__version__, "balanced": balanced, "partitions": partitions}


def _check(path: str, name: str, parts: list[Part]) -> None:
    if os.path.lexists(os.path.join(path, name)):
        raise RefusedError(f"{name} is in {path} already: write to another directory")
    parts.sort(key=lambda part: part.first_offset)
    if len(parts) > 1 and not all(part.has_offsets for part in parts):
        raise RefusedError(
            f"the rows of {name} came from {len(parts)} tasks and do not say their offsets: "
            "repartition by topic and partition, or add the column offset"
        )
    for before, behind in pairwise(parts):
        if behind.first_offset < before.next_offset:
            raise RefusedError(
                f"the rows of {name} are not in order: one task wrote the offsets {before.first_offset} to "
                f"{before.next_offset - 1}, another {behind.first_offset} to {behind.next_offset - 1}: "
                "repartitionByRange by topic, partition and offset, and sort within partitions"
            )


def _moved(summary: dict[str, object], directory: str) -> dict[str, object]:
    """Moves an attempt's segments into the partition's directory."""
    moved = os.path.join(directory, f"part-{summary['base_offset']:020}")
    source = str(summary["directory"])
    os.makedirs(moved)
    for ending in ("log", "index", "timeindex"):
        name = f"{summary['base_offset']:020}.{ending}"
        os.rename(os.path.join(source, name), os.path.join(moved, name))
    return {**summary, "directory": moved}
