"""`magicbyte schemas`: what a registry knows, from its topic and from files."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from conftest import KAFKA, Cli
from magicbyte import RecordsBuilder, commands, mount_storage
from magicbyte.errors import InvalidRecordError, RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.schemas import open_registry
from magicbyte.schema.directory import SchemaFileError, files_of, read_directory
from magicbyte.schema.registry import (
    Reference,
    Schema,
    SchemaNotFoundError,
    SchemaReferenceError,
    StoredRegistry,
    SubjectVersion,
)
from magicbyte.schema.schemas_topic import apply

Row = tuple[dict[str, Any], dict[str, Any] | None]


def schema(subject: str, version: int, number: int, text: str = '"string"', **more: Any) -> Row:
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    return key, {"subject": subject, "version": version, "id": number, "schema": text, **more}


def config(subject: str | None, **value: Any) -> Row:
    return {"keytype": "CONFIG", "subject": subject, "magic": 0}, value


def stored(*rows: Row) -> StoredRegistry:
    registry = StoredRegistry()
    for key, value in rows:
        apply(registry, json.dumps(key).encode(), None if value is None else json.dumps(value).encode())
    return registry


def topic(directory: Path, rows: Sequence[tuple[bytes | None, bytes | None]]) -> Path:
    """A `_schemas-0` with these records."""
    builder = RecordsBuilder()
    for offset, (key, value) in enumerate(rows):
        builder.append(offset, 1_700_000_000_000, key, value)
    (directory / "_schemas-0").mkdir(parents=True)
    (directory / "_schemas-0" / f"{0:020}.log").write_bytes(builder.build())
    return directory


def as_bytes(*rows: Row) -> list[tuple[bytes | None, bytes | None]]:
    return [
        (json.dumps(key).encode(), None if value is None else json.dumps(value).encode())
        for key, value in rows
    ]


# --- a real registry's topic ----------------------------------------------------------------------


@pytest.fixture
def real(tmp_path: Path) -> Path:
    shutil.copytree(KAFKA / "schemas_topic", tmp_path / "logs" / "_schemas-0")
    shutil.copytree(KAFKA / "sr_avro", tmp_path / "logs" / "orders-0")
    return tmp_path / "logs"


def test_a_real_topic(real: Path) -> None:
    source, registry = open_registry([str(real)])
    assert source == str(real / "_schemas-0")
    assert registry.problems == []
    lines = (KAFKA / "schemas_topic" / "expected.jsonl").read_text().splitlines()
    expected = [json.loads(bytes.fromhex(one["value"])) for one in map(json.loads, lines) if one["value"]]
    versions = [one for one in expected if "schema" in one]
    assert len(versions) == 5
    for one in versions:
        found = registry.version(one["subject"], one["version"])
        assert (found.id, found.deleted) == (one["id"], one["deleted"])
        assert found.schema.text == one["schema"]
        assert found.schema.schema_type == one.get("schemaType", "AVRO")
        assert registry.by_id(one["id"]) == found.schema
        guid = str(UUID(bytes=hashlib.md5(one["schema"].encode()).digest()))
        assert registry.by_guid(guid) == found.schema
    assert registry.latest("orders-value").version == 2
    assert registry.subjects() == ["clicks-value", "orders-key", "orders-value", "payments-value"]
    assert registry.compatibility("orders-value") == "BACKWARD"


def test_the_command(real: Path, cli: Cli) -> None:
    lines = cli("schemas", "list", real).splitlines()
    assert lines[0].split() == [
        "subject",
        "version",
        "id",
        "type",
        "references",
        "compatibility",
        "mode",
        "state",
    ]
    assert lines[1].split() == ["clicks-value", "1", "3", "JSON", "0", "BACKWARD", "READWRITE", "-"]
    assert len(lines) == 6
    # The partition itself may have any name.
    report = cli.json("schemas", "list", KAFKA / "schemas_topic")
    assert next(one["subject"] for one in report["subjects"]) == "clicks-value"
    assert report["without_subject"] == report["problems"] == []
    text = cli("schemas", "show", "--id", "2", real)
    assert text.startswith('syntax = "proto3";\npackage demo;\n')
    assert (
        json.loads(cli("schemas", "show", "--subject", "orders-value", real))["fields"][3]["name"] == "tags"
    )
    cli("schemas", "show", "--id", "9", real, code=3)
    assert "no schema has the id 9" in cli.error
    cli("schemas", "show", "--id", "1", "--context", ".a", real, code=3)
    assert "in the context .a" in cli.error
    cli("schemas", "show", "--subject", "nobody", real, code=3)
    assert "nobody" in cli.error
    cli("schemas", "show", "--id", "1", "--json", real, code=2)
    # Another topic's partition is read if it is the source itself, and says what is wrong.
    cli("schemas", "list", real / "orders-0", code=1)
    assert "the key is not JSON" in cli.error
    cli("schemas", "list", real / "orders-0", KAFKA / "v2_none", code=2)
    assert "no partition of _schemas below" in cli.error


def test_copies_of_the_topic(real: Path, tmp_path: Path, cli: Cli) -> None:
    shutil.copytree(real, tmp_path / "other")
    cli("schemas", "list", tmp_path, code=2)
    assert "--prefer" in cli.error
    report = cli.json("schemas", "list", "--prefer", tmp_path / "other", tmp_path)
    assert report["source"] == str(tmp_path / "other" / "_schemas-0")
    chosen = commands.schemas(tmp_path, choice=PartitionChoice(prefer=(str(real),)))
    assert chosen["source"] == str(real / "_schemas-0")


# --- what records mean ----------------------------------------------------------------------------


def test_later_records_win() -> None:
    tombstone = ({"keytype": "SCHEMA", "subject": "a", "version": 1, "magic": 1}, None)
    registry = stored(schema("a", 1, 1), schema("a", 2, 2, '"int"'), schema("a", 1, 1, deleted=True))
    assert registry.version("a", 1).deleted
    assert [one.version for one in registry.versions("a")] == [2]
    assert [one.version for one in registry.versions("a", deleted=True)] == [1, 2]
    registry = stored(schema("a", 1, 1), schema("b", 1, 1), tombstone)
    assert registry.subjects(deleted=True) == ["b"]
    # Deleted for good: data of the log may still have the id.
    registry = stored(schema("a", 1, 1), tombstone)
    assert registry.subjects(deleted=True) == []
    assert registry.by_id(1).text == '"string"'
    # Then the id is free, as in a registry.
    registry = stored(schema("a", 1, 1), tombstone, schema("b", 1, 1, '"int"'))
    assert registry.by_id(1).text == '"int"'


def test_deleted_subjects() -> None:
    delete = ({"keytype": "DELETE_SUBJECT", "subject": "a", "magic": 0}, {"subject": "a", "version": 2})
    registry = stored(schema("a", 1, 1), schema("a", 2, 2, "2"), schema("a", 3, 3, "3"), delete)
    assert [one.version for one in registry.versions("a")] == [3]
    registry = stored(schema("a", 1, 1), delete)
    assert registry.subjects() == []
    assert registry.subjects(deleted=True) == ["a"]
    assert registry.by_id(1).text == '"string"'
    with pytest.raises(SchemaNotFoundError, match="all versions of the subject a are deleted"):
        registry.latest("a")
    # Registered again.
    registry = stored(schema("a", 1, 1), delete, schema("a", 2, 1))
    assert registry.latest("a").version == 2
    clear = ({"keytype": "CLEAR_SUBJECT", "subject": "a", "magic": 0}, {"subject": "a"})
    registry = stored(schema("a", 1, 1), schema("b", 1, 1, deleted=True), delete, clear)
    assert registry.subjects(deleted=True) == ["b"]
    clear = ({"keytype": "CLEAR_SUBJECT", "subject": ":.c:", "magic": 0}, {"subject": ":.c:"})
    registry = stored(
        schema(":.c:a", 1, 1, deleted=True),
        schema(":.c:b", 1, 2, "2"),
        schema("a", 1, 1, deleted=True),
        clear,
    )
    assert registry.subjects(deleted=True) == [":.c:b", "a"]


def test_contexts() -> None:
    registry = stored(
        schema("a", 1, 1, "1"),
        schema(":.test:a", 1, 1, "2"),
        config(":.test:", compatibilityLevel="FULL"),
        config(None, compatibilityLevel="NONE"),
        config("b", compatibilityLevel="FORWARD", alias="a"),
        config(":.test:b", alias="a"),
        ({"keytype": "MODE", "subject": ":.test:a", "magic": 0}, {"mode": "IMPORT"}),
        ({"keytype": "MODE", "subject": None, "magic": 0}, {"mode": "READONLY"}),
    )
    assert registry.by_id(1).text == "1"
    assert registry.by_id(1, ".test").text == "2"
    assert [registry.compatibility(one) for one in ("a", "b", ":.test:a", ":.x:a")] == [
        "NONE", "FORWARD", "FULL", "BACKWARD",
    ]  # fmt: skip
    assert [registry.mode(one) for one in ("a", ":.test:a", ":.test:x")] == [
        "READONLY",
        "IMPORT",
        "READWRITE",
    ]
    assert registry.latest("b").subject == "a"
    assert registry.latest(":.test:b").subject == ":.test:a"
    assert (
        stored(config(None, compatibilityLevel="NONE"), ({"keytype": "CONFIG"}, None)).compatibility("a")
        == "BACKWARD"
    )


def test_a_text_is_printed_as_it_is(tmp_path: Path, cli: Cli) -> None:
    text = '{\n\n  "doc": "a\u2028b \u00fc"\n}'
    source = topic(tmp_path, as_bytes(schema("a", 1, 1, text), schema("b", 1, 2, text + "\n")))
    assert (
        cli("schemas", "show", "--id", "1", source)
        == cli("schemas", "show", "--subject", "b", source)
        == text + "\n"
    )


def test_one_id_is_one_schema() -> None:
    registry = stored(schema("a", 1, 1))
    with pytest.raises(InvalidRecordError, match="id 1 of b is that of another schema"):
        apply(registry, *as_bytes(schema("b", 1, 1, '"int"'))[0])  # type: ignore[arg-type]
    assert registry.by_id(1).text == '"string"'
    assert registry.subjects() == ["a"]


def test_references(tmp_path: Path) -> None:
    def uses(*subjects: str) -> list[dict[str, Any]]:
        return [{"name": f"N{one}", "subject": one, "version": -1 if one == "d" else 1} for one in subjects]

    registry = stored(
        schema("d", 1, 4, "d"),
        schema("c", 1, 3, "c", references=uses("d")),
        schema("b", 1, 2, "b", references=uses("d", "c"), deleted=True),
        schema("a", 1, 1, "a", references=uses("b", "c")),
        schema(":.x:d", 1, 5, "x"),
        schema(":.x:c", 1, 6, "y", references=uses("d")),
        schema("loop", 1, 7, "loop", references=uses("back")),
        schema("back", 1, 8, "back", references=uses("loop")),
        schema("lost", 1, 9, "lost", references=uses("nowhere")),
    )
    assert [(name, one.text) for name, one in registry.resolve(registry.by_id(1))] == [
        ("Nd", "d"),
        ("Nc", "c"),
        ("Nb", "b"),
    ]
    assert [one.text for _, one in registry.resolve(registry.by_id(6, ".x"), ".x")] == ["x"]
    with pytest.raises(SchemaReferenceError, match="lead to itself: Nback -> Nloop -> Nback"):
        registry.resolve(registry.by_id(7))
    with pytest.raises(SchemaReferenceError, match="'Nnowhere': no subject has the name nowhere"):
        registry.resolve(registry.by_id(9))
    # A chain that is longer than Python's stack.
    rows = [schema("s0", 1, 0, "0")]
    rows += [schema(f"s{n}", 1, n, str(n), references=uses(f"s{n - 1}")) for n in range(1, 5000)]
    long = stored(*rows)
    assert len(long.resolve(long.by_id(4999))) == 4999


def test_guids() -> None:
    reference = {"name": "N", "subject": "s", "version": 3}
    metadata = {"tags": {"b": ["2", "1"], "a": ["x"]}, "properties": {"k": "v"}, "sensitive": ["s"]}
    registry = stored(
        schema("a", 1, 1, "text", references=[reference]),
        schema("a", 2, 2, "text", metadata=metadata),
        schema("a", 3, 3, "text", ruleSet={"domainRules": []}, md5="AAECAwQFBgcICQoLDA0ODw=="),
        schema("a", 4, 4, "text", ruleSet={"domainRules": []}),
    )
    hashed = [b"textNs\0\0\0\3", b"text\1axb12kvs"]
    guids = [str(UUID(bytes=hashlib.md5(one).digest())) for one in hashed]
    guids.append("00010203-0405-0607-0809-0a0b0c0d0e0f")
    assert [one.schema.guid for one in registry.versions("a")] == [*guids, None]
    assert registry.by_guid(guids[2].upper()).rule_set == {"domainRules": []}
    with pytest.raises(SchemaNotFoundError, match="no schema has the GUID 7"):
        registry.by_guid("7")


# --- hostile topics -------------------------------------------------------------------------------

KEY = b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}'
BROKEN: list[tuple[bytes | None, bytes | None, str]] = [
    (None, b"{}", "without a key"),
    (b"\xff", b"{}", "the key is not JSON"),
    (b"[" * 100_000, b"{}", "the key is not JSON"),
    (b"7", b"{}", "not a JSON object"),
    (b"{}", b"{}", "keytype: expected text"),
    (b'{"keytype":"NEW"}', b"{}", "keytype 'NEW' is unknown: expected one of SCHEMA,"),
    (KEY, b"", "the value is not JSON"),
    (KEY, b"{}", "schema: expected text"),
    (KEY, b'{"schema":"x"}', "id: expected a number from 0"),
    (KEY, b'{"schema":"x","id":true}', "id: expected a number"),
    (KEY, b'{"schema":"x","id":' + b"9" * 5000 + b"}", "not JSON"),
    (KEY, b'{"schema":"\\ud800","id":1}', "half a surrogate pair"),
    (KEY, b'{"schema":"x","id":1,"references":{}}', "references: expected a list"),
    (KEY, b'{"schema":"x","id":1,"references":[7]}', "expected objects with name"),
    (KEY, b'{"schema":"x","id":1,"metadata":7}', "metadata: expected an object"),
    (b'{"keytype":"SCHEMA","subject":"a"}', None, "version: expected a number"),
    (b'{"keytype":"DELETE_SUBJECT"}', b'{"subject":"a","version":"1"}', "version: expected a number"),
    (b'{"keytype":"MODE"}', b"{}", "mode: expected text"),
]


def test_broken_records_are_reported(tmp_path: Path, cli: Cli) -> None:
    rows = [(key, value) for key, value, _ in BROKEN]
    directory = topic(tmp_path, [*rows, *as_bytes(schema("a", 1, 1))])
    report = cli.json("schemas", "list", directory, code=1)
    for number, (problem, (*_, message)) in enumerate(zip(report["problems"], BROKEN, strict=True)):
        assert problem.startswith(f"{directory / '_schemas-0'}: offset {number}: "), problem
        assert message in problem
    assert [one["subject"] for one in report["subjects"]] == ["a"]
    assert "keytype 'NEW'" in cli.error


def test_a_damaged_topic(real: Path, cli: Cli) -> None:
    segment = real / "_schemas-0" / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    data[1200] ^= 1
    segment.write_bytes(data)
    report = cli.json("schemas", "list", real, code=1)
    assert len(report["problems"]) == 1
    assert 0 < len(report["subjects"]) <= 4


def test_any_change_of_records() -> None:
    """Whatever a topic holds, a record is applied or refused, and the directory says the same."""
    generator = random.Random(11)
    rows = as_bytes(
        schema("a", 1, 1, references=[{"name": "N", "subject": "b", "version": 1}]),
        schema("b", 1, 2, '"int"', metadata={"tags": {"x": ["y"]}}, schemaType="JSON"),
        schema(":.c:b", 1, 2, '"int"', deleted=True),
        config("a", compatibilityLevel="FULL", alias="b"),
        ({"keytype": "DELETE_SUBJECT", "subject": "a", "magic": 0}, {"subject": "a", "version": 1}),
    )
    refused = 0
    for _ in range(3000):
        registry = StoredRegistry()
        for row in generator.choices(rows, k=6):
            changed = [bytearray(part or b"") for part in row]
            for part in changed:
                for _ in range(generator.choice((0, 0, 1, 3))):
                    part[generator.randrange(len(part))] = generator.choice(b'"{}[]:,0129\\abnu\xff')
            try:
                apply(registry, bytes(changed[0]), bytes(changed[1]))
            except InvalidRecordError:
                refused += 1
        for one in registry.all_versions():
            assert one.id is not None
            assert registry.by_id(one.id, one.context).text == one.schema.text
        files_of(registry)
    assert 1000 < refused < 17_000


def test_many_records_that_delete_take_no_longer_than_others() -> None:
    """Each takes time only for what it deletes."""
    count = 20_000
    registry = StoredRegistry()
    text = Schema("AVRO", "x", guid="g")
    for number in range(1, count + 1):
        registry.put(SubjectVersion("a", number + count, number, text))
        registry.put(SubjectVersion(f"s{number}", 1, number, text, deleted=True))
    started = time.process_time()
    for _ in range(count):
        registry.delete("a", count)
        registry.clear(":.c:")
        registry.clear("a")
    assert time.process_time() - started < 10  # seconds; each over all versions would take minutes
    assert len(registry.versions("a")) == count
    registry.delete("a", 2 * count)
    registry.clear("")
    assert registry.subjects(deleted=True) == []
    assert registry.by_id(count) == text


def test_long_names_are_cut_in_messages() -> None:
    with pytest.raises(InvalidRecordError) as raised:
        apply(StoredRegistry(), json.dumps({"keytype": "x" * 100_000}).encode(), None)
    assert len(str(raised.value)) < 500


# --- files ----------------------------------------------------------------------------------------


def answers(registry: StoredRegistry) -> Any:
    return (
        registry.all_versions(),
        dict(registry.schemas),
        registry.settings(),
    )


def test_written_files_give_the_same_answers(real: Path, tmp_path: Path, cli: Cli) -> None:
    cli("schemas", "copy", real, tmp_path / "out")
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == [
        "1.avsc", "2.proto", "3.json", "4.avsc", "5.avsc", "schemas.json",
    ]  # fmt: skip
    before = cli.json("schemas", "list", real)
    for place in (tmp_path / "out", tmp_path / "out" / "schemas.json"):
        after = cli.json("schemas", "list", place)
        assert after == {**before, "source": str(place)}
    cli("schemas", "copy", real, tmp_path / "out", code=2)
    assert "is not empty" in cli.error
    cli("schemas", "copy", real, real / "new", code=2)


def test_everything_survives_being_written(tmp_path: Path) -> None:
    gone = ({"keytype": "SCHEMA", "subject": "gone", "version": 1, "magic": 1}, None)
    rows = as_bytes(
        schema("a", 1, 1, "a\r\nb\n", references=[{"name": "N", "subject": "b", "version": 1}]),
        schema("a", 3, 2, "x", deleted=True, metadata={"properties": {"k": "v"}}),
        schema("b", 1, 2, "x"),
        schema("b", 2, 3, "p", schemaType="PLUGIN", ruleSet={"domainRules": []}, md5="A" * 22 + "=="),
        schema(":./..:a", 1, 1, "other", schemaType="PROTOBUF"),
        schema("gone", 1, 9, "gone"),
        gone,
        config(":.c:", compatibilityLevel="FULL"),
        config("x", alias="a", compatibilityPolicy="lenient", compatibilityGroup="major"),
        ({"keytype": "MODE", "subject": None, "magic": 0}, {"mode": "IMPORT"}),
    )
    source = topic(tmp_path / "logs", rows)
    _, registry = open_registry([str(source)])
    assert registry.problems == []
    report = commands.schemas(source, out=tmp_path / "out")
    assert [one["id"] for one in report["without_subject"]] == [9]
    assert registry.rules("x") == ("BACKWARD", "LENIENT", "major")
    assert answers(read_directory(tmp_path / "out")) == answers(registry)


@pytest.mark.parametrize("name", ["a.avsc", "a.proto", "a.json"])
def test_a_byte_order_mark_is_no_part_of_a_schema(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf{}")
    assert read_directory(tmp_path).latest("a").schema.text == "{}"


def test_files_without_an_index(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "7.avsc").write_text('"string"')
    (tmp_path / "orders-value.proto").write_text('syntax = "proto3";')
    (tmp_path / "README.md").write_text("not a schema")
    registry = read_directory(tmp_path)
    assert registry.by_id(7).schema_type == "AVRO"
    assert registry.latest("orders-value").schema.schema_type == "PROTOBUF"
    assert registry.latest("orders-value").id is None
    assert cli("schemas", "list", tmp_path).splitlines()[-1] == "no subject: id 7, AVRO"


def test_files_named_by_uuids(tmp_path: Path, cli: Cli) -> None:
    first, second = "0a4a7f09-9c96-4e4a-a687-fb5de9ef0c63", "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63"
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / f"{second.upper()}.avsc").write_text('"string"')
    (schemas / f"{first}.json").write_text("{}")
    table, *lines = cli("schemas", "list", schemas).splitlines()
    assert table.startswith("subject")
    assert lines == [f"UUID {first}: JSON", f"UUID {second}: AVRO"]
    report = cli.json("schemas", "list", schemas)
    assert [(one["uuid"], one["schema"]) for one in report["by_uuid"]] == [
        (first, "{}"),
        (second, '"string"'),
    ]
    assert report["subjects"] == report["without_subject"] == []
    # A schema may have other names, too, and is found by each of them.
    (schemas / "7.avsc").write_text('"string"')
    (schemas / "map.json").write_text(f'{{"{first}": "7.avsc", "a-value": "7.avsc", "7": "7.avsc"}}')
    report = cli.json("schemas", "list", schemas / "map.json")
    assert [len(report[name]) for name in ("subjects", "without_subject", "by_uuid")] == [1, 0, 1]
    copied = cli("schemas", "copy", schemas / "map.json", tmp_path / "copied")
    assert copied == f"{tmp_path}/copied: 1 subject, 1 version, 1 schema with a UUID\n"
    again = cli.json("schemas", "list", tmp_path / "copied")
    assert again["by_uuid"] == report["by_uuid"]


@pytest.mark.parametrize(
    ("files", "counts"),
    [
        (["b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63.avsc"], "1 schema with a UUID"),
        (["7.avsc", "8.avsc"], "2 schemas with only an id"),
        (["orders-value.avsc"], "1 subject, 1 version"),
        (["7.avsc", "orders-value.avsc"], "1 subject, 1 version, 1 schema with only an id"),
    ],
)
def test_copy_says_what_it_copied(tmp_path: Path, cli: Cli, files: list[str], counts: str) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    for name in files:
        (schemas / name).write_text('"string"')
    copied = tmp_path / "copied"
    assert cli("schemas", "copy", schemas, copied) == f"{copied}: {counts}\n"
    assert cli("schemas", "copy", copied, tmp_path / "again") == f"{tmp_path}/again: {counts}\n"


def test_a_map(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "orders.avsc").write_text('"string"')
    (tmp_path / "files" / "a.txt").write_text("{}")
    reference = {"name": "N", "subject": "orders-value", "version": 1}
    entry = {"file": "files/a.txt", "schemaType": "JSON", "references": [reference]}
    document = {"7": "files/orders.avsc", "orders-value": "files/orders.avsc", "8": entry}
    (tmp_path / "map.json").write_text(json.dumps(document))
    registry = read_directory(tmp_path / "map.json")
    assert registry.latest("orders-value").id == 7
    assert registry.by_id(8).references == (Reference("N", "orders-value", 1),)
    assert [one.text for _, one in registry.resolve(registry.by_id(8))] == ['"string"']
    assert cli("schemas", "show", "--id", "7", tmp_path / "map.json") == '"string"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "expected an object such as"),
        ('{"7": 8}', "7: expected a path"),
        ('{"7": "map.json", "x": {"file": "bytes.avsc"}}', "bytes.avsc is not UTF-8"),
        ('{"7": {"file": "x.txt"}}', "no schemaType"),
        ('{"7": {"file": "map.json", "references": 7}}', "references: expected a list"),
        ('{"schemas": [7]}', r"schemas\[0\]: expected an object with file"),
        ('{"schemas": [{"file": "map.json", "id": "7"}]}', "expected a number"),
        ('{"schemas": [{"file": "map.json", "versions": 7}]}', "versions: expected a list"),
        ('{"schemas": [{"file": "map.json", "versions": [{}]}]}', "expected objects with subject"),
        ('{"schemas": [{"file": "map.json", "versions": [{"subject": "a"}]}]}', "a number as version"),
        ('{"schemas": [], "aliases": {"a": 7}}', "aliases: expected an object of texts"),
        ('{"schemas": [{"file": "map.json", "metadata": 7}]}', "metadata: expected an object"),
    ],
)
def test_wrong_files(tmp_path: Path, cli: Cli, text: str, message: str) -> None:
    (tmp_path / "map.json").write_text(text)
    (tmp_path / "bytes.avsc").write_bytes(b"\xff")
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(SchemaFileError, match=message) as raised:
        read_directory(tmp_path / "map.json")
    assert str(tmp_path) in str(raised.value)
    cli("schemas", "list", tmp_path / "map.json", code=3)


# --- files outside of the directory -------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory of schemas; `secret.json` is beside it."""
    (tmp_path / "secret.json").write_text('"secret"')
    (tmp_path / "schemas" / "inner").mkdir(parents=True)
    (tmp_path / "schemas" / "inner" / "a.avsc").write_text('"string"')
    (tmp_path / "schemas" / "link.avsc").symlink_to(tmp_path / "secret.json")
    (tmp_path / "schemas" / "up").symlink_to("..")
    (tmp_path / "schemas-2").mkdir()
    (tmp_path / "schemas-2" / "b.avsc").write_text('"string"')
    return tmp_path / "schemas"


