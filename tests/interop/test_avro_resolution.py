"""What older versions of a schema wrote is read by the newest one as Avro's own Java library reads it."""

from __future__ import annotations

import base64
import itertools
import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from avro_histories import Schemas, column_value, text_value, with_dicts
from magicbyte.schema import decode
from magicbyte.schema.compatibility.avro_schema import parse_avro
from magicbyte.schema.compatibility.check import compare
from magicbyte.schema.decoding import InvalidSchemaError
from magicbyte.schema.registry import Schema

pytestmark = pytest.mark.interop

BUILT = Path(__file__).parents[2] / "target" / "registry"
HISTORIES, VERSIONS, VALUES = 300, 3, 4

Read = tuple[bytes, str]
"""A payload, and the value that Java reads as Avro's JSON, or one of the next two words."""
UNREADABLE = "error"
FAILS = "fails"
"""Java fails, although it has a rule for the pair, or says nothing of the value."""


def by_java(pairs: list[tuple[Any, Any]]) -> list[list[Read]]:
    """For each pair of a writer's and a reader's schema, some values."""
    lines = [
        " ".join(base64.b64encode(json.dumps(schema).encode()).decode() for schema in pair)
        + f" {VALUES} {seed}"
        for seed, pair in enumerate(pairs)
    ]
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{BUILT}/classes:{BUILT}/lib/*", "AvroReads"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    reads: list[Read] = []
    for line in done.stdout.splitlines():
        binary, value = line.split(" ")
        # Java's JSON of a record with nothing in it is empty.
        read = value if value in (UNREADABLE, FAILS) else base64.b64decode(value).decode() or FAILS
        reads.append((base64.b64decode(binary), read))
    assert len(reads) == len(pairs) * VALUES
    return [reads[start : start + VALUES] for start in range(0, len(reads), VALUES)]


def test_histories() -> None:
    pairs = []
    for seed in range(HISTORIES):
        schemas = Schemas(seed, text=bool(seed % 2))
        versions = [schemas.record() if seed % 3 else schemas.any()]
        while len(versions) < VERSIONS:
            versions.append(schemas.newer(versions[-1]))
        pairs += [(version, versions[-1]) for version in versions]
    unread = compatible = read_anyway = 0
    for (writer, reader), reads in zip(pairs, by_java(pairs), strict=True):
        payloads = [b"\0\0\0\0\7" + payload for payload, _ in reads]
        found = decode(payloads, {7: json.dumps(writer)}, reader_schema=json.dumps(reader))
        is_compatible = not compare(
            *(Schema("AVRO", json.dumps(one)) for one in (reader, writer)), "BACKWARD"
        )
        compatible += is_compatible
        rows = zip(found.field("value").to_pylist(), found.field("_error").to_pylist(), reads, strict=True)
        for value, error, (_, text) in rows:
            place = f"{json.dumps(writer)} as {json.dumps(reader)}: {error}"
            # What `schemas check` calls compatible is read.
            assert not is_compatible or error is None or "not UTF-8" in error, place
            if text in (UNREADABLE, FAILS):
                unread += 1
                # An alias or an enum of another namespace.
                read_anyway += error is None and text == UNREADABLE
                continue
            like = column_value(reader, json.loads(text))
            if error is not None and "not UTF-8" in error:
                continue
            assert error is None, place
            assert with_dicts(value, like) == like, place
    assert unread < len(pairs) * VALUES / 3, unread
    assert compatible > len(pairs) / 3, compatible
    assert read_anyway < unread / 5, read_anyway


def test_numbers_in_unions() -> None:
    """Also where all branches of the reader share a column."""
    readers = [
        ["float", "double"],
        ["double", "float"],
        ["null", "float", "double"],
        ["string", "long", "int"],
    ]
    readers += [["null", "long"], ["int", "double"], ["float", "string"], ["null", "double", "long"]]
    writers = ["int", "long", "float", ["int", "long"], ["null", "float", "long"], ["double", "int"]]
    pairs = [
        tuple({"type": "record", "name": "R", "fields": [{"name": "x", "type": of}]} for of in pair)
        for pair in itertools.product(writers, readers)
    ]
    for (writer, reader), reads in zip(pairs, by_java(pairs), strict=True):
        payloads = [b"\0\0\0\0\7" + payload for payload, _ in reads]
        found = decode(payloads, {7: json.dumps(writer)}, reader_schema=json.dumps(reader))
        rows = zip(found.field("value").to_pylist(), found.field("_error").to_pylist(), reads, strict=True)
        for value, error, (_, text) in rows:
            if text in (UNREADABLE, FAILS):
                assert error is not None, (writer, reader)
            else:
                like = column_value(reader, json.loads(text))
                assert with_dicts(value, like) == like, (writer, reader, error)


LINKED = {
    "type": "record",
    "name": "L",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "L"]}],
}
TREE = {
    "type": "record",
    "name": "Tree",
    "aliases": ["L"],
    "fields": [
        {"name": "next", "type": [{"type": "array", "items": "Tree"}, "Tree", "null"]},
        {"name": "value", "type": "double", "aliases": ["v"]},
        {"name": "more", "type": ["null", "Tree"], "default": None},
        {"name": "word", "type": "string", "default": "w"},
    ],
}
WITHOUT = {"type": "record", "name": "L", "fields": [{"name": "v", "type": "long"}]}


@pytest.mark.parametrize("reader", [LINKED, TREE], ids=["itself", "another"])
def test_types_that_contain_themselves(reader: Any) -> None:
    (reads,) = by_java([(LINKED, reader)])
    payloads = [b"\0\0\0\0\7" + payload for payload, _ in reads]
    found = decode(payloads, {7: json.dumps(LINKED)}, reader_schema=json.dumps(reader))
    for value, (_, text) in zip(found.field("value").to_pylist(), reads, strict=True):
        assert json.loads(value) == of_named(reader, json.loads(text))


def of_named(schema: Any, value: Any) -> Any:
    """As `text_value`, for schemas that use names."""
    fields = {field["name"]: field["type"] for field in schema["fields"]}

    def plain(value: Any) -> Any:
        if isinstance(value, dict) and value.keys() == fields.keys():
            return {name: plain(inner) for name, inner in value.items()}
        if isinstance(value, dict):
            ((_, content),) = value.items()
            return plain(content)
        return [plain(item) for item in value] if isinstance(value, list) else value

    return plain(value)


def test_a_type_that_contains_itself_can_be_skipped() -> None:
    (reads,) = by_java([(LINKED, WITHOUT)])
    payloads = [b"\0\0\0\0\7" + payload for payload, _ in reads]
    found = decode(payloads, {7: json.dumps(LINKED)}, reader_schema=json.dumps(WITHOUT))
    values = [json.loads(text) for _, text in reads]
    assert found.field("value").to_pylist() == values


def test_values_as_they_were_written() -> None:
    """As columns, and as text."""
    schemas = [Schemas(seed).any() for seed in range(HISTORIES)]
    for schema, reads in zip(schemas, by_java([(schema, schema) for schema in schemas]), strict=True):
        payloads = [b"\0\0\0\0\7" + payload for payload, _ in reads]
        columns = decode(payloads, {7: json.dumps(schema)})
        texts = decode(payloads, {7: json.dumps(schema)}, as_text=True)
        assert columns.field("_error").null_count == texts.field("_error").null_count == VALUES, schema
        rows = zip(columns.field("value").to_pylist(), texts.field("value").to_pylist(), reads, strict=True)
        for value, text, (_, java) in rows:
            if java == FAILS:
                continue
            expected = json.loads(java)
            like = column_value(schema, expected)
            assert with_dicts(value, like) == like, schema
            assert in_single_precision(json.loads(text)) == in_single_precision(text_value(schema, expected))


def in_single_precision(value: Any) -> Any:
    """The value with its numbers as Avro's floats have them, of which our text and Java's have other digits."""
    match value:
        case float() if abs(value) < 1e38:
            return struct.unpack("f", struct.pack("f", value))[0]
        case list():
            return [in_single_precision(item) for item in value]
        case dict():
            return {key: in_single_precision(item) for key, item in value.items()}
    return value


def record(*fields: tuple[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": of} for n, of in fields], **more}


def field(name: str, of: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": of, **more}


def with_default(of: Any, default: Any) -> tuple[Any, Any]:
    """A writer without a field, and a reader that has it with this default."""
    reader = record(("a", "int"))
    return record(("a", "int")), {**reader, "fields": [*reader["fields"], field("d", of, default=default)]}


def twice(one: Any, other: Any) -> tuple[Any, Any]:
    """A schema that defines a type twice, which reads itself."""
    both = record(("a", one), ("b", other))
    return both, both


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 2}
INNER = record(("x", "int"), name="I")
OLD = record(("x", "int"), name="a.Old")
NEW = record(("x", "int"), name="b.New", aliases=["a.Old"])
PAIRS = [
    # Java makes numbers of the defaults of fields that are text, but not of text in other defaults.
    *(
        with_default("double", text)
        for text in ("1.5", " -2 ", "1e3", ".5", "5.", "7d", "+1", "true", "", "1_0")
    ),
    *(with_default("float", text) for text in ("1.5", "16777217.0000001", "3F")),
    with_default(["double", "null"], "1.5"),
    with_default(["null", "double"], "1.5"),
    with_default(["string", "double"], "1.5"),
    with_default({"type": "array", "items": "double"}, ["1.5"]),
    with_default("int", "5"),
    with_default({**INNER, "fields": [field("x", "double", default="2.5")]}, {}),
    with_default({**INNER, "fields": [field("x", "double", default="2.5")]}, {"x": "1.5"}),
    with_default("bytes", "\u00ff\u0000"),
    with_default(FIXED, "\u00fe"),
    with_default(ENUM, "C"),
    # A type may be defined again as it is.
    twice(ENUM, ENUM),
    twice(ENUM, {**ENUM, "doc": "again", "aliases": ["Z"], "default": "A"}),
    twice(FIXED, FIXED),
    twice(INNER, {**INNER, "doc": "again"}),
    twice(record(("e", ENUM), name="O"), record(("e", ENUM), name="O")),
    twice({"type": "array", "items": INNER}, {"type": "map", "values": INNER}),
    # Aliases in unions.
    (["null", OLD], ["null", record(("x", "int"), ("y", "int"), name="Other"), NEW]),
    ({"type": "map", "values": ["null", OLD, "string"]}, {"type": "map", "values": ["string", NEW, "null"]}),
    (["null", ENUM], ["null", {**ENUM, "name": "G", "aliases": ["E"], "symbols": ["B", "A"]}]),
    (["null", FIXED], ["null", "bytes", {**FIXED, "name": "G", "aliases": ["F"]}]),
    # Logical types of other base types, and decimals that are none.
    *(
        twice({"type": base, "logicalType": logical}, "int")
        for base, logical in [
            ("string", "date"),
            ("double", "timestamp-millis"),
            ("int", "uuid"),
            ("int", "decimal"),
        ]
    ),
    *(
        twice({"type": "bytes", "logicalType": "decimal", **more}, "int")
        for more in [
            {},
            {"precision": 0},
            {"precision": 4, "scale": 5},
            {"precision": "4"},
            {"precision": 2**31},
        ]
    ),
]


@pytest.mark.parametrize(("writer", "reader"), PAIRS, ids=[json.dumps(one[1])[-100:] for one in PAIRS])
def test_pairs(writer: Any, reader: Any) -> None:
    try:
        (reads,) = by_java([(writer, reader)])
    except subprocess.CalledProcessError:
        # Java does not parse the schema: nor is the default read here.
        reads = [(b"\0", UNREADABLE)]
    found = decode(
        [b"\0\0\0\0\7" + payload for payload, _ in reads],
        {7: json.dumps(writer)},
        reader_schema=json.dumps(reader),
    )
    rows = zip(found.field("value").to_pylist(), found.field("_error").to_pylist(), reads, strict=True)
    for value, error, (_, text) in rows:
        if text in (UNREADABLE, FAILS):
            assert error is not None
        else:
            like = column_value(reader, json.loads(text))
            assert (error, with_dicts(value, like)) == (None, like)


@pytest.mark.parametrize("other", [{**ENUM, "symbols": ["A"]}, {**FIXED, "name": "E"}, record(name="E")])
def test_types_that_are_defined_twice_differently(other: Any) -> None:
    both, _ = twice(ENUM, other)
    text = json.dumps(both)
    with pytest.raises(subprocess.CalledProcessError):
        by_java([(both, both)])
    with pytest.raises(InvalidSchemaError, match="twice"):
        decode([], {7: text}, reader_schema=text)
    with pytest.raises(InvalidSchemaError, match="twice"):
        parse_avro(text)
