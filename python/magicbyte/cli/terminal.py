"""Standard output and standard error: nothing that others wrote acts on the terminal that shows it.

Names of files and topics, keys, values and headers belong to whoever made them. They may hold escape
sequences, line ends that forge a line of ours, and characters that turn the direction of writing.
"""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

__all__ = [
    "ReaderGoneError",
    "drop_output",
    "json_line",
    "plain",
    "prepare",
    "print_data",
    "print_line",
    "print_problem",
]

_JSON_HIDDEN = re.compile(r"[^\x20-\x7e]")


class ReaderGoneError(Exception):
    """Nobody reads standard output any more: `head`, perhaps, has all it wanted."""


def plain(text: str) -> str:
    r"""The text with an escape such as `\x1b`, `\n` or `\u202e` for each character that is not seen.

    These are controls, line ends, changes of direction, spaces of other widths, and bytes of a file
    name that are not UTF-8 (`\udc80` and up). The rule for all that commands print.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def json_line(document: Any) -> str:
    """JSON in one line and in readable characters, with JSON's escapes for those `plain` would escape."""
    text = json.dumps(document, ensure_ascii=False)
    if text.isprintable():
        return text
    return _JSON_HIDDEN.sub(lambda one: one[0] if one[0].isprintable() else json.dumps(one[0])[1:-1], text)


def print_line(line: str = "") -> None:
    """Prints one line for people. If nobody reads, the command goes on, and its exit code stays true."""
    try:
        _write(f"{plain(line)}\n")
    except ReaderGoneError:
        drop_output()


def print_data(*lines: str) -> None:
    """Prints lines that programs read: exactly as they are, but `plain` on a terminal.

    Raises:
        ReaderGoneError: the other end of the pipe is closed; there is no use in going on.

    """
    shown = map(plain, lines) if sys.stdout.isatty() else lines
    _write("".join(f"{line}\n" for line in shown))


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise ReaderGoneError from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from None


def print_problem(message: str) -> None:
    """Prints one line on standard error; if that fails, there is nobody to tell."""
    with suppress(OSError):
        print(plain(message), file=sys.stderr, flush=True)


def prepare() -> None:
    """Makes both streams take any text: data goes into a pipe as the bytes it came from."""
    if sys.stderr is None:
        # Closed. `print` would take standard output instead, and the next file opened this number.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for as long as the process lives)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")
            else:
                stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def drop_output() -> None:
    """Lets standard output lead nowhere: Python would fail again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
