"""Our verdicts on pairs of JSON Schemas against those of Apicurio, which follows Confluent's strict rules."""

from __future__ import annotations

import json
import urllib.error
from typing import Any

import pytest
from json_pairs import PAIRS
from registry_server import Apicurio, ask

pytestmark = pytest.mark.interop


def as_body(schema: Any) -> dict[str, str]:
    # Without a draft, Apicurio does not take an object without keywords as a schema.
    if isinstance(schema, dict) and "$schema" not in schema:
        schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
    return {"schema": json.dumps(schema), "schemaType": "JSON"}


def test_apicurio_agrees(apicurio: Apicurio) -> None:
    differ = []
    for number, pair in enumerate(PAIRS):
        subject = f"json-pair-{number}"
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
