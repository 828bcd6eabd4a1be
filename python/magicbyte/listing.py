"""Facts from a listing that matter for reading its partition."""

from __future__ import annotations

import base64
import os
from typing import TypeGuard

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.log_dir import META_PROPERTIES, read_meta_properties
from magicbyte.model import PartitionListing, Problem
from magicbyte.partition_files import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA

__all__ = [
    "ID_LENGTH",
    "LivePartitionListing",
    "checkpointed_epochs",
    "cluster_id_of",
    "first_offset_of",
    "high_watermark_of",
    "is_live",
    "known_topic_id",
    "log_start_of",
    "topic_id_of",
    "unread_segments",
]

ID_LENGTH = 22
"""Characters of the IDs of topics and remote segments."""
_ID_BYTES = 16


class LivePartitionListing(PartitionListing):
    """A partition of a running cluster, as it was when a job began: it has offsets, and no files.

    Its `checkpoints` are the start of the log and the high watermark; its `leader_epochs` are those of the
    leader.
    """

    command_config: str | None
    """The absolute path of the file of properties, which every process that connects reads."""
    topic_id: str | None
    """None if the brokers are older than Kafka 2.8."""
    cluster_id: str | None
    last_stable_offset: int
    """The offset at which `read_committed` consumers end (exclusive)."""
    size: int
    """About the bytes of the log, as the brokers say; 0 if they do not."""


def is_live(listing: PartitionListing) -> TypeGuard[LivePartitionListing]:
    """True for a partition of a running cluster."""
    return "last_stable_offset" in listing


def first_offset_of(listing: PartitionListing) -> int | None:
    """The offset where the log begins, by its first file, or as a running cluster says; None if it has no
    files.
    """
    if is_live(listing):
        return log_start_of(listing) or 0
    return listing["segments"][0]["base_offset"] if listing["segments"] else None


def high_watermark_of(listing: LivePartitionListing) -> int:
    """The end (exclusive) of what consumers of a running cluster get."""
    checkpoints = listing["checkpoints"]
    return (checkpoints["high_watermark"] if checkpoints is not None else None) or 0


def unread_segments(listing: PartitionListing) -> list[Problem]:
    """The problems that keep a part of the log from being read; problems of sidecars do not."""
    return [
        problem
        for problem in listing["problems"]
        if problem["segment"] is None or _core.is_segment_file(problem["segment"])
    ]


def log_start_of(listing: PartitionListing) -> int | None:
    """The log's start, if records before it are left out (`Listing::log_start_offset` in Rust)."""
    checkpoints = listing["checkpoints"]
    start = checkpoints["log_start_offset"] if checkpoints is not None else None
    return None if start is None or start <= 0 or listing["include_deleted_records"] else start


def topic_id_of(listing: PartitionListing) -> str | None:
    """The topic's ID, from `partition.metadata`, in tiered storage from the directory's name, or from a
    running cluster.
    """
    if is_live(listing):
        return listing["topic_id"]
    if listing["state"] == "remote":
        directory, name = os.path.split(listing["path"])
        return (directory if name.isdecimal() else name)[-ID_LENGTH:]
    try:
        data = _core.read_sidecar(os.path.join(listing["path"], PARTITION_METADATA))
        return _core.partition_metadata(data.decode(errors="replace")).topic_id
    except (Error, OSError):
        return None


def checkpointed_epochs(directory: str) -> list[tuple[int, int]]:
    """The (epoch, start offset) pairs of `leader-epoch-checkpoint`; none if it is missing or unreadable."""
    try:
        data = _core.read_sidecar(os.path.join(directory, LEADER_EPOCH_CHECKPOINT))
        return _core.leader_epoch_checkpoint(data.decode())
    except (Error, OSError, UnicodeDecodeError):
        return []


def cluster_id_of(listing: PartitionListing) -> str | None:
    """The cluster's ID, from the `meta.properties` of the broker's directory that the partition is in, or
    from a running cluster.
    """
    if is_live(listing):
        return listing["cluster_id"]
    try:
        path = os.path.join(os.path.dirname(listing["path"]), META_PROPERTIES)
        return read_meta_properties(path).get("cluster.id") or None
    except (Error, OSError):
        return None


def known_topic_id(listing: PartitionListing) -> str | None:
    """The topic's ID if it is valid: 128 bits in URL-safe base64, not all of them zero."""
    found = topic_id_of(listing)
    try:
        data = base64.b64decode(f"{found or ''}==", altchars=b"-_", validate=True)
    except ValueError:
        return None
    return found if len(data) == _ID_BYTES and any(data) else None
