"""Keys and values that name no schema: the schemas that write and read them, in tables, text and on Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Cli
from magicbyte import RecordsBuilder, RefusedError
from magicbyte.enums import Framing
from magicbyte.jobs.typed import column_decoders
from magicbyte.options.typed import TypedColumns
from magicbyte.spark.options import parse_options
from magicbyte.spark.typed import decoders_for

INT = '"int"'
WRITER = json.dumps(
    {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string"}]}
)
READER = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [{"name": "b", "type": "string"}, {"name": "c", "type": "long", "default": 7}],
    }
)
OTHER = json.dumps({"type": "record", "name": "R", "fields": [{"name": "b", "type": "string"}]})
BARE = b"\x0a\x02x"
"""`{"a": 5, "b": "x"}` of `WRITER`."""
PROTO = """syntax = "proto3"; package shop;
message Order { string id = 1; }
message Cart { int32 size = 1; message Line { int32 size = 1; } }
"""
CART = b"\x08\x05"

Write = Callable[..., Path]
File = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the first partition of a topic; returns the directory of all topics."""

    def write(topic: str, *values: bytes, key: bytes = b"k") -> Path:
        builder = RecordsBuilder()
        for offset, value in enumerate(values):
            builder.append(offset, 1, key, value)
        partition = tmp_path / "logs" / f"{topic}-0"
        partition.mkdir(parents=True)
        (partition / f"{0:020}.log").write_bytes(builder.build())
        return tmp_path / "logs"

    return write


@pytest.fixture
def file(tmp_path: Path) -> File:
    """Writes the text of a schema, such as one of the directory `schemas`."""

    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return file


def ingested(logs: Path, **typed: Any) -> list[dict[str, Any]]:
    out = logs.parent / "out"
    magicbyte.ingest(logs, out, typed=TypedColumns(**typed), overwrite=True)
    return sorted(pq.read_table(out / "records").to_pylist(), key=lambda row: (row["topic"], row["offset"]))


# --- keys ------------------------------------------------------------------------------------------------


def test_keys_of_one_schema_need_no_registry(write: Write, file: File, cli: Cli) -> None:
    logs = write("t", BARE, key=b"\x0a")
    schema = file("key.avsc", INT)
    given = ("--key-format", "avro", "--key-reader-schema", schema)
    (row,) = cli.records(*given, logs)
    assert (row["key"], row["value"]) == (5, BARE.decode())
    assert " key: 5 payload: " in cli("dump", *given, logs)
    cli("ingest", *given, logs, logs.parent / "flags")
    rows = pq.read_table(logs.parent / "flags" / "records").to_pylist()
    assert [(row["key"], row["_key_error"]) for row in rows] == [(5, None)]
    assert [row["key"] for row in ingested(logs, key_format="avro", key_reader_schema=INT)] == [5]


def test_keys_and_values_have_a_schema_each(write: Write, file: File, cli: Cli) -> None:
    logs = write("t", BARE, key=b'{"id": 1}')
    key = file("key.json", '{"properties": {"id": {"type": "integer"}}}')
    value = file("value.avsc", WRITER)
    formats = ("--key-format", "json", "--value-format", "avro")
    (row,) = cli.records(*formats, "--key-reader-schema", key, "--reader-schema", value, logs)
    assert (row["key"], row["value"]) == ({"id": 1}, {"a": 5, "b": "x"})
    typed = {"key_reader_schema": key.read_text(), "reader_schema": WRITER}
    (row,) = ingested(logs, key_format="json", value_format="avro", **typed)
    assert (row["key"], row["value"]) == ({"id": 1}, {"a": 5, "b": "x"})
    # The given schemas are those of JSON documents, too.
    log = logs / "t-0"
    cli("records", "--key-format", "json", "--key-reader-schema", key, "--validate", log)
    strict = file("strict.json", '{"properties": {"id": {"minimum": 2}}}')
    (row,) = cli.records("--key-format", "json", "--key-reader-schema", strict, "--validate", log, code=1)
    assert row["key"] == {"id": 1}
    assert "the key: /id: 1 is less than the minimum of 2" in cli.error


