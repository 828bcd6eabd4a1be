"""Writes THIRD-PARTY-LICENSES: the components of the wheel's compiled part, and their terms.

With --check it writes nothing, and fails if the file does not match Cargo.lock.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "THIRD-PARTY-LICENSES"
MANIFEST = "crates/magicbyte-python/Cargo.toml"
# The platforms that wheels are made for; the file is the same on all of them.
PLATFORMS = (
    "aarch64-apple-darwin",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "x86_64-unknown-linux-gnu",
)
NAMES = re.compile(r"(?i)(un)?licen[cs]e|copying|notice")
# C libraries that a crate bundles, each with terms of its own.
LIBRARIES = {
    "libdeflate-sys": "libdeflate/COPYING",
    "lz4-sys": "liblz4/lib/LICENSE",
    # What it has of BoringSSL, whose own terms are beside those of ring.
    "ring": "third_party/fiat/LICENSE",
    "zstd-sys": "zstd/LICENSE",
}
# For a crate that can be used under these terms, and ships without any text.
MIT = """\
MIT License

Copyright (c) {authors}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute,
sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES
OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""
HEAD = """\
The compiled part of the Python package magicbyte contains the crates below, and with libdeflate-sys, lz4-sys,
ring and zstd-sys the C libraries libdeflate, LZ4, parts of BoringSSL, and Zstandard. magicbyte's own terms
are in the file LICENSE.

The table of protocol messages in it is made from the message definitions of Apache Kafka, Copyright 2026
The Apache Software Foundation, under the Apache License 2.0, whose text is in the file LICENSE. Apache
Kafka includes software developed at The Apache Software Foundation (https://www.apache.org/).

The files google/type/*.proto in it are those of googleapis-common-protos, Copyright 2026 Google LLC, under
the Apache License 2.0, whose text is in the file LICENSE.

Written by `make licenses`.
"""


def main() -> int:
    """Writes or checks the file; returns the exit code."""
    text = written(crates())
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text, encoding="utf-8")
    elif not FILE.exists() or FILE.read_text(encoding="utf-8") != text:
        print(f"{FILE.name} does not match Cargo.lock: run `make licenses`", file=sys.stderr)
        return 1
    return 0


def crates() -> list[dict[str, Any]]:
    """The crates that are linked into the wheel on any platform, without build dependencies."""
    found: dict[str, dict[str, Any]] = {}
    for platform in PLATFORMS:
        command = ["cargo", "metadata", "--quiet", "--locked", "--format-version=1"]
        command += ["--manifest-path", MANIFEST, "--filter-platform", platform]
        metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
        packages = {package["id"]: package for package in metadata["packages"]}
        nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        todo, seen = [metadata["resolve"]["root"]], set()
        while todo:
            one = todo.pop()
            if one in seen or any("proc-macro" in target["kind"] for target in packages[one]["targets"]):
                continue
            seen.add(one)
            for dependency in nodes[one]["deps"]:
                if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                    todo.append(dependency["pkg"])
        found |= {one: packages[one] for one in seen - {*metadata["workspace_members"]}}
    return sorted(found.values(), key=lambda one: (one["name"], one["version"]))


def written(packages: list[dict[str, Any]]) -> str:
    """One line per crate, then each text once, with the crates that it belongs to."""
    lines = [f"{one['name']} {one['version']}: {one['license']}" for one in packages]
    users: dict[str, list[str]] = defaultdict(list)
    # Texts that differ only in line breaks are the same.
    first: dict[str, str] = {}
    for package in packages:
        for text in texts(package):
            users[first.setdefault(" ".join(text.split()), text)].append(package["name"])
    parts = [f"{'=' * 100}\n{', '.join(names)}\n{'=' * 100}\n\n{text}\n" for text, names in users.items()]
    return "\n".join((HEAD, *lines, "", *parts))


def texts(package: dict[str, Any]) -> list[str]:
    """The terms of a crate, and of the library that it bundles."""
    directory = Path(package["manifest_path"]).parent
    paths = sorted(path for path in directory.iterdir() if NAMES.match(path.name) and path.is_file())
    if library := LIBRARIES.get(package["name"]):
        paths.append(directory / library)
    elif any(  # those of tests are not built
        "tests" not in path.relative_to(directory).parts for path in directory.rglob("*.c")
    ):
        raise SystemExit(f"{package['name']} has C sources: name the file with their terms in {__file__}")
    # Of terms to choose from, these.
    if not paths and "MIT" in re.split(r" OR |/", package["license"]):
        return [MIT.format(authors=", ".join(package["authors"]))]
    if not paths:
        raise SystemExit(f"{package['name']} {package['version']} ships without its terms")
    return [_trimmed(path.read_text(encoding="utf-8")) for path in paths]


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


if __name__ == "__main__":
    sys.exit(main())
