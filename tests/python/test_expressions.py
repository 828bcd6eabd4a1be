"""The language of `--where`: what it refuses, what its columns hold, and what hostile records cost."""

from __future__ import annotations

import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from magicbyte import PartitionLog, RecordsBuilder
from magicbyte.expressions import record_filter
from magicbyte.expressions.columns import COLUMNS, record_columns
from magicbyte.expressions.database import connect
from magicbyte.expressions.errors import EvaluationError, ExpressionError
from magicbyte.expressions.functions import FUNCTIONS, TYPES
from magicbyte.expressions.record_filter import RecordFilter

NOW = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def rows(
    values: list[bytes | None] | None = None,
    *,
    times: list[int] | None = None,
    keys: list[bytes | None] | None = None,
    headers: list[list[tuple[str, bytes | None]] | None] | None = None,
) -> pa.RecordBatch:
    """Rows of the table `records`."""
    count = len(values or times or keys or headers or [])
    lists = [None if one is None else [{"key": k, "value": v} for k, v in one] for one in headers or []]
    columns = {
        "offset": pa.array(range(count), pa.int64()),
        "timestampMillis": pa.array(times or [NOW] * count, pa.int64()),
        "key": pa.array(keys or [None] * count, pa.binary()),
        "value": pa.array(values or [None] * count, pa.binary()),
        "headers": pa.array(lists or [None] * count, HEADERS),
        "topic": pa.array(["orders"] * count),
        "partition": pa.array([3] * count, pa.int32()),
    }
    return pa.RecordBatch.from_pydict(columns)


def hits(expression: str, batch: pa.RecordBatch) -> list[int]:
    mask = RecordFilter(expression).mask(batch, "orders-3")
    assert mask.type == pa.bool_()
    assert mask.null_count == 0
    return [row for row, hit in enumerate(mask.to_pylist()) if hit]


# --- what is refused ----------------------------------------------------------------------------

