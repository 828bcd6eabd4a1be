"""Remote segments that belong to a log: those within the lineage of its leader epochs
(`RemoteLogManager.isRemoteSegmentWithinLeaderEpochs`).

After an unclean election, the log of the former leader goes on in tiered storage, where it has copied
segments, but not on the brokers.
"""

from __future__ import annotations

import bisect

from magicbyte.internal_topics.remote_segments import Epochs, RemoteSpan

__all__ = ["epochs_between", "is_within_lineage", "with_records"]


def with_records(epochs: Epochs) -> dict[int, int]:
    """Leaves out the epochs without records, where another epoch begins at the same offset
    (`buildFilteredLeaderEpochMap`).
    """
    entries = sorted(epochs.items())
    following = [offset for _, offset in entries[1:]]
    return {
        epoch: offset
        for (epoch, offset), after in zip(entries, [*following, None], strict=True)
        if offset != after
    }


def is_within_lineage(span: RemoteSpan, lineage: Epochs) -> bool:
    """True if the leaders of `lineage` wrote the segment, or continued from it.

    Both have at least one epoch. `lineage` has no epoch without records.
    """
    epochs = with_records(span.epochs)
    known = list(lineage)
    last = max(epochs)
    # Epochs from before the log's start are of no concern.
    valid = [epoch for epoch in epochs if epoch >= known[0]]
    if not known[0] <= last <= known[-1]:
        return False
    for at, epoch in enumerate(valid):
        if epoch not in lineage:
            return False
        if at == 0 and epoch != known[0] and epochs[epoch] < lineage[epoch]:
            return False
        place = bisect.bisect_right(known, epoch)
        following = known[place] if place < len(known) else None
        if epoch == last:
            if following is not None and span.end_offset >= lineage[following]:
                return False
        elif following != valid[at + 1] or lineage[following] != epochs[following]:
            return False
    return True


def epochs_between(epochs: Epochs, start: int, end: int) -> dict[int, int]:
    """The epochs of the offsets from `start` to `end`, inclusive (`getLeaderEpochEntries`). The first one
    begins at `start`.
    """
    inside = [(epoch, offset) for epoch, offset in sorted(epochs.items()) if offset <= end]
    following = [offset for _, offset in inside[1:]]
    return {
        epoch: max(offset, start)
        for (epoch, offset), after in zip(inside, [*following, end + 1], strict=True)
        if after > start
    }
