"""Logs for a cleaner, from a seed: keys, tombstones, producers, transactions, all magics and codecs."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field

from magicbyte import RecordsBuilder

START = 1_700_000_000_000
MINUTE = 60_000


@dataclass
class _Producer:
    id: int
    transactional: bool
    epoch: int = 0
    sequence: int = 0
    open: bool = False


@dataclass
class LogMaker:
    """A growing log: `stage` gives the batches of the next segments."""

    rng: random.Random
    legacy: bool = False
    """Whether the first stage consists of magic 0 and 1."""
    offset: int = 0
    time: int = START
    leader_epoch: int = 0
    keys: int = 8
    producers: list[_Producer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keys = self.rng.choice([1, 3, 8, 40])
        count = self.rng.randrange(4)
        self.producers = [_Producer(1000 + n, self.rng.random() < 0.7) for n in range(count)]

    def stage(self, segments: int, *, finish: bool) -> list[bytes]:
        """The bytes of the next `segments` segments; `finish` ends all open transactions in the last one."""
        made = [self._segment() for _ in range(segments)]
        if finish:
            made[-1] += b"".join(self._marker(one) for one in self.producers if one.open)
        self.legacy = False
        return made

    def _segment(self) -> bytes:
        rng = self.rng
        data = b""
        # Only a cleaner leaves empty segments, and never an empty first one.
        for _ in range(rng.randrange(0 if self.offset and rng.random() < 0.1 else 1, 9)):
            self.time += rng.randrange(MINUTE)
            if self.legacy:
                data += self._legacy()
                continue
            self.leader_epoch += rng.random() < 0.1
            producer = rng.choice([None, *self.producers])
            if producer and producer.transactional and rng.random() < 0.35:
                data += self._marker(producer)
            else:
                data += self._data(producer)
        # A gap as left by earlier compaction, or by a marker that another cleaner dropped.
        self.offset += rng.choice([0, 0, 0, 0, 1, 7])
        return data

    def _records(self, builder: RecordsBuilder, headers: bool) -> int:
        rng = self.rng
        count = rng.choice([1, 1, 2, 5, 12])
        for _ in range(count):
            key = f"key-{rng.randrange(self.keys)}".encode() if rng.random() > 0.04 else None
            value = None if rng.random() < 0.25 else rng.randbytes(rng.choice([0, 3, 40, 200]))
            pairs = [("h", b"x" * rng.randrange(5)), ("h", None)] if headers and rng.random() < 0.3 else None
            time = -1 if rng.random() < 0.05 else self.time + rng.randrange(-MINUTE, MINUTE)
            builder.append(self.offset, time, key, value, pairs)
            self.offset += 1 if rng.random() < 0.95 else rng.randrange(1, 4)
        return count

    def _data(self, producer: _Producer | None) -> bytes:
        rng = self.rng
        of_producer = {}
        if producer:
            if not producer.transactional and rng.random() < 0.05:
                producer.epoch, producer.sequence = producer.epoch + 1, 0
            producer.open = producer.transactional
            of_producer = {
                "producer_id": producer.id,
                "producer_epoch": producer.epoch,
                "base_sequence": producer.sequence,
                "is_transactional": producer.transactional,
            }
        builder = RecordsBuilder(
            2,
            rng.choice([0, 0, 0, 1, 2, 2, 3, 4]),
            partition_leader_epoch=self.leader_epoch,
            log_append_time=self.time if rng.random() < 0.1 else None,
            **of_producer,
        )
        before = self.offset
        self._records(builder, headers=True)
        if producer:
            producer.sequence += self.offset - before
        return builder.build()

    def _marker(self, producer: _Producer) -> bytes:
        """The end of a transaction, possibly of one without data."""
        builder = RecordsBuilder(
            2,
            0,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            is_transactional=True,
            is_control=True,
            partition_leader_epoch=self.leader_epoch,
        )
        kind = self.rng.randrange(2)
        builder.append(self.offset, self.time, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 3))
        self.offset += 1
        producer.open = False
        return builder.build()

    def _legacy(self) -> bytes:
        rng = self.rng
        magic = rng.randrange(2)
        append_time = self.time if magic == 1 and rng.random() < 0.2 else None
        builder = RecordsBuilder(magic, rng.choice([0, 0, 1, 2, 3]), log_append_time=append_time)
        self._records(builder, headers=False)
        return builder.build()
