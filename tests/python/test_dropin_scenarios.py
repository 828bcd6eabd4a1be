"""Uses of these classes by users of the two clients and by the clients' own tests."""

from __future__ import annotations

import copy
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import aiokafka.codec
import kafka.codec
import pytest
from dropin_cases import AIOKAFKA, CLIENTS, CODECS, KAFKA_PYTHON, NOW, Client, outcome
from magicbyte.compat import kafka_python

CODEC_MODULES: dict[str, Any] = {"aiokafka": aiokafka.codec, "kafka_python": kafka.codec}


@pytest.fixture(params=CLIENTS, ids=str)
def client(request: pytest.FixtureRequest) -> Client:
    assert isinstance(request.param, Client)
    return request.param


def default_builder(client: Client, codec: int = 0, size: int = 1 << 20, **producer: int) -> Any:
    return client.default_builder(client.ours, codec, size, **producer)


def wrapper(client: Client, magic: int, codec: int = 1, count: int = 10) -> bytearray:
    builder = client.ours.LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for offset in range(count):
        assert builder.append(offset, NOW + offset, b"key", b"value") is not None
    built = builder.build()
    assert isinstance(built, bytearray)
    return built


# --- codecs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=CODECS.get)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_codec_that_is_not_there(client: Client, magic: int, codec: int) -> None:
    def builder() -> Any:
        if magic < 2:
            made = client.ours.LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=999)
            made.append(0, timestamp=None, key=None, value=b"M" * 500)
        else:
            made = default_builder(client, codec)
            made.append(0, timestamp=None, key=None, value=b"M" * 500, headers=[])
        return made

    error = client.ours.UnsupportedCodecError
    if magic < 2 and codec == 4:
        with pytest.raises(error, match=r"Unknown compression codec 0x04|Unrecognized compression type"):
            builder().build()
        return
    built = bytes(builder().build())
    name = CODECS[codec]
    with mock.patch.object(CODEC_MODULES[client.name], f"has_{name}", return_value=False):
        with pytest.raises(error, match=f"Libraries for {name} compression codec not found"):
            builder().build()
        batch = (
            client.ours.DefaultRecordBatch(built)
            if magic == 2
            else client.ours.LegacyRecordBatch(built, magic)
        )
        with pytest.raises(error, match=f"Libraries for {name} compression codec not found"):
            list(batch)
    assert len(list(batch)) == 1


def test_a_codec_that_does_not_exist(client: Client) -> None:
    for builder in (default_builder(client, 7), client.ours.LegacyRecordBatchBuilder(0, 7, 1024)):
        headers = ([],) if "Default" in type(builder).__name__ else ()
        assert builder.append(0, None, None, b"M", *headers) is not None
        with pytest.raises(client.ours.UnsupportedCodecError):
            builder.build()


# --- building -------------------------------------------------------------------------------------


def test_a_batch_without_records(client: Client) -> None:
    for codec in CODECS:
        builder = default_builder(
            client, codec, producer_id=123456, producer_epoch=123, base_sequence=9999, is_transactional=1
        )
        batch = client.ours.DefaultRecordBatch(bytes(builder.build()))
        assert batch.validate_crc()
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (123456, 123, 9999)
        assert batch.is_transactional
        assert list(batch) == []


def test_the_producers_state_can_come_late(client: Client) -> None:
    builder = default_builder(client)
    builder.append(0, NOW, b"k", b"v", [])
    last: dict[str, Any] = {} if client is AIOKAFKA else {"is_transactional": False}
    builder.set_producer_state(producer_id=700, producer_epoch=5, base_sequence=17, **last)
    assert (builder.producer_id, builder.producer_epoch, builder.base_sequence) == (700, 5, 17)
    first = builder.build()
    builder.set_producer_state(producer_id=701, producer_epoch=5, base_sequence=17, **last)
    second = builder.build()
    assert [client.ours.DefaultRecordBatch(each).producer_id for each in (first, second)] == [700, 701]


