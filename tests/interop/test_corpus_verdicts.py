"""Kafka's verdicts are still the same as those recorded in the corpus."""

from __future__ import annotations

from typing import Any

import pytest
from corpus import answer, cases
from corpus_cases import files
from oracle import Builder, Oracle

pytestmark = pytest.mark.interop


def test_stored_verdicts_hold(oracle: Oracle) -> None:
    stored = list(cases())
    for case, verdict in zip(stored, oracle.read(bytes.fromhex(c["hex"]) for c in stored), strict=True):
        kept, found = {field: case[field] for field in answer(verdict)}, answer(verdict)
        if case["kafka_version"] != oracle.version:
            kept, found = without_text(kept), without_text(found)
        assert kept == found, case["id"]


def without_text(stored: dict[str, Any]) -> dict[str, Any]:
    """The verdict with an error as True: versions word them differently, and choose other classes."""
    kept = {**stored, "batches": [one | {"error": one["error"] is not None} for one in stored["batches"]]}
    return kept | {name: stored[name] is not None for name in ("error", "framingError")}


def test_every_case_is_stored(builder: Builder) -> None:
    # The bytes are not compared: those of gzip and zstd depend on the JDK and on the library's build.
    made = {case[0] for group in files(builder).values() for case in group}
    assert made == {case["id"] for case in cases()}
