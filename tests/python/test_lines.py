"""`LineWriter`: rows of the table `records` as text."""

from __future__ import annotations

import base64
import json
import random
import re
import unicodedata
from typing import Any

import magicbyte
import pyarrow as pa
import pytest
from conftest import KAFKA, PARTITIONS
from kafka_dumps import damaged
from magicbyte._core import LineWriter
from magicbyte.cli.terminal import json_line
from magicbyte.jobs.columns import RECORDS_WITH_METADATA
from magicbyte.jobs.engines import LocalEngine
from magicbyte.jobs.partitions import list_partitions
from magicbyte.jobs.plan import plan_partitions
from magicbyte.jobs.reading import ReadOptions, read_chunk

TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
FORMATS = {
    "utf-8": lambda value: value.decode("utf-8", "replace"),
    "hex": bytes.hex,
    "base64": lambda value: base64.b64encode(value).decode(),
}


def rows_of(name: str) -> list[pa.RecordBatch]:
    """All columns of a real partition."""
    plans = plan_partitions(list_partitions([str(KAFKA / name)]), LocalEngine(1))
    chunks = [json.dumps(chunk) for plan in plans for chunk in plan.plan["chunks"]]
    read = (item for chunk in chunks for item in read_chunk(chunk, ReadOptions(RECORDS_WITH_METADATA)))
    return [item.batch for item in read if not isinstance(item, str) and item.table == "records"]


def line_of(row: dict[str, Any], key_format: str, value_format: str) -> str:
    """A row as Python writes it."""
    del row["timestamp"]
    key, value = row.pop("key"), row.pop("value")
    to_text = FORMATS[value_format]
    headers = [
        {"key": header["key"], "value": None if header["value"] is None else to_text(header["value"])}
        for header in row.pop("headers") or []
    ]
    return json_line(
        {name: row.pop(name) for name in ("topic", "partition", "offset")}
        | {"timestamp": row.pop("timestampMillis"), "timestampType": TYPES[row.pop("timestampType")]}
        | {"key": None if key is None else FORMATS[key_format](key)}
        | {"value": None if value is None else to_text(value), "headers": headers}
        | row
    )


def as_python_knows(lines: str) -> str:
    """Escapes the characters that this Python's Unicode does not know yet."""
    return re.sub(
        r"[^\x00-\xff]", lambda one: one[0] if one[0].isprintable() else json.dumps(one[0])[1:-1], lines
    )


@pytest.mark.parametrize("formats", [("utf-8", "utf-8"), ("hex", "base64")], ids=" ".join)
@pytest.mark.parametrize("name", PARTITIONS)
def test_lines_are_those_of_python(name: str, formats: tuple[str, str]) -> None:
    writer = LineWriter(key_format=formats[0], value_format=formats[1])
    batches = rows_of(name)
    assert batches or damaged(name)
    for batch in batches:
        expected = [line_of(row, *formats) for row in batch.to_pylist()]
        assert as_python_knows(writer.lines(batch).decode()) == "".join(f"{line}\n" for line in expected)


def value_of(value: bytes | None, value_format: str = "utf-8") -> str:
    """A value's JSON text."""
    batch = pa.record_batch({"value": pa.array([value], pa.binary())})
    line = LineWriter(value_format=value_format).lines(batch).decode()
    assert line.startswith('{"value": ')
    assert line.endswith("}\n")
    return line[len('{"value": ') : -2]


def test_every_character() -> None:
    """Each is written as Python writes it, unless the Unicode of one of the two does not know it yet."""
    everything = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    batch = pa.record_batch({"value": pa.array([one.encode() for one in everything], pa.binary())})
    lines = LineWriter().lines(batch).decode().split("\n")[:-1]
    other = []
    for one, line in zip(everything, lines, strict=True):
        if line != json_line({"value": one}):
            other.append(one)
            assert json.loads(line) == {"value": one}
    assert {unicodedata.category(one) for one in other} <= {"Cn"}
    texts = [line[len('{"value": "') : -2] for line in lines]
    assert value_of("".join(everything).encode()) == f'"{"".join(texts)}"'


