"""Checks that a tag may be released, before anything is built or published.

usage: scripts/release.py TAG
"""

from __future__ import annotations

import re
import sys
from datetime import date
from pathlib import Path

from metadata import ROOT, Metadata, disagreements


def problems(root: Path, tag: str) -> list[str]:
    """What is in the way of this release, a line each."""
    metadata = Metadata.read(root)
    found = disagreements(root)
    if tag != f"v{metadata.version}":
        found.append(f"the tag {tag} is not the version of Cargo.toml: expected v{metadata.version}")
    if not metadata.repository:
        found.append(
            "the links are not set: run scripts/metadata.py --repository https://github.com/OWNER/NAME"
        )
    return found + changelog_problems((root / "CHANGELOG.md").read_text(encoding="utf-8"), metadata.version)


def changelog_problems(text: str, version: str) -> list[str]:
    """Checks that the newest section of the changelog is that of this version, with a date."""
    heading, _, rest = text.partition("\n## ")[2].partition("\n")
    if heading == "Unreleased":
        content, _, rest = rest.partition("\n## ")
        if content.strip():
            return [f"CHANGELOG.md has unreleased changes: expected them under '## {version} - YYYY-MM-DD'"]
        heading = rest.partition("\n")[0]
    dated = re.fullmatch(rf"{re.escape(version)} - (\d{{4}}-\d\d-\d\d)", heading)
    try:
        if dated and date.fromisoformat(dated[1]):
            return []
    except ValueError:
        pass
    return [f"CHANGELOG.md begins with '## {heading}': expected '## {version} - YYYY-MM-DD'"]


def main() -> int:
    """Prints the problems; returns 1 if there are any."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = problems(ROOT, sys.argv[1])
    print("\n".join(found) or f"{sys.argv[1]} may be released", file=sys.stderr if found else sys.stdout)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
