"""The exit codes of every command."""

from __future__ import annotations

__all__ = ["CLEAN", "FAILED", "PROBLEMS", "USAGE"]

CLEAN = 0
PROBLEMS = 1
"""Done, all output is there, and something was found that is not right."""
USAGE = 2
FAILED = 3
"""Could not finish, or the sum does not add up."""