def test_the_first_record_always_has_room(client: Client) -> None:
    for size, expected in ((2000, [True]), (700, [True, False, False])):
        builders = [default_builder(client, size=1024)]
        builders += [client.ours.LegacyRecordBatchBuilder(magic, 0, 1024) for magic in (0, 1)]
        for builder in builders:
            headers = ([],) if "Default" in type(builder).__name__ else ()
            for offset, has_room in enumerate(expected):
                metadata = builder.append(offset, None, None, b"M" * size, *headers)
                assert (metadata is not None) == has_room
            assert size < len(builder.build()) < size + 100


def test_records_that_are_refused_leave_nothing(client: Client) -> None:
    builder = default_builder(client)
    for wrong in (
        {"key": "text"},
        {"value": "text"},
        {"timestamp": "1243812793"},
        {"offset": "0"},
    ):
        arguments = {"offset": 0, "timestamp": NOW, "key": None, "value": None, "headers": []} | wrong
        with pytest.raises(TypeError):
            builder.append(**arguments)
    for offset, key in ((0, b"123"), (1, None), (5, b"123")):
        builder.append(offset, timestamp=None if key is None else NOW, key=key, value=None, headers=[])
    batch = client.ours.DefaultRecordBatch(builder.build())
    assert batch.last_offset_delta == 5
    assert [(record.offset, record.key) for record in batch] == [(0, b"123"), (1, None), (5, b"123")]


def test_the_time_is_now(client: Client) -> None:
    import time

    builder = default_builder(client)
    legacy = client.ours.LegacyRecordBatchBuilder(1, 0, 999)
    before = int(time.time() * 1000)
    stamps = [builder.append(0, None, None, b"", []).timestamp, legacy.append(0, None, None, b"").timestamp]
    assert all(before <= stamp <= int(time.time() * 1000) for stamp in stamps)
    assert client.ours.LegacyRecordBatchBuilder(0, 0, 999).append(0, None, None, b"").timestamp == -1


def test_any_buffer_is_a_key(client: Client) -> None:
    builder = default_builder(client)
    for offset, data in enumerate((b"data", bytearray(b"data"), memoryview(b"xdatax")[1:5])):
        builder.append(offset, NOW, data, data, [])
    assert {(r.key, r.value) for r in client.ours.DefaultRecordBatch(builder.build())} == {(b"data", b"data")}


def test_appending_goes_on_after_a_build(client: Client) -> None:
    for codec in CODECS:
        builder = default_builder(client, codec)
        builder.append(0, NOW, b"k", b"v" * 50, [])
        one = bytes(builder.build())
        assert builder.build() == one
        builder.append(1, NOW, b"k", b"v" * 50, [])
        two = client.ours.DefaultRecordBatch(builder.build())
        assert two.validate_crc()
        assert len(list(two)) == 2


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("magic", [0, 1])
def test_the_broker_sets_the_wrappers_offset(client: Client, magic: int) -> None:
    built = wrapper(client, magic)
    struct.pack_into(">q", built, 0, 1009 if magic else 9)
    batch = client.ours.LegacyRecordBatch(built, magic)
    assert batch.validate_crc()
    assert batch.next_offset == (1010 if magic else 10)
    first = 1000 if magic else 0
    assert [record.offset for record in batch] == list(range(first, first + 10))


def test_the_brokers_time_in_a_wrapper(client: Client) -> None:
    built = wrapper(client, 1)
    built[17] |= 8
    struct.pack_into(">q", built, 18, NOW + 5000)
    found = list(client.ours.LegacyRecordBatch(built, 1))
    assert {(record.timestamp, record.timestamp_type) for record in found} == {(NOW + 5000, 1)}


