"""A command that kills its own process at its n-th request that writes.

Only these requests change anything in a store, so before and after each of them lies every state that a
reader or the next job could find.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forked
from magicbyte.cli import main
from magicbyte.jobs.publish import heartbeat
from magicbyte.storage.remote import RemoteStore

__all__ = ["kill_everywhere", "run_killed"]

_LATEST = 200


forked.load(__name__)


def run_killed(when: str, number: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a command until before or after its n-th request."""
    command = [str(one) for one in arguments]
    with tempfile.TemporaryDirectory() as directory:
        errors = Path(directory) / "errors"
        process = forked.start(_run, when, number, command, str(errors))
        process.join()
        return subprocess.CompletedProcess(command, process.exitcode or 0, "", errors.read_text())


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


def _run(when: str, deadly: int, command: list[str], errors: str) -> None:
    # No beats: how many there are depends on the machine, and each would be a request.
    heartbeat.SILENCE_SECONDS, heartbeat.BEAT_SECONDS = 0.05, 3600
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
    for place, stream in ((os.devnull, 1), (errors, 2)):
        with open(place, "w", encoding="utf-8") as file:
            os.dup2(file.fileno(), stream)
    code = main(command)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
