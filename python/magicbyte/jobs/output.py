"""The directory that a job writes partitions into: it has its name when all is done, or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from magicbyte.jobs.commit import check_apart
from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.model import PartitionListing

__all__ = ["Output"]

_REPORT = "reconciliation.json"


class Output:
    """The output while it is written; as a context it leaves nothing behind on failure."""

    def __init__(self, path: str, sources: Sequence[str]) -> None:
        self.path = os.path.abspath(path)
        check_apart(self.path, sources)
        if os.path.lexists(self.path) and (not os.path.isdir(self.path) or os.listdir(self.path)):
            raise RefusedError(f"{path} exists and is not empty: choose another directory")
        parent, name = os.path.split(self.path)
        self._hidden = os.path.join(parent, f".{name}.magicbyte-unfinished")
        # What a killed job left.
        shutil.rmtree(self._hidden, ignore_errors=True)
        os.makedirs(self._hidden)

    def target(self, listing: PartitionListing) -> str:
        """Where a partition is written."""
        return os.path.join(self._hidden, f"{listing['topic']}-{listing['partition']}")

    def commit(self, report: Mapping[str, Any], files: Mapping[str, str] | None = None) -> None:
        """Gives the output its name; `files` lie beside the report in it."""
        for name in os.listdir(self._hidden):
            # A partition of which nothing is good has no directory.
            if name.startswith("."):
                shutil.rmtree(os.path.join(self._hidden, name))
        for name, text in {**(files or {}), _REPORT: json.dumps(report, indent=1)}.items():
            with open(os.path.join(self._hidden, name), "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        if os.path.isdir(self.path):
            os.rmdir(self.path)
        os.rename(self._hidden, self.path)

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *_error: object) -> None:
        shutil.rmtree(self._hidden, ignore_errors=True)