def test_a_schema_of_keys_reads_what_the_registry_has(write: Write, file: File) -> None:
    logs = write("t", b"", key=b"\0\0\0\0\x07" + BARE)
    schemas = file("schemas/7.avsc", WRITER).parent
    (row,) = ingested(logs, schema_registry=str(schemas), key_format="avro", key_reader_schema=READER)
    assert row["key"] == {"b": "x", "c": 7}


def test_keys_of_one_schema_on_spark(write: Write) -> None:
    logs = write("t", BARE, key=b"\x0a")
    options = parse_options({"path": str(logs), "keyFormat": "avro", "keyReaderSchema": INT})
    (decoder,) = decoders_for(options)
    assert decoder.decode(pa.record_batch({"key": [b"\x0a"]})).column("key").to_pylist() == [5]


# --- the writer's schema and the reader's ---------------------------------------------------------------


@pytest.mark.parametrize("framing", ["auto", "none"])
def test_files_say_what_wrote_bare_rows_and_the_reader_what_they_become(
    write: Write, file: File, cli: Cli, framing: Framing
) -> None:
    logs = write("t", BARE)
    schemas = file("schemas/t-value.avsc", WRITER).parent
    typed = {"schema_registry": str(schemas), "value_format": "avro", "value_framing": framing}
    for more, expected in (
        ({"reader_schema": READER}, {"b": "x", "c": 7}),
        ({}, {"a": 5, "b": "x"}),
    ):
        (row,) = ingested(logs, **typed, **more)
        assert (row["value"], row["_error"]) == (expected, None)
    # Text is made of a value by the schema that wrote it.
    given = ("--value-format", "avro", "--value-framing", framing, "--schema-registry", schemas)
    for more in ((), ("--reader-schema", file("reader.avsc", READER))):
        (row,) = cli.records(*given, *more, logs)
        assert row["value"] == {"a": 5, "b": "x"}
        assert 'payload: {"a":5,"b":"x"}' in cli("dump", *given, *more, logs / "t-0")


LOOK_FRAMED = {
    b"\0\x08name": {"a": 0, "b": "name"},
    b"\0\x10\0\0\0\0\0\0\0\0": {"a": 0, "b": "\0" * 8},
    b"\1\x28" + b"n" * 20: {"a": -1, "b": "n" * 20},
}
"""Values of `WRITER` that begin like Confluent's framing, by an id or a GUID."""


def test_bare_rows_may_begin_like_framed_ones(write: Write, file: File, cli: Cli) -> None:
    logs = write("t", *LOOK_FRAMED, BARE)
    expected = [*LOOK_FRAMED.values(), {"a": 5, "b": "x"}]
    schemas = file("schemas/t-value.avsc", WRITER).parent
    # Names of AWS Glue's schema versions are no ids.
    file("schemas/b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63.avsc", WRITER)
    typed = {"schema_registry": str(schemas), "value_format": "avro"}
    rows = ingested(logs, **typed)
    assert [(row["value"], row["_schema_id"], row["_error"]) for row in rows] == [
        (value, None, None) for value in expected
    ]
    rows = cli.records("--value-format", "avro", "--schema-registry", schemas, logs)
    assert [row["value"] for row in rows] == expected
    options = {"path": str(logs), "valueFormat": "avro", "schemaRegistry": str(schemas)}
    (decoder,) = decoders_for(parse_options(options))
    values = decoder.decode(pa.record_batch({"value": list(LOOK_FRAMED)})).column("value")
    assert values.to_pylist() == expected[:-1]


def test_keys_may_begin_like_framed_ones(write: Write, file: File) -> None:
    (key, expected), *_ = LOOK_FRAMED.items()
    logs = write("t", b"", key=key)
    schemas = file("schemas/t-key.avsc", WRITER).parent
    (row,) = ingested(logs, schema_registry=str(schemas), key_format="avro")
    assert (row["key"], row["_key_error"]) == (expected, None)


