"""The offsets of a stream, as Spark keeps them in a checkpoint.

They have the form of Spark's Kafka source, `{"topicA":{"0":23}}`: the next offset to read in each partition.
The key `/lineage`, which no topic can have, adds the lineage of each partition, where it is known:
`{"topicA":{"0":{"topicId":"e49HdDeaTmKdrrGZN_hIcg","leaderEpoch":2,"epochStart":17}}}`, and `clusterId`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from magicbyte.jobs.find.lineage import UNKNOWN, EpochStart, Lineage
from magicbyte.spark.offsets import TopicPartition, offsets_from_json, offsets_to_json

__all__ = ["Position", "StreamOffset", "positions_from_json", "positions_to_json"]

StreamOffset = dict[str, Any]
"""The JSON object that Spark passes, keeps and compares."""
_LINEAGE = "/lineage"


@dataclass(frozen=True)
class Position:
    """The position of a stream in a partition. New partitions are read from their first offset."""

    offset: int = 0
    """The next offset to read."""
    lineage: Lineage = UNKNOWN
    """The lineage of the record before it, as far as it is known."""


def positions_from_json(tree: StreamOffset) -> dict[TopicPartition, Position]:
    """Parses an offset of a stream, even from a checkpoint that was written without lineages."""
    lineages = tree.get(_LINEAGE, {})
    offsets = offsets_from_json({topic: tree[topic] for topic in tree if topic != _LINEAGE})
    return {
        (topic, partition): Position(offset, _lineage_of(lineages.get(topic, {}).get(str(partition), {})))
        for (topic, partition), offset in offsets.items()
    }


def positions_to_json(positions: Mapping[TopicPartition, Position]) -> StreamOffset:
    """The inverse of `positions_from_json`. The order is fixed, since Spark compares the texts."""
    lineages: dict[str, dict[str, Any]] = {}
    for (topic, partition), position in sorted(positions.items(), key=lambda item: item[0]):
        lineage = position.lineage
        fields = {
            "topicId": lineage.topic_id,
            "leaderEpoch": None if lineage.leader_epoch is None else lineage.leader_epoch.epoch,
            "epochStart": None if lineage.leader_epoch is None else lineage.leader_epoch.start_offset,
            "clusterId": lineage.cluster_id,
        }
        known = {name: value for name, value in fields.items() if value is not None}
        if known:
            lineages.setdefault(topic, {})[str(partition)] = known
    offsets = offsets_to_json({partition: position.offset for partition, position in positions.items()})
    return {**offsets, _LINEAGE: lineages} if lineages else {**offsets}


def _lineage_of(fields: Mapping[str, Any]) -> Lineage:
    epoch, start = fields.get("leaderEpoch"), fields.get("epochStart")
    return Lineage(
        fields.get("topicId"),
        None if epoch is None or start is None else EpochStart(epoch, start),
        fields.get("clusterId"),
    )
