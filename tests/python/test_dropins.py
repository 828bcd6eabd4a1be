"""The drop-ins compared with the classes they replace, on generated inputs and wrong arguments."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any

import kafka.record.util
import magicbyte
import pytest
from dropin_cases import (
    AIOKAFKA,
    CLIENTS,
    CODECS,
    KAFKA_PYTHON,
    Client,
    damaged,
    kafkas_batch,
    outcome,
    records,
    until_error,
)
from hostile import KINDS, frames, mutated, sealed


@pytest.fixture(params=CLIENTS, ids=str)
def client(request: pytest.FixtureRequest) -> Client:
    assert isinstance(request.param, Client)
    return request.param


def show(client: Client, found: list[Any], names: tuple[str, ...] = ()) -> list[Any]:
    names = names or client.record_attributes
    return [(repr(one), *(getattr(one, name) for name in names)) for one in found]


# --- building -------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS, ids=CODECS.get)
def test_built_batches_are_the_same(client: Client, codec: int) -> None:
    chance = random.Random(f"{client}{codec}")
    for _ in range(150):
        state = {"producer_id": chance.randrange(2**40), "producer_epoch": 3, "base_sequence": 17}
        state["is_transactional"] = chance.randrange(2)
        state = state if chance.random() < 0.5 else {}
        size = chance.choice([1 << 30, 1 << 30, 500, 5000])
        ours, original = (
            client.default_builder(s, codec, size, **state) for s in (client.ours, client.original)
        )
        offset = 0
        for given in records(chance):
            content = (given.timestamp, given.key, given.value, given.headers)
            if client.name == "aiokafka":
                assert ours.size_in_bytes(offset, *content) == original.size_in_bytes(offset, *content)
            for name in ("size_of", "estimate_size_in_bytes"):
                assert getattr(ours, name)(*content[1:]) == getattr(original, name)(*content[1:])
            metadata = ours.append(offset, *content)
            assert repr(metadata) == repr(original.append(offset, *content))
            assert ours.size() == original.size()
            offset += metadata is not None
        if chance.random() < 0.2:
            change = {"producer_id": 9, "producer_epoch": 8, "base_sequence": 7}
            if client.name == "kafka_python":
                change["is_transactional"] = True
            ours.set_producer_state(**change)
            original.set_producer_state(**change)
        for name in ("producer_id", "producer_epoch", "base_sequence"):
            assert getattr(ours, name) == getattr(original, name)
        built, expected = bytes(ours.build()), bytes(original.build())
        assert ours.build() is ours.build()
        assert ours.size() == len(built)
        read = client.original.DefaultRecordBatch(built)
        assert read.validate_crc()
        assert show(client, list(read)) == show(client, list(client.original.DefaultRecordBatch(expected)))
        if client.name == "kafka_python":
            # Kafka writes -1 for no leader epoch.
            expected = expected[:12] + b"\xff" * 4 + expected[16:]
            if client.original.DefaultRecordBatch(expected).compression_type != codec:
                continue  # It stores batches uncompressed if compression does not help; Kafka does not.
        # Everything except the length and checksum, as codec libraries differ.
        assert [built[:8], built[12:17], built[21:61]] == [expected[:8], expected[12:17], expected[21:61]]
        if codec == 0:
            assert built == expected


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3], ids=CODECS.get)
def test_built_message_sets_are_the_same(client: Client, magic: int, codec: int) -> None:
    chance = random.Random(f"{client}{magic}{codec}")
    for _ in range(60):
        size = chance.choice([1 << 30, 400])
        ours, original = (
            side.LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=size)
            for side in (client.ours, client.original)
        )
        offset = 0
        for given in records(chance, headers=False):
            content = (given.timestamp, given.key, given.value)
            assert ours.size_in_bytes(offset, *content) == original.size_in_bytes(offset, *content)
            metadata = ours.append(offset, *content)
            assert repr(metadata) == repr(original.append(offset, *content))
            assert ours.size() == original.size()
            offset += metadata is not None
        built = ours.build()
        assert isinstance(built, bytearray)
        if codec == 0:
            assert built == original.build()
        elif (magic, codec) != (0, 3):
            # The original reads the same from both; the broker assigns the offset.
            expected = original.build()
            expected[:8] = (offset - 1).to_bytes(8, "big")
            found = [
                show(client, list(client.original.LegacyRecordBatch(bytes(each), magic)))
                for each in (built, expected)
            ]
            assert found[0] == found[1]


# --- reading --------------------------------------------------------------------------------------


def read_all(client: Client, side: Any, data: bytes) -> list[Any]:
    """Every attribute of every batch and record."""
    found: list[Any] = []
    fetched = side.MemoryRecords(data)
    found.append(fetched.size_in_bytes())
    while fetched.has_next():
        batch = fetched.next_batch()
        legacy = not hasattr(batch, "last_offset_delta")
        names = client.legacy_attributes if legacy else client.batch_attributes
        found.append([(name, getattr(batch, name)) for name in names])
        found.append(batch.validate_crc())
        if legacy:
            found.append(show(client, list(batch), client.record_attributes + client.message_attributes))
            assert len(list(batch)) == len(found[-1])
        else:
            records = list(batch)
            markers = records if repr(records).startswith("[Control") else []
            found.append(show(client, records))
            found.append([(one.version, one.type, one.abort, one.commit) for one in markers])
    found.append(fetched.next_batch())
    return found


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_read_batches_are_the_same(client: Client, magic: int) -> None:
    chance = random.Random(f"{client}{magic}")
    for turn in range(150):
        codec = turn % (5 if magic == 2 else 4)
        if (client.name, magic, codec) == ("aiokafka", 0, 3) or (magic, codec) == (0, 3):
            continue  # Neither reads what Kafka writes for these.
        # A single magic: aiokafka uses the first batch's for all.
        data = b"".join(kafkas_batch(chance, magic, codec) for _ in range(chance.randrange(1, 4)))
        data += b"\0" * chance.randrange(12)
        assert read_all(client, client.ours, data) == read_all(client, client.original, data)


def test_damaged_records(client: Client) -> None:
    """Records before the damage, then the client's exception; no record that the original does not return."""
    chance = random.Random(f"{client}")
    refused = same = 0
    for _ in range(1500):
        magic = chance.choice([0, 1, 2, 2])
        batch = damaged(chance, kafkas_batch(chance, magic, 0))
        codec = batch[22] & 7 if magic == 2 else batch[17] & 7
        if codec:
            continue

        def open_batch(side: Any, batch: bytes = batch, magic: int = magic) -> Any:
            if magic == 2:
                return side.DefaultRecordBatch(batch)
            return side.LegacyRecordBatch(batch, magic)

        ours, original = (
            outcome(lambda side=side: until_error(iter(open_batch(side))))
            for side in (client.ours, client.original)
        )
        if isinstance(ours, type):
            assert ours is client.corrupt
            refused += 1
            continue
        found, error = ours
        if error is not None:
            assert error is client.corrupt
            refused += 1
        if not isinstance(original, type):
            assert open_batch(client.ours).validate_crc() == open_batch(client.original).validate_crc()
            expected = original[0]
            # Kafka checks the whole record, the originals only parts of it.
            count = min(len(found), len(expected))
            assert show(client, found[:count]) == show(client, expected[:count])
            same += error is None and original[1] is None
    assert refused > 300
    assert same > 300


