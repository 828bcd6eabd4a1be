"""Lets each interpreter choose, install and try one of the wheels that have been built.

usage: scripts/smoke_wheel.py INTERPRETER... -- each one a command, such as python3.12, 'chroot DIRECTORY
python3' or 'qemu-aarch64-static -L DIRECTORY DIRECTORY/usr/bin/python3'.

The wheels are those of target/wheels. The interpreters need no pip: the newest runs from its own wheel.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHEELS = ROOT / "target" / "wheels"
SMOKE = ROOT / "scripts" / "smoke.py"


def main() -> int:
    """Tries every interpreter; returns 1 if one of them fails."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    failed = [command for command in sys.argv[1:] if not works(shlex.split(command))]
    for command in failed:
        print(f"FAILED: {command}", file=sys.stderr)
    print(f"{len(sys.argv) - 1 - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def works(interpreter: list[str]) -> bool:
    """Whether this interpreter installs a wheel and passes with it."""
    root = Path(interpreter[1]) if interpreter[0] == "chroot" else None
    home = (root / "tmp" if root else ROOT / "target") / "smoke-wheel"
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(WHEELS, home / "wheels")
    shutil.copytree(ROOT / "samples", home / "samples")
    download = ("-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "pip")
    subprocess.run([sys.executable, *download, "--dest", home], check=True)
    (pip,) = home.glob("pip-*.whl")
    seen = Path("/", home.relative_to(root)) if root else home
    install: list[str | Path] = [
        seen / pip.name / "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
    ]
    install += ["--find-links", seen / "wheels", "--target", seen / "installed", "magicbyte"]
    if subprocess.run([*interpreter, "-I", *install], cwd=home, check=False).returncode:
        return False
    # An interpreter looks for packages beside its script.
    shutil.copy(SMOKE, home / "installed")
    smoke = [seen / "installed" / SMOKE.name, seen / "samples"]
    return subprocess.run([*interpreter, *smoke], cwd=home, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
