"""The options that only Spark has, with the names and meanings of Spark's Kafka source, if it has them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from magicbyte.enums import Compression
from magicbyte.options.declare import Options, option
from magicbyte.options.values import (
    LEVEL,
    SEGMENT_SIZE,
    Kind,
    Number,
    OneOf,
    Repeated,
    Size,
    check_topic_id,
    words,
)

__all__ = ["BatchOptions", "QueryOptions", "StreamOnlyOptions", "TableName", "TriggerOptions", "WriteOptions"]

TableName: TypeAlias = Literal["records", "batches", "segments", "problems", "producers", "transactions"]
"""The tables of the data source."""

_UNITS = {"us": 1e-6, "ms": 0.001, "": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_POSITIVE = Number(1)
_PARTITION = Number(0, (1 << 31) - 1)
_OFFSETS = Kind("OFFSETS")
_TIMESTAMP = Kind("MS")
_SET = re.compile(r"\\.|\[\^?\]?((?:\\.|[^\]\\])*)")
"""An escaped character, or a set of characters with its content."""


class _Pattern(Kind):
    """A regular expression."""

    def parse(self, text: str) -> str:
        text = text.strip()
        if not text:
            raise ValueError("the pattern is blank")
        # Python would take them as characters of the set.
        if any("[" in content or "&&" in content for content in _set_contents(text)):
            raise ValueError(
                f"{text!r} has [ or && in a set of characters: patterns are those of Python, not of Java"
            )
        try:
            re.compile(text)
        except re.error as error:
            raise ValueError(f"{text!r} is not a regular expression: {error}") from None
        return text


def _set_contents(pattern: str) -> list[str]:
    """The contents of a pattern's sets, without escaped characters."""
    return [re.sub(r"\\.", "", found[1]) for found in _SET.finditer(pattern) if found[1] is not None]


def _listed(numbers: Any) -> list[Any]:
    if not isinstance(numbers, list):
        raise ValueError(f"{numbers!r} is not a list")
    return numbers


class _Parsed(Kind):
    """A value that is only ever made from text."""

    def normal(self, value: Any) -> Any:
        return value


class _Assigned(_Parsed):
    """Partitions of topics, as JSON."""

    def parse(self, text: str) -> frozenset[tuple[str, int]]:
        try:
            topics = json.loads(text).items()
            return frozenset((topic, _PARTITION.normal(one)) for topic, all in topics for one in _listed(all))
        except (AttributeError, ValueError, RecursionError):
            raise ValueError(f'{text[:80]!r} does not look like {{"topicA":[0,1],"topicB":[2,4]}}') from None


class _Duration(_Parsed):
    """A time as Spark writes it, such as `15m`, `30s` or `500ms`; milliseconds without a unit."""

    unit = "In seconds."

    def parse(self, text: str) -> float:
        parts = re.fullmatch(r"(\d{1,18})\s*([a-z]*)", text.strip().lower())
        if parts is None or parts[2] not in _UNITS:
            raise ValueError(f"{text!r} is not a duration such as 15m, 30s or 500ms")
        return int(parts[1]) * _UNITS[parts[2]]


class _TopicIds(_Parsed):
    """IDs of topics, as JSON."""

    def parse(self, text: str) -> dict[str, str]:
        try:
            ids = json.loads(text)
            for topic_id in ids.values():
                check_topic_id(topic_id)
        except (AttributeError, ValueError, RecursionError):
            example = '{"topic": "AAAAAAAAAAAAAAAAAAAAAQ"}'
            raise ValueError(f"{text[:80]!r} does not look like {example}") from None
        return {str(topic): str(topic_id) for topic, topic_id in ids.items()}


