"""What `schemas check` refuses in a new schema, though registered ones may have it.

Java's verdicts on defaults are in tests/interop/test_avro_compatibility.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from magicbyte.schema import decode
from magicbyte.schema.compatibility.check import check, check_history
from magicbyte.schema.invalid_schema import InvalidSchemaError
from magicbyte.schema.registry import Schema
from test_compatibility import record, registry_of

# --- Avro -----------------------------------------------------------------------------------------

ENUM = {"type": "enum", "name": "E", "symbols": ["A"]}
DEFAULTS: list[tuple[Any, Any, bool]] = [
    # A type, a default that it does not have, and whether a decoder reads it nevertheless.
    ("string", None, False),
    ("boolean", "true", False),
    ("long", "5", False),
    (["null", "int"], "x", False),
    (ENUM, "Z", False),
    (ENUM | {"default": "A"}, "Z", False),
    ("int", 1.5, True),
    ("int", 3_000_000_000, True),
    ("long", 1e10, True),
    ({"type": "array", "items": "int"}, {}, True),
    ({"type": "array", "items": "int"}, ["x"], False),
    ({"type": "map", "values": "int"}, [], True),
    ("double", "many", False),
    ({"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}, {}, False),
    (
        {"type": "record", "name": "I", "fields": [{"name": "x", "type": "I", "default": {}}]},
        {},
        False,
    ),
]


@pytest.mark.parametrize(("type_", "default", "is_read"), DEFAULTS)
def test_invalid_defaults(type_: Any, default: Any, is_read: bool) -> None:
    old, new = record(a="int"), record(a="int", b=(type_, default))
    with pytest.raises(InvalidSchemaError, match=r"^/fields/1: b: the default .* is no value of the type "):
        check(registry_of(old), "s", new)
    # Nobody has compared it with anything.
    with pytest.raises(InvalidSchemaError):
        check(registry_of(), "s", new)
    # A registered one is no error. As the reader it is compatible if decoders read it.
    (verdict,) = check(registry_of(new), "s", old, "FORWARD")
    assert (verdict.error, verdict.compatible) == (None, is_read)
    rows = decode([b"\0\0\0\0\7\2"], {7: old.text}, "avro", new.text)
    assert (rows.field("_error").null_count == 1) == is_read
    history = list(check_history(registry_of(old, new), "s"))
    assert [one.compatible for _, verdicts in history for one in verdicts] == [is_read]


def test_an_invalid_default_is_named_where_it_is() -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int", "default": "5"}]}
    for type_, place in (
        (inner, "/fields/0/type"),
        (["null", inner], "/fields/0/type/1"),
        ({"type": "array", "items": inner}, "/fields/0/type/items"),
        ({"type": "map", "values": ["null", inner]}, "/fields/0/type/values/1"),
    ):
        with pytest.raises(InvalidSchemaError) as raised:
            check(registry_of(), "s", record(a=type_))
        assert str(raised.value) == f'{place}/fields/0: x: the default "5" is no value of the type int'


# --- JSON Schema ----------------------------------------------------------------------------------

DRAFTS = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}


@pytest.mark.parametrize("draft", [None, *DRAFTS])
@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "integer", "minimum": "x"}, '/minimum: "x" is not of type "number"'),
        ({"type": "object", "required": "a"}, '/required: "a" is not of type "array"'),
        (
            {"properties": {"a": {"minLength": -1}}},
            "/properties/a/minLength: -1 is less than the minimum of 0",
        ),
        ({"properties": {"a": {"items": {"multipleOf": 0}}}}, "/properties/a/items"),
        ({"anyOf": [{"enum": 5}]}, '/anyOf/0/enum: 5 is not of type "array"'),
        ({"allOf": []}, "/allOf: "),
        ({"type": "string", "pattern": "("}, '/pattern: "(" is no regular expression'),
        (
            {"properties": {"pattern": {"pattern": "[b-a]"}}},
            '/properties/pattern/pattern: "[b-a]" is no regular',
        ),
        ({"patternProperties": {"(a": {}}}, '/patternProperties: "(a" is no regular expression'),
    ],
)
def test_new_schemas_that_are_invalid(schema: dict[str, Any], says: str, draft: str | None) -> None:
    if draft is not None:
        schema = {"$schema": DRAFTS[draft], **schema}
    new = Schema("JSON", json.dumps(schema))
    for old in (registry_of(), registry_of(Schema("JSON", "{}"))):
        with pytest.raises(InvalidSchemaError) as raised:
            check(old, "s", new)
        assert says in str(raised.value)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"exclusiveMinimum": True, "minimum": 1},
        {"exclusiveMinimum": 1},
        {"pattern": "(?!a)b"},
        {"pattern": "(?i)a"},
        {"pattern": "\\p{L}+"},
        {"properties": {"pattern": {"type": "string"}, "minimum": {}}},
        {"enum": [{"pattern": "(", "minimum": "x"}], "default": {"required": 5}},
        {"$id": "not an address", "title": "t", "javaType": "com.example.T"},
        {"$schema": "https://example.com/own", "minimum": "x"},
    ],
)
def test_new_schemas_that_are_valid(schema: Any) -> None:
    assert check(registry_of(), "s", Schema("JSON", json.dumps(schema))) == []


@pytest.mark.parametrize(
    ("name", "valid", "invalid"),
    [
        ("orders-value.avsc", record(a=("int", 5)).text, record(a=("int", "5")).text),
        ("orders-value.json", '{"minimum": 5}', '{"minimum": "5"}'),
    ],
)
def test_the_command_refuses_them(tmp_path: Path, cli: Cli, name: str, valid: str, invalid: str) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / name).write_text(valid)
    new = tmp_path / f"new.{name.rpartition('.')[2]}"
    new.write_text(valid)
    assert "compatible" in cli("schemas", "check", "orders-value", new, tmp_path / "schemas")
    new.write_text(invalid)
    cli("schemas", "check", "orders-value", new, tmp_path / "schemas", code=3)
    assert '"5" is no' in cli.error
