"""`schemas infer`: a schema that all values of the sample are valid by, and which types their columns."""

from __future__ import annotations

import json
import random
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import jsonschema
import pytest
from conftest import Cli
from magicbyte import RecordsBuilder
from magicbyte.jobs.find.partitions import list_partitions
from magicbyte.jobs.find.sample import first_rows
from magicbyte.model.listings import Problem
from magicbyte.schema import decode
from magicbyte.schema.inference import Inference


def inferred(*values: Any) -> dict[str, Any]:
    inference = Inference()
    inference.add(*(json.dumps(value).encode() for value in values))
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


# --- what is JSON -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b'{"a": NaN}',
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        "{}".encode("utf-16-le"),
        "1".encode("utf-32"),
        b'"\\ud800"',
        b'{"\\ud800": 1}',
        b'{"a": {"b": ["\\udc00"]}}',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b"",
        b" ",
        b"1 2",
        b"01",
        b"+1",
        b".5",
        b"'a'",
        b'"\n"',
        b"[1,]",
        b"[" * 100_000,
    ],
)
def test_what_is_not_json(value: bytes) -> None:
    inference = Inference()
    inference.add(value, b"1")
    assert (inference.values, inference.not_json, inference.nulls) == (1, 1, 0)
    assert inference.schema()["type"] == "integer"


@pytest.mark.parametrize(
    ("texts", "schema"),
    [
        (["null", "1"], {"type": ["integer", "null"]}),
        (["null"], {"type": "null"}),
        (["9223372036854775807", "-9223372036854775808"], {"type": "integer"}),
        (["9223372036854775808"], {"type": "integer", "maximum": 2**64 - 1}),
        (["18446744073709551616", "1"], {"type": "integer", "maximum": 2**64}),
        (["-9223372036854775809"], {"type": "integer", "minimum": 1 - 2**64}),
        (
            ["-1" + "0" * 30, "1" + "0" * 40],
            {"type": "integer", "minimum": -(10**30), "maximum": 10**40},
        ),
        (["18446744073709551616", "null"], {"type": ["integer", "null"], "maximum": 2**64}),
        # A double has no more than these.
        (["18446744073709551616", "0.5"], {"type": "number"}),
        (["1e308", "-1e308"], {"type": "number"}),
        # No column but text has these.
        (["1e999"], {}),
        (["-1e999", "1"], {}),
        (["1" + "0" * 400], {}),
        (["1" + "0" * 400, "0.5", "null"], {}),
    ],
)
def test_numbers_of_any_size(texts: list[str], schema: dict[str, Any]) -> None:
    inference = Inference()
    inference.add(*(text.encode() for text in texts))
    assert without_comments(inference.schema()) == schema
    assert inference.not_json == 0
    inside = Inference()
    inside.add(*(b'{"a": [%s]}' % text.encode() for text in texts))
    assert without_comments(inside.schema())["properties"]["a"]["items"] == schema
    for one in (inference, inside):
        wrap = b"%s" if one is inference else b'{"a": [%s]}'
        values = [wrap % text.encode() for text in texts]
        rows = decode(values, None, "json", json.dumps(one.schema()))
        assert rows.field("_error").null_count == len(values), rows.field("_error")
        for value in values:
            jsonschema.validate(json.loads(value), one.schema(), cls=jsonschema.Draft7Validator)


def test_a_name_that_occurs_twice() -> None:
    inference = Inference()
    values = [b'{"a": [1], "a": 1}', b'{"a": 1, "b": null}']
    inference.add(*values)
    schema = inference.schema()
    assert schema["properties"]["a"]["type"] == ["array", "integer"]
    assert [one["$comment"][:9] for one in schema["properties"].values()] == ["in 2 of 2", "in 1 of 2"]
    assert schema["required"] == ["a"]
    assert decode(values, None, "json", json.dumps(schema)).field("_error").null_count == 2


