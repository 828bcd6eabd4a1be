"""`LineWriter`: rows of the table `records` as text."""

from __future__ import annotations

import base64
import csv
import io
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
from magicbyte._core import LineWriter, RowFilter
from magicbyte.cli.terminal import json_line
from magicbyte.jobs.find.partitions import list_partitions
from magicbyte.jobs.run.columns import RECORDS_WITH_METADATA
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.plan import plan_partitions
from magicbyte.jobs.run.reading import ReadOptions, read_chunk

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
    with pytest.raises(ValueError, match='utf-8, hex, base64 or json, not "utf8"'):
        LineWriter(key_format="utf8")
    with pytest.raises(ValueError, match="expected jsonl or csv"):
        LineWriter(format="json")
    with pytest.raises(ValueError, match="not as JSON"):
        LineWriter(template="%k", key_format="json")
    with pytest.raises(TypeError, match="expected Arrow data"):
        LineWriter().lines(b"x")


@pytest.mark.parametrize(
    ("value", "shown", "invalid"),
    [
        (b'{"a": [1, "\\ud83d"]}', "null", '{"a": [1, "\\ud83d"]}'),
        (b' {"a":\r\n\t1e400}\n', ' {"a":   1e400} ', None),
        ('["\u00fc\u202e\x7f\U000e0001"]'.encode(), '["\u00fc\\u202e\\u007f\\udb40\\udc01"]', None),
        (b"null", "null", None),
        (None, "null", None),
        (b"", "null", ""),
        (b"{'a': 1}", "null", "{'a': 1}"),
        (b"1 2", "null", "1 2"),
        (b'"\xff"', "null", {"base64": "Iv8i"}),
        (b"\xff", "null", {"base64": "/w=="}),
        (b"\xc3\xa4\x00", "null", "ä\0"),
        (b'"\n"', "null", '"\n"'),
        (b"NaN", "null", "NaN"),
        (b"[" * 100_000 + b"]" * 100_000, "[" * 100_000 + "]" * 100_000, None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_json_is_embedded(value: bytes | None, shown: str, invalid: Any) -> None:
    batch = pa.record_batch(
        {"key": pa.array([value]).cast(pa.binary()), "offset": pa.array([1]), "value": pa.array([b"1"])}
    )
    line = LineWriter(key_format="json", value_format="json").lines(batch).decode()
    more = "" if invalid is None else f', "invalidKey": {json.dumps(invalid, ensure_ascii=False)}'
    assert line == f'{{"offset": 1, "key": {shown}, "value": 1{more}}}\n'


def test_headers_are_text_where_values_are_json() -> None:
    builder = magicbyte.RecordsBuilder()
    builder.append(0, 1, None, b"[]", [("h", b"{}"), ("i", b"\xff")])
    rows = next(iter(magicbyte.read_batches(builder.build()))).to_arrow(["value", "headers"])
    assert json.loads(LineWriter(value_format="json").lines(rows)) == {
        "value": [],
        "headers": [{"key": "h", "value": "{}"}, {"key": "i", "value": "\ufffd"}],
    }


@pytest.mark.parametrize("name", PARTITIONS)
def test_csv_has_the_cells_of_the_json_lines(name: str) -> None:
    csv.field_size_limit(1 << 30)
    csv_writer, json_writer = LineWriter(format="csv"), LineWriter()
    for batch in rows_of(name):
        text = (csv_writer.header(batch) + csv_writer.lines(batch)).decode()
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        lines = [json.loads(line) for line in json_writer.lines(batch).splitlines()]
        assert rows[0] == list(lines[0])
        for row, line in zip(rows[1:], lines, strict=True):
            headers = line.pop("headers")
            cells = dict(zip(rows[0], row, strict=True))
            assert json.loads(cells.pop("headers")) == headers
            as_text = {False: "false", True: "true", None: ""}
            assert cells == {
                name: as_text[cell] if cell is None or isinstance(cell, bool) else str(cell)
                for name, cell in line.items()
            }


def test_csv_cells() -> None:
    values = [b"", None, b"a", b'"', b"a,b", b"a\r\nb", b'""a"', b"\xff,", b" a ", b"\x1b"]
    batch = pa.record_batch({"offset": range(len(values)), "value": pa.array(values, pa.binary())})
    lines = LineWriter(format="csv").lines(batch).decode()
    shown = ['""', "", "a", '""""', '"a,b"', '"a\r\nb"', '"""""a"""', '"\ufffd,"', " a ", "\x1b"]
    assert lines == "".join(f"{at},{one}\r\n" for at, one in enumerate(shown))
    visible = LineWriter(format="csv", visible=True).lines(batch).decode()
    assert visible.split("\n")[5:6] == [r"5,a\r\nb"]
    assert visible.split("\n")[9:] == [r"9,\x1b", ""]
    assert LineWriter(format="csv", value_format="hex").lines(batch.slice(0, 3)) == b'0,""\r\n1,\r\n2,61\r\n'
    documents = LineWriter(format="csv", value_format="json")
    assert documents.header(batch) == b"offset,value,invalidValue\r\n"
    assert documents.lines(pa.record_batch({"value": [b'{"a":1}', b"x", b"", None]})) == (
        b'"{""a"":1}",\r\n,x\r\n,""\r\n,\r\n'
    )
    assert LineWriter().header(batch) == b""


def template_of(template: str, **options: Any) -> bytes:
    """What a template shows of two records."""
    builder = magicbyte.RecordsBuilder()
    builder.append(
        5, 6, b"k\x1b", "\u00fc\u202e\n".encode() + b"\xff", [("h", b"x"), ("i", None), ("j", b"")]
    )
    builder.append(7, 8, None, None)
    columns = ["offset", "timestampMillis", "key", "value", "headers"]
    rows = pa.record_batch(next(iter(magicbyte.read_batches(builder.build()))).to_arrow(columns))
    place = {"topic": pa.array(["t", "t"]), "partition": pa.array([3, 3], pa.int32())}
    rows = pa.record_batch(dict(zip(columns, rows.columns, strict=True)) | place)
    return LineWriter(template=template, **options).lines(rows)


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("", b""),
        ("%t %p %o %T\\n", b"t 3 5 6\nt 3 7 8\n"),
        ("%K %S;", b"2 7;-1 -1;"),
        ("%K %R", b"2 \0\0\0\7-1 \xff\xff\xff\xff"),
        ("[%k]", b"[k\x1b][]"),
        ("%s|", "\u00fc\u202e\n".encode() + b"\xff||"),
        ("%h.", b"h=x,i=NULL,j=.."),
        ("%%o\\t\\r\\x0g\\xfF1\\q\\\\\u00fc\\", b"%o\t\r\0g\xff1q\\\xc3\xbc\\" * 2),
    ],
)
def test_templates(template: str, shown: bytes) -> None:
    assert template_of(template) == shown


def test_template_options() -> None:
    assert template_of("%k-%s ", null="NULL", key_format="hex", value_format="base64") == (
        b"6b1b-w7zigK4K/w== NULL-NULL "
    )
    shown = template_of("%k|%s|%R\\n", visible=True).decode()
    assert shown == "k\\x1b|\u00fc\\u202e\\n\ufffd|\\x00\\x00\\x00\\x07\n||\ufffd\ufffd\ufffd\ufffd\n"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("%o %q", r'the format "%o %q" has %q at byte 3: expected one of %t %p %o %T %k %K %s %S %R %h %%'),
        ("\u00fc%\u00fc", "at byte 2"),
        ("%o%", "ends with %"),
        ("\\xg", "without hexadecimal digits"),
        ("\\x", "without hexadecimal digits"),
    ],
)
def test_wrong_templates(template: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LineWriter(template=template)


@pytest.mark.parametrize(("token", "column"), [("t", "topic"), ("T", "timestampMillis"), ("R", "value")])
def test_a_column_that_a_template_needs(token: str, column: str) -> None:
    with pytest.raises(ValueError, match=f'there is no column "{column}", which the format needs'):
        LineWriter(template=f"%{token}").lines(pa.record_batch({"key": [b"x"]}))


def masked(batch: pa.RecordBatch, **conditions: Any) -> list[int]:
    """The numbers of the selected rows."""
    mask = RowFilter(**conditions).mask(batch)
    assert len(mask) == (batch.num_rows + 7) // 8
    bits = pa.BooleanArray.from_buffers(pa.bool_(), batch.num_rows, [None, pa.py_buffer(mask)])
    return [at for at, bit in enumerate(bits.to_pylist()) if bit]


def test_row_filter() -> None:
    keys = [b"a", b"b", None, b"", b"A\xff", *[b"x"] * 60, b"b"]
    values = [None, b"one", b"two", "\u00dc".encode(), b"\xff\n", *[b"y"] * 60, "\u00fc2".encode()]
    batch = pa.record_batch({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary_view())})
    assert masked(batch) == list(range(66))
    assert masked(batch, keys=[b"b"]) == [1, 65]
    assert masked(batch, keys=[b"", b"a"]) == [0, 3]
    assert masked(batch, keys=[]) == []
    assert masked(batch, pattern="b|w") == [1, 2, 65]
    assert masked(batch, pattern="(?i)^[\u00fc]") == [3, 65]
    assert masked(batch, pattern=r"(?-u)\xff$") == [4]
    assert masked(batch, pattern="^$") == [3]
    assert masked(batch, keys=[b"b"], pattern="\u00fc") == [65]
    assert masked(batch.slice(1, 3), keys=[b"b"]) == [0]
    assert masked(batch.slice(0, 0)) == []


def test_row_filter_in_linear_time() -> None:
    batch = pa.record_batch({"key": [b""], "value": [b"a" * 100_000]})
    assert masked(batch, pattern="(a*)*b") == []
    with pytest.raises(ValueError, match="exceeds size limit"):
        RowFilter(pattern=r"\w{1000}{1000}")
    with pytest.raises(ValueError, match="unclosed group"):
        RowFilter(pattern="(")


def test_row_filter_of_wrong_data() -> None:
    with pytest.raises(ValueError, match='no column "value"'):
        RowFilter().mask(pa.record_batch({"key": [b"x"]}))
    with pytest.raises(ValueError, match='no column "key"'):
        RowFilter().mask(pa.record_batch({"key": [1], "value": [b""]}))
    with pytest.raises(ValueError, match="more than one Arrow batch"):
        RowFilter().mask(pa.Table.from_batches([pa.record_batch({"key": [b""], "value": [b""]})] * 2))


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
