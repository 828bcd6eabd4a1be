"""Typed streams that meet schemas which the registry has got since the query began, or does not have."""

from __future__ import annotations

import json
import logging
import pickle
import re
import struct
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from magicbyte import RecordsBuilder

pytest.importorskip("pyspark", minversion="4.2")

from magicbyte.errors import JobError
from magicbyte.jobs.typed import column_decoders
from magicbyte.options.typed import TypedColumns
from magicbyte.schema.avro_fingerprint import fingerprint
from magicbyte.spark.given import OptionError
from magicbyte.spark.options import parse_options, parse_stream_options
from magicbyte.spark.stream import MagicbyteStreamReader
from magicbyte.spark.typed import SchemaLookup, decoders_for, with_schemas
from test_http_registry import Handler, Server, server  # noqa: F401 (a fixture)
from test_stream_reader import FIRST, Stream

A = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
AB = {**A, "fields": [*A["fields"], {"name": "b", "type": "string", "default": ""}]}  # type: ignore[misc]
USES = {**A, "fields": [{"name": "a", "type": "int"}, {"name": "used", "type": "Used", "default": {"c": 0}}]}
USED = {"type": "record", "name": "Used", "fields": [{"name": "c", "type": "int"}]}
COLUMNS = ("offset", "value", "_schema_id", "_error", "invalidValue")
GLUE = "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63"
BY_NAME = {
    "AWS Glue": (GLUE, b"\3\0" + UUID(GLUE).bytes + b"\x04\x02x", f"no schema has the GUID {GLUE}"),
    "Avro's single object": (
        "9",
        b"\xc3\x01" + fingerprint(json.dumps(AB))[::-1] + b"\x04\x02x",
        f"no schema has the fingerprint {fingerprint(json.dumps(AB)).hex()}",
    ),
}
"""By framing: the name of the file with `AB`, a value that it wrote, and the error without it."""
ROWS = {1: b"\x02", 2: b"\x04\x02x", 3: b"\x06\x02"}
"""The payloads of a row by the id of its schema: `{"a": id}`."""


class TypedStream(Stream):
    """A stream of typed values."""

    def __init__(self, path: Path, registry: Path | str, at: Any = None, **options: Any) -> None:
        given = {
            "path": path,
            "startingOffsets": "earliest",
            "valueFormat": "avro",
            "schemaRegistry": registry,
        }
        parsed = parse_stream_options({name: str(value) for name, value in (given | options).items()})
        self.reader = MagicbyteStreamReader(parsed, COLUMNS, decoders_for(parsed.read))
        self.at = self.next(self.reader.initialOffset()) if at is None else at

    def values(self) -> list[tuple[Any, ...]]:
        """The offset, value, id and error of the rows of the next micro-batch."""
        return [row[:4] for row in self.trigger()]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "logs" / "t-0").mkdir(parents=True)
    (tmp_path / "schemas").mkdir()
    register(tmp_path / "schemas", 1, A)
    append(tmp_path / "logs", 0, 1)
    return tmp_path / "logs"


def register(directory: Path, schema_id: int, schema: Any) -> None:
    """Makes a schema the latest one of the topic."""
    for name in (str(schema_id), "t-value"):
        (directory / f"{name}.avsc").write_text(json.dumps(schema))


def append(root: Path, offset: int, *ids: int) -> None:
    """Appends a batch with a record for each id of a schema."""
    append_values(root, offset, *(b"\0" + struct.pack(">i", one) + ROWS[one] for one in ids))


def append_values(root: Path, offset: int, *values: bytes) -> None:
    """Appends a batch with these values."""
    builder = RecordsBuilder()
    for at, value in enumerate(values, offset):
        builder.append(at, 0, b"k", value)
    with (root / "t-0" / FIRST).open("ab") as file:
        file.write(builder.build())


UNKNOWN = "t-0, offset 2: the schema of the value is unknown: no schema has the id 2"


def test_a_new_version(log: Path) -> None:
    stream = TypedStream(log, log.parent / "schemas")
    assert stream.values() == [(0, {"a": 1}, 1, None)]
    register(log.parent / "schemas", 2, AB)
    append(log, 1, 1, 2, 1)
    # The columns are those of the schema that was the latest one when the query began.
    assert stream.values() == [(1, {"a": 1}, 1, None), (2, {"a": 2}, 2, None), (3, {"a": 1}, 1, None)]
    again = TypedStream(log, log.parent / "schemas", stream.at)
    append(log, 4, 2)
    assert again.values() == [(4, {"a": 2, "b": "x"}, 2, None)]


