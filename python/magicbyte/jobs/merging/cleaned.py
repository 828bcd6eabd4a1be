"""The offset before which compaction may have cleaned a copy of a partition.

Copies of a compacted log are cleaned at different times, so their batches differ. A batch that only one of
them has is no loss of the other: it may hold an older value of a key that the other has deleted.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import cast

from magicbyte.errors import Error
from magicbyte.jobs.find.cluster import Cluster
from magicbyte.jobs.run.plan import Planned
from magicbyte.log_dir import CLEANER_OFFSET_CHECKPOINT, read_offset_checkpoint
from magicbyte.model import Alignment, PartitionListing, Survey

__all__ = ["cleaned_until", "cleaner_offset"]


def cleaned_until(
    copies: Sequence[Planned], cluster: Cluster, alignment: Alignment | None = None
) -> int | None:
    """The end (exclusive) of the part that was cleaned in any copy; None if the log is not compacted.

    The topic's `cleanup.policy` decides whether it is compacted. Where that is unknown, it is if a
    `cleaner-offset-checkpoint` names it, or if aligned copies miss offsets without damage.
    """
    policy, _ = cluster.policy(copies[0].listing["topic"])
    if policy is not None and "compact" not in re.split(r"\s*,\s*", policy.strip()):
        return None
    checkpoints = [cleaner_offset(planned.listing) for planned in copies]
    gaps = [0 if alignment is None else _end_of_gaps(alignment, *one) for one in enumerate(copies)]
    if policy is None and not any(gaps) and not any(checkpoints):
        return None
    ends = [
        max(_active_segment(planned) if known is None else known, gap)
        for planned, known, gap in zip(copies, checkpoints, gaps, strict=True)
    ]
    return max(ends) or None


def cleaner_offset(listing: PartitionListing) -> int | None:
    """The offset up to which the cleaner has come, 0 if not far; None if there is no checkpoint."""
    path = os.path.join(os.path.dirname(listing["path"]), CLEANER_OFFSET_CHECKPOINT)
    try:
        offsets = read_offset_checkpoint(path)
    except (Error, OSError):
        return None
    return max(0, offsets.get((listing["topic"], listing["partition"]), 0))


def _end_of_gaps(alignment: Alignment, number: int, planned: Planned) -> int:
    """The end of the last segment of a copy in which offsets are missing without damage."""
    segments = planned.plan["segments"]
    damaged = {damage["segment"] for damage in alignment["damages"] if damage["copy"] == number}
    surveys = [cast(Survey, json.loads(text)) for text in planned.surveys]
    # Where headers are damaged, the survey's gaps are those of the damage.
    gaps = {survey["segment"]["path"] for survey in surveys if survey["gaps"]}
    found = {at for at, one in enumerate(segments) if one["path"] in gaps and at not in damaged}
    found |= _segments_with_gaps(alignment, number, [segment["base_offset"] for segment in segments])
    ends = (segments[at]["last_offset"] for at in found)
    return max((end + 1 for end in ends if end is not None), default=0)


def _segments_with_gaps(alignment: Alignment, number: int, base_offsets: Sequence[int]) -> set[int]:
    """The segments of a copy with two adjacent batches whose offsets are not adjacent, or whose first batch
    is not at the base offset.
    """
    found = set()
    place, next_offset = (-1, -1), 0
    for run in alignment["runs"]:
        for share in run["shares"]:
            if share["copy"] != number:
                continue
            if share["start"] == 0:
                place, next_offset = (share["segment"], 0), base_offsets[share["segment"]]
            if place == (share["segment"], share["start"]) and run["first_offset"] > next_offset:
                found.add(share["segment"])
            place, next_offset = (share["segment"], share["end"]), run["next_offset"]
    return found


def _active_segment(planned: Planned) -> int:
    """Where the segment begins that a broker appends to, which it never cleans."""
    segments = planned.listing["segments"]
    return segments[-1]["base_offset"] if segments else 0
