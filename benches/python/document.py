"""docs/benchmarks.md as a head and sections; each program writes its own section and keeps the others."""

import re
import textwrap
from datetime import UTC, datetime
from pathlib import Path

from machine import cpu


def update(path: Path, sections: dict[str, str | None], head: str | None = None) -> None:
    """Replaces the sections with these titles and appends new ones; None removes a section."""
    old = path.read_text() if path.exists() else "# Benchmarks\n"
    first, *titled = re.split(r"^## ", old, flags=re.MULTILINE)
    parts: dict[str, str | None] = {}
    for part in titled:
        title, _, text = part.partition("\n")
        parts[title] = text.strip()
    parts |= sections
    written = [(head or first).strip()]
    written += [f"## {title}\n\n{text.strip()}" for title, text in parts.items() if text is not None]
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("\n\n".join(written) + "\n")


def written(command: str) -> str:
    """The first sentence of a section that keeps its own date."""
    return f"Written by `{command}` on {datetime.now(UTC):%Y-%m-%d}; CPU: {cpu()}."


def bullets(*items: str) -> str:
    """A list, wrapped."""
    return "\n".join(fill(f"- {item}", subsequent_indent="  ") for item in items)


def fill(text: str, subsequent_indent: str = "") -> str:
    return textwrap.fill(
        text, 110, subsequent_indent=subsequent_indent, break_on_hyphens=False, break_long_words=False
    )
