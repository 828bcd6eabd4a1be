"""Builds the byte inspector, one page without a network: target/inspector/inspector.html.

usage: scripts/inspector.py

The core is compiled to WebAssembly, and the codecs in C by zig (group `zig` of pyproject.toml).
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ROOT / "crates" / "magicbyte-inspector" / "page"
OUT = ROOT / "target" / "inspector"
TARGET = "wasm32-unknown-unknown"
MODULE = "magicbyte_inspector.wasm"
# zig has no such target as cc names it. The headers of WASI are enough, since nothing calls a system.
COMPILER = """#!/bin/sh
for argument do
  shift
  case $argument in --target=*) ;; *) set -- "$@" "$argument" ;; esac
done
exec {python} -m ziglang cc -target wasm32-wasi "$@"
"""
ARCHIVER = '#!/bin/sh\nexec {python} -m ziglang ar "$@"\n'


def main() -> int:
    """Builds the page; returns the exit code."""
    OUT.mkdir(parents=True, exist_ok=True)
    module = compiled()
    rules = rules_of_fields((ROOT / "docs/conformance.md").read_text(encoding="utf-8"))
    parts = {
        MODULE: base64.b64encode(module.read_bytes()).decode(),
        "rules.json": json.dumps(rules, ensure_ascii=False).replace("<", "\\u003c"),
        "two-records": example((ROOT / "tests/data/dump/annotated.txt").read_text(encoding="utf-8")),
    }
    for name in ("style.css", "worker.js", "page.js"):
        parts[name] = (PARTS / name).read_text(encoding="utf-8")
    page = (PARTS / "index.html").read_text(encoding="utf-8")
    page = re.sub(r"\{\{([\w.-]+)\}\}", lambda found: parts[found[1]], page)
    (OUT / "inspector.html").write_text(page, encoding="utf-8")
    print(f"{OUT / 'inspector.html'}: {len(page) >> 10} KiB")
    return 0


def compiled() -> Path:
    """The core as a module of WebAssembly, without paths of this machine."""
    if shutil.which("rustup"):
        subprocess.run(["rustup", "target", "add", TARGET], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    remapped = [f"--remap-path-prefix={path}=/" for path in (ROOT, Path.home())]
    environment = {
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
        "CARGO_TARGET_DIR": str(target),
        "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS": " ".join(remapped),
        "CC_wasm32_unknown_unknown": program("cc", COMPILER),
        "AR_wasm32_unknown_unknown": program("ar", ARCHIVER),
    }
    build = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "magicbyte-inspector"]
    subprocess.run([*build, "--target", TARGET], cwd=ROOT, check=True, env=os.environ | environment)
    return target / TARGET / "release" / MODULE


def program(name: str, text: str) -> str:
    """Writes a program that calls zig; returns its path."""
    path = OUT / name
    path.write_text(text.format(python=sys.executable), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def rules_of_fields(conformance: str) -> dict[str, list[dict[str, str]]]:
    """The rules about each field, which rules.json names by their beginnings, with the classes in Kafka."""
    rows = [row.strip("|").split("|") for row in conformance.splitlines() if row.startswith("| ")]
    known = [(cells[0].strip(), cells[2].strip()) for cells in rows if len(cells) == 4]
    fields: dict[str, list[str]] = json.loads((PARTS / "rules.json").read_text(encoding="utf-8"))
    rules: dict[str, list[dict[str, str]]] = {}
    for field, beginnings in fields.items():
        for beginning in beginnings:
            found = [(rule, by) for rule, by in known if rule.startswith(beginning)]
            if len(found) != 1:
                sys.exit(
                    f"{field}: {len(found)} rules of docs/conformance.md begin with {beginning!r}, not 1"
                )
            ((rule, by),) = found
            rules.setdefault(field, []).append({"rule": rule.replace("`", ""), "by": by.replace("`", "")})
    return rules


def example(annotated: str) -> str:
    """The bytes of the batch that the text of `magicbyte dump --bytes` explains, as hexadecimal digits."""
    rows = re.findall(r"^ *\d+  ((?:[0-9a-f]{2} ?)+)", annotated, re.MULTILINE)
    return "".join(rows).replace(" ", "")


if __name__ == "__main__":
    sys.exit(main())