REFUSED = {
    "": "it is empty",
    " \n": "it is empty",
    "key = 'a\0b'": "a zero byte",
    "\udcff = 1": "not valid Unicode",
    "nothing = 1": "nothing: no such column; there are offset, timestamp, timestampMillis, key, value, key",
    "records.key = 'a'": "records.key: no such column",
    "rowid = 1": "rowid: no such column",
    "offset = = 1": "syntax error",
    # Other data.
    "EXISTS (SELECT 1)": "a subquery is not allowed",
    "offset IN (SELECT 1)": "a subquery is not allowed",
    "key = ANY (SELECT 1)": "a subquery is not allowed",
    "(SELECT count(*) FROM read_csv('/etc/passwd')) > 0": "a subquery is not allowed",
    "1 IN (WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x FROM a) SELECT x FROM a)": "a subquery",
    "read_csv('/etc/passwd') = 1": "the function read_csv is not allowed",
    "read_text('/etc/passwd') = 'x'": "the function read_text is not allowed",
    "getenv('HOME') = 'x'": "the function getenv is not allowed",
    "current_setting('threads') = 1": "the function current_setting is not allowed",
    "getvariable('x') = 1": "the function getvariable is not allowed",
    "nextval('x') = 1": "the function nextval is not allowed",
    "system.main.lower(key) = 'a'": "the function system.main.lower is not allowed",
    "json_execute_serialized_sql('{}') = 1": "is not allowed",
    # Clock, chance and place.
    "now() > timestamp": "the function now is not allowed",
    "current_date > timestamp": "current_date: no such column",
    "random() < 0.5": "the function random is not allowed",
    "key::TIMESTAMPTZ IS NULL": "the type TIMESTAMPTZ is not allowed",
    "timestamp AT TIME ZONE 'Europe/Berlin' IS NULL": "the function timezone is not allowed",
    # More than one record.
    "count(*) > 1": "the function count_star is not allowed",
    "lower(DISTINCT key) = 'a'": "is not an aggregate",
    "length(key ORDER BY key) = 1": "is not an aggregate",
    "length(key) FILTER (WHERE true) = 1": "is not an aggregate",
    "row_number() OVER () = 1": "a window function is not allowed",
    "lag(key) OVER (ORDER BY offset) = 'a'": "a window function is not allowed",
    # Other statements, and what would end the query around the expression.
    "1; ATTACH '/tmp/x' AS x": "syntax error",
    "COPY records TO '/tmp/x'": "syntax error",
    "PRAGMA version": "syntax error",
    "1) LIMIT 0 --": "closes a parenthesis that it does not open",
    "1)) LIMIT 0 /*": "closes a parenthesis that it does not open",
    "1) OR (1": "closes a parenthesis that it does not open",
    "1) AS BOOLEAN), false) FROM records --": "closes a parenthesis that it does not open",
    "(1": "does not close a parenthesis that it opens",
    "1 /*": "unterminated",
    "'a": "unterminated",
    "1, 2": "the function row is not allowed",
    "*": "* is not allowed",
    "COLUMNS(*) = 1": "* is not allowed",
    "? = 1": "a parameter is not allowed",
    "$x = 1": "a parameter is not allowed",
    "key = DEFAULT": "DEFAULT is not allowed",
    "key COLLATE NOCASE = 'a'": "COLLATE is not allowed",
    "lambda x: x": "is not allowed",
    "value -> '$.a' = 'x'": "(for JSON, there is ->>) is not allowed",
    "unnest([1]) = 1": "the function unnest is not allowed",
    "key[1:2] = 'a'": "array slice is not allowed",
    "unpack(key) = 'a'": "unpack is not allowed",
    "key::INTEGER[] IS NULL": "the type list is not allowed",
    "key::ENUM('a') IS NULL": "the type ENUM is not allowed",
    # Results without a bound.
    "length(repeat('x', 1000000000000)) > 1": "the function repeat is not allowed",
    "length(lpad(key, 1000000000, 'x')) > 1": "the function lpad is not allowed",
    "replace(value, 'a', 'aaaaaaaa') = 'a'": "the function replace is not allowed",
    "format('{:1000000000d}', 1) = 'a'": "the function format is not allowed",
    "len(range(1000000000000)) = 1": "the function range is not allowed",
    "value ->> '$..*' = 'a'": "a constant path without wildcards",
    "value ->> '$[*]' = 'a'": "a constant path without wildcards",
    "value ->> key = 'a'": "a constant path without wildcards",
    "||".join(["value"] * 20) + " = 'a'": "joins more than 8 texts",
    f"concat({', '.join(['value'] * 20)}) = 'a'": "joins more than 8 texts",
    " OR ".join(f"left(value, {n}) = 'a'" for n in range(100)): "makes text in more than 64 places",
    "lower(" * 90 + "value" + ")" * 90 + " = 'a'": "makes text in more than 64 places",
    # Constants and formats become text for each record.
    f"strftime(timestamp, '{'%c' * 60_000}') = 'x'": "strftime takes a constant format of at most 100 bytes",
    "strftime(timestamp, value) = 'x'": "strftime takes a constant format",
    "strftime(value, DATE '2024-01-01') = 'x'": "strftime takes a constant format",
    "strftime(timestamp, value || '%c') = 'x'": "strftime takes a constant format",
    f"value || '{'x' * 100_000}' = 'x'": "from a constant of 100000 bytes: at most 65536 bytes are allowed",
    f"upper(lower(if(offset > 1, '{'x' * 100_000}', key))) = 'x'": "at most 65536 bytes are allowed then",
    f"substring('{'x' * 140_000}', partition, 139999) = 'x'": "at most 131072 bytes",
    f"CAST(CASE WHEN offset > 1 THEN '{'x' * 140_000}' END AS JSON) IS NULL": "at most 131072 bytes",
    "::BLOB::VARCHAR".join(["key", *[""] * 10]) + " = 'x'": "joins more than 8 texts",
    # Depth and length.
    "NOT " * 200 + "true": "nested more than 100 levels deep",
    "NOT " * 900 + "true": "nested more than 100 levels deep",
    "NOT " * 50_000 + "true": "depth",
    "(" * 50_000 + "true" + ")" * 50_000: "nested more than 100 levels deep",
    "- " * 20_000 + "=": "nested more than 100 levels deep",
    "key AND - - " * 5_000 + "=": "syntax error",
    "[" * 50_000: "nested more than 100 levels deep",
    "+".join(["1"] * 50_000): "depth",
    "(" * 50_000: "nested more than 100 levels deep",
    f"key = '{'x' * (1 << 18)}'": "longer than 256 KiB",
    # Types.
    "lower(offset) = 'a'": "No function matches",
    "header(headers) = 'a'": "header",
    "regexp_matches(key, '(')": "missing )",
    "offset LIKE 1": "No function matches",
}


@pytest.mark.parametrize("expression", REFUSED, ids=lambda expression: ascii(expression)[:60])
def test_expressions_that_are_refused(expression: str) -> None:
    start = time.process_time()
    with pytest.raises(ExpressionError) as caught:
        RecordFilter(expression)
    assert REFUSED[expression] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert time.process_time() - start < 5


