"""Loops as users of aiokafka write them, over its C extension, with CRC checks; and its builder."""

from collections.abc import Iterator
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder  # type: ignore[import-untyped]
from aiokafka.record.memory_records import MemoryRecords  # type: ignore[import-untyped]
from loops import Loop, found_in_records, touch_views

NAME = "aiokafka"
NO_HEADERS: list[tuple[str, bytes | None]] = []
UNLIMITED = 1 << 30


def batches(data: bytes) -> Iterator[Any]:
    records = MemoryRecords(data)
    while records.has_next():
        batch = records.next_batch()
        if not batch.validate_crc():
            raise ValueError("aiokafka found a wrong CRC")
        yield batch


# Here `key` and `value` are bytes.
READS = Loop(NAME, lambda data: touch_views(batches(data)), lambda data: found_in_records(batches(data)))


def build(rows: list[tuple[int, int, bytes | None, bytes | None]]) -> Any:
    """An uncompressed batch of magic 2."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, UNLIMITED)
    append = builder.append
    for offset, timestamp, key, value in rows:
        append(offset, timestamp, key, value, NO_HEADERS)
    return builder.build()
