"""The state of share groups, according to the records of `__share_group_state`
(`ShareCoordinatorShard`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, NamedTuple

from magicbyte.internal_topics.coordinated_keys import partition_of_key
from magicbyte.internal_topics.decode import Decoder
from magicbyte.internal_topics.names import SHARE_GROUP_STATE

__all__ = ["DELIVERY_STATES", "SharePartition", "SharePartitions", "StateBatch", "state_partition_of"]

_UNKNOWN = -1
DELIVERY_STATES = {0: "AVAILABLE", 1: "ACQUIRED", 2: "ACKNOWLEDGED", 3: "ARCHIVING", 4: "ARCHIVED"}
"""`RecordState` by its id."""
_MAX_STATE_BATCHES = 100_000
"""The limit for the batches of a share-partition. A broker tracks at most 10,000 records of it
(`group.share.partition.max.record.locks`).
"""
_UNMERGED = 1024
"""The number of batches of updates that may wait, so that a short update need not merge a long state."""


class StateBatch(NamedTuple):
    """Offsets (inclusive) with the same delivery state, a key of `DELIVERY_STATES`."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


@dataclass(frozen=True)
class SharePartition:
    """A share group's state of a partition; None for what the state does not tell."""

    group: str
    topic_id: str
    partition: int
    start_offset: int | None
    """The share-partition start offset: what is before it is done. None if nobody has read yet."""
    leader_epoch: int | None
    state_epoch: int | None
    delivery_complete_count: int | None
    """Records from there on that are done (KIP-1226)."""
    state_batches: Sequence[StateBatch]
    """In offset order, without overlaps."""
    snapshot_epoch: int | None
    """The number of the last snapshot."""


class SharePartitions:
    """Folds records of a partition of `__share_group_state`, in offset order."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, str, int], _State] = {}

    @property
    def states(self) -> list[SharePartition]:
        """The state of each group and partition."""
        return [
            SharePartition(
                *place,
                _known(state.start_offset),
                _known(state.leader_epoch),
                _known(state.state_epoch),
                _known(state.delivery_complete_count),
                state.merged()[:_MAX_STATE_BATCHES],
                state.snapshot_epoch,
            )
            for place, state in self._states.items()
        ]

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Applies a record.

        Raises:
            LookupError: its type is unknown.
            Error: it does not decode.

        """
        name, of, data = Decoder(SHARE_GROUP_STATE).of_coordinator(key, value)
        place = of["groupId"], of["topicId"], of["partition"]
        if name == "ShareSnapshot" and data is None:
            self._states.pop(place, None)
        elif data is not None:
            state = self._states.get(place)
            if name == "ShareSnapshot" or state is None:
                state = self._states[place] = _State(data["snapshotEpoch"], data.get("stateEpoch", _UNKNOWN))
            state.update(data)


@dataclass
class _State:
    """A state as Kafka has it: -1 is unknown."""

    snapshot_epoch: int
    state_epoch: int
    start_offset: int = _UNKNOWN
    leader_epoch: int = _UNKNOWN
    delivery_complete_count: int = _UNKNOWN
    _updates: list[tuple[int, list[StateBatch]]] = field(default_factory=list)
    """The start offset of each update, and its batches. The first has those that were merged."""
    _waiting: int = 0

    def update(self, data: dict[str, Any]) -> None:
        """Applies a snapshot to an empty state, or an update (`ShareCoordinatorShard.merge`)."""
        if data["startOffset"] != _UNKNOWN:
            self.start_offset = data["startOffset"]
        if data["leaderEpoch"] != _UNKNOWN:
            self.leader_epoch = data["leaderEpoch"]
        self.delivery_complete_count = data.get("deliveryCompleteCount", _UNKNOWN)
        batches = [
            StateBatch(one["firstOffset"], one["lastOffset"], one["deliveryState"], one["deliveryCount"])
            for one in data["stateBatches"]
            if one["firstOffset"] <= one["lastOffset"]
        ]
        # A snapshot is used as it is, and only updates move its start.
        self._updates.append((self.start_offset if self._updates else _UNKNOWN, batches))
        self._waiting += 1 + len(batches)
        if self._waiting > max(_UNMERGED, len(self._updates[0][1])):
            self.merged()

    def merged(self) -> Sequence[StateBatch]:
        """The batches of all updates. They lose offsets before a start that came with them or later."""
        if len(self._updates) > 1:
            kept: list[StateBatch] = []
            start = _UNKNOWN
            for at, batches in reversed(self._updates):
                start = max(start, at)
                kept += (
                    one._replace(first_offset=max(one.first_offset, start))
                    for one in batches
                    if one.last_offset >= start
                )
            self._updates = [(_UNKNOWN, list(_combined(kept))[:_MAX_STATE_BATCHES])]
            self._waiting = 0
        return self._updates[0][1]


def _combined(batches: Iterable[StateBatch]) -> Iterator[StateBatch]:
    """Yields batches that do not overlap: where two do, the one with the higher delivery count, then state,
    has the offset (`PersisterStateBatchCombiner`). Equal neighbours become one.
    """
    waiting = sorted(batches)
    waiting.reverse()
    active: list[tuple[int, int, int]] = []
    """Negative count and state, and the last offset: the strongest batch comes first."""
    last: StateBatch | None = None
    offset = 0
    while waiting or active:
        if not active:
            offset = waiting[-1].first_offset
        while waiting and waiting[-1].first_offset <= offset:
            one = waiting.pop()
            heappush(active, (-one.delivery_count, -one.delivery_state, one.last_offset))
        count, state, end = active[0]
        if end < offset:
            heappop(active)
            continue
        if waiting:
            end = min(end, waiting[-1].first_offset - 1)
        batch = StateBatch(offset, end, -state, -count)
        if last is not None and last.last_offset + 1 == offset and last[2:] == batch[2:]:
            last = last._replace(last_offset=end)
        else:
            if last is not None:
                yield last
            last = batch
        offset = end + 1
    if last is not None:
        yield last


def state_partition_of(group: str, topic_id: str, partition: int, partitions: int) -> int:
    """The partition of `__share_group_state`, of `partitions`, that has a share-partition's state: by the
    hash of its `SharePartitionKey.asCoordinatorKey` (`ShareCoordinatorService.partitionFor`).
    """
    return partition_of_key(f"{group}:{topic_id}:{partition}", partitions)


def _known(number: int) -> int | None:
    return None if number == _UNKNOWN else number