def test_constants_that_are_only_compared_may_be_long() -> None:
    long = "x" * 200_000
    keys = [b"a", b"x" * 200_000, None]
    masks = {
        f"key = '{long}'": [False, True, False],
        f"key IN ('{long}', 'a')": [True, True, False],
        f"upper(key) = 'A' OR key = '{long}'": [True, True, False],
        "strftime(timestamp, '%Y-%m-%d') = '2023-11-14'": [True, True, True],
        "strftime('%Y', timestamp) = '2023'": [True, True, True],
    }
    for expression, expected in masks.items():
        batch = rows(keys=keys, values=keys, times=[NOW] * 3)
        assert RecordFilter(expression).mask(batch, "t-0").to_pylist() == expected


def test_every_function_and_type_that_is_allowed_exists() -> None:
    database = connect()
    found = database.execute("SELECT function_name FROM duckdb_functions()").fetchall()
    # These are only syntax to DuckDB's catalog.
    assert FUNCTIONS - {name for (name,) in found} <= {"position", "if"}
    for name in TYPES:
        database.execute(f"SELECT NULL::{name}").fetchall()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/x.csv'",
        "ATTACH '/tmp/x.db' AS x",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET threads = 4",
        "SET memory_limit = '100GB'",
    ],
)
def test_the_database_has_access_to_nothing(statement: str) -> None:
    """A second line of defence: none of these is an expression."""
    with pytest.raises(duckdb.Error):
        connect().execute(statement)


def test_the_database_sees_no_variables() -> None:
    secret = pa.table({"a": [1]})
    with pytest.raises(duckdb.CatalogException):
        connect().execute("SELECT * FROM secret")
    assert secret.num_rows == 1


# --- what the columns hold ----------------------------------------------------------------------


def test_every_column_and_its_type() -> None:
    batch = rows([b"v"], keys=[b"k"], headers=[[("h", b"x")]])
    for expression in (
        "offset = 0 AND OFFSET < 1",
        '"offset" = 0',
        "timestamp = TIMESTAMP '2023-11-14 22:13:20'",
        "timestampMillis = 1700000000000",
        "key = 'k' AND keyBytes = 'k'::BLOB AND keyBytes = x'6B'",
        "value = 'v' AND valueBytes = 'v'::BLOB",
        "topic = 'orders' AND partition = 3",
        "header(headers, 'h') = 'x'",
        "headers[1].key = 'h' AND headers[1].value = 'x' AND len(headers) = 1",
        "true",
        "1",
        "'\u00fc' = '\u00fc' AND offset = 0",
        "KEY = 'k' AND keybytes = 'k'::BLOB",
    ):
        assert hits(expression, batch) == [0], expression
    assert {name.lower() for name in COLUMNS} >= {"offset", "timestamp", "key", "value", "headers", "topic"}


def test_null_is_not_selected() -> None:
    batch = rows([None, b"", b"a"])
    assert hits("value = 'a'", batch) == [2]
    assert hits("NOT value = 'a'", batch) == [1]
    assert hits("value IS NULL", batch) == [0]
    assert hits("valueBytes IS NULL", batch) == [0]
    assert hits("NULL", batch) == []
    assert hits("key IS NULL AND headers IS NULL", batch) == [0, 1, 2]


def test_bytes_that_are_not_text() -> None:
    values = [b"bob", b"\xffbob\0", "m\u00fcller".encode(), b"\xe2\x82", None, b"\xf0\x9f\x98\x80\xff"]
    batch = rows(values)
    assert hits("value LIKE '%bob%'", batch) == [0, 1]
    assert hits("length(value) = 5", batch) == [1]
    assert hits("value = 'm\u00fcller'", batch) == [2]
    assert hits("value = '\ufffd'", batch) == [3]
    assert hits("valueBytes = x'ff626f6200'", batch) == [1]
    assert hits("octet_length(valueBytes) = 2", batch) == [3]
    expected = [None if one is None else one.decode(errors="replace") for one in values]
    many = rows(values * 1000).slice(7, 5000)
    for row, text in enumerate(expected):
        quoted = "value IS NULL" if text is None else f"value = '{text}'"
        if text is None or "\0" not in text:
            assert len(hits(quoted, many)) == sum((7 + at) % 6 == row for at in range(5000))


