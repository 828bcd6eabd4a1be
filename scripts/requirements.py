"""Prints the requirements of extras and groups of pyproject.toml, one per line, with our own extras resolved.

The name `build` stands for what building the wheel requires.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path


def resolve(extras: dict[str, list[str]], name: str) -> set[str]:
    """The requirements of an extra; `magicbyte[a,b]` is replaced by those of a and b."""
    found: set[str] = set()
    for requirement in extras[name]:
        own = re.fullmatch(r"magicbyte\[(.+)\]", requirement)
        if own:
            found.update(*(resolve(extras, extra.strip()) for extra in own[1].split(",")))
        else:
            found.add(requirement)
    return found


def requirements(project: Path, names: Sequence[str]) -> list[str]:
    """The requirements of these extras and groups of a pyproject.toml, in order."""
    content = tomllib.loads(project.read_text(encoding="utf-8"))
    known = content["project"]["optional-dependencies"] | content["dependency-groups"]
    known["build"] = content["build-system"]["requires"]
    return sorted(set().union(*(resolve(known, name) for name in names)))


if __name__ == "__main__":
    print("\n".join(requirements(Path(sys.argv[1]), sys.argv[2:])))
