"""Processes: the core that they run on, and the CPU time of whole process trees, from /proc."""

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
    """Processes and all their descendants, except those of `without` and their descendants.

    A process that has ended counts with its last sample: Spark does not wait for its Python workers, so no
    other process accounts for the CPU time of those that ended.
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
            # After the name, which may contain anything.
            _, parent, *rest = text[text.rindex(")") + 2 :].split()
            user, system = rest[9:11]
            parents[pid], ticks[pid] = int(parent), int(user) + int(system)
        # Process ids wrap, so a child's may be the smaller one: go generation by generation.
        family = {pid for pid in parents if pid in self._ticks}
        while born := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= born
        self._ticks |= {pid: ticks[pid] for pid in family}
        self._strangers |= parents.keys() - family
        return sum(self._ticks.values()) / TICKS

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Samples continuously, so that little is missed of processes that end."""
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
    """Wall-clock and CPU seconds, and how many cores all other processes used meanwhile."""

    wall: float
    cpu: float
    others: float


def measure(run: Callable[[], None], family: Family) -> Used:
    """What `family` uses during `run`, which may start more of its processes."""
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
    """Restricts this process, and all that it starts, to one core."""
    if CORES:
        os.sched_setaffinity(0, {max(CORES)})


def pin_to_others() -> None:
    """Restricts this process, and all that it starts, to the cores that `pin` leaves, if there are any."""
    if others := CORES - {max(CORES, default=0)}:
        os.sched_setaffinity(0, others)


def unpin() -> None:
    """Allows all cores again."""
    if CORES:
        os.sched_setaffinity(0, CORES)
