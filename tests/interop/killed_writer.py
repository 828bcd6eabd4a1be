"""A command that kills its own process at its n-th request that writes: run this file as a program.

    killed_writer.py before|after N WATCH_SECONDS ARGUMENTS...

Only these requests change anything in a store, so before and after each of them lies every state that a
reader or the next job could find.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["kill_everywhere", "run_killed"]

_LATEST = 200


def run_killed(when: str, number: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a command until its n-th request."""
    command = [sys.executable, __file__, when, str(number), "0.2", *map(str, arguments)]
    # The program must import the package, not this directory.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def kill_everywhere(arguments: Callable[[], list[object]], check: Callable[[], Any]) -> int:
    """Kills the command at each of its requests, and calls `check` after each; returns their number.

    In the end, the command has done its work, once.
    """
    for number in range(1, _LATEST):
        for when in ("before", "after"):
            done = run_killed(when, number, *arguments())
            check()
            if done.returncode != -signal.SIGKILL:
                assert done.returncode in (0, 1, 2), done.stderr
                # 2: it was killed when nothing was left to do.
                assert done.returncode != 2 or "is not empty" in done.stderr, done.stderr
                return number
    raise AssertionError("it never ends")


def main() -> None:
    """See above."""
    from magicbyte.cli import main as command_line
    from magicbyte.jobs import beacon
    from magicbyte.storage.remote import RemoteStore

    when, deadly, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    # No beats: how many there are depends on the machine, and each would be a request.
    beacon.SILENCE_SECONDS, beacon.BEAT_SECONDS = seconds, 3600
    numbers = itertools.count(1)
    write = RemoteStore.write
    reads = {"read_tagged", "files"}

    def counted(self: RemoteStore, path: str, request: Any) -> Any:
        is_read = reads & {*request.__code__.co_names}
        number = 0 if is_read else next(numbers)
        if (when, deadly) == ("before", number):
            os.kill(os.getpid(), signal.SIGKILL)
        result = write(self, path, request)
        if (when, deadly) == ("after", number):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    RemoteStore.write = counted  # type: ignore[method-assign, assignment]
    sys.exit(command_line(sys.argv[4:]))


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))
    main()
