"""The account of a partition, for programs and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magicbyte.model import IgnoredFile, PartitionReconciliation

__all__ = ["Reconciliation"]

_COUNTS = (
    "size",
    "good_bytes",
    "quarantined_bytes",
    "tail_bytes",
    "outside_bytes",
    "deleted_bytes",
    "announced",
    "rows",
    "control",
    "aborted",
    "outside",
    "deleted",
)
"""The sums that a summary shows."""


class Reconciliation:
    """The sums that prove that nothing was lost: see `magicbyte.model.PartitionReconciliation`.

    `good_bytes + quarantined_bytes + tail_bytes + outside_bytes + deleted_bytes == size`, and
    `rows + control + aborted + outside + deleted == announced`; `balanced` if both hold for every segment.
    """

    __slots__ = ("sums",)

    sums: PartitionReconciliation
    """The whole account, segment by segment, as plain data for JSON."""

    def __init__(self, sums: PartitionReconciliation) -> None:
        self.sums = sums

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reconciliation) and self.sums == other.sums

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        counts = " ".join(f"{name}={count}" for name, count in self._shown())
        return f"<{self._title()}: {counts}>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        from magicbyte.html import table

        return table(self._title(), ("", ""), self._shown())

    def _title(self) -> str:
        return f"Reconciliation of {self.sums['topic']}-{self.sums['partition']}"

    def _shown(self) -> list[tuple[str, object]]:
        return [(name, self.sums[name]) for name in ("balanced", *_COUNTS)]  # type: ignore[literal-required]

    @property
    def balanced(self) -> bool:
        """True if every byte and every record is counted exactly once."""
        return self.sums["balanced"]

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return self.sums["size"]

    @property
    def good_bytes(self) -> int:
        """Bytes in batches that decode completely."""
        return self.sums["good_bytes"]

    @property
    def quarantined_bytes(self) -> int:
        """Bytes in ranges that cannot be read."""
        return self.sums["quarantined_bytes"]

    @property
    def tail_bytes(self) -> int:
        """Bytes after the last batches: zeros, or a batch that was not written completely."""
        return self.sums["tail_bytes"]

    @property
    def outside_bytes(self) -> int:
        """Bytes that were not read, since they hold no offset of the requested range."""
        return self.sums["outside_bytes"]

    @property
    def deleted_bytes(self) -> int:
        """Bytes of good batches that end before the log's start."""
        return self.sums["deleted_bytes"]

    @property
    def announced(self) -> int:
        """Records announced by good batches."""
        return self.sums["announced"]

    @property
    def rows(self) -> int:
        """Data records delivered."""
        return self.sums["rows"]

    @property
    def control(self) -> int:
        """Control records."""
        return self.sums["control"]

    @property
    def aborted(self) -> int:
        """Records of aborted transactions (`read_committed` only)."""
        return self.sums["aborted"]

    @property
    def outside(self) -> int:
        """Records outside the requested range or past the last stable offset."""
        return self.sums["outside"]

    @property
    def deleted(self) -> int:
        """Records before the log's start, which a broker does not return."""
        return self.sums["deleted"]

    @property
    def ignored(self) -> list[IgnoredFile]:
        """Files that were not read, with the reason."""
        return self.sums["ignored"]
