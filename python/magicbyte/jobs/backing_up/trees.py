"""The output of a backup by its path or URL."""

from __future__ import annotations

from magicbyte.errors import RefusedError
from magicbyte.jobs.backing_up.kept_tree import KeptTree
from magicbyte.storage.destination import destination_of
from magicbyte.storage.local_directory import LocalDirectory
from magicbyte.storage.stored_directory import StoredDirectory

__all__ = ["open_tree"]


def open_tree(out: str) -> KeptTree:
    """Claims the output of a backup.

    Raises:
        RefusedError: it is no output, no backup, or another run works in it.

    """
    try:
        output = destination_of(out)
    except ValueError as error:
        raise RefusedError(str(error)) from None
    match output:
        case LocalDirectory() as directory:
            return KeptTree(directory.path)
        case StoredDirectory() as directory:
            # Needs packages that a local backup does not need.
            from magicbyte.jobs.backing_up.stored_tree import StoredTree

            return StoredTree(directory)
