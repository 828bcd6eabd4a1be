"""Restores that are killed before a given change of a file. As a script, it forks for each line of JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import magicbyte
import magicbyte.jobs.restore_in_place  # every fork has it

# The audit events of what changes files; each of them is raised before the change.
CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.chown"}


def run(root: str, at: int, sources: list[str], keywords: dict[str, Any]) -> None:
    """Restores, and is killed before the change of this number below the root."""
    changes = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal changes
        is_change = event in CHANGES or (event == "open" and arguments[1] not in (None, "r", "rb"))
        if is_change and root in str(arguments[:2]):
            changes += 1
            if changes == at:
                os.kill(os.getpid(), signal.SIGKILL)

    # What a process has written stays when it is killed.
    os.fsync = lambda file: None
    sys.addaudithook(count)
    magicbyte.restore(sources, **keywords)


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if not child:
            run(**json.loads(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
