"""Options of `find`."""

from __future__ import annotations

from dataclasses import dataclass

from magicbyte.options.declare import Options, option
from magicbyte.options.values import DIRECTORIES

__all__ = ["FindOptions"]


@dataclass(frozen=True, kw_only=True)
class FindOptions(Options):
    """Options of a search in files of any kind."""

    like: tuple[str, ...] = option(
        "A directory with partitions that have their names, such as another replica: runs of batches that are"
        " copies of its batches, or that continue them, get these names.",
        default=(),
        kind=DIRECTORIES,
    )
