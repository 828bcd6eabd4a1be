"""The workflows call verbs of the Makefile, which its help lists, and actions by their commits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github").rglob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
PHONY = set(re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.M)[1].replace("\\\n", " ").split())
HELP = re.findall(r'^\t@echo "make ([\w-]+)', MAKEFILE, re.M)


def verbs(text: str) -> set[str]:
    """The verbs that a workflow calls, directly or as a value of its matrix."""
    words = " ".join(re.findall(r"- run: make (.*)", text)).split()
    called = {word for word in words if not re.search(r'[="$]', word)}
    if matrix := re.search(r"^ +verb:\n((?: +- [\w-]+\n)+)", text, re.M):
        called.update(re.findall(r"- ([\w-]+)", matrix[1]))
    return called


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_verbs(path: Path) -> None:
    assert verbs(path.read_text()) <= PHONY


def test_every_kind_of_check_is_called() -> None:
    called = verbs((ROOT / ".github/workflows/ci.yml").read_text())
    parts = re.search(r"^test: (.*)$", MAKEFILE, re.M)[1].split()
    assert len(called) > 10
    assert {*parts} <= called, "CI leaves out a part of `make test`"


def test_help_lists_every_verb() -> None:
    # Parts of `make test`, which has a line, and what only the release calls.
    parts = {"test-rust", "test-python", "test-spark", "test-interop"}
    assert PHONY - {*HELP} <= parts | {"publish", "clean", "help"}
    assert len(HELP) == len({*HELP})


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_commits(path: Path) -> None:
    for action in re.findall(r"^ +(?:- )?uses: (.*)$", path.read_text(), re.M):
        if not action.startswith("./"):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_nothing_is_published_unchecked() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text()
    jobs = dict(re.findall(r"^  ([\w-]+):\n((?:    .*\n|\n)+)", text.partition("\njobs:\n")[2], re.M))
    needs = {
        name: re.findall(r"[\w-]+", (re.search(r"^    needs: (.*)$", body, re.M) or [None, ""])[1])
        for name, body in jobs.items()
    }

    def before(name: str) -> set[str]:
        return {*needs[name]}.union(*(before(earlier) for earlier in needs[name]))

    assert "make release-check" in jobs["check"]
    for name in ("publish-python", "publish-crates", "release"):
        assert {"check", "crates", "sdist", "wheels", "smoke", "check-dist"} <= before(name)
    writers = [name for name, body in jobs.items() if re.search(r"^      [\w-]+: write", body, re.M)]
    assert writers == ["publish-python", "publish-crates", "release"]
