"""Keys and values that Apicurio's own serializers write, with the schemas of its registry."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from magicbyte.schema import ColumnDecoder
from magicbyte.schema.decoding import SCHEMA_TYPES
from magicbyte.schema.http_registry import HttpRegistry
from registry_server import Apicurio, ask

pytestmark = pytest.mark.interop

BUILT = Path(__file__).parents[2] / "target" / "registry"
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
JSON = '{"type": "object", "properties": {"a": {"type": "integer"}}}'


def test_values_of_the_serializers(apicurio: Apicurio) -> None:
    for column in ("key", "value"):
        body = {"schemaType": "JSON", "schema": JSON}
        ask("POST", f"{apicurio.url}/subjects/json-{column}/versions", body)
    url = apicurio.url.replace("ccompat/v7", "registry/v3")
    command = [
        "java",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{BUILT}/classes:{BUILT}/lib/*",
        "ApicurioWrites",
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    registry = HttpRegistry(apicurio.url)
    seen: Counter[str] = Counter()
    for line in done.stdout.splitlines():
        name, column, setting, value, *found = line.split("\t")
        headers = [
            {"key": key, "value": bytes.fromhex(content)}
            for key, _, content in (header.partition("=") for header in found)
        ]
        batch = pa.record_batch(
            {
                column: pa.array([bytes.fromhex(value)], pa.binary()),
                "headers": pa.array([headers], HEADERS),
            }
        )
        (payload,) = (one for one in SCHEMA_TYPES if one == name)
        decoder = ColumnDecoder(registry, None, payload, is_key=column == "key")
        rows = decoder.decode(batch)
        assert rows.column(decoder.error_column).to_pylist() == [None], line
        assert rows.column(column)[0].as_py().replace(" ", "") == '{"a":5}', line
        seen[f"{name} {setting}"] += 1
    settings = ("id", "long", "header")
    assert seen == Counter(
        {f"{name} {one}": 4 if name == "protobuf" else 2 for name in SCHEMA_TYPES for one in settings}
    )
