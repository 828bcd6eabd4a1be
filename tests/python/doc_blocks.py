"""The code blocks of the documents, and what those of a tour print.

usage: doc_blocks.py PAGE -- runs the page's blocks and writes their output into it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What a page shows in place of the directory that it is run in.
HOME = "/home/you/tour"
_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?P<language>\w+)[^\n]*\n(?P<text>.*?)```", re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A block of code, its language, and why no test runs it."""

    language: str
    text: str
    not_run: str | None
    start: int
    end: int


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page in order."""
    for found in _BLOCK.finditer(page):
        yield Block(found["language"], found["text"], found["reason"], found.start("text"), found.end("text"))


def run(block: Block, directory: Path) -> str:
    """What a block prints, to either output, in a directory."""
    command = [sys.executable, "-c"] if block.language == "python" else ["bash", "-e", "-c"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [*command, block.text],
        cwd=directory,
        env={**os.environ, "PATH": path, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, block.text + done.stdout
    return done.stdout.replace(str(directory), HOME)


def with_outputs(page: str, directory: Path) -> str:
    """The page with what its blocks print: each block of text holds the output of the block before it."""
    shutil.copytree(ROOT / "samples", directory / "samples")
    written, end, output = "", 0, ""
    for block in blocks(page):
        if block.language == "text":
            written += page[end : block.start] + output
            end = block.end
        elif block.not_run is None:
            output = run(block, directory)
    return written + page[end:]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty:
        file = Path(sys.argv[1])
        file.write_text(with_outputs(file.read_text(encoding="utf-8"), Path(empty)), encoding="utf-8")
