"""How far a copy of a partition reaches, which tells the newest of several."""

from __future__ import annotations

import json

from magicbyte import _core
from magicbyte.model import PartitionListing, Survey

__all__ = ["reach"]


def reach(listing: PartitionListing) -> tuple[int, int]:
    """The leader epoch and the offset of the last good batch, or (-1, -1): of two replicas, the higher one is
    newer. A longer log of an older leader is a branch that was lost.
    """
    for segment in reversed(listing["segments"]):
        survey: Survey = json.loads(_core.survey_segment(json.dumps(segment)))
        if survey["last_offset"] is not None:
            epochs = survey["leader_epochs"]
            return epochs[-1]["epoch"] if epochs else -1, survey["last_offset"]
    return -1, -1
