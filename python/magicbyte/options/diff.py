"""Options of `diff`."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from magicbyte.enums import IsolationLevel
from magicbyte.options.declare import option
from magicbyte.options.ingest import CatalogOptions
from magicbyte.options.shared import Connection, Decoding
from magicbyte.options.values import Kind, words

__all__ = ["DiffOptions"]


@dataclass(frozen=True, kw_only=True)
class DiffOptions(CatalogOptions, Connection, Decoding):
    """Options of a comparison."""

    isolation_level: IsolationLevel | None = option(
        "The records of transactions that are compared: read_committed leaves out aborted records and ends at"
        " the last stable offset.",
        default=None,
        default_text="read_uncommitted, or that of a table",
        kind=words(IsolationLevel),
    )

    cache: str | PathLike[str] | None = option(
        "Keep the digests of both sides in this file, so that the next run reads only what is new.",
        default=None,
        kind=Kind("FILE"),
    )