@pytest.mark.parametrize("magic", [0, 1])
def test_wrappers_with_a_key_or_without_a_value(client: Client, magic: int) -> None:
    built = wrapper(client, magic)
    key = 26 if magic else 18
    keyed = bytearray(built[:key] + b"\0\0\0\x03key" + built[key + 4 :])
    struct.pack_into(">i", keyed, 8, len(keyed) - 12)
    assert len(list(client.ours.LegacyRecordBatch(keyed, magic))) == 10
    null = bytearray(built[: key + 4] + b"\xff\xff\xff\xff")
    struct.pack_into(">i", null, 8, len(null) - 12)
    with pytest.raises(client.corrupt, match="Value of compressed message is None"):
        list(client.ours.LegacyRecordBatch(null, magic))


def test_a_flipped_byte_is_found(client: Client) -> None:
    built = default_builder(client)
    built.append(0, NOW, b"k", b"v", [])
    batches = [(built.build(), client.ours.DefaultRecordBatch)]
    for magic in (0, 1):
        batches.append(
            (wrapper(client, magic), lambda data, magic=magic: client.ours.LegacyRecordBatch(data, magic))
        )
    for data, opened in batches:
        assert opened(bytes(data)).validate_crc() is True
        for place in (22 if len(data) < 90 else 17, len(data) - 1):
            data[place] ^= 0x40
            assert opened(bytes(data)).validate_crc() is False
            data[place] ^= 0x40


def test_a_batch_is_an_iterator(client: Client) -> None:
    builder = default_builder(client)
    for offset in range(3):
        builder.append(offset, NOW, b"k", b"v", [])
    batch = client.ours.DefaultRecordBatch(builder.build())
    # How the marker of a control batch is read.
    assert next(batch).offset == 0
    if client is AIOKAFKA:
        with pytest.raises(AssertionError):
            iter(batch)
        assert [next(batch).offset, next(batch).offset] == [1, 2]
    else:
        assert iter(batch) is batch
        assert [record.offset for record in batch] == [1, 2]
    assert next(batch, None) is None
    assert next(batch, None) is None
    # aiokafka's iterator starts over, as the original intends.
    assert len(list(batch)) == (3 if client is AIOKAFKA else 0)
    with pytest.raises(AssertionError, match="before iteration"):
        batch.validate_crc()


def test_records_outlive_their_batch(client: Client) -> None:
    builder = default_builder(client, 3)
    for offset in range(50):
        builder.append(offset, NOW, b"k%d" % offset, b"v" * 100, [("h", b"%d" % offset)])
    data = b"".join([bytes(builder.build())] * 20)
    fetched = client.ours.MemoryRecords(data)
    kept = [record for _ in range(20) for record in fetched.next_batch()]
    del fetched, data
    assert [(r.key, r.headers) for r in kept] == [(b"k%d" % o, [("h", b"%d" % o)]) for o in range(50)] * 20


def test_threads_share_batches_and_builders(client: Client) -> None:
    """No thread waits forever, and nothing is read or built twice."""
    builder = default_builder(client, 3, size=1 << 30)
    for offset in range(2000):
        builder.append(offset, NOW, b"k", b"%d " % offset * 50, [])
    with ThreadPoolExecutor(8) as pool:
        built = set(pool.map(lambda _: bytes(builder.build()), range(32)))
        assert len(built) == 1
        batch = client.ours.DefaultRecordBatch(built.pop())
        taken = pool.map(lambda _: [record.offset for record in islice(batch, 250)], range(8), timeout=60)
        outcomes = [outcome(lambda t=taken: next(t)) for _ in range(8)]
    if client is KAFKA_PYTHON:
        assert sorted(offset for offsets in outcomes for offset in offsets) == list(range(2000))


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the memory")
def test_memory_stays_flat(client: Client) -> None:
    builder = default_builder(client, 3)
    for offset in range(1000):
        builder.append(offset, NOW, b"key", b"value %d" % offset, [("h", b"v")])
    data = bytes(builder.build()) * 20

    def read_and_build() -> int:
        for batch in iter(client.ours.MemoryRecords(data).next_batch, None):
            for record in batch:
                _ = (record.key, record.value, record.headers, record.checksum)
        for _ in range(20):
            small = default_builder(client, 3)
            small.append(0, NOW, b"k", b"v", [])
            small.build()
        return int(Path("/proc/self/statm").read_text().split()[1])

    before = [read_and_build() for _ in range(5)][-1]
    after = [read_and_build() for _ in range(25)][-1]
    assert after - before < 1000, "pages"