def test_a_framed_row_of_an_absent_schema_stays_one(write: Write, file: File) -> None:
    framed = b"\0\0\0\0\x07" + BARE
    logs = write("t", framed, b"\0\x08name")
    schemas = file("schemas/t-value.avsc", WRITER).parent
    typed = {"schema_registry": str(schemas), "value_format": "avro"}
    row, bare = ingested(logs, **typed)
    assert (row["value"], row["_schema_id"], row["invalidValue"]) == (None, 7, framed)
    assert row["_error"] == (
        "no schema has the id 7; read without framing: 6 bytes after the end of the value (byte 2)"
    )
    assert bare["value"] == {"a": 0, "b": "name"}
    (decoder,) = column_decoders(TypedColumns(**typed), {"t"})
    named = pa.record_batch({"value": [BARE, framed, b"\0\x08name", framed]})
    ((piece, nameless),) = decoder.replace(named)
    assert (piece.column("_schema_id").to_pylist(), nameless.absent) == ([None, 7, None, 7], (1, 3))
    # Headers name a schema for certain.
    headers = [[{"key": "__value_schema_id", "value": b"\0\0\0\0\x07"}]]
    of_headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    by_header = {"value": [BARE], "headers": pa.array(headers, of_headers)}
    assert decoder.decode(pa.record_batch(by_header)).column("_error")[0].as_py() == "no schema has the id 7"


def test_what_looks_framed_is_framed_where_rows_can_name_a_schema(write: Write, file: File) -> None:
    """Read by another schema, it may be a value that no one wrote."""
    logs = write("t", *LOOK_FRAMED)
    schemas = file("schemas/t-value.avsc", WRITER).parent
    file("schemas/7.avsc", INT)
    typed = {"schema_registry": str(schemas), "value_format": "avro"}
    rows = ingested(logs, **typed)
    assert [row["value"] for row in rows] == [None] * 3
    assert rows[0]["_error"] == "no schema has the id 141451629"
    rows = ingested(logs, **typed, value_framing="none")
    assert [row["value"] for row in rows] == list(LOOK_FRAMED.values())


def test_the_same_on_spark(write: Write, file: File) -> None:
    logs = write("t", BARE)
    schemas = file("schemas/t-value.avsc", WRITER).parent
    given = {"path": str(logs), "valueFormat": "avro", "schemaRegistry": str(schemas), "readerSchema": READER}
    (decoder,) = decoders_for(parse_options(given))
    assert decoder.decode(pa.record_batch({"value": [BARE]})).column("value").to_pylist() == [
        {"b": "x", "c": 7}
    ]


def test_the_same_for_keys(write: Write, file: File) -> None:
    logs = write("t", b"", key=BARE)
    schemas = file("schemas/t-key.avsc", WRITER).parent
    (row,) = ingested(logs, schema_registry=str(schemas), key_format="avro", key_reader_schema=READER)
    assert (row["key"], row["_key_error"]) == ({"b": "x", "c": 7}, None)


def test_the_latest_schema_wrote_rows_of_one_schema(write: Write, file: File, cli: Cli) -> None:
    """With the framing `none` also if it has an id; with `auto` rows name the id, or have an error."""
    logs = write("t", BARE)
    file("schemas/writer.avsc", WRITER)
    registry = file("schemas/registry.json", '{"7": "writer.avsc", "t-value": "writer.avsc"}')
    typed = {"schema_registry": str(registry), "value_format": "avro", "reader_schema": READER}
    (row,) = ingested(logs, **typed, value_framing="none")
    assert (row["value"], row["_error"]) == ({"b": "x", "c": 7}, None)
    (row,) = ingested(logs, **typed)
    assert row["_error"].startswith("not framed")
    reader = file("reader.avsc", READER)
    given = ("--value-format", "avro", "--schema-registry", registry, "--reader-schema", reader)
    (row,) = cli.records(*given, "--value-framing", "none", logs)
    assert row["value"] == {"a": 5, "b": "x"}


def test_a_topic_without_a_schema_has_the_readers(write: Write, file: File, cli: Cli) -> None:
    logs = write("t", BARE)
    schemas = file("schemas/7.avsc", INT).parent
    typed = {"schema_registry": str(schemas), "value_format": "avro", "reader_schema": WRITER}
    (row,) = ingested(logs, **typed, value_framing="none")
    assert (row["value"], row["_error"]) == ({"a": 5, "b": "x"}, None)
    reader = file("reader.avsc", WRITER)
    for framing in ("auto", "none"):
        given = ("--value-format", "avro", "--value-framing", framing, "--schema-registry", schemas)
        (row,) = cli.records(*given, "--reader-schema", reader, logs)
        assert row["value"] == {"a": 5, "b": "x"}


