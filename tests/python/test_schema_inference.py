"""`schemas infer`: a schema that all values of the sample are valid by, and which types their columns."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import Cli
from magicbyte import RecordsBuilder
from magicbyte.schema import decode
from magicbyte.schema.inference import Inference


def inferred(*values: Any) -> dict[str, Any]:
    inference = Inference()
    for value in values:
        inference.add(json.dumps(value).encode())
    return inference.schema()


def without_comments(schema: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(schema)
    return json.loads(text, object_hook=lambda found: {name: found[name] for name in found if name[0] != "$"})


@pytest.mark.parametrize(
    ("values", "schema"),
    [
        ([1, 2], {"type": "integer"}),
        ([1, 2.5], {"type": "number"}),
        ([1, None], {"type": ["integer", "null"]}),
        (["a", True], {"type": ["boolean", "string"]}),
        ([[]], {"type": "array"}),
        ([[1], ["a"]], {"type": "array", "items": {"type": ["integer", "string"]}}),
        (
            [{"a": 1}, {"a": None, "b": {}}],
            {
                "type": "object",
                "properties": {"a": {"type": ["integer", "null"]}, "b": {"type": "object"}},
                "required": ["a"],
            },
        ),
    ],
)
def test_types(values: list[Any], schema: dict[str, Any]) -> None:
    assert without_comments(inferred(*values)) == schema


def test_how_many_have_a_property() -> None:
    schema = inferred({"a": 1}, {"a": 2, "b": 3}, [{"a": 1}])
    assert schema["properties"]["b"] == {"type": "integer", "$comment": "in 1 of 2 objects"}
    assert schema["items"]["properties"]["a"]["$comment"] == "in 1 of 1 objects"


def test_names_that_are_data_and_deep_values() -> None:
    assert without_comments(inferred({f"k{n}": n for n in range(201)})) == {"type": "object"}
    deep: Any = 1
    for _ in range(100):
        deep = {"a": deep}
    assert len(json.dumps(inferred(deep))) < 10_000


def test_the_schema_is_bounded() -> None:
    inference = Inference()
    for outer in range(150):
        inference.add(json.dumps({f"k{outer}": {f"n{inner}": {} for inner in range(150)}}).encode())
    assert len(json.dumps(inference.schema())) < 2_000_000


def value_of(r: random.Random, depth: int = 0) -> Any:
    kinds = [None, True, 5, -1.5, "x"] + ([[], {}] * 2 if depth < 3 else [])
    kind = r.choice(kinds)
    if kind == []:
        return [value_of(r, depth + 1) for _ in range(r.randrange(3))]
    if kind == {}:
        return {name: value_of(r, depth + 1) for name in r.sample("abcd", r.randrange(4))}
    return kind


def test_every_value_is_valid_and_decodes() -> None:
    for seed in range(100):
        r = random.Random(seed)
        values = [value_of(r) for _ in range(20)]
        schema = inferred(*values)
        for value in values:
            jsonschema.validate(value, schema, cls=jsonschema.Draft7Validator)
        found = decode([json.dumps(value).encode() for value in values], {}, "json", json.dumps(schema))
        assert found.field("_error").null_count == len(values), schema


def test_the_command(tmp_path: Path, cli: Cli) -> None:
    for partition in range(2):
        builder = RecordsBuilder()
        for offset, value in enumerate([b'{"id": 1}', b'\0\0\0\0\7{"id": 2}', None, b"?", b'{"no": 1}']):
            builder.append(offset, 1000, b'"k"', value)
        directory = tmp_path / f"clicks-{partition}"
        directory.mkdir()
        (directory / f"{0:020d}.log").write_bytes(builder.build())
    report = cli.json("schemas", "infer", "clicks", "--sample", "8", tmp_path)
    assert (report["values"], report["not_json"], report["nulls"], report["problems"]) == (4, 2, 2, [])
    schema = json.loads(cli("schemas", "infer", "clicks", "--sample", "8", tmp_path))
    assert schema == report["schema"]
    assert (schema["title"], schema["required"]) == ("clicks-value", ["id"])
    assert "4 of JSON, 2 others, 2 nulls" in cli.error
    assert json.loads(cli("schemas", "infer", "--key", "clicks", tmp_path))["type"] == "string"
    cli("schemas", "infer", "nothing", tmp_path, code=2)
    path = tmp_path / "clicks-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    cli("schemas", "infer", "clicks", tmp_path, code=1)
