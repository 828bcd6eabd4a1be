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
from magicbyte.jobs.failure import RefusedError

__all__ = ["COLUMNS", "Part", "RowsOptions", "commit_rows", "staging_in", "write_rows"]

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
"""`value` is needed; the others are those of Spark's Kafka sink, and offset and timestamp."""
_HIDDEN = ".magicbyte-unfinished-"


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
    """Makes the hidden directory in which a job's tasks write."""
    staging = os.path.join(os.path.abspath(path), f"{_HIDDEN}{uuid.uuid4().hex[:12]}")
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
    """Makes partitions of what the tasks wrote, below `path`; each is there whole or not at all.

    `reconciliation-JOB.json` beside them says how many rows came in, and how many records and bytes
    a reader finds in the files.

    Raises:
        RefusedError: a partition is there already; rows of one partition came from several tasks
            without saying their offsets, or with offsets that overlap.

    """
    by_place: dict[tuple[str, int], list[Part]] = defaultdict(list)
    for part in parts:
        by_place[part.topic, part.partition].append(part)
    for (topic, partition), of_partition in by_place.items():
        _check(path, f"{topic}-{partition}", of_partition)
    done = os.path.join(staging, "done")
    os.makedirs(done)
    for (topic, partition), of_partition in sorted(by_place.items()):
        target = os.path.join(done, f"{topic}-{partition}")
        directory = _core.begin_partition(target)
        summaries = [
            json.dumps(_moved(json.loads(summary), str(directory)))
            for part in of_partition
            for summary in part.segments
        ]
        _core.finish_partition(target, summaries)
    report = os.path.join(done, "reconciliation.json")
    with open(report, "w", encoding="utf-8") as file:
        json.dump(_reconciliation(by_place, done), file, indent=1)
    for topic, partition in sorted(by_place):
        name = f"{topic}-{partition}"
        os.rename(os.path.join(done, name), os.path.join(path, name))
    # A job's own name: more may be written into the same directory.
    job = os.path.basename(staging).removeprefix(_HIDDEN)
    os.rename(report, os.path.join(path, f"reconciliation-{job}.json"))
    shutil.rmtree(staging)


def _reconciliation(by_place: dict[tuple[str, int], list[Part]], done: str) -> dict[str, object]:
    """What came in, and what a reader finds in the files written."""
    partitions = []
    for (topic, partition), parts in sorted(by_place.items()):
        log = _core.PartitionLogCore(os.path.join(done, f"{topic}-{partition}"))
        found = json.loads(log.verify("read_uncommitted", _core.DEFAULT_MAX_DECOMPRESSED_BYTES))
        rows = sum(part.rows for part in parts)
        partitions.append(
            {
                "topic": topic,
                "partition": partition,
                "rows": rows,
                "records": found["rows"],
                "size": found["size"],
                "segments": len(found["segments"]),
                "first_offset": found["first_offset"],
                "last_offset": found["last_offset"],
                "balanced": found["balanced"] and found["rows"] == rows,
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
