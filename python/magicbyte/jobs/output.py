"""The directory that a job writes partitions into: what a reader finds there is whole, or nothing.

Where the output is not there yet, all is made in a workspace beside it, and one rename gives it its name.
A directory that is there and empty (a mounted volume, a link to a directory, the working directory) stays
what it is: the workspace lies inside it, and the partitions are moved out of it one by one; then
`reconciliation.json` tells that the output is whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, TypedDict

from magicbyte.jobs.failure import JobError, RefusedError
from magicbyte.model import PartitionListing
from magicbyte.jobs.partitions import is_segment_file, refuse_other_encodings
from magicbyte.jobs.workspace import OF_VOLUMES, UNFINISHED, Workspace, beside, check_apart, clear, write_text

__all__ = ["Counted", "PartitionsOutput"]

_REPORT = "reconciliation.json"


class Counted(TypedDict):
    """What a report says of a partition; it may say more."""

    topic: str
    partition: int
    segments: int
    size: int
    """Bytes of all segments."""


class PartitionsOutput:
    """The output while it is written; as a context it leaves nothing behind on failure."""

    def __init__(self, path: str, sources: Sequence[str]) -> None:
        """Claims `path`.

        Raises:
            RefusedError: something is there, it and a source lie inside each other, or another job is
                writing it.

        """
        self.path = os.path.abspath(path)
        inside = os.path.join(self.path, UNFINISHED)
        self._is_new = not os.path.lexists(self.path)
        refuse_other_encodings(self.path)
        check_apart(self.path, sources)
        check_apart(beside(self.path), sources)
        if not self._is_new:
            # Of a job that had published when it was killed, or the directory was made since.
            clear(beside(self.path), self.path)
            if not os.path.isdir(inside):
                _check_empty(self.path)
        self._workspace = Workspace(beside(self.path) if self._is_new else inside, self.path)
        try:
            if os.path.lexists(self.path):
                _check_empty(self.path)
        except BaseException:
            self._workspace.close()
            raise
        self._targets: dict[str, str] = {}
        """By partition: the name of its directory while it is written."""

    def target(self, listing: PartitionListing) -> str:
        """Where a partition is written."""
        name = f"{listing['topic']}-{listing['partition']}"
        # Not only the name: with what is put around it while it is written, it can be too long.
        staged = self._targets.setdefault(name, f"{len(self._targets)}.{name[:48]}")
        return os.path.join(self._workspace.directory, staged)

    def commit(
        self,
        report: Mapping[str, Any],
        files: Mapping[str, str] | None = None,
        name: str = _REPORT,
    ) -> None:
        """Publishes the partitions written, `files`, and `report` as `name`.

        Raises:
            JobError: what the report counts as `written` is not there.

        """
        names = []
        for partition, staged in self._targets.items():
            target = os.path.join(self._workspace.directory, staged)
            # A partition of which nothing is good has no directory.
            if os.path.isdir(target):
                os.rename(target, os.path.join(self._workspace.whole, partition))
                names.append(partition)
        for file, text in {**(files or {}), name: json.dumps(report, indent=1)}.items():
            write_text(os.path.join(self._workspace.whole, file), text)
            names.append(file)
        written: Sequence[Counted] = report.get("written", ())
        for one in written:
            _check_counted(os.path.join(self._workspace.whole, f"{one['topic']}-{one['partition']}"), one)
        if self._is_new:
            self._workspace.publish_directory()
        else:
            self._workspace.publish(names)

    def __enter__(self) -> PartitionsOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workspace.close()


def _check_empty(path: str) -> None:
    if not os.path.isdir(path):
        raise RefusedError(f"{path} exists and is not a directory: choose another name")
    if set(os.listdir(path)) - {UNFINISHED} - OF_VOLUMES:
        raise RefusedError(f"{path} exists and is not empty: choose another directory")


def _check_counted(path: str, counted: Counted) -> None:
    """Compares what is in a partition's directory with what the report will say of it."""
    found = 0
    if counted["segments"]:
        with os.scandir(path) as entries:
            found = sum(entry.stat().st_size for entry in entries if is_segment_file(entry.name))
    if found != counted["size"]:
        raise JobError(
            f"{counted['topic']}-{counted['partition']}: {counted['size']:,} bytes of segments were written, "
            f"but {found:,} are there: nothing is published"
        )
