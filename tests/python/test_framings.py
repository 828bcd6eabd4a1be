"""Framings of keys and values: bytes by the libraries that define them, and by hand from their documentation.

`tests/data/framings/Framings.java` wrote the file with those of Avro, Apicurio, AWS Glue and Kafka Streams.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Cli
from magicbyte import PartitionLog, RecordsBuilder
from magicbyte.enums import Framing, SchemaFormat
from magicbyte.schema import ColumnDecoder, decode
from magicbyte.schema.avro_fingerprint import canonical_form, fingerprint
from magicbyte.schema.decoding import InvalidSchemaError
from magicbyte.schema.directory import files_of, read_directory
from magicbyte.schema.framing import (
    KEY_SCHEMA_ID,
    VALUE_SCHEMA_ID,
    Window,
    header_names,
    parse,
    split_window,
)
from magicbyte.schema.registry import Schema, StoredRegistry
from magicbyte.spark.given import OptionError
from magicbyte.spark.options import parse_table

WRITTEN = json.loads((Path(__file__).parent.parent / "data" / "framings" / "framings.json").read_text())
VALUES = {
    name: (bytes.fromhex(value), [(key, bytes.fromhex(content)) for key, content in headers])
    for name, value, headers in WRITTEN["values"]
}
AVRO = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
PROTO = """syntax = "proto3"; package s;
message Z { string x = 1; }
message A { string x = 1; message Inner { string x = 1; } }
"""
JSON = '{"type": "object", "properties": {"a": {"type": "integer"}}}'
GLUE = "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63"
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
START, END = 1_700_000_000_000, 1_700_000_060_000

Headers = Sequence[tuple[str, bytes]]


def batch_of(*rows: tuple[bytes | None, Headers], column: str = "value") -> pa.RecordBatch:
    headers = [[{"key": key, "value": value} for key, value in headers] for _, headers in rows]
    values = pa.array([value for value, _ in rows], pa.binary())
    return pa.record_batch({column: values, "headers": pa.array(headers, HEADERS)})


def registry_of(schema_format: str, text: str) -> StoredRegistry:
    registry = StoredRegistry()
    schema = Schema(schema_format, text)
    registry.put_schema(7, schema)
    registry.put_uuid(GLUE, schema)
    return registry


def as_text(rows: pa.RecordBatch, column: str = "value") -> list[Any]:
    return [None if text is None else json.loads(text) for text in rows.column(column).to_pylist()]


@pytest.mark.parametrize(("text", "form", "number"), WRITTEN["fingerprints"])
def test_fingerprints_are_those_of_avro(text: str, form: str, number: str) -> None:
    assert canonical_form(text) == form
    assert fingerprint(text).hex() == number


def test_a_fingerprint_covers_what_a_schema_uses() -> None:
    inner = '{"type": "fixed", "name": "n.F", "size": 2}'
    fields = '[{"name": "a", "type": "n.F"}, {"name": "b", "type": "n.F"}]'
    outer = f'{{"type": "record", "name": "R", "fields": {fields}}}'
    whole = outer.replace('"n.F"', inner, 1)
    assert canonical_form(outer, [("n.F", inner)]) == canonical_form(whole)


@pytest.mark.parametrize("name", [name for name in VALUES if "protobuf" not in name and "store" not in name])
def test_values_of_the_libraries(name: str) -> None:
    decoder = ColumnDecoder(registry_of("AVRO", AVRO), None)
    rows = decoder.decode(batch_of(VALUES[name]))
    assert (as_text(rows), rows.column("_error").to_pylist()) == ([{"a": 5}], [None])


@pytest.mark.parametrize("name", [name for name in VALUES if "protobuf" in name])
def test_protobuf_values_of_the_libraries(name: str) -> None:
    message = name.split()[-1]
    registry = registry_of("PROTOBUF", PROTO)
    rows = ColumnDecoder(registry, None, "protobuf").decode(batch_of(VALUES[name]))
    assert (as_text(rows), rows.column("_error").to_pylist()) == ([{"x": message}], [None])
    full = {"Inner": "s.A.Inner"}.get(message, f"s.{message}")
    decoder = ColumnDecoder(registry, registry.by_id(7), "protobuf", messages=[full])
    assert decoder.decode(batch_of(VALUES[name])).column("value").to_pylist() == [{"x": message}]


@pytest.mark.parametrize(
    ("name", "framing", "is_read"),
    [
        ("apicurio 8", "apicurio", True),
        ("apicurio 8", "confluent", False),
        ("apicurio header globalId", "apicurio", True),
        ("apicurio header globalId", "confluent", False),
        ("glue NONE", "glue", True),
        ("glue ZLIB", "glue", True),
        ("glue ZLIB", "single-object", False),
        ("single-object", "single-object", True),
        ("single-object", "glue", False),
        ("apicurio 4", "confluent", True),
        ("apicurio 4", "glue", False),
    ],
)
def test_a_framing_by_option(name: str, framing: Framing, is_read: bool) -> None:
    rows = ColumnDecoder(registry_of("AVRO", AVRO), None, framing=framing).decode(batch_of(VALUES[name]))
    assert as_text(rows) == [{"a": 5} if is_read else None]
    assert (rows.column("_error")[0].as_py() is None) is is_read


def test_a_framing_that_is_not_read_is_named() -> None:
    def error_of(value: bytes, headers: Headers = ()) -> str:
        rows = ColumnDecoder(StoredRegistry(), None).decode(batch_of((value, headers)))
        assert rows.column("invalidValue").to_pylist() == [value]
        return str(rows.column("_error")[0])

    assert error_of(VALUES["glue NONE"][0]) == f"framed by AWS Glue: no schema has the GUID {GLUE}"
    assert error_of(VALUES["single-object"][0]) == (
        "framed as Avro's single object: no schema has the fingerprint 35b061f31ba01537"
    )
    assert error_of(b"\n", [("apicurio.value.contentHash", b"5f")]).startswith(
        "framed by Apicurio: its headers name"
    )
    assert error_of(b"\n", [("apicurio.value.globalId", b"\0\0\0\7")]).startswith(
        "framed by Apicurio: the header"
    )
    assert error_of(b"\0\0\0\0\7\n") == "no schema has the id 7"
    assert error_of(b"\3\0abc").startswith("not framed: begins with 0x03")
    assert error_of(b"\3\1" + UUID(GLUE).bytes + b"\n").startswith("not framed: begins with 0x03")


def test_zlib_is_bounded_and_whole() -> None:
    decoder = ColumnDecoder(registry_of("AVRO", '"bytes"'), Schema("AVRO", '"bytes"'))
    framed = b"\3\5" + UUID(GLUE).bytes

    def long(value: bytes) -> bytes:
        size, out = len(value) << 1, b""
        while size > 0x7F:
            out, size = out + bytes([size & 0x7F | 0x80]), size >> 7
        return out + bytes([size]) + value

    bomb = zlib.compress(long(bytes(100 << 20)), 9)
    whole = zlib.compress(long(b"abc" * 100))
    rows = decoder.decode(
        batch_of(*((framed + one, ()) for one in (bomb, whole[:-5], whole + b"x", b"????", whole)))
    )
    errors = rows.column("_error").to_pylist()
    for error, part in zip(
        errors, ("inflates to more than", "cut off", "1 bytes follow", "invalid"), strict=False
    ):
        assert error.startswith("framed by AWS Glue with zlib: ")
        assert part in error
    assert errors[4] is None
    assert rows.column("value")[4].as_py() == b"abc" * 100


def test_many_inflated_payloads_are_decoded_in_pieces() -> None:
    decoder = ColumnDecoder(registry_of("AVRO", '"bytes"'), Schema("AVRO", '"bytes"'))
    text = b"\x80\x80\x80\x01" + bytes(1 << 20)
    value = b"\3\5" + UUID(GLUE).bytes + zlib.compress(text)
    pieces = list(decoder.replace(batch_of(*[(value, ())] * 80)))
    assert len(pieces) > 1
    assert sum(piece.num_rows for piece, _ in pieces) == 80
    assert all(piece.column("_error").null_count == piece.num_rows for piece, _ in pieces)


@pytest.mark.parametrize(
    ("schema_format", "text", "value", "expected"),
    [
        ("avro", AVRO, b"\x0a", {"a": 5}),
        # Bare bytes that look framed.
        ("avro", '"bytes"', b"\0", b""),
        ("protobuf", PROTO, b"\x0a\1z", {"x": "z"}),
        ("json", JSON, b'{"a": 5}', {"a": 5}),
    ],
)
def test_the_readers_schema_alone(
    schema_format: SchemaFormat, text: str, value: bytes, expected: Any
) -> None:
    rows = decode([value], None, schema_format, text)
    assert (rows.field("value").to_pylist(), rows.field("_error").to_pylist()) == ([expected], [None])
    # With a registry, only by the option: other values may have ids.
    known = registry_of(schema_format.upper(), text)
    rows = decode([value], known, schema_format, text, framing="none")
    assert rows.field("value").to_pylist() == [expected]


@pytest.mark.parametrize(("schema_format", "text"), [("protobuf", PROTO), ("json", JSON)])
def test_what_is_surely_framed_is_read_by_the_readers_schema(schema_format: SchemaFormat, text: str) -> None:
    payload = b'{"a": 5}' if schema_format == "json" else b"\0\x0a\1z"
    for frame in (b"\0\0\0\0\7", b"\0\0\0\0\0\0\0\0\7", b"\1" + bytes(16)):
        assert decode([frame + payload], None, schema_format, text).field("_error").to_pylist() == [None]


def test_avro_without_a_registry_is_framed_where_that_is_certain() -> None:
    read = decode([VALUES["single-object"][0], b"\x0a"], None, "avro", AVRO)
    assert read.field("value").to_pylist() == [{"a": 5}, {"a": 5}]
    confluent = b"\0\0\0\0\7\x0a"
    (error,) = decode([confluent], None, "avro", AVRO).field("_error").to_pylist()
    assert "it begins like one framed with the id 7" in error
    by_option = decode([confluent], None, "avro", AVRO, framing="confluent")
    assert by_option.field("value").to_pylist() == [{"a": 5}]


def test_a_schema_has_to_be_given_somewhere() -> None:
    for registry, framing in ((None, "auto"), (StoredRegistry(), "none")):
        with pytest.raises(InvalidSchemaError, match="has to be given"):
            ColumnDecoder(registry, None, framing=framing)  # type: ignore[arg-type]
    with pytest.raises(InvalidSchemaError, match="is JSON, expected AVRO"):
        ColumnDecoder(None, None, given=Schema("JSON", "{}"))


def test_windows_of_keys() -> None:
    registry = registry_of("AVRO", AVRO)
    reader = registry.by_id(7)
    key, session = VALUES["time window"][0], VALUES["session window"][0]
    decoder = ColumnDecoder(registry, reader, is_key=True, windows="time")
    rows = decoder.decode(batch_of((key, ()), (None, ()), (b"\0", ()), column="key"))
    assert rows.schema.names[4:] == ["_key_window_start"]
    assert rows.column("key").to_pylist() == [{"a": 5}, None, None]
    assert rows.column("_key_window_start").cast(pa.int64()).to_pylist() == [START * 1000, None, None]
    assert rows.column("_key_error").to_pylist()[2] == "1 bytes, too few for the times of a window"
    decoder = ColumnDecoder(registry, reader, is_key=True, windows="session")
    rows = decoder.decode(batch_of((session, ()), column="key"))
    times = [rows.column(f"_key_window_{edge}").cast(pa.int64())[0].as_py() for edge in ("start", "end")]
    assert (rows.column("key").to_pylist(), times) == ([{"a": 5}], [START * 1000, END * 1000])
    # As the changelog topics of state stores have them.
    assert VALUES["session store"][0] == session
    stored = VALUES["window store"][0]
    decoder = ColumnDecoder(registry, reader, is_key=True, windows="store")
    rows = decoder.decode(batch_of((stored, ()), (b"\0" * 11, ()), column="key"))
    assert rows.schema.names[4:] == ["_key_window_start"]
    assert rows.column("key").to_pylist() == [{"a": 5}, None]
    assert rows.column("_key_window_start").cast(pa.int64()).to_pylist() == [START * 1000, None]
    assert split_window(stored, "store") == Window(stored[:6], START, None)


def test_windows_are_found_in_text_only_where_a_key_cannot_be_read_otherwise() -> None:
    registry = registry_of("AVRO", AVRO)
    keys = [VALUES[name][0] for name in ("time window", "session window", "apicurio 4")]
    bad = b"\0\0\0\0\7\x0a" + (1).to_bytes(8, "big")
    rows = ColumnDecoder(registry, None, is_key=True).decode(
        batch_of(*((key, ()) for key in [*keys, bad]), column="key")
    )
    assert as_text(rows, "key") == [{"a": 5}] * 3 + [None]
    # In columns the times would be lost.
    rows = ColumnDecoder(registry, registry.by_id(7), is_key=True).decode(
        batch_of((keys[0], ()), column="key")
    )
    assert "ends like a windowed key" in rows.column("_key_error")[0].as_py()


def test_framed_parts() -> None:
    framed = parse(VALUES["glue ZLIB"][0])
    assert framed is not None
    assert (framed.guid, framed.framing, framed.is_deflated) == (GLUE, "glue", True)
    framed = parse(*VALUES["apicurio header contentId"])
    assert framed is not None
    assert (framed.id, framed.framing, framed.payload) == (7, "apicurio", b"\n")
    assert parse(*VALUES["apicurio header contentId"], framing="confluent") is None
    assert parse(b"\0\0\0\0\7", framing="none") is None
    window = split_window(VALUES["session window"][0], "session")
    assert window is not None
    assert (window.key, window.start, window.end) == (b"\0\0\0\0\7\n", START, END)
    assert split_window(b"\0", "time") is None


def test_files_named_by_uuids(tmp_path: Path) -> None:
    (tmp_path / f"{GLUE}.avsc").write_text(AVRO)
    registry = read_directory(tmp_path)
    assert registry.by_guid(GLUE.upper()).text == AVRO
    assert registry.by_fingerprint(fingerprint(AVRO)).text == AVRO
    copy = tmp_path / "copy"
    copy.mkdir()
    index, files = files_of(registry)
    (copy / "schemas.json").write_text(json.dumps(index))
    for name, text in files.items():
        (copy / name).write_text(text)
    assert read_directory(copy).uuids == registry.uuids
    assert registry.since(StoredRegistry()).uuids == StoredRegistry().joined(registry).uuids == registry.uuids


# --- commands ----------------------------------------------------------------------------------------


def log_of(folder: Path, *values: bytes) -> Path:
    builder = RecordsBuilder()
    for offset, value in enumerate(values):
        builder.append(offset, 1, b"k", value)
    partition = folder / "t-0"
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes(builder.build())
    return partition


def test_records_and_dump_read_bare_values(tmp_path: Path, cli: Cli) -> None:
    schema = tmp_path / "r.avsc"
    schema.write_text(AVRO)
    log = log_of(tmp_path, b"\x0a")
    given = ("--value-format", "avro", "--reader-schema", schema)
    (row,) = cli.records(*given, log)
    assert row["value"] == {"a": 5}
    assert cli("records", *given, "-f", "%o %k: %s\\n", log) == '0 k: {"a":5}\n'
    assert '"{""a"":5}"' in cli("records", *given, "--format", "csv", log)
    assert 'payload: {"a":5}' in cli("dump", *given, log)


def test_records_takes_the_schema_that_files_give_the_topic(tmp_path: Path, cli: Cli) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "t-value.avsc").write_text(AVRO)
    values = [b"\x0a", VALUES["glue NONE"][0], VALUES["glue ZLIB"][0], VALUES["single-object"][0]]
    log = log_of(tmp_path, *values, b"\0\0\0\0\7\x0a")
    rows = cli.records("--value-format", "avro", "--schema-registry", schemas, log, code=1)
    assert [row["value"] for row in rows][:4] == [{"a": 5}] * 4
    assert cli.error.count("no schema has the id 7") == 1


def test_ingest_of_bare_values(tmp_path: Path, cli: Cli) -> None:
    schema = tmp_path / "r.json"
    schema.write_text(JSON)
    log = log_of(tmp_path, b'{"a": 5}')
    cli("ingest", "--value-format", "json", "--reader-schema", schema, log, tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / "records").column("value").to_pylist() == [{"a": 5}]


def test_a_log_of_bare_values(tmp_path: Path) -> None:
    log = PartitionLog(log_of(tmp_path, b"\x0a"))
    value = ColumnDecoder(None, Schema("AVRO", AVRO))
    assert pa.table(log.to_arrow(["value"], value=value)).column("value").to_pylist() == [{"a": 5}]


def test_options_of_spark() -> None:
    given = {"path": "/logs", "valueFormat": "avro", "readerSchema": AVRO}
    assert parse_table(given).typed.schema_registry is None
    keys = {"path": "/logs", "keyFormat": "avro", "schemaRegistry": "/s", "keyWindows": "session"}
    table = parse_table({**keys, "keyFraming": "glue"})
    assert (table.typed.key_framing, table.typed.key_windows) == ("glue", "session")
    assert table.columns is not None
    assert {"_key_window_start", "_key_window_end"} <= {*table.columns}
    with pytest.raises(OptionError, match="keyFraming: 'x' is not one of"):
        parse_table({**keys, "keyFraming": "x"})


def test_headers_that_name_schemas() -> None:
    apicurio = [f"apicurio.value.{name}" for name in ("globalId", "contentId", "contentHash", "artifactId")]
    assert header_names() == ["__value_schema_id", *apicurio] == [VALUE_SCHEMA_ID, *apicurio]
    assert header_names(is_key=True) == [name.replace("value", "key") for name in header_names()]
    assert header_names(framing="apicurio") == apicurio
    assert header_names(is_key=True, framing="confluent") == ["__key_schema_id"] == [KEY_SCHEMA_ID]
    for framing in ("glue", "single-object", "none"):
        assert header_names(framing=framing) == []
    with pytest.raises(ValueError, match='framing "x": expected auto'):
        header_names(framing="x")


def test_keywords_that_there_are_not() -> None:
    with pytest.raises(TypeError, match="unexpected keywords: formats, key"):
        ColumnDecoder(StoredRegistry(), None, key=True, formats=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keywords: formats"):
        decode([], {}, formats=True)  # type: ignore[call-arg]
