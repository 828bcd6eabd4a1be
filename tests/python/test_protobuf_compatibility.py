"""Compatibility of Protobuf schemas: rules, messages, imports, and what is not a schema."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import pytest
from conftest import Cli
from magicbyte.schema.compatibility.check import check, compare
from magicbyte.schema.compatibility.protobuf import REMEDIES, incompatibilities
from magicbyte.schema.compatibility.protobuf_schema import parse_protobuf
from magicbyte.schema.invalid_schema import InvalidSchemaError
from magicbyte.schema.registry import Reference, Schema, StoredRegistry, SubjectVersion
from protobuf_pairs import PAIRS, Pair


def proto3(text: str) -> Schema:
    return Schema("PROTOBUF", f'syntax = "proto3"; {text}')


def registry_of(schema: Schema, *others: SubjectVersion) -> StoredRegistry:
    registry = StoredRegistry()
    for version in (*others, SubjectVersion("s", 1, None, schema)):
        registry.put(version)
    return registry


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_rules(pair: Pair) -> None:
    reader, writer = parse_protobuf(pair.new), parse_protobuf(pair.old)
    assert {one.rule for one in incompatibilities(reader, writer)} == pair.rules
    # A schema reads what it wrote itself.
    assert incompatibilities(reader, reader) == []


def test_each_rule_has_a_pair_and_a_remedy() -> None:
    assert set().union(*(pair.rules for pair in PAIRS)) == REMEDIES.keys()
    assert len(PAIRS) >= 50


def test_messages_name_field_rule_and_remedy() -> None:
    old = proto3("package x; message Order { int32 id = 1; oneof pay { string card = 2; string iban = 3; } }")
    new = proto3("package x; message Order { string id = 1; oneof pay { string card = 2; } }")
    (verdict,) = check(registry_of(old), "s", new)
    scalar, removed = verdict.reasons()
    assert scalar.startswith(
        "FIELD_SCALAR_KIND_CHANGED at #/Order/1: Order.id: the reader's type string does not read int32."
        " Remedy: choose a type that reads the old one: int32, int64,"
    )
    assert removed == (
        "ONEOF_FIELD_REMOVED at #/Order/pay/3: Order.iban: the reader does not have it in pay."
        " Remedy: keep the field in its oneof, or move it out of it"
    )
    (verdict,) = check(registry_of(new), "s", old, "FORWARD")
    assert "Remedy: add no field to the oneof until all readers know it" in verdict.reasons()[1]


def test_imports() -> None:
    """An imported message is compared where a field uses it, whatever the file and its package are called."""
    used = [
        SubjectVersion("money", one, None, proto3(f"package p{one}; message Money {{ {fields} }}"))
        for one, fields in enumerate(
            ("int64 units = 1;", "uint32 units = 1; string code = 2;", "string units = 1;"), 1
        )
    ]

    def using(version: int) -> Schema:
        text = f'import "money.proto"; message Order {{ p{version}.Money price = 1; }}'
        return Schema("PROTOBUF", proto3(text).text, (Reference("money.proto", "money", version),))

    registry = registry_of(using(1), *used)
    assert [one.compatible for one in check(registry, "s", using(2))] == [True]
    (verdict,) = check(registry, "s", using(3))
    assert [(one.rule, one.path) for one in verdict.incompatibilities] == [
        ("FIELD_SCALAR_KIND_CHANGED", "#/Money/1"),
        ("FIELD_NAMED_TYPE_CHANGED", "#/Order/1"),
    ]
    # Into the schema itself it may move, but not out of it.
    own = proto3("message Order { Money price = 1; } message Money { int64 units = 1; }")
    assert [one.compatible for one in check(registry, "s", own)] == [True]
    (verdict,) = check(registry_of(own, *used), "s", using(1))
    assert [one.rule for one in verdict.incompatibilities] == ["MESSAGE_REMOVED"]


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_a_map_as_java_writes_it(syntax: str) -> None:
    optional = "optional" if syntax == "proto2" else ""

    def written(value: str) -> Schema:
        fields = f"{optional} string key = 1; {optional} {value} value = 2;"
        entry = f"message AbCEntry {{ option map_entry = true; {fields} }}"
        return Schema(
            "PROTOBUF", f'syntax = "{syntax}"; message A {{ repeated .A.AbCEntry ab_c = 1; {entry} }}'
        )

    def mapped(value: str) -> Schema:
        return Schema("PROTOBUF", f'syntax = "{syntax}"; message A {{ map<string, {value}> ab_c = 1; }}')

    for new, old in ((written, mapped), (mapped, written), (written, written)):
        for direction in ("BACKWARD", "FORWARD"):
            assert compare(new("int32"), old("int32"), direction) == []
            rules = {one.rule for one in compare(new("int32"), old("string"), direction)}
            assert rules == {"FIELD_SCALAR_KIND_CHANGED"}


def test_an_encoded_descriptor() -> None:
    """Registries also hand out schemas as descriptors in base64."""
    field = b"\x0a\x01a\x18\x01\x20\x01\x28\x03"  # name, number, label, TYPE_INT64
    message = b"\x0a\x01A\x12" + bytes([len(field)]) + field
    file = b"\x0a\x09any.proto\x22" + bytes([len(message)]) + message + b"\x62\x06proto3"
    encoded = Schema("PROTOBUF", base64.b64encode(file).decode())
    assert compare(encoded, proto3("message A { int32 a = 1; }"), "BACKWARD") == []
    (found,) = compare(encoded, proto3("message A { string a = 1; }"), "BACKWARD")
    assert found.rule == "FIELD_SCALAR_KIND_CHANGED"


@pytest.mark.parametrize(
    "text",
    [
        "message {",
        "message A { B b = 1; }",
        'import "b.proto"; message A { b.B b = 1; }',
        "message A {" * 10_000,
        "message A { int32 a = 1; int32 b = 1; }",
    ],
)
def test_what_is_not_a_schema(text: str) -> None:
    with pytest.raises(InvalidSchemaError, match="not a Protobuf schema"):
        compare(proto3(text), proto3("message A {}"), "BACKWARD")


def test_imports_and_options_that_no_field_needs() -> None:
    text = 'import "b.proto"; message A { option (b.table) = "a"; int32 a = 1 [(b.min) = 0]; }'
    assert compare(proto3(text), proto3("message A { int32 a = 1; }"), "BACKWARD") == []


def test_editions() -> None:
    edition = Schema("PROTOBUF", 'edition = "2023"; message A { int32 a = 1; repeated string b = 2; }')
    plain = proto3("message A { optional int32 a = 1; repeated string b = 2; }")
    assert compare(edition, plain, "BACKWARD") == compare(plain, edition, "BACKWARD") == []
    (found,) = compare(edition, proto3("message A { string a = 1; repeated string b = 2; }"), "BACKWARD")
    assert found.rule == "FIELD_SCALAR_KIND_CHANGED"


def test_a_file_without_messages_is_a_schema() -> None:
    """Other files may import it."""
    assert compare(proto3("enum E { X = 0; }"), proto3(""), "BACKWARD") == []


def test_many_paths_to_a_difference() -> None:
    """40 imported messages, each with two fields of the one before: 2 ** 40 paths."""

    def schema(leaf: str) -> Schema:
        messages = "".join(
            f"message N{one} {{ N{one - 1} a = 1; N{one - 1} b = 2; }}" for one in range(1, 41)
        )
        return proto3(f"package p; message N0 {{ {leaf} a = 1; }} {messages}")

    used = [SubjectVersion("n", one, None, schema(leaf)) for one, leaf in enumerate(("int32", "string"), 1)]
    old, new = (
        Schema(
            "PROTOBUF",
            proto3('import "n.proto"; message A { p.N40 a = 1; }').text,
            (Reference("n.proto", "n", one),),
        )
        for one in (1, 2)
    )
    start = time.process_time()
    (verdict,) = check(registry_of(old, *used), "s", new)
    assert 0 < len(verdict.incompatibilities) <= 100
    assert time.process_time() - start < 5


def test_command(tmp_path: Path, cli: Cli) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "orders-value.proto").write_text(proto3("message A { int32 a = 1; }").text)
    new = tmp_path / "new.proto"
    new.write_text(proto3("message A { string a = 1; }").text)
    lines = cli("schemas", "check", "orders-value", new, schemas, code=1).splitlines()
    assert lines[:2] == [
        "version 1, BACKWARD: incompatible",
        "  FIELD_SCALAR_KIND_CHANGED at #/A/1: A.a: the reader's type string does not read int32",
    ]
    new.write_text(proto3("message A { int64 a = 1; }").text)
    assert cli("schemas", "check", "orders-value", new, schemas) == "version 1, BACKWARD: compatible\n"