def test_mutated_input(client: Client, kafka: Path) -> None:
    """Any bytes yield the records of `magicbyte.read_batches`, or the client's exceptions."""
    segments = [min((kafka / kind).glob("*.log")).read_bytes() for kind in KINDS]
    batches = [batch for segment in segments for batch in frames(segment)[:6]]
    refusals = (client.corrupt, client.ours.UnsupportedCodecError)
    agreed = 0
    for seed in range(1500):
        chance = random.Random(seed)
        batch = chance.choice(batches)
        broken = mutated(batch, chance)
        data = chance.choice([broken, sealed(broken[:16] + batch[16:17] + broken[17:])])

        def plain(data: bytes = data) -> list[Any] | None:
            try:
                found = [
                    list(batch)
                    for batch in magicbyte.read_batches(data, check_crcs=False, allow_partial=True)
                ]
            except magicbyte.Error:
                return None
            return [(r.offset, r.key_bytes, r.value_bytes, r.headers_raw) for part in found for r in part]

        def through_the_client(data: bytes = data) -> list[Any] | None:
            found: list[Any] = []
            fetched = client.ours.MemoryRecords(data)
            try:
                while fetched.has_next():
                    found.extend(fetched.next_batch())
            except refusals:
                return None
            for name in client.record_attributes:
                _ = [getattr(record, name) for record in found]
            raw = [[(key.encode("utf-8", "surrogateescape"), v) for key, v in r.headers] for r in found]
            return [(r.offset, r.key, r.value, headers) for r, headers in zip(found, raw, strict=True)]

        expected = plain()
        assert through_the_client() == expected
        agreed += bool(expected)
    assert agreed > 100


