"""The log directories of a dead cluster of three nodes."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import magicbyte
from magicbyte import _core
from magicbyte.internal_topics.share_groups import StateBatch
from magicbyte.jobs.find.metadata_log import fold_metadata
from magicbyte.jobs.find.partitions import list_directory
from metadata_records import (
    acl,
    config,
    control,
    feature,
    producer_ids,
    quota,
    scram,
    token,
    topic_id,
    voters,
    write_log,
    write_meta,
)
from metadata_records import (
    batches as metadata_batches,
)
from replicas import TIME, batches, replica

TOPIC_CONFIG, BROKER_CONFIG = 2, 4
ORDERS = [batches(0, 100), batches(100, 200, epoch=3)]
LOG = [batch for part in ORDERS for batch in part]
UNCLEAN = "unclean.leader.election.enable"
SETTINGS = [
    config(TOPIC_CONFIG, "orders", "retention.ms", "-1"),
    acl(9, "User:ann", "orders"),
    quota({"user": "ann"}, "producer_byte_rate", 4096.0),
    scram("ann"),
    token("token-1"),
    producer_ids(7000),
]


def directory_id(number: int) -> str:
    return base64.urlsafe_b64encode(topic_id(number)).decode().rstrip("=")


def metadata(*records: bytes, dynamic: bool = True) -> list[bytes]:
    """A metadata log with voters 1 to 3 in it, and these records."""
    start = [control(5, b"\0\0\0\1\0", 0, 1), control(6, voters([1, 2, 3]), 1, 1)] if dynamic else []
    first = [feature("eligible.leader.replicas.version", 1), feature("metadata.version", 25)]
    return [*start, *metadata_batches([*first, *records], start=len(start), epoch=1)]


class World:
    """The log directories of a cluster of three nodes."""

    def __init__(self, root: Path, records: Sequence[bytes], *, dynamic: bool = True) -> None:
        self.root = root
        self.log_dirs = {node: root / f"b{node}" for node in (1, 2, 3)}
        for node, log_dir in self.log_dirs.items():
            write_meta(log_dir, node, directory_id(node))
            write_log(log_dir, metadata(*records, dynamic=dynamic))

    def put(self, node: int, data: Sequence[bytes], name: str = "orders-0", **options: Any) -> Path:
        """Writes a copy of a partition."""
        return replica(self.log_dirs[node], {0: data}, name=name, **options) / name

    def restore(self, *nodes: int, **options: Any) -> Any:
        """Restores from the directories of these nodes, or of all, into `out`."""
        sources = [self.log_dirs[node] for node in nodes or self.log_dirs]
        return magicbyte.restore(sources, **{"out": self.root / "out", **options})


def offsets_file(world: World, document: Any) -> Path:
    """A file with the ends of logs, for `--until`."""
    path = world.root / "offsets.json"
    path.write_text(json.dumps(document))
    return path


def restored(world: World, until: Any) -> Any:
    """The report of a restore of logs as they were; nothing is damaged."""
    report = world.restore(until=until)
    assert report["balanced"]
    assert report["problems"] == []
    return report


def state_of(root: Path, node: int = 1) -> Any:
    """The state that a controller reads from the restored metadata."""
    folded = fold_metadata([list_directory(str(root / "out" / f"node{node}/logs1/__cluster_metadata-0"))])
    assert folded.problems == []
    assert folded.is_whole
    return folded.state


def only(report: Any) -> Any:
    (one,) = report["partitions"]
    return one


def commit(group: str, offset: int) -> tuple[bytes, bytes]:
    """An `OffsetCommitKey` of version 1 and its value of version 3, for orders-0."""
    name = group.encode()
    key = struct.pack(">hh", 1, len(name)) + name + struct.pack(">h6si", 6, b"orders", 0)
    return key, struct.pack(">hqihq", 3, offset, -1, 0, 1)


def share_state(
    start: int, offset: int = 0, time: int = 0, batches: Sequence[StateBatch] = (), epoch: int = 0
) -> bytes:
    """A batch of `__share_group_state`: the state of the group `sharing` in orders-0."""
    key = {"groupId": "sharing", "topicId": directory_id(1), "partition": 0}
    names = ("firstOffset", "lastOffset", "deliveryState", "deliveryCount")
    states = [dict(zip(names, one, strict=True)) for one in batches]
    value = {"startOffset": start, "stateBatches": states, "snapshotEpoch": epoch}
    builder = magicbyte.RecordsBuilder(partition_leader_epoch=3)
    record = _core.encode_coordinator_record("__share_group_state", 0, 0, key, value)
    builder.append(offset, TIME + time, *record)
    return builder.build()