def test_bytes_that_are_not_text() -> None:
    picked = random.Random(0)
    pieces = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80", b"a", b'"', b"\n"]
    pieces += ["\u00fc\u6f22\U0001f600\u202e".encode(), bytes(range(256))]
    for _ in range(2000):
        value = b"".join(picked.choices(pieces, k=picked.randrange(12)))
        assert value_of(value) == json_line(value.decode("utf-8", "replace"))


def test_lengths_of_base64_and_hex() -> None:
    for length in range(10):
        value = random.Random(length).randbytes(length)
        assert value_of(value, "base64") == json.dumps(base64.b64encode(value).decode())
        assert value_of(value, "hex") == json.dumps(value.hex())
    assert value_of(None, "hex") == "null"


def test_columns_in_any_order_and_layout() -> None:
    batch = pa.record_batch(
        {
            "value": pa.array(["a", None], pa.large_string()),
            "key": pa.array([b"b", b""], pa.binary_view()),
            "offset": pa.array([1 << 62, None], pa.int64()),
            "timestamp": pa.array([None, 7_000_999], pa.timestamp("us", "UTC")),
            "isTransactional": pa.array([True, None]),
            "segment": pa.array(["x", None]),
            "timestampType": pa.array([9, None], pa.int32()),
        }
    )
    lines = [json.loads(line) for line in LineWriter().lines(batch).splitlines()]
    assert list(lines[0]) == [
        "offset", "timestamp", "timestampType", "key", "value", "isTransactional", "segment",
    ]  # fmt: skip
    assert [list(line.values()) for line in lines] == [
        [1 << 62, -1, None, "b", "a", True, "x"],
        [None, 7000, None, "", None, None, None],
    ]
    assert LineWriter().lines(batch.slice(1)) == LineWriter().lines(batch).splitlines(keepends=True)[1]
    assert LineWriter().lines(batch.slice(2)) == b""
    assert LineWriter().lines(batch.select([])) == b"{}\n{}\n"


def test_shared_fields_change_between_rows() -> None:
    columns = {"topic": ["a", "a", "b", None, None], "partition": [0, 0, 0, 0, 1], "magic": [2, 2, 2, 1, 1]}
    schema = pa.schema({"topic": pa.string(), "partition": pa.int32(), "magic": pa.int32()})
    batch = pa.record_batch(columns, schema)
    assert [json.loads(line) for line in LineWriter().lines(batch).splitlines()] == batch.to_pylist()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"values": [b"x"]}, 'no column "values" in the table records: expected one of key, value'),
        ({"value": [1]}, 'column "value" has the type Int64'),
        ({"offset": ["1"]}, 'column "offset" has the type Utf8'),
        ({"magic": [2]}, 'column "magic" has the type Int64'),
        ({"headers": [[1]]}, 'column "headers" has the type List'),
        ({"isTransactional": [1]}, 'column "isTransactional" has the type Int64'),
        ({"timestamp": ["x"]}, 'column "timestamp" has the type Utf8'),
    ],
    ids=str,
)
def test_a_wrong_column_is_named(columns: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LineWriter().lines(pa.record_batch(columns))


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match='utf-8, hex or base64, not "utf8"'):
        LineWriter(key_format="utf8")
    with pytest.raises(TypeError, match="expected Arrow data"):
        LineWriter().lines(b"x")


def test_records_of_magicbyte_itself() -> None:
    builder = magicbyte.RecordsBuilder()
    builder.append(5, 6, b"k", b"v", [("h", b"x"), ("h", None)])
    batch = next(iter(magicbyte.read_batches(builder.build())))
    arrow = batch.to_arrow(["offset", "timestamp", "key", "value", "headers"])
    assert json.loads(LineWriter().lines(arrow)) == {
        "offset": 5,
        "timestamp": 6,
        "key": "k",
        "value": "v",
        "headers": [{"key": "h", "value": "x"}, {"key": "h", "value": None}],
    }