@pytest.mark.parametrize("depth", [39, 41, 60, 130, 500, 5000])
def test_depth(depth: int) -> None:
    for value in (b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth):
        inference = Inference()
        inference.add(value)
        if inference.values:
            rows = decode([value], None, "json", json.dumps(inference.schema()))
            assert rows.field("_error").to_pylist() == [None]
        assert inference.values == 1 or depth > 500


MARKS = ["{", "}", "[", "]", ",", ":", '"a":', "NaN", "\ufeff", "\0", '"\\ud83d"']
SCALARS = ["1", "-0", "-0.0", "1.0", "1e2", "1e999", "1e-999", "9223372036854775808", "null", "true", '"a"']
SCALARS += ['"\\ud83d\\ude00"', '"\\u0000"', " 7 "]


def random_text(r: random.Random, depth: int = 0) -> str:
    kind = r.randrange(6 if depth < 4 else 3)
    if kind == 0:
        return "".join(r.choice(MARKS + SCALARS) for _ in range(r.randrange(3)))
    if kind < 3:
        return r.choice(SCALARS)
    items = [random_text(r, depth + 1) for _ in range(r.randrange(4))]
    if kind == 3:
        return f"[{','.join(items)}]"
    return "{" + ",".join(f'"{r.choice("aabAB")}":{item}' for item in items) + "}"


def test_what_is_counted_as_json_decodes() -> None:
    counted = 0
    for seed in range(300):
        r = random.Random(seed)
        values = [random_text(r).encode() for _ in range(12)]
        inference = Inference("none")
        inference.add(*values)
        rows = decode(values, None, "json", json.dumps(inference.schema()), framing="none")
        assert rows.field("_error").null_count == inference.values, (seed, values, rows.field("_error"))
        counted += inference.values
    assert 1000 < counted < 3000


# --- framings ---------------------------------------------------------------------------------------

GLUE = UUID("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63").bytes
FRAMED = {
    "bare": (b"", []),
    "confluent": (b"\0\0\0\0\7", []),
    "guid": (b"\1" + GLUE, []),
    "apicurio": (b"\0\0\0\0\0\0\0\0\7", []),
    "glue": (b"\3\0" + GLUE, []),
    "single-object": (b"\xc3\1" + GLUE[:8], []),
    "header": (b"", [("__value_schema_id", b"\0\0\0\0\7")]),
    "apicurio header": (b"", [("apicurio.value.globalId", b"\0" * 7 + b"\7")]),
}


@pytest.mark.parametrize("framing", FRAMED)
def test_framings(tmp_path: Path, cli: Cli, framing: str) -> None:
    head, headers = FRAMED[framing]
    write(tmp_path / "clicks-0", [head + b'{"id": 1}', head + b'{"id": null}', head + b"?", None], headers)
    report = cli.json("schemas", "infer", "clicks", tmp_path)
    assert (report["values"], report["not_json"], report["nulls"]) == (2, 1, 1)
    assert report["schema"]["properties"]["id"]["type"] == ["integer", "null"]


def test_values_that_are_deflated(tmp_path: Path, cli: Cli) -> None:
    head = b"\3\5" + GLUE
    bomb = zlib.compress(b" " * (200 << 20) + b"1")
    write(tmp_path / "clicks-0", [head + zlib.compress(b'{"id": 1}'), head + bomb, head + b"no zlib"])
    report = cli.json("schemas", "infer", "clicks", tmp_path)
    assert (report["values"], report["not_json"]) == (1, 2)


