"""Processes: the core they run on, and the CPU time of whole families of them, from /proc."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_SECONDS = 0.05


class Family:
    """Processes and all below them, but for those of `without` and all below those.

    A process that ended counts as it was last seen: Spark's Python workers are not waited for, so the time
    of those that ended is in no other process's account.
    """

    def __init__(self, *roots: int, without: tuple[int, ...] = ()) -> None:
        self._ticks = dict.fromkeys(roots, 0)
        self._strangers = set(without)

    def cpu_seconds(self) -> float:
        # Parents come first: their numbers are smaller.
        for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdecimal()):
            if pid in self._strangers:
                continue
            try:
                text = Path(f"/proc/{pid}/stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            # Behind the name, which may hold anything.
            _, parent, *rest = text[text.rindex(")") + 2 :].split()
            if pid in self._ticks or int(parent) in self._ticks:
                user, system = rest[9:11]
                self._ticks[pid] = int(user) + int(system)
            else:
                self._strangers.add(pid)
        return sum(self._ticks.values()) / TICKS

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Looks again and again, so that little of what ends is missed."""
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(SAMPLE_SECONDS):
                self.cpu_seconds()

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()


def pin() -> None:
    """To one core, with every process started from here."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
