"""The exit codes of all commands."""

from __future__ import annotations

__all__ = ["CLEAN", "FAILED", "INTERRUPTED", "PROBLEMS", "USAGE", "exit_code"]

CLEAN = 0
"""Done, and nothing is wrong."""
PROBLEMS = 1
"""Done, all output is written, and problems were found."""
USAGE = 2
"""The command cannot be run as it was given; nothing was done."""
FAILED = 3
"""Could not finish, or the sum of bytes and records does not add up."""
INTERRUPTED = 130
"""Interrupted, as by Ctrl-C: 128 and the number of SIGINT, as shells have it."""


def exit_code(problems: object, *, balanced: bool = True) -> int:
    """The exit code of a command that finished; `problems` is true or positive if there are any."""
    if not balanced:
        return FAILED
    return PROBLEMS if problems else CLEAN
