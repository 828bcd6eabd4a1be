"""Each test that docs/conformance.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_named_tests_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.(?:rs|py))::(\w+)`", (ROOT / "docs/conformance.md").read_text())
    assert len(named) > 10
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not re.search(rf"\b(fn|def) {name}\b", (ROOT / path).read_text())
    ]
    assert missing == []
