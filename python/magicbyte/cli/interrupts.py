"""Commands that go on until a signal ends them."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["stopped_by_signals", "wait_for_interrupt"]


def wait_for_interrupt() -> NoReturn:
    """Waits until SIGINT (Ctrl-C) raises KeyboardInterrupt."""
    while True:
        # Not forever: a signal that arrives just before a wait begins is handled when it ends.
        time.sleep(1)


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that SIGINT (Ctrl-C) and SIGTERM set; a second signal interrupts what is being done."""
    stop = threading.Event()

    def handle(*_: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        # In a thread, since this one may be inside the event's lock.
        threading.Thread(target=stop.set).start()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
