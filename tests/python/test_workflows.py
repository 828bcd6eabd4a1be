"""The workflows call verbs of the Makefile, which its help lists, and actions by their commits."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github").rglob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
PHONY = set(re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.M)[1].replace("\\\n", " ").split())
HELP = re.findall(r'^\t@echo "make ([\w-]+)', MAKEFILE, re.M)


def verbs(text: str) -> set[str]:
    """The verbs that a workflow calls, directly or as a value of its matrix."""
    words = " ".join(re.findall(r"- run: (?:sudo )?make (.*)", text)).split()
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


def test_what_needs_root_is_installed_before() -> None:
    """A verb that needs programs of the system finds them, since it cannot install them itself."""
    text = (ROOT / ".github/workflows/ci.yml").read_text()
    verb = re.search(r"^([\w-]+):.* clients\b", MAKEFILE, re.M)[1]
    step = f"      - run: sudo make clients\n        if: matrix.verb == '{verb}'\n"
    assert 0 < text.find(step) < text.index('- run: make "$VERB"')


def test_help_lists_every_verb() -> None:
    # Parts of `make test`, which has a line, and what only the release calls.
    parts = {"test-rust", "test-python", "test-spark", "test-interop"}
    assert PHONY - {*HELP} <= parts | {"publish", "clean", "help", "FORCE"}
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

    assert 'make release-check TAG="$GITHUB_REF_NAME" TAGGED=1' in jobs["check"]
    assert "fetch-depth: 0" in jobs["check"]
    assert "actions: read" in jobs["check"]
    for name in ("publish-python", "publish-crates", "release"):
        assert {"check", "crates", "sdist", "wheels", "smoke", "check-dist"} <= before(name)
    writers = [name for name, body in jobs.items() if re.search(r"^      [\w-]+: write", body, re.M)]
    assert writers == ["publish-python", "publish-crates", "release"]


@pytest.mark.parametrize("stamp", ["target/kafka-broker/fetched", "target/interop/fetched"])
def test_jars_follow_the_versions(tmp_path: Path, stamp: str) -> None:
    """Also those that are given on the command line, and back again."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    poms = [f"tests/interop/{name}/pom.xml" for name in ("broker", "old_broker", "oracle", "records")]
    for name in (*poms, "benches/java/connector-pom.xml"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    shutil.copy(ROOT / "tests/interop/versions.mk", tmp_path / "tests/interop")
    programs = {"scripts/prerequisites": "", "bin/mvn": f'echo "$@" >> calls; mkdir -p {Path(stamp).parent}'}
    for name, text in programs.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    def calls(*versions: str) -> str:
        """The calls of Maven, which fetches nothing here."""
        (tmp_path / "calls").write_text("")
        environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        subprocess.run(
            ["make", stamp, *versions], cwd=tmp_path, env=environment, check=True, capture_output=True
        )
        return (tmp_path / "calls").read_text()

    assert "-Dkafka.version=4" in calls()
    assert calls() == ""
    assert "-Dkafka.version=9.8.7" in calls("JUDGES=9.8.7")
    assert calls("JUDGES=9.8.7") == ""
    assert "-Dkafka.version=9.8.7" not in calls()
    assert "-Dkafka.version=1.2.3" in calls("OLD=1.2.3")
    assert calls() != ""
    assert calls() == ""
    (tmp_path / stamp).unlink()
    assert calls() != ""
