"""The commands shown in the README, the guide and the help exist, with the options and arguments used."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from conftest import commands_of
from magicbyte.cli.app import app

ROOT = Path(__file__).parents[2]


def readme() -> list[str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md")), ROOT / "docs/lake.md"]
    text = "".join(page.read_text() for page in pages)
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("magicbyte ")]


def commands(group: click.Group) -> Iterator[click.Command]:
    """A group and all commands in it and in its groups."""
    yield group
    for one in commands_of(group).values():
        yield from commands(one) if isinstance(one, click.Group) else [one]


def examples_in_help() -> list[str]:
    texts = [one.help or "" for one in commands(app)]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    return [line for line in lines if line.startswith("magicbyte ")]


def words_of(line: str) -> list[str]:
    """The words of the command, without a trailing comment, pipe or redirection."""
    # Explanations are three blanks away; one pair of blanks aligns the names of commands.
    command = re.split(r" {3,}| # | \| | > ", re.sub(r"^(magicbyte [\w-]+) +", r"\1 ", line))[0]
    return shlex.split(command)[1:]


LINES = [*readme(), *examples_in_help()]


def test_there_are_examples() -> None:
    assert len(readme()) > 15
    assert {words_of(line)[0] for line in readme()} == commands_of(app).keys()


@pytest.mark.parametrize("line", LINES)
def test_an_example_can_be_parsed(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The paths of examples do not exist.
    monkeypatch.setattr(click.Path, "convert", lambda _self, value, *_: value)
    monkeypatch.setattr(click.File, "convert", lambda *_: io.BytesIO())
    name, *arguments = words_of(line)
    command = commands_of(app)[name]
    while isinstance(command, click.Group):
        name, *arguments = arguments
        command = command.commands[name]
    command.make_context(name, arguments)
