r"""The small text files that a broker keeps in the directory of a partition.

`partition.metadata` (`PartitionMetadataFile`) and `leader-epoch-checkpoint` (`LeaderEpochCheckpointFile`).

>>> format_leader_epochs([(0, 0), (3, 100)])
b'0\n2\n0 0\n3 100\n'
>>> format_partition_metadata("AAAAAAAAAAAAAAAAAAAAAQ")
b'version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n'
"""

from __future__ import annotations

from collections.abc import Collection

__all__ = [
    "LEADER_EPOCH_CHECKPOINT",
    "PARTITION_METADATA",
    "format_leader_epochs",
    "format_partition_metadata",
]

PARTITION_METADATA = "partition.metadata"
"""The id of the topic."""
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
"""The start offset of each leader epoch."""


def format_partition_metadata(topic_id: str) -> bytes:
    """The content of a `partition.metadata` with this id of 22 characters of base64."""
    return f"version: 0\ntopic_id: {topic_id}\n".encode()


def format_leader_epochs(epochs: Collection[tuple[int, int]]) -> bytes:
    """The content of a `leader-epoch-checkpoint` with these epochs and start offsets, in their order."""
    lines = "".join(f"{epoch} {start_offset}\n" for epoch, start_offset in epochs)
    return f"0\n{len(epochs)}\n{lines}".encode()