def test_varints_and_checksums(client: Client) -> None:
    borders = {sign * (1 << bits) + more for bits in range(63) for sign in (1, -1) for more in (-1, 0, 1)}
    suffix = "_cython" if client is AIOKAFKA else ""
    ours, original = client.ours, client.original
    for value in sorted(border for border in borders if -(2**63) <= border < 2**63):
        written: list[int] = []
        assert getattr(ours, f"encode_varint{suffix}")(value, written.append) == len(written)
        expected: list[int] = []
        getattr(original, f"encode_varint{suffix}")(value, expected.append)
        assert written == expected
        assert getattr(ours, f"size_of_varint{suffix}")(value) == len(written)
        data = bytearray(b"\x01\xf0" + bytes(written) + b"\xff\x01")
        assert getattr(ours, f"decode_varint{suffix}")(data, 2) == (value, len(written) + 2)
    for wrong in (b"\x80" * 11, b"\xff" * 20):
        with pytest.raises(ValueError, match="range"):
            getattr(ours, f"decode_varint{suffix}")(wrong)
    for value in ("text", 1 << 63):
        names = (f"size_of_varint{suffix}",)
        if client is AIOKAFKA:
            assert [outcome(lambda n=n, v=value: getattr(ours, n)(v)) for n in names] == [
                outcome(lambda n=n, v=value: getattr(original, n)(v)) for n in names
            ]
    crc = ours.crc32c_cython if client is AIOKAFKA else ours.calc_crc32c
    assert [crc(data) for data in (b"", b"a", memoryview(b"123456789"))] == [0, 0xC1D04330, 0xE3069283]


# --- kafka-python's MemoryRecordsBuilder ----------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS, ids=CODECS.get)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_memory_records_builder(magic: int, codec: int) -> None:
    if magic < 2 and codec == 4:
        return
    builder = kafka_python.MemoryRecordsBuilder(magic=magic, compression_type=codec, batch_size=10240)
    empty = builder.size_in_bytes()
    assert empty == (61 if magic == 2 else 0)
    sizes = []
    for offset in range(10):
        metadata = builder.append(timestamp=10000 + offset, key=b"test", value=b"Super")
        assert metadata is not None
        assert metadata.offset == offset
        assert metadata.timestamp == (10000 + offset if magic else -1)
        assert builder.next_offset() == offset + 1
        sizes.append(metadata.size)
    with pytest.raises(TypeError):
        builder.append(timestamp=None, key="test", value="Super")  # type: ignore[arg-type]
    assert not builder.is_full()
    before = builder.size_in_bytes()
    assert before == sum(sizes) + empty
    for closed in (builder.records, builder.buffer, builder.compression_rate):
        with pytest.raises(AssertionError):
            closed()
    builder.close()
    assert builder.is_full()
    assert int(before * builder.compression_rate()) == builder.size_in_bytes() == len(builder.buffer())
    rates = kafka_python.MemoryRecordsBuilder(magic, codec, 1 << 20)
    for size in range(200):
        rates.append(NOW, b"k" * size, b"v" * 7 * size)
        before = rates.size_in_bytes()
        closed = copy.copy(rates)
        closed.close()
        assert int(before * closed.compression_rate()) == closed.size_in_bytes()
    buffer = bytes(builder.buffer())
    builder.close()
    assert builder.buffer() == buffer
    assert builder.append(timestamp=None, key=b"test", value=b"Super") is None
    found = [record for batch in builder.records() for record in batch]
    assert [record.offset for record in found] == list(range(10))


