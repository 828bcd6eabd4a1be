"""Options of `diff`."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from magicbyte.options.declare import option
from magicbyte.options.shared import Decoding
from magicbyte.options.values import Kind

__all__ = ["DiffOptions"]


@dataclass(frozen=True, kw_only=True)
class DiffOptions(Decoding):
    """Options of a comparison."""

    cache: str | PathLike[str] | None = option(
        "Keep the digests of both sides in this file, so that the next run reads only what is new.",
        default=None,
        kind=Kind("FILE"),
    )
