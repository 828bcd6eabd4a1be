"""The commit that a figure was measured at, and what separates it from the code that is here now.

Answers are `None` where git does not know: without a repository, or in a clone without that commit.
"""

import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sets import PROJECT


@dataclass(frozen=True)
class Commit:
    """`date` is the day it was made, YYYY-MM-DD. `dirty`: sources had changes that were in no commit."""

    name: str
    date: str
    dirty: bool = False


@dataclass(frozen=True)
class Since:
    """The changes of sources since a commit: commits that are on the way to HEAD, newest first, as name
    and subject, and whether there are changes that are in no commit yet."""

    commits: list[str]
    uncommitted: bool

    def __bool__(self) -> bool:
        return bool(self.commits) or self.uncommitted


@dataclass(frozen=True)
class Repository:
    root: Path

    def head(self, sources: tuple[str, ...]) -> Commit | None:
        """The commit that is checked out, as a figure of these sources names it."""
        described = self._git("log", "-1", "--abbrev=10", "--format=%h %cs")
        if not described:
            return None
        name, date = described.split()
        return Commit(name, date, self.uncommitted(sources))

    def uncommitted(self, sources: tuple[str, ...]) -> bool:
        return bool(self._git("status", "--porcelain", "--", *sources))

    def since(self, commit: Commit, sources: tuple[str, ...]) -> Since | None:
        """Nothing if the sources are as they were, whatever was committed in between and reverted."""
        # The trees are compared, because the history of a shallow clone ends somewhere.
        differs = self._git("diff", "--name-only", commit.name, "HEAD", "--", *sources)
        if differs is None:
            return None
        uncommitted = self.uncommitted(sources)
        if not differs:
            return Since([], uncommitted)
        between = f"{commit.name}..HEAD"
        commits = self._git("log", "--abbrev=10", "--format=%h %s", between, "--", *sources)
        # HEAD may differ from another branch though no commit on the way to it does.
        return Since((commits or "a commit that is not in this history").splitlines(), uncommitted)

    def _git(self, *arguments: str) -> str | None:
        if not self._is_one:
            return None
        command = ["git", "-C", str(self.root), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    @cached_property
    def _is_one(self) -> bool:
        """True if the root itself is a checkout, rather than an export inside another repository."""
        return (self.root / ".git").exists()


HERE = Repository(PROJECT)
