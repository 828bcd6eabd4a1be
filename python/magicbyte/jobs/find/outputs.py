"""The names by which an output is recognized: unfinished, or complete."""

from __future__ import annotations

import os

from magicbyte.storage.destination import destination_of
from magicbyte.storage.paths import is_url

__all__ = ["COMPLETE", "RECONCILIATION", "SUCCESS", "UNFINISHED", "is_table", "is_unfinished"]

UNFINISHED = ".magicbyte-unfinished"
RECONCILIATION = "reconciliation.json"
"""The name of the file with the report of most jobs."""
SUCCESS = "_SUCCESS"
"""The mark of complete tables."""
COMPLETE = frozenset({RECONCILIATION, "rescue.json", "wire.json", "backup.json", SUCCESS})
"""The files that mark outputs as complete."""


def is_table(path: str) -> bool:
    """True for the directory or URL of a table: a Delta table, or the Parquet tables of a complete
    `ingest`.
    """
    if not is_url(path) and not os.path.isdir(path):
        return False
    directory = destination_of(path)
    if directory.has_directory("_delta_log"):
        return True
    return directory.has_directory("records") and all(
        directory.read(name) is not None for name in (SUCCESS, RECONCILIATION)
    )


def is_unfinished(name: str) -> bool:
    """True if this is the name of a directory of unfinished jobs; a partition never has such a name."""
    return name.startswith(".") and name.endswith(UNFINISHED)