def test_a_version_that_is_still_unknown(log: Path) -> None:
    stream = TypedStream(log, log.parent / "schemas")
    start = stream.at
    append(log, 1, 1, 2, 1)
    end = stream.next(start)
    for _ in range(2):
        with pytest.raises(JobError, match=UNKNOWN):
            stream.rows(start, end)
    # On request, rows say why, as in batch queries.
    rows = TypedStream(log, log.parent / "schemas", start, failOnUnknownSchema="false").values()
    assert [row[1:] for row in rows] == [
        ({"a": 1}, 1, None),
        ({"a": 1}, 1, None),
        (None, 2, "no schema has the id 2"),
        ({"a": 1}, 1, None),
    ]
    # Later it is known, and the same micro-batch is read again: by the query itself, and by another one.
    register(log.parent / "schemas", 2, AB)
    for one in (stream, TypedStream(log, log.parent / "schemas", start)):
        assert [row[2] for row in one.rows(start, end)] == [1, 1, 2, 1]


@pytest.mark.parametrize("framing", BY_NAME)
def test_schemas_that_rows_name_otherwise(log: Path, framing: str) -> None:
    """What AWS Glue framed, and single objects: their rows wait for a schema as those with an id do."""
    name, value, error = BY_NAME[framing]
    schemas = log.parent / "schemas"
    # Otherwise this would be the schema of all rows with unknown names.
    (schemas / "t-value.avsc").unlink()
    given = {"readerSchema": json.dumps(A)}
    stream = TypedStream(log, schemas, **given)
    assert stream.values() == [(0, {"a": 1}, 1, None)]
    append_values(log, 1, value)
    start, end = stream.at, stream.next(stream.at)
    for _ in range(2):
        with pytest.raises(JobError, match=f"t-0, offset 1: the schema of the value is unknown: .*{error}"):
            stream.rows(start, end)
    ((_, decoded, schema_id, reason),) = TypedStream(
        log, schemas, start, failOnUnknownSchema="false", **given
    ).values()
    assert (decoded, schema_id) == (None, None)
    assert reason.endswith(error)
    (schemas / f"{name}.avsc").write_text(json.dumps(AB))
    assert stream.values() == [(1, {"a": 2}, None, None)]


@pytest.mark.parametrize("framing", BY_NAME)
@pytest.mark.parametrize("is_upper", [False, True])
def test_a_lookup_adds_the_schemas_of_new_files(log: Path, framing: str, is_upper: bool) -> None:
    name, value, _ = BY_NAME[framing]
    schemas = log.parent / "schemas"
    (schemas / "t-value.avsc").unlink()
    typed = TypedColumns(schema_registry=str(schemas), value_format="avro", reader_schema=json.dumps(A))
    decoders = column_decoders(typed, {"t"})
    lookup = pickle.loads(pickle.dumps(SchemaLookup(typed, decoders)))
    assert lookup.added() is None
    (schemas / f"{name.upper() if is_upper else name}.avsc").write_text(json.dumps(AB))
    added = lookup.added()
    assert added is not None
    assert ({*added.uuids}, {*added.schemas}) == (({GLUE}, set()) if name == GLUE else (set(), {(".", 9)}))
    rows = pa.record_batch({"value": [value, b"\0\0\0\0\1" + ROWS[1]]})
    (before,), (after,) = decoders, with_schemas(decoders, added)
    assert before.decode(rows).column("value").to_pylist() == [None, {"a": 1}]
    assert after.decode(rows).column("value").to_pylist() == [{"a": 2}, {"a": 1}]


def test_rows_that_cannot_be_decoded_pass(log: Path) -> None:
    with (log / "t-0" / FIRST).open("ab") as file:
        builder = RecordsBuilder()
        for offset, value in enumerate((b"text", b"\0\0\0\0\x01", None), 1):
            builder.append(offset, 0, b"k", value)
        file.write(builder.build())
    rows = TypedStream(log, log.parent / "schemas").values()
    assert [(row[0], row[1], row[3] is None) for row in rows] == [
        (0, {"a": 1}, True),
        (1, None, False),
        (2, None, False),
        (3, None, True),
    ]


