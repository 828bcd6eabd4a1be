"""Our verdicts on pairs of Avro schemas are those of Avro's own class: rules and places too."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from avro_pairs import DEFAULTS, field, pairs, record
from magicbyte.schema import decode
from magicbyte.schema.compatibility.avro import REMEDIES, incompatibilities
from magicbyte.schema.compatibility.avro_defaults import refuse_invalid_defaults
from magicbyte.schema.compatibility.avro_schema import parse_avro
from magicbyte.schema.invalid_schema import InvalidSchemaError

pytestmark = pytest.mark.interop

BUILT = Path(__file__).parents[2] / "target" / "registry"
PAIRS = list(pairs())


OLD = json.dumps(record(("a", "int")))
CASES = [
    (json.dumps(record(("a", "int"), field("b", type_, default=default))), is_valid)
    for type_, valid, invalid in DEFAULTS
    for is_valid, defaults in ((True, valid), (False, invalid))
    for default in defaults
]


@pytest.fixture(scope="module")
def verdicts() -> list[str]:
    return asked([pair[1:] for pair in PAIRS])


def asked(pairs: Sequence[Sequence[str]]) -> list[str]:
    """Java's verdicts, from one process."""
    lines = [" ".join(base64.b64encode(one.encode()).decode() for one in pair) for pair in pairs]
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


def test_defaults() -> None:
    """Java refuses a new schema for the defaults that we refuse, and reads the others."""
    answers = asked([(new, OLD) for new, _ in CASES])
    assert [
        (new, answer)
        for (new, valid), answer in zip(CASES, answers, strict=True)
        if valid != (answer == "COMPATIBLE")
    ] == []
    for new, valid in CASES:
        if valid:
            refuse_invalid_defaults(parse_avro(new))
        else:
            with pytest.raises(InvalidSchemaError, match=r"^/fields/1: b: the default "):
                refuse_invalid_defaults(parse_avro(new))


@pytest.mark.parametrize(("new", "valid"), CASES)
def test_what_is_compatible_decodes(new: str, valid: bool) -> None:
    """A registered schema may have a default that is not valid and is read nevertheless."""
    rules = {one.rule for one in incompatibilities(parse_avro(new), parse_avro(OLD))}
    (row,) = decode([b"\0\0\0\0\7\2"], {7: OLD}, "avro", new).to_pylist()
    assert rules == (set() if row["_error"] is None else {"READER_FIELD_MISSING_DEFAULT_VALUE"}), row
    assert row["_error"] is None or not valid
