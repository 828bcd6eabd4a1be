"""Sizes and costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from magicbyte.calls import Run, reads
from magicbyte.options.read import AdviseOptions, StatsOptions
from magicbyte.options.shared import Decoding

if TYPE_CHECKING:
    from magicbyte.jobs.advise import AdviseReport
    from magicbyte.jobs.field_costs import FieldCosts
    from magicbyte.jobs.stats import StatsReport

__all__ = ["advise", "field_costs", "stats"]


@dataclass(frozen=True, kw_only=True)
class _Stats(Run, StatsOptions):
    """The keywords of `stats`."""


@reads(_Stats, StatsOptions)
def stats(sources: list[str], given: _Stats, options: StatsOptions) -> StatsReport:
    """Counts records, bytes and batches by codec, magic, producer and time; decodes every record."""
    from magicbyte.jobs.stats import statistics

    return statistics(sources, given.runner, choice=given.choice, progress=given.progress, **vars(options))


@dataclass(frozen=True, kw_only=True)
class _FieldCosts(Run, Decoding):
    """The keywords of `field_costs`."""


@reads(_FieldCosts, Decoding)
def field_costs(sources: list[str], given: _FieldCosts, options: Decoding) -> FieldCosts:
    """Counts the bytes of every partition by field, and the bytes that other formats would take.

    It is `magicbyte stats --fields`.
    """
    from magicbyte.jobs.field_costs import field_costs

    return field_costs(sources, given.runner, choice=given.choice, progress=given.progress, **vars(options))


@dataclass(frozen=True, kw_only=True)
class _Advise(Run, AdviseOptions):
    """The keywords of `advise`."""


@reads(_Advise, AdviseOptions)
def advise(sources: list[str], given: _Advise, options: AdviseOptions) -> AdviseReport:
    """Tries codecs, levels and batch sizes on a sample of each topic, and recommends one."""
    from magicbyte.jobs.advise import advise

    return advise(sources, given.runner, options, choice=given.choice, progress=given.progress)
