"""docs/benchmarks.md as a head and sections; each program writes its own and keeps the others'."""

import re
import textwrap
from pathlib import Path


def update(path: Path, sections: dict[str, str | None], head: str | None = None) -> None:
    """Puts texts under their `## titles`, at the end if they are new; None takes a section out."""
    old = path.read_text() if path.exists() else "# Benchmarks\n"
    first, *titled = re.split(r"^## ", old, flags=re.MULTILINE)
    parts: dict[str, str | None] = {}
    for part in titled:
        title, _, text = part.partition("\n")
        parts[title] = text.strip()
    parts |= sections
    written = [(head or first).strip()]
    written += [f"## {title}\n\n{text.strip()}" for title, text in parts.items() if text is not None]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n\n".join(written) + "\n")


def bullets(*items: str) -> str:
    """A list, broken into lines."""
    lines = (
        textwrap.fill(
            f"- {item}", 110, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
        )
        for item in items
    )
    return "\n".join(lines)
