"""Tasks that begin before all of their chunks are known, so that little of the fetched data is kept."""

from __future__ import annotations

import json
import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping

from magicbyte.jobs.run.plan import size_of_chunk
from magicbyte.model import Chunk

__all__ = ["ArrivingTask", "ArrivingTasks"]


class ArrivingTask:
    """A `DecodeTask` that waits for its chunks while it iterates over them."""

    def __init__(self, number: int, tasks: ArrivingTasks) -> None:
        self.number = number
        self.sizes = Counter[str]()
        """The bytes of the chunks that have arrived, by topic."""
        self.arrived: deque[str] = deque()
        """Chunks that have arrived and have not been read."""
        self.is_whole = False
        """True if all chunks have arrived."""
        self._tasks = tasks

    @property
    def size(self) -> int:
        """The bytes of the chunks that have arrived."""
        return self.sizes.total()

    def size_of(self, topic: str) -> int:
        """See `DecodeTask`: an estimate until all chunks have arrived."""
        return self.sizes[topic] + (0 if self.is_whole else self._tasks.to_come(self, topic))

    @property
    def chunks(self) -> Iterator[str]:
        """See `DecodeTask`. Fetches a chunk that has not arrived, and all chunks before it."""
        while True:
            # In this order: the last chunk arrives before the task is whole.
            is_whole = self.is_whole
            if self.arrived:
                yield self.arrived.popleft()
            elif is_whole:
                return
            else:
                self._tasks.fetch_for(self)


class ArrivingTasks:
    """Groups neighbouring chunks into tasks of up to `target` bytes, as the chunks arrive.

    `sizes` gives the approximate number of bytes of each topic.
    """

    def __init__(self, chunks: Iterator[Chunk], target: int, sizes: Mapping[str, int]) -> None:
        self._chunks = chunks
        self._target = target
        self._rest = Counter(sizes)
        """The bytes of each topic that have not arrived."""
        self._lock = threading.Lock()
        self._count = 0
        self._last: ArrivingTask | None = None
        self._begun: deque[ArrivingTask] = deque()
        """Tasks that have their first chunk and that no thread has taken."""

    def __iter__(self) -> Iterator[ArrivingTask]:
        return self

    def __next__(self) -> ArrivingTask:
        with self._lock:
            while not self._begun:
                if not self._fetch():
                    raise StopIteration
            return self._begun.popleft()

    def fetch_for(self, task: ArrivingTask) -> None:
        """Waits until a chunk of the task has arrived, or the task is whole."""
        with self._lock:
            while not task.arrived and not task.is_whole:
                self._fetch()

    def to_come(self, task: ArrivingTask, topic: str) -> int:
        """The maximum number of bytes of a topic that the task may still get."""
        return max(0, min(self._target - task.size, self._rest[topic]))

    def _fetch(self) -> bool:
        """Adds the next chunk to the last task, or to a new one. Returns False if there is none."""
        chunk = next(self._chunks, None)
        size = 0 if chunk is None else size_of_chunk(chunk)
        if self._last and (chunk is None or self._last.size + size > self._target):
            self._last.is_whole, self._last = True, None
        if chunk is None:
            return False
        if self._last is None:
            self._last = ArrivingTask(self._count, self)
            self._count += 1
            self._begun.append(self._last)
        self._last.sizes[chunk["topic"]] += size
        self._rest[chunk["topic"]] -= size
        self._last.arrived.append(json.dumps(chunk))
        return True
