"""The check before an output is published: every file still has the bytes that were written."""

from __future__ import annotations

import os

from magicbyte.errors import JobError

__all__ = ["check_local_size", "check_size"]


def check_size(path: str, written: int, found: int | None, verdict: str = "nothing is published") -> None:
    """Raises `JobError` if a file has another size than was written; `found` is None if it is gone."""
    if found != written:
        state = "is gone" if found is None else f"has {found:,} bytes now"
        raise JobError(f"{path} was written with {written:,} bytes and {state}: {verdict}")


def check_local_size(path: str, written: int, verdict: str = "nothing is published") -> None:
    """Raises `JobError` as `check_size` does, for a local file."""
    check_size(path, written, os.path.getsize(path) if os.path.exists(path) else None, verdict)
