"""JSON values that are validated by their schemas: verdicts, messages, bounds, and all that asks for it."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import Schema as ConfluentSchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from conftest import Cli
from magicbyte import RecordsBuilder, commands
from magicbyte.enums import SchemaFormat
from magicbyte.errors import RefusedError
from magicbyte.options.typed import TypedColumns
from magicbyte.schema import decode
from magicbyte.schema.decoding import ColumnDecoder, InvalidSchemaError
from magicbyte.schema.registry import Reference, Schema, StoredRegistry, SubjectVersion
from magicbyte.spark.given import OptionError
from magicbyte.spark.options import parse_table

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_6 = "http://json-schema.org/draft-06/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
TREE = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["v"]}

# A schema, and values of which some are valid and some are not; the draft is in the schema, or the newest.
TABLE: list[tuple[Any, list[Any]]] = [
    (True, [1, None]),
    (False, [1, None]),
    ({}, [1, "a", {}]),
    ({"type": "integer"}, [1, 1.0, 1.5, "1", True, None, -(2**63), 2**64]),
    ({"type": ["string", "null"]}, ["a", None, 1]),
    *[
        ({"type": name}, [None, True, 1, 1.5, "a", [], {}])
        for name in ("null", "boolean", "number", "string", "array", "object")
    ],
    ({"enum": [1, "a", None, {"b": [1]}]}, [1, 1.0, "a", None, {"b": [1]}, {"b": [2]}, False]),
    ({"const": {"a": 1}}, [{"a": 1}, {"a": 1.0}, {"a": 2}, {}]),
    ({"multipleOf": 3}, [0, 3, 4, -6, 1.5, "a"]),
    ({"multipleOf": 0.5}, [0.5, 1, 1.25]),
    ({"minimum": 2}, [1, 2, 3, "a"]),
    ({"maximum": 2}, [1, 2, 3, "a"]),
    ({"exclusiveMinimum": 2}, [1, 2, 3]),
    ({"exclusiveMaximum": 2}, [1, 2, 3]),
    ({"$schema": DRAFT_4, "minimum": 2, "exclusiveMinimum": True}, [1, 2, 3]),
    ({"$schema": DRAFT_4, "maximum": 2, "exclusiveMaximum": True}, [1, 2, 3]),
    ({"$schema": DRAFT_4, "type": "integer"}, [1, 1.5]),
    ({"minLength": 2}, ["", "ab", "ä", "äö", "\U0001f600", 1]),
    ({"maxLength": 1}, ["", "ab", "ä", "\U0001f600", 1]),
    ({"pattern": "^a+$"}, ["a", "aa", "ab", "", 1]),
    ({"pattern": "b"}, ["abc", "ac"]),
    ({"pattern": r"^\d{2}-\w+\s*$"}, ["12-ab ", "12-", "1-a", "12-a!"]),
    ({"pattern": r"^[A-ZÄ]$"}, ["A", "Ä", "a"]),
    ({"minItems": 1}, [[], [1], {}]),
    ({"maxItems": 1}, [[], [1], [1, 2]]),
    ({"uniqueItems": True}, [[1, 2], [1, 1], [1, 1.0], [{"a": 1}, {"a": 1}], [True, 1], [[1], [1]]]),
    ({"items": {"type": "integer"}}, [[], [1], ["a"], [1, "a"], "a"]),
    ({"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, [[], [1], [1, "a"], [1, 2], ["a"]]),
    ({"prefixItems": [True], "items": False}, [[1], [1, 2]]),
    ({"$schema": DRAFT_7, "items": [{"type": "integer"}]}, [[1, "a"], ["a"]]),
    (
        {"$schema": DRAFT_7, "items": [{"type": "integer"}], "additionalItems": {"type": "string"}},
        [[1, "a"], [1, 2], []],
    ),
    ({"contains": {"type": "integer"}}, [[1], ["a"], [], ["a", 1]]),
    ({"contains": {"type": "integer"}, "minContains": 2}, [[1], [1, 2], []]),
    ({"contains": {"type": "integer"}, "maxContains": 1}, [[1], [1, 2], []]),
    ({"contains": {"type": "integer"}, "minContains": 0}, [[], ["a"]]),
    ({"$schema": DRAFT_6, "contains": {"const": 1}}, [[1], [2]]),
    ({"required": ["a", "b"]}, [{"a": 1, "b": 2}, {"a": 1}, {}, 1]),
    ({"properties": {"a": {"type": "integer"}, "b": False}}, [{}, {"a": 1}, {"a": "x"}, {"b": 1}, []]),
    ({"patternProperties": {"^x": {"type": "integer"}}}, [{"x1": 1}, {"x1": "a"}, {"y": "a"}]),
    ({"properties": {"a": {}}, "additionalProperties": False}, [{"a": 1}, {"b": 1}, {}]),
    (
        {"properties": {"a": {}}, "patternProperties": {"^x": {}},
         "additionalProperties": {"type": "string"}},
        [{"a": 1, "x": 1, "o": "s"}, {"o": 1}],
    ),
    ({"minProperties": 1}, [{}, {"a": 1}, 1]),
    ({"maxProperties": 1}, [{}, {"a": 1, "b": 1}]),
    ({"propertyNames": {"maxLength": 2}}, [{"ab": 1}, {"abc": 1}, {}]),
    ({"dependentRequired": {"a": ["b"]}}, [{"a": 1}, {"a": 1, "b": 1}, {"b": 1}]),
    ({"dependentSchemas": {"a": {"required": ["b"]}}}, [{"a": 1}, {"a": 1, "b": 1}, {}]),
    (
        {"$schema": DRAFT_7, "dependencies": {"a": ["b"], "c": {"maxProperties": 1}}},
        [{"a": 1}, {"c": 1, "d": 1}],
    ),
    ({"allOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2, "a"]),
    ({"anyOf": [{"type": "string"}, {"minimum": 2}]}, [1, 2, "a", None]),
    ({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}, [2, 3, 6, 5]),
    ({"not": {"type": "string"}}, [1, "a"]),
    ({"if": {"type": "integer"}, "then": {"minimum": 2}, "else": {"type": "string"}}, [1, 2, "a", None]),
    ({"$schema": DRAFT_7, "if": {"const": 1}, "then": False}, [1, 2]),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}, [1, "a"]),
    ({"$ref": "#/$defs/a", "minimum": 3, "$defs": {"a": {"type": "integer"}}}, [1, 3, "a"]),
    # Before 2019-09, what is beside a `$ref` does not count.
    (
        {"$schema": DRAFT_7, "properties": {"a": {"$ref": "#/definitions/a", "minimum": 3}},
         "definitions": {"a": {"type": "integer"}}},
        [{"a": 1}, {"a": "x"}],
    ),
    (
        {"$schema": DRAFT_4, "id": "http://x.test/a.json",
         "properties": {"a": {"$ref": "a.json#/definitions/b"}},
         "definitions": {"b": {"type": "integer"}}},
        [{"a": 1}, {"a": "x"}],
    ),
    ({"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "integer"}}}, [1, "a"]),
    (
        {"$id": "http://x.test/a", "$ref": "b", "$defs": {"a": {"$id": "b", "type": "integer"}}},
        [1, "a"],
    ),
    (
        {"$id": "http://x.test/tree", "$dynamicAnchor": "node", "type": "object",
         "properties": {"next": {"$dynamicRef": "#node"}}},
        [{}, {"next": {}}, {"next": 1}],
    ),
    (
        {"$schema": DRAFT_2019, "$recursiveAnchor": True, "type": "object",
         "properties": {"next": {"$recursiveRef": "#"}}},
        [{}, {"next": {}}, {"next": 1}],
    ),
    (TREE, [{"v": 1}, {"v": 1, "next": {"v": 2}}, {"v": 1, "next": {}}]),
    (
        {"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}], "unevaluatedProperties": False},
        [{"a": 1, "b": 1}, {"c": 1}],
    ),
    ({"prefixItems": [{}], "unevaluatedItems": False}, [[1], [1, 2]]),
    ({"$schema": DRAFT_2019, "items": [{}], "unevaluatedItems": False}, [[1], [1, 2]]),
    # Annotations.
    ({"format": "ipv4"}, ["x"]),
    ({"$schema": DRAFT_4, "format": "date-time"}, ["x"]),
    ({"$schema": DRAFT_7, "contentEncoding": "base64", "contentMediaType": "application/json"}, ["{", "*"]),
    ({"default": 1, "title": "t", "examples": ["x"], "deprecated": True, "unknown": {}}, ["x"]),
    (
        {"$schema": DRAFT_2020,
         "properties": {"const": {"type": "integer"}, "enum": {"anyOf": [{"minimum": 2}]}}},
        [{"const": 1, "enum": 2}, {"const": "a"}, {"enum": 1}],
    ),
    ({"enum": [{"anyOf": [1]}]}, [{"anyOf": [1]}, {"anyOf": [2]}]),
]  # fmt: skip


def framed(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + struct.pack(">I", schema_id) + payload


def verdicts(schema: Any, values: list[Any]) -> list[str | None]:
    """What is wrong with each value, by ours; the column is text, so that no type of its own decides."""
    payloads = [framed(7, json.dumps(value).encode()) for value in values]
    result = decode(payloads, {7: json.dumps(schema)}, "json", as_text=True, validate=True)
    assert [row is None for row in result.field("value").to_pylist()] == [
        error is not None or value is None
        for error, value in zip(result.field("_error").to_pylist(), values, strict=True)
    ]
    errors: list[str | None] = result.field("_error").to_pylist()
    return errors


@pytest.mark.parametrize(("schema", "values"), TABLE, ids=[json.dumps(one[0])[:50] for one in TABLE])
def test_verdicts_are_those_of_pythons_jsonschema(schema: Any, values: list[Any]) -> None:
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    expected = [validator(schema).is_valid(value) for value in values]
    assert [error is None for error in verdicts(schema, values)] == expected


def test_the_table_has_every_keyword() -> None:
    keywords = set(jsonschema.Draft202012Validator.VALIDATORS)
    for draft in ("Draft4", "Draft6", "Draft7", "Draft201909"):
        keywords |= set(getattr(jsonschema, f"{draft}Validator").VALIDATORS)

    def named(schema: Any) -> set[str]:
        if isinstance(schema, list):
            return set().union(*map(named, schema))
        return set(schema).union(*map(named, schema.values())) if isinstance(schema, dict) else set()

    assert keywords <= named([schema for schema, _ in TABLE])


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        (
            {"properties": {"lines": {"items": {"properties": {"price": {"minimum": 0}}}}}},
            {"lines": [{"price": 1}, {"price": -1}]},
            "/lines/1/price: -1 is less than the minimum of 0 "
            "(rule /properties/lines/items/properties/price/minimum)",
        ),
        ({"required": ["id"]}, {}, '"id" is a required property (rule /required)'),
        ({"type": "integer"}, "x", '"x" is not of type "integer" (rule /type)'),
        (
            {"properties": {"a/b": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"enum": [1, 2]}}},
            {"a/b": 3},
            "/a~1b: 3 is not one of 1 or 2 (rule /$defs/x/enum)",
        ),
        (
            {"properties": {"a": {}}, "additionalProperties": False},
            {"b": 1},
            "Additional properties are not allowed ('b' was unexpected) (rule /additionalProperties)",
        ),
        (
            {"anyOf": [{"type": "string"}, {"minimum": 5}]},
            1,
            "1 is not valid under any of the schemas listed in the 'anyOf' keyword (rule /anyOf)",
        ),
    ],
)  # fmt: skip
def test_errors_name_place_rule_and_expectation(schema: Any, value: Any, says: str) -> None:
    assert verdicts(schema, [value]) == [says]


def test_messages_are_short_whatever_the_value() -> None:
    schema = {"properties": {"a" * 10_000: {"enum": ["b" * 100_000]}}, "additionalProperties": False}
    for value in ({"a" * 10_000: "c" * 100_000}, {"d" * 100_000: 1}):
        (error,) = verdicts(schema, [value])
        assert error is not None
        assert len(error) < 1_500


def multiplied(keyword: str, last: Any) -> Any:
    """Each of forty schemas is twice the next one: 2^40 looks at a value."""
    definitions: dict[str, Any] = {
        f"d{number}": {keyword: [{"$ref": f"#d{number + 1}"}] * 2, "$anchor": f"d{number}"}
        for number in range(40)
    }
    return {"$ref": "#d0", "$defs": {**definitions, "d40": {"$anchor": "d40", "allOf": [last]}}}


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


CHAIN = {f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}]} for number in range(3000)}
BRANCHES = [{"properties": {"a": {"$ref": "#"}}, "type": "object"}] * 2
BOMBS: list[tuple[Any, Any, str]] = [
    (multiplied("allOf", {"type": "integer"}), 1, "steps"),
    (multiplied("anyOf", {"type": "string"}), 1, "steps"),
    (multiplied("oneOf", {"type": "string"}), 1, "steps"),
    (multiplied("anyOf", False), 1, "steps"),
    (multiplied("allOf", True), 1, "steps"),
    (multiplied("allOf", {}), 1, "steps"),
    ({"propertyNames": multiplied("allOf", {"maxLength": 3})}, {"a": 1}, "steps"),
    # Each level of the value doubles the errors of its alternatives.
    ({"anyOf": BRANCHES}, nested(100), "too many alternatives"),
    ({"oneOf": BRANCHES}, nested(100), ""),
    ({"properties": {"a": {"allOf": [{"$ref": "#"}] * 2}}, "type": "object"}, nested(100), "/type"),
    # Deep: chains of references at every level of a deep value.
    (
        {"$ref": "#/$defs/d0", "$defs": {**CHAIN, "d3000": {"properties": {"a": {"$ref": "#/$defs/d0"}}}}},
        nested(120),
        "nests too deep",
    ),
    ({"items": {"$ref": "#"}}, json.loads("[" * 130 + "]" * 130), "recursion limit"),
    ({"pattern": "^(a+)+$"}, "a" * 100_000 + "b", "/pattern"),
    ({"pattern": "([01]*)*1[01]{2000}x"}, "01" * 50_000, "/pattern"),
    ({"patternProperties": {"^(a|a)*$": False}}, {"a" * 100_000: 1}, "False schema"),
]


@pytest.mark.parametrize(("schema", "value", "says"), BOMBS)
def test_bombs_are_bounded(schema: Any, value: Any, says: str) -> None:
    start = time.process_time()
    good = verdicts({"type": "integer"}, [1])
    (error,) = verdicts(schema, [value])
    assert good == [None]
    assert error is not None
    assert says in error
    assert time.process_time() - start < 20


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"pattern": "^(?!x)a"}, "lookaround"),
        ({"pattern": r"(a)\1"}, "backreferences"),
        ({"pattern": "((a{9}){999}){999}"}, "/pattern"),
        ({"type": "text"}, "/type: "),
        ({"$ref": "http://127.0.0.1:1/x.json"}, "no reference of the schema has this name"),
        ({"$ref": "file:///etc/passwd"}, "no reference of the schema has this name"),
        ({"$ref": "#/$defs/lost"}, "lost"),
        ({"const": {"a": [{"$ref": "#"}]}}, "a $ref in const"),
        ({"$schema": "http://x.test/mine"}, "http://x.test/mine"),
        ({"$defs": {str(number): {} for number in range(10_001)}}, "more than 10000 objects"),
    ],
)
def test_schemas_that_cannot_be_validated_by(schema: Any, says: str) -> None:
    text = json.dumps(schema)
    result = decode(
        [framed(7, b"1"), framed(8, b"1")], {7: text, 8: "{}"}, "json", as_text=True, validate=True
    )
    first, second = result.field("_error").to_pylist()
    assert says in first
    assert second is None
    # As the reader's, it is refused before anything is read.
    with pytest.raises(InvalidSchemaError, match="the reader's schema: "):
        ColumnDecoder(StoredRegistry(), Schema("JSON", text), "json", validate=True)


FORMATS = [
    ("date-time", ["2024-02-29T12:00:00Z", "2024-02-29T12:00:00.5+02:00"], ["2023-02-29T12:00:00Z", "x"], 4),
    ("email", ["a@b.c"], ["a"], 4),
    ("hostname", ["a.example"], ["-a", "a b"], 4),
    ("ipv4", ["127.0.0.1"], ["256.0.0.1", "1.2.3"], 4),
    ("ipv6", ["::1"], ["12345::", "x"], 4),
    ("uri", ["http://a.b/c"], ["//a", "a b"], 4),
    ("json-pointer", ["/a/~01", ""], ["a", "/~2"], 6),
    ("uri-reference", ["/a"], ["\\\\a"], 6),
    ("date", ["2024-02-29"], ["2023-02-29", "24-2-9"], 7),
    ("time", ["12:00:00Z"], ["25:00:00Z", "12:00"], 7),
    ("idn-email", ["ü@b.example"], ["a"], 7),
    ("idn-hostname", ["ü.example"], ["\u302ea.example", "-ü.example"], 7),
    ("regex", ["^a+$"], ["("], 4),
    ("uuid", ["2eb8aa08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08"], 2019),
    ("duration", ["P1DT2H"], ["P", "1D"], 2019),
    ("of our own", ["x"], [], 4),
]
DRAFTS = {4: DRAFT_4, 6: DRAFT_6, 7: DRAFT_7, 2019: DRAFT_2019, 2020: DRAFT_2020}


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize(("name", "valid", "other", "since"), FORMATS)
def test_formats_count_on_request(
    name: str, valid: list[str], other: list[str], since: int, draft: int
) -> None:
    schema = {"$schema": DRAFTS[draft], "format": name}
    payloads = [json.dumps(value).encode() for value in (*valid, *other, 5)]
    decoder = [{7: json.dumps(schema)}, "json"]
    rows = [framed(7, payload) for payload in payloads]
    ignored = decode(rows, *decoder, as_text=True, validate=True).field("_error").to_pylist()
    assert ignored == [None] * len(rows)
    errors = decode(rows, *decoder, as_text=True, validate="formats").field("_error").to_pylist()
    refused = other if draft >= since else []
    assert [error is not None for error in errors] == [value in refused for value in (*valid, *other, 5)]
    if refused:
        assert f'is not a "{name}" (rule /format)' in errors[len(valid)]
        # The formats that the library from PyPI checks as it is installed.
        checker = jsonschema.validators.validator_for(schema).FORMAT_CHECKER
        if name in checker.checkers:
            assert not any(checker.conforms(value, name) for value in refused)
            assert all(checker.conforms(value, name) for value in valid)


def referring() -> StoredRegistry:
    registry = StoredRegistry()
    texts = {
        "customer": ("customer.json", {"required": ["name"], "properties": {"at": {"$ref": "place.json"}}}),
        "place": ("place.json", {"$id": "http://x.test/place", "required": ["zip"]}),
        "money": ("http://x.test/money.json", {"$defs": {"sum": {"minimum": 0}}}),
    }
    for number, (subject, (_, schema)) in enumerate(texts.items()):
        used = (Reference("place.json", "place", 1),) if subject == "customer" else ()
        registry.put(SubjectVersion(subject, 1, 100 + number, Schema("JSON", json.dumps(schema), used)))
    order = {
        "properties": {
            "buyer": {"$ref": "customer.json"},
            "sum": {"$ref": "http://x.test/money.json#/$defs/sum"},
        }
    }
    used = tuple(Reference(name, subject, 1) for subject, (name, _) in texts.items() if subject != "place")
    for number, base in ((1, {}), (2, {"$id": "http://y.test/order.json"})):
        text = json.dumps({**base, **order})
        registry.put(SubjectVersion("orders-value", number, number, Schema("JSON", text, used)))
    return registry


def test_references_are_those_of_the_registry() -> None:
    documents = [
        (b'{"buyer": {"name": "a", "at": {"zip": 1}}, "sum": 0}', None),
        (b'{"buyer": {}}', '/buyer: "name" is a required property'),
        (b'{"buyer": {"name": "a", "at": {}}}', '/buyer/at: "zip" is a required property'),
        (b'{"sum": -1}', "/sum: -1 is less than the minimum of 0"),
    ]
    for schema_id in (1, 2):
        values = [framed(schema_id, document) for document, _ in documents]
        errors = decode(values, referring(), "json", validate=True).field("_error").to_pylist()
        for error, (_, says) in zip(errors, documents, strict=True):
            assert error is None if says is None else says in error


def test_each_value_is_validated_by_its_own_schema() -> None:
    texts = {1: '{"properties": {"a": {"maximum": 5}}}', 2: '{"properties": {"a": {"minimum": 6}}}'}
    values = [framed(1, b'{"a": 5}'), framed(1, b'{"a": 6}'), framed(2, b'{"a": 6}'), framed(2, b'{"a": 5}')]
    unframed = [b'{"a": 6}', b'{"a": 5}']
    result = decode([*values, *unframed, None], texts, "json", validate=True)
    # The newest is the reader's, for what names none.
    assert [error is None for error in result.field("_error").to_pylist()] == [
        True, False, True, False, True, False, True,
    ]  # fmt: skip
    assert result.field("invalidValue").to_pylist()[1] == values[1]
    text = decode(unframed, texts, "json", as_text=True, validate=True)
    assert set(text.field("_error").to_pylist()) == {"it names no schema to validate it by"}


def test_other_formats_are_refused() -> None:
    formats: tuple[SchemaFormat, ...] = ("avro", "protobuf")
    for name in formats:
        with pytest.raises(ValueError, match=f"validate is for the format json: {name}"):
            decode([], {}, name, validate=True)
    with pytest.raises(OptionError, match="validate is for keyFormat or valueFormat json"):
        parse_table({"valueFormat": "avro", "schemaRegistry": "x", "validate": "true"})
    with pytest.raises(OptionError, match="validate is for keyFormat or valueFormat json"):
        parse_table({"validate": "true"})
    assert parse_table({"valueFormat": "json", "schemaRegistry": "x", "validate": "true"}).typed.validate


@pytest.mark.parametrize(
    ("schema", "values"), TABLE[::7], ids=[json.dumps(one[0])[:50] for one in TABLE[::7]]
)
def test_confluents_deserializer_agrees(schema: Any, values: list[Any]) -> None:
    if isinstance(schema, bool) or "$id" in schema or "id" in schema:
        pytest.skip("not a schema that this client registers")
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    number = client.register_schema("orders-value", ConfluentSchema(json.dumps(schema), "JSON"))
    deserialize = JSONDeserializer(None, schema_registry_client=client)
    context = SerializationContext("orders", MessageField.VALUE)
    payloads = [framed(number, json.dumps(value).encode()) for value in values]
    errors = decode(payloads, {number: json.dumps(schema)}, "json", as_text=True, validate=True)
    for payload, error in zip(payloads, errors.field("_error").to_pylist(), strict=True):
        try:
            deserialize(payload, context)
        except SerializationError:
            assert error is not None
        else:
            assert error is None


def test_confluents_deserializer_agrees_on_references() -> None:
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    customer, order = '{"required": ["name"]}', '{"properties": {"buyer": {"$ref": "customer.json"}}}'
    client.register_schema("customer", ConfluentSchema(customer, "JSON"))
    used = [SchemaReference("customer.json", "customer", 1)]
    number = client.register_schema("orders-value", ConfluentSchema(order, "JSON", used))
    registry = StoredRegistry()
    registry.put(SubjectVersion("customer", 1, 900, Schema("JSON", customer)))
    ours = Schema("JSON", order, (Reference("customer.json", "customer", 1),))
    registry.put(SubjectVersion("orders-value", 1, number, ours))
    deserialize = JSONDeserializer(None, schema_registry_client=client)
    context = SerializationContext("orders", MessageField.VALUE)
    good, bad = (framed(number, text) for text in (b'{"buyer": {"name": 1}}', b'{"buyer": {}}'))
    assert deserialize(good, context) == {"buyer": {"name": 1}}
    with pytest.raises(SerializationError):
        deserialize(bad, context)
    errors = decode([good, bad], registry, "json", validate=True).field("_error").to_pylist()
    assert errors == [None, '/buyer: "name" is a required property (rule /required)']


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    builder = RecordsBuilder()
    for offset, value in enumerate([b'{"id": 5}', b'{"id": -1}', b'{"id": 7}']):
        builder.append(offset, 0, None, framed(7, value))
    (tmp_path / "logs" / "orders-0").mkdir(parents=True)
    (tmp_path / "logs" / "orders-0" / f"{0:020}.log").write_bytes(builder.build())
    (tmp_path / "schemas").mkdir()
    for name in ("7.json", "orders-value.json"):
        (tmp_path / "schemas" / name).write_text('{"properties": {"id": {"type": "integer", "minimum": 0}}}')
    return tmp_path / "logs"


def test_ingest_counts_what_is_not_valid(logs: Path, tmp_path: Path, cli: Cli) -> None:
    given = ["--value-format", "json", "--schema-registry", tmp_path / "schemas"]
    cli("ingest", *given, logs, tmp_path / "typed")
    cli("ingest", *given, "--validate", logs, tmp_path / "valid", code=1)
    report = json.loads((tmp_path / "valid" / "reconciliation.json").read_text())
    assert report["balanced"]
    assert report["total"]["invalid_values"] == 1
    rows = pq.read_table(tmp_path / "valid" / "records").to_pylist()
    assert [row["value"] for row in rows] == [{"id": 5}, None, {"id": 7}]
    assert rows[1]["_error"] == "/id: -1 is less than the minimum of 0 (rule /properties/id/minimum)"
    assert rows[1]["invalidValue"] == framed(7, b'{"id": -1}')
    cli("ingest", "--value-format", "avro", "--schema-registry", "x", "--validate", logs, "o", code=2)
    assert "--validate is for" in cli.error
    typed = TypedColumns(schema_registry=str(tmp_path / "schemas"), value_format="avro", validate=True)
    with pytest.raises(RefusedError, match="validate is for key_format or value_format json"):
        commands.ingest(logs, tmp_path / "refused", typed=typed)


def test_dump_and_records_report_what_is_not_valid(logs: Path, tmp_path: Path, cli: Cli) -> None:
    given = ["--value-format", "json", "--schema-registry", tmp_path / "schemas"]
    for command in ("records", "dump"):
        cli(command, logs / "orders-0", *given)
        printed = cli(command, logs / "orders-0", *given, "--validate", code=1)
        assert '"id": 7' in printed or '"id":7' in printed
        assert "record at offset 1: the value: /id: -1 is less than the minimum of 0" in cli.error
        cli(command, logs / "orders-0", "--validate", code=2)
        assert "--validate is for" in cli.error


# --- numbers beyond 64 bits -----------------------------------------------------------------------

BEYOND = 2**64
NOT_VALIDATED = "its schema compares numbers beyond 64 bits, which are not validated"


def verdict(schema: Any, value: str) -> str | None:
    """The error of a value in JSON, except that a column has no place for its number."""
    rows = decode([value.encode()], None, "json", json.dumps(schema), validate=True, integers="text")
    error: str | None = rows.field("_error")[0].as_py()
    return None if error is not None and "left out" in error else error


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("schema", "number"),
    [
        ({"type": "integer"}, BEYOND),
        ({"type": "integer"}, BEYOND + 1),
        ({"type": ["integer", "null"]}, 10**30 + 1),
        ({"minimum": 0}, BEYOND + 1),
        ({"maximum": 2**64 - 1}, BEYOND),
        ({"exclusiveMaximum": 5, "minimum": -(2**63)}, 2**63 + 2048),
        ({"enum": [1, "a", 2**53]}, BEYOND + 1),
        ({"const": 1}, BEYOND),
        ({"const": 2**64 - 1}, BEYOND),
        ({"not": {"type": "integer"}}, BEYOND),
    ],
)
def test_integers_beyond_64_bits(schema: Any, number: int, sign: int) -> None:
    is_valid = jsonschema.Draft202012Validator(schema).is_valid(sign * number)
    assert (verdict(schema, str(sign * number)) is None) == is_valid


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"uniqueItems": True}, f"[{BEYOND},{BEYOND + 1}]"),
        ({"uniqueItems": True}, f'[{{"a":[{BEYOND}]}},{{"a":[{BEYOND + 1}]}}]'),
        ({"uniqueItems": True}, f"[{-BEYOND},{-BEYOND}]"),
        ({"enum": [BEYOND, "a"]}, str(BEYOND + 1)),
        ({"enum": [BEYOND, "a"]}, str(BEYOND)),
        ({"enum": [[BEYOND], "a"]}, f"[{BEYOND + 1}]"),
        ({"const": [BEYOND]}, f"[{BEYOND + 1}]"),
        ({"const": {"a": BEYOND}}, f'{{"a":{BEYOND + 1}}}'),
        ({"multipleOf": 10}, str(10**30 + 5)),
        ({"multipleOf": 10}, str(10**30)),
        ({"anyOf": [{"multipleOf": 3}, {"type": "null"}]}, str(BEYOND)),
        ({"properties": {"a": {"multipleOf": 7}}}, f'{{"a":{BEYOND}}}'),
    ],
)
def test_digits_that_are_not_compared(schema: Any, value: str) -> None:
    assert verdict(schema, value) == NOT_VALIDATED


@pytest.mark.parametrize(
    ("schema", "value", "is_valid"),
    [
        # The digits do not matter for these.
        ({"uniqueItems": True}, f"[{BEYOND},{2 * BEYOND}]", True),
        ({"uniqueItems": True}, f"[{BEYOND},1,2]", True),
        ({"uniqueItems": True}, "[1,1]", False),
        ({"uniqueItems": True}, f"[{2**64 - 1},{2**64 - 2}]", True),
        ({"uniqueItems": True}, f"[{2**64 - 1},{2**64 - 1}]", False),
        ({"uniqueItems": True}, "[0.1,0.10000000000000001]", False),
        ({"enum": [BEYOND, "a"]}, "5", False),
        ({"enum": [BEYOND, "a"]}, '"a"', True),
        ({"enum": [BEYOND, "a"]}, str(3 * BEYOND), False),
        ({"multipleOf": 5}, str(2**64 - 1), True),
        ({"multipleOf": 3}, str(-(2**63)), False),
        ({"type": "string"}, str(BEYOND), False),
        ({"properties": {"a": {"type": "string"}}}, f'{{"b":[{BEYOND},{BEYOND}]}}', True),
    ],
)
def test_digits_that_do_not_matter(schema: Any, value: str, is_valid: bool) -> None:
    assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(value)) == is_valid
    error = verdict(schema, value)
    assert (error is None, error == NOT_VALIDATED) == (is_valid, False)


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1E+999", "123456789e400", "-0.5e999", "9" * 400])
def test_numbers_beyond_a_double(number: str) -> None:
    schema = {"type": "object", "properties": {"b": {"type": "integer"}}}
    for text in (
        f'{{"a":{number},"b":1}}',
        f'{{"b":1,"a":{number}}}',
        f'{{"a":[{number},"\\"{number}",{{"c" : {number} }}],"b":1}}',
        f'{{"{number}":{number},"b":1}}',
    ):
        (row,) = decode([text.encode()], None, "json", json.dumps(schema), validate=True).to_pylist()
        assert (row["value"], row["_error"]) == ({"b": 1}, None)
        # The rest is validated.
        wrong = text.replace('"b":1', '"b":"x"')
        assert "/b: " in (verdict(schema, wrong) or "")
    # It is larger, or smaller, than all limits.
    bound = {"properties": {"a": {"type": "number", "minimum": -1e300, "maximum": 1e300}}}
    assert "/a: " in (verdict(bound, f'{{"a":{number}}}') or "")
    limit = {"properties": {"a": {"minimum" if number[0] != "-" else "maximum": 0}}}
    assert verdict(limit, f'{{"a":{number}}}') is None
    # What is no JSON stays none.
    for text in (
        f'{{"a":{number}',
        f'{{"a":{number}}}x',
        f"[{number},,]",
        f"[{number},01]",
        f'["{number}',
        f"[{number}.]",
    ):
        assert verdict(True, text) is not None


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        (
            {"propertyNames": {"pattern": "^a"}},
            '{"ok":1,"b":2}',
            '"ok" does not match "^a" (rule /propertyNames/pattern)',
        ),
        ({"propertyNames": {"maxLength": 2}}, '{"abc":null}', '"abc" is longer than 2 characters'),
        ({"propertyNames": {"enum": ["a"]}}, '{"a":1,"ä":2}', '"ä" is not one of'),
        (
            {"properties": {"x": {"propertyNames": {"minLength": 2}}}},
            '{"x":{"b":2}}',
            '/x: "b" is shorter than 2 characters (rule /properties/x/propertyNames/minLength)',
        ),
        ({"propertyNames": {"pattern": "^a"}}, json.dumps({"b" * 5000: 1}), '"bbbbbb'),
        ({"contains": {"const": 1}}, "[2]", "None of [2] are valid under the given schema (rule /contains)"),
        (
            {"contains": {"const": 1}, "maxContains": 1},
            "[1,1]",
            "[1,1] has more items that contains allows than maxContains (rule /maxContains)",
        ),
        (
            {"contains": {"const": 1}, "minContains": 2},
            "[1,2]",
            "[1,2] has fewer items that contains allows than minContains (rule /minContains)",
        ),
        (
            {"contains": {"const": 1}, "minContains": 1, "maxContains": 1},
            "[1,1,1]",
            "[1,1,1] has more items that contains allows than maxContains (rule /maxContains)",
        ),
    ],
)
def test_messages_of_names_and_counts(schema: Any, value: str, says: str) -> None:
    error = verdict(schema, value)
    assert error is not None
    assert error.startswith(says)
    assert len(error) < 1000
