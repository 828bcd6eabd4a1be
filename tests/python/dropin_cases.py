"""The inputs for comparing drop-ins and originals: clients, generated records and batches."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import aiokafka.record._crecords as aiokafka_original
import kafka.record.default_records
import kafka.record.legacy_records
import kafka.record.memory_records
import kafka.record.util
import magicbyte
from magicbyte.compat import aiokafka as aiokafka_ours
from magicbyte.compat import kafka_python as kafka_python_ours

CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
NOW = 1_700_000_000_000
Headers = list[tuple[str, bytes | None]]


def _gathered(*modules: ModuleType) -> SimpleNamespace:
    names = SimpleNamespace()
    for module in modules:
        vars(names).update(vars(module))
    return names


@dataclass(frozen=True)
class Client:
    """A drop-in and its original, imported before anything is installed."""

    name: str
    ours: Any
    original: Any
    batch_attributes: tuple[str, ...]
    legacy_attributes: tuple[str, ...]
    record_attributes: tuple[str, ...]
    # Additional attributes of messages of magic 0 and 1.
    message_attributes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def corrupt(self) -> type[Exception]:
        found = self.ours.CorruptRecordException
        assert issubclass(found, Exception)
        return found

    def default_builder(self, side: Any, codec: int, batch_size: int = 1 << 30, **producer: int) -> Any:
        state = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1, "is_transactional": 0}
        return side.DefaultRecordBatchBuilder(
            magic=2, compression_type=codec, batch_size=batch_size, **(state | producer)
        )


_BATCH = (
    *("compression_type", "is_transactional", "is_control_batch", "next_offset", "base_offset", "magic"),
    *("crc", "attributes", "last_offset_delta", "first_timestamp", "max_timestamp", "producer_id"),
    *("producer_epoch", "base_sequence", "timestamp_type"),
)
_RECORD = ("offset", "timestamp", "timestamp_type", "key", "value", "headers", "checksum")

AIOKAFKA = Client(
    "aiokafka",
    aiokafka_ours,
    _gathered(aiokafka_original),
    _BATCH,
    ("is_control_batch", "is_transactional", "producer_id", "next_offset"),
    _RECORD,
)
KAFKA_PYTHON = Client(
    "kafka_python",
    kafka_python_ours,
    _gathered(
        kafka.record.util,
        kafka.record.legacy_records,
        kafka.record.default_records,
        kafka.record.memory_records,
    ),
    (
        *_BATCH,
        "size_in_bytes",
        "leader_epoch",
        "last_offset",
        "has_sequence",
        "last_sequence",
        "records_count",
    ),
    ("base_offset", "size_in_bytes", "timestamp_type", "compression_type", "magic"),
    (*_RECORD, "size_in_bytes"),
    ("magic",),
)
CLIENTS = [AIOKAFKA, KAFKA_PYTHON]


@dataclass(frozen=True)
class Given:
    """A record to append."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def _content(chance: random.Random) -> bytes | None:
    kind = chance.randrange(12)
    if kind == 0:
        return None
    if kind == 1:
        return b""
    size = chance.choice([1, 5, 20, 63, 64, 100, 300, 3000 if chance.random() < 0.1 else 10])
    return chance.randbytes(size) if chance.random() < 0.3 else (b"abcdefgh%d" % chance.randrange(9)) * size


def _key(chance: random.Random) -> str:
    return "".join(chance.choice("abcé漢🦀 ") for _ in range(chance.randrange(6)))


def records(chance: random.Random, *, headers: bool = True) -> list[Given]:
    """A few records, with nulls, sizes at the limits of varints, decreasing timestamps."""
    at = chance.choice([0, 1, NOW, NOW + chance.randrange(10**6), 2**40])
    return [
        Given(
            max(0, at + chance.randrange(-3, 1000)),
            _content(chance),
            _content(chance),
            [(_key(chance), _content(chance)) for _ in range(chance.choice([0, 0, 0, 1, 3]))]
            if headers
            else [],
        )
        for _ in range(chance.choice([1, 1, 2, 7, 40]))
    ]


def kafkas_batch(chance: random.Random, magic: int, codec: int) -> bytes:
    """A batch as found in a log: with a base offset, gaps, producers, log append time, control records."""
    control = magic == 2 and codec == 0 and chance.random() < 0.2
    options: dict[str, Any] = {}
    if magic == 2 and chance.random() < 0.5:
        options = {"producer_id": chance.randrange(2**40), "producer_epoch": chance.randrange(9)}
        options["base_sequence"] = -1 if control else chance.choice([0, 7, 2**31 - 2])
        options["is_transactional"] = chance.random() < 0.5
    if magic > 0 and chance.random() < 0.3:
        options["log_append_time"] = NOW + chance.randrange(999)
    offset = chance.choice([0, 5, 2**31, 2**40])
    builder = magicbyte.RecordsBuilder(magic, codec, is_control=control, **options)
    for given in records(chance, headers=magic == 2):
        key = b"\0\0\0" + bytes([chance.randrange(2)]) if control else given.key
        builder.append(offset, given.timestamp, key, given.value, given.headers)
        offset += chance.choice([1, 1, 1, 4])
    return builder.build()


def damaged(chance: random.Random, batch: bytes) -> bytes:
    """The batch with a few bytes changed or records cut off; its length and usually its CRC are corrected."""
    start = 57 if batch[16] == 2 else 17
    changed = bytearray(batch)
    for _ in range(chance.choice([1, 1, 2])):
        if chance.random() < 0.3 and len(changed) > start + 30:
            del changed[chance.randrange(start + 20, len(changed)) :]
        else:
            place = chance.randrange(start, len(changed))
            changed[place] = chance.choice([changed[place] ^ 1 << chance.randrange(8), 0, 1, 0x7F, 0xFF])
    changed[8:12] = (len(changed) - 12).to_bytes(4, "big")
    if chance.random() < 0.2:
        return bytes(changed)
    if changed[16] == 2:
        changed[17:21] = magicbyte.crc32c(changed[21:]).to_bytes(4, "big")
    else:
        changed[12:16] = zlib.crc32(changed[16:]).to_bytes(4, "big")
    return bytes(changed)


def outcome(work: Callable[[], Any]) -> Any:
    """The result, or the type of the exception."""
    try:
        return work()
    except Exception as error:
        return type(error)


def until_error(items: Iterator[Any]) -> tuple[list[Any], type[Exception] | None]:
    """The items before the end or the first error."""
    taken = []
    try:
        taken.extend(iter(lambda: next(items), None))
    except StopIteration:
        return taken, None
    except Exception as error:
        return taken, type(error)
    return taken, None
