"""Commands that write a single file replace an earlier version of it, and never other data."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import Cli
from magicbyte import RefusedError
from replicas import batches, content, replica

Door = Callable[[Path, Path], tuple[object, ...]]
DOORS: dict[str, Door] = {
    "diff --cache": lambda file, logs: ("diff", "--cache", file, logs, logs),
    "audit --offsets-out": lambda file, logs: ("audit", "--misrouted", "--offsets-out", file, logs),
    "explain --html": lambda file, logs: ("explain", "--html", file, logs),
    "advise --html": lambda file, logs: ("advise", "--html", file, logs),
    "cluster --html": lambda file, logs: ("cluster", "--html", file, logs),
    "verify --html": lambda file, logs: (
        "verify",
        "--html",
        file,
        "--certificate",
        logs.parent / "certificate.json",
        logs,
    ),
}
"""The command that writes each of these files."""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    root = replica(tmp_path / "logs", {0: batches(0, 50)})
    magicbyte.recover(root, tmp_path / "out", certify=True)
    (tmp_path / "out" / "certificate.json").rename(tmp_path / "certificate.json")
    return root


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Door:
    return DOORS[request.param]


def log_in(root: Path) -> Path:
    return root / "orders-0" / f"{0:020}.log"


def refused(cli: Cli, command: tuple[object, ...], words: str) -> None:
    cli(*command, code=2)
    assert words in cli.error


def test_its_own_file_is_replaced(door: Door, logs: Path, tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "file"
    cli(*door(file, logs), code=None)
    first = file.read_text()
    assert first
    for earlier in (first, "", first[:5], first[: len(first) // 2]):
        file.write_text(earlier)
        cli(*door(file, logs), code=None)
        assert file.read_text()[:100] == first[:100]
        assert len(file.read_text()) >= len(first) // 2


@pytest.mark.parametrize("other", ["x", "[]", '{"a": 1}', "<!DOCTYPE html><p>", "{}\n", "\0"])
def test_another_file_stays(door: Door, logs: Path, tmp_path: Path, cli: Cli, other: str) -> None:
    file = tmp_path / "file"
    file.write_text(other)
    refused(cli, door(file, logs), f"{file} exists and is not a")
    assert file.read_text() == other


def test_a_directory_that_does_not_exist(door: Door, logs: Path, tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "none" / "file"
    refused(cli, door(file, logs), f"{file.parent} does not exist")
    assert not file.parent.exists()


def test_a_segment_beside_the_source_stays(door: Door, logs: Path, tmp_path: Path, cli: Cli) -> None:
    other = replica(tmp_path / "other", {0: batches(0, 50)})
    before = content(other)
    refused(cli, door(log_in(other), logs), "exists and is not a")
    assert content(other) == before


@pytest.mark.parametrize(
    "name",
    [f"orders-0/{0:020}.log", f"orders-0/{50:020}.log", "orders-0/page", "page"],
)
def test_the_source_is_only_read(door: Door, logs: Path, cli: Cli, name: str) -> None:
    """Neither is anything new put into it."""
    before = content(logs)
    refused(cli, door(logs / name, logs), "overlap: choose another output")
    assert content(logs) == before


def test_a_link_leads_into_the_source(door: Door, logs: Path, tmp_path: Path, cli: Cli) -> None:
    before = content(logs)
    link = tmp_path / "link"
    for target in (log_in(logs), logs / "new"):
        link.symlink_to(target)
        refused(cli, door(link, logs), "overlap: choose another output")
        link.unlink()
    (tmp_path / "directory").symlink_to(logs)
    refused(cli, door(tmp_path / "directory" / "new", logs), "overlap: choose another output")
    assert content(logs) == before


def test_an_empty_segment_is_data(door: Door, logs: Path, cli: Cli) -> None:
    """A broker may have created it for what it is going to append."""
    empty = logs / "orders-0" / f"{50:020}.log"
    empty.touch()
    refused(cli, door(empty, logs), "overlap: choose another output")
    assert empty.read_bytes() == b""


def test_a_link_to_an_earlier_file_is_followed(door: Door, logs: Path, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "kept").mkdir()
    file, link = tmp_path / "kept" / "file", tmp_path / "link"
    cli(*door(file, logs), code=None)
    link.symlink_to(file)
    file.write_text(file.read_text()[:5])
    cli(*door(link, logs), code=None)
    assert link.is_symlink()
    assert len(file.read_text()) > 5
    assert os.listdir(tmp_path / "kept") == ["file"]


def test_one_segment_is_a_source(logs: Path, cli: Cli) -> None:
    log = log_in(logs)
    before = log.read_bytes()
    refused(cli, ("explain", "--html", log, log), "overlap")
    refused(cli, ("diff", "--cache", log, log, log), "overlap")
    assert log.read_bytes() == before


def test_nothing_is_read_before_it_is_refused(logs: Path, tmp_path: Path) -> None:
    """Not even a source that is not there."""
    file = tmp_path / "file"
    file.write_text("notes")
    with pytest.raises(RefusedError, match="exists and is not a cache of magicbyte diff"):
        magicbyte.diff([logs, "kafka://127.0.0.1:1/orders"], cache=file)
    with pytest.raises(RefusedError, match="exists and is not a file of offsets"):
        magicbyte.audit(tmp_path / "none", offsets_out=file)
    assert file.read_text() == "notes"


def test_pipes_are_no_files_for_jobs(logs: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    given: list[Callable[[], Any]] = [
        lambda: magicbyte.diff([logs, logs], cache=tmp_path / "pipe"),
        lambda: magicbyte.audit(logs, offsets_out=tmp_path / "pipe"),
        lambda: magicbyte.audit(logs, offsets_out=tmp_path / "out"),
    ]
    for run in given:
        with pytest.raises(RefusedError, match="is not a regular file"):
            run()


@pytest.mark.parametrize("version", ["magicbyte-diff-1", "magicbyte-diff-99"])
def test_caches_of_other_versions_are_replaced(logs: Path, tmp_path: Path, version: str) -> None:
    cache = tmp_path / "cache.json"
    cache.write_text(f'{{"format": "{version}", "segments": ')
    assert magicbyte.diff([logs, logs], cache=cache)["equal"]
    assert json.loads(cache.read_text())["format"] == "magicbyte-diff-2"
