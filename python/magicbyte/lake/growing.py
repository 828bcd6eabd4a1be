"""A log that is being written while a stream adds it to a table."""

from __future__ import annotations

from dataclasses import dataclass, field

from magicbyte.jobs.run.kept_surveys import KeptSurveys
from magicbyte.lake.checked import Checked

__all__ = ["GrowingLog"]


@dataclass(frozen=True)
class GrowingLog:
    """Facts about a growing log that a stream keeps from one look to the next."""

    above_high_watermark: bool = False
    """True to add records, too, that may not be replicated. Otherwise a broker's partition ends at its high
    watermark."""
    surveys: KeptSurveys = field(default_factory=KeptSurveys)
    checked: Checked = field(default_factory=Checked)
    """The partitions that were compared with their logs."""
