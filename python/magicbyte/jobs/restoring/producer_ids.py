"""The producer ids that the logs of a dead cluster know. No broker may give one of them to another producer:
leaders would take its batches for repetitions, and answer them without appending them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple, cast

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.internal_topics.names import TRANSACTION_STATE
from magicbyte.jobs.find.coordinated_ids import coordinated_ids
from magicbyte.jobs.merging.planning import PlannedMerge
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import Planned, count_of
from magicbyte.jobs.run.progress import Progress
from magicbyte.log import PartitionLog
from magicbyte.model import PartitionListing, Survey

__all__ = ["HighestId", "highest_producer_id"]

_HIGHEST = 1 << 62
"""The highest id that is believed: brokers count them up from 0, and there have to be some after it."""
_SNAPSHOT = ".snapshot"


class HighestId(NamedTuple):
    """The highest producer id of some logs, and the log that has it; -1 if there is none."""

    producer_id: int
    path: str


def highest_producer_id(merges: Iterable[PlannedMerge], engine: Engine, progress: Progress) -> HighestId:
    """The highest producer id that brokers could load with the merged logs.

    As a broker does (`ProducerStateManager`), this reads the last snapshot of producers and the batches after
    it, or all batches without one. The surveys have the transactions of the whole log.
    """
    logs = [
        (merge.copies[copy], merge.max_decompressed_bytes)
        for merge in merges
        for copy in sorted({merge.plan["leader"], *(one["copy"] for one in merge.plan["ranges"])})
    ]
    found = engine.map(
        _highest_of,
        logs,
        name=f"magicbyte producer ids: {count_of(len(logs), 'log')}",
        sizes=[one.listing["segments"][-1]["size"] if one.listing["segments"] else 0 for one, _ in logs],
        progress=progress,
    )
    pairs = zip(found, logs, strict=True)
    return max(
        (HighestId(highest, one.listing["path"]) for highest, (one, _) in pairs), default=HighestId(-1, "")
    )


def _highest_of(log: tuple[Planned, int]) -> int:
    return max((one for one in _ids_of(*log) if one <= _HIGHEST), default=-1)


def _ids_of(planned: Planned, max_decompressed_bytes: int) -> Iterator[int]:
    for text in planned.surveys:
        survey = cast(Survey, json.loads(text))
        yield from (producer_id for _, producer_id in survey["transactional"])
        yield from (one["producer_id"] for one in survey["transactions"])
    start, ids = _last_snapshot(planned.listing)
    yield from ids
    # Damage is a problem of the merge.
    with PartitionLog.of_listing(
        planned.listing, mode="PERMISSIVE", max_decompressed_bytes=max_decompressed_bytes
    ) as log:
        batches = (batch.producer_id for batch in log.batches(start))
        yield from (one for one in batches if one is not None)
        if planned.listing["topic"] == TRANSACTION_STATE:
            yield from coordinated_ids(log)


def _last_snapshot(listing: PartitionListing) -> tuple[int | None, list[int]]:
    """The offset of the last readable snapshot and the ids in it; None without one."""
    names = (one["file"].removesuffix(_SNAPSHOT) for one in listing["sidecars"] if one["kind"] == "snapshot")
    for offset in sorted(filter(str.isdecimal, names), reverse=True):
        with suppress(Error, OSError):  # the listing reports it
            data = _core.read_sidecar(os.path.join(listing["path"], f"{offset}{_SNAPSHOT}"))
            return int(offset), [one.producer_id for one in _core.producer_snapshot(data)]
    return None, []
