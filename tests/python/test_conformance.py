"""What docs/conformance.md names exists: tests, cases of the corpus; no rule is without one; links hold."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/conformance.md").read_text()
TEST = r"`((?:tests|src)/[\w/]+\.(?:rs|py))::(\w+)`"
CASE = r"`([a-z]+)::([\w-]+)`"


def test_named_tests_exist() -> None:
    named = re.findall(TEST, TEXT)
    assert len(named) > 100
    # In Rust the attribute stands somewhere above; a helper of that name would be none.
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not re.search(
            rf"#\[test\]\n(\s*#\[.*\n)*\s*fn {name}\b|\n(    )?def {name}\b", (ROOT / path).read_text()
        )
    ]
    assert missing == []


def test_named_cases_exist() -> None:
    named = re.findall(CASE, TEXT)
    assert len(named) > 50
    cases = {
        (path.stem, json.loads(line)["id"])
        for path in (ROOT / "tests/corpus").glob("*.jsonl")
        for line in path.read_text().splitlines()
    }
    assert sorted(set(named) - cases) == []


def test_every_rule_has_its_proof() -> None:
    rules = TEXT[: TEXT.index("## Where we differ")]
    rows = [line for line in rules.splitlines() if line.startswith("| ") and not line.startswith("| rule |")]
    assert len(rows) > 80
    assert [row for row in rows if not re.search(f"{TEST}|{CASE}", row) and "**not yet**" not in row] == []


def test_every_name_in_backticks_is_checked() -> None:
    """A name that the patterns above do not know would be checked by nobody."""
    names = re.findall(r"`[^`\s]+::[^`\s]+`", TEXT)
    assert [name for name in names if not re.fullmatch(f"{TEST}|{CASE}", name)] == []


def test_links_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    links = [
        (page, *link)
        for page in pages
        for link in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text())
    ]
    assert len(links) > 30
    for page, file, anchor in links:
        target = page.parent / file if file else page
        assert target.exists(), (page.name, file)
        assert not anchor or f'<a id="{anchor}">' in target.read_text(), (page.name, anchor)
