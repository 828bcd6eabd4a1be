"""A file in a store that shows that a job is alive: the job rewrites it every `BEAT_SECONDS`.

Each rewrite is a conditional request: if another job has taken the file over or removed it, the job notices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from magicbyte.errors import JobError
from magicbyte.storage.stored_directory import StoredDirectory

__all__ = ["SILENCE_SECONDS", "Heartbeat"]

BEAT_SECONDS = 10.0
SILENCE_SECONDS = 30.0
"""After this time without a beat, a job counts as killed."""


class Heartbeat:
    """The file of a running job. Its content is unique to the job, and changes with each beat."""

    def __init__(self, output: StoredDirectory, name: str, text: Callable[[int], bytes]) -> None:
        """`text` gives the content, from the number of the beat. `create` or `take_over` come next."""
        self._output = output
        self._name = name
        self._text = text
        self._beats = 0
        self._tag: Any = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="magicbyte-beat", daemon=True)

    def create(self) -> bool:
        """Creates the file and starts rewriting it; returns False if the file exists."""
        return self._started(self._output.create(self._name, self._text(0)))

    def take_over(self, tag: Any) -> bool:
        """Replaces the file of another job if it still has this tag, and starts rewriting it."""
        return self._started(self._output.update(self._name, self._text(0), tag))

    def _started(self, tag: Any) -> bool:
        self._tag = tag
        if tag is not None:
            self._thread.start()
        return tag is not None

    def confirm(self) -> None:
        """Rewrites the file now.

        Raises:
            JobError: another job has taken it over or removed it.

        """
        with self._lock:
            self._write()
            if self._tag is None:
                raise JobError(
                    f"{self._output.path}: this job was taken for a killed one, since the store had not "
                    f"heard from it for {SILENCE_SECONDS:.0f} s, or its files were removed: nothing is "
                    "published"
                )

    @property
    def is_lost(self) -> bool:
        """True if another job has the file."""
        with self._lock:
            return self._tag is None

    def remove(self) -> None:
        """Removes the file, unless another job has it."""
        with self._lock:
            if self._tag is not None:
                self._output.delete([self._name])
                self._tag = None

    def stop(self) -> None:
        """Stops rewriting the file."""
        self._stop.set()
        self._thread.join()

    def _write(self) -> None:
        if self._tag is not None:
            self._beats += 1
            self._tag = self._output.update(self._name, self._text(self._beats), self._tag)

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            try:
                with self._lock:
                    self._write()
            except OSError:
                pass  # the store may be back at the next beat, and `confirm` fails if it is not