def test_headers() -> None:
    batch = rows(
        headers=[
            [("a", b"1"), ("a", b"2"), ("b", None)],
            [("a", b"\xffx")],
            [],
            None,
            [("a", None)],
            [("odd'name", b"3")],
        ]
    )
    assert hits("header(headers, 'a') = '2'", batch) == [0]
    assert hits("header(headers, 'a') = '\ufffdx'", batch) == [1]
    assert hits("header(headers, 'a') IS NULL", batch) == [2, 3, 4, 5]
    assert hits("header(headers, 'odd''name') = '3'", batch) == [5]
    assert hits("len(headers) = 0", batch) == [2]
    assert hits("headers IS NULL", batch) == [3]
    assert hits("headers::VARCHAR LIKE '%odd%'", batch) == [5]
    assert hits("headers[2].value = '2'", batch.slice(0, 3)) == [0]
    assert hits("header(headers, 'a') = '\ufffdx'", batch.slice(1, 2)) == [0]


def test_timestamps() -> None:
    most, least = 9_223_372_036_854_774, -9_223_372_022_400_000
    times = [NOW, -1, 0, most, most + 1, least, least - 1, 2**63 - 1, -(2**63)]
    batch = rows(times=times)
    assert hits("timestamp IS NULL", batch) == [1, 4, 6, 7, 8]
    assert hits("timestampMillis = -1", batch) == [1]
    assert hits("timestampMillis = 9223372036854775807", batch) == [7]
    assert hits("timestamp > TIMESTAMP '2023-01-01' - INTERVAL 1 DAY", batch) == [0, 3]
    assert hits("date_trunc('day', timestamp) = DATE '1970-01-01'", batch) == [2]
    assert hits("extract(year FROM timestamp) = 2023", batch) == [0]
    assert hits("epoch_ms(timestamp) = timestampMillis", batch) == [0, 2, 3, 5]


def test_json() -> None:
    batch = rows([b'{"user": {"id": 4711, "tags": ["x"]}}', b"no JSON", None, b'{"user": "4711"}'])
    assert hits("TRY(value ->> '$.user.id') = '4711'", batch) == [0]
    assert hits("TRY(value ->> '$.user.tags[0]') = 'x'", batch) == [0]
    assert hits("CASE WHEN json_valid(value) THEN value ->> 'user' = '4711' END", batch) == [3]
    assert hits("NOT json_valid(value)", batch) == [1]
    with pytest.raises(EvaluationError) as caught:
        hits("value ->> '$.user.id' = '4711'", batch)
    assert "orders-3, the record with offset 1: Invalid Input Error: Malformed JSON" in str(caught.value)
    assert "no JSON" not in str(caught.value)


def test_text_as_it_was_read_and_what_is_not_text() -> None:
    """With `--value-as string`, the decoder has already separated the two."""
    batch = rows([b"bob", None, None]).set_column(3, "value", pa.array(["bob", None, None]))
    batch = batch.append_column("invalidValue", pa.array([None, b"\xffbob", None]))
    assert hits("value LIKE '%bob'", batch) == [0, 1]
    assert hits("value IS NULL", batch) == [2]
    assert hits("valueBytes = x'ff626f62'", batch) == [1]
    assert hits("valueBytes = 'bob'::BLOB", batch.slice(0, 1)) == [0]


def test_only_the_columns_in_use_are_decoded() -> None:
    assert RecordFilter("timestamp > '2024-01-01'").columns == ("offset", "timestampMillis")
    assert RecordFilter("keyBytes = key::BLOB").columns == ("offset", "key")
    assert RecordFilter("true").columns == ("offset",)
    assert record_columns(COLUMNS) == (
        "offset",
        "timestampMillis",
        "key",
        "value",
        "headers",
        "topic",
        "partition",
    )


# --- PartitionLog.to_arrow ----------------------------------------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """Ten batches of ten records."""
    data = b""
    for start in range(0, 100, 10):
        builder = RecordsBuilder(2, 4)
        for at in range(start, start + 10):
            value = b"\xff" if at == 77 else b"%d" % at
            builder.append(at, NOW + at, b"k%d" % (at % 3), value, [("h", b"x")])
        data += builder.build()
    (tmp_path / "orders-3").mkdir()
    (tmp_path / "orders-3" / f"{0:020}.log").write_bytes(data)
    return PartitionLog(tmp_path / "orders-3")


def test_to_arrow(log: PartitionLog) -> None:
    everything = pa.table(log.to_arrow())
    for threads in (1, 3):
        stream = log.to_arrow(where="key = 'k1' AND offset >= 50", threads=threads, end_offset=90)
        for _ in range(2):
            assert pa.table(stream) == everything.take([at for at in range(50, 90) if at % 3 == 1])
        assert pa.schema(stream) == everything.schema
        assert (stream.problems, stream.problems_left_out, stream.end_offset) == ([], 0, 90)


