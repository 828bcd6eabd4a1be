"""Progress in bytes: a bar on a terminal, nothing otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

__all__ = ["NO_PROGRESS", "Progress", "Step", "format_bytes", "terminal_progress"]


class Step(Protocol):
    """A running step of a job."""

    def done(self, total_bytes: int) -> None:
        """Sets how many bytes of the step have been processed."""


class Progress(Protocol):
    """The receiver of a job's reports on its progress."""

    @property
    def visible(self) -> bool:
        """True if progress is shown at all; otherwise, an engine need not poll for it."""

    def step(self, name: str, size: int) -> AbstractContextManager[Step]:
        """Starts a step of `size` bytes."""


class _Silent:
    def __repr__(self) -> str:
        return "NO_PROGRESS"

    @property
    def visible(self) -> bool:
        return False

    @contextmanager
    def step(self, name: str, size: int) -> Iterator[Step]:
        yield self

    def done(self, total_bytes: int) -> None:
        pass


NO_PROGRESS: Progress = _Silent()


class _Bar:
    @property
    def visible(self) -> bool:
        return True

    @contextmanager
    def step(self, name: str, size: int) -> Iterator[Step]:
        from rich import progress
        from rich.console import Console

        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.DownloadColumn(binary_units=True),
            progress.TransferSpeedColumn(),
            progress.TimeRemainingColumn(),
        )
        with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(name, total=size)

            class BarStep:
                def done(self, total_bytes: int) -> None:
                    bar.update(task, completed=total_bytes)

            yield BarStep()


def terminal_progress() -> Progress:
    """A bar on standard error if that is a terminal and `rich` is installed, otherwise nothing."""
    if not sys.stderr.isatty():
        return NO_PROGRESS
    try:
        import rich  # noqa: F401
    except ImportError:
        return NO_PROGRESS
    return _Bar()


def format_bytes(size: float) -> str:
    """Formats a size for people: `1.2 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
