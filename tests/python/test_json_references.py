"""Where references of JSON Schemas lead, in columns and in validation: as for Python's jsonschema."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from jsonschema import validators
from magicbyte.schema import decode
from magicbyte.schema.compatibility.json_schema import incompatibilities
from magicbyte.schema.compatibility.json_schema_model import JsonSchema, parse_json_schema
from magicbyte.schema.decoding import ColumnDecoder, InvalidSchemaError
from magicbyte.schema.registry import Reference, Schema, StoredRegistry, SubjectVersion
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

DRAFTS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019": "https://json-schema.org/draft/2019-09/schema",
    "2020": "https://json-schema.org/draft/2020-12/schema",
}
OUTER_ANCHOR = "a dynamic anchor that the outer schema has, too"
TYPES = ("integer", "string", "boolean", "array")
SAMPLES = [(5, pa.int64()), ("a", pa.string()), (True, pa.bool_()), ([], pa.list_(pa.string()))]
INT, TEXT, BOOL, LIST = ({"type": name} for name in TYPES)
BASE = "http://x.test/a/order.json"
Documents = dict[str, dict[str, Any]]


def of(reference: str, **around: Any) -> dict[str, Any]:
    """A schema whose property `x` is a reference; `id_` and `defs` are named by the draft."""
    return {"type": "object", "properties": {"x": {"$ref": reference}}, **around}


def by_draft(draft: str, value: Any) -> Any:
    """The same with the draft's names for `id_`, `anchor_` and `defs_`."""
    if isinstance(value, list):
        return [by_draft(draft, one) for one in value]
    if not isinstance(value, dict):
        return value
    renamed: dict[str, Any] = {}
    for key, one in value.items():
        name = {"id_": "id" if draft == "4" else "$id"}.get(key, key)
        if key == "defs_":
            name = "definitions" if draft in "467" else "$defs"
        if key == "anchor_":
            name, one = (
                ("$anchor", one) if draft.startswith("20") else ("id" if draft == "4" else "$id", f"#{one}")
            )
        renamed[name] = by_draft(draft, one)
    return renamed


