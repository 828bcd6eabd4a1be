"""High watermarks: the offsets up to which partitions are known to be replicated.

A broker writes them every few seconds to `replication-offset-checkpoint`, beside its partitions. Consumers
see no record at or above them, and a failover may replace those records (`ReplicaManager`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import TypedDict

from magicbyte.errors import Error, RefusedError
from magicbyte.jobs.run.accounting import by_plan
from magicbyte.jobs.run.plan import Planned, count_of
from magicbyte.jobs.run.reading import ROWS_ABOVE, HighWatermarks
from magicbyte.listing import is_live
from magicbyte.log_dir import REPLICATION_OFFSET_CHECKPOINT, read_offset_checkpoint
from magicbyte.model import PartitionListing

__all__ = ["AboveHighWatermark", "high_watermarks", "partitions_above", "waiting_message"]


class AboveHighWatermark(TypedDict):
    """A partition whose log continues above its high watermark."""

    topic: str
    partition: int
    high_watermark: int
    next_offset: int
    """The end of the log (exclusive)."""
    rows: int
    """The number of written rows at or above the high watermark."""


def high_watermarks(listings: Iterable[PartitionListing], *, required: bool) -> dict[tuple[str, int], int]:
    """Reads the high watermarks of the partitions in brokers' directories: one file for each directory.

    As in Kafka, a partition that the file does not name has the high watermark 0. Without the file, nothing
    is known; nor with one that cannot be read, unless it is `required`. A running cluster gives no record
    above them.

    Raises:
        RefusedError: if a file that is required cannot be read, or breaks its format.

    """
    files: dict[str, dict[tuple[str, int], int] | None] = {}
    marks = {}
    for listing in listings:
        if listing["state"] != "current" or is_live(listing):
            continue
        directory = os.path.dirname(listing["path"])
        if directory not in files:
            path = os.path.join(directory, REPLICATION_OFFSET_CHECKPOINT)
            files[directory] = _read(path, required=required)
        if (offsets := files[directory]) is not None:
            name = listing["topic"], listing["partition"]
            marks[name] = offsets.get(name, 0)
    return marks


def _read(path: str, *, required: bool) -> dict[tuple[str, int], int] | None:
    try:
        return read_offset_checkpoint(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (Error, OSError) as error:
        if required:
            raise RefusedError(f"the high watermarks of its partitions are unknown: {error}") from None
        return None


def waiting_message(waiting: HighWatermarks, option: str) -> str:
    """Returns the message that records of these partitions wait, and that `option` does not wait."""
    topic, partition = first = min(waiting)
    return (
        f"records above the high watermark wait until a broker has replicated them, in "
        f"{count_of(len(waiting), 'partition')}, such as {topic}-{partition} from offset {waiting[first]} on "
        f"({option} does not wait)"
    )


def partitions_above(
    plans: Sequence[Planned], marks: HighWatermarks, results: Iterable[str]
) -> list[AboveHighWatermark]:
    """The partitions whose logs continue above their high watermarks.

    `results` are those of all chunks, in the order of the plans' chunks, from tasks that had `marks` as well.
    """
    above = []
    for planned, own in zip(plans, by_plan(plans, results), strict=True):
        plan = planned.plan
        mark, end = marks.get((plan["topic"], plan["partition"])), plan["next_offset"]
        if mark is not None and end is not None and mark < end:
            above.append(
                AboveHighWatermark(
                    topic=plan["topic"],
                    partition=plan["partition"],
                    high_watermark=mark,
                    next_offset=end,
                    rows=sum(json.loads(text).get(ROWS_ABOVE, 0) for text in own),
                )
            )
    return above
