"""Options of the command line alone that several commands share."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from magicbyte.cli.flags import flag
from magicbyte.internal_topics.decode import DECODERS
from magicbyte.options.declare import Options, option
from magicbyte.options.values import OneOf

__all__ = ["BYTE_FORMATS", "InternalTopics", "Json", "OutFile", "Secrets", "as_json", "html", "key_bytes"]

F = TypeVar("F", bound=Callable[..., Any])

_FROM_TEXT: dict[str, Callable[[str], bytes]] = {
    "utf-8": str.encode,
    "hex": bytes.fromhex,
    "base64": lambda text: base64.b64decode(text, validate=True),
}
BYTE_FORMATS = tuple(_FROM_TEXT)
"""Formats in which bytes are given or shown as text."""


@dataclass(frozen=True, kw_only=True)
class Secrets(Options):
    """The secrets in decoded messages."""

    show_secrets: bool = option(
        "Show passwords, keys and tokens in decoded messages, which are otherwise [hidden] or null.",
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class InternalTopics(Secrets):
    """The decoding of the records of Kafka's internal topics."""

    decode: str = option(
        "Decode the records of one of Kafka's internal topics; auto goes by the directory's name.",
        default="auto",
        kind=OneOf({name: name for name in ("auto", *(one for one in DECODERS if one != "none"), "none")}),
    )


def key_bytes(key: str, key_format: str) -> bytes:
    """The key that `--key` gives in the format of `--key-format`.

    Raises:
        UsageError: it is not in that format.

    """
    try:
        # The text of a document is the key.
        return _FROM_TEXT["utf-8" if key_format == "json" else key_format](key)
    except (ValueError, binascii.Error):
        # Without the key: it may be what has to be forgotten.
        raise click.UsageError(f"a key is not valid {key_format}") from None


@dataclass(frozen=True, kw_only=True)
class Json(Options):
    """The form of a report."""

    as_json: bool = option("Print one JSON document instead of text.", default=False, flag="--json")


class OutFile(click.Path):
    """The path of a file that a command writes at its end, in a directory that is there at its start."""

    def __init__(self, *, path_type: type[Path] | None = None) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=path_type)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType.convert`."""
        if not os.fspath(value):
            self.fail("the path is empty: expected a file", param, ctx)
        directory = os.path.dirname(os.path.abspath(value))
        if not os.path.isdir(directory):
            what = "is not a directory" if os.path.lexists(directory) else "does not exist"
            self.fail(f"{directory} {what}", param, ctx)
        return super().convert(value, param, ctx)


def html(what: str) -> Callable[[F], F]:
    """`--html`, which the command gets as `page`; `what` is what the page shows."""
    return click.option(
        "--html",
        "page",
        type=OutFile(path_type=Path),
        help=f"Also write {what} as an HTML page to this file, which may replace an earlier page but no other"
        " file.",
    )


as_json = flag(Json, "as_json")
"""`--json`, for a command that has no table to print."""
