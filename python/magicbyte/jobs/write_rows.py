"""The job of `df.write.format("magicbyte")`: writes rows of Arrow batches as partitions.

A task writes its rows, with a directory for each partition. Then the driver joins the segments of all tasks
in offset order, adds the sidecars and publishes the partitions.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte import _core
from magicbyte.errors import JobError, RefusedError
from magicbyte.internal_topics.names import is_topic
from magicbyte.jobs.find.outputs import UNFINISHED
from magicbyte.jobs.publish.workspace import sync, write_text
from magicbyte.log import PartitionLog
from magicbyte.storage.paths import absolute

__all__ = ["COLUMNS", "Part", "RowsOptions", "commit_rows", "staging_in", "write_rows"]

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
"""The columns of Spark's Kafka sink, and offset and timestamp. Only `value` is required."""


_TopicPartition = tuple[str, int]


@dataclass(frozen=True)
class RowsOptions:
    """Options for writing rows as segments."""

    topic: str | None = None
    """The topic of rows without one."""
    compression: int = 0
    """The codec's number."""
    level: int | None = None
    """The codec's level; None for Kafka's default."""
    batch_bytes: int = 256 << 10
    """The approximate size of a batch."""
    segment_bytes: int = 1 << 30
    """The maximum size of a segment."""
    timestamp: int = -1
    """The timestamp (ms) of rows without that column; a null in it is a record without a timestamp."""


@dataclass(frozen=True)
class Part:
    """The part of a partition that one task wrote."""

    topic: str
    partition: int
    segments: tuple[str, ...]
    """The core's `SegmentSummary` of each segment, as JSON text."""
    rows: int
    first_offset: int
    next_offset: int
    has_offsets: bool
    """True if the rows came with offsets."""


def staging_in(path: str) -> str:
    """Creates a hidden directory for the files of one job; other jobs may write to `path`, too.

    It is left over if the job is killed, and readers skip it. As no process runs from the beginning to
    the end of a job, nothing distinguishes it from that of a running job: the operator has to remove it.
    """
    staging = os.path.join(absolute(path), f".{uuid.uuid4().hex[:12]}{UNFINISHED}")
    os.makedirs(staging)
    return staging


def write_rows(batches: Iterable[pa.RecordBatch], staging: str, options: RowsOptions) -> list[Part]:
    """Writes the rows of a task, in order within each partition.

    Raises:
        ValueError: for a row that is not a valid record, which the message names.

    """
    attempt = os.path.join(staging, f"attempt-{uuid.uuid4().hex[:12]}")
    writers: dict[_TopicPartition, _core.RowsWriter] = {}
    has_offsets = False
    for batch in batches:
        has_offsets = "offset" in batch.schema.names
        for (topic, partition), rows in _by_partition(batch, options.topic):
            if (topic, partition) not in writers:
                writers[topic, partition] = _core.RowsWriter(
                    os.path.join(attempt, f"{topic}-{partition}"),
                    compression=options.compression,
                    level=options.level,
                    batch_bytes=options.batch_bytes,
                    segment_bytes=options.segment_bytes,
                    timestamp=options.timestamp,
                )
            writers[topic, partition].append(rows)
    parts = []
    for (topic, partition), writer in sorted(writers.items()):
        segments, rows_written, first_offset, next_offset = writer.finish()
        if first_offset is not None:
            part = Part(
                topic, partition, tuple(segments), rows_written, first_offset, next_offset, has_offsets
            )
            parts.append(part)
    return parts


def _by_partition(
    batch: pa.RecordBatch, default: str | None
) -> Iterator[tuple[tuple[str, int], pa.RecordBatch]]:
    """Splits the rows of a batch by topic and partition, in order."""
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
    pairs = keys.group_by(["topic", "partition"], use_threads=False).aggregate([]).to_pylist()
    for pair in pairs:
        topic, partition = pair["topic"], pair["partition"]
        if not is_topic(topic) or partition < 0:
            raise ValueError(f"{topic!r}, {partition} is not a topic and partition")
        if len(pairs) == 1:
            yield (topic, partition), batch
            return
        mask = pc.and_(pc.equal(topics, topic), pc.equal(partitions, partition))
        yield (topic, partition), batch.filter(mask)


