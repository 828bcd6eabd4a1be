"""The published corpus: its files, and conversion between cases and verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reading import FACTS, accepted

DIRECTORY = Path(__file__).parents[1] / "corpus"
RECORD = ("offset", "timestamp", "timestampType", "key", "value", "headers", "sequence")


def cases() -> Iterator[dict[str, Any]]:
    for path in sorted(DIRECTORY.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def answer(verdict: dict[str, Any]) -> dict[str, Any]:
    """A verdict in the form of the corpus: refused batches keep position, header and error, but no records."""
    errors = [verdict["error"], *(batch["error"] for batch in verdict["batches"])]
    batches = [
        dict(zip(FACTS, batch["header"], strict=True)) | {"error": batch["error"]}
        for batch in verdict["batches"]
    ]
    records = [
        {"batch": index} | dict(zip(RECORD, record, strict=True))
        for index, batch in enumerate(verdict["batches"])
        if batch["error"] is None
        for record in batch["records"]
    ]
    return {
        "verdict": "accept" if accepted(verdict) else "reject",
        "error": next((error for error in errors if error), None),
        "framed": verdict["framed"],
        "framingError": verdict["error"],
        "batches": batches,
        "records": records,
    }


def verdict(case: dict[str, Any]) -> dict[str, Any]:
    """The verdict of a case: the inverse of `answer`."""
    batches = [
        {
            "header": [batch[fact] for fact in FACTS],
            "records": [[r[name] for name in RECORD] for r in case["records"] if r["batch"] == index],
            "error": batch["error"],
        }
        for index, batch in enumerate(case["batches"])
    ]
    return {"batches": batches, "framed": case["framed"], "error": case["framingError"]}