def test_several_topics_of_one_schema(write: Write, file: File) -> None:
    for topic in ("a", "b"):
        logs = write(topic, BARE)
        schemas = file(f"schemas/{topic}-value.avsc", WRITER).parent
    typed = {"schema_registry": str(schemas), "value_format": "avro", "reader_schema": READER}
    for framing in ("auto", "none"):
        rows = ingested(logs, **typed, value_framing=framing)
        assert [row["value"] for row in rows] == [{"b": "x", "c": 7}] * 2


def test_several_topics_of_several_schemas(write: Write, file: File) -> None:
    for topic, text in (("a", WRITER), ("b", OTHER)):
        logs = write(topic, BARE, b"\0\0\0\0\x07" + BARE)
        schemas = file(f"schemas/{topic}-value.avsc", text).parent
    file("schemas/7.avsc", WRITER)
    typed = {"schema_registry": str(schemas), "value_format": "avro", "reader_schema": READER}
    # No one schema wrote the bare rows. Others name theirs.
    rows = ingested(logs, **typed)
    assert [row["value"] for row in rows] == [None, {"b": "x", "c": 7}] * 2
    assert rows[0]["_error"].startswith("not framed")
    with pytest.raises(RefusedError, match="a and b have different schemas"):
        ingested(logs, **typed, value_framing="none")
    (schemas / "b-value.avsc").unlink()
    with pytest.raises(RefusedError, match="no subject has the name b-value: choose a topic"):
        ingested(logs, **typed, value_framing="none")


def test_topics_that_are_not_there() -> None:
    registry = {"schema_registry": str(Path(__file__).parents[1] / "data" / "kafka" / "schemas_topic")}
    for framing in ("auto", "none"):
        typed = TypedColumns(**registry, value_format="avro", reader_schema=INT, value_framing=framing)
        assert len(column_decoders(typed, set())) == 1
    with pytest.raises(RefusedError, match="no topic is chosen"):
        column_decoders(TypedColumns(**registry, value_format="avro"), set())


# --- topics without schemas, in text ---------------------------------------------------------------------


@pytest.mark.parametrize("without", ["a", "b", "c"])
def test_a_topic_that_has_no_schema_costs_only_itself(
    write: Write, file: File, cli: Cli, without: str
) -> None:
    for topic in ("a", "b", "c"):
        logs = write(topic, BARE, BARE)
        schemas = file(f"schemas/{topic}-value.avsc", WRITER).parent
    (schemas / f"{without}-value.avsc").unlink()
    given = ("--value-format", "avro", "--value-framing", "none", "--schema-registry", schemas)
    rows = cli.records(*given, logs, code=1)
    shown = {topic: [row["value"] for row in rows if row["topic"] == topic] for topic in ("a", "b", "c")}
    assert shown.pop(without) == [None, None]
    assert {row["invalidValue"] for row in rows if row["topic"] == without} == {BARE.decode()}
    assert list(shown.values()) == [[{"a": 5, "b": "x"}] * 2] * 2
    problem = f"{without}: the values are not decoded: no subject has the name {without}-value"
    assert cli.error.count("magicbyte:") == cli.error.count(problem) == 1
    dumped = cli("dump", *given, *(logs / f"{topic}-0" for topic in ("a", "b", "c")), code=1)
    assert dumped.count('payload: {"a":5,"b":"x"}') == 4
    assert dumped.count(f"payload: {BARE.decode()}") == 2
    assert cli.error.count("magicbyte:") == cli.error.count(problem) == 1


def test_a_schema_that_cannot_be_used_costs_only_its_topic(write: Write, file: File, cli: Cli) -> None:
    for topic, name, text in (("a", "a-value.json", "{}"), ("b", "b-value.avsc", WRITER)):
        logs = write(topic, BARE)
        schemas = file(f"schemas/{name}", text).parent
    given = ("--value-format", "avro", "--schema-registry", schemas, logs)
    rows = cli.records(*given, code=1)
    assert [row["value"] for row in rows] == [None, {"a": 5, "b": "x"}]
    assert cli.error.count("magicbyte:") == 1
    assert "a: the values are not decoded: the schema that is given is JSON, expected AVRO" in cli.error


