"""Leaders of partitions: a backup leaves out what has none, and a later run takes it up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from magicbyte import _core
from magicbyte.jobs.backing_up.waits import Waits
from magicbyte.jobs.describing.cluster import describe_cluster
from magicbyte.model import Place

__all__ = ["Leaders"]

_ELECTION_S = 10.0
"""The time that is waited for leaders: a controller notices after 9 s that a broker is dead."""
_ASKED_AGAIN_S = 0.5
_NAMED = 10
"""The number of partitions that a message names."""

T = TypeVar("T")


class Leaders:
    """The leaders of a cluster's partitions, as far as they are there."""

    def __init__(
        self, cluster: _core.ClusterReader, waits: Waits, on_left_out: Callable[[Place], None]
    ) -> None:
        self._cluster = cluster
        self._waits = waits
        self._on_left_out = on_left_out
        self.unavailable: set[Place] = set()
        """The partitions that are left out."""

    def wait_for(self, places: Sequence[Place]) -> list[Place]:
        """The partitions that have a leader, after elections that are under way."""
        deadline = time.monotonic() + _ELECTION_S
        while (without := self._without(places)) and time.monotonic() < deadline:
            named = ", ".join(f"{topic}-{number}" for topic, number in sorted(without)[:_NAMED])
            self._waits.failed(f"{len(without):,} partitions have no leader: {named}")
            time.sleep(_ASKED_AGAIN_S)
        self._waits.succeeded()
        self._leave_out(without)
        return [place for place in places if place not in without]

    def ask(self, places: Sequence[Place], ask: Callable[[Sequence[Place]], T]) -> T:
        """The answer of leaders about partitions. Those that lose their leader meanwhile are left out.

        Raises:
            OSError: leaders that are there do not answer.

        """
        while True:
            asked = [place for place in places if place not in self.unavailable]
            try:
                return ask(asked)
            except OSError:
                if not self.leave_out(asked):
                    raise

    def leave_out(self, places: Iterable[Place]) -> bool:
        """Leaves out those of the partitions that have no leader; returns False if all have one."""
        without = self._without(places)
        self._leave_out(without)
        return bool(without)

    def _leave_out(self, places: set[Place]) -> None:
        for place in sorted(places - self.unavailable):
            self.unavailable.add(place)
            self._on_left_out(place)

    def _without(self, places: Iterable[Place]) -> set[Place]:
        topics = describe_cluster(self._cluster).topics
        return {
            (topic, number)
            for topic, number in places
            if topic not in topics
            or number not in topics[topic].partitions
            or not topics[topic].partitions[number].has_leader
        }
