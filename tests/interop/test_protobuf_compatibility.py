"""Our verdicts on pairs of Protobuf schemas against those of Apicurio, whose rules are partly others."""

from __future__ import annotations

import urllib.error

import pytest
from protobuf_pairs import PAIRS
from registry_server import Apicurio, ask

pytestmark = pytest.mark.interop


def as_body(schema: str) -> dict[str, str]:
    return {"schema": schema, "schemaType": "PROTOBUF"}


def test_apicurio_agrees(apicurio: Apicurio) -> None:
    differ = []
    for number, pair in enumerate(PAIRS):
        subject = f"protobuf-pair-{number}"
        ask("POST", f"{apicurio.url}/subjects/{subject}/versions", as_body(pair.old))
        ask("PUT", f"{apicurio.url}/config/{subject}", {"compatibility": "BACKWARD"})
        url = f"{apicurio.url}/compatibility/subjects/{subject}/versions/latest"
        try:
            verdict = ask("POST", url, as_body(pair.new))["is_compatible"]
        except urllib.error.HTTPError as error:
            verdict = error.code
        expected = not pair.rules if pair.apicurio is None else pair.apicurio
        if verdict != expected:
            differ.append((pair.name, verdict))
    assert not differ, "\n".join(map(str, differ))
