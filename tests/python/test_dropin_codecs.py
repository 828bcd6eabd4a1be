"""The drop-ins' codec functions: without the clients' packages, and against them."""

from __future__ import annotations

import inspect
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiokafka.codec
import kafka.codec
import magicbyte
import pytest
from magicbyte.compat import _codecs

ALONE = Path(__file__).parents[2] / "scripts/dropins_alone.py"
BLOCKED = f"""
import runpy, sys
alone = runpy.run_path({str(ALONE)!r})
sys.modules.update(dict.fromkeys(alone["ABSENT"]))
alone["main"]()
"""
CODECS = ("gzip", "snappy", "lz4", "zstd")
THEIRS: dict[str, Any] = {"aiokafka": aiokafka.codec, "kafka_python": kafka.codec}
OURS = {"aiokafka": _codecs.AIOKAFKA, "kafka_python": _codecs.KAFKA_PYTHON}
# Around the sizes of blocks: 8 KB and 32 KB of snappy, 64 KB of LZ4.
SIZES = (0, 1, 15, 300, 8191, 8192, 8193, 32767, 32768, 32769, 65535, 65536, 65537, 300_000)


def payloads() -> list[bytes]:
    chance = random.Random(5)
    words = [b"order", b"paid", b"sent", b"{", b"}", b"%d" % chance.getrandbits(30)]
    text = b" ".join(chance.choices(words, k=80_000))
    noise = chance.randbytes(max(SIZES))
    return [content[:size] for size in SIZES for content in (text, noise)]


RESTORED = """
import {package}.codec as codecs, importlib
import magicbyte.compat.{client} as ours
from magicbyte.compat._codecs import {table} as functions
places = [codecs] + [importlib.import_module("{package}." + name) for name in {importers}]
producer = importlib.import_module("{producer}")
producer = getattr(producer, "AIOKafkaProducer", None) or producer.KafkaProducer
def held():
    there = [(place, name) for place in places for name in functions if hasattr(place, name)]
    return [(place, name, getattr(place, name)) for place, name in there] + [producer._COMPRESSORS]
originals = held()
assert len(originals) > 25, originals
for _ in range(2):
    ours.install()
    ours.install()
    assert all(value is functions[name] for _, name, value in held()[:-1])
    checks = {{name: check for name, (check, _) in producer._COMPRESSORS.items() if name}}
    assert all(check is functions["has_" + name] for name, check in checks.items()) and len(checks) == 4
    numbers = {{name: number for name, (_, number) in producer._COMPRESSORS.items()}}
    assert numbers == {{name: number for name, (_, number) in originals[-1].items()}}
    ours.uninstall()
    ours.uninstall()
    assert held() == originals and producer._COMPRESSORS is originals[-1]
"""
PLACES = {
    "aiokafka": {
        "package": "aiokafka",
        "table": "AIOKAFKA",
        "importers": ("record.default_records", "record.legacy_records", "protocol.message"),
        "producer": "aiokafka.producer.producer",
    },
    "kafka_python": {
        "package": "kafka",
        "table": "KAFKA_PYTHON",
        "importers": ("record.default_records", "record.legacy_records"),
        "producer": "kafka.producer.kafka",
    },
}


@pytest.fixture(params=["aiokafka", "kafka_python"])
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("when", ["before", "after"])
def test_without_packages(client: str, when: str) -> None:
    package = client.removesuffix("_python")
    subprocess.run([sys.executable, "-c", BLOCKED, package, when], check=True)


def test_in_every_place_and_restored(client: str) -> None:
    program = RESTORED.format(client=client, **PLACES[client])
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("codec", CODECS)
def test_the_client_reads_ours_and_we_read_its(client: str, codec: str) -> None:
    ours, theirs = OURS[client], THEIRS[client]
    for data in payloads():
        encoded = ours[f"{codec}_encode"](data)
        assert type(encoded) is bytes
        assert ours[f"{codec}_decode"](encoded) == data
        if data or codec != "snappy":
            # The clients take a xerial header without chunks for a raw block.
            assert bytes(getattr(theirs, f"{codec}_decode")(encoded)) == data
        decoded = ours[f"{codec}_decode"](getattr(theirs, f"{codec}_encode")(data))
        assert (type(decoded), decoded) == (bytes, data)


