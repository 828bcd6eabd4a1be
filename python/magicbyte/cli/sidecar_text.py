"""The output of `magicbyte dump` for the files beside segments: Kafka's lines, or JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import click

from magicbyte import _core
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.terminal import json_line, print_data, print_problem
from magicbyte.files.sidecars import Entry, is_sidecar, kind_of, read_sidecar
from magicbyte.storage.paths import is_directory

__all__ = ["print_json", "sidecar_lines", "sidecars_only"]

_INDEX_ENTRY_BYTES = 8


def sidecars_only(sources: Sequence[str]) -> Sequence[str]:
    """The sources, all of them files beside segments.

    Raises:
        UsageError: one of them is not.

    """
    for source in sources:
        if not is_sidecar(source) or is_directory(source):
            raise click.UsageError(
                f"{source} is not an index, a snapshot or a checkpoint of a partition;"
                " `magicbyte records` prints segments as JSON"
            )
    return sources


def print_json(files: Sequence[str]) -> int:
    """Prints the entries of files as JSON lines; returns the exit code."""
    code = CLEAN
    for path in files:
        entries, error = read_sidecar(path)
        for entry in entries:
            print_data(json_line({"file": os.path.basename(path), **entry}))
        if error is not None:
            code = PROBLEMS
            # The system's errors name the file themselves.
            place = "" if isinstance(error, OSError) else f"{path}: "
            print_problem(f"magicbyte: {place}{error}")
    return code


def sidecar_lines(path: str, entries: Sequence[Entry]) -> Iterator[str]:
    """Yields the lines that Kafka prints for these entries."""
    if kind_of(path) == ".index" and _core.StoredFile(path).size < _INDEX_ENTRY_BYTES:
        yield f"{path} is empty."
    for entry in entries:
        yield " ".join(f"{name}: {_text(name, value)}" for name, value in entry.items())


def _text(name: str, value: Any) -> str:
    if name != "currentTxnFirstOffset":
        return str(value)
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
