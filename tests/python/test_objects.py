"""Records, iterators and views as objects: lifetimes, threads, memory, and nothing to break."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import magicbyte
import pytest
from conftest import KAFKA

LOG = "00000000000000000000.log"


def batches(name: str) -> list[magicbyte.RecordBatch | magicbyte.LegacyBatch]:
    """The batches of a partition's first segment."""
    return list(magicbyte.read_batches((KAFKA / name / LOG).read_bytes()))


def test_the_types_are_closed() -> None:
    record = next(iter(batches("v2_none")[0]))
    with pytest.raises(TypeError):
        type(record)()
    with pytest.raises(TypeError):
        type(iter(batches("v2_none")[0]))()
    with pytest.raises(AttributeError):
        record.offset = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        magicbyte.Record.offset = 1  # type: ignore[assignment,misc]
    assert magicbyte.Record.__module__ == "magicbyte"
    assert magicbyte.Record.offset.__doc__ == "Absolute offset in the partition."


def test_views_outlive_everything() -> None:
    kept = []
    for batch in batches("v2_zstd"):
        for record in batch:
            kept.append((record.value, record.value_bytes, record.key, record.key_bytes))
            del record
        del batch
    gc.collect()
    # Objects made since then use the memory that records, iterators and exporters had.
    others = [record for batch in batches("v1_gzip") for record in batch]
    for value, value_bytes, key, key_bytes in kept:
        assert value == value_bytes
        assert key == key_bytes
        assert value is None or value.readonly
    assert others


def test_an_iterator_outlives_its_batch_and_ends_for_good() -> None:
    batch = batches("v2_lz4")[0]
    count = batch.record_count
    records = iter(batch)
    del batch
    assert records.__length_hint__() == count
    assert len(list(records)) == count
    assert records.__length_hint__() == 0
    assert next(records, None) is None
    assert iter(records) is records


def test_threads_share_records() -> None:
    records = [record for batch in batches("v2_headers") for record in batch]
    expected = [(r.offset, r.key_bytes, r.value_bytes, r.headers_raw) for r in records]
    wrong: list[int] = []

    def read() -> None:
        for _ in range(30):
            for record, (offset, key, value, headers) in zip(records, expected, strict=True):
                views = (record.key, record.value)
                if (record.offset, *views) != (offset, key, value) or record.headers_raw != headers:
                    wrong.append(record.offset)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_garbage_collection_in_between_changes_nothing() -> None:
    """A collection may run any code between two steps of a getter: here at every allocation."""

    class Garbage:
        pass

    seen: list[object] = []
    record = next(iter(batches("v2_none")[0]))

    def make() -> None:
        garbage = Garbage()
        garbage.cycle = garbage  # type: ignore[attr-defined]
        weakref.finalize(garbage, lambda: seen.append((record.key, record.value)))

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            make()
            assert (record.key, record.value) == (record.key_bytes, record.value_bytes)
    finally:
        gc.set_threshold(*threshold)
    assert len(seen) > 100


DEBUG = """
import gc, sys
import magicbyte
data = open(sys.argv[1], "rb").read()
kept = []
for turn in range(20):
    for batch in magicbyte.read_batches(data):
        for record in batch:
            record.offset, record.timestamp, record.attributes, record.sequence, repr(record)
            views = record.key, record.value, record.headers, record.headers_raw, record.control
            if record.offset % 7 == turn % 7:
                kept.append((record, views, record.value_bytes))
    if turn % 3 == 2:
        del kept[::2]
        gc.collect()
assert all(record.value == value and views[1] == value for record, views, value in kept)
"""

FLAT = """
import resource, sys
import magicbyte
data = open(sys.argv[1], "rb").read()
def read(turns):
    count = 0
    for _ in range(turns):
        for batch in magicbyte.read_batches(data):
            for record in batch:
                record.key, record.value, record.key_bytes, record.headers
                count += 1
    return count
records = read(3)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(read(int(sys.argv[2]) * 3 // records), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def run(code: str, *arguments: str, **environment: str) -> str:
    """Runs a program in a fresh interpreter; returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["v2_headers", "v2_txn", "v1_lz4", "v2_nulls"])
def test_pythons_own_memory_checks_find_nothing(name: str) -> None:
    run(DEBUG, str(KAFKA / name / LOG), PYTHONMALLOC="debug")


def test_memory_stays_flat() -> None:
    path: Path = KAFKA / "v2_none" / LOG
    records, grown_kib = map(int, run(FLAT, str(path), "1000000").split())
    assert records > 500_000
    assert grown_kib < 1024
