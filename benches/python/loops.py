"""The loops that Python programs write over a set, with the checks that make a loop valid."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import magicbyte
import pyarrow
import pyarrow.compute
from sets import Found, Set, damaged


@dataclass(frozen=True)
class Loop:
    """`timed` touches key and value of every record and counts; `found` also sums their sizes,
    which would cost more than touching them."""

    name: str
    timed: Callable[[bytes], int]
    found: Callable[[bytes], Found]


def arrow_batches(data: bytes) -> Iterator[Any]:
    for batch in magicbyte.read_batches(data):
        yield pyarrow.record_batch(batch)


def arrow_stream(data: bytes) -> Any:
    return pyarrow.RecordBatchReader.from_stream(magicbyte.read_batches(data))


def touch_views(batches: Iterable[Any]) -> int:
    count = 0
    for batch in batches:
        for record in batch:
            key, value = record.key, record.value  # noqa: F841
            count += 1
    return count


def touch_bytes(batches: Iterable[Any]) -> int:
    count = 0
    for batch in batches:
        for record in batch:
            key, value = record.key_bytes, record.value_bytes  # noqa: F841
            count += 1
    return count


def count_rows(batches: Iterable[Any]) -> int:
    """The columns hold copies of keys and values, so they were touched."""
    return sum(batch.num_rows for batch in batches)


def found_in_records(batches: Iterable[Any]) -> Found:
    sizes = [len(record.key) + len(record.value) for batch in batches for record in batch]
    return Found(len(sizes), sum(sizes))


def found_in_rows(batches: Iterable[Any]) -> Found:
    rows = size = 0
    for batch in batches:
        rows += batch.num_rows
        for column in ("key", "value"):
            size += pyarrow.compute.sum(pyarrow.compute.binary_length(batch.column(column))).as_py()
    return Found(rows, size)


OURS = [
    Loop(
        "key and value as bytes",
        lambda data: touch_bytes(magicbyte.read_batches(data)),
        lambda data: found_in_records(magicbyte.read_batches(data)),
    ),
    Loop(
        "key and value as memoryviews",
        lambda data: touch_views(magicbyte.read_batches(data)),
        lambda data: found_in_records(magicbyte.read_batches(data)),
    ),
    Loop(
        "to Arrow, a batch each",
        lambda data: count_rows(arrow_batches(data)),
        lambda data: found_in_rows(arrow_batches(data)),
    ),
    Loop(
        "to Arrow, one stream",
        lambda data: count_rows(arrow_stream(data)),
        lambda data: found_in_rows(arrow_stream(data)),
    ),
]


def rate(loop: Loop, on: Set, data: bytes) -> float:
    """Records/s of CPU time, since other processes may share the core."""
    start = time.process_time()
    count = loop.timed(data)
    elapsed = time.process_time() - start
    if count != on.expected.records:
        raise RuntimeError(f"{loop.name} on {on.name}: {count} records instead of {on.expected.records}")
    return count / elapsed


def check(loop: Loop, on: Set, data: bytes) -> None:
    """Checks that the loop finds everything, and that it notices damage."""
    found = loop.found(data)
    if found != on.expected:
        raise RuntimeError(f"{loop.name} on {on.name}: {found} instead of {on.expected}")
    for damage, broken in damaged(data).items():
        try:
            noticed = loop.timed(broken) != on.expected.records
        except ValueError:
            noticed = True
        if not noticed:
            raise RuntimeError(f"{loop.name} did not notice {damage} in {on.name}")
