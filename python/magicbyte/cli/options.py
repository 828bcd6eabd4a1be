"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from magicbyte import _core

__all__ = [
    "BYTES",
    "TIME",
    "as_json",
    "isolation_level",
    "leader_epoch",
    "max_decompressed_bytes",
    "mode",
    "segment_bytes",
    "threads",
    "topic_ids",
]

F = TypeVar("F", bound=Callable[..., Any])

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


if TYPE_CHECKING:
    _Int = click.ParamType[int]
else:
    # Generic since 8.4 only.
    _Int = click.ParamType


class _Bytes(_Int):
    """A size: `1048576`, `512k`, `64MiB`, `1g`."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d+)([kmg]?)(i?b)?", str(value).strip().lower())
        if match is None:
            self.fail(f"{value!r} is no size such as 1048576, 512k, 64MiB or 1g", param, ctx)
        return int(match[1]) * _UNITS[match[2]]


class _Time(_Int):
    """A time in milliseconds since 1970, or in ISO 8601 (UTC unless it says otherwise)."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        if re.fullmatch(r"-?\d{5,}", text):
            return int(text)
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{value!r} is neither milliseconds since 1970 nor ISO 8601", param, ctx)
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        return round(time.timestamp() * 1000)


BYTES = _Bytes()
TIME = _Time()


def as_json(command: F) -> F:
    """`--json`"""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")(
        command
    )


def isolation_level(command: F) -> F:
    """`--isolation-level`"""
    return click.option(
        "--isolation-level",
        type=click.Choice(["read_uncommitted", "read_committed"]),
        default="read_uncommitted",
        show_default=True,
        help="read_committed leaves out aborted records and ends at the last stable offset.",
    )(command)


def max_decompressed_bytes(command: F) -> F:
    """`--max-decompressed-bytes`"""
    return click.option(
        "--max-decompressed-bytes",
        type=BYTES,
        default=f"{_core.DEFAULT_MAX_DECOMPRESSED_BYTES >> 20}MiB",
        show_default=True,
        help="Quarantine batches that are larger than this after decompression.",
    )(command)


def mode(command: F) -> F:
    """`--mode`"""
    return click.option(
        "--mode",
        type=click.Choice(["PERMISSIVE", "FAILFAST"], case_sensitive=False),
        default="PERMISSIVE",
        show_default=True,
        help="PERMISSIVE leaves out what is damaged, and counts it. FAILFAST stops at the first bad batch,"
        " with its error, and leaves no output.",
    )(command)


def threads(command: F) -> F:
    """`--threads`"""
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        show_default="one a core",
        metavar="N",
        help="Threads that decode.",
    )(command)


def segment_bytes(command: F) -> F:
    """`--segment-bytes`"""
    return click.option(
        "--segment-bytes",
        type=BYTES,
        default="128MiB",
        show_default=True,
        help="Size at which the next segment begins; a task writes at least one.",
    )(command)


def leader_epoch(command: F) -> F:
    """`--leader-epoch`"""
    return click.option(
        "--leader-epoch",
        type=click.IntRange(min=-1),
        show_default="each batch's own",
        metavar="EPOCH",
        help="The leader epoch of every batch written. A broker warns of epochs above"
        " its own: for another cluster give -1, which is none.",
    )(command)


def topic_ids(command: F) -> F:
    """`--topic-id`"""

    def parse(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
        pairs = [value.partition("=") for value in values]
        if not all(topic and topic_id for topic, _, topic_id in pairs):
            raise click.BadParameter("expected TOPIC=ID")
        return {topic: topic_id for topic, _, topic_id in pairs}

    return click.option(
        "--topic-id",
        "topic_ids",
        multiple=True,
        metavar="TOPIC=ID",
        callback=parse,
        help="Write partition.metadata with this id; may be given again. Without it the broker does.",
    )(command)