# --- wrong arguments ------------------------------------------------------------------------------


def both(client: Client, work: Callable[[Any], Any]) -> tuple[Any, Any]:
    return outcome(lambda: work(client.ours)), outcome(lambda: work(client.original))


@pytest.mark.parametrize(
    "arguments",
    [
        ("0", 1, b"", b"", []),
        (None, 1, b"", b"", []),
        (0, "1", b"", b"", []),
        (0, 1, "key", b"", []),
        (0, 1, b"", "value", []),
        (0, 1, 5, b"", []),
        (0, 1, b"", b"", None),
        (0, 1, b"", b"", 5),
        (0, 1, b"", b"", [5]),
        (0, 1, b"", b"", [("one",)]),
        (0, 1, b"", b"", [("one", b"", b"three")]),
        (0, 1, b"", b"", [(b"bytes", b"")]),
        (0, 1, b"", b"", [(None, b"")]),
        (0, 1, b"", b"", [("text", "text")]),
        (0, 1, b"", b"", [("text", 5)]),
        (0, 1, b""),
        (0, 1, b"", b"", [], []),
    ],
    ids=repr,
)
def test_wrong_records(client: Client, arguments: tuple[Any, ...]) -> None:
    def append(side: Any) -> Any:
        builder = client.default_builder(side, 0)
        with pytest.raises((TypeError, ValueError, AttributeError)) as raised:
            builder.append(*arguments)
        assert builder.size() == 61
        return raised.type

    ours, original = both(client, append)
    if client.name == "kafka_python" and len(arguments) == 6:
        # Its sixth argument is a cache for speed.
        assert ours is TypeError
    else:
        assert ours is original
    if len(arguments) == 5:
        legacy = arguments[:4]
        ours, original = both(
            client, lambda side: repr(side.LegacyRecordBatchBuilder(1, 0, 999).append(*legacy))
        )
        assert ours == original


@pytest.mark.parametrize(
    "work",
    [
        lambda side: side.DefaultRecordBatchBuilder(1, 0, 0, -1, -1, -1, 999),
        lambda side: side.DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1),
        lambda side: side.LegacyRecordBatchBuilder(0, 0),
        lambda side: side.MemoryRecords("text"),
        lambda side: side.MemoryRecords(),
        lambda side: side.DefaultRecordBatch("text"),
        lambda side: side.LegacyRecordBatch("text", 1),
        lambda side: side.MemoryRecords(b"\0" * 12).next_batch(),
        lambda side: side.MemoryRecords(b"\0" * 11 + b"\x03abc").next_batch(),
        lambda side: side.MemoryRecords(b"\0" * 11 + b"\x03abc").has_next(),
        lambda side: side.MemoryRecords(b"\0" * 11).next_batch(),
        lambda side: side.DefaultRecordMetadata(1, 2),
        lambda side: repr(side.DefaultRecordMetadata(1, 2, 3)),
        lambda side: repr(side.DefaultRecordMetadata(offset=1, size=2, timestamp=3)),
        lambda side: side.DefaultRecordMetadata(1, 2, 3).crc,
        lambda side: repr(side.LegacyRecordMetadata(1, 2, 3, 4)),
        lambda side: repr(side.LegacyRecordMetadata(offset=1, crc=2, size=3, timestamp=4)),
        lambda side: side.LegacyRecordBatchBuilder.record_overhead(0),
        lambda side: side.LegacyRecordBatchBuilder.record_overhead(1),
    ],
)
def test_small_things(client: Client, work: Callable[[Any], Any]) -> None:
    ours, original = both(client, work)
    assert ours == original or (isinstance(ours, type) and "MemoryRecords" in repr(original))