def test_keys_of_a_topic_without_values_are_decoded(write: Write, file: File, cli: Cli) -> None:
    logs = write("t", BARE, key=b"\x0a")
    schemas = file("schemas/t-key.avsc", INT).parent
    framings = ("--key-framing", "none", "--value-framing", "none")
    formats = ("--key-format", "avro", "--value-format", "avro")
    (row,) = cli.records(*formats, *framings, "--schema-registry", schemas, logs, code=1)
    assert (row["key"], row["invalidValue"]) == (5, BARE.decode())
    assert cli.error.count("magicbyte:") == 1


def test_the_readers_own_schema_has_to_be_one(write: Write, file: File, cli: Cli) -> None:
    logs = write("t", BARE)
    reader = file("reader.avsc", "{")
    assert cli("records", "--value-format", "avro", "--reader-schema", reader, logs, code=3) == ""
    assert "the schema that is given: " in cli.error


@pytest.mark.parametrize(
    ("format_", "text", "value", "expected"),
    [
        ("avro", INT, b"\x0a", 5),
        ("protobuf", 'syntax = "proto3"; message M { int32 a = 1; }', b"\x08\5", {"a": 5}),
        ("json", '{"type": "integer"}', b"5", 5),
    ],
)
def test_a_byte_order_mark_is_no_part_of_the_readers_schema(
    write: Write, file: File, cli: Cli, format_: str, text: str, value: bytes, expected: Any
) -> None:
    logs = write("t", value, key=value)
    reader = file("reader.txt", "\ufeff" + text)
    formats = ("--key-format", format_, "--value-format", format_)
    (row,) = cli.records(*formats, "--key-reader-schema", reader, "--reader-schema", reader, logs)
    assert (row["key"], row["value"]) == (expected, expected)


# --- messages of Protobuf --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "expected"),
    [("shop.Cart", {"size": 5}), ("shop.Cart.Line", {"size": 5}), ("shop.Order", {})],
)
def test_the_message_of_bare_values(write: Write, file: File, cli: Cli, message: str, expected: Any) -> None:
    logs = write("t", CART)
    reader = file("shop.proto", PROTO)
    schemas = file("schemas/t-value.proto", PROTO).parent
    given = ("--value-format", "protobuf", "--message", message)
    for source in (("--reader-schema", reader), ("--schema-registry", schemas)):
        (row,) = cli.records(*given, *source, logs)
        assert row["value"] == expected
        assert f"payload: {json.dumps(expected, separators=(',', ':'))}" in cli(
            "dump", *given, *source, logs / "t-0"
        )
    by_keywords = {"value_format": "protobuf", "messages": [message]}
    for source in ({"reader_schema": PROTO}, {"schema_registry": str(schemas)}):
        (row,) = ingested(logs, **by_keywords, **source)
        assert row["value"] == {**expected, **({"id": ""} if message == "shop.Order" else {})}


def test_values_that_name_their_message_are_that(write: Write, file: File, cli: Cli) -> None:
    logs = write("t", b"\0\0\0\0\x07\0\x0a\x01x", b"\0\0\0\0\x07\x02\x02" + CART, CART)
    schemas = file("schemas/7.proto", PROTO).parent
    file("schemas/t-value.proto", PROTO)
    given = ("--value-format", "protobuf", "--message", "shop.Cart.Line", "--schema-registry", schemas)
    assert [row["value"] for row in cli.records(*given, logs)] == [{"id": "x"}, {"size": 5}, {"size": 5}]


def test_a_message_that_is_not_there(write: Write, file: File, cli: Cli) -> None:
    logs = write("t", CART)
    given = ("--value-format", "protobuf", "--reader-schema", file("shop.proto", PROTO))
    (row,) = cli.records(*given, "--message", "shop.Nothing", logs, code=1)
    assert row["value"] is None
    assert "the schema has no message named shop.Nothing" in cli.error