def test_to_arrow_gives_the_columns_asked_for(log: PartitionLog) -> None:
    where = "header(headers, 'h') = 'x' AND offset IN (3, 98)"
    table = pa.table(log.to_arrow(["topic", "value"], where=where))
    assert table.to_pylist() == [{"topic": "orders", "value": b"3"}, {"topic": "orders", "value": b"98"}]
    batches = pa.RecordBatchReader.from_stream(log.to_arrow([], where="offset < 7"))
    assert sum(batch.num_rows for batch in batches) == 7
    stream = log.to_arrow(["offset"], where="partition = 3 AND topic = 'orders' AND offset % 50 = 0")
    assert duckdb.from_arrow(pa.RecordBatchReader.from_stream(stream)).fetchall() == [(0,), (50,)]
    assert pa.table(log.to_arrow(where="false")).num_rows == 0


def test_to_arrow_with_errors(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="nothing: no such column"):
        log.to_arrow(where="nothing = 1")
    with pytest.raises(ValueError, match="views"):
        log.to_arrow(where="true", views=True)
    with pytest.raises(ValueError, match="no_such_column"):
        log.to_arrow(["no_such_column"], where="true")
    with pytest.raises(Exception, match="orders-3, the record with offset 77: Conversion Error"):
        pa.table(log.to_arrow(where="CAST(value AS INTEGER) >= 0"))
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'magicbyte\[sql\]'"):
        log.to_arrow(where="true")


# --- failures, cost and threads -----------------------------------------------------------------


@pytest.mark.parametrize("failing", [0, 1, 77, 4998, 4999])
def test_the_first_record_that_fails_is_named(failing: int) -> None:
    values: list[bytes | None] = [b"1"] * 5000
    values[failing] = values[4999] = b"se'cret\n\nLINE 1 4711"
    with pytest.raises(EvaluationError) as caught:
        hits("CAST(value AS INTEGER) = 2", rows(values))
    assert f"orders-3, the record with offset {failing}: Conversion Error" in str(caught.value)
    assert str(caught.value).endswith("Could not convert string ...")
    assert hits("TRY_CAST(value AS INTEGER) = 2", rows(values)) == []


def test_an_error_shows_no_numbers_of_a_record() -> None:
    with pytest.raises(EvaluationError, match=r"offset 0: Conversion Error: .*with value \.\.\.") as caught:
        hits("CAST(value AS BIGINT)::TINYINT = 1", rows([b"4711"]))
    assert "4711" not in str(caught.value)


def test_records_that_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = RecordFilter(" OR ".join(f"regexp_matches(value, '(x+x+)+{n}')" for n in range(500)))
    monkeypatch.setattr(record_filter, "SECONDS", 0.2)
    start = time.monotonic()
    with pytest.raises(EvaluationError, match=r"orders-3, the records with offsets 0 to 59999: took longer"):
        slow.mask(rows([b"x" * 400] * 60_000), "orders-3")
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("value", [b"a" * 1_000_000, b"bob@" * 250_000, b"\0" + b"ab" * 500_000])
@pytest.mark.parametrize("pattern", ["%a%b%c%", "%bob%@%example%", "%" + "a%" * 300 + "z", "_%a_%a_%a_%c"])
def test_hostile_values_take_no_time(value: bytes, pattern: str) -> None:
    """A matcher that backtracks would take hours for one record of a mebibyte."""
    glob = pattern.replace("%", "*").replace("_", "?")
    regex = pattern.replace("%", ".*").replace("_", ".")
    where = RecordFilter(
        f"value LIKE '{pattern}' OR value ILIKE '{pattern}' OR value GLOB '{glob}'"
        f" OR value LIKE '{pattern}' ESCAPE '!' OR regexp_full_match(value, '(?s){regex}')"
    )
    start = time.process_time()
    where.mask(rows([value]), "orders-3")
    assert time.process_time() - start < 3


def test_hostile_json_takes_no_time() -> None:
    start = time.process_time()
    for value in (b"[" * 1_000_000, b"[" * 500_000 + b"]" * 500_000, b'{"a":' * 100_000):
        assert hits("TRY(value ->> '$[0][0]') = 'x'", rows([value])) == []
        assert hits("json_valid(value) AND TRY(json_type(value)) = 'OBJECT'", rows([value])) == []
    assert time.process_time() - start < 3


def test_threads_and_copies() -> None:
    where = RecordFilter("value = 'x'")
    again = pickle.loads(pickle.dumps(where))
    assert "'x'" not in repr(where)
    batch = rows([b"x", b"y"] * 2000)
    with ThreadPoolExecutor(4) as pool:
        masks = list(pool.map(lambda one: one.mask(batch, "t-0").true_count, [where, again] * 20))
    assert masks == [2000] * 40


def test_batches_without_records() -> None:
    assert hits("value = 'x'", rows([])) == []