def commit_rows(
    path: str, staging: str, parts: Sequence[Part], topic_ids: Mapping[str, str] | None = None
) -> None:
    """Publishes what the tasks wrote as partitions below `path`: all of them, or none after a failure.

    `topic_ids` has the IDs of topics for `partition.metadata`; a KRaft broker sets aside what has none.

    `reconciliation-JOB.json` next to them has the number of rows that were written, and of records and bytes
    that a reader finds in the files. It is published last: if it is missing, the job was killed during its
    renames.

    Raises:
        RefusedError: if a partition exists already, or the rows of one partition come from several tasks
            without offsets or with overlapping offsets.
        JobError: if a reader does not find exactly what was written.

    """
    by_partition: dict[_TopicPartition, list[Part]] = defaultdict(list)
    for part in parts:
        by_partition[part.topic, part.partition].append(part)
    for (topic, partition), of_partition in by_partition.items():
        _check(path, f"{topic}-{partition}", of_partition)
    done = os.path.join(staging, "done")
    os.makedirs(done)
    written = []
    for number, ((topic, partition), of_partition) in enumerate(sorted(by_partition.items())):
        # A number, since the name could become too long with the suffixes that are added while it is written.
        target = os.path.join(done, str(number))
        directory = _core.begin_partition(target)
        summaries = [
            json.dumps(_moved(json.loads(summary), str(directory)))
            for part in of_partition
            for summary in part.segments
        ]
        topic_id = (topic_ids or {}).get(topic)
        _core.finish_partition(target, summaries, topic_id=topic_id)
        rows = sum(part.rows for part in of_partition)
        written.append(_Unpublished(topic, partition, target, rows, topic_id))
    report = _reconciliation(written)
    if not report["balanced"]:
        raise JobError(f"not every row can be read back, nothing is published: {json.dumps(report)}")
    job = os.path.basename(staging).removeprefix(".").removesuffix(UNFINISHED)
    reconciliation = os.path.join(staging, f"reconciliation-{job}.json")
    write_text(reconciliation, json.dumps(report, indent=1))
    moves = [(one.directory, os.path.join(path, f"{one.topic}-{one.partition}")) for one in written]
    _move_all([*moves, (reconciliation, os.path.join(path, os.path.basename(reconciliation)))])
    sync(path)
    shutil.rmtree(staging)


def _move_all(moves: Sequence[tuple[str, str]]) -> None:
    """Renames everything, or nothing after a failure."""
    moved: list[tuple[str, str]] = []
    try:
        for source, target in moves:
            if os.path.lexists(target):
                raise RefusedError(f"{target} was created while the job ran: nothing is published")
            os.rename(source, target)
            moved.append((source, target))
    except BaseException:
        for source, target in reversed(moved):
            os.rename(target, source)
        raise


@dataclass(frozen=True)
class _Unpublished:
    """A partition that is complete but not yet published."""

    topic: str
    partition: int
    directory: str
    rows: int
    """Rows that were given to the writers."""
    topic_id: str | None


def _reconciliation(written: Sequence[_Unpublished]) -> dict[str, object]:
    """The rows that were written, and what a reader finds in the files."""
    partitions = []
    for partition in written:
        found = PartitionLog(partition.directory).verify().sums
        partitions.append(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "topic_id": partition.topic_id,
                "rows": partition.rows,
                "records": found["rows"],
                "size": found["size"],
                "segments": len(found["segments"]),
                "first_offset": found["first_offset"],
                "last_offset": found["last_offset"],
                "balanced": found["balanced"] and found["rows"] == partition.rows,
            }
        )
    balanced = all(partition["balanced"] for partition in partitions)
    return {"magicbyte": _core.__version__, "balanced": balanced, "partitions": partitions}


def _check(path: str, name: str, parts: list[Part]) -> None:
    if os.path.lexists(os.path.join(path, name)):
        raise RefusedError(f"{name} is in {path} already: write to another directory")
    parts.sort(key=lambda part: part.first_offset)
    if len(parts) > 1 and not all(part.has_offsets for part in parts):
        raise RefusedError(
            f"the rows of {name} came from {len(parts)} tasks and have no offsets: "
            "repartition by topic and partition, or add the column offset"
        )
    for one, following in pairwise(parts):
        if following.first_offset < one.next_offset:
            raise RefusedError(
                f"the rows of {name} are not in order: one task wrote the offsets {one.first_offset} to "
                f"{one.next_offset - 1}, another {following.first_offset} to {following.next_offset - 1}: "
                "repartitionByRange by topic, partition and offset, and sort within partitions"
            )


def _moved(summary: dict[str, object], directory: str) -> dict[str, object]:
    """Moves a segment of an attempt into the partition's directory; returns its summary from there."""
    moved = os.path.join(directory, f"part-{summary['base_offset']:020}")
    source = str(summary["directory"])
    os.makedirs(moved)
    for ending in ("log", "index", "timeindex"):
        name = f"{summary['base_offset']:020}.{ending}"
        os.rename(os.path.join(source, name), os.path.join(moved, name))
    return {**summary, "directory": moved}