# In every draft: the schema and what it refers to, by name.
COMMON: list[tuple[str, dict[str, Any], Documents]] = [
    ("a pointer", of("#/definitions/a", definitions={"a": INT}), {}),
    (
        "a pointer into properties",
        of("#/properties/y", properties={"x": {"$ref": "#/properties/y"}, "y": TEXT}),
        {},
    ),
    ("a pointer into a list", of("#/definitions/a/anyOf/1", definitions={"a": {"anyOf": [{}, BOOL]}}), {}),
    ("a pointer to nowhere in particular", of("#/x-types/a/b", **{"x-types": {"a": {"b": LIST}}}), {}),
    ("a name with a slash", of("#/definitions/a~1b", definitions={"a/b": INT}), {}),
    ("a name with a tilde", of("#/definitions/a~0b", definitions={"a~b": INT}), {}),
    ("a name with a percent sign", of("#/definitions/a%25b", definitions={"a%b": INT}), {}),
    ("a name with a space", of("#/definitions/a%20b", definitions={"a b": TEXT}), {}),
    ("a name in another script", of("#/definitions/gr%C3%B6%C3%9Fe", definitions={"größe": BOOL}), {}),
    (
        "a name of a generator",
        of("#/definitions/Map%3Cstring%2Cint%3E", definitions={"Map<string,int>": INT}),
        {},
    ),
    ("a name that is empty", of("#/definitions/", definitions={"": TEXT}), {}),
    ("a name that is a number", of("#/definitions/0", definitions={"0": TEXT}), {}),
    (
        "references to references",
        of("#/definitions/a", definitions={"a": {"$ref": "#/definitions/b"}, "b": INT}),
        {},
    ),
    (
        "the schema's own id, with a pointer",
        of(f"{BASE}#/definitions/a", id_=BASE, definitions={"a": INT}),
        {},
    ),
    ("the schema's own id, relative", of("order.json#/definitions/a", id_=BASE, definitions={"a": INT}), {}),
    ("an id that ends with #", of("#/definitions/a", id_=f"{BASE}#", definitions={"a": TEXT}), {}),
    ("an id inside", of("inner.json", id_=BASE, definitions={"a": {"id_": "inner.json", **BOOL}}), {}),
    (
        "an id inside, in full",
        of("http://y.test/i", id_=BASE, definitions={"a": {"id_": "http://y.test/i", **INT}}),
        {},
    ),
    ("a path from the root", of("/b/i", id_=BASE, definitions={"a": {"id_": "/b/i", **INT}}), {}),
    ("a path upwards", of("../b/i", id_=BASE, definitions={"a": {"id_": "http://x.test/b/i", **TEXT}}), {}),
    ("a URN", of("urn:example:i", id_=BASE, definitions={"a": {"id_": "urn:example:i", **TEXT}}), {}),
    (
        "a pointer from an id inside starts there",
        of(
            "inner.json",
            id_=BASE,
            definitions={
                "a": TEXT,
                "b": {"id_": "inner.json", "allOf": [{"$ref": "#/definitions/a"}], "definitions": {"a": INT}},
            },
        ),
        {},
    ),
    (
        "ids inside ids change what a reference is relative to",
        of(
            "#/definitions/b",
            id_=BASE,
            definitions={
                "b": {
                    "id_": "sub/",
                    "allOf": [{"$ref": "deep.json"}],
                    "definitions": {"c": {"id_": "deep.json", **LIST}},
                },
                "d": {"id_": "deep.json", **INT},
            },
        ),
        {},
    ),
    (
        "a pointer across an id",
        of(
            "#/definitions/a/definitions/b",
            id_=BASE,
            definitions={
                "a": {
                    "id_": "in/",
                    "definitions": {"b": {"allOf": [{"$ref": "t.json"}]}, "c": {"id_": "t.json", **BOOL}},
                }
            },
        ),
        {},
    ),
    ("an anchor", of("#here", definitions={"a": {"anchor_": "here", **INT}}), {}),
    (
        "an anchor after an id",
        of(f"{BASE}#here", id_=BASE, definitions={"a": {"anchor_": "here", **TEXT}}),
        {},
    ),
    ("another's name", of("other.json"), {"other.json": INT}),
    ("another's name, and nothing after #", of("other.json#"), {"other.json": TEXT}),
    (
        "another's name, with a pointer",
        of("other.json#/definitions/a"),
        {"other.json": {"definitions": {"a": BOOL}}},
    ),
    (
        "another's name, with an anchor",
        of("other.json#a"),
        {"other.json": {"definitions": {"b": {"anchor_": "a", **INT}}}},
    ),
    ("another's name, relative to an id", of("other.json", id_=BASE), {"http://x.test/a/other.json": TEXT}),
    ("another's name, in full", of("http://y.test/o", id_=BASE), {"http://y.test/o": LIST}),
    ("another's id", of("http://y.test/o"), {"http://y.test/o": {"id_": "http://y.test/o", **INT}}),
    (
        "another's id, with a pointer",
        of("http://y.test/o#/definitions/a"),
        {"http://y.test/o": {"id_": "http://y.test/o", "definitions": {"a": TEXT}}},
    ),
    (
        "what another refers to, relative to its id",
        of("http://y.test/o"),
        {"http://y.test/o": {"id_": "http://y.test/o", "allOf": [{"$ref": "p"}]}, "http://y.test/p": INT},
    ),
    (
        "a name beside what it names",
        of("other.json"),
        {
            "other.json": {"allOf": [{"$ref": "third.json#/definitions/a"}]},
            "third.json": {"definitions": {"a": TEXT}},
        },
    ),
    (
        "two that refer to each other",
        of("other.json"),
        {
            "other.json": {"properties": {"y": {"$ref": "third.json"}}, **INT},
            "third.json": {"properties": {"z": {"$ref": "other.json"}}},
        },
    ),
]
SOME: list[tuple[str, str, dict[str, Any], Documents]] = [
    ("2019", "an anchor of a root", of("other.json#a"), {"other.json": {"$anchor": "a", **INT}}),
    ("2020", "an anchor of a root", of("other.json#a"), {"other.json": {"$anchor": "a", **INT}}),
    ("2019", "$defs", of("#/$defs/a", **{"$defs": {"a": INT}}), {}),
    ("2020", "$defs", of("#/$defs/a", **{"$defs": {"a": INT}}), {}),
    (
        "2019",
        "a schema beside a reference",
        {"properties": {"x": {"$ref": "#/$defs/a", **TEXT}}, "$defs": {"a": {}}},
        {},
    ),
    (
        "2020",
        "a schema beside a reference",
        {"properties": {"x": {"$ref": "#/$defs/a", **TEXT}}, "$defs": {"a": {}}},
        {},
    ),
    (
        "7",
        "an id beside a reference does not count",
        {
            "$id": BASE,
            "properties": {"x": {"$id": "in/", "$ref": "t"}},
            "definitions": {"a": {"$id": "t", **INT}, "b": {"$id": "in/t", **TEXT}},
        },
        {},
    ),
    (
        "2020",
        "an id beside a reference counts",
        {
            "$id": BASE,
            "properties": {"x": {"$id": "in/", "$ref": "t"}},
            "$defs": {"a": {"$id": "t", **INT}, "b": {"$id": "in/t", **TEXT}},
        },
        {},
    ),
    (
        "2020",
        "a dynamic reference to an anchor",
        {"properties": {"x": {"$dynamicRef": "#a"}}, "$defs": {"b": {"$anchor": "a", **BOOL}}},
        {},
    ),
    (
        "2020",
        "a dynamic reference to a pointer",
        {"properties": {"x": {"$dynamicRef": "#/$defs/b"}}, "$defs": {"b": LIST}},
        {},
    ),
    (
        "2020",
        "a dynamic reference to a dynamic anchor",
        {"properties": {"x": {"$dynamicRef": "#a"}}, "$defs": {"b": {"$dynamicAnchor": "a", **INT}}},
        {},
    ),
    (
        "2020",
        "a reference to a dynamic anchor",
        {"properties": {"x": {"$ref": "#a"}}, "$defs": {"b": {"$dynamicAnchor": "a", **TEXT}}},
        {},
    ),
    (
        "2020",
        OUTER_ANCHOR,
        {
            "$id": BASE,
            "properties": {"x": {"$ref": "list"}},
            "$defs": {
                "own": {"$dynamicAnchor": "item", **INT},
                "l": {
                    "$id": "list",
                    "allOf": [{"$dynamicRef": "#item"}],
                    "$defs": {"d": {"$dynamicAnchor": "item", **TEXT}},
                },
            },
        },
        {},
    ),
    (
        "2019",
        "a recursive reference",
        {
            "properties": {"x": {"$ref": "in"}},
            "$id": BASE,
            "$defs": {"a": {"$id": "in", **TEXT, "not": {"type": "array", "items": {"$recursiveRef": "#"}}}},
        },
        {},
    ),
]
TABLE = [
    *(
        (draft, name, by_draft(draft, schema), by_draft(draft, others))
        for draft in DRAFTS
        for name, schema, others in COMMON
    ),
    *SOME,
]


