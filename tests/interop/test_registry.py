"""A real registry: what is registered is found, and both checkers decide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from magicbyte.cli.app import run
from magicbyte.jobs.schemas import open_registry
from magicbyte.schema.compatibility.check import IncompatibleSchemaError
from magicbyte.schema.directory import files_of, read_directory
from magicbyte.schema.http_client import RegistryError
from magicbyte.schema.http_registry import HttpRegistry
from magicbyte.schema.invalid_schema import InvalidSchemaError
from magicbyte.schema.registry import CompatibilityRules, Reference, Schema, SchemaNotFoundError
from registry_server import Apicurio, ask

pytestmark = pytest.mark.interop


def order(*fields: tuple[str, Any], default: bool = True) -> str:
    made = [{"name": name, "type": type_} | ({"default": 0} if default else {}) for name, type_ in fields]
    # Without blanks, as this registry gives it back.
    return json.dumps({"type": "record", "name": "Order", "fields": made}, separators=(",", ":"))


def test_register_and_find(apicurio: Apicurio, tmp_path: Path) -> None:
    registry = HttpRegistry(apicurio.url)
    assert registry.versions("found-value") == []
    one, two = Schema("AVRO", order(("a", "int"))), Schema("AVRO", order(("a", "int"), ("b", "long")))
    first = registry.register("found-value", one)
    assert registry.register("found-value", one) == first
    second = registry.register("found-value", two)
    assert first != second
    # A client without what was remembered.
    source, other = open_registry([apicurio.url])
    assert source == apicurio.url
    assert other.by_id(first).text == one.text
    assert [(found.version, found.id, found.deleted) for found in other.versions("found-value")] == [
        (1, first, False),
        (2, second, False),
    ]
    assert other.latest("found-value").schema.text == two.text
    assert other.version("found-value", 1).id == first
    assert "found-value" in other.subjects()
    with pytest.raises(SchemaNotFoundError, match="no schema has the id 999999"):
        other.by_id(999999)
    with pytest.raises(SchemaNotFoundError, match="has no version 9"):
        other.version("found-value", 9)
    with pytest.raises(SchemaNotFoundError):
        other.latest("nobody")


def test_references(apicurio: Apicurio) -> None:
    registry = HttpRegistry(apicurio.url)
    inner = Schema("AVRO", '{"type":"record","name":"Address","fields":[{"name":"zip","type":"int"}]}')
    registry.register("address", inner)
    outer = Schema("AVRO", order(("to", "Address"), default=False), (Reference("Address", "address", 1),))
    number = registry.register("shipped-value", outer)
    found = HttpRegistry(apicurio.url).by_id(number)
    assert found.references == outer.references
    assert [(name, one.text) for name, one in registry.resolve(found)] == [("Address", inner.text)]


def test_levels(apicurio: Apicurio) -> None:
    registry = HttpRegistry(apicurio.url)
    registry.register("level-value", Schema("AVRO", order(("a", "int"))))
    ask("PUT", f"{apicurio.url}/config/level-value", {"compatibility": "FULL_TRANSITIVE"})
    assert registry.compatibility("level-value") == "FULL_TRANSITIVE"
    assert registry.mode("level-value") == "READWRITE"
    wrong = Schema("AVRO", order(("a", "long")))
    with pytest.raises(
        IncompatibleSchemaError, match=r"FORWARD compatible with version 1 .*TYPE_MISMATCH"
    ) as told:
        registry.register("level-value", wrong)
    assert "Remedy:" in str(told.value)
    assert len(registry.versions("level-value")) == 1


def test_the_registry_has_the_last_word(apicurio: Apicurio) -> None:
    """What our check lets pass, the registry may refuse: here the level changes after ours was done."""
    registry = HttpRegistry(apicurio.url)
    registry.register("word-value", Schema("AVRO", order(("a", "int"))))
    ask("PUT", f"{apicurio.url}/config/word-value", {"compatibility": "BACKWARD"})
    registry.rules = lambda _subject: CompatibilityRules("NONE")  # type: ignore[method-assign]
    with pytest.raises(IncompatibleSchemaError, match="the registry calls the schema incompatible"):
        registry.register("word-value", Schema("AVRO", order(("a", "int"), ("b", "int"), default=False)))
    # A type that we do not check.
    with pytest.raises(RegistryError, match="status 4"):
        registry.register("word-thrift", Schema("THRIFT", "struct {"))
    with pytest.raises(InvalidSchemaError, match="is not JSON"):
        registry.register("word-value", Schema("AVRO", "{"))
    with pytest.raises(InvalidSchemaError, match="not a Protobuf schema"):
        registry.register("word-proto", Schema("PROTOBUF", "message {"))


def test_deleted_versions(apicurio: Apicurio) -> None:
    registry = HttpRegistry(apicurio.url)
    for fields in ([("a", "int")], [("a", "int"), ("b", "int")]):
        registry.register("gone-value", Schema("AVRO", order(*fields)))
    ask("DELETE", f"{apicurio.url}/subjects/gone-value/versions/1")
    assert [one.version for one in registry.versions("gone-value")] == [2]
    ask("DELETE", f"{apicurio.url}/subjects/gone-value")
    assert registry.versions("gone-value") == []
    assert "gone-value" not in registry.subjects()
    assert "gone-value" in registry.subjects(deleted=True)


def test_a_snapshot_is_a_registry(
    apicurio: Apicurio, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = HttpRegistry(apicurio.url)
    proto = 'syntax = "proto3";\nmessage M { int32 a = 1; }'
    for name, text in (
        ("JSON", '{"$schema":"http://json-schema.org/draft-07/schema#"}'),
        ("PROTOBUF", proto),
    ):
        registry.register(f"saved-{name}", Schema(name, text))
    ask("PUT", f"{apicurio.url}/config/saved-JSON", {"compatibility": "FORWARD"})
    stored = registry.snapshot()
    assert stored.compatibility("saved-JSON") == "FORWARD"
    out = tmp_path / "schemas"
    # Apicurio lists deleted versions, but does not show them.
    assert run(["schemas", "copy", apicurio.url, str(out)]) == (1 if stored.problems else 0)
    assert all("gone-value" in one for one in capsys.readouterr().err.splitlines())
    again = read_directory(out)
    assert files_of(again) == files_of(stored)
    assert again.latest("saved-JSON") == registry.latest("saved-JSON")


def test_commands(apicurio: Apicurio, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    registry = HttpRegistry(apicurio.url)
    number = registry.register("shown-value", Schema("AVRO", order(("a", "int"))))
    assert run(["schemas", "show", "--id", str(number), apicurio.url]) == 0
    assert capsys.readouterr().out == order(("a", "int")) + "\n"
    file = tmp_path / "new.avsc"
    file.write_text(order(("a", "int"), ("b", "int"), default=False))
    arguments = ["shown-value", str(file), apicurio.url]
    assert run(["schemas", "check", "--compatibility", "backward", *arguments]) == 1
    assert "READER_FIELD_MISSING_DEFAULT_VALUE at /fields/1: b:" in capsys.readouterr().out
    assert run(["schemas", "check", "--json", *arguments]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["level"], report["versions"]) == ("NONE", [])
