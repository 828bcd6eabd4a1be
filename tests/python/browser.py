"""Pages of `--html` in a headless browser."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest


class Page(HTMLParser):
    """A page as a browser parsed it: figures by name, tags and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.figures: dict[str, str] = {}
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self._figure: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        self._figure = dict(attrs).get("data-figure")

    def handle_data(self, data: str) -> None:
        if self._figure is not None:
            self.figures[self._figure] = data
            self._figure = None


OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage")


def program() -> str:
    """The path of the browser."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.fail(
            "Chromium is missing, which opens the pages of --html and of the documentation: make browser"
        )
    return found


def chromium(page: Path, *options: str) -> str:
    """Opens a page in a headless browser; returns the document as the browser parsed it."""
    command = [program(), *OPTIONS, f"--user-data-dir={page.parent / 'profile'}", *options, page.as_uri()]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def opened(page: Path) -> Page:
    return Page(chromium(page, "--dump-dom"))
