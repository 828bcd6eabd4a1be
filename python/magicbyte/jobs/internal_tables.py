"""The tables of an ingest about Kafka's own topics: `offsets`, `share_offsets` and `topics`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import pyarrow as pa

from magicbyte.internal_topics.names import CLUSTER_METADATA, CONSUMER_OFFSETS, SHARE_GROUP_STATE
from magicbyte.jobs.find.cluster import read_cluster
from magicbyte.jobs.find.partitions import Inputs
from magicbyte.jobs.offsets import offsets_of
from magicbyte.jobs.publish.parquet import DataFile, ParquetFile, file_name
from magicbyte.jobs.publish.table_files import WriteOptions
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.log_ranges import log_ends
from magicbyte.jobs.run.plan import Planned
from magicbyte.jobs.run.progress import Progress
from magicbyte.jobs.run.reading import record_batch_of
from magicbyte.jobs.share_offsets import ShareOffset, read_share_states
from magicbyte.jobs.topics import Topic, topics_of
from magicbyte.listing import is_live
from magicbyte.model import PartitionListing

__all__ = [
    "OFFSETS",
    "SHARE_OFFSETS",
    "TOPICS",
    "InternalTables",
    "InternalTopicsReport",
    "write_internal_tables",
]

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

SHARE_OFFSETS = pa.schema(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("topicId", pa.string()),
        ("partition", pa.int32()),
        ("startOffset", pa.int64()),
        ("leaderEpoch", pa.int32()),
        ("stateEpoch", pa.int32()),
        ("deliveryCompleteCount", pa.int32()),
        (
            "stateBatches",
            pa.list_(
                pa.field(
                    "element",
                    pa.struct(
                        [
                            ("firstOffset", pa.int64()),
                            ("lastOffset", pa.int64()),
                            ("deliveryState", pa.string()),
                            ("deliveryCount", pa.int32()),
                        ]
                    ),
                )
            ),
        ),
        ("logStartOffset", pa.int64()),
        ("logEndOffset", pa.int64()),
        ("lag", pa.int64()),
        ("lostAhead", pa.int64()),
        ("outOfRange", pa.bool_()),
        ("statePartition", pa.int32()),
        ("stateLog", pa.string()),
    ]
)
"""One row per position of a share group; the columns are those of
`magicbyte.jobs.share_offsets.ShareOffset`.
"""

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
    """Data that the tables of internal topics leave out."""

    pending_offsets: int
    """Offsets committed in transactions that had not ended."""
    problems: list[str]
    """Problems with reading Kafka's own topics."""
    left_out: list[str]
    """The topics of a running cluster that have no tables of their own, only records."""


@dataclass
class InternalTables:
    """The tables that were written."""

    files: list[DataFile] = field(default_factory=list)
    schemas: dict[str, pa.Schema] = field(default_factory=dict)
    report: InternalTopicsReport = field(
        default_factory=lambda: InternalTopicsReport(pending_offsets=0, problems=[], left_out=[])
    )


def write_internal_tables(
    inputs: Inputs, plans: Sequence[Planned], engine: Engine, options: WriteOptions, progress: Progress
) -> InternalTables:
    """Writes `offsets` if `__consumer_offsets` is among the partitions of `plans`, `share_offsets` if
    `__share_group_state` is, and `topics` if `__cluster_metadata` is; not for those of a running cluster.
    """
    tables = InternalTables()
    by_topic: dict[str, list[PartitionListing]] = {
        CONSUMER_OFFSETS: [],
        SHARE_GROUP_STATE: [],
        CLUSTER_METADATA: [],
    }
    for listing in inputs.listings:
        if listing["segments"] and listing["topic"] in by_topic:
            by_topic[listing["topic"]].append(listing)
    live = {listing["topic"] for listing in inputs.listings if is_live(listing)}
    tables.report["left_out"] = sorted(live & by_topic.keys())
    cluster = read_cluster(by_topic[CLUSTER_METADATA][:1])
    limit = options.read.max_decompressed_bytes
    if by_topic[CONSUMER_OFFSETS] or by_topic[SHARE_GROUP_STATE]:
        offsets = offsets_of(
            by_topic[CONSUMER_OFFSETS],
            lambda _: log_ends(plans),
            engine,
            shares=read_share_states(by_topic[SHARE_GROUP_STATE], cluster, limit),
            max_decompressed_bytes=limit,
            progress=progress,
        )
        if by_topic[CONSUMER_OFFSETS]:
            _write(tables, "offsets", OFFSETS, offsets["offsets"], options)
        if by_topic[SHARE_GROUP_STATE]:
            rows = [_share_row(row) for row in offsets["share_offsets"]]
            _write(tables, "share_offsets", SHARE_OFFSETS, rows, options)
        tables.report["pending_offsets"] = offsets["pending"] or 0
        tables.report["problems"] += offsets["problems"]
    if by_topic[CLUSTER_METADATA]:
        topics = topics_of(cluster, inputs.directories)
        _write(tables, "topics", TOPICS, [row for topic in topics["topics"] for row in _rows(topic)], options)
        tables.report["problems"] += topics["problems"]
    return tables


def _share_row(row: ShareOffset) -> Mapping[str, Any]:
    batches = [
        {
            "firstOffset": one["first_offset"],
            "lastOffset": one["last_offset"],
            "deliveryState": one["delivery_state"],
            "deliveryCount": one["delivery_count"],
        }
        for one in row["state_batches"] or ()
    ]
    return {**row, "state_batches": batches}


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
