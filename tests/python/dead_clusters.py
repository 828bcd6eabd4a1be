"""The log directories of a dead cluster of three nodes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import magicbyte
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
from replicas import batches, replica

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


def state_of(root: Path, node: int = 1) -> Any:
    """The state that a controller reads from the restored metadata."""
    folded = fold_metadata([list_directory(str(root / "out" / f"node{node}/logs1/__cluster_metadata-0"))])
    assert folded.problems == []
    assert folded.is_whole
    return folded.state


def only(report: Any) -> Any:
    (one,) = report["partitions"]
    return one
