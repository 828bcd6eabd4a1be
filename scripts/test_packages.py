"""Packages every crate that is published, and checks that the packages compile with all features.

usage: scripts/test_packages.py [--profile PROFILE]

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


if __name__ == "__main__":
    sys.exit(main())