def test_memory_records_builder_is_full_and_skips() -> None:
    for magic in (0, 1, 2):
        builder = kafka_python.MemoryRecordsBuilder(magic, 0, 10240)
        assert builder.append(key=None, timestamp=None, value=b"M" * 10240) is not None
        assert builder.is_full()
        assert builder.append(key=None, timestamp=None, value=b"M") is None
        assert builder.next_offset() == 1
        builder = kafka_python.MemoryRecordsBuilder(magic, 0, 10240, offset=5)
        builder.append(NOW, b"k", b"v")
        builder.skip(3)
        builder.append(NOW, b"k", b"v")
        builder.close()
        assert [r.offset for batch in builder.records() for r in batch] == [5, 9]


@pytest.mark.parametrize(
    "arguments",
    [
        (3, 0, 99),
        (2, 5, 99),
        (2, 0, 99, 0, True),
        (2, 0, 99, 0, False, 5),
        (2, 0, 99, 0, False, 5, 1),
        (1, 0, 99, 0, True),
        (1, 0, 99, 0, False, 5),
        (2, 0, 99, 0, True, 5, 1, 0),
        (1, 0, 99),
    ],
)
def test_memory_records_builder_refuses_what_the_original_does(arguments: tuple[Any, ...]) -> None:
    ours, original = (
        outcome(lambda side=side: side.MemoryRecordsBuilder(*arguments).producer_id)
        for side in (KAFKA_PYTHON.ours, KAFKA_PYTHON.original)
    )
    assert ours == original


def test_memory_records_builders_producer() -> None:
    builder = kafka_python.MemoryRecordsBuilder(2, 0, 999)
    builder.append(NOW, b"k", b"v")
    builder.set_producer_state(7, 1, 0, True)
    builder.close()
    assert (builder.producer_id, builder.producer_epoch, builder.base_sequence) == (7, 1, 0)
    # Private, but accessed all the same.
    assert (builder._producer_id, builder._producer_epoch, builder._base_sequence) == (7, 1, 0)
    assert kafka_python.MemoryRecordsBuilder(1, 0, 999)._producer_id is None
    inner = kafka_python.DefaultRecordBatchBuilder(2, 0, False, 7, 1, 0, 999)
    assert (inner._producer_id, inner._producer_epoch, inner._base_sequence) == (7, 1, 0)
    batch = builder.records().next_batch()
    assert (batch.producer_id, batch.is_transactional) == (7, True)
    with pytest.raises(kafka_python.IllegalStateError):
        builder.set_producer_state(8, 1, 0, True)
    with pytest.raises(kafka_python.UnsupportedVersionError):
        kafka_python.MemoryRecordsBuilder(1, 0, 999).set_producer_state(8, 1, 0, True)


def test_control_records_and_the_fetched_buffer() -> None:
    import magicbyte

    builder = magicbyte.RecordsBuilder(
        is_control=True, is_transactional=True, producer_id=9, producer_epoch=1
    )
    builder.append(7, NOW, b"\0\0\0\0", b"\0\0\0\0\0\0")
    abort = builder.build()
    fetched = kafka_python.MemoryRecords(abort * 2 + abort[:30])
    assert (fetched.size_in_bytes(), fetched.valid_bytes()) == (2 * len(abort) + 30, 2 * len(abort))
    (first, second) = fetched
    assert first.is_control_batch
    (marker,) = first
    assert (marker.version, marker.type, marker.abort, marker.commit) == (0, 0, True, False)
    assert marker.validate_crc()
    assert "ControlRecord(offset=7" in repr(marker)
    assert "type=0 <abort>" in repr(marker)
    assert not fetched.has_next()
    assert fetched.next_batch() is None
    assert str(second) == str(KAFKA_PYTHON.original.DefaultRecordBatch(abort))


# --- installing -----------------------------------------------------------------------------------

