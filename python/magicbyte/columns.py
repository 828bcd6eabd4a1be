"""A batch's records as lists, one for each column."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Columns"]


class Columns(NamedTuple):
    """The records of one batch, column by column; all four lists have the same length.

    Keys and values are copies (`bytes`, or None for null), which are faster than views for small values.
    """

    offsets: list[int]
    timestamps: list[int]
    """Milliseconds; -1 if there is none."""
    keys: list[bytes | None]
    values: list[bytes | None]

    def _repr_html_(self) -> str:
        """A table of the first records for notebooks."""
        from magicbyte.notebook import columns_html

        return columns_html(*self)