@pytest.mark.parametrize(
    "file",
    [
        "{parent}/secret.json",
        "../secret.json",
        "inner/../../secret.json",
        "gone/../../secret.json",
        "link.avsc",
        "up/secret.json",
        "up/schemas-2/b.avsc",
        # A directory whose name begins alike.
        "../schemas-2/b.avsc",
        "..",
        "/",
    ],
)
def test_files_outside(outside: Path, cli: Cli, file: str) -> None:
    file = file.format(parent=outside.parent)
    entry = {"file": file, "schemaType": "JSON"}
    documents = [
        ({"8": entry}, "8"),
        ({"a-value": file}, "a-value"),
        ({"schemas": [{"id": 8, **entry}]}, r"schemas\[0\]"),
    ]
    for name in ("schemas.json", "map.json"):
        for document, place in documents:
            (outside / name).write_text(json.dumps(document))
            for source in {outside / name, outside if name == "schemas.json" else outside / name}:
                with pytest.raises(SchemaFileError, match=rf"{name}: {place}: {file} is outside of"):
                    read_directory(source)
                assert "secret" not in cli("schemas", "show", "--id", "8", source, code=3)


@pytest.mark.parametrize("name", ["schemas.json", "8.avsc"])
def test_links_to_files_outside(outside: Path, name: str) -> None:
    (outside / "link.avsc").unlink()
    (outside / name).symlink_to("../secret.json")
    with pytest.raises(SchemaFileError, match=r"is outside of"):
        read_directory(outside)