def test_columns_that_need_no_schema(log: Path) -> None:
    append(log, 1, 2)
    given = {"path": str(log), "startingOffsets": "earliest", "valueFormat": "avro"}
    parsed = parse_stream_options({**given, "schemaRegistry": str(log.parent / "schemas")})
    reader = MagicbyteStreamReader(parsed, ("offset",), decoders_for(parsed.read))
    parts = reader.partitions({}, {"t": {"0": 2}})
    assert sum(batch.num_rows for part in parts for batch in reader.read(part)) == 2


def test_a_registry_that_is_away(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    stream = TypedStream(log, log.parent / "schemas")
    (log.parent / "schemas").rename(log.parent / "away")
    with caplog.at_level(logging.WARNING):
        assert stream.values() == [(0, {"a": 1}, 1, None)]
    assert "the schema registry cannot be asked" in caplog.text
    append(log, 1, 1, 2)
    with pytest.raises(JobError, match=UNKNOWN):
        stream.trigger()


def test_the_topic_of_a_registry(log: Path) -> None:
    def put(offset: int, schema_id: int, schema: Any) -> None:
        key = {"keytype": "SCHEMA", "subject": "t-value", "version": schema_id, "magic": 1}
        value = {**key, "id": schema_id, "schema": json.dumps(schema), "deleted": False}
        builder = RecordsBuilder()
        builder.append(offset, 0, json.dumps(key).encode(), json.dumps(value).encode())
        (log / "_schemas-0").mkdir(exist_ok=True)
        with (log / "_schemas-0" / FIRST).open("ab") as file:
            file.write(builder.build())

    put(0, 1, A)
    stream = TypedStream(log, log, subscribe="t")
    put(1, 2, AB)
    append(log, 1, 2)
    assert [row[2] for row in stream.values()] == [1, 2]


@pytest.fixture
def served(server: Server) -> tuple[str, dict[str, dict[int, dict[str, Any]]]]:  # noqa: F811
    """The address of a registry, and its subjects: id, schema and references of each version."""
    subjects: dict[str, dict[int, dict[str, Any]]] = {}

    def answer(handler: Handler) -> None:
        path = handler.path.partition("?")[0]
        if path == "/subjects":
            handler.json(list(subjects))
        elif match := re.fullmatch(r"/subjects/([^/]+)/versions", path):
            handler.json(list(subjects[match[1]]))
        elif match := re.fullmatch(r"/subjects/([^/]+)/versions/(\d+)", path):
            handler.json({"subject": match[1], "version": int(match[2]), **subjects[match[1]][int(match[2])]})
        elif path == "/contexts":
            handler.json(["."])
        else:
            handler.json({}, 404)

    server.answer = answer
    return server.url, subjects


def test_a_live_registry(log: Path, served: Any, server: Server) -> None:  # noqa: F811
    url, subjects = served
    subjects["t-value"] = {1: {"id": 1, "schema": json.dumps(A)}}
    stream = TypedStream(log, url)
    assert [row[2] for row in stream.values()] == [1]
    # The new version uses another schema, whose subject is new.
    subjects["used"] = {1: {"id": 9, "schema": json.dumps(USED)}}
    references = [{"name": "Used", "subject": "used", "version": 1}]
    subjects["t-value"][2] = {"id": 3, "schema": json.dumps(USES), "references": references}
    append(log, 1, 1, 3)
    server.asked.clear()
    assert stream.values() == [(1, {"a": 1}, 1, None), (2, {"a": 3}, 3, None)]
    assert len([path for path, _ in server.asked if re.search(r"/versions/\d", path)]) == 2
    append(log, 3, 2)
    server.asked.clear()
    with pytest.raises(
        JobError, match="t-0, offset 3: the schema of the value is unknown: no schema has the id 2"
    ):
        stream.trigger()
    # What it knows is not asked for again, and tasks ask nothing.
    assert not [path for path, _ in server.asked if re.search(r"/versions/\d", path)]
    parts = stream.reader.partitions(stream.at, stream.next(stream.at))
    server.asked.clear()
    reader = pickle.loads(pickle.dumps(stream.reader))
    with pytest.raises(JobError, match="offset 3"):
        [list(reader.read(part)) for part in pickle.loads(pickle.dumps(parts))]
    assert server.asked == []


def test_only_for_streams(log: Path) -> None:
    with pytest.raises(OptionError, match="failOnUnknownSchema is only for streams"):
        parse_options({"path": str(log), "failOnUnknownSchema": "false"})
