"""Prints the requirements of an extra of pyproject.toml, one per line, with our own extras resolved."""

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
    project = tomllib.loads(Path(sys.argv[1]).read_text())["project"]
    print("\n".join(sorted(resolve(project["optional-dependencies"], sys.argv[2]))))
