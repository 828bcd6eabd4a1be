"""Options of `backup`."""

from __future__ import annotations

from dataclasses import dataclass

from magicbyte.options.declare import option
from magicbyte.options.shared import Connection
from magicbyte.options.values import TIME, Size

__all__ = ["DEFAULT_SEGMENT_BYTES", "BackupOptions"]

DEFAULT_SEGMENT_BYTES = 1 << 30
"""The default of Kafka's `segment.bytes`."""


@dataclass(frozen=True, kw_only=True)
class BackupOptions(Connection):
    """Options of a backup."""

    as_of: int | None = option(
        "End every partition before its first record of this time or later, at the last stable offset that"
        " it had there.",
        default=None,
        default_text="the high watermark of each partition when the run starts",
        kind=TIME,
    )
    full: bool = option(
        "Copy the chosen partitions again from their start, so that what the cluster has compacted or deleted"
        " is gone. An old copy is removed when the new one is whole.",
        default=False,
    )
    with_acls: bool = option(
        "Keep the ACLs in the metadata. Without it, only the names of what they are for are in backup.json.",
        default=False,
    )
    segment_bytes: int = option(
        "Begin another segment rather than let one become larger than this.",
        default=DEFAULT_SEGMENT_BYTES,
        # Kafka's positions in a segment have 31 bits.
        kind=Size((1 << 31) - 1, least=1),
    )
