"""Builds the release wheel of a platform in target/wheels, with any Python and on any system.

usage: scripts/build_wheel.py [--install] TARGET -- TARGET is one of Rust's, as x86_64-unknown-linux-gnu.

Zig links for Linux, so that the wheel runs on all systems since manylinux2014 or musl 1.2. With --install,
the wheel is installed in an environment of its own and reads the samples, but not for musl.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from requirements import requirements

ROOT = Path(__file__).parents[1]
WHEELS = ROOT / "target" / "wheels"
LINUX = {"gnu": "manylinux2014", "musl": "musllinux_1_2"}
READS = """
import pathlib, sys, magicbyte
logs = [magicbyte.PartitionLog(str(path)) for path in sorted(pathlib.Path(sys.argv[1]).iterdir())]
records = sum(1 for log in logs for record in log.records())
print(f"magicbyte {magicbyte.__version__} on Python {sys.version}: {records} records")
assert records > 500
"""


def main() -> int:
    """Builds the wheel; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--profile", default="release")
    parser.add_argument("target")
    options = parser.parse_args()
    linux = LINUX.get(options.target.rpartition("-")[2]) if "-linux-" in options.target else None
    if shutil.which("rustup"):
        subprocess.run(["rustup", "target", "add", options.target], cwd=ROOT, check=True)
    python = environment("builder")
    wanted = requirements(ROOT / "pyproject.toml", ["build", "zig"] if linux else ["build"])
    install(python, *wanted)
    build = ["maturin", "build", "--locked", "--profile", options.profile, "--target", options.target]
    if linux:
        build += ["--zig", "--compatibility", linux]
    # maturin looks for cargo-zigbuild and for zig beside itself.
    path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    subprocess.run(
        [python, "-m", *build, "--out", WHEELS], cwd=ROOT, check=True, env={**os.environ, "PATH": path}
    )
    if options.install and linux != LINUX["musl"]:
        python = environment("user")
        install(python, "--no-index", "--find-links", WHEELS, "magicbyte")
        subprocess.run([python, "-I", "-c", READS, ROOT / "samples"], cwd=WHEELS, check=True)
    return 0


def environment(name: str) -> Path:
    """Makes an empty environment below target; returns its interpreter."""
    home = ROOT / "target" / "wheel-environments" / name
    venv.create(home, clear=True, with_pip=True)
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(python: Path, *wanted: str | Path) -> None:
    """Installs packages with the pip of an environment."""
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *wanted], check=True)


if __name__ == "__main__":
    sys.exit(main())