@pytest.mark.parametrize("size", [None, 1, 100, 8192, 32768, 100_000, 512 << 20])
def test_snappy_in_any_framing(client: str, size: int | None) -> None:
    arguments = (False,) if size is None else (True, size)
    ours, theirs = OURS[client], THEIRS[client]
    for data in payloads():
        if len(data) > 10_000 and size == 1:
            continue
        encoded = ours["snappy_encode"](data, *arguments)
        assert encoded.startswith(b"\x82SNAPPY") == (size is not None)
        assert ours["snappy_decode"](encoded) == data
        if data or size is None:
            assert bytes(theirs.snappy_decode(encoded)) == data
        if size is not None and data:
            chunks = -(-len(data) // size)
            assert len(encoded) >= 16 + 4 * chunks
            first = int.from_bytes(encoded[16:20])
            assert len(bytes(theirs.snappy_decode(encoded[20 : 20 + first]))) == min(size, len(data))
        assert ours["snappy_decode"](bytes(theirs.snappy_encode(data, *arguments))) == data


@pytest.mark.parametrize("size", [0, -1, (512 << 20) + 1])
def test_a_chunk_size_that_cannot_be(client: str, size: int) -> None:
    with pytest.raises(ValueError, match=f"a snappy chunk has 1 to 536870912 bytes, not {size}"):
        OURS[client]["snappy_encode"](b"x", xerial_blocksize=size)


def xxh32(data: bytes) -> Any:
    """XXH32 of less than 16 bytes, as the package xxhash computes it."""
    mask, prime1, prime2 = 0xFFFFFFFF, 0x9E3779B1, 0x85EBCA77
    prime3, prime4, prime5 = 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
    words = len(data) // 4 * 4
    state = prime5 + len(data)
    for (word,) in struct.iter_unpack("<I", data[:words]):
        state = state + word * prime3 & mask
        state = (state << 17 | state >> 15) * prime4 & mask
    for byte in data[words:]:
        state = state + byte * prime5 & mask
        state = (state << 11 | state >> 21) * prime1 & mask
    state = (state ^ state >> 15) * prime2 & mask
    state = (state ^ state >> 13) * prime3 & mask
    return SimpleNamespace(digest=(state ^ state >> 16).to_bytes(4).__bytes__)


def test_lz4_of_old_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka.codec, "xxhash", SimpleNamespace(xxh32=xxh32))
    ours = OURS["kafka_python"]
    for data in payloads():
        encoded = ours["lz4_encode_old_kafka"](data)
        assert kafka.codec.lz4_decode_old_kafka(encoded) == data
        assert ours["lz4_decode_old_kafka"](kafka.codec.lz4_encode_old_kafka(data)) == data
        assert ours["lz4_decode_old_kafka"](encoded) == data
        with pytest.raises(magicbyte.InvalidRecordError, match="checksum"):
            ours["lz4_decode"](encoded)


LEVELS: list[tuple[str, str, Callable[[bytes, int], bytes], list[int]]] = [
    ("aiokafka", "gzip", _codecs.gzip_encode, [1, 6, 9]),
    ("aiokafka", "lz4", _codecs.lz4_encode, [1, 9, 12, 17]),
    ("kafka_python", "lz4", _codecs.lz4_encode_frame, [0, 3, 9, 16]),
    ("aiokafka", "zstd", _codecs.zstd_encode, [-5, 3, 19]),
]


@pytest.mark.parametrize(("client", "codec", "encode", "levels"), LEVELS)
def test_levels(client: str, codec: str, encode: Callable[..., bytes], levels: list[int]) -> None:
    data = payloads()[-2]
    encoded = {level: encode(data, level) for level in levels}
    for each in encoded.values():
        assert bytes(getattr(THEIRS[client], f"{codec}_decode")(each)) == data
    assert len(set(encoded.values())) > 1
    default = {"gzip": 9, "lz4": 9, "zstd": 3}[codec]
    assert encode(data) == encoded[default]
    with pytest.raises(ValueError, match="level 99 is not supported"):
        encode(data, 99)


def test_gzip_without_a_level_is_9() -> None:
    data = payloads()[-2]
    assert _codecs.gzip_encode(data, 0) == _codecs.gzip_encode(data, 9) != _codecs.gzip_encode(data, 6)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_any_buffer(codec: str, kind: type) -> None:
    functions = _codecs.AIOKAFKA
    encoded = functions[f"{codec}_encode"](kind(b"abc" * 99))
    assert functions[f"{codec}_decode"](kind(encoded)) == b"abc" * 99
    for name in ("encode", "decode"):
        with pytest.raises(TypeError, match=r"a bytes-like object|any C-contiguous buffer"):
            functions[f"{codec}_{name}"]("text")


@pytest.mark.parametrize("codec", CODECS)
def test_damage_and_bombs(codec: str) -> None:
    decode = _codecs.AIOKAFKA[f"{codec}_decode"]
    encoded = _codecs.AIOKAFKA[f"{codec}_encode"](random.Random(3).randbytes(1000) * 3)
    for broken in (b"abc", b"\xff" * 40, encoded[: len(encoded) // 2]):
        with pytest.raises(magicbyte.InvalidRecordError, match=f"cannot decompress: {codec}"):
            decode(broken)
    with pytest.raises(magicbyte.LimitExceededError, match="268435456"):
        decode(_codecs.AIOKAFKA[f"{codec}_encode"](bytes((256 << 20) + 1)))


def test_dependent_blocks_of_lz4(client: str) -> None:
    # The client itself only writes independent blocks.
    linked = import_module("lz4.frame").compress(payloads()[-2], block_linked=True)
    with pytest.raises(magicbyte.InvalidRecordError, match="dependent blocks"):
        OURS[client]["lz4_decode"](linked)


def test_the_functions_are_those_of_the_client(client: str) -> None:
    theirs = THEIRS[client]
    names = {name for name in vars(theirs) if name.endswith(("_encode", "_decode", "_old_kafka"))}
    names |= {name for name in vars(theirs) if name.startswith("has_")}
    # Part of `lz4_decode` where another package than lz4 is installed.
    assert names - {"lz4f_decode"} == OURS[client].keys()
    for name, ours in OURS[client].items():
        if client == "kafka_python" and name.startswith("lz4_") and "old" not in name:
            continue  # Functions of the package lz4.
        expected = list(inspect.signature(getattr(theirs, name)).parameters.values())
        found = list(inspect.signature(ours).parameters.values())[: len(expected)]
        assert [(each.name, each.default) for each in found] == [
            (each.name, each.default) for each in expected
        ]
