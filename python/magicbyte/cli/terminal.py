"""Standard output and standard error: untrusted text never controls the terminal that shows it.

Names of files and topics, keys, values and headers are untrusted. They may hold escape sequences, line
ends that forge a line of output, and characters that reverse the direction of writing.
"""

from __future__ import annotations

import base64
import json
import os
import re
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any

__all__ = [
    "NAMES",
    "ReaderGoneError",
    "drop_output",
    "flush",
    "is_reader_gone",
    "is_terminal",
    "json_line",
    "plain",
    "prepare",
    "print_bytes",
    "print_data",
    "print_line",
    "print_problem",
]

NAMES: dict[str, str] = {}
"""The names that users gave to temporary files, by their paths: output has the name instead of the path."""
_JSON_HIDDEN = re.compile(r"[^\x20-\x7e]")


class ReaderGoneError(Exception):
    """The reader of standard output has closed it, as `head` does."""


def plain(text: str) -> str:
    r"""The text with an escape such as `\x1b`, `\n` or `\u202e` for each invisible character.

    These are controls, line ends, changes of direction, spaces of other widths, and bytes of a file
    name that are not UTF-8 (`\udc80` and up).
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def json_line(document: Any) -> str:
    """JSON on one line, with JSON's escapes for the characters that `plain` would escape; bytes in base64."""
    text = json.dumps(document, ensure_ascii=False, default=_base64)
    if text.isprintable():
        return text
    return _JSON_HIDDEN.sub(lambda one: one[0] if one[0].isprintable() else json.dumps(one[0])[1:-1], text)


def _base64(value: object) -> str:
    if not isinstance(value, bytes):
        raise TypeError(f"JSON has no {type(value).__name__}")
    return base64.b64encode(value).decode()


def is_terminal() -> bool:
    """True if standard output is a terminal: text printed there must be `plain`."""
    return sys.stdout.isatty()


def print_line(line: str = "") -> None:
    """Prints one line for people. If the reader is gone, the command goes on: its exit code still counts."""
    try:
        _write(f"{plain(_named(line))}\n")
    except ReaderGoneError:
        drop_output()


def print_data(*lines: str) -> None:
    """Prints lines for programs: exactly as they are (but for `NAMES`), and `plain` on a terminal.

    Raises:
        ReaderGoneError: the other end of the pipe is closed; there is no point in going on.

    """
    named = map(_named, lines) if NAMES else lines
    shown = map(plain, named) if is_terminal() else named
    _write("".join(f"{line}\n" for line in shown))


def print_bytes(data: bytes) -> None:
    """Prints bytes for programs, exactly as they are. On a terminal they are text, and already `plain`.

    Raises:
        ReaderGoneError: as for `print_data`.

    """
    if isinstance(sys.stdout, TextIOWrapper) and not is_terminal():
        with _standard_output():
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
    else:
        _write(data.decode("utf-8", "surrogateescape"))


def flush() -> None:
    """Sends the output so far to the reader, before a command waits.

    Raises:
        ReaderGoneError: as for `print_data`.

    """
    with _standard_output():
        sys.stdout.flush()


def is_reader_gone() -> bool:
    """True if standard output is a pipe that nobody reads any more. Windows does not tell."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def _write(text: str) -> None:
    with _standard_output():
        sys.stdout.write(text)


@contextmanager
def _standard_output() -> Iterator[None]:
    """Names standard output in errors of writing to it."""
    try:
        yield
    except BrokenPipeError:
        raise ReaderGoneError from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from None


def print_problem(message: str) -> None:
    """Prints one line on standard error; a failure is ignored, as there is nowhere to report it."""
    with suppress(OSError):
        print(plain(_named(message)), file=sys.stderr, flush=True)


def _named(text: str) -> str:
    for path, name in NAMES.items():
        text = text.replace(path, name)
    return text


def prepare() -> None:
    """Makes both streams accept any text: into a pipe goes UTF-8, and data as the bytes it was read from."""
    if sys.stderr is None:
        # Closed: `print` would use standard output instead, and the next file opened would get its number.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (open as long as the process lives)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")
            else:
                stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def drop_output() -> None:
    """Redirects standard output to nowhere: Python flushes it at exit, and would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
