"""Prints the requirements of extras of pyproject.toml, one per line, with our own extras resolved.

The name `build` stands for what building the wheel requires.
"""

from __future__ import annotations

import re
import sys
import tomllib
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


if __name__ == "__main__":
    content = tomllib.loads(Path(sys.argv[1]).read_text())
    extras = content["project"]["optional-dependencies"] | {"build": content["build-system"]["requires"]}
    print("\n".join(sorted(set().union(*(resolve(extras, name) for name in sys.argv[2:])))))
