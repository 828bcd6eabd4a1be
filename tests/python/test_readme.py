"""The Python examples of the README and the guide run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_examples_without_spark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
    text = "".join(page.read_text() for page in pages)
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    plain = [block for block in blocks if "spark" not in block and "df." not in block]
    assert len(plain) >= 2
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    for block in plain:
        exec(block, names)
    assert len(capsys.readouterr().out.splitlines()) > 10
    assert isinstance(names["payload"], bytes)
