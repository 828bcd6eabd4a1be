"""The state of a partition as numbers of 64 bits, which a Delta table keeps as application transactions.

    magicbyte/TOPIC-PARTITION                   the offset to continue at
    magicbyte/TOPIC-PARTITION/epoch             the last leader epoch; -1 for none
    magicbyte/TOPIC-PARTITION/epoch-start       the offset where it began
    magicbyte/TOPIC-PARTITION/topic-id/0, /1    the halves of the topic's ID; 0 for none
    magicbyte/TOPIC-PARTITION/cluster-id/0, /1  likewise; IDs that are not 128 bits are not kept
    magicbyte/TOPIC-PARTITION/holes             the number of holes
    magicbyte/TOPIC-PARTITION/hole/N/start, /end
    magicbyte/TOPIC-PARTITION/restored          the last RESTORE of the table that the state is later than

A RESTORE brings back the rows of an earlier version, but not its numbers: those from before it are of other
rows. Tables of earlier versions have the first number only. Looking for a number that is absent takes much
longer than reading one, so those for "none" are written too.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator

from magicbyte.jobs.find.lineage import EpochStart, Lineage
from magicbyte.jobs.run.holes import Hole
from magicbyte.lake.state import PartitionState

__all__ = ["changed_numbers", "restore_of", "state_of"]

_HALVES = struct.Struct(">qq")


def state_of(number: Callable[[str], int | None], topic: str, partition: int) -> PartitionState | None:
    """The state of a partition, given the numbers by name; None if it has none."""
    prefix = _prefix(topic, partition)
    next_offset = number(prefix)
    if next_offset is None:
        return None
    if (epoch := number(f"{prefix}/epoch")) is None:
        return PartitionState(next_offset)

    def known(name: str) -> int:
        return number(f"{prefix}/{name}") or 0

    return PartitionState(
        next_offset,
        Lineage(
            topic_id=_id_of(known("topic-id/0"), known("topic-id/1")),
            leader_epoch=None if epoch < 0 else EpochStart(epoch, known("epoch-start")),
            cluster_id=_id_of(known("cluster-id/0"), known("cluster-id/1")),
        ),
        tuple(Hole(known(f"hole/{at}/start"), known(f"hole/{at}/end")) for at in range(known("holes"))),
    )


def restore_of(number: Callable[[str], int | None], topic: str, partition: int) -> int:
    """The version of the last RESTORE before the state of a partition; 0 for none."""
    return number(f"{_prefix(topic, partition)}/restored") or 0


def changed_numbers(
    topic: str, partition: int, before: PartitionState | None, after: PartitionState, restored: int
) -> Iterator[tuple[str, int]]:
    """The names and values of the numbers that become others. The first is always among them, so that of two
    jobs that change a partition one fails, and the second, since a table of an earlier version lacks it.
    `restored` is the version of the table's last RESTORE.
    """
    prefix = _prefix(topic, partition)
    known = {} if before is None else dict(_numbers(before))
    yield prefix, after.next_offset
    for name, value in _numbers(after):
        if name == "epoch" or known.get(name) != value:
            yield f"{prefix}/{name}", value
    if restored:
        yield f"{prefix}/restored", restored


def _prefix(topic: str, partition: int) -> str:
    return f"magicbyte/{topic}-{partition}"


def _numbers(state: PartitionState) -> Iterator[tuple[str, int]]:
    lineage = state.lineage
    epoch = lineage.leader_epoch or EpochStart(-1, 0)
    yield "epoch", epoch.epoch
    yield "epoch-start", epoch.start_offset
    for name, found in (("topic-id", lineage.topic_id), ("cluster-id", lineage.cluster_id)):
        for at, half in enumerate(_halves(found)):
            yield f"{name}/{at}", half
    yield "holes", len(state.holes)
    for at, hole in enumerate(state.holes):
        yield f"hole/{at}/start", hole.start
        yield f"hole/{at}/end", hole.end


def _halves(found: str | None) -> tuple[int, int]:
    """An ID, the URL-safe base64 of 128 bits, as two numbers."""
    try:
        high, low = _HALVES.unpack(base64.b64decode(f"{found or ''}==", altchars=b"-_", validate=True))
    except (ValueError, struct.error):
        return 0, 0
    return high, low


def _id_of(high: int, low: int) -> str | None:
    if (high, low) == (0, 0):
        return None
    return base64.urlsafe_b64encode(_HALVES.pack(high, low)).decode().rstrip("=")
