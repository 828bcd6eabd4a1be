"""docs/conformance.md: each rule has a home and a proof, and both exist. The links of all pages work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/conformance.md").read_text()
TEST = r"`((?:tests|src|crates)/[\w/-]+\.(?:rs|py))::(\w+)`"
CASE = r"`([a-z]+)::([\w-]+)`"
HOME = r"`((?:src|crates|python)/[\w/-]+\.(?:rs|py))`"


def rules() -> list[list[str]]:
    """The rows of the tables of rules: rule, homes, Kafka class, proofs."""
    tables = TEXT[: TEXT.index("## Where we differ")]
    rows = [line for line in tables.splitlines() if line.startswith("| ") and not line.startswith("| rule |")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_named_tests_exist() -> None:
    named = re.findall(TEST, TEXT)
    assert len(named) > 100
    # In Rust, `#[test]` comes somewhere before it; a helper of that name does not count.
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).exists()
        or not re.search(
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
    rows = rules()
    assert len(rows) > 120
    assert [row for row in rows if not re.search(f"{TEST}|{CASE}|not yet", row[3])] == []


def test_every_rule_has_a_home() -> None:
    """One source file, or two where a rule needs them; only the codecs have four."""
    homes = {row[0]: row[1] for row in rules() if "not yet" not in row[3]}
    assert [rule for rule, home in homes.items() if not re.fullmatch(f"{HOME}(, {HOME}){{0,3}}", home)] == []
    named = {path for home in homes.values() for path in re.findall(HOME, home)}
    assert len(named) > 60
    assert sorted(path for path in named if not (ROOT / path).is_file()) == []


def test_every_home_names_its_kafka_class() -> None:
    """One of the rule's homes names the class, or that of its codec (`GzipCompression`)."""
    unnamed = []
    for rule, homes, classes, _ in rules():
        texts = [(ROOT / path).read_text() for path in re.findall(HOME, homes)]
        names = re.findall(r"`(\w+)`", classes) if texts else []
        unnamed += [(rule, name) for name in names if not re.search(rf"\b\w*{name}\b", "\n".join(texts))]
    assert unnamed == []


def test_every_name_in_backticks_is_checked() -> None:
    """A name in another form than the patterns above would not be checked."""
    names = re.findall(r"`[^`\s]+::[^`\s]+`", TEXT)
    assert [name for name in names if not re.fullmatch(f"{TEST}|{CASE}", name)] == []


@pytest.mark.parametrize(
    "words",
    [
        "KAFKA-3160",
        "control record versions",
        "delete horizon",
        "epoch truncation",
        "index interval",
        "last five batches",
        "last stable offset",
        "sparse offsets after compaction",
        "timestamp type of legacy messages",
        "tombstone horizon",
        "wrapper offset 0",
        "xerial header",
    ],
)
def test_a_rule_is_found_by_its_usual_words(words: str) -> None:
    assert [rule for rule, *_ in rules() if words.lower() in rule.lower()]


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_named_files_exist() -> None:
    """Whole paths only; CHANGELOG.md also names removed files."""
    path = r"`((?:src|crates|python|tests|docs|benches|examples|fuzz|scripts)/[a-z_0-9/-]+\.(?:rs|py|md))\b"
    named = {
        (page.name, name)
        for page in PAGES
        if page.name != "CHANGELOG.md"
        for name in re.findall(path, page.read_text())
    }
    assert len(named) > 150
    assert sorted((page, name) for page, name in named if not (ROOT / name).is_file()) == []


def anchors_of(text: str) -> set[str]:
    """The anchors of a page: those that it writes down, and those that headings have by themselves."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    written = set(re.findall(r'<a id="([^"]+)">', text))
    return written | {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    links = [
        (page, *link)
        for page in PAGES
        for link in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text())
    ]
    assert len(links) > 30
    for page, file, anchor in links:
        target = page.parent / file if file else page
        assert target.exists(), (page.name, file)
        assert not anchor or anchor in anchors_of(target.read_text()), (page.name, anchor)
