"""The two ways in which a job can end without a result; the command line has an exit code for each."""

from __future__ import annotations

__all__ = ["JobError", "RefusedError"]


class JobError(Exception):
    """The job could not finish: the request was valid, but a file or an engine failed."""


class RefusedError(JobError):
    """The job refuses to start. Nothing was written, and the message explains what to change."""
