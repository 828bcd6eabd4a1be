"""The positions of share groups, according to the records of `__share_group_state`
(`ShareCoordinatorShard`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from magicbyte.internal_topics.decode import Decoder
from magicbyte.internal_topics.names import SHARE_GROUP_STATE

__all__ = ["SharePartition", "SharePartitions"]

_UNKNOWN = -1


@dataclass(frozen=True)
class SharePartition:
    """A share group's state of a partition."""

    group: str
    topic_id: str
    partition: int
    start_offset: int | None
    """The share-partition start offset: what is before it is done. None if nobody has read yet."""
    delivery_complete: int | None
    """Records from there on that are done (KIP-1226); None if the state does not tell."""


class SharePartitions:
    """Folds records of `__share_group_state`, in offset order."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, str, int], SharePartition] = {}

    @property
    def states(self) -> list[SharePartition]:
        """The state of each group and partition."""
        return list(self._states.values())

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Applies a record.

        Raises:
            LookupError: its type is unknown.
            Error: it does not decode.

        """
        name, of, data = Decoder(SHARE_GROUP_STATE).of_coordinator(key, value)
        place = of["groupId"], of["topicId"], of["partition"]
        if data is None:
            self._states.pop(place, None)
            return
        before = None if name == "ShareSnapshot" else self._states.get(place)
        self._states[place] = _merged(before or SharePartition(*place, None, None), data)


def _merged(state: SharePartition, data: dict[str, Any]) -> SharePartition:
    """Applies a snapshot or an update; -1 stands for what an update leaves as it is."""
    start, complete = data["startOffset"], data.get("deliveryCompleteCount", _UNKNOWN)
    return replace(
        state,
        start_offset=state.start_offset if start == _UNKNOWN else start,
        delivery_complete=state.delivery_complete if complete == _UNKNOWN else complete,
    )
