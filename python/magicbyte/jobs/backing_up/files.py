"""The files of a backup beside its segments, as a broker has them."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Container, Mapping, Sequence
from glob import glob
from typing import NamedTuple

from magicbyte.internal_topics.names import CLUSTER_METADATA, TRANSACTION_STATE
from magicbyte.jobs.backing_up.image import MetadataImage, snapshot_of
from magicbyte.jobs.backing_up.kept_log import aside_name, check_directory, deleted_name, future_name
from magicbyte.jobs.backing_up.manifest import BackedUpPartition, BackupManifest, write_file
from magicbyte.jobs.describing.cluster import Description, Settings, TopicDescription
from magicbyte.jobs.find.coordinated_ids import coordinated_ids
from magicbyte.jobs.publish.workspace import sync
from magicbyte.log import PartitionLog
from magicbyte.log_dir import (
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_OFFSET_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    format_offset_checkpoint,
)

__all__ = ["METADATA", "OF_LOG_DIR", "SEGMENT_SUFFIX", "LogDirImage", "remove_leftovers", "write_log_dir"]

METADATA = f"{CLUSTER_METADATA}-0"
"""The directory of the snapshot of the metadata."""
_KRAFT_VERSION = "kraft.version"
SEGMENT_SUFFIX = ".log"
OF_LOG_DIR = (
    META_PROPERTIES,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_OFFSET_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
)
"""The files at the top of a backup."""


def remove_leftovers(out: str, manifest: BackupManifest, *, is_full: bool) -> None:
    """Ends the replacements of logs by full copies, which a killed run has begun.

    A copy that is not whole is removed, unless this run goes on with it: a broker would load it. What is the
    only copy stays, in the place of the log if it was whole.
    """
    for entry in manifest["partitions"]:
        name = f"{entry['topic']}-{entry['partition']}"
        current, future, deleted = (
            os.path.join(out, one)
            for one in (name, future_name(name, entry["topic_id"]), deleted_name(name, entry["topic_id"]))
        )
        for path in (current, future, deleted):
            check_directory(path)
        if os.path.isdir(deleted):
            # The old log was renamed because the new one was whole.
            if not os.path.isdir(current):
                os.rename(future if os.path.isdir(future) else deleted, current)
                sync(out)
            if os.path.isdir(deleted):
                shutil.rmtree(deleted)
        elif os.path.isdir(future) and not os.path.isdir(current):
            os.rename(future, os.path.join(out, aside_name(name)))
        elif not is_full and os.path.isdir(future):
            shutil.rmtree(future)


class LogDirImage(NamedTuple):
    """The content of a log directory beside its logs."""

    description: Description
    settings: Settings
    entries: Sequence[BackedUpPartition]
    made_ms: int
    with_acls: bool


def write_log_dir(out: str, manifest: BackupManifest, content: LogDirImage, elsewhere: Container[str]) -> int:
    """Writes `meta.properties`, the checkpoints, and the snapshot of the metadata.

    Returns:
        The highest producer id that the coordinators have given out, or -1. Segments with names in
        `elsewhere` are not read: the manifest has theirs.

    """
    description, settings, entries, made_ms, with_acls = content
    has_ids = all(topic.topic_id is not None for topic in description.topics.values())
    version, node = ("1", "node.id") if has_ids else ("0", "broker.id")
    properties = {
        "version": version,
        "cluster.id": manifest["cluster_id"],
        node: str(manifest["node_id"]),
        "directory.id": manifest["directory_id"],
    }
    files = {META_PROPERTIES: "".join(f"{name}={value}\n" for name, value in properties.items())}
    for name, offsets in (
        (LOG_START_OFFSET_CHECKPOINT, {_place(one): one["log_start_offset"] for one in entries}),
        (REPLICATION_OFFSET_CHECKPOINT, {_place(one): one["next_offset"] for one in entries}),
        (RECOVERY_POINT_OFFSET_CHECKPOINT, {_place(one): one["next_offset"] for one in entries}),
    ):
        files[name] = format_offset_checkpoint(offsets)
    for name, text in files.items():
        write_file(os.path.join(out, name), text.encode())
    ids = {one["topic"]: one["topic_id"] for one in entries}
    coordinated = max(manifest["max_producer_id"], _max_coordinated(out, elsewhere))
    image = MetadataImage(
        description=description,
        settings=settings,
        topics=[one for name, one in sorted(description.topics.items()) if _is_kept(one, ids)],
        node_id=manifest["node_id"],
        directory_id=manifest["directory_id"],
        max_producer_id=max([coordinated, *(one["max_producer_id"] for one in entries)]),
        with_acls=with_acls,
        made_ms=made_ms,
    )
    _write_metadata(os.path.join(out, METADATA), image)
    return coordinated


def _place(entry: BackedUpPartition) -> tuple[str, int]:
    return entry["topic"], entry["partition"]


def _is_kept(topic: TopicDescription, ids: Mapping[str, str | None]) -> bool:
    return topic.topic_id is not None and ids.get(topic.name) == topic.topic_id


def _max_coordinated(out: str, elsewhere: Container[str]) -> int:
    """The highest producer id that the transaction coordinator knows, or -1."""
    highest = -1
    for path in glob(f"{TRANSACTION_STATE}-*/*{SEGMENT_SUFFIX}", root_dir=out):
        if path not in elsewhere and re.match(rf"{TRANSACTION_STATE}-\d+/", path):
            # Damage here is no reason to have no backup of all else.
            log = PartitionLog(os.path.join(out, path), mode="PERMISSIVE")
            highest = max([highest, *coordinated_ids(log)])
    return highest


def _write_metadata(directory: str, image: MetadataImage) -> None:
    """Writes the snapshot, and removes those of earlier runs. Clusters with ZooKeeper have none."""
    snapshot = snapshot_of(image)
    if snapshot is None:
        return
    name, content = snapshot
    check_directory(directory)
    os.makedirs(directory, exist_ok=True)
    write_file(os.path.join(directory, name), content)
    if not image.description.features.get(_KRAFT_VERSION):
        # The voters of a static quorum are not in the snapshot.
        state = {
            "leaderId": image.node_id,
            "leaderEpoch": 1,
            "votedId": -1,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": image.node_id}],
            "data_version": 0,
        }
        write_file(os.path.join(directory, "quorum-state"), json.dumps(state).encode())
    for other in os.listdir(directory):
        if other.endswith(".checkpoint") and other != name:
            os.unlink(os.path.join(directory, other))
