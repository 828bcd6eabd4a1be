"""Types of values, and options that several commands share."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.internal_topics.decode import DECODERS
from magicbyte.jobs.find.choice import ONLY_TOPIC

__all__ = [
    "BYTES",
    "COUNT",
    "MILLIS",
    "OFFSET",
    "PARTITIONS",
    "SEGMENT_BYTES",
    "TIME",
    "Number",
    "as_json",
    "decode",
    "follow",
    "isolation_level",
    "key_bytes",
    "key_format",
    "leader_epoch",
    "max_connections",
    "max_decompressed_bytes",
    "mode",
    "segment_bytes",
    "topic_config",
    "topic_ids",
    "value_format",
]

F = TypeVar("F", bound=Callable[..., Any])

# The sum of two of them still fits in 64 bits.
_MOST = 1 << 62
_MOST_PARTITIONS = 1 << 20
_SECONDS = range(10**9, 10**11)
"""Times that are meant in seconds, as `date +%s` prints them: from 2001 to 5138. In milliseconds they are
from 1970 to 1973, before there was Kafka."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


if TYPE_CHECKING:
    _Int = click.ParamType[int]
    _IntSet = click.ParamType[frozenset[int]]
else:
    # Generic only since click 8.4.
    _Int = click.ParamType
    _IntSet = click.ParamType


class Number(_Int):
    """A whole number from `least` to `most`; anything else is a usage error, before a job starts."""

    name = "integer"

    def __init__(self, least: int, most: int = _MOST) -> None:
        self._least = least
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See `click.ParamType.convert`."""
        text = str(value).strip()
        if re.fullmatch(r"[+-]?\d{1,20}", text) is None:
            self.fail(f"{value!r} is not a whole number of at most 20 digits", param, ctx)
        if not self._least <= int(text) <= self._most:
            self.fail(f"{text} is not in the range from {self._least:,} to {self._most:,}", param, ctx)
        return int(text)


class _Bytes(_Int):
    """A size: `1048576`, `512k`, `64MiB`, `1g`."""

    name = "size"

    def __init__(self, most: int = _MOST) -> None:
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d{1,20})([kmg]?)(i?b)?", str(value).strip().lower())
        if match is None:
            self.fail(f"{value!r} is not a size such as 1048576, 512k, 64MiB or 1g", param, ctx)
        size = int(match[1]) * _UNITS[match[2]]
        if size > self._most:
            self.fail(f"{value} is more than {self._most:,} bytes", param, ctx)
        return size


class _Time(_Int):
    """A time in milliseconds or seconds since 1970, or in ISO 8601 (UTC unless it has an offset)."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        if re.fullmatch(r"-?\d{5,}", text):
            number = Number(-_MOST, (1 << 63) - 1).convert(text, param, ctx)
            return number * 1000 if number in _SECONDS else number
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{value!r} is neither milliseconds or seconds since 1970 nor ISO 8601", param, ctx)
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        return round(time.timestamp() * 1000)


class _Partitions(_IntSet):
    """Numbers of partitions: `7`, `0,3`, `0-15`."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[int]:
        numbers: set[int] = set()
        for part in str(value).split(","):
            match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part)
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
            if not first <= last < first + _MOST_PARTITIONS:
                self.fail(f"{value!r} are not partitions such as 7 or 0,3 or 0-15", param, ctx)
            numbers.update(range(first, last + 1))
        return frozenset(numbers)


BYTES = _Bytes()
_LARGEST_BATCH = (1 << 32) - 1
"""Positions within a batch's records are 32-bit numbers."""
SEGMENT_BYTES = _Bytes((1 << 31) - 1)
TIME = _Time()
OFFSET = Number(0, (1 << 63) - 1)
MILLIS = Number(0)
COUNT = Number(0)
PARTITIONS = _Partitions()

_FROM_TEXT: dict[str, Callable[[str], bytes]] = {
    "utf-8": str.encode,
    "hex": bytes.fromhex,
    "base64": lambda text: base64.b64decode(text, validate=True),
}


def follow(command: F) -> F:
    """`--follow`"""
    return click.option(
        "--follow",
        is_flag=True,
        help="Follow growing logs: look for new segments and records until interrupted.",
    )(command)


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


def max_connections(command: F) -> F:
    """`--max-connections`"""
    return click.option(
        "--max-connections",
        type=Number(1, 1 << 16),
        default=256,
        show_default=True,
        metavar="N",
        help="The maximum number of connections; further connections are closed at once.",
    )(command)


