"""The RESTOREs in the history of a Delta table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from magicbyte.lake.table import COMMIT, described

if TYPE_CHECKING:
    from deltalake import DeltaTable as Handle

__all__ = ["last_restore", "read_at"]

_FIRST_LOOK = 8
"""The number of commits that are read first; mostly, the last one is ours."""


def read_at(version: int, restored: int) -> dict[str, int]:
    """The part of a commit's description that tells the next job where its look at the history may end."""
    return {"read_version": version, "restored": restored}


def last_restore(table: Handle) -> int:
    """The version that the last RESTORE made; 0 if there was none. Reads the commits since our last one."""
    limit: int | None = _FIRST_LOOK
    while True:
        entries = table.history(limit)
        known = _last_restore(entries)
        if known is not None:
            return known
        if limit is None or len(entries) < limit:
            return 0
        limit *= 8


def _last_restore(entries: list[dict[str, Any]]) -> int | None:
    """The version of the last RESTORE, given the last commits, newest first; None if they do not tell."""
    seen, known = -1, 0
    for entry in entries:
        if entry["version"] <= seen:
            return known
        if entry.get("operation") == "RESTORE":
            return int(entry["version"])
        ours = described(entry.get(COMMIT)) or {}
        if seen < 0 and "read_version" in ours:
            seen, known = int(ours["read_version"]), int(ours["restored"])
    return None
