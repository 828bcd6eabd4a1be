"""Random bodies of requests and responses, made by the table of Kafka's messages."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from random import Random
from typing import Any

TABLE = json.loads(
    (Path(__file__).parents[2] / "crates/magicbyte-protocol/src/message/messages.json").read_text()
)
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TEXTS = ["", "a", "orders", "Größe", "\U0001f600", "x" * 127, "x" * 128, "x" * 300]


def definition(kind: str, key: int, version: int) -> dict[str, Any]:
    """The definition of a request or response in a version."""
    (found,) = [
        one
        for one in TABLE
        if (one["type"], one.get("apiKey")) == (kind, key) and version in numbers(one["validVersions"])
    ]
    return found


def numbers(text: str) -> range:
    """The versions of "none", "3", "0-2" or "4+"."""
    if text == "none":
        return range(0)
    first, dash, last = text.removesuffix("+").partition("-")
    return range(int(first), 1 << 15 if text.endswith("+") else int(last if dash else first) + 1)


def structure(fields: list[dict[str, Any]], version: int, random: Random) -> dict[str, Any]:
    """Values of all fields of a version, and of some that are tagged."""
    made = {}
    for field in fields:
        tagged = version in numbers(field.get("taggedVersions", "none"))
        if version in numbers(field["versions"]) and not (tagged and random.random() < 0.5):
            made[field["name"]] = value(field, version, random)
    return made


def value(field: dict[str, Any], version: int, random: Random) -> Any:
    if version in numbers(field.get("nullableVersions", "none")) and random.random() < 0.3:
        return None
    if field["type"].startswith("[]"):
        return [single(field, version, random) for _ in range(random.choice([0, 1, 1, 2, 3]))]
    return single(field, version, random)


def single(field: dict[str, Any], version: int, random: Random) -> Any:
    kind = field["type"].removeprefix("[]")
    if kind == "struct":
        return structure(field["fields"], version, random)
    if kind in BITS:
        n = random.getrandbits(BITS[kind]) - (1 << BITS[kind] - 1)
        return (
            random.choice([n, 0, -1, 1, field.get("default") if field.get("default") != "null" else 0]) or 0
        )
    if kind == "uint16":
        return random.getrandbits(16)
    if kind == "uint32":
        return random.getrandbits(32)
    if kind == "uuid":
        return base64.urlsafe_b64encode(random.randbytes(16)).decode().rstrip("=")
    if kind in ("bytes", "records"):
        return random.randbytes(random.choice([0, 1, 200]))
    return {"bool": random.random() < 0.5, "float64": random.gauss(0, 1e9), "string": random.choice(TEXTS)}[
        kind
    ]
