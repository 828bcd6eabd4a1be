"""`schemas lint --logs`: ids that no schema has, and the schemas that read the values."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from conftest import Cli
from magicbyte import RecordsBuilder
from magicbyte.errors import RefusedError
from magicbyte.jobs.schema_check import lint_schemas
from magicbyte.schema.registry import Schema, StoredRegistry, SubjectVersion


def record(**fields: str) -> str:
    made = [{"name": name, "type": of} for name, of in fields.items()]
    return json.dumps({"type": "record", "name": "R", "fields": made})


def framed(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + struct.pack(">i", schema_id) + payload


def write(directory: Path, values: list[bytes | None], keys: list[bytes | None] | None = None) -> None:
    directory.mkdir()
    builder = RecordsBuilder()
    for offset, value in enumerate(values):
        builder.append(offset, 1000, None if keys is None else keys[offset], value)
    (directory / f"{0:020d}.log").write_bytes(builder.build())


@pytest.fixture
def registry() -> StoredRegistry:
    registry = StoredRegistry()
    registry.compatibility_levels[""] = "NONE"
    for number, (subject, schema) in enumerate(
        [
            ("other-value", Schema("AVRO", record(a="long", b="string"))),
            ("orders-value", Schema("AVRO", record(a="string"))),
            ("orders-value", Schema("AVRO", record(a="int", b="bytes"))),
            ("shape-value", Schema("JSON", '{"type": "object", "required": ["z"]}')),
            ("shape-value", Schema("JSON", '{"type": "object", "required": ["a"]}')),
        ],
        1,
    ):
        version = len(registry.versions(subject)) + 1
        registry.put(SubjectVersion(subject, version, number, schema))
    return registry


def test_schemas_that_read_all(registry: StoredRegistry, tmp_path: Path) -> None:
    # A long and a string; both of the first and the third schema read it.
    write(tmp_path / "orders-0", [framed(40, b"\x02\x04hi"), framed(2, b"\x02x"), None, b"?"])
    write(tmp_path / "orders-1", [framed(40, b"\x04\0")])
    report = lint_schemas(registry, [str(tmp_path)])
    (found,) = report["findings"]
    assert (found["rule"], found["subject"]) == ("ORPHANED_ID", "orders-value")
    assert found["message"] == "no schema has the id 40, which 2 records name"
    assert found["remedy"].endswith("these read all of a sample of 2, the likeliest first: 3, 1")
    assert report["problems"] == []


def test_json_and_keys(registry: StoredRegistry, tmp_path: Path) -> None:
    write(tmp_path / "shape-0", [framed(9, b'{"a": 1}')], [framed(8, b"\xff" * 30)])
    value, key = lint_schemas(registry, [str(tmp_path)])["findings"]
    assert (key["subject"], value["subject"]) == ("shape-key", "shape-value")
    assert key["remedy"] == "find the schema in a backup of the registry, or at its writers"
    assert value["remedy"].endswith("the likeliest first: 5")


def test_any_number_of_ids(registry: StoredRegistry, tmp_path: Path) -> None:
    write(tmp_path / "orders-0", [framed(100 + number, b"\xff") for number in range(150)])
    assert len(lint_schemas(registry, [str(tmp_path)])["findings"]) == 100


def test_what_cannot_be_read(registry: StoredRegistry, tmp_path: Path) -> None:
    write(tmp_path / "orders-0", [framed(2, b"\x02x")])
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    (problem,) = lint_schemas(registry, [str(tmp_path)])["problems"]
    assert problem.startswith("orders-0: ")
    with pytest.raises(RefusedError):
        lint_schemas(registry, [str(tmp_path / "nothing")])


def test_the_command(tmp_path: Path, cli: Cli) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "2.avsc").write_text('"string"')
    logs = tmp_path / "logs"
    logs.mkdir()
    write(logs / "orders-0", [framed(7, b"\x02x")])
    output = cli("schemas", "lint", "--logs", logs, schemas, code=1)
    assert "orders-value: ORPHANED_ID: no schema has the id 7, which 1 records name" in output
    assert "the likeliest first: 2" in output
    write(tmp_path / "logs" / "fine-0", [framed(2, b"\x02x")])
    assert cli("schemas", "lint", "--logs", logs / "fine-0", schemas) == "0 subjects, 0 findings\n"
