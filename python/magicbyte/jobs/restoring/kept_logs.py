"""The copies of a partition on which brokers can go on as they are, and the small files that these lack."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain

from magicbyte.jobs.merging.planning import PlannedMerge
from magicbyte.listing import known_topic_id
from magicbyte.model import LeaderEpoch, Run
from magicbyte.partition_files import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    format_leader_epochs,
    format_partition_metadata,
)

__all__ = ["copies_to_keep", "missing_files", "why_not_kept"]

_SEGMENT = ".log"


def copies_to_keep(merge: PlannedMerge) -> dict[int, bool]:
    """The copies that are whole, by their place, and whether they reach the end of the merged log; the others
    lag behind, as followers do, and cannot lead while they are not in the ISR (`PartitionChangeBuilder`). It
    is empty if no copy is the merged log: several have to be united, or the log has to end after its last
    batch.
    """
    if merge.lost or merge.known_ends:
        return {}
    last = max(map(merge.last, merge.continued), default=None)
    kept = {copy: merge.last(copy) == last for copy in merge.continued if _is_whole(merge, copy)}
    return kept if any(kept.values()) else {}


def why_not_kept(merge: PlannedMerge, copy: int) -> str:
    """The reason for which a copy is not kept beside one that is."""
    if copy in merge.continued:
        return "it is damaged or has gaps: its broker gets the log from the leader again"
    return "it has batches that no leader had at last: its broker gets the log from the leader again"


def _is_whole(merge: PlannedMerge, copy: int) -> bool:
    """True if a copy has every batch of the merged log from its own start to its own end, and nothing else.

    Files beside the segments do not count: a broker that finds one of them damaged builds it anew.
    """
    problems = merge.copies[copy].plan["problems"], merge.alignment["copies"][copy]["problems"]
    for problem in chain(*problems):
        file = problem["segment"]
        if problem["first_lost_offset"] is not None or file is None or file.endswith(_SEGMENT):
            return False
    return not any(_lacks(merge, copy))


def _lacks(merge: PlannedMerge, copy: int) -> Iterator[Run]:
    """The runs between the first and the last batch of a copy that only others have. What compaction may have
    cleaned is none.
    """
    runs = merge.alignment["runs"]
    own = [run["first_offset"] for run in runs if _has(run, copy)]
    start = max([min(own, default=0), merge.cleaned_until or 0])
    for run in runs:
        is_within = start <= run["first_offset"] <= max(own, default=-1)
        if is_within and not _has(run, copy) and any(_has(run, other) for other in merge.continued):
            yield run


def _has(run: Run, copy: int) -> bool:
    return any(share["copy"] == copy for share in run["shares"])


def missing_files(merge: PlannedMerge, copy: int, topic_id: str, leader_epoch: int) -> dict[str, bytes]:
    """The files that the directory of a kept copy lacks or that contradict it, by name: the id of its topic,
    and the starts of its leader epochs, by which a follower truncates its log. All of them are before
    `leader_epoch`, that of the next leader.
    """
    listing = merge.copies[copy].listing
    files = {}
    if known_topic_id(listing) != topic_id:
        files[PARTITION_METADATA] = format_partition_metadata(topic_id)
    # Batches before magic 2 have no epoch.
    runs = [run for run in merge.alignment["runs"] if _has(run, copy) and run["leader_epoch"] >= 0]
    epochs = listing["leader_epochs"]
    is_later = any(one["epoch"] >= leader_epoch for one in epochs)
    if is_later or not all(_is_of(run, epochs) for run in runs):
        starts: dict[int, int] = {}
        for run in runs:
            starts.setdefault(run["leader_epoch"], run["first_offset"])
        files[LEADER_EPOCH_CHECKPOINT] = format_leader_epochs(starts.items())
    return files


def _is_of(run: Run, epochs: list[LeaderEpoch]) -> bool:
    """True if the batches of a run are in their leader epoch, by the checkpoint."""
    starts = [one["start_offset"] for one in epochs]
    first, last = (
        bisect_right(starts, offset) - 1 for offset in (run["first_offset"], run["next_offset"] - 1)
    )
    return first == last >= 0 and epochs[first]["epoch"] == run["leader_epoch"]
