"""`magicbyte.schema.framing`: the schema id before a payload, or in a header."""

from __future__ import annotations

import random
from uuid import UUID

import magicbyte
import pytest
from conftest import KAFKA
from magicbyte.errors import Error, InvalidRecordError
from magicbyte.schema import framing

GUID = "89791762-2336-4186-9674-299b90a802e2"
"""From the tests of Confluent's clients."""
GUID_BYTES = b"\1" + UUID(GUID).bytes


def test_forms() -> None:
    framed = framing.parse(b"\0\0\0\0\7abc")
    assert framed == framing.Framed(id=7, guid=None, payload=b"abc")
    assert framing.parse(GUID_BYTES + b"abc") == framing.Framed(None, GUID, b"abc")
    long = framing.parse(b"\0\0\0\0\1\0\0\0\0abc", framing="apicurio")
    assert long == framing.Framed(1 << 32, None, b"abc", framing="apicurio")
    for value in (None, b"", b"{}", b"\0\0\0\0", GUID_BYTES[:-1]):
        assert framing.parse(value) is None


def test_headers() -> None:
    headers = [("__value_schema_id", b"\0\0\0\0\1"), ("__value_schema_id", GUID_BYTES), ("x", None)]
    assert framing.parse(b"\0\0\0\0\7abc", headers) == framing.Framed(None, GUID, b"\0\0\0\0\7abc", b"")
    # The header of the value says nothing about the key.
    assert framing.parse(b"\0\0\0\0\7abc", headers, is_key=True) == framing.Framed(7, None, b"abc")
    assert framing.parse(b"abc", [("__key_schema_id", b"\0\0\0\0\1")], is_key=True) == framing.Framed(
        1, None, b"abc", b""
    )
    with pytest.raises(InvalidRecordError, match=r"0x00 and an id.*field schemaId, byte 0") as raised:
        framing.parse(b"abc", [("__value_schema_id", b"7")])
    assert raised.value.position == 0


def test_message_indexes() -> None:
    framed = framing.parse(framing.write(7, [1, 3]) + b"abc")
    assert framed is not None
    assert framed.message_indexes() == ([1, 3], b"abc")
    framed = framing.parse(b"abc", [("__value_schema_id", framing.write(GUID, [0]))])
    assert framed is not None
    assert framed.message_indexes() == ([0], b"abc")
    cut = framing.parse(b"\0\0\0\0\7\4\0")
    assert cut is not None
    with pytest.raises(InvalidRecordError) as raised:
        cut.message_indexes()
    assert (raised.value.kind, raised.value.position) == ("invalid_count", 0)


def test_writing() -> None:
    assert framing.write(7) == b"\0\0\0\0\7"
    assert framing.write(7, [0]) == b"\0\0\0\0\7\0"
    assert framing.write(7, [0, 1]) == b"\0\0\0\0\7\4\0\2"
    assert framing.write(7, id_bytes=8) == b"\0\0\0\0\0\0\0\0\7"
    assert framing.write(GUID) == GUID_BYTES
    with pytest.raises(Error, match="does not fit into 4 bytes"):
        framing.write(1 << 31)
    with pytest.raises(Error, match="negative"):
        framing.write(1, [1, -1])
    with pytest.raises(ValueError, match="badly formed"):
        framing.write("7")
    with pytest.raises(ValueError, match="id_bytes 5: expected 4 or 8"):
        framing.write(7, id_bytes=5)  # type: ignore[arg-type]


def test_a_real_topic() -> None:
    ids = [
        framed.id
        for record in magicbyte.PartitionLog(KAFKA / "sr_avro").records()
        if (framed := framing.parse(record.value_bytes, record.headers)) is not None
    ]
    assert {one: ids.count(one) for one in set(ids)} == {1: 78, 4: 40}  # the others are tombstones


def test_any_bytes() -> None:
    generator = random.Random(7)
    invalid = 0
    for _ in range(5000):
        value = bytes([generator.choice((0, 1, 2)), *generator.randbytes(generator.randrange(30))])
        header = generator.randbytes(generator.randrange(3)) if generator.random() < 0.3 else None
        try:
            framed = framing.parse(value, [("__value_schema_id", header)] if header is not None else [])
            if framed is not None:
                framed.message_indexes()
        except InvalidRecordError:
            invalid += 1
    assert 100 < invalid < 4900
