"""The findings of a run of `backup`."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from magicbyte.jobs.backing_up.manifest import BackupFinding
from magicbyte.model import Place

__all__ = ["Findings"]


class Findings:
    """The findings, in the order in which they were made."""

    def __init__(self) -> None:
        self.all: list[BackupFinding] = []

    def add(
        self,
        place: tuple[str, int | None],
        found: str,
        message: str,
        offsets: tuple[int, int] | None = None,
        aside: str | None = None,
    ) -> None:
        """Adds one. See `BackupFinding` for the parameters; `offsets` are the first and the last one."""
        first, last = offsets if offsets is not None else (None, None)
        finding = {"topic": place[0], "partition": place[1], "found": found, "first_offset": first}
        self.all.append(
            cast(BackupFinding, {**finding, "last_offset": last, "aside": aside, "message": message})
        )

    @property
    def messages(self) -> set[str]:
        """The messages, to add none twice: a run may write more than one manifest."""
        return {one["message"] for one in self.all}

    def stopped(self) -> set[tuple[str, int | None]]:
        """The partitions that could not be copied to their ends."""
        return {(one["topic"], one["partition"]) for one in self.all if one["found"] == "stopped"}

    def forget_changes(self, places: Collection[Place]) -> None:
        """Removes what was wrong with segments of these partitions, which are not there any more."""
        self.all = [
            one
            for one in self.all
            if one["found"] != "changed" or (one["topic"], one["partition"]) not in places
        ]
