"""Archives of `tar -S`: the indexes of a killed broker and preallocated segments have holes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import KAFKA, Cli

HOW = {
    "plain": (),
    "gnu": ("-S",),
    "old gnu": ("-S", "--format=oldgnu"),
    "pax 1.0": ("-S", "--format=posix"),
    "pax 0.1": ("-S", "--format=posix", "--sparse-version=0.1"),
    "pax 0.0": ("-S", "--format=posix", "--sparse-version=0.0"),
}


def has_gnu_tar() -> bool:
    tar = shutil.which("tar")
    return tar is not None and b"GNU tar" in subprocess.run([tar, "--version"], capture_output=True).stdout


pytestmark = pytest.mark.skipif(not has_gnu_tar(), reason="makes sparse archives with GNU tar")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition with holes at the end of each file, and one whose segment has many holes inside."""
    directory = tmp_path_factory.mktemp("sparse") / "logs"
    shutil.copytree(KAFKA / "v2_none", directory / "t-0")
    for path in directory.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for path in (directory / "t-0").iterdir():
        if path.suffix in (".index", ".timeindex"):
            with path.open("r+b") as file:
                file.truncate(10 << 20 if path.suffix == ".index" else 10485756)
    last = sorted((directory / "t-0").glob("*.log"))[-1]
    with last.open("r+b") as file:
        file.truncate(9_000_000)
    # More extents than the header of the old format has room for.
    holes = directory / "holes-0"
    holes.mkdir()
    data = sorted((KAFKA / "v2_none").glob("*.log"))[0].read_bytes()
    with (holes / f"{0:020d}.log").open("wb") as file:
        for number in range(60):
            file.seek(number << 16)
            file.write(data[:4096])
        file.truncate(60 << 16)
    return directory


def said(cli: Cli, path: object) -> Any:
    """The contents of a directory or an archive as they are read: rows, problems, records."""
    found = cli.json("verify", path, code=1)
    problems = sorted((one["kind"], one["segment"] or "", one["start"] or 0) for one in found["problems"])
    return found["total"]["rows"], problems, cli.records(path, code=None)


@pytest.fixture(scope="module")
def of_directory() -> dict[Path, Any]:
    """The contents of the directory, which stay the same."""
    return {}


@pytest.mark.parametrize(("how", "compressed"), [*((how, False) for how in HOW), ("pax 1.0", True)])
def test_an_archive_is_read_as_its_directory(
    cli: Cli, logs: Path, of_directory: dict[Path, Any], tmp_path: Path, how: str, compressed: bool
) -> None:
    archive = tmp_path / ("a.tar.gz" if compressed else "a.tar")
    command = [
        "tar",
        *HOW[how],
        *(["-z"] if compressed else []),
        "-cf",
        str(archive),
        "-C",
        str(logs.parent),
        "logs",
    ]
    subprocess.run(command, check=True)
    if logs not in of_directory:
        of_directory[logs] = said(cli, logs)
    assert said(cli, archive) == of_directory[logs]


@pytest.mark.skipif(sys.platform == "win32", reason="needs files with holes")
def test_a_map_that_is_damaged_is_named(cli: Cli, logs: Path, tmp_path: Path) -> None:
    archive = tmp_path / "a.tar"
    command = ["tar", *HOW["pax 1.0"], "-cf", str(archive), "-C", str(logs.parent), "logs/holes-0"]
    subprocess.run(command, check=True)
    data = bytearray(archive.read_bytes())
    first = re.search(rb"\d+\n0\n4096\n", data)
    assert first is not None
    data[first.start()] = ord("x")
    archive.write_bytes(data)
    problems = cli.json("verify", archive, code=1)["problems"]
    assert ["sparse" in one["message"] for one in problems if one["kind"] == "file_unreadable"] == [True]
