"""A batch's records as lists, one a column."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Columns"]


class Columns(NamedTuple):
    """The records of one batch, column by column; all four lists have the same length.

    Keys and values are copies (`bytes`, or None for null): for small values faster than views.
    """

    offsets: list[int]
    timestamps: list[int]
    """Milliseconds; -1 for none."""
    keys: list[bytes | None]
    values: list[bytes | None]
