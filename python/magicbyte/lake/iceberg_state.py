"""The states of a log's partitions, which an Iceberg table keeps in one of its properties.

    {"job": ID, "topics": {TOPIC: {PARTITION: [next offset, topic ID, epoch, its start, holes, cluster ID]}}}

as JSON, compressed and in base64. The property belongs to the table, not to a snapshot: it holds if the
newest job among the ancestors of the current snapshot is its own. Otherwise somebody has rolled the table
back. Tables of earlier versions have the offsets to continue at in the summary of each snapshot.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from magicbyte.errors import RefusedError
from magicbyte.jobs.find.lineage import EpochStart, Lineage
from magicbyte.jobs.run.holes import Hole
from magicbyte.jobs.run.sums import TopicPartition
from magicbyte.lake.state import PartitionState
from magicbyte.lake.table import COMMIT, described

if TYPE_CHECKING:
    from pyiceberg.table import Table

__all__ = ["STATE", "description", "packed_states", "stored_states"]

STATE = "magicbyte.state"
"""The name of the property."""
_MAX_BYTES = 1 << 28
"""The limit for the JSON text: a longer text is not a state of ours."""


def description(snapshot: Any) -> dict[str, Any] | None:
    """The description of a job in its snapshot; None if the snapshot is none of ours."""
    summary = snapshot.summary
    return None if summary is None else described(summary.additional_properties.get(COMMIT))


def packed_states(job: str, states: Mapping[TopicPartition, PartitionState]) -> str:
    """The property after a job."""
    topics: dict[str, dict[str, list[Any]]] = {}
    for (topic, partition), one in sorted(states.items()):
        lineage = one.lineage
        epoch = lineage.leader_epoch or EpochStart(-1, 0)
        fields = [one.next_offset, lineage.topic_id, *epoch, list(one.holes), lineage.cluster_id]
        topics.setdefault(topic, {})[str(partition)] = fields
    text = json.dumps({"job": job, "topics": topics}, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def stored_states(table: Table) -> dict[TopicPartition, PartitionState]:
    """The states of all partitions that the table's commits name, as far as they hold."""
    newest, expired = _newest_job(table)
    text = table.properties.get(STATE)
    if text is not None:
        job, states = _unpacked(table, text)
        is_elsewhere = any(_job(snapshot) == job for snapshot in table.snapshots())
        if newest == job or (newest is None and expired and not is_elsewhere):
            return states
    return dict(_in_summaries(table))


def _newest_job(table: Table) -> tuple[str | None, bool]:
    """The newest job among the current snapshot and its ancestors, and whether some of them have expired."""
    snapshot = table.current_snapshot()
    while snapshot is not None:
        if (job := _job(snapshot)) is not None:
            return job, False
        parent = snapshot.parent_snapshot_id
        if parent is None:
            return None, False
        snapshot = table.snapshot_by_id(parent)
    return None, True


def _job(snapshot: Any) -> str | None:
    found = description(snapshot)
    return None if found is None else str(found["job"])


def _unpacked(table: Table, text: str) -> tuple[str, dict[TopicPartition, PartitionState]]:
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
        state = json.loads(data)
        return str(state["job"]), dict(_states(state))
    except (ValueError, TypeError, KeyError, AttributeError, zlib.error):
        name = ".".join(table.name())
        raise RefusedError(f"{name}: its property {STATE} is not understood: it was changed") from None


def _states(state: Mapping[str, Any]) -> Iterator[tuple[TopicPartition, PartitionState]]:
    for topic, partitions in state["topics"].items():
        for partition, (next_offset, topic_id, epoch, start, holes, cluster_id) in partitions.items():
            yield (
                (topic, int(partition)),
                PartitionState(
                    next_offset,
                    Lineage(topic_id, None if epoch < 0 else EpochStart(epoch, start), cluster_id),
                    tuple(Hole(*hole) for hole in holes),
                ),
            )


def _in_summaries(table: Table) -> Iterator[tuple[TopicPartition, PartitionState]]:
    """The offsets in the summaries of an earlier version, if its jobs were the last ones."""
    found: dict[TopicPartition, PartitionState] = {}
    snapshot = table.current_snapshot()
    while snapshot is not None:
        if (commit := description(snapshot)) is not None:
            if "partitions" not in commit:
                return
            for partition in commit["partitions"]:
                found.setdefault(
                    (partition["topic"], partition["partition"]), PartitionState(partition["next_offset"])
                )
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    yield from found.items()
