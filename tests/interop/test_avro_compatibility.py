"""Our verdicts on pairs of Avro schemas are those of Avro's own class: rules and places too."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from avro_pairs import pairs
from magicbyte.schema.compatibility.avro import REMEDIES, incompatibilities
from magicbyte.schema.compatibility.avro_schema import parse_avro

pytestmark = pytest.mark.interop

BUILT = Path(__file__).parents[2] / "target" / "registry"
PAIRS = list(pairs())


@pytest.fixture(scope="module")
def verdicts() -> list[str]:
    """Java's verdicts, from one process."""
    lines = [" ".join(base64.b64encode(one.encode()).decode() for one in pair[1:]) for pair in PAIRS]
    command = [
        "java",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{BUILT}/classes:{BUILT}/lib/*",
        "AvroCompatibility",
    ]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def ours(reader: str, writer: str) -> str:
    found = incompatibilities(parse_avro(reader), parse_avro(writer))
    places = [f"{one.rule}@{one.path}" for one in found]
    return " ".join(["INCOMPATIBLE" if found else "COMPATIBLE", *places])


def test_verdicts(verdicts: list[str]) -> None:
    differ = []
    rules = set()
    for (name, reader, writer), expected in zip(PAIRS, verdicts, strict=True):
        found = ours(reader, writer)
        rules.update(one.partition("@")[0] for one in found.split()[1:])
        if expected.startswith("error"):
            # Java fails instead of giving a verdict, and a registry refuses the schema then.
            assert "matches multiple fields" in expected
            expected = "INCOMPATIBLE READER_FIELD_MATCHES_SEVERAL@/fields/0"
        if found != expected:
            differ.append((name, found, expected))
    assert differ == []
    assert rules == REMEDIES.keys()
