"""Builds the release wheel of a platform, with any Python and on any system.

usage: scripts/build_wheel.py [--out DIRECTORY] [--into PYTHON] [TARGET] -- TARGET is one of Rust's, as
x86_64-unknown-linux-gnu, and this machine's unless given.

Zig compiles and links for Linux, so that the wheel runs on all systems since manylinux2014 or musl 1.2. No
path of this machine is left in the wheel, and the same commit and compilers give the same bytes in any
directory. With --into, the wheel is installed for that interpreter, in place of any other build.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from portable_wheel import make_portable
from requirements import requirements

ROOT = Path(__file__).parents[1]
LINUX = {"gnu": "manylinux2014", "musl": "musllinux_1_2"}


def main() -> int:
    """Builds the wheel; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--profile", default="release")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "wheels")
    parser.add_argument("--into", metavar="PYTHON")
    parser.add_argument("target", nargs="?")
    options = parser.parse_args()
    wheel = build(options.target or this_machine(), options.profile, options.out.resolve())
    make_portable(wheel, ROOT)
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes")
    if options.into:
        install(options.into, "--force-reinstall", "--no-deps", wheel)
    return 0


def build(target: str, profile: str, out: Path) -> Path:
    """Runs maturin; returns the wheel."""
    linux = LINUX[target.rpartition("-")[2]] if "-linux-" in target else None
    if shutil.which("rustup"):
        subprocess.run(["rustup", "target", "add", target], cwd=ROOT, check=True)
    # The registry's directory, whose path is remapped, exists once crates have been fetched.
    subprocess.run(["cargo", "fetch", "--locked", "--target", target], cwd=ROOT, check=True)
    python = environment("builder")
    install(python, *requirements(ROOT / "pyproject.toml", ["build", "zig"] if linux else ["build"]))
    command: list[str | Path] = [
        python,
        "-m",
        "maturin",
        "build",
        "--locked",
        "--profile",
        profile,
        "--target",
        target,
    ]
    if linux:
        command += ["--zig", "--compatibility", linux]
    # A directory of its own shows which wheel is new.
    new = ROOT / "target" / "wheel-environments" / target
    shutil.rmtree(new, ignore_errors=True)
    # maturin looks for cargo-zigbuild and for zig beside itself.
    path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    variables = {**os.environ, **compilers(target), **date_of_commit(), "PATH": path}
    subprocess.run([*command, "--out", new], cwd=ROOT, check=True, env=variables)
    (wheel,) = new.iterdir()
    out.mkdir(parents=True, exist_ok=True)
    return Path(shutil.move(wheel, out / wheel.name))


def compilers(target: str) -> dict[str, str]:
    """The variables by which the compilers name files without this machine's directories.

    Zig, unlike gcc, keeps frame pointers, which cost zstd 3 to 5 %.
    """
    rust = [f"--remap-path-prefix={path}={name}" for path, name in prefixes().items()]
    variables = {"CARGO_ENCODED_RUSTFLAGS": "\x1f".join(rust)}
    if not target.endswith("-msvc"):
        c = [f"-ffile-prefix-map={path}={name}" for path, name in prefixes().items()]
        variables[f"CFLAGS_{target.replace('-', '_')}"] = " ".join([*c, "-g0", "-fomit-frame-pointer"])
    return variables


def prefixes() -> dict[str, str]:
    """The directories of this machine that compilers see, and what they are named instead."""
    cargo = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    sysroot = shown("rustc", "--print", "sysroot")
    sources = sorted(str(path) for path in (cargo / "registry" / "src").glob("*"))
    target = os.environ.get("CARGO_TARGET_DIR") or str(ROOT / "target")
    return {
        **dict.fromkeys(sources, "/cargo"),
        str(Path(sysroot, "lib/rustlib/src/rust")): "/rust",
        str(ROOT): "/magicbyte",
        target: "/magicbyte/target",
    }


def date_of_commit() -> dict[str, str]:
    """The time that files of the wheel carry, unless the caller gives one."""
    if "SOURCE_DATE_EPOCH" in os.environ or not (ROOT / ".git").exists():
        return {}
    return {"SOURCE_DATE_EPOCH": shown("git", "log", "-1", "--format=%ct")}


def this_machine() -> str:
    """Rust's name of this machine."""
    lines = shown("rustc", "-vV").splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def shown(*command: str) -> str:
    """What a command prints."""
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def environment(name: str) -> Path:
    """Makes an empty environment below target; returns its interpreter."""
    home = ROOT / "target" / "wheel-environments" / name
    venv.create(home, clear=True, with_pip=True)
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(python: str | Path, *wanted: str | Path) -> None:
    """Installs packages with the pip of an environment."""
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    subprocess.run([python, *pip, *wanted], check=True)


if __name__ == "__main__":
    sys.exit(main())
