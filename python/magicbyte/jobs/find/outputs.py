"""The names by which an output is recognized: unfinished, or complete."""

from __future__ import annotations

__all__ = ["COMPLETE", "RECONCILIATION", "SUCCESS", "UNFINISHED", "is_unfinished"]

UNFINISHED = ".magicbyte-unfinished"
RECONCILIATION = "reconciliation.json"
"""The name of the file with the report of most jobs."""
SUCCESS = "_SUCCESS"
"""The mark of complete tables."""
COMPLETE = frozenset({RECONCILIATION, "rescue.json", "wire.json", SUCCESS})
"""The files that mark outputs as complete."""


def is_unfinished(name: str) -> bool:
    """True if this is the name of a directory of unfinished jobs; a partition never has such a name."""
    return name.startswith(".") and name.endswith(UNFINISHED)
