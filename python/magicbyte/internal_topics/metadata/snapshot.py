"""A snapshot of the cluster's metadata, from which controllers start (`RecordsSnapshotWriter`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from magicbyte import _core
from magicbyte._core import RecordsBuilder
from magicbyte.internal_topics.metadata.nodes import Voter
from magicbyte.internal_topics.metadata.topics import PartitionState

__all__ = ["Snapshot", "partition_record"]

_SNAPSHOT_HEADER, _SNAPSHOT_FOOTER, _KRAFT_VERSION, _KRAFT_VOTERS = 3, 4, 5, 6
"""`ControlRecordType`."""
_PARTITION_RECORD = 3
_DIRECTORIES = 17
"""The first `metadata.version` whose partitions name directories: 3.7-IV2."""
_UNASSIGNED = "A" * 22
_NEWEST_KRAFT_VERSION = 1
_BATCH_RECORDS = 1000


@dataclass(frozen=True)
class Snapshot:
    """The identity of a snapshot, and the quorum that it is for."""

    end_offset: int
    """The offset after the last record that the snapshot replaces."""
    epoch: int
    """The leader epoch of that record."""
    timestamp: int
    """The time (ms) of that record, and of those of the snapshot."""
    kraft_version: int
    voters: Sequence[Voter]
    """They are part of the snapshot if `kraft_version` is 1 or more."""

    @property
    def name(self) -> str:
        """The name of the file (`Snapshots.snapshotPath`)."""
        return f"{self.end_offset:020}-{self.epoch:010}.checkpoint"

    def content(self, values: Iterable[bytes]) -> bytes:
        """The bytes of the file, with these records. Its own offsets start at 0."""
        header = {"lastContainedLogTimestamp": self.timestamp}
        controls = [(_SNAPSHOT_HEADER, _core.encode_data("SnapshotHeaderRecord", 0, header))]
        if self.kraft_version > 0:
            version = {"kRaftVersion": self.kraft_version}
            voters = {"voters": [_voter(one) for one in self.voters]}
            controls.append((_KRAFT_VERSION, _core.encode_data("KRaftVersionRecord", 0, version)))
            controls.append((_KRAFT_VOTERS, _core.encode_data("VotersRecord", 0, voters)))
        batches = [self._controls(0, controls)]
        offset, records = len(controls), iter(values)
        while batch := list(islice(records, _BATCH_RECORDS)):
            builder = RecordsBuilder(base_offset=offset, partition_leader_epoch=self.epoch)
            for value in batch:
                builder.append(None, self.timestamp, None, value)
            batches.append(builder.build())
            offset += len(batch)
        footer = _core.encode_data("SnapshotFooterRecord", 0, {})
        return b"".join([*batches, self._controls(offset, [(_SNAPSHOT_FOOTER, footer)])])

    def _controls(self, offset: int, records: Iterable[tuple[int, bytes]]) -> bytes:
        builder = RecordsBuilder(is_control=True, base_offset=offset, partition_leader_epoch=self.epoch)
        for kind, value in records:
            builder.append(None, self.timestamp, bytes([0, 0, 0, kind]), value)
        return builder.build()


def partition_record(topic_id: str, number: int, state: PartitionState, metadata_version: int) -> bytes:
    """A `PartitionRecord`. Each replica is wherever its broker finds it.

    Raises:
        Error: a number does not fit.

    """
    data: dict[str, Any] = {
        "partitionId": number,
        "topicId": topic_id,
        "replicas": state.replicas,
        "isr": state.isr,
        "removingReplicas": state.removing_replicas,
        "addingReplicas": state.adding_replicas,
        "leader": state.leader,
        "leaderEpoch": state.leader_epoch,
        "partitionEpoch": state.partition_epoch,
    }
    has_directories = metadata_version >= _DIRECTORIES
    if has_directories:
        data["directories"] = [_UNASSIGNED] * len(state.replicas)
    return _core.encode_metadata_record(_PARTITION_RECORD, int(has_directories), data)


def _voter(voter: Voter) -> dict[str, Any]:
    return {
        "voterId": voter.voter_id,
        "voterDirectoryId": voter.directory_id or _UNASSIGNED,
        "endpoints": [{"name": one.name, "host": one.host, "port": one.port} for one in voter.endpoints],
        "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": _NEWEST_KRAFT_VERSION},
    }
