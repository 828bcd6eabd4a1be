"""Logs of a backup that have another history than those of the leaders, by epochs and by the last record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from magicbyte import _core
from magicbyte.jobs.backing_up.kept_log import KeptLog
from magicbyte.jobs.backing_up.leaders import Leaders
from magicbyte.model import Place

__all__ = ["find_divergences", "find_other_histories"]

_Answer = tuple[int, int] | None
"""The last epoch that a leader knows up to the one that was asked for, and its end (exclusive)."""


def find_divergences(
    cluster: _core.ClusterReader, leaders: Leaders, logs: Iterable[KeptLog], ends: Mapping[Place, int]
) -> dict[Place, int]:
    """The offset at which each log diverges from that of its leader; logs that agree are not in it.

    The leader tells where it ends the last epoch of a log, as for a follower. If it does not know that one,
    another history begins after the last epoch that both know. A log without epochs, or of a leader that
    knows none of them, can only be too long: `ends` has the ends of the leaders' logs.

    Raises:
        OSError: leaders do not answer.

    """
    found: dict[Place, int] = {}
    asked = {log.place: (log, len(log.leader_epochs)) for log in logs}
    while asked:
        answers = _ask(cluster, leaders, asked)
        following: dict[Place, tuple[KeptLog, int]] = {}
        for place, (log, epochs) in asked.items():
            if place in leaders.unavailable:
                continue
            answer = answers.get(place)
            if answer is None and epochs > 0:
                following[place] = log, epochs - 1
                continue
            end = (
                ends[place] if answer is None else _divergence(log, log.leader_epochs[epochs - 1][0], answer)
            )
            if end < log.next_offset:
                found[place] = end
        asked = following
    return found


def find_other_histories(
    cluster: _core.ClusterReader,
    leaders: Leaders,
    logs: Iterable[KeptLog],
    bounds: Mapping[Place, tuple[int, int]],
) -> list[Place]:
    """The partitions whose leaders have another record at the offset of the last one of the backup's log.

    Epochs do not tell it: a cluster that comes back from an older copy of all its disks counts them again.
    A compacted log may not have the record any more, which says nothing. `bounds` has the start and the end
    (exclusive) of the leaders' logs.

    Raises:
        OSError: leaders do not answer.

    """
    own = {
        log.place: record
        for log in logs
        if (record := log.last_record) is not None and record["offset"] in range(*bounds[log.place])
    }

    def ask(places: Sequence[Place]) -> dict[Place, str | None]:
        digests = cluster.digest_records([(*place, own[place]["offset"]) for place in places])
        return dict(zip(places, digests, strict=True))

    answers = leaders.ask(list(own), ask) if own else {}
    return [place for place, digest in answers.items() if digest not in (None, own[place]["digest"])]


def _ask(
    cluster: _core.ClusterReader, leaders: Leaders, asked: Mapping[Place, tuple[KeptLog, int]]
) -> dict[Place, _Answer]:
    def ask(places: Sequence[Place]) -> dict[Place, _Answer]:
        last = [(*place, asked[place][0].leader_epochs[asked[place][1] - 1][0]) for place in places]
        return dict(zip(places, cluster.ends_of_leader_epochs(last), strict=True))

    places = [place for place, (_, epochs) in asked.items() if epochs > 0]
    return leaders.ask(places, ask) if places else {}


def _divergence(log: KeptLog, asked: int, answer: tuple[int, int]) -> int:
    """The end (exclusive) of what the log and its leader have in common, by the leader's answer about an
    epoch, of which there may be an earlier common one.
    """
    epoch, end = answer
    # Brokers before Kafka 2.0 do not tell the epoch.
    epoch = asked if epoch < 0 else epoch
    later = (start for own, start in log.leader_epochs if own > epoch)
    return min(end, next(later, log.next_offset))