@pytest.mark.parametrize("file", ["a\0b", "\ud800"])
def test_what_is_not_the_name_of_a_file(tmp_path: Path, file: str) -> None:
    (tmp_path / "map.json").write_text(json.dumps({"8": file}))
    with pytest.raises(SchemaFileError, match="8: not the name of a file"):
        read_directory(tmp_path / "map.json")


@pytest.mark.parametrize(
    "file", ["inner/a.avsc", "./inner/../inner/a.avsc", "{folder}/inner/a.avsc", "up/schemas/inner/a.avsc"]
)
def test_files_inside(outside: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    (outside / "map.json").write_text(json.dumps({"8": file.format(folder=outside)}))
    (outside.parent / "linked").symlink_to(outside)
    for source in (outside / "map.json", outside.parent / "linked" / "map.json"):
        assert read_directory(source).by_id(8).text == '"string"'
    monkeypatch.chdir(outside)
    assert read_directory("map.json").by_id(8).text == '"string"'


def test_links_to_files_inside(outside: Path) -> None:
    # As Kubernetes mounts a ConfigMap; the directory itself may be a link, too.
    (outside / "link.avsc").unlink()
    (outside / "..data").symlink_to("inner")
    (outside / "8.avsc").symlink_to("..data/a.avsc")
    (outside.parent / "linked").symlink_to(outside)
    assert read_directory(outside.parent / "linked").by_id(8).text == '"string"'
    (outside / "inner" / "index.json").write_text('{"9": "inner/a.avsc"}')
    (outside / "schemas.json").symlink_to("..data/index.json")
    assert read_directory(outside.parent / "linked").by_id(9).text == '"string"'


def test_files_outside_of_a_url(outside: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    mount_storage("memory://schemas")
    with fsspec.open("memory://schemas/in/a.avsc", "w") as file:
        file.write('"string"')
    for name in ("../b.avsc", "in/../../b.avsc", str(outside / "inner" / "a.avsc")):
        with fsspec.open("memory://schemas/in/map.json", "w") as file:
            file.write(json.dumps({"8": name}))
        with pytest.raises(SchemaFileError, match=rf"8: {name} is outside of memory://schemas/in"):
            read_directory("memory://schemas/in/map.json")
    with fsspec.open("memory://schemas/in/map.json", "w") as file:
        file.write('{"9": "a.avsc"}')
    assert read_directory("memory://schemas/in/map.json").by_id(9).text == '"string"'


def test_a_url_in_a_local_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    mount_storage("memory://schemas")
    with fsspec.open("memory://schemas/in/a.avsc", "w") as file:
        file.write('"string"')
    (tmp_path / "map.json").write_text('{"8": "memory://schemas/in/a.avsc"}')
    monkeypatch.chdir(tmp_path)
    for source in ("map.json", tmp_path / "map.json"):
        with pytest.raises(FileNotFoundError):
            read_directory(source)


def test_files_that_are_missing(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text('{"7": "gone.avsc"}')
    with pytest.raises(FileNotFoundError, match=r"gone\.avsc"):
        read_directory(tmp_path / "map.json")
    with pytest.raises(RefusedError, match="no partition of _schemas"):
        open_registry([str(KAFKA / "v2_none"), str(KAFKA / "v2_lz4")])


def test_a_registry_in_memory() -> None:
    registry = StoredRegistry()
    registry.put(SubjectVersion("a", 1, 1, Schema("AVRO", "1")))
    registry.put(SubjectVersion("a", 1, 1, Schema("AVRO", "2")))
    assert registry.by_id(1).text == "2"
    assert registry.version("a", 1).schema.guid == str(UUID(bytes=hashlib.md5(b"2").digest()))
    with pytest.raises(SchemaNotFoundError, match="the subject a has no version 2: they are 1 to 1"):
        registry.version("a", 2)
