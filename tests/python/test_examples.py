"""The examples in Python work as their docstrings say."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import magicbyte

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
RUN_ELSEWHERE = {"flaky_producer.py", "show_tables.py"}
"""By test_broker.py, and by `make run`."""


def run(name: str, *arguments: object) -> str:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_reading_with_asyncio() -> None:
    sizes = {one.name: one.verify().rows for one in magicbyte.Log(ROOT / "samples", mode="PERMISSIVE")}
    lines = [line.split() for line in run("asyncio_reader.py", ROOT / "samples").splitlines()]
    assert {name: int(records.replace(",", "")) for name, records, *_ in lines} == sizes


def test_a_growing_table(tmp_path: Path) -> None:
    lines = run("growing_table.py", tmp_path).splitlines()
    assert lines[-1] == "12 rows in all"
    assert [line.endswith("4 rows, equal: True") for line in lines[:-1]] == [True] * 3


def test_a_notebook(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "samples", tmp_path / "logs")
    assert run("notebook.py", tmp_path / "logs").splitlines()[-1] == "0 problems, 0 bytes left out"
    segment = next((tmp_path / "logs" / "orders-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[100] ^= 1
    segment.write_bytes(data)
    text = run("notebook.py", tmp_path / "logs")
    assert "clicks" in text
    assert not text.splitlines()[-1].startswith("0 problems")


def test_every_example_is_run() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    tested = {name for name in names if f'"{name}"' in Path(__file__).read_text(encoding="utf-8")}
    assert names == tested | RUN_ELSEWHERE