def test_the_framing_may_be_given(tmp_path: Path, cli: Cli) -> None:
    # An id of 8 bytes that begins like one of 4, and one like no other framing.
    value = b"\0\0\0\1\0\0\0\0\7[1]"
    write(tmp_path / "clicks-0", [value], keys=[value])
    cli("schemas", "infer", "clicks", tmp_path, code=2)
    assert "none of the 1 values" in cli.error
    for options in (["--value-framing", "apicurio"], ["--key", "--key-framing", "apicurio"]):
        assert cli.json("schemas", "infer", *options, "clicks", tmp_path)["schema"]["type"] == "array"
    # The framing of the other column says nothing.
    cli("schemas", "infer", "--key-framing", "apicurio", "clicks", tmp_path, code=2)
    cli("schemas", "infer", "--key", "--value-framing", "apicurio", "clicks", tmp_path, code=2)
    write(tmp_path / "bare-0", [b"\0\0\0\0\0071"])
    cli("schemas", "infer", "--value-framing", "none", "bare", tmp_path, code=2)
    cli("schemas", "infer", "--value-framing", "avro", "bare", tmp_path, code=2)


# --- the sample -------------------------------------------------------------------------------------


def write(
    directory: Path,
    values: Sequence[bytes | None],
    headers: Sequence[tuple[str, bytes]] = (),
    *,
    keys: Sequence[bytes] | None = None,
    batch: int = 100,
) -> None:
    """A partition with these records, some of them in each batch."""
    directory.mkdir()
    data = b""
    for first in range(0, len(values), batch):
        builder = RecordsBuilder()
        for offset in range(first, min(first + batch, len(values))):
            key = b"k" if keys is None else keys[offset]
            builder.append(offset, 1000, key, values[offset], list(headers))
        data += builder.build()
    (directory / f"{0:020d}.log").write_bytes(data)


@pytest.mark.parametrize(
    ("sizes", "count", "taken"),
    [
        ([5] * 7, 2, [1, 1, 0, 0, 0, 0, 0]),
        ([5] * 7, 7, [1] * 7),
        ([5] * 7, 10, [2] * 5 + [0] * 2),
        ([0] * 11 + [20_000], 10_000, [0] * 11 + [10_000]),
        ([20_000] + [0] * 11, 10_000, [10_000] + [0] * 11),
        ([1, 10, 100], 60, [1, 10, 49]),
        ([1, 10, 100], 1000, [1, 10, 100]),
        ([1000, 3, 1000], 1003, [500, 3, 500]),
        ([0, 0], 5, [0, 0]),
        ([], 5, []),
    ],
)
def test_the_size_of_the_sample(tmp_path: Path, sizes: list[int], count: int, taken: list[int]) -> None:
    for partition, size in enumerate(sizes):
        write(tmp_path / f"t-{partition:02}", [b"%d" % partition] * size)
    listings = list_partitions([str(tmp_path)]) if sizes else []
    problems: list[Problem] = []
    rows = list(first_rows(listings, ["value"], count, problems))
    found = Counter(value for batch in rows for value in batch.column("value").to_pylist())
    assert [found[b"%d" % partition] for partition in range(len(sizes))] == taken
    assert problems == []


def test_a_sample_has_no_record_twice(tmp_path: Path) -> None:
    for partition, size in enumerate([0, 7, 1000, 333]):
        write(tmp_path / f"t-{partition}", [b"%d/%d" % (partition, n) for n in range(size)], batch=7)
    listings = list_partitions([str(tmp_path)])
    for count in (1, 5, 100, 1000, 1339, 1340, 5000):
        values = [
            value
            for rows in first_rows(listings, ["value"], count, [])
            for value in rows.column("value").to_pylist()
        ]
        assert len(values) == len(set(values)) == min(count, 1340)


def test_damage_in_a_sample_is_a_problem_once(tmp_path: Path) -> None:
    write(tmp_path / "t-0", [b"1"] * 50, batch=10)
    write(tmp_path / "t-1", [], batch=10)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    # In the first batch: the share of the first round is in the later ones.
    data[70] ^= 1
    path.write_bytes(data)
    problems: list[Problem] = []
    rows = list(first_rows(list_partitions([str(tmp_path)]), ["value"], 45, problems))
    assert (sum(batch.num_rows for batch in rows), len(problems)) == (40, 1)


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
