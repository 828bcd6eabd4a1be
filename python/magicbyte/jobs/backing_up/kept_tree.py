"""The directory of a backup while a run works in it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping

from magicbyte.errors import RefusedError
from magicbyte.jobs.backing_up.kept_log import KeptLog, check_file
from magicbyte.jobs.backing_up.manifest import MANIFEST, beside_of
from magicbyte.jobs.publish.certificate import CertifiedFile
from magicbyte.jobs.publish.workspace import OF_VOLUMES, try_lock

__all__ = ["KeptTree", "not_a_backup"]

_LOCK = ".lock"
"""A broker locks the same file in its log directories."""


class KeptTree:
    """A local directory, which is the backup itself."""

    path: str

    def __init__(self, out: str) -> None:
        """Claims the directory, which is made if it does not exist.

        Raises:
            RefusedError: it is no backup, or another run works in it.

        """
        if os.path.lexists(out) and not os.path.isdir(out):
            raise RefusedError(f"{out} is not a directory")
        os.makedirs(out, exist_ok=True)
        # A run that found no cluster, or was killed before its first manifest, has left these.
        others = set(os.listdir(out)) - {_LOCK, beside_of(MANIFEST)} - OF_VOLUMES
        if others and not os.path.exists(os.path.join(out, MANIFEST)):
            raise not_a_backup(out)
        for name in (_LOCK, MANIFEST):
            check_file(os.path.join(out, name))
        self.path = out
        self._lock = os.open(os.path.join(out, _LOCK), os.O_RDWR | os.O_CREAT, 0o644)
        if try_lock(self._lock) is False:
            os.close(self._lock)
            raise RefusedError(f"another backup into {out} is running: wait until it ends")

    def begin(self, log: KeptLog) -> None:
        """Prepares a log for more batches."""

    def fetch(self, log: KeptLog, offset: int) -> None:
        """Makes sure that the segments with this offset and later ones are in this directory."""

    def move_out(self, logs: Collection[KeptLog], grown: Iterable[KeptLog]) -> None:
        """Moves segments that do not grow any more to where the backup is: of all logs, those of `grown` have
        new batches.
        """

    def digests(self) -> Mapping[str, CertifiedFile]:
        """The digests of segments that are elsewhere, by their names in the backup."""
        return {}

    def publish(self) -> None:
        """Makes the backup what this directory is, its manifest last."""

    def replace(self, names: Mapping[str, str]) -> None:
        """Notes which logs full copies are about to replace: the names of their directories, and those that
        they have until they are removed.
        """

    def close(self) -> None:
        """Lets the next run in."""
        os.close(self._lock)


def not_a_backup(out: str) -> RefusedError:
    """The error of an output that is something else."""
    return RefusedError(f"{out} is not empty, and not a backup: there is no {MANIFEST}")
