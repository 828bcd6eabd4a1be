"""The output of a job that writes partitions to a store: they are prepared locally, and uploaded at the end.

Nothing is renamed in a store: files are uploaded under their final names, and the report last, which marks
the output as complete. `stored_job.py` keeps other jobs and readers away until then.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping, Sequence

from magicbyte.errors import RefusedError
from magicbyte.jobs.find.outputs import UNFINISHED
from magicbyte.jobs.publish.local_partitions import PartitionsOutput
from magicbyte.jobs.publish.stored_job import StoredJob
from magicbyte.jobs.publish.workspace import Workspace, check_apart
from magicbyte.jobs.publish.written_sizes import check_size
from magicbyte.storage.stored_directory import StoredDirectory

__all__ = ["StoredPartitions", "check_uploaded", "local_workspace"]


class StoredPartitions(PartitionsOutput):
    """An output in a store."""

    def __init__(self, output: StoredDirectory, sources: Sequence[str]) -> None:
        """Claims `output`.

        Raises:
            RefusedError: there is something, it and a source overlap, or another job is writing to it.

        """
        check_apart(output.path, sources)
        self._output = output
        super().__init__(output.path, local_workspace(output.path))
        self._job: StoredJob | None = None
        try:
            self._job = StoredJob(self._output)
            if any(not name.startswith(f"{UNFINISHED}/") for name in self._output.files()):
                raise RefusedError(f"{output.path} exists and is not empty: choose another directory")
        except BaseException:
            self.close()
            raise

    def _publish(self, names: Sequence[str]) -> None:
        assert self._job is not None
        *others, marker = names
        whole = self._workspace.whole
        files = {
            os.path.relpath(os.path.join(directory, file), whole): os.path.join(directory, file)
            for directory, _, in_it in os.walk(whole)
            for file in in_it
        }
        report = files.pop(marker)
        self._job.announce(others, marker)
        self._output.put_files(files)
        check_uploaded(self._output, {name: os.path.getsize(path) for name, path in files.items()})
        self._job.confirm()
        self._output.put_file(marker, report)

    def close(self) -> None:
        """See `PartitionsOutput.close`."""
        try:
            if self._job is not None:
                self._job.close()
        finally:
            super().close()


def local_workspace(url: str) -> Workspace:
    """The workspace where this machine prepares files for a URL: below the directory for temporary files.

    Files that a killed job has left there are removed.

    Raises:
        RefusedError: another job prepares files for this URL.

    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    private = os.path.join(tempfile.gettempdir(), f"magicbyte-{user}")
    os.makedirs(private, mode=0o700, exist_ok=True)
    status = os.lstat(private)
    if not stat.S_ISDIR(status.st_mode) or (os.name == "posix" and status.st_uid != user):
        raise RefusedError(f"{private} is not a directory of this user: set TMPDIR to another place")
    name = hashlib.sha256(url.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return Workspace(os.path.join(private, f".{name}{UNFINISHED}"), url)


def check_uploaded(output: StoredDirectory, sizes: Mapping[str, int]) -> None:
    """Raises `JobError` if a file is not there with its size."""
    found = output.files()
    for name, size in sizes.items():
        check_size(output.url_of(name), size, found.get(name))
