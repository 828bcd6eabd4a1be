"""The tables `offsets` and `topics` of an ingest: what Kafka's own topics say about the others."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import pyarrow as pa

from magicbyte.internal_topics.names import CLUSTER_METADATA, CONSUMER_OFFSETS
from magicbyte.jobs.find.cluster import read_cluster
from magicbyte.jobs.find.partitions import Inputs
from magicbyte.jobs.offsets import log_ends, offsets_of
from magicbyte.jobs.publish.parquet import DataFile, ParquetFile, file_name
from magicbyte.jobs.publish.table_files import WriteOptions
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import Planned
from magicbyte.jobs.run.progress import Progress
from magicbyte.jobs.run.reading import record_batch_of
from magicbyte.jobs.topics import Topic, topics_of
from magicbyte.model import PartitionListing

__all__ = ["OFFSETS", "TOPICS", "InternalTables", "InternalTopicsReport", "write_internal_tables"]

OFFSETS = pa.schema(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("leaderEpoch", pa.int32()),
        ("metadata", pa.string()),
        ("commitTimestamp", pa.int64()),
        ("expireTimestamp", pa.int64()),
        ("logEndOffset", pa.int64()),
        ("lastStableOffset", pa.int64()),
        ("lag", pa.int64()),
        ("committedLag", pa.int64()),
        ("logStartOffset", pa.int64()),
        ("lostAhead", pa.int64()),
        ("outOfRange", pa.bool_()),
    ]
)
"""One row per committed offset; the columns are those of `magicbyte.jobs.offsets.CommittedOffset`."""

TOPICS = pa.schema(
    [
        ("topic", pa.string()),
        ("topicId", pa.string()),
        ("cleanupPolicy", pa.string()),
        ("policyFrom", pa.string()),
        ("configs", pa.map_(pa.string(), pa.string())),
        ("partition", pa.int32()),
        ("leader", pa.int32()),
        ("leaderEpoch", pa.int32()),
        ("replicas", pa.list_(pa.field("element", pa.int32()))),
        ("isr", pa.list_(pa.field("element", pa.int32()))),
        ("here", pa.bool_()),
    ]
)
"""One row per partition, with the columns of `magicbyte.jobs.topics.Topic` and `TopicPartition`."""

_ROWS = 4096


class InternalTopicsReport(TypedDict):
    """Data that the tables `offsets` and `topics` leave out."""

    pending_offsets: int
    """Offsets committed in transactions that had not ended."""
    problems: list[str]
    """Problems with reading Kafka's own topics."""


@dataclass
class InternalTables:
    """The tables that were written."""

    files: list[DataFile] = field(default_factory=list)
    schemas: dict[str, pa.Schema] = field(default_factory=dict)
    report: InternalTopicsReport = field(
        default_factory=lambda: InternalTopicsReport(pending_offsets=0, problems=[])
    )


def write_internal_tables(
    inputs: Inputs, plans: Sequence[Planned], engine: Engine, options: WriteOptions, progress: Progress
) -> InternalTables:
    """Writes `offsets` if `__consumer_offsets` is among the partitions of `plans`, and `topics` if
    `__cluster_metadata` is.
    """
    tables = InternalTables()
    by_topic: dict[str, list[PartitionListing]] = {CONSUMER_OFFSETS: [], CLUSTER_METADATA: []}
    for listing in inputs.listings:
        if listing["segments"] and listing["topic"] in by_topic:
            by_topic[listing["topic"]].append(listing)
    if by_topic[CONSUMER_OFFSETS]:
        offsets = offsets_of(
            by_topic[CONSUMER_OFFSETS],
            lambda _commits: log_ends(plans),
            engine,
            max_decompressed_bytes=options.read.max_decompressed_bytes,
            progress=progress,
        )
        _write(tables, "offsets", OFFSETS, offsets["offsets"], options)
        tables.report["pending_offsets"] = offsets["pending"]
        tables.report["problems"] += offsets["problems"]
    if by_topic[CLUSTER_METADATA]:
        topics = topics_of(read_cluster(by_topic[CLUSTER_METADATA][0]), inputs.directories)
        _write(tables, "topics", TOPICS, [row for topic in topics["topics"] for row in _rows(topic)], options)
        tables.report["problems"] += topics["problems"]
    return tables


def _rows(topic: Topic) -> Iterator[Mapping[str, Any]]:
    for partition in topic["partitions"]:
        yield {**topic, **partition, "configs": list(topic["configs"].items())}


def _write(
    tables: InternalTables,
    table: str,
    schema: pa.Schema,
    rows: Sequence[Mapping[str, Any]],
    options: WriteOptions,
) -> None:
    tables.schemas[table] = schema
    if not rows:
        return
    path = os.path.join(options.staging, table, file_name("00000", options.codec))
    file = ParquetFile(path, schema, options.codec)
    for start in range(0, len(rows), _ROWS):
        file.write(record_batch_of(rows[start : start + _ROWS], schema))
    tables.files.append(DataFile(table, None, path, file.rows, file.close()))
