"""The two ways in which a job can end without an answer; the command line's exit codes follow them."""

from __future__ import annotations

__all__ = ["JobError", "RefusedError"]


class JobError(Exception):
    """The job could not finish: what was asked is sound, but a file or an engine failed."""


class RefusedError(JobError):
    """The job refuses to start: nothing was read or written, and the message says what to change."""
