"""Packages every crate that is published and the source distribution of the Python package, and checks them.

usage: scripts/test_packages.py [--profile PROFILE]

Crates have their licence and a page for the registry, and compile with all features. The source distribution
can be built with its lock file as it is.

`cargo package` would build each package anew with all dependencies. Here the packages become a workspace that
shares this one's lock file and target directory.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
UNPACKED = ROOT / "target" / "packages"
# It has dependencies of its own, for which others would be built again; its tests build it.
APART = "magicbyte-object-store"


def main() -> int:
    """Packages and checks; returns the exit code of the command that failed, or 0."""
    profile = sys.argv[sys.argv.index("--profile") + 1] if "--profile" in sys.argv else "ci"
    if forgotten := members() - checked_members():
        print(f"Cargo.toml: [profile.ci.package] lacks {', '.join(sorted(forgotten))}", file=sys.stderr)
        return 1
    versions = published()
    selected = [part for name in versions for part in ("--package", name)]
    subprocess.run(
        ["cargo", "package", "--quiet", "--allow-dirty", "--no-verify", *selected], cwd=ROOT, check=True
    )
    unpack(versions)
    if problems := [*incomplete(versions), *stale_lock_file()]:
        print("\n".join(problems), file=sys.stderr)
        return 1
    options = ["--quiet", "--profile", profile, "--target-dir", str(ROOT / "target"), "--all-features"]
    command = ["cargo", "check", *options, "--workspace", "--exclude", APART]
    return subprocess.run(command, cwd=UNPACKED).returncode


def packages() -> list[dict[str, Any]]:
    """The crates of this workspace, as `cargo metadata` describes them."""
    command = ["cargo", "metadata", "--quiet", "--no-deps", "--format-version=1"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    return list(metadata["packages"])


def members() -> set[str]:
    """The names of the crates of this workspace."""
    return {package["name"] for package in packages()}


def checked_members() -> set[str]:
    """The names of the crates that the profile of the tests names: ours check their arithmetic."""
    return {*tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["profile"]["ci"]["package"]}


def published() -> dict[str, str]:
    """The versions of the crates of this workspace that are published, by name."""
    return {package["name"]: package["version"] for package in packages() if package["publish"] is None}


def unpack(versions: dict[str, str]) -> None:
    """Makes a workspace of the packages, in which each takes the others from there."""
    shutil.rmtree(UNPACKED, ignore_errors=True)
    for name, version in versions.items():
        with tarfile.open(ROOT / "target" / "package" / f"{name}-{version}.crate") as package:
            package.extractall(UNPACKED, filter="data")
    # All files of all packages have one time, by which cargo would take those of the last run for these.
    for path in UNPACKED.rglob("*.rs"):
        path.touch()
    folders = {name: f"{name}-{version}" for name, version in versions.items()}
    patches = [f'{name} = {{ path = "{folder}" }}' for name, folder in folders.items()]
    root = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    profiles = root[root.index("[profile.release]") : root.index("[lints]")]
    manifest = [
        "[workspace]",
        'resolver = "3"',
        f"members = {json.dumps([*folders.values()])}",
        "[patch.crates-io]",
        *patches,
        profiles,
    ]
    (UNPACKED / "Cargo.toml").write_text("\n".join(manifest), encoding="utf-8")
    shutil.copy(ROOT / "Cargo.lock", UNPACKED / "Cargo.lock")


def incomplete(versions: dict[str, str]) -> Iterator[str]:
    """A line for each package that lacks what a registry shows."""
    for name, version in versions.items():
        folder = UNPACKED / f"{name}-{version}"
        for file in ("LICENSE", "README.md"):
            if not (folder / file).is_file():
                yield f"the package {name} has no {file}"
        package = tomllib.loads((folder / "Cargo.toml").read_text(encoding="utf-8"))["package"]
        for key in ("description", "license", "keywords", "categories", "rust-version", "readme"):
            if not package.get(key):
                yield f"the package {name} does not say its {key}"


def stale_lock_file() -> Iterator[str]:
    """A line if the lock file of the source distribution would change when it is built."""
    folder = ROOT / "target" / "sdist"
    shutil.rmtree(folder, ignore_errors=True)
    maturin = [str(Path(sys.executable).with_name("maturin")), "sdist", "--out", str(folder)]
    subprocess.run(maturin, cwd=ROOT, check=True, capture_output=True)
    (packed,) = folder.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    metadata = ["cargo", "metadata", "--quiet", "--locked", "--format-version=1"]
    if subprocess.run(
        metadata, cwd=packed.with_suffix("").with_suffix(""), stdout=subprocess.DEVNULL
    ).returncode:
        yield f"Cargo.lock in {packed.name} is not the one of its manifests"


if __name__ == "__main__":
    sys.exit(main())
