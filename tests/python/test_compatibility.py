"""Compatibility of schemas: levels, messages, JSON Schema's rules, and what is not a schema.

Avro's verdicts are compared with Java's in tests/interop/test_avro_compatibility.py.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any, get_args

import pytest
from conftest import Cli
from json_pairs import PAIRS, Pair
from magicbyte.enums import CompatibilityLevel
from magicbyte.schema.compatibility.avro import incompatibilities as avro_incompatibilities
from magicbyte.schema.compatibility.avro_schema import avro_document, parse_avro
from magicbyte.schema.compatibility.check import LEVELS, check, check_history, compare
from magicbyte.schema.compatibility.json_schema import incompatibilities
from magicbyte.schema.compatibility.json_schema_model import parse_json_schema
from magicbyte.schema.compatibility.json_schema_rules import REMEDIES
from magicbyte.schema.invalid_schema import InvalidSchemaError
from magicbyte.schema.lint import lint
from magicbyte.schema.registry import Reference, Schema, StoredRegistry, SubjectVersion
from magicbyte.schema.schemas_topic import apply

PROMOTED = "keep the type, or choose one that it is promoted to: int, long, float, double in this order"


def record(**fields: Any) -> Schema:
    """A record; a field with a tuple has a default."""
    made = [
        {"name": name, "type": one[0], "default": one[1]}
        if isinstance(one, tuple)
        else {"name": name, "type": one}
        for name, one in fields.items()
    ]
    return Schema("AVRO", json.dumps({"type": "record", "name": "R", "fields": made}))


def registry_of(*schemas: Schema, level: str = "BACKWARD") -> StoredRegistry:
    registry = StoredRegistry()
    registry.compatibility_levels["s"] = level
    for number, schema in enumerate(schemas, 1):
        registry.put(SubjectVersion("s", number, number, schema))
    return registry


# --- levels ---------------------------------------------------------------------------------------

# The second version drops a field without a default, the third one gets it back.
VERSIONS = (record(a="int", b="int"), record(a="int"), record(a="int", b=("int", 0)))


@pytest.mark.parametrize(
    ("level", "compared"),
    [
        ("NONE", []),
        ("BACKWARD", [(3, "BACKWARD")]),
        ("FORWARD", [(3, "FORWARD")]),
        ("FULL", [(3, "BACKWARD"), (3, "FORWARD")]),
        ("BACKWARD_TRANSITIVE", [(3, "BACKWARD"), (2, "BACKWARD"), (1, "BACKWARD")]),
        ("FORWARD_TRANSITIVE", [(3, "FORWARD"), (2, "FORWARD"), (1, "FORWARD")]),
        ("FULL_TRANSITIVE", [(number, one) for number in (3, 2, 1) for one in ("BACKWARD", "FORWARD")]),
    ],
)
def test_what_a_level_compares(level: str, compared: list[tuple[int, str]]) -> None:
    verdicts = check(registry_of(*VERSIONS, level=level), "s", record(a="int"))
    assert [(one.version.version, one.direction) for one in verdicts] == compared
    # Only the first version has no default for the field that is missing now.
    wrong = [(one.version.version, one.direction) for one in verdicts if not one.compatible]
    assert wrong == [one for one in compared if one == (1, "FORWARD")]


def test_levels_are_those_of_scopes() -> None:
    registry = StoredRegistry()
    registry.compatibility_levels.update({"": "FULL", ":.test:": "NONE", ":.test:b": "FORWARD"})
    for subject in ("a", ":.test:a", ":.test:b"):
        registry.put(SubjectVersion(subject, 1, None, record(a="int")))
    assert len(check(registry, "a", record(a="int"))) == 2
    assert check(registry, ":.test:a", record(a="string")) == []
    assert [one.direction for one in check(registry, ":.test:b", record(a="int"))] == ["FORWARD"]
    with pytest.raises(ValueError, match="the compatibility level 'HIGH' is unknown"):
        check(registry, "a", record(a="int"), "HIGH")


ONE, TWO = (
    Schema("JSON", json.dumps({"type": "object", "properties": {name: {"type": "string"} for name in names}}))
    for names in ("a", "ab")
)


@pytest.mark.parametrize(
    ("policies", "asked", "compatible"),
    [
        ({}, None, False),
        ({"s": "LENIENT"}, None, True),
        ({"s": "LOGICAL"}, None, False),
        ({"s": "LOUD"}, None, False),
        ({"": "LENIENT"}, None, True),
        ({"": "LENIENT", "s": "STRICT"}, None, False),
        ({":.other:": "LENIENT"}, None, False),
        ({"s": "LENIENT"}, False, False),
        ({"s": "STRICT"}, True, True),
    ],
)
def test_the_policy_is_the_subjects(policies: dict[str, str], asked: bool | None, compatible: bool) -> None:
    registry = registry_of(ONE)
    registry.compatibility_policies.update(policies)
    (verdict,) = check(registry, "s", TWO, lenient=asked)
    assert verdict.compatible == compatible
    if asked is None:
        registry.put(SubjectVersion("s", 2, 2, TWO))
        assert [one["rule"] for one in lint(registry)] == ([] if compatible else ["BREAKS_LEVEL"])


@pytest.mark.parametrize(
    ("new", "compared"),
    [({"major": "1"}, [2]), ({"major": "2"}, [3]), ({"major": "3"}, []), ({"minor": "1"}, [1]), (None, [3])],
)
def test_versions_of_a_group_are_compared(new: dict[str, str] | None, compared: list[int]) -> None:
    def of(properties: dict[str, str] | None, text: str = '"int"') -> Schema:
        return Schema("AVRO", text, metadata=None if properties is None else {"properties": properties})

    registry = registry_of(of({}), of({"major": "1"}), of({"major": "2"}, '"string"'))
    registry.compatibility_groups["s"] = "major"
    assert [one.version.version for one in check(registry, "s", of(new))] == compared
    # Another group begins with a version that no other version has to be compatible with.
    assert [one["rule"] for one in lint(registry)] == []


def test_deleted_versions_are_not_compared() -> None:
    registry = registry_of(record(a="int"), record(a="string"))
    assert [one.version.version for one in check(registry, "s", record(a="int")) if not one.compatible] == [2]
    registry.put(SubjectVersion("s", 2, 2, record(a="string"), deleted=True))
    assert [one.compatible for one in check(registry, "s", record(a="int"))] == [True]
    assert check(registry, "new", record(a="int")) == []


def test_history() -> None:
    registry = registry_of(*VERSIONS, record(a="string", b="int"))
    found = [
        (version.version, [one.compatible for one in verdicts])
        for version, verdicts in check_history(registry, "s")
    ]
    assert found == [(1, []), (2, [True]), (3, [True]), (4, [False])]


def test_messages_name_field_rule_and_remedy() -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": "zip", "type": "int"}]}
    changed = {
        "type": "record",
        "name": "I",
        "fields": [{"name": "zip", "type": "string"}, {"name": "no", "type": "int"}],
    }
    verdicts = check(registry_of(record(to=inner)), "s", record(to=changed))
    assert verdicts[0].reasons() == [
        "TYPE_MISMATCH at /fields/0/type/fields/0/type: to.zip: the reader's type string does not read int."
        f" Remedy: {PROMOTED}",
        "READER_FIELD_MISSING_DEFAULT_VALUE at /fields/0/type/fields/1: to.no: the reader's I has it without"
        " a default, and the writer's does not have it. Remedy: give the new field a default",
    ]


def test_another_type_of_schema() -> None:
    (verdict,) = check(registry_of(record(a="int")), "s", Schema("JSON", "{}"))
    assert [one.rule for one in verdict.incompatibilities] == ["SCHEMA_TYPE_CHANGED"]
    assert "use another subject" in verdict.reasons()[0]


def test_references() -> None:
    registry = registry_of()
    registry.put(
        SubjectVersion("money", 1, 1, Schema("AVRO", '{"type": "fixed", "name": "x.Money", "size": 8}'))
    )
    registry.put(
        SubjectVersion("money", 2, 2, Schema("AVRO", '{"type": "fixed", "name": "x.Money", "size": 16}'))
    )

    def using(version: int) -> Schema:
        text = '{"type": "record", "name": "R", "namespace": "x", "fields": [{"name": "a", "type": "Money"}]}'
        return Schema("AVRO", text, (Reference("x.Money", "money", version),))

    registry.put(SubjectVersion("s", 1, 3, using(1)))
    (verdict,) = check(registry, "s", using(2))
    assert [(one.rule, one.path) for one in verdict.incompatibilities] == [
        ("FIXED_SIZE_MISMATCH", "/fields/0/type/size")
    ]
    text = '{"type": "object", "properties": {"a": {"$ref": "money.json"}}}'
    for number, type_ in ((1, "integer"), (2, "string")):
        registry.put(SubjectVersion("m", number, 10 + number, Schema("JSON", json.dumps({"type": type_}))))
    old, new = (Schema("JSON", text, (Reference("money.json", "m", one),)) for one in (1, 2))
    registry.put(SubjectVersion("j", 1, 20, old))
    (verdict,) = check(registry, "j", new)
    assert [(one.rule, one.path) for one in verdict.incompatibilities] == [("TYPE_CHANGED", "#/properties/a")]


# --- JSON Schema ----------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_json_schema_rules(pair: Pair) -> None:
    reader, writer = (parse_json_schema(json.dumps(one)) for one in (pair.new, pair.old))
    assert {one.rule for one in incompatibilities(reader, writer)} == pair.rules
    lenient = not pair.rules if pair.lenient is None else pair.lenient
    assert (not incompatibilities(reader, writer, lenient=True)) == lenient
    registry = registry_of(Schema("JSON", json.dumps(pair.old)))
    (verdict,) = check(registry, "s", Schema("JSON", json.dumps(pair.new)), lenient=True)
    assert verdict.compatible == lenient
    # A schema accepts what it accepts itself.
    assert incompatibilities(reader, reader) == []


def test_each_json_rule_has_a_pair_and_a_remedy() -> None:
    assert set().union(*(pair.rules for pair in PAIRS)) == REMEDIES.keys()


# --- what is not a schema, and what is too much ---------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not JSON"),
        ("5", "expected a schema"),
        ('"Unknown"', "no type has the name Unknown"),
        ('{"name": "R"}', "has no type"),
        ('{"type": "record", "name": "R"}', "fields: expected a list"),
        ('{"type": "record", "fields": []}', "expected a name, not null"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a"}]}', "name and type"),
        (
            '{"type": "record", "name": "R", "fields": [{"name":"a","type":[]}, {"name":"a","type":[]}]}',
            "is a field already",
        ),
        ('{"type": "enum", "name": "E", "symbols": [1]}', "symbols: expected a list of texts"),
        ('{"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}', "none of the symbols"),
        ('{"type": "fixed", "name": "F", "size": true}', "size: expected a number"),
        ('{"type": "array"}', "array has no items"),
        ('["int", "int"]', "a union has int twice"),
        ('["int", ["null"]]', "a union has a union"),
        (
            '[{"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 2}]',
            "defined twice",
        ),
        (
            '[{"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 1}]',
            "a union has fixed F twice",
        ),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "record", "name": "R",'
            ' "fields": []}}]}',
            "defined twice",
        ),
        ("[" * 100_000, "too deep"),
        ('{"type":"array","items":' * 500 + '"int"' + "}" * 500, "more deeply than 150"),
    ],
)
def test_what_is_no_avro_schema(text: str, says: str) -> None:
    with pytest.raises(InvalidSchemaError, match=says):
        parse_avro(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not JSON"),
        ("5", "an object or a boolean"),
        ('{"type": "text"}', "is unknown"),
        ('{"type": [1]}', "is unknown"),
        ('{"$ref": "#/nowhere"}', "no such place"),
        ('{"$ref": "#/title", "title": "x"}', "no schema at that place"),
        ('{"$ref": "#name"}', "no schema has this anchor"),
        ('{"$ref": "other.json"}', "no reference has this name"),
        ('{"$ref": "#"}', "leads to itself"),
        ('{"items": {"$ref": 5, "type": 5}}', "is unknown"),
        ('{"properties": {"a": 5}}', "expected a schema"),
        ('{"allOf": [5]}', "expected a schema"),
        ('{"properties": {"b": {}}, "patternProperties": {"(": {}}}', "cannot be matched"),
        ("[" * 100_000, "too deep"),
        ('{"not":' * 800 + "{}" + "}" * 800, "too deep"),
    ],
)
def test_what_is_no_json_schema(text: str, says: str) -> None:
    # With another schema or with itself, whatever leads to the wrong place.
    errors = []
    for other in ('{"properties": {"a": {}}}', text):
        try:
            compare(Schema("JSON", text), Schema("JSON", other), "BACKWARD")
        except InvalidSchemaError as error:
            errors.append(str(error))
    assert errors
    assert says in errors[0]


def test_an_unreadable_version_is_an_error_of_its_verdict() -> None:
    (verdict,) = check(registry_of(Schema("AVRO", "{")), "s", record(a="int"))
    assert (verdict.compatible, verdict.incompatibilities) == (False, [])
    assert "is not JSON" in (verdict.error or "")
    with pytest.raises(InvalidSchemaError):
        check(registry_of(record(a="int")), "s", Schema("AVRO", "{"))


def doubling(leaf: str) -> str:
    """A schema with 2 ** 40 paths to its leaf."""
    text: Any = {"type": "record", "name": "N0", "fields": [{"name": "a", "type": leaf}]}
    for number in range(1, 41):
        fields = [{"name": "a", "type": text}, {"name": "b", "type": f"N{number - 1}"}]
        text = {"type": "record", "name": f"N{number}", "fields": fields}
    return json.dumps(text)


def test_many_paths_to_a_difference() -> None:
    start = time.process_time()
    found = avro_incompatibilities(parse_avro(doubling("int")), parse_avro(doubling("string")))
    assert 0 < len(found) <= 100
    definitions = {f"d{one}": {"allOf": [{"$ref": f"#/definitions/d{one - 1}"}] * 2} for one in range(1, 41)}
    schemas = [
        parse_json_schema(
            json.dumps({"definitions": {"d0": {"type": one}, **definitions}, "$ref": "#/definitions/d40"})
        )
        for one in ("integer", "string")
    ]
    assert incompatibilities(*schemas)
    assert time.process_time() - start < 5


def test_a_pattern_that_backtracks() -> None:
    schema = {"type": "object", "patternProperties": {"(a+)+$": {"type": "string"}}}
    more = schema | {"properties": {"a" * 60 + "b": {"type": "integer"}}}
    start = time.process_time()
    incompatibilities(parse_json_schema(json.dumps(schema)), parse_json_schema(json.dumps(more)))
    assert time.process_time() - start < 2


# --- comments of Avro schemas -----------------------------------------------------------------------


def without_comments(text: str) -> str:
    """The text without comments, character by character."""
    kept, position = [], 0
    while position < len(text):
        if text[position] == '"':
            end = position + 1
            while end < len(text) and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            piece = text[position : end + 1]
        elif text.startswith("//", position):
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
            kept.append(" ")
            continue
        elif text.startswith("/*", position):
            end = text.find("*/", position + 2)
            if end < 0:
                return "".join(kept) + text[position:]
            position = end + 2
            kept.append(" ")
            continue
        else:
            piece = text[position]
        kept.append(piece)
        position += len(piece)
    return "".join(kept)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ('{"doc": "http://a", "type": "int"}', {"doc": "http://a", "type": "int"}),
        ('{"doc": "/* a */", "type": "int"}', {"doc": "/* a */", "type": "int"}),
        (r'{"doc": "\"//\\", "type": "int"} // "', {"doc": '"//\\', "type": "int"}),
        (r'{"doc": "\\\"/*", "type": "int"}', {"doc": '\\"/*', "type": "int"}),
        ('"int" // at the end', "int"),
        ('"int"//', "int"),
        ('// "a quote\n"int"', "int"),
        ('/* "a quote */"int"/**/', "int"),
        ('/*/ "a" */"int"', "int"),
        ('/* // */ "int"', "int"),
        ('// /*\n"int"', "int"),
        ('{/**/"type"//\n:/* a\nb */"int"}', {"type": "int"}),
        ("int", "int"),
    ],
)
def test_comments(text: str, document: Any) -> None:
    assert avro_document(text) == document


@pytest.mark.parametrize(
    "text", ['"int" /* open', '"int', '"int\\', '"int" /', '"int" */', '"int" /*/', "1/**/2", '"a"/"b"']
)
def test_what_is_no_comment(text: str) -> None:
    with pytest.raises(InvalidSchemaError, match="is not JSON"):
        avro_document(text)


def test_random_comments() -> None:
    r = random.Random(7)
    good = 0
    for _ in range(20_000):
        text = "".join(
            r.choice(['"', "\\", "//", "/*", "*/", "/", "*", "\n", " ", "1"]) for _ in range(r.randrange(9))
        )
        try:
            expected = json.loads(without_comments(text))
        except ValueError:
            with pytest.raises(InvalidSchemaError):
                avro_document(text)
        else:
            assert avro_document(text) == expected
            good += 1
    assert good > 200


@pytest.mark.parametrize(
    "text",
    [
        "/* " * 40_000,
        '"' + r"\"" * 20_000,
        '"' * 99_999,
        "/" * 100_000,
        "/**/" * 40_000,
        "//\n" * 40_000,
        '"a" ' * 40_000,
        '"' + "\\" * 99_999,
        "/*" + "*" * 100_000,
    ],
)
def test_comments_take_time_in_proportion(text: str) -> None:
    began = time.monotonic()
    with pytest.raises(InvalidSchemaError):
        avro_document(text)
    assert time.monotonic() - began < 2


# --- lint and the commands ------------------------------------------------------------------------


def test_lint() -> None:
    registry = StoredRegistry()
    registry.compatibility_levels.update({"broken": "FULL", "mixed": "NONE", "odd": "LOUD", "using": "NONE"})
    registry.put(SubjectVersion("broken", 1, 1, record(a="int")))
    registry.put(SubjectVersion("broken", 2, 2, record(a="string")))
    registry.put(SubjectVersion("plain", 1, 1, record(a="int")))
    registry.put(SubjectVersion("odd", 1, 1, record(a="int")))
    other = Schema("AVRO", '{"type": "enum", "name": "E", "symbols": ["A"]}')
    registry.put(SubjectVersion("mixed", 1, 1, record(a="int")))
    registry.put(SubjectVersion("mixed", 2, 3, other))
    registry.put(SubjectVersion("gone", 1, 3, other, deleted=True))
    references = (Reference("E", "gone", 1), Reference("X", "never", 1))
    registry.put(SubjectVersion("using", 1, 4, Schema("AVRO", '"int"', references)))
    assert [(one["subject"], one["rule"], one["version"]) for one in lint(registry)] == [
        ("broken", "BREAKS_LEVEL", 2),
        ("broken", "BREAKS_LEVEL", 2),
        ("mixed", "UNRELATED_TYPES", None),
        ("odd", "UNKNOWN_LEVEL", None),
        ("plain", "LEVEL_NOT_SET", None),
        ("using", "DELETED_BUT_REFERENCED", 1),
        ("using", "MISSING_REFERENCE", 1),
    ]


def test_two_keys_of_one_version() -> None:
    registry = StoredRegistry()
    value = json.dumps({"subject": "a", "version": 1, "id": 1, "schema": '"int"', "deleted": False}).encode()
    registry.compatibility_levels["a"] = "NONE"
    old = b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}'
    apply(registry, old, value)
    apply(registry, old, value)
    assert lint(registry) == []
    # As another registry, or a restored topic, has it.
    apply(registry, b'{"magic": 1, "keytype": "SCHEMA", "subject": "a", "version": 1}', None)
    (found,) = lint(registry)
    assert (found["rule"], found["subject"], found["version"]) == ("TWO_KEYS", "a", 1)
    assert old.decode() in found["message"]


VALUE = json.dumps({"subject": "a", "version": 1, "id": 1, "schema": '"int"', "deleted": False}).encode()
FORMS = [
    b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
    b'{"magic":1,"keytype":"SCHEMA","subject":"a","version":1}',
    b'{"magic": 1, "keytype": "SCHEMA", "subject": "a", "version": 1}',
]


@pytest.mark.parametrize(
    ("records", "is_found"),
    [
        ("a", False),
        ("aB", True),
        ("aA", False),
        ("aBA", False),
        ("aAB", False),
        ("ab", True),
        ("abA", True),
        ("abB", True),
        ("abAB", False),
        ("abBA", False),
        ("abABa", False),
        ("abABab", True),
        # A value after the tombstone of another key: compaction changes nothing.
        ("Ab", False),
        ("abAb", False),
        ("abcAB", True),
        ("abcABC", False),
        ("abcBCA", False),
        ("A", False),
        ("AB", False),
    ],
)
def test_the_remedy_of_two_keys(records: str, is_found: bool) -> None:
    registry = StoredRegistry()
    registry.compatibility_levels["a"] = "NONE"
    for record in records:
        apply(registry, FORMS["abc".index(record.lower())], VALUE if record.islower() else None)
    assert [one["rule"] for one in lint(registry)] == ["TWO_KEYS"] * is_found
    # That is what lint is for: after compaction without its tombstones, the registry is another one.
    last = {record.lower(): (number, record) for number, record in enumerate(records)}
    kept = StoredRegistry()
    for _, record in sorted(last.values()):
        if record.islower():
            apply(kept, FORMS["abc".index(record)], VALUE)
    assert is_found or kept.versions("a") == registry.versions("a")


def test_keys_of_other_kinds_that_say_the_same() -> None:
    registry = StoredRegistry()
    forms = [b'{"keytype":"CONFIG","subject":"a","magic":0}', b'{"magic":0,"keytype":"CONFIG","subject":"a"}']
    for form in forms:
        apply(registry, form, b'{"compatibilityLevel": "FULL"}')
    (found,) = lint(registry)
    assert (found["rule"], found["subject"], found["version"]) == ("TWO_KEYS", "a", None)
    for form in forms:
        apply(registry, form, None)
    assert lint(registry) == []


def test_keys_that_were_deleted_take_no_memory() -> None:
    registry = StoredRegistry()
    for number in range(100):
        key = json.dumps({"keytype": "SCHEMA", "subject": f"s{number}", "version": 1, "magic": 1}).encode()
        value = {"subject": f"s{number}", "version": 1, "id": 1, "schema": '"int"'}
        apply(registry, key, json.dumps(value).encode())
        apply(registry, key, None)
    assert registry.key_forms == {}


def test_commands(tmp_path: Path, cli: Cli) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "orders-value.avsc").write_text(record(a="int", b="int").text)
    new = tmp_path / "new.avsc"
    new.write_text(record(a="string").text)
    output = cli("schemas", "check", "orders-value", new, schemas, code=1)
    assert output.splitlines() == [
        "version 1, BACKWARD: incompatible",
        "  TYPE_MISMATCH at /fields/0/type: a: the reader's type string does not read int",
        f"    remedy: {PROMOTED}",
    ]
    report = cli.json("schemas", "check", "--compatibility", "full", "orders-value", new, schemas, code=1)
    assert [one["direction"] for one in report["versions"]] == ["BACKWARD", "FORWARD"]
    assert report["compatible"] is False
    rules = [one["rule"] for one in report["versions"][1]["incompatibilities"]]
    assert rules == ["TYPE_MISMATCH", "READER_FIELD_MISSING_DEFAULT_VALUE"]
    assert "nothing to compare" in cli("schemas", "check", "nobody", new, schemas)
    new.write_text(record(a="long").text)
    assert cli("schemas", "check", "orders-value", new, schemas) == "version 1, BACKWARD: compatible\n"
    assert cli("schemas", "lint", schemas, code=1).splitlines()[0].startswith("orders-value: LEVEL_NOT_SET: ")
    assert cli.json("schemas", "lint", schemas, code=1)["subjects"] == 1
    cli("schemas", "check", "--reference", "x", "orders-value", new, schemas, code=2)
    assert "expected NAME=SUBJECT:VERSION" in cli.error
    new.write_text("{")
    cli("schemas", "check", "orders-value", new, schemas, code=3)
    assert "is not JSON" in cli.error


def test_the_levels_are_named() -> None:
    assert tuple(LEVELS) == get_args(CompatibilityLevel)


@pytest.mark.parametrize("policy", ["STRICT", "LENIENT", "LOGICAL"])
def test_the_command_knows_the_policy(tmp_path: Path, cli: Cli, policy: str) -> None:
    index = {
        "schemas": [{"id": 1, "file": "1.json", "versions": [{"subject": "s", "version": 1}]}],
        "policies": {"s": policy},
    }
    for name, text in (("schemas.json", json.dumps(index)), ("1.json", ONE.text), ("new.json", TWO.text)):
        (tmp_path / name).write_text(text)
    shown = cli("schemas", "check", "s", tmp_path / "new.json", tmp_path, code=policy != "LENIENT")
    assert ("note: the checks that LOGICAL adds" in shown) == (policy == "LOGICAL")
    for asked, code in (("strict", 1), ("lenient", 0)):
        place = (tmp_path / "new.json", tmp_path)
        report = cli.json("schemas", "check", f"--{asked}", "s", *place, code=code)
        assert report["policy"] == asked.upper()
