"""The states of remote segments that the records of `__remote_log_metadata` add up to
(`RemoteLogMetadataCache`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from magicbyte.errors import InvalidRecordError
from magicbyte.internal_topics.decode import Decoder
from magicbyte.internal_topics.names import REMOTE_LOG_METADATA

__all__ = ["Epochs", "RemoteSegmentState", "RemoteSegmentsState", "RemoteSpan"]


class RemoteSegmentState(IntEnum):
    """Kafka's `RemoteLogSegmentState`: a broker reads segments that are `COPY_SEGMENT_FINISHED`."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


Epochs = Mapping[int, int]
"""The first offset of each leader epoch, by epoch in ascending order."""


class RemoteSpan(NamedTuple):
    """The offsets in a remote segment, as a broker records them (`RemoteLogSegmentMetadata`)."""

    end_offset: int
    """The last offset."""
    epochs: Epochs
    """`segmentLeaderEpochs`: the epochs of the segment's records; the first begins where the segment does."""


_STATES = frozenset(RemoteSegmentState)


class RemoteSegmentsState:
    """The segments in tiered storage, as a broker knows them."""

    def __init__(self) -> None:
        self._states: dict[str, RemoteSegmentState] = {}
        self._spans: dict[str, RemoteSpan] = {}
        self._deleted: set[tuple[str, int]] = set()

    def replay(self, value: bytes | None) -> None:
        """Applies a record. One without a value says nothing: if the topic is compacted, it follows the last
        record of a segment (KIP-1266).

        Raises:
            LookupError: for a type of record that is not known.
            Error: for invalid bytes.

        """
        if value is None:
            return
        decoded = Decoder(REMOTE_LOG_METADATA)(None, value).value
        assert isinstance(decoded, dict)
        data = decoded["data"]
        if "topicIdPartition" in data:
            self._deleted.add((data["topicIdPartition"]["id"], data["topicIdPartition"]["partition"]))
        else:
            # A record of a snapshot names its segment alone.
            segment = data["segmentId"] if "segmentId" in data else data["remoteLogSegmentId"]["id"]
            number = data["remoteLogSegmentState"]
            if number not in _STATES:
                raise InvalidRecordError(f"remoteLogSegmentState {number}, expected 0 to {len(_STATES) - 1}")
            self._states[segment] = RemoteSegmentState(number)
            if "segmentLeaderEpochs" in data:
                pairs = ((one["leaderEpoch"], one["offset"]) for one in data["segmentLeaderEpochs"])
                self._spans[segment] = RemoteSpan(data["endOffset"], dict(sorted(pairs)))

    def state(self, topic_id: str | None, partition: int, segment: str) -> RemoteSegmentState | None:
        """The state of a segment, by its ID; None if no record names it."""
        if (topic_id, partition) in self._deleted:
            return RemoteSegmentState.DELETE_SEGMENT_STARTED
        return self._states.get(segment)

    def span(self, segment: str) -> RemoteSpan | None:
        """The offsets and leader epochs of a segment, by its ID; None if no record has them."""
        return self._spans.get(segment)
