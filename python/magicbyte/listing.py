"""Facts from a listing that matter for reading its partition."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.log_dir import META_PROPERTIES, read_meta_properties

if TYPE_CHECKING:
    from magicbyte.model import PartitionListing, Problem

__all__ = [
    "ID_LENGTH",
    "checkpointed_epochs",
    "cluster_id_of",
    "known_topic_id",
    "log_start_of",
    "topic_id_of",
    "unread_segments",
]

ID_LENGTH = 22
"""Characters of the IDs of topics and remote segments."""
_ID_BYTES = 16


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
    """The topic's ID, from `partition.metadata`, or in tiered storage from the directory's name."""
    if listing["state"] == "remote":
        directory, name = os.path.split(listing["path"])
        return (directory if name.isdecimal() else name)[-ID_LENGTH:]
    try:
        data = _core.read_sidecar(os.path.join(listing["path"], "partition.metadata"))
        return _core.partition_metadata(data.decode(errors="replace")).topic_id
    except (Error, OSError):
        return None


def checkpointed_epochs(directory: str) -> list[tuple[int, int]]:
    """The (epoch, start offset) pairs of `leader-epoch-checkpoint`; none if it is missing or unreadable."""
    try:
        data = _core.read_sidecar(os.path.join(directory, "leader-epoch-checkpoint"))
        return _core.leader_epoch_checkpoint(data.decode())
    except (Error, OSError, UnicodeDecodeError):
        return []


def cluster_id_of(listing: PartitionListing) -> str | None:
    """The cluster's ID, from the `meta.properties` of the broker's directory that the partition is in."""
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
