"""Processes: the core they run on, and the CPU time of whole families of them, from /proc."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
        parents: dict[int, int] = {}
        ticks: dict[int, int] = {}
        for pid in (int(name) for name in os.listdir("/proc") if name.isdecimal()):
            if pid in self._strangers:
                continue
            try:
                text = Path(f"/proc/{pid}/stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            # Behind the name, which may hold anything.
            _, parent, *rest = text[text.rindex(")") + 2 :].split()
            user, system = rest[9:11]
            parents[pid], ticks[pid] = int(parent), int(user) + int(system)
        # Numbers wrap: a child's may be the smaller one, so generation by generation.
        family = {pid for pid in parents if pid in self._ticks}
        while born := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= born
        self._ticks |= {pid: ticks[pid] for pid in family}
        self._strangers |= parents.keys() - family
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


@dataclass(frozen=True)
class Used:
    """Seconds, and how many cores all other processes of the machine used meanwhile."""

    wall: float
    cpu: float
    others: float


def measure(run: Callable[[], None], family: Family) -> Used:
    """What `family` used for `run`, which may start processes of it."""
    cpu_start, busy_start, start = family.cpu_seconds(), _busy_seconds(), time.perf_counter()
    with family.watched():
        run()
        wall = time.perf_counter() - start
    cpu, busy = family.cpu_seconds() - cpu_start, _busy_seconds() - busy_start
    return Used(wall, cpu, max(0.0, busy - cpu) / wall)


def _busy_seconds() -> float:
    user, nice, system, _idle, _iowait, irq, softirq, *_ = (
        int(ticks) for ticks in Path("/proc/stat").read_text().split(maxsplit=8)[1:8]
    )
    return (user + nice + system + irq + softirq) / TICKS


CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def pin() -> None:
    """To one core, with every process started from here."""
    if CORES:
        os.sched_setaffinity(0, {max(CORES)})


def unpin() -> None:
    """To all cores again."""
    if CORES:
        os.sched_setaffinity(0, CORES)