def max_decompressed_bytes(command: F) -> F:
    """`--max-decompressed-bytes`"""
    return click.option(
        "--max-decompressed-bytes",
        type=_Bytes(_LARGEST_BATCH),
        default=f"{_core.DEFAULT_MAX_DECOMPRESSED_BYTES >> 20}MiB",
        show_default=True,
        help="Treat batches that are larger than this after decompression as damaged.",
    )(command)


def mode(command: F) -> F:
    """`--mode`"""
    return click.option(
        "--mode",
        type=click.Choice(["PERMISSIVE", "FAILFAST"], case_sensitive=False),
        metavar="[PERMISSIVE|FAILFAST]",
        default="PERMISSIVE",
        show_default=True,
        help="PERMISSIVE leaves out damaged batches and counts them. FAILFAST fails at the first one, without"
        " any output.",
    )(command)


def decode(command: F) -> F:
    """`--decode`"""
    return click.option(
        "--decode",
        type=click.Choice(["auto", *(name for name in DECODERS if name != "none"), "none"]),
        default="auto",
        show_default=True,
        help="Decode the records of one of Kafka's internal topics; auto goes by the directory's name.",
    )(command)


def show_secrets(command: F) -> F:
    """`--show-secrets`"""
    return click.option(
        "--show-secrets",
        is_flag=True,
        help="Show passwords, keys and tokens in decoded messages, which are otherwise [hidden] or null.",
    )(command)


def key_format(help_text: str, *, documents: bool = False) -> Callable[[F], F]:
    """`--key-format`; with `documents`, also those of documents and of schemas."""
    return _format("--key-format", help_text, documents)


def value_format(help_text: str, *, documents: bool = False) -> Callable[[F], F]:
    """`--value-format`; with `documents`, also those of documents and of schemas."""
    return _format("--value-format", help_text, documents)


def _format(name: str, help_text: str, documents: bool) -> Callable[[F], F]:
    formats = [*_FROM_TEXT, "json", "avro", "protobuf"] if documents else [*_FROM_TEXT]
    return click.option(name, type=click.Choice(formats), default="utf-8", show_default=True, help=help_text)


def segment_bytes(command: F) -> F:
    """`--segment-bytes`"""
    return click.option(
        "--segment-bytes",
        type=SEGMENT_BYTES,
        default="128MiB",
        show_default=True,
        help="Start a new segment at this size; each task writes at least one.",
    )(command)


def leader_epoch(command: F) -> F:
    """`--leader-epoch`"""
    return click.option(
        "--leader-epoch",
        type=Number(0, (1 << 31) - 1),
        show_default="each batch's own; 0 if it has none",
        metavar="EPOCH",
        help="The leader epoch of every batch written. Followers refuse epochs above that of the partition:"
        " for another cluster give 0.",
    )(command)


_WRITES_METADATA = (
    "The topic's id in the cluster that OUT is for, for partition.metadata; may be repeated. A bare ID is"
    " that of the only topic."
)


def topic_ids(help_text: str = _WRITES_METADATA, *, default: str | None = "that of SRC") -> Callable[[F], F]:
    """`--topic-id`; with a default, an ID can be given without its topic."""

    def parse(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
        pairs = [value.rpartition("=") for value in values]
        if not all(topic_id and (topic if equals else default) for topic, equals, topic_id in pairs):
            raise click.BadParameter("expected TOPIC=ID")
        for _, _, topic_id in pairs:
            # Checked here: the file is written only at the end of the job.
            try:
                _core.partition_metadata(f"version: 0\ntopic_id: {topic_id}\n")
            except Error:
                raise click.BadParameter(
                    f"{topic_id!r} is not a topic id: 22 characters of URL-safe base64"
                ) from None
        return {topic or ONLY_TOPIC: topic_id for topic, _, topic_id in pairs}

    return click.option(
        "--topic-id",
        "topic_ids",
        multiple=True,
        metavar="TOPIC=ID",
        callback=parse,
        show_default=default or False,
        help=help_text,
    )


def topic_config(command: F) -> F:
    """`--topic-config`"""
    return click.option(
        "--topic-config",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Configs of topics as JSON, for clusters with ZooKeeper: "
        '{"orders": {"cleanup.policy": "compact"}}. They take precedence over __cluster_metadata.',
    )(command)
