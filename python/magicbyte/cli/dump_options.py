"""The options of `magicbyte dump`."""

from __future__ import annotations

from dataclasses import dataclass

from magicbyte.cli.options import InternalTopics
from magicbyte.cli.selection import Selection
from magicbyte.options.declare import option
from magicbyte.options.shared import Decoding

__all__ = ["DumpOptions"]


@dataclass(frozen=True, kw_only=True)
class DumpOptions(Selection, InternalTopics, Decoding):
    """The content of files to print."""

    no_records: bool = option("Print batches only.", default=False)
    as_bytes: bool = option(
        "Print the bytes of batches, each field with its meaning.", default=False, flag="--bytes"
    )
