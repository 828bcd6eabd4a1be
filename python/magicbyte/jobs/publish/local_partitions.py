"""The directory that a job writes partitions to: a reader finds either all of the output or none of it.

If the output does not exist yet, it is written in a workspace next to it and published with one rename. An
empty directory that exists (a mounted volume, a link to a directory, the working directory) is kept: the
workspace is inside it, and the partitions are moved out of the workspace one by one. Then
`reconciliation.json` marks the output as complete. `stored_partitions.py` is for stores.
"""

from __future__ import annotations

import json
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Any, TypedDict

from magicbyte import _core
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.outputs import RECONCILIATION, UNFINISHED
from magicbyte.jobs.find.partitions import refuse_other_encodings
from magicbyte.jobs.publish.certificate import CERTIFICATE, Certify
from magicbyte.jobs.publish.workspace import OF_VOLUMES, Workspace, beside, check_apart, clear, write_text

__all__ = ["Counted", "LocalPartitions", "Named", "PartitionsOutput", "check_counted"]


class Named(TypedDict):
    """The fields that name a partition's directory."""

    topic: str
    partition: int


class Counted(TypedDict):
    """The fields of a report about a partition that are checked before publishing; it may have more."""

    topic: str
    partition: int
    segments: int
    size: int
    """Bytes of all segments."""


class PartitionsOutput(ABC):
    """An output while a job writes to it; as a context manager it cleans up on failure.

    Partitions are written in the workspace, which is local, and published all together.
    """

    def __init__(self, path: str, workspace: Workspace) -> None:
        self.path = path
        self._workspace = workspace
        self._targets: dict[str, str] = {}
        """The name of each partition's directory before it is published, by partition."""

    def target(self, listing: Named) -> str:
        """The directory to write a partition to."""
        name = f"{listing['topic']}-{listing['partition']}"
        # The whole name could become too long with the suffixes that are added while it is written.
        staged = self._targets.setdefault(name, f"{len(self._targets)}.{name[:48]}")
        return os.path.join(self._workspace.directory, staged)

    def spool(self) -> IO[bytes]:
        """A temporary file on the file system where the partitions are written."""
        return tempfile.TemporaryFile(dir=self._workspace.directory)

    def scratch(self, name: str) -> str:
        """Creates a directory, whose name begins with `name`, for files that tasks need and that are not
        published.
        """
        return tempfile.mkdtemp(prefix=f"{name}-", dir=self._workspace.directory)

    def commit(
        self,
        report: Mapping[str, Any],
        files: Mapping[str, str] | None = None,
        name: str = RECONCILIATION,
        *,
        certify: Certify | None = None,
    ) -> None:
        """Publishes the partitions, `files` (text by name), and `report` as `name`.

        With `certify`, also publishes the certificate of all of them.

        Raises:
            JobError: if a partition is not there as the report's `written` counts it.

        """
        names = []
        for partition, staged in self._targets.items():
            target = os.path.join(self._workspace.directory, staged)
            # A partition without any good batch has no directory.
            if os.path.isdir(target):
                os.rename(target, os.path.join(self._workspace.whole, partition))
                names.append(partition)
        for file, text in {**(files or {}), name: json.dumps(report, indent=1)}.items():
            write_text(os.path.join(self._workspace.whole, file), text)
            names.append(file)
        written: Sequence[Counted] = report.get("written", ())
        for one in written:
            check_counted(os.path.join(self._workspace.whole, f"{one['topic']}-{one['partition']}"), one)
        names = [*self._certified(certify), *names]
        self._publish(names)

    def _certified(self, certify: Certify | None) -> list[str]:
        """Writes the certificate of what is in the workspace's `whole`, if it is wanted; returns its name."""
        if certify is None:
            return []
        certificate = json.dumps(certify(self._workspace.whole), indent=1)
        write_text(os.path.join(self._workspace.whole, CERTIFICATE), certificate)
        return [CERTIFICATE]

    @abstractmethod
    def _publish(self, names: Sequence[str]) -> None:
        """Publishes what is in the workspace's `whole`; the last name marks the output as complete."""

    def close(self) -> None:
        """Cleans up, and lets the next job in."""
        self._workspace.close()

    def __enter__(self) -> PartitionsOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class LocalPartitions(PartitionsOutput):
    """An output in a directory."""

    def __init__(self, path: str, sources: Sequence[str]) -> None:
        """Claims `path`.

        Raises:
            RefusedError: if `path` is not empty, it and a source overlap, or another job is
                writing to it.

        """
        path = os.path.abspath(path)
        inside = os.path.join(path, UNFINISHED)
        self._is_new = not os.path.lexists(path)
        refuse_other_encodings(path)
        check_apart(path, sources)
        check_apart(beside(path), sources)
        if not self._is_new:
            # Left by a job that was killed after it had published, or before this directory was created.
            clear(beside(path), path)
            if not os.path.isdir(inside):
                _check_empty(path)
        super().__init__(path, Workspace(beside(path) if self._is_new else inside, path))
        try:
            if os.path.lexists(path):
                _check_empty(path)
        except BaseException:
            self.close()
            raise

    def _publish(self, names: Sequence[str]) -> None:
        if self._is_new:
            self._workspace.publish_directory()
        else:
            self._workspace.publish(names)


def _check_empty(path: str) -> None:
    if not os.path.isdir(path):
        raise RefusedError(f"{path} exists and is not a directory: choose another name")
    if set(os.listdir(path)) - {UNFINISHED} - OF_VOLUMES:
        raise RefusedError(f"{path} exists and is not empty: choose another directory")


def check_counted(path: str, counted: Counted) -> None:
    """Compares the segments in a partition's directory with the report."""
    found = 0
    if counted["segments"]:
        with os.scandir(path) as entries:
            found = sum(entry.stat().st_size for entry in entries if _core.is_segment_file(entry.name))
    if found != counted["size"]:
        raise JobError(
            f"{counted['topic']}-{counted['partition']}: {counted['size']:,} bytes of segments were written, "
            f"but {found:,} are there: nothing is published"
        )