INSTALLED = {
    "aiokafka": """
import sys
{before}
import magicbyte.compat.aiokafka as ours
ours.install()
ours.install()
import aiokafka, aiokafka.record, aiokafka.record._crecords as crecords
from aiokafka.consumer import fetcher
from aiokafka.producer import message_accumulator, producer
from aiokafka.record import default_records, legacy_records, memory_records, util
places = [crecords, default_records, legacy_records, memory_records, aiokafka.record]
assert fetcher.MemoryRecords is ours.MemoryRecords
assert message_accumulator.DefaultRecordBatchBuilder is ours.DefaultRecordBatchBuilder
assert producer.DefaultRecordBatchBuilder is ours.DefaultRecordBatchBuilder
assert util.calc_crc32c is crecords.crc32c_cython is ours.crc32c_cython
assert util.encode_varint is ours.encode_varint_cython
for name in crecords.__all__:
    assert getattr(crecords, name) is getattr(ours, name), name
held = [(place, name) for place in places for name in ours._NAMES if hasattr(place, name)]
found = [getattr(place, name) is getattr(ours, name) for place, name in held]
assert len(found) > 20 and all(found)
ours.uninstall()
ours.uninstall()
assert not any(getattr(place, name) is getattr(ours, name) for place, name in held)
assert fetcher.MemoryRecords.__module__.startswith("aiokafka.")
""",
    "kafka_python": """
import sys
{before}
import magicbyte.compat.kafka_python as ours
ours.install()
ours.install()
import kafka, kafka.record
from kafka.consumer import fetcher
from kafka.producer import kafka as producer, record_accumulator
from kafka.record import abc, default_records, legacy_records, memory_records, util
places = [default_records, legacy_records, memory_records, kafka.record]
assert fetcher.MemoryRecords is ours.MemoryRecords
assert record_accumulator.MemoryRecordsBuilder is ours.MemoryRecordsBuilder
assert producer.LegacyRecordBatchBuilder is ours.LegacyRecordBatchBuilder
assert util.calc_crc32c is ours.calc_crc32c
assert issubclass(ours.DefaultRecordBatch, abc.ABCRecordBatch)
held = [(place, name) for place in places for name in ours._CLASSES if hasattr(place, name)]
found = [getattr(place, name) is getattr(ours, name) for place, name in held]
assert len(found) > 15 and all(found)
ours.uninstall()
ours.uninstall()
assert not any(getattr(place, name) is getattr(ours, name) for place, name in held)
assert fetcher.MemoryRecords.__module__.startswith("kafka.")
""",
}
WITHOUT = """
import sys
sys.modules["{library}"] = None
import magicbyte.compat.{name} as ours
builder = ours.DefaultRecordBatchBuilder(2, 3, 0, -1, -1, -1, 999)
builder.append(0, 1, b"k", b"v", [])
data = bytes(builder.build())
assert [r.key for r in ours.MemoryRecords(data).next_batch()] == [b"k"]
try:
    list(ours.DefaultRecordBatch(data[:12] + b"\\0" * 60))
except ours.CorruptRecordException as error:
    assert isinstance(error, ValueError)
try:
    ours.install()
except ImportError as error:
    print(error)
"""


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("when", ["before", "after"])
def test_install(client: Client, when: str) -> None:
    package = "aiokafka" if client is AIOKAFKA else "kafka"
    first = f"import {package}" if when == "after" else ""
    run(INSTALLED[client.name].format(before=first))


def test_without_the_library(client: Client) -> None:
    library = "aiokafka" if client is AIOKAFKA else "kafka"
    printed = run(WITHOUT.format(library=library, name=client.name))
    assert f"magicbyte.compat.{client.name}.install() needs" in printed


def test_without_extensions() -> None:
    """aiokafka can be told not to use its compiled classes."""
    program = (
        "import os; os.environ['AIOKAFKA_NO_EXTENSIONS'] = '1'\n"
        "import magicbyte.compat.aiokafka as ours; ours.install()\n"
        "from aiokafka.record.memory_records import MemoryRecords\n"
        "from aiokafka.record.util import encode_varint\n"
        "assert MemoryRecords is ours.MemoryRecords and encode_varint is ours.encode_varint_cython"
    )
    run(program)