def with_draft(draft: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": DRAFTS[draft], **schema}


def accepted(schema: dict[str, Any], others: Documents) -> list[bool]:
    """Whether Python's jsonschema lets each sample be the property `x`."""
    resources = [(name, Resource.from_contents(other, DRAFT202012)) for name, other in others.items()]
    registry: Registry[Any] = Registry().with_resources(resources).crawl()
    validator = validators.validator_for(schema)(schema, registry=registry)
    return [validator.is_valid({"x": sample}) for sample, _ in SAMPLES]


def registry_of(schema: dict[str, Any], others: Documents) -> tuple[StoredRegistry, Schema]:
    registry = StoredRegistry()
    names = tuple(Reference(name, f"subject-{number}", 1) for number, name in enumerate(others))
    for number, (used, other) in enumerate(zip(names, others.values(), strict=True)):
        text = json.dumps(other)
        refers = tuple(one for one in names if one is not used and one.name in text) if number == 0 else ()
        registry.put(SubjectVersion(used.subject, 1, 100 + number, Schema("JSON", text, refers)))
    root = Schema("JSON", json.dumps(schema), names)
    registry.put(SubjectVersion("orders-value", 1, 7, root))
    return registry, root


@pytest.mark.parametrize(
    ("draft", "schema", "others"),
    [(draft, schema, others) for draft, _, schema, others in TABLE],
    ids=[f"{draft}: {name}" for draft, name, _, _ in TABLE],
)
def test_references_lead_where_pythons_jsonschema_says(
    draft: str, schema: dict[str, Any], others: Documents
) -> None:
    schema = with_draft(draft, schema)
    others = {name: with_draft(draft, other) for name, other in others.items()}
    allowed = accepted(schema, others)
    assert sum(allowed) == 1, "the target has one type"
    registry, reader = registry_of(schema, others)
    (like,) = (type_ for (_, type_), one in zip(SAMPLES, allowed, strict=True) if one)
    column = ColumnDecoder(registry, reader, "json").schema.field("value").type
    assert column.field("x").type == like

    payloads = [b"\0\0\0\0\7" + json.dumps({"x": sample}).encode() for sample, _ in SAMPLES]
    errors = decode(payloads, registry, "json", as_text=True, validate=True).field("_error").to_pylist()
    assert [error is None for error in errors] == allowed


# Where it leads depends on the schemas around the value, which compatibility does not follow.
STATIC = [one for one in TABLE if one[1] != OUTER_ANCHOR]


@pytest.mark.parametrize(
    ("draft", "schema", "others"),
    [(draft, schema, others) for draft, _, schema, others in STATIC],
    ids=[f"{draft}: {name}" for draft, name, _, _ in STATIC],
)
def test_compatibility_follows_the_same_references(
    draft: str, schema: dict[str, Any], others: Documents
) -> None:
    schema = with_draft(draft, schema)
    others = {name: with_draft(draft, other) for name, other in others.items()}
    target = next(name for name, one in zip(TYPES, accepted(schema, others), strict=True) if one)

    def parsed(of: str) -> JsonSchema:
        """With another type of the schema that the reference leads to."""
        text, *used = (
            json.dumps(one).replace(f'"type": "{target}"', f'"type": "{of}"')
            for one in (schema, *others.values())
        )
        return parse_json_schema(text, list(zip(others, used, strict=True)))

    assert incompatibilities(parsed(target), parsed(target)) == []
    found = incompatibilities(parsed("null"), parsed(target))
    assert any(one.path.startswith("#/properties/x") for one in found)


LENIENT: list[tuple[str, dict[str, Any], Documents]] = [
    ("brackets in a pointer", of("#/definitions/List<a b>", definitions={"List<a b>": INT}), {}),
    (
        "brackets in an id",
        of("#/definitions/a", **{"$id": "http://x.test/{version}/a b", "definitions": {"a": INT}}),
        {},
    ),
    ("a space in a name", of("my other"), {"my other": INT}),
    ("a name that is no address", of("1:a"), {"1:a": INT}),
    ("a name under another id", of("other", **{"$id": BASE}), {"other": INT}),
    ("a name under a URN", of("other", **{"$id": "urn:example:a"}), {"other": INT}),
    (
        "a name in a document with an id",
        of("other"),
        {"other": {"$id": "http://y.test/b/", "$ref": "third"}, "third": INT},
    ),
    (
        "a draft of one's own",
        {"$schema": "http://y.test/draft", **of("#/$defs/a", **{"$defs": {"a": INT}})},
        {},
    ),
    (
        "no draft, and an id of draft 4",
        of("other.json#/a", id=BASE),
        {"x": {"id": "http://x.test/a/other.json", "a": INT}},
    ),
    (
        "an id inside another",
        of("http://y.test/in.json"),
        {"o": {"$id": "http://y.test/o", "definitions": {"a": {"$id": "in.json", **INT}}}},
    ),
]


@pytest.mark.parametrize(("schema", "others"), [one[1:] for one in LENIENT], ids=[one[0] for one in LENIENT])
def test_references_that_only_columns_follow(schema: dict[str, Any], others: Documents) -> None:
    column = ColumnDecoder(*registry_of(schema, others), "json").schema.field("value").type
    assert column.field("x").type == pa.int64()


RECURSIVE: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
    lambda fields: {"properties": {**fields, "next": {"$ref": "#"}}},
    lambda fields: {"$id": BASE, "properties": {**fields, "next": {"$ref": "order.json"}}},
    lambda fields: {
        "$schema": DRAFTS["2019"],
        "$recursiveAnchor": True,
        "properties": {**fields, "next": {"$recursiveRef": "#"}},
    },
    lambda fields: {"$dynamicAnchor": "node", "properties": {**fields, "next": {"$dynamicRef": "#node"}}},
    lambda fields: {
        "$ref": "#/$defs/n",
        "$defs": {"n": {"properties": {**fields, "next": {"$ref": "#/$defs/n"}}}},
    },
]


