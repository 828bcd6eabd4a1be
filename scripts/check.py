"""Checks what has changed since the last commit, or in it: format, lint, types and the nearest tests.

usage: scripts/check.py [--profile PROFILE] -- `make check` builds the package first.

`make test` checks everything. A test is near a changed file if it is that file, belongs to its crate, or has
its name: `tests/python/test_verify.py` is near `python/magicbyte/jobs/verify.py`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
PYTHON_FOLDERS = ("python", "tests/python", "tests/interop", "benches", "examples", "scripts")
# Quick ones that concern every change.
ALWAYS = ("test_conformance", "test_docstrings", "test_layers")


def main() -> int:
    """Runs what concerns the changed files; returns 1 if something failed."""
    profile = sys.argv[sys.argv.index("--profile") + 1] if "--profile" in sys.argv else "ci"
    files = changed()
    print(
        "Changed: "
        + (", ".join(files[:6]) or "nothing")
        + (f" and {len(files) - 6} more" if files[6:] else "")
    )
    failed = [name for name, command in commands(files, profile) if not passes(name, command)]
    print("Failed: " + ", ".join(failed) if failed else "All passed. `make test` checks everything.")
    return int(bool(failed))


def changed() -> list[str]:
    """The files that differ from the last commit, or those of the last commit."""
    names = git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")
    return sorted(set(names or git("diff", "--name-only", "HEAD~1", "HEAD")))


def git(*arguments: str) -> list[str]:
    """The words that a command of git prints."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def commands(files: Iterable[str], profile: str) -> Iterable[tuple[str, list[str]]]:
    """The names and command lines of the checks that concern these files, the quickest first."""
    python = [name for name in files if name.endswith((".py", ".pyi"))]
    rust = sorted({package_of(name) for name in files if name.endswith((".rs", "Cargo.toml"))})
    if python:
        yield "ruff check", [str(BIN / "ruff"), "check", *PYTHON_FOLDERS]
        yield "ruff format", [str(BIN / "ruff"), "format", "--check", *PYTHON_FOLDERS]
        yield "mypy", [str(BIN / "mypy"), "--strict", "python"]
    if rust:
        # With the bindings, features are those of all other builds: dependencies are not built again.
        packages = [part for name in {*rust, "magicbyte-python"} for part in ("--package", name)]
        options = ["--quiet", "--profile", profile, *packages]
        yield "cargo fmt", ["cargo", "fmt", "--check"]
        yield "clippy", ["cargo", "clippy", *options, "--all-targets", "--", "-D", "warnings"]
        yield "cargo test", ["cargo", "test", *options, "--tests"]
    if tests := sorted({*map(test_near, python), *map(test_file, ALWAYS)} - {""}):
        yield (
            "pytest",
            [str(BIN / "pytest"), "-q", "-m", "not spark and not inspector", "--numprocesses", "2", *tests],
        )


def package_of(name: str) -> str:
    """The package that a Rust file belongs to."""
    folders = name.split("/")
    if folders[0] == "crates":
        return folders[1]
    return {"benches": "magicbyte-benches", "fuzz": "magicbyte-testing"}.get(folders[0], "magicbyte")


def test_near(name: str) -> str:
    """The test file that is, or has the name of, a Python file; empty if there is none."""
    stem = Path(name).stem
    return test_file(stem if stem.startswith("test_") else f"test_{stem}")


def test_file(stem: str) -> str:
    """The test file of this name; empty if there is none."""
    path = Path("tests/python") / f"{stem}.py"
    return str(path) if (ROOT / path).exists() else ""


def passes(name: str, command: list[str]) -> bool:
    """Runs a check, and says how it went."""
    begun = time.monotonic()
    code = subprocess.run(command, cwd=ROOT).returncode
    print(f"{name}: {'passed' if code == 0 else 'FAILED'} in {time.monotonic() - begun:.0f} s", flush=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
