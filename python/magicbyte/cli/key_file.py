"""The file of `magicbyte redact --key-file`: one key per line, whatever an editor does to line ends."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable
from typing import BinaryIO

import click

from magicbyte.cli.terminal import print_problem

__all__ = ["read_keys"]

_OTHER_ENCODINGS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def read_keys(file: BinaryIO, parse: Callable[[str], bytes]) -> list[tuple[int, bytes]]:
    """Each key with the number of its line, from 1.

    Lines end with LF, CRLF or CR. A byte order mark is not part of the first key. Empty lines are ignored:
    the empty key can only be given by --key. Blanks are part of a key. Ignored lines and suspicious ones are
    reported on standard error by number, never by content.

    Raises:
        UsageError: the file is not UTF-8, a line is not a key, or there are no keys.

    """
    name, data = file.name, file.read()
    for mark, encoding in _OTHER_ENCODINGS.items():
        if data.startswith(mark):
            raise click.UsageError(f"{name} is in {encoding}: save it as UTF-8")
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise click.UsageError(
            f"{name}, line {number}: not UTF-8; with --key-format hex or base64 keys can have any bytes"
        ) from None
    if "\0" in text:
        number = text.count("\n", 0, text.index("\0")) + 1
        raise click.UsageError(
            f"{name}, line {number}: a zero byte; if the file is UTF-16, save it as UTF-8; if the byte is"
            " part of the key, use --key-format hex or base64"
        )
    lines = [line.rstrip("\n") for line in io.StringIO(text, newline=None)]
    empty = [number for number, line in enumerate(lines, 1) if not line]
    blank = [number for number, line in enumerate(lines, 1) if line != line.strip()]
    if empty:
        _report(f"{name}: {_lines(empty)} empty and ignored; --key '' selects records with an empty key")
    if blank:
        _report(f"{name}: {_lines(blank)} used with the blanks at the beginning or end")
    keys = []
    for number, text in enumerate(lines, 1):
        if text:
            try:
                keys.append((number, parse(text)))
            except click.UsageError as error:
                raise click.UsageError(f"{name}, line {number}: {error.message}") from None
    if not keys:
        raise click.UsageError(f"{name} has no key")
    return keys


def _lines(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"line {numbers[0]} is"
    return f"{len(numbers):,} lines (the first is {numbers[0]}) are"


def _report(message: str) -> None:
    print_problem(f"magicbyte: {message}")
