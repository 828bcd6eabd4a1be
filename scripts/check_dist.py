"""Checks what is in a directory of wheels and source distributions, before an index gets them.

usage: scripts/check_dist.py DIRECTORY
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Sources name directories of others, so that only the ones of this machine count in them.
HERE = re.compile(b"|".join(re.escape(str(path).encode()) for path in (ROOT, Path.home() / ".cargo")))
# Where people, cargo, rustup and workflows keep files; compilers and maturin name those that they read.
DIRECTORIES = (
    rb"/home/|/root/|/Users/|/__w/|[A-Z]:\\(?:a|Users)\\|\.cargo/|/registry/src/|\.rustup/|/toolchains/"
)
ELSEWHERE = re.compile(rb"(?:" + DIRECTORIES + rb")[ -~]{0,80}|" + HERE.pattern)
SHOWN = 5


def main() -> int:
    """Checks every file; returns 1 if one has a problem."""
    directory = Path(sys.argv[1])
    wheels, sources = sorted(directory.glob("*.whl")), sorted(directory.glob("*.tar.gz"))
    if not wheels + sources:
        print(f"{directory}: no wheel and no source distribution", file=sys.stderr)
        return 1
    failed = run("twine", "check", "--strict", *wheels, *sources)
    for wheel in wheels:
        failed |= run("check-wheel-contents", wheel)
        failed |= run("abi3audit", "--strict", "--summary", wheel)
    for one, found in [
        *((wheel, [*paths(zip_members(wheel), ELSEWHERE), *platform_problems(wheel)]) for wheel in wheels),
        *((source, [*paths(tar_members(source), HERE)]) for source in sources),
    ]:
        print(f"{one.name}: {'no path of the builder' if not found else 'FAILED'}")
        print("".join(f"  {line}\n" for line in found), end="")
        failed |= bool(found)
    return 1 if failed else 0


def run(program: str, *arguments: str | Path) -> bool:
    """Whether a program beside this interpreter fails; it says why itself."""
    command = [Path(sys.executable).with_name(program), *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode != 0


def paths(members: Iterator[tuple[str, bytes]], of: re.Pattern[bytes]) -> Iterator[str]:
    """A line for each member that names a directory of the machine that built it, with the first of them."""
    for name, content in members:
        found = list(dict.fromkeys(match[0].decode(errors="replace") for match in of.finditer(content)))
        if found:
            yield f"{name} names {len(found)} paths of the builder: {', '.join(found[:SHOWN])}"


def zip_members(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """The name and the bytes of each file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            yield name, archive.read(name)


def tar_members(source: Path) -> Iterator[tuple[str, bytes]]:
    """The name and the bytes of each file of a source distribution."""
    with tarfile.open(source) as archive:
        for member in archive:
            if file := archive.extractfile(member):
                yield member.name, file.read()


def platform_problems(wheel: Path) -> list[str]:
    """A wheel for Linux runs on every system that its name promises, as auditwheel reads its symbols."""
    named = re.search(r"-((?:many|musl)linux_\d+_\d+_\w+?)(?:\.\w+)?\.whl$", wheel.name)
    if named is None:
        return (
            ["its name promises no libc: expected manylinux or musllinux"] if "-linux_" in wheel.name else []
        )
    # Without directories to search, it does not take libraries of this machine for those of the wheel.
    with tempfile.TemporaryDirectory() as nothing:
        auditwheel = str(Path(sys.executable).with_name("auditwheel"))
        command = [auditwheel, "show", "--ldpaths", nothing, str(wheel)]
        shown = subprocess.run(command, check=False, capture_output=True, text=True)
    text = " ".join(shown.stdout.split())
    # Musl's loader takes libc.so for itself, which is how Zig names it; auditwheel knows Alpine's name alone.
    fits = text.endswith(
        f"tag '{named[1]}' the following shared library dependencies will need to be eliminated: libc.so"
    )
    if fits or f'consistent with the following platform tag: "{named[1]}"' in text:
        return []
    return [f"auditwheel does not find {named[1]}: {text or shown.stderr}"]


if __name__ == "__main__":
    sys.exit(main())
