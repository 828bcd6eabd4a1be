"""Builds a wheel twice, in two directories, and compares the bytes.

usage: scripts/reproducible.py [--profile PROFILE] [TARGET]

The directories are copies of this one without what git ignores, with names of different lengths, and each has
a target directory, a Python environment and compiled dependencies of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from build_wheel import ROOT, date_of_commit, this_machine

HOME = ROOT / "target" / "reproducible"


def main() -> int:
    """Builds and compares; returns 1 if the wheels differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--profile", default="release")
    parser.add_argument("target", nargs="?", default=this_machine())
    options = parser.parse_args()
    places = (HOME / "one", HOME / "the-other-place")
    for place in places:
        copy(place)
    first, second = (build(place, options.profile, options.target) for place in places)
    differing = differences(first, second)
    print("".join(f"{name} differs\n" for name in differing), end="")
    print(f"{first.name}: {'differs' if differing else hashlib.sha256(first.read_bytes()).hexdigest()}")
    return 1 if differing else 0


def copy(directory: Path) -> None:
    """Copies the files that git knows, or does not ignore."""
    shutil.rmtree(directory, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, directory / name)


def build(directory: Path, profile: str, target: str) -> Path:
    """The wheel of the copy in this directory."""
    variables = {**date_of_commit(), **os.environ, "CARGO_TARGET_DIR": str(directory / "target")}
    script = directory / "scripts" / "build_wheel.py"
    options = ("--profile", profile, "--out", directory / "wheels", target)
    subprocess.run([sys.executable, script, *options], cwd=directory, check=True, env=variables)
    (wheel,) = (directory / "wheels").iterdir()
    return wheel


def differences(first: Path, second: Path) -> list[str]:
    """The members that differ, or the wheel itself if only its order, names or times do."""
    if first.read_bytes() == second.read_bytes():
        return []
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        names = sorted({*one.namelist()} ^ {*other.namelist()})
        names += [name for name in one.namelist() if name not in names and one.read(name) != other.read(name)]
    return names or [first.name]


if __name__ == "__main__":
    sys.exit(main())
