"""Any C-contiguous buffer is bytes, in every function that takes bytes: those that `zlib.crc32` takes.

Everything but `bytes` is copied when the call begins: a buffer may change, shrink or be released later.
"""

from __future__ import annotations

import array
import ctypes
import mmap
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import magicbyte
import numpy as np
import pyarrow as pa
import pytest
from dropin_cases import AIOKAFKA, KAFKA_PYTHON, Client
from magicbyte import RecordsBuilder, _core, conversion, message
from magicbyte.broker import AppendConfig, PartitionSimulator, check_produce_request, validate_append
from magicbyte.compat import _codecs
from magicbyte.compat import _core as dropins
from magicbyte.schema import framing
from magicbyte.state import ProducerStateManager


def built(value: bytes = b"value") -> bytes:
    builder = RecordsBuilder()
    builder.append(0, 1, b"key", value, [("h", b"x")])
    return builder.build()


def mapped(data: bytes) -> mmap.mmap:
    memory = mmap.mmap(-1, len(data))
    memory[:] = data
    return memory


# Eight bytes and multiples of it fit all of them.
KINDS: dict[str, Callable[[bytes], Any]] = {
    "bytes": bytes,
    "a subclass of bytes": type("Mine", (bytes,), {}),
    "bytearray": bytearray,
    "memoryview": memoryview,
    "a part of a memoryview": lambda data: memoryview(b"x" + data + b"x")[1:-1],
    "cast to signed bytes": lambda data: memoryview(data).cast("b"),
    "cast to chars": lambda data: memoryview(data).cast("c"),
    "cast to ints": lambda data: memoryview(data).cast("i"),
    "two dimensions": lambda data: memoryview(data).cast("B", (2, len(data) // 2)),
    "array of signed bytes": lambda data: array.array("b", data),
    "array of doubles": lambda data: array.array("d", data),
    "mmap": mapped,
    "pyarrow.Buffer": pa.py_buffer,
    "ctypes array": lambda data: (ctypes.c_char * len(data)).from_buffer_copy(data),
    "ctypes structure": lambda data: type(
        "S", (ctypes.Structure,), {"_fields_": [("a", ctypes.c_uint64 * (len(data) // 8))]}
    ).from_buffer_copy(data),
    "numpy uint8": lambda data: np.frombuffer(data, np.uint8),
    "numpy int8": lambda data: np.frombuffer(data, np.int8),
    "numpy int32": lambda data: np.frombuffer(data, np.int32),
    "numpy int64, big-endian": lambda data: np.frombuffer(data, ">i8"),
    "numpy float64, 2 rows": lambda data: np.frombuffer(data * 2, np.float64)[: len(data) // 8].reshape(
        1, -1
    ),
    "numpy datetime64": lambda data: np.frombuffer(data, "M8[s]"),
    "numpy structure": lambda data: np.frombuffer(data, [("a", "i4"), ("b", "u2", 2)]),
    "numpy without dimensions": lambda data: np.frombuffer(data, f"V{len(data)}").reshape(()),
    "numpy void": np.void,
}


def padded(data: bytes) -> bytes:
    """A buffer of items has a multiple of their size."""
    return data + bytes(-len(data) % 8)


BATCH = padded(built(b"value" * 3))
assert len(built(b"value" * 3 + b"v" * (len(BATCH) - len(built(b"value" * 3))))) == len(BATCH)
BATCH = built(b"value" * 3 + b"v" * (len(BATCH) - len(built(b"value" * 3))))
REQUEST = message.encode_request(
    "Metadata", 9, {"topics": [{"name": "t" * 9}]}, header={"clientId": "c" * 12}
)
RESPONSE = message.encode_response("Heartbeat", 1, {"errorCode": 0}) + bytes(6)


def appended(argument: str) -> Callable[[Any], Any]:
    def call(data: Any) -> Any:
        builder = RecordsBuilder()
        builder.append(0, 1, **{argument: data})
        return builder.build()

    return call


def appended_many(data: Any) -> bytes:
    builder = RecordsBuilder()
    builder.append_many([(0, 1, data, data, [(data, data)])])
    return builder.build()


def header(data: Any) -> bytes:
    builder = RecordsBuilder()
    builder.append(0, 1, headers=[(data, data)])
    return builder.build()


def snapshots(data: Any) -> object:
    return ProducerStateManager({0: data}).snapshots


def simulated(data: Any) -> object:
    partition = PartitionSimulator()
    return partition.append(data), partition.fetch(0).records


def record_sets(data: Any) -> object:
    body = {"topicData": [{"name": "t", "partitionData": [{"index": 0, "records": data}]}]}
    return message.encode_request("Produce", 9, body)


def outcome(call: Callable[[Any], Any], data: Any) -> object:
    """What a call returns or raises; of an error also its text, without the type that is named in it."""
    try:
        return call(data)
    except magicbyte.Error as error:
        return type(error), str(error)


RECORD = next(iter(next(magicbyte.read_batches(built()))))
# Every function that takes bytes, and bytes for it whose length is a multiple of eight.
DOORS: dict[str, tuple[Callable[[Any], Any], bytes]] = {
    "append key": (appended("key"), b"8 bytes!"),
    "append value": (appended("value"), b"8 bytes!"),
    "append header": (header, b"8 bytes!"),
    "append_many": (appended_many, b"8 bytes!"),
    "has_room_for": (lambda it: RecordsBuilder().has_room_for(1, it, it, [(it, it)]), b"8 bytes!"),
    "last_header": (RECORD.last_header, b"8 bytes!"),
    "headers_for": (RECORD.headers_for, b"8 bytes!"),
    "crc32c": (magicbyte.crc32c, b"8 bytes!"),
    "decode_varint": (magicbyte.decode_varint, b"\x80\x01" + bytes(6)),
    "read_batches": (lambda it: [list(one) for one in magicbyte.read_batches(it)], BATCH),
    "read_batches to_arrow": (lambda it: pa.table(magicbyte.read_batches(it).to_arrow()), BATCH),
    "unpickle_batch": (lambda it: _core.unpickle_batch(it, 0, True, 1 << 20).to_bytes(), BATCH),
    "convert_batches": (lambda it: conversion.convert_batches(it, compression="gzip"), BATCH),
    "down_convert": (lambda it: conversion.convert_batches(it, magic=1), BATCH),
    "recompress": (conversion.Converter("lz4").recompress, BATCH),
    "merge": (conversion.Converter().merge, BATCH),
    "split": (lambda it: conversion.Converter().split(it, 1000), BATCH),
    "rebatch": (lambda it: conversion.Converter().rebatch(it, 1000), BATCH),
    "assign_offsets": (lambda it: conversion.Converter().assign_offsets(it, 5), BATCH),
    "set_last_offset": (lambda it: conversion.set_last_offset(it, 9), BATCH),
    "set_partition_leader_epoch": (lambda it: conversion.set_partition_leader_epoch(it, 9), BATCH),
    "set_max_timestamp": (
        lambda it: conversion.set_max_timestamp(it, magicbyte.TimestampType.CREATE_TIME, 9),
        BATCH,
    ),
    "validate_append": (lambda it: validate_append(it, AppendConfig(), now=5), BATCH),
    "check_produce_request": (check_produce_request, BATCH),
    "simulator": (simulated, BATCH),
    "batches_cost": (_core.batches_cost, BATCH),
    "layout": (lambda it: list(_core.BatchLayout(it)), BATCH),
    "decompress": (lambda it: _core.decompress("none", 2, it), b"8 bytes!"),
    "decode_request": (message.decode_request, padded(REQUEST)),
    "decode_response": (lambda it: message.decode_response(it, "Heartbeat", 1), padded(RESPONSE)),
    "encode_request": (record_sets, BATCH),
    "encode_response": (
        lambda it: message.encode_response("SaslAuthenticate", 0, {"errorCode": 0, "authBytes": it}),
        b"8 bytes!",
    ),
    "request_record_sets": (_core.request_record_sets, padded(record_sets(BATCH))),
    "response_record_sets": (lambda it: _core.response_record_sets(it, 1, 4), bytes(8)),
    "offset_index": (lambda it: _core.offset_index(it, 0), b"\0\0\0\x05\0\0\0\x10"),
    "time_index": (lambda it: _core.time_index(it, 0), (b"\0" * 7 + b"\x01" + b"\0\0\0\x02") * 2),
    "transaction_index": (_core.transaction_index, bytes(8)),
    "collect_aborted_transactions": (lambda it: _core.collect_aborted_transactions(it, 0, 1), bytes(8)),
    "producer_snapshot": (_core.producer_snapshot, bytes(8)),
    "snapshots": (snapshots, b"8 bytes!"),
    "framing": (framing.parse, b"\0\0\0\0\x05abc"),
    "framing in a header": (
        lambda it: framing.parse(b"payload", [(framing.VALUE_SCHEMA_ID, it)]),
        b"\0\0\0\0\x05abc",
    ),
    "split_window": (lambda it: framing.split_window(it, "time"), b"key 4567" + bytes(8)),
    "parse_message_indexes": (_core.parse_message_indexes, b"\x02\x02" + bytes(6)),
    "decode_record": (lambda it: _core.decode_record("__consumer_offsets", it, it), bytes(8)),
    "decode_data": (lambda it: _core.decode_data("ConsumerProtocolSubscription", it), bytes(8)),
    "is_secret_record": (lambda it: _core.is_secret_record("__cluster_metadata", it), bytes(8)),
    "KeySet": (lambda it: _core.KeySet([it]).find(it), b"8 bytes!"),
    "compress": (lambda it: dropins.compress("gzip", 2, it), b"8 bytes!"),
    "snappy": (_codecs.snappy_encode, b"8 bytes!"),
    "aiokafka crc32c": (dropins.aiokafka_crc32c, b"8 bytes!"),
    "kafka-python crc32c": (dropins.kafka_python_crc32c, b"8 bytes!"),
    "aiokafka decode_varint": (dropins.aiokafka_decode_varint, b"\x80\x01" + bytes(6)),
    "kafka-python decode_varint": (dropins.kafka_python_decode_varint, b"\x80\x01" + bytes(6)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_zlib_takes_the_same_kinds(kind: str) -> None:
    data = b"16 bytes of data"
    assert zlib.crc32(KINDS[kind](data)) == zlib.crc32(data)
    assert magicbyte.crc32c(KINDS[kind](data)) == magicbyte.crc32c(data)


@pytest.mark.parametrize("name", DOORS)
def test_every_kind_is_bytes(name: str) -> None:
    call, data = DOORS[name]
    assert len(data) % 8 == 0
    expected = outcome(call, data)
    for kind, make in KINDS.items():
        assert outcome(call, make(data)) == expected, kind


@pytest.mark.parametrize("name", DOORS)
def test_other_objects_are_refused_by_name(name: str) -> None:
    call, _ = DOORS[name]
    for wrong in (object(), {1}, 1j):
        with pytest.raises(TypeError) as raised:
            call(wrong)
        assert type(wrong).__name__ in str(raised.value)


NOT_CONTIGUOUS: dict[str, Any] = {
    "every second byte": memoryview(b"8 bytes!")[::2],
    "backwards": memoryview(b"8 bytes!")[::-1],
    "every second number": np.arange(8, dtype=np.int32)[::2],
    "columns first": np.asfortranarray(np.ones((2, 3), np.uint8)),
    "transposed": np.ones((2, 3), np.uint8).T,
}


@pytest.mark.parametrize("kind", NOT_CONTIGUOUS)
def test_other_layouts_are_refused(kind: str) -> None:
    given = NOT_CONTIGUOUS[kind]
    with pytest.raises((BufferError, ValueError)) as of_zlib:
        zlib.crc32(given)
    for name, (call, _) in DOORS.items():
        with pytest.raises((BufferError, ValueError)) as raised:
            call(given)
        assert type(raised.value) is type(of_zlib.value), name
        assert "any C-contiguous buffer" in str(raised.value)
        assert "not C-contiguous" in str(raised.value)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda it: RecordsBuilder().append(0, 1, it), "key: expected bytes, str or any C-contiguous buffer"),
        (
            lambda it: RecordsBuilder().append(0, 1, None, it),
            "value: expected bytes, str or any C-contiguous",
        ),
        (
            lambda it: RecordsBuilder().append(0, 1, headers=[("h", it)]),
            "header value: expected bytes, str or",
        ),
        (lambda it: RecordsBuilder().append(0, 1, headers=[(it, b"")]), "header key: expected bytes, str or"),
        (magicbyte.crc32c, "data: expected bytes or any C-contiguous buffer"),
        (magicbyte.read_batches, "buffer: expected bytes or any C-contiguous buffer"),
        (check_produce_request, "records: expected bytes or any C-contiguous buffer"),
        (message.decode_request, "frame: expected bytes or any C-contiguous buffer"),
        (
            record_sets,
            "records: expected None, bool, int, float, str, bytes, list, tuple, dict or any C-cont",
        ),
    ],
)
def test_errors_name_what_was_given(call: Callable[[Any], Any], text: str) -> None:
    released = memoryview(b"abc")
    released.release()
    for given, kind, why in (
        (object(), TypeError, ", not object"),
        (np.ones(4)[::2], ValueError, ", not this numpy.ndarray: ndarray is not C-contiguous"),
        (
            memoryview(b"abcd")[::2],
            BufferError,
            ", not this memoryview: memoryview: underlying buffer is not",
        ),
        (released, ValueError, ", not this memoryview: operation forbidden on released memoryview"),
    ):
        with pytest.raises(kind) as raised:
            call(given)
        assert str(raised.value).startswith(text)
        assert why in str(raised.value)


def test_empty_buffers() -> None:
    for empty in (
        b"",
        bytearray(),
        memoryview(b""),
        np.zeros(0, np.int32),
        np.zeros((0, 3)),
        array.array("d"),
    ):
        assert magicbyte.crc32c(empty) == 0
        assert list(magicbyte.read_batches(empty)) == []
        builder = RecordsBuilder()
        builder.append(0, 1, empty, empty, [("h", empty)])
        (record,) = next(magicbyte.read_batches(builder.build()))
        assert (record.key_bytes, record.value_bytes, record.headers_raw) == (b"", b"", [(b"h", b"")])


def test_numbers_without_dimensions_are_not_payloads_by_accident() -> None:
    """An int is refused, but numpy's scalars are buffers, to `zlib` too."""
    with pytest.raises(TypeError, match="not int"):
        magicbyte.crc32c(5)  # type: ignore[arg-type]
    assert magicbyte.crc32c(np.int64(5)) == magicbyte.crc32c((5).to_bytes(8, sys.byteorder))


# --- buffers that change --------------------------------------------------------------------------------


def test_a_buffer_can_change_after_the_call() -> None:
    source = bytearray(BATCH)
    batches, builder = magicbyte.read_batches(source), RecordsBuilder()
    builder.append(0, 1, source)
    source[:] = bytes(len(source))
    # Nothing holds the buffer any more, which could not be resized then.
    source.clear()
    assert [one.to_bytes() for one in batches] == [BATCH]
    assert next(magicbyte.read_batches(builder.build()))[0].key_bytes == BATCH


def test_buffers_are_released() -> None:
    for call, data in DOORS.values():
        source = bytearray(data)
        outcome(call, source)
        source += b"."
    # Also after errors.
    source = bytearray(b"xx")
    with pytest.raises(magicbyte.Error):
        list(magicbyte.read_batches(source))
    with pytest.raises(BufferError):
        RecordsBuilder().append(0, 1, source, memoryview(b"abcd")[::2])
    source += b"."


def test_an_argument_that_resizes_another() -> None:
    key = bytearray(b"k" * 1000)

    class Headers:
        def __iter__(self) -> Iterator[tuple[str, bytes]]:
            key.clear()
            key.extend(b"other")
            return iter([("h", b"x")])

    builder = RecordsBuilder()
    builder.append(0, 1, key, headers=Headers())  # type: ignore[arg-type]
    assert next(magicbyte.read_batches(builder.build()))[0].key_bytes == b"k" * 1000


def test_buffers_that_another_thread_changes() -> None:
    source, stopped = bytearray(BATCH * 50), threading.Event()

    def change() -> None:
        while not stopped.is_set():
            source[:] = bytes(len(source))
            source.clear()
            source.extend(BATCH * 50)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(300):
            try:
                assert sum(len(one) for one in magicbyte.read_batches(source)) in range(51)
                conversion.convert_batches(source, compression="lz4")
            except magicbyte.Error:
                pass
            magicbyte.crc32c(source)
    finally:
        stopped.set()
        thread.join()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="buffers of Python classes")
def test_a_class_that_is_a_buffer() -> None:
    class Mine:
        def __init__(self, data: bytes) -> None:
            self.data, self.released = data, 0

        def __buffer__(self, flags: int) -> memoryview:
            return memoryview(self.data).cast("b")

        def __release_buffer__(self, view: memoryview) -> None:
            self.released += 1

    mine = Mine(b"8 bytes!")
    assert magicbyte.crc32c(mine) == magicbyte.crc32c(b"8 bytes!")
    assert mine.released == 1


# --- drop-ins ---------------------------------------------------------------------------------------------


def of_builder(client: Client, side: Any, **content: Any) -> object:
    """The record of this content as it is written, or the kind of error."""
    arguments = {"key": None, "value": None, "headers": []} | content
    builder = client.default_builder(side, 0)
    try:
        builder.append(0, 1, **arguments)
    except (TypeError, BufferError, ValueError) as error:
        return type(error)
    return bytes(builder.build())[61:]


def of_legacy_builder(side: Any, value: Any) -> object:
    builder = side.LegacyRecordBatchBuilder(1, 0, 1 << 20)
    try:
        builder.append(0, 1, None, value)
    except (TypeError, BufferError, ValueError) as error:
        return type(error)
    return bytes(builder.build())


@pytest.mark.parametrize("kind", [*KINDS, *NOT_CONTIGUOUS])
def test_aiokafka_takes_the_same_keys_and_values(kind: str) -> None:
    def given() -> Any:
        return KINDS[kind](b"8 bytes!") if kind in KINDS else NOT_CONTIGUOUS[kind]

    ours, original = AIOKAFKA.ours, AIOKAFKA.original
    for content in ("key", "value"):
        expected = of_builder(AIOKAFKA, original, **{content: given()})
        assert of_builder(AIOKAFKA, ours, **{content: given()}) == expected
    assert of_legacy_builder(ours, given()) == of_legacy_builder(original, given())


@pytest.mark.parametrize("kind", KINDS)
def test_kafka_python_takes_fewer(kind: str) -> None:
    """Whatever it takes as the bytes that it has, the drop-in takes too; it counts items instead of bytes."""
    data = b"8 bytes!"
    ours, original = KAFKA_PYTHON.ours, KAFKA_PYTHON.original
    for content in ("key", "value"):
        found = of_builder(KAFKA_PYTHON, ours, **{content: KINDS[kind](data)})
        assert found == of_builder(KAFKA_PYTHON, original, **{content: data})
        theirs = of_builder(KAFKA_PYTHON, original, **{content: KINDS[kind](data)})
        assert theirs in (found, TypeError) or len(KINDS[kind](data)) != len(data)
    assert of_builder(KAFKA_PYTHON, ours, headers=[("h", KINDS[kind](data))]) == of_builder(
        KAFKA_PYTHON, original, headers=[("h", data)]
    )


@pytest.mark.parametrize("client", [AIOKAFKA, KAFKA_PYTHON], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_dropins_read_every_kind(client: Client, kind: str) -> None:
    batch = client.ours.DefaultRecordBatch(KINDS[kind](BATCH))
    (record,) = batch
    assert record.key == b"key"
    if client is KAFKA_PYTHON or isinstance(KINDS[kind](BATCH), bytes):
        assert client.ours.MemoryRecords(KINDS[kind](BATCH)).next_batch() is not None
