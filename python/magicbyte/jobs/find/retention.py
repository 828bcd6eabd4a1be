"""Deletions of a broker between two writes of its checkpoints: segments by retention, and topics.

Checkpoints are written every few seconds, some once a minute (`LogManager`, `ReplicaManager`). Until then
they name log starts and topics that are no longer there, in every copy of a running broker and after a kill.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from magicbyte.errors import Error
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.find.assignments import metadata_of
from magicbyte.jobs.find.cluster import Cluster, read_cluster
from magicbyte.jobs.find.log_dirs import LogDir
from magicbyte.model import PartitionListing

__all__ = ["excuse_what_a_broker_deleted"]


def excuse_what_a_broker_deleted(log_dirs: Sequence[LogDir], listings: Sequence[PartitionListing]) -> None:
    """Corrects the checkpoints of logs that begin after them, and drops topics that have been deleted.

    A log that begins late stays a problem if its topic's policy forbids deletion. Without the cluster's
    metadata, retention may be the reason, and a missing directory stays a problem.
    """
    for log_dir in log_dirs:
        own = [listing for listing in listings if os.path.dirname(listing["path"]) == log_dir.path]
        late = [one for one in own if _begins_late(one)]
        if not (late or log_dir.absent):
            continue
        cluster = _cluster_of(log_dir, log_dirs, listings)
        for one in late:
            if cluster is None or not _forbids_deletion(cluster, one["topic"]):
                _excuse(one, log_dir)
        if cluster is not None and _knows_all(cluster, own):
            deleted = {partition["topic"] for partition in log_dir.absent} - cluster.state.names
            log_dir.notes.extend(
                f"the topic {topic} is deleted: checkpoints still name it" for topic in sorted(deleted)
            )
            log_dir.absent[:] = [
                partition for partition in log_dir.absent if partition["topic"] not in deleted
            ]


def _knows_all(cluster: Cluster, listings: Sequence[PartitionListing]) -> bool:
    """True if the metadata is whole and has every topic of a broker's directory: it then has all topics."""
    current = {listing["topic"] for listing in listings if listing["state"] == "current"}
    return not cluster.problems and current <= cluster.state.names | {CLUSTER_METADATA}


def _begins_late(listing: PartitionListing) -> bool:
    checkpoints = listing["checkpoints"]
    start = None if checkpoints is None else checkpoints["log_start_offset"]
    if start is None or not listing["segments"]:
        return False
    return 0 <= start < listing["segments"][0]["base_offset"]


def _excuse(listing: PartitionListing, log_dir: LogDir) -> None:
    assert listing["checkpoints"] is not None
    log_dir.notes.append(
        f"{listing['topic']}-{listing['partition']} begins at {listing['segments'][0]['base_offset']}, and"
        f" at {listing['checkpoints']['log_start_offset']} by log-start-offset-checkpoint: retention may have"
        " deleted what is between, since the checkpoint is written once a minute"
    )
    # The same as for Kafka: the log begins at its first segment.
    listing["checkpoints"]["log_start_offset"] = None


def _cluster_of(
    log_dir: LogDir, log_dirs: Sequence[LogDir], listings: Sequence[PartitionListing]
) -> Cluster | None:
    def broker(one: LogDir) -> tuple[str | None, int | None]:
        return one.cluster_id, one.broker_id

    own = [one for one in log_dirs if broker(one) == broker(log_dir)]
    metadata = metadata_of(own, log_dirs, listings)
    try:
        return None if metadata is None else read_cluster(metadata)
    except (Error, OSError):
        return None  # `assignments` reports it


def _forbids_deletion(cluster: Cluster, topic: str) -> bool:
    """True if neither time nor size deletes segments of a topic, according to the configs that are known."""
    policy, source = cluster.policy(topic)
    if source is None:
        return False
    if policy is not None and "delete" not in re.split(r"\s*,\s*", policy.strip()):
        return True
    return cluster.config(topic, "retention.ms") == "-1" and cluster.config(topic, "retention.bytes") in (
        None,
        "-1",
    )
