"""The snapshot of a backup's metadata: the cluster as if the backup were its only node."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from magicbyte import _core
from magicbyte.internal_topics.metadata.nodes import Endpoint, Voter
from magicbyte.internal_topics.metadata.snapshot import Snapshot, partition_record
from magicbyte.internal_topics.metadata.topics import PartitionState
from magicbyte.jobs.describing.cluster import Description, Settings, TopicDescription

__all__ = ["MetadataImage", "snapshot_of"]

_REGISTER_BROKER, _TOPIC, _CONFIG, _FEATURE_LEVEL = 0, 2, 4, 12
_CLIENT_QUOTA, _PRODUCER_IDS, _ACL = 14, 15, 18
"""The types of records in `MetadataRecordType`."""
_METADATA_VERSION, _KRAFT_VERSION = "metadata.version", "kraft.version"
_WITH_LOG_DIRS = 17
"""The first `metadata.version` with the ids of log directories: 3.7-IV2."""
_PRODUCER_IDS_BLOCK = 1000
"""Ids that a controller gives out at once (`ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`)."""
_MAX_PRODUCER_ID = (1 << 63) - 1
_FIRST_EPOCH = 1


@dataclass(frozen=True)
class MetadataImage:
    """The metadata of a backup."""

    description: Description
    settings: Settings
    topics: Iterable[TopicDescription]
    """The topics that are kept."""
    node_id: int
    directory_id: str
    max_producer_id: int
    """The highest producer id in the logs, or -1."""
    with_acls: bool
    made_ms: int


def snapshot_of(image: MetadataImage) -> tuple[str, bytes] | None:
    """The name and the content of the snapshot; None for a cluster with ZooKeeper, which has no such log."""
    features = image.description.features
    if _METADATA_VERSION not in features:
        return None
    kraft_version = features.get(_KRAFT_VERSION, 0)
    voter = Voter(image.node_id, image.directory_id, [Endpoint("CONTROLLER", "localhost", 9093)])
    snapshot = Snapshot(
        max(image.description.metadata_end_offset, 1),
        _FIRST_EPOCH,
        image.made_ms,
        kraft_version,
        [voter] if kraft_version else [],
    )
    return snapshot.name, snapshot.content(_records(image))


def _records(image: MetadataImage) -> Iterator[bytes]:
    """The records in the order of `MetadataImage.write`."""
    features = dict(image.description.features)
    version = features.pop(_METADATA_VERSION)
    for name, level in {_METADATA_VERSION: version, **features}.items():
        if name != _KRAFT_VERSION:
            yield _record(_FEATURE_LEVEL, name=name, featureLevel=level)
    yield _registration(image, has_log_dirs=version >= _WITH_LOG_DIRS)
    for topic in image.topics:
        assert topic.topic_id is not None  # KRaft clusters have ids
        yield _record(_TOPIC, name=topic.name, topicId=topic.topic_id)
        for number, partition in sorted(topic.partitions.items()):
            state = PartitionState(
                replicas=[image.node_id],
                isr=[image.node_id],
                leader=image.node_id,
                leader_epoch=max(partition.leader_epoch, 0),
                directories=[],
            )
            yield partition_record(topic.topic_id, number, state, version)
    for kind, resource, name, value in image.settings.configs:
        yield _record(_CONFIG, resourceType=kind, resourceName=resource, name=name, value=value)
    if image.with_acls:
        for acl in image.settings.acls:
            yield _record(_ACL, id=_id_of(acl), **acl)
    for quota in image.settings.quotas:
        yield _record(_CLIENT_QUOTA, **quota)
    # No id that the logs know may be given to another producer.
    next_id = (image.max_producer_id // _PRODUCER_IDS_BLOCK + 1) * _PRODUCER_IDS_BLOCK
    next_id = min(next_id, _MAX_PRODUCER_ID)
    yield _record(_PRODUCER_IDS, brokerId=image.node_id, brokerEpoch=0, nextProducerId=next_id)


def _registration(image: MetadataImage, *, has_log_dirs: bool) -> bytes:
    data: dict[str, Any] = {
        "brokerId": image.node_id,
        "brokerEpoch": 0,
        "incarnationId": image.directory_id,
        "fenced": True,
    }
    if has_log_dirs:
        data["logDirs"] = [image.directory_id]
    return _core.encode_metadata_record(_REGISTER_BROKER, 3 if has_log_dirs else 1, data)


def _record(kind: int, **data: Any) -> bytes:
    return _core.encode_metadata_record(kind, 0, data)


def _id_of(acl: dict[str, Any]) -> str:
    """An id for an entry, which the requests of clients do not have: the same one in every backup."""
    digest = hashlib.sha256(json.dumps(acl, sort_keys=True).encode()).digest()
    return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")
