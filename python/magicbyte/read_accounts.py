"""The accounts of reads: what they have read of each partition, and what they have found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol

from magicbyte._core import LISTED

if TYPE_CHECKING:
    from magicbyte.model import Problem

__all__ = ["PartitionReads", "ReadAccount"]


class ReadAccount(NamedTuple):
    """The account of what has been read of a partition so far: by a stream, or by all reads of a frame.

    `good_bytes + quarantined_bytes + tail_bytes + outside_bytes == size`. A read that has ended passed
    `outside_bytes` on purpose. `PartitionLog.verify` accounts for every record of a partition, too.
    """

    topic: str
    partition: int
    size: int
    """Bytes of all segments when the log was opened, or more if they were read since; once for each read."""
    batches: int
    """Batches that were read, including control batches and those of aborted transactions."""
    good_bytes: int
    """Their bytes."""
    quarantined_bytes: int
    """Bytes that could not be read."""
    tail_bytes: int
    """Bytes after the last batches: zeros, or a batch that was not written completely."""
    outside_bytes: int
    """Bytes that were not read: they are outside of the request, or not yet reached."""
    rows: int
    """Records decoded; `where` selects from them."""
    end_offset: int | None
    """The end of the last read (exclusive), as in `LogBatches`. None: the log's end, or not yet begun."""
    problems: list[Problem]
    """The first 1000 problems in PERMISSIVE mode, torn tails included; each once, whatever reads met it."""
    problems_left_out: int
    """The number of further problems; of several reads, that of the read with most of them."""

    def followed_by(self, later: ReadAccount) -> ReadAccount:
        """The account of this read and of a later one of the same partition."""
        known = {tuple(problem.values()) for problem in self.problems}
        new = [problem for problem in later.problems if tuple(problem.values()) not in known]
        listed = (self.problems + new)[:LISTED]
        left_out = later.problems_left_out + len(self.problems) + len(new) - len(listed)
        return later._replace(
            **{name: getattr(self, name) + getattr(later, name) for name in _SUMS},
            problems=listed,
            problems_left_out=max(self.problems_left_out, left_out),
        )


_SUMS = ("size", "batches", "good_bytes", "quarantined_bytes", "tail_bytes", "outside_bytes", "rows")


class Read(Protocol):
    """A read that is under way."""

    def account(self) -> ReadAccount:
        """Its account so far."""


class PartitionReads:
    """All reads of a partition. Memory is that of the reads under way, and of one account."""

    def __init__(self) -> None:
        self._lock = Lock()
        # A read is replaced by its account when it ends. That takes no lock: it may happen in the garbage
        # collector, in a thread that has the lock.
        self._reads: dict[int, Read | ReadAccount] = {}
        self._begun = 0

    def begin(self, read: Read) -> int:
        """Adds a read; returns its number."""
        with self._lock:
            self._sum_up()
            self._begun += 1
            self._reads[self._begun] = read
            return self._begun

    @contextmanager
    def under_way(self, read: Read) -> Iterator[None]:
        """A read that ends with the context."""
        number = self.begin(read)
        try:
            yield
        finally:
            self._reads[number] = read.account()

    @property
    def account(self) -> ReadAccount | None:
        """The account of all reads; None if there was none."""
        with self._lock:
            self._sum_up()
            reads = list(self._reads.values())
        accounts = [read if isinstance(read, ReadAccount) else read.account() for read in reads]
        return reduce(ReadAccount.followed_by, accounts) if accounts else None

    def _sum_up(self) -> None:
        """Joins the accounts of the reads that have ended, in place of the last one."""
        ended = {n: read for n, read in list(self._reads.items()) if isinstance(read, ReadAccount)}
        if len(ended) > 1:
            *others, last = ended
            self._reads[last] = reduce(ReadAccount.followed_by, ended.values())
            for number in others:
                del self._reads[number]
