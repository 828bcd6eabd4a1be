"""Records, iterators and views as objects: lifetimes, threads, memory."""

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
    # Objects made since then reuse the memory of the records, iterators and exporters.
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
    """A collection may run any code between two steps of a getter; here there is one at every allocation."""

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
            for key, _ in record.headers[:3]:
                assert record.last_header(key) == record.headers_for(key)[-1]
            assert record.last_header(b"no such key") is None and record.headers_for("none") == []
            if record.offset % 7 == turn % 7:
                kept.append((record, views, record.value_bytes))
    if turn % 3 == 2:
        del kept[::2]
        gc.collect()
assert all(record.value == value and views[1] == value for record, views, value in kept)
"""

OUTLIVE = """
import gc, os, shutil, sys, tempfile, threading
import magicbyte, pyarrow as pa
source, name = sys.argv[1:]
with tempfile.TemporaryDirectory() as scratch:
    directory = os.path.join(scratch, "t-0")
    shutil.copytree(source, directory)
    log = magicbyte.PartitionLog(directory)
    records = log.records()
    kept = [(record.offset, record.key, record.value, record.value_bytes) for record in records]
    stream = log.to_arrow(["value"], views=True, threads=2)
    column = pa.table(stream).column("value")
    shutil.rmtree(directory)
    del log, records, stream
gc.collect()
# Memory that was given back is used again by these.
others = [bytearray(1 << 20) for _ in range(20)]
assert [bytes(value) if value is not None else None for _, _, value, _ in kept] == [copy for *_, copy in kept]
assert column.to_pylist() == [copy for *_, copy in kept]

# Threads that share records: views and their ends in every order.
data = open(os.path.join(source, name), "rb").read()
shared = [record for batch in magicbyte.read_batches(data) for record in batch]
expected = [(record.key_bytes, record.value_bytes, record.headers_raw) for record in shared]
wrong = []
def look(turn):
    held = []
    for _ in range(5):
        for record, (key, value, headers) in zip(shared, expected):
            held.append((record.value, record.key))
            if held[-1] != (value, key) or record.headers_raw != headers:
                wrong.append(record)
            if len(held) > 50 + turn:
                del held[::2]
sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=look, args=(turn,)) for turn in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong
print(len(kept))
"""

FLAT = """
import resource, sys
import magicbyte, pyarrow as pa
data = open(sys.argv[1], "rb").read()
def objects():
    count = 0
    for batch in magicbyte.read_batches(data):
        for record in batch:
            record.key, record.value, record.key_bytes, record.headers
            count += 1
    return count
def columns(**options):
    stream = pa.RecordBatchReader.from_stream(magicbyte.read_batches(data).to_arrow(**options))
    return sum(batch.num_rows for batch in stream)
ways = [objects, columns, lambda: columns(views=True), lambda: columns(threads=2)]
for way in ways:
    records = sum(way() for _ in range(3))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
read = [sum(way() for _ in range(int(sys.argv[2]) * 3 // records)) for way in ways]
print(min(read), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
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
@pytest.mark.parametrize("checks", [{"PYTHONMALLOC": "debug"}, {"PYTHONDEVMODE": "1"}], ids=str)
def test_pythons_own_memory_checks_find_nothing(name: str, checks: dict[str, str]) -> None:
    run(DEBUG, str(KAFKA / name / LOG), **checks)


@pytest.mark.parametrize("name", ["v2_headers", "v2_zstd", "v1_gzip", "v2_nulls"])
@pytest.mark.parametrize("checks", [{"PYTHONMALLOC": "debug"}, {"PYTHONDEVMODE": "1"}], ids=str)
def test_views_outlive_batch_iterator_log_and_file(name: str, checks: dict[str, str]) -> None:
    assert int(run(OUTLIVE, str(KAFKA / name), LOG, **checks)) > 0


def test_memory_stays_flat() -> None:
    """With MAGICBYTE_TEST_RECORDS=10000000, it takes minutes in the same memory."""
    path: Path = KAFKA / "v2_zstd" / LOG
    wanted = int(os.environ.get("MAGICBYTE_TEST_RECORDS", 300_000))
    records, grown_kib = map(int, run(FLAT, str(path), str(wanted)).split())
    assert records > wanted * 0.9
    assert grown_kib < 4096


def test_headers_by_key() -> None:
    builder = magicbyte.RecordsBuilder()
    headers = [("a", b"1"), ("b", None), ("a", None), (b"\xff", b"raw"), ("a", b"3"), ("", b"")]
    builder.append(0, 0, None, None, headers)
    builder.append(1, 1)
    first, second = next(magicbyte.read_batches(builder.build()))
    assert first.last_header("a") == ("a", b"3")
    assert first.headers_for("a") == [("a", b"1"), ("a", None), ("a", b"3")]
    assert first.last_header("b") == ("b", None)
    assert first.last_header("") == ("", b"")
    # By bytes, or by the str that `headers` returns.
    assert first.last_header(b"\xff") == first.last_header("\udcff") == ("\udcff", b"raw")
    assert first.last_header("c") is second.last_header("a") is None
    assert second.headers_for("a") == []
    with pytest.raises(TypeError):
        first.last_header(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        first.headers_for()  # type: ignore[call-arg]
