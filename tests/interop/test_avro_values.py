"""Values that Avro's own Java library wrote, with random schemas, decode to what it says they are."""

from __future__ import annotations

import base64
import json
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from magicbyte.schema import decode

pytestmark = pytest.mark.interop

BUILT = Path(__file__).parents[2] / "target" / "registry"
SCHEMAS, VALUES = 200, 20
PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]


class Schemas:
    """Makes random schemas, whose named types have names of their own."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = 0

    def any(self, depth: int = 0, *, in_union: bool = False) -> Any:
        kinds = ["primitive", "primitive", "fixed", "enum"]
        if depth < 3:
            kinds += ["array", "map", "record", "record"] + ["union"] * (not in_union)
        match self._random.choice(kinds):
            case "fixed":
                return {"type": "fixed", "name": self._name(), "size": self._random.randrange(5)}
            case "enum":
                symbols = [f"S{number}" for number in range(self._random.randrange(1, 5))]
                return {"type": "enum", "name": self._name(), "symbols": symbols}
            case "array":
                return {"type": "array", "items": self.any(depth + 1)}
            case "map":
                return {"type": "map", "values": self.any(depth + 1)}
            case "record":
                fields = [
                    {"name": f"f{number}", "type": self.any(depth + 1)}
                    for number in range(self._random.randrange(1, 6))
                ]
                return {"type": "record", "name": self._name(), "fields": fields}
            case "union":
                return self._union(depth)
        return self._random.choice(PRIMITIVES)

    def _union(self, depth: int) -> list[Any]:
        branches: dict[str, Any] = {}
        for _ in range(self._random.randrange(1, 5)):
            one = self.any(depth + 1, in_union=True)
            branches.setdefault(branch(one), one)
        return list(branches.values())

    def _name(self) -> str:
        self._names += 1
        return f"T{self._names}"


def branch(schema: Any) -> str:
    """What Avro's JSON calls a branch of a union."""
    if isinstance(schema, str):
        return schema
    name: str = schema.get("name", schema["type"])
    return name


def expected(schema: Any, value: Any) -> Any:
    """A value of Avro's JSON as our columns have it, which have the types of Spark's `from_avro`."""
    if isinstance(schema, list):
        return of_union(schema, value)
    match schema if isinstance(schema, str) else schema["type"]:
        case "bytes" | "fixed":
            return value.encode("latin-1")
        case "float":
            return struct.unpack("f", struct.pack("f", value))[0]
        case "array":
            return [expected(schema["items"], one) for one in value]
        case "map":
            return {key: expected(schema["values"], one) for key, one in value.items()}
        case "record":
            return {one["name"]: expected(one["type"], value[one["name"]]) for one in schema["fields"]}
    return value


def of_union(schema: list[Any], value: Any) -> Any:
    branches = [one for one in schema if one != "null"]
    if value is None:
        return None
    ((name, content),) = value.items()
    (taken,) = (one for one in branches if branch(one) == name)
    found = expected(taken, content)
    numbers = {branch(one) for one in branches}
    if len(branches) == 1 or numbers in ({"int", "long"}, {"float", "double"}):
        return found
    return {f"member{number}": found if one is taken else None for number, one in enumerate(branches)}


def ours(value: Any, like: Any) -> Any:
    """A value of our column, with maps as dicts."""
    if isinstance(like, dict):
        items = value.items() if isinstance(value, dict) else value
        return {key: ours(one, like.get(key)) for key, one in items}
    if isinstance(like, list):
        return [ours(one, other) for one, other in zip(value, like, strict=True)]
    return value


def test_values() -> None:
    schemas = [Schemas(seed).any() for seed in range(SCHEMAS)]
    lines = [
        f"{base64.b64encode(json.dumps(schema).encode()).decode()} {VALUES} {seed}"
        for seed, schema in enumerate(schemas)
    ]
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{BUILT}/classes:{BUILT}/lib/*", "AvroValues"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    written = [[base64.b64decode(one) for one in line.split(" ")] for line in done.stdout.splitlines()]
    assert len(written) == SCHEMAS * VALUES
    for number, schema in enumerate(schemas):
        pairs = written[number * VALUES : (number + 1) * VALUES]
        payloads = [b"\0\0\0\0\7" + binary for binary, _ in pairs]
        result = decode(payloads, {7: json.dumps(schema)})
        assert result.field("_error").null_count == VALUES, (schema, result.field("_error"))
        for value, (_, text) in zip(result.field("value").to_pylist(), pairs, strict=True):
            like = expected(schema, json.loads(text))
            assert ours(value, like) == like, schema