@dataclass(frozen=True, kw_only=True)
class QueryOptions(Options):
    """Options of batch queries and streams."""

    path: str | None = option("The directories or URLs to read.", default=None, kind=Kind("PATH"))
    subscribe: tuple[str, ...] | None = option("Read these topics.", default=None, kind=Repeated("TOPIC"))
    subscribe_pattern: str | None = option(
        "Read the topics of whose names a part matches.", default=None, kind=_Pattern("REGEX")
    )
    assign: frozenset[tuple[str, int]] | None = option(
        "Read these partitions.", default=None, kind=_Assigned("JSON")
    )
    starting_offsets: str | None = option("The first offsets.", default=None, kind=_OFFSETS)
    starting_offsets_by_timestamp: str | None = option(
        "The start, as a time for each partition.", default=None, kind=_OFFSETS
    )
    starting_offsets_by_timestamp_strategy: Literal["error", "latest"] = option(
        "The response to a start after the last record.",
        default="error",
        kind=OneOf({"error": "error", "latest": "latest"}),
    )
    starting_timestamp: str | None = option(
        "The start, as one time for all partitions.", default=None, kind=_TIMESTAMP
    )
    fail_on_data_loss: bool = option("Fail if requested offsets are gone.", default=True)
    min_partitions: int | None = option("The least number of tasks.", default=None, kind=_POSITIVE)
    max_records_per_partition: int | None = option(
        "The most records of a task.", default=None, kind=_POSITIVE
    )
    table: TableName = option("The table to read.", default="records", kind=words(TableName))
    columns: tuple[str, ...] | None = option("The columns.", default=None, kind=Repeated("COLUMN"))
    include_headers: bool = option("Add the column headers.", default=False)
    registry_config: str | None = option(
        "A file with settings for requests to a live registry.", default=None, kind=Kind("FILE")
    )
    encryption_key: tuple[str, ...] = option(
        "Private keys of encrypted segments in tiered storage: FILE or ID=FILE.",
        default=(),
        kind=Repeated("KEY"),
    )


@dataclass(frozen=True, kw_only=True)
class BatchOptions(Options):
    """Options of batch queries only."""

    ending_offsets: str | None = option("The ends of the offsets.", default=None, kind=_OFFSETS)
    ending_offsets_by_timestamp: str | None = option(
        "The end, as a time for each partition.", default=None, kind=_OFFSETS
    )
    ending_timestamp: str | None = option(
        "The end, as one time for all partitions.", default=None, kind=_TIMESTAMP
    )
    filter_pushdown: bool = option("Leave out chunks by the filters of a query.", default=False)


@dataclass(frozen=True, kw_only=True)
class TriggerOptions(Options):
    """Options of streams that batch queries ignore, as Spark's Kafka source does."""

    max_offsets_per_trigger: int | None = option(
        "The most offsets per trigger, over all partitions.", default=None, kind=_POSITIVE
    )
    min_offsets_per_trigger: int | None = option(
        "The least offsets per trigger, over all partitions.", default=None, kind=_POSITIVE
    )
    max_trigger_delay: float = option(
        "The longest wait for the least offsets.", default=900.0, kind=_Duration("DURATION")
    )
    max_bytes_per_trigger: int | None = option(
        "The most bytes per trigger, over all partitions, as stored; at least one chunk for each.",
        default=None,
        kind=_POSITIVE,
    )


@dataclass(frozen=True, kw_only=True)
class StreamOnlyOptions(Options):
    """Options of streams only."""

    include_above_high_watermark: bool = option(
        "Read records that a broker may not have replicated.", default=False
    )
    fail_on_unknown_schema: bool = option(
        "Fail a micro-batch if the registry does not have the schema of a key or value.", default=True
    )


@dataclass(frozen=True, kw_only=True)
class WriteOptions(Options):
    """Options of the writer."""

    path: str | None = option("The directory of the partitions.", default=None, kind=Kind("PATH"))
    topic: str | None = option("The topic of rows without one.", default=None, kind=Kind("TOPIC"))
    compression: int = option(
        "The codec.",
        default=0,
        kind=OneOf({codec.name.lower(): codec.value for codec in Compression} | {"uncompressed": 0}),
    )
    level: int | None = option("The level of the codec.", default=None, kind=LEVEL)
    batch_bytes: int = option(
        "The approximate size of a batch.", default=256 << 10, kind=Size((1 << 31) - 1, least=1)
    )
    segment_bytes: int = option("The most bytes of a segment.", default=1 << 30, kind=SEGMENT_SIZE)
    topic_ids: Mapping[str, str] = option(
        "The topics' ids for partition.metadata.", default_factory=dict, kind=_TopicIds("JSON")
    )