@pytest.mark.parametrize(
    "number", [1.9, -2.5, Decimal("7.5"), True, IntEnum("Number", "ONE").ONE, 10**19], ids=repr
)
def test_what_counts_as_a_number(client: Client, number: Any) -> None:
    """aiokafka accepts anything with `__int__`, such as `time.time() * 1000`; kafka-python only ints."""

    def append(side: Any, magic: int, offset: Any, timestamp: Any) -> str:
        if magic == 2:
            builder = client.default_builder(side, 0)
            return repr(builder.append(offset, timestamp, b"k", b"v", []))
        return repr(side.LegacyRecordBatchBuilder(magic, 0, 999).append(offset, timestamp, b"k", b"v"))

    for magic in (0, 1, 2):
        for offset, timestamp in ((0, number), (number, 5)):
            ours, original = both(client, lambda side: append(side, magic, offset, timestamp))  # noqa: B023
            if client.name == "kafka_python" and number == 10**19 and (magic, timestamp) != (0, number):
                # Python's integers are unbounded, but Kafka stores 64 bits.
                assert ours is OverflowError
            else:
                assert ours == original, (magic, offset, timestamp)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), "5", b"5", None, Ellipsis], ids=repr)
def test_what_counts_as_none(client: Client, number: Any) -> None:
    ours, original = both(
        client, lambda side: client.default_builder(side, 0).append(number, 5, b"k", b"v", [])
    )
    assert isinstance(ours, type)
    assert ours is original


def test_a_refused_record_leaves_nothing() -> None:
    built = []
    for side in (AIOKAFKA.ours, AIOKAFKA.original):
        builder = AIOKAFKA.default_builder(side, 0, 10)
        # Only offset 0 always fits.
        assert builder.append(1, 5000, b"k", b"v", []) is None
        batch = side.DefaultRecordBatch(bytes(builder.build()))
        built.append((batch.first_timestamp, batch.max_timestamp, batch.last_offset_delta))
    assert built == [(-1, -1, 0)] * 2


def test_an_int_that_is_none() -> None:
    class Odd:
        def __int__(self) -> Any:
            return "5"

    for side in (AIOKAFKA.ours, AIOKAFKA.original):
        with pytest.raises(TypeError):
            AIOKAFKA.default_builder(side, 0).append(0, Odd(), b"k", b"v", [])


def test_headers_of_two_items() -> None:
    """kafka-python accepts any two items as a header."""
    content = (0, 1, b"k", b"v", [["list", b"1"], ("tuple", None), iter(["iterator", b"3"])])
    ours, original = (KAFKA_PYTHON.default_builder(s, 0) for s in (KAFKA_PYTHON.ours, KAFKA_PYTHON.original))
    assert (
        repr(ours.append(*content[:4], list(content[4])))
        == "DefaultRecordMetadata(offset=0, size=34, timestamp=1)"
    )
    original.append(*content[:4], [["list", b"1"], ("tuple", None), ["iterator", b"3"]])
    (record,) = KAFKA_PYTHON.original.DefaultRecordBatch(bytes(ours.build()))
    (expected,) = KAFKA_PYTHON.original.DefaultRecordBatch(bytes(original.build()))
    assert record.headers == expected.headers


def test_several_messages_as_one_batch(client: Client) -> None:
    """aiokafka reads the first message, kafka-python asserts that there is only one."""

    def read(side: Any, magic: int) -> list[Any]:
        builder = side.LegacyRecordBatchBuilder(magic, 0, 999)
        for offset in range(3):
            builder.append(offset, 5, b"k", b"v%d" % offset)
        batch = side.LegacyRecordBatch(bytes(builder.build()), magic)
        return show(client, list(batch))

    for magic in (0, 1):
        ours, original = both(client, lambda side: read(side, magic))  # noqa: B023
        assert ours == original
        assert (ours is AssertionError) == (client.name == "kafka_python")


def test_constants(client: Client) -> None:
    """Every public name of the originals exists, and every constant has their value."""
    # A step of `build`, and the layout of a marker's key.
    left_out = {"write_header", "KEY_STRUCT"}
    classes = [name for name in client.ours.__all__ if name[0].isupper() and name != "MemoryRecordsBuilder"]
    compared = 0
    for name in classes:
        ours, original = getattr(client.ours, name), getattr(client.original, name)
        public = {each for each in dir(original) if not each.startswith("_")}
        assert public - set(dir(ours)) - left_out == set()
        for constant in public - left_out:
            expected = getattr(original, constant)
            if isinstance(expected, struct.Struct):
                assert getattr(ours, constant).format == expected.format
                compared += 1
            if isinstance(expected, int):
                assert getattr(ours, constant) == expected, constant
                compared += 1
    assert compared > (80 if client.name == "kafka_python" else 10)