@pytest.mark.parametrize("schema", RECURSIVE)
def test_what_contains_itself_is_text_where_it_does(
    schema: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    reader = Schema("JSON", json.dumps(schema({"v": INT})))
    column = ColumnDecoder(StoredRegistry(), reader, "json").schema.field("value").type
    while pa.types.is_struct(column):
        assert column.field("v").type == pa.int64()
        column = column.field("next").type
    assert column == pa.string()


@pytest.mark.parametrize(
    "reference",
    [
        "#/lost",
        "#lost",
        "lost.json",
        "lost.json#/a",
        "#/definitions/1/2",
        "http://[",
        "#/%ff",
        "file:///etc/passwd",
    ],
)
def test_references_to_nowhere_matter_where_a_value_may_be(reference: str) -> None:
    schema = of(reference, definitions=[{"$ref": "never.json"}])
    with pytest.raises(InvalidSchemaError, match="the reader's schema: "):
        ColumnDecoder(StoredRegistry(), Schema("JSON", json.dumps(schema)), "json")
    unused = {"properties": {"x": INT}, "definitions": {"a": {"$ref": reference}}}
    column = ColumnDecoder(StoredRegistry(), Schema("JSON", json.dumps(unused)), "json").schema.field("value")
    assert column.type.field("x").type == pa.int64()


@pytest.mark.parametrize("draft", ["4", "6", "7"])
def test_a_document_without_a_draft_is_of_the_schemas(draft: str) -> None:
    """An `$id` that is a fragment names a place in these drafts alone."""
    keyword = "id" if draft == "4" else "$id"
    other = {"definitions": {"a": {keyword: "#foo", "type": "integer"}, "b": {"$ref": "#foo"}}}
    schema = {"$schema": DRAFTS[draft], "properties": {"x": {"$ref": "other.json#/definitions/b"}}}
    registry, reader = registry_of(schema, {"other.json": other})
    column = ColumnDecoder(registry, reader, "json").schema.field("value").type
    assert column.field("x").type == pa.int64()
