"""Options of `audit`."""

from __future__ import annotations

from dataclasses import dataclass

from magicbyte.options.declare import argument, option
from magicbyte.options.shared import Decoding
from magicbyte.options.typed import SchemaSource
from magicbyte.options.values import Kind, Size

__all__ = ["AuditOptions"]


@dataclass(frozen=True, kw_only=True)
class AuditOptions(Decoding, SchemaSource):
    """Options of an audit."""

    schema_ids: bool = option(
        "Also decode all records, and list batches whose schema id is rare in their topic and common in"
        " another. A registry implies it, and adds those whose schema only has subjects of other topics.",
        default=False,
    )
    threads: int | None = argument("The number of threads; None for one per core.", default=None)
    memory_limit: int = option(
        "The memory for the headers and their joins; the rest goes to the temporary directory.",
        default=200 << 20,
        kind=Size(least=64 << 20),
    )
    temp_directory: str | None = option(
        "The directory for temporary files: about 60 bytes for each batch.",
        default=None,
        default_text="that of the system",
        kind=Kind("DIR"),
    )