def test_classes_of_their_users(client: Client) -> None:
    """Builders, batches and MemoryRecords can be subclassed."""
    builder = type("Builder", (client.ours.DefaultRecordBatchBuilder,), {})(2, 0, 0, -1, -1, -1, 999)
    builder.append(0, 1, b"k", b"v", [])
    fetched = type("Fetched", (client.ours.MemoryRecords,), {"mine": 1})(bytes(builder.build()))
    assert fetched.mine == 1
    assert [record.value for record in fetched.next_batch()] == [b"v"]
    batch = type("Batch", (client.ours.DefaultRecordBatch,), {})(bytes(builder.build()))
    assert [record.value for record in batch] == [b"v"]
    legacy = type("Builder", (client.ours.LegacyRecordBatchBuilder,), {})(1, 0, 999)
    legacy.append(0, 1, b"k", b"v")
    batch = type("Batch", (client.ours.LegacyRecordBatch,), {})(bytes(legacy.build()), 1)
    assert [record.value for record in batch] == [b"v"]


def test_next_as_a_method() -> None:
    builder = KAFKA_PYTHON.default_builder(KAFKA_PYTHON.ours, 0)
    builder.append(0, 1, b"k", b"v", [])
    for side in (KAFKA_PYTHON.ours, KAFKA_PYTHON.original):
        fetched = side.MemoryRecords(bytes(builder.build()))
        batch = fetched.next()
        with pytest.raises(StopIteration):
            fetched.next()
        assert iter(batch).next().value == b"v"
        with pytest.raises(StopIteration):
            batch.next()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("DefaultRecord", (15, 5, 77, 1, b"k", b"v", [("h", b"1"), ("n", None)])),
        ("DefaultRecord", (6, 5, -1, 0, None, None, [])),
        ("ControlRecord", (16, 5, 77, 0, b"\0\0\0\1", b"\0\0\0\0\0\0", [])),
        ("ControlRecord", (10, 5, 77, 0, b"\0\0\0\0", None, [])),
        ("LegacyRecord", (1, 5, 77, 1, b"k", b"v", 9, b"")),
        ("LegacyRecord", (1, 5, 77, 0, None, None, 9, b"")),
        ("LegacyRecord", (0, 5, None, None, b"k", b"v", 2**32 - 1, b"")),
    ],
    ids=repr,
)
def test_records_made_by_hand(name: str, arguments: tuple[Any, ...]) -> None:
    def made(side: Any) -> list[Any]:
        record = getattr(side, name)(*arguments)
        names = KAFKA_PYTHON.record_attributes
        if name == "ControlRecord":
            names += ("version", "type", "abort", "commit")
        return [repr(record), record.validate_crc(), *(getattr(record, each) for each in names)]

    assert made(KAFKA_PYTHON.ours) == made(KAFKA_PYTHON.original)


def test_a_size_that_is_too_large(client: Client) -> None:
    """The originals' message only covers sizes that are too small."""
    for size, small in ((13, True), (2**31 - 1, False)):
        fetched = client.ours.MemoryRecords(bytes(8) + size.to_bytes(4, "big") + bytes(40))
        with pytest.raises(client.corrupt) as raised:
            fetched.next_batch()
        assert ("less than the minimum record overhead (14)" in str(raised.value)) == small


def test_functions() -> None:
    for module in (KAFKA_PYTHON.ours, kafka.record.util):
        assert module.calc_crc32c(memview=b"123456789") == 0xE3069283
        with pytest.raises(ValueError, match="Out of int64 range"):
            module.decode_varint(b"\x80" * 11)
        for function in (module.size_of_varint, lambda value, of=module: of.encode_varint(value, print)):
            with pytest.raises(TypeError, match="'float' and 'int'"):
                function(1.5)
    for name in ("ours", "original"):
        assert getattr(AIOKAFKA, name).size_of_varint_cython(64.9) == 2
    with pytest.raises(ValueError, match="Out of double range"):
        AIOKAFKA.ours.decode_varint_cython(b"\x80" * 11)


def test_nothing_can_be_set(client: Client) -> None:
    builder = client.default_builder(client.ours, 0)
    metadata = builder.append(0, 1, b"k", b"v", [])
    batch = client.ours.DefaultRecordBatch(bytes(builder.build()))
    (record,) = batch
    for thing, name in ((builder, "producer_id"), (metadata, "size"), (batch, "crc"), (record, "key")):
        with pytest.raises(AttributeError):
            setattr(thing, name, 3)
