"""The options of the data source: names and meaning of Spark's own Kafka source where it has them."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from magicbyte import _core
from magicbyte.jobs.columns import BATCH_METADATA, KAFKA_COLUMNS, RECORDS_WITH_METADATA
from magicbyte.spark.offsets import Edge, ending_edge, starting_edge

__all__ = [
    "OptionError",
    "Options",
    "StreamOptions",
    "Topics",
    "known_options",
    "parse_options",
    "parse_stream_options",
    "parse_table",
]

TABLES = ("records", "batches", "segments", "problems", "producers", "transactions")

_KNOWN = (
    "path",
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "endingTimestamp",
    "includeHeaders",
    "minPartitions",
    "table",
    "isolationLevel",
    "mode",
    "includeBatchMetadata",
    "columns",
    "filterPushdown",
    "maxDecompressedBytes",
)
# Options that speak of a broker, as Spark's Kafka source has them, or of a stream: a job that moves to
# files may leave them in place. `paths` is how Spark hands on `load([...])`.
_IGNORED = (
    "paths",
    "failOnDataLoss",
    "groupIdPrefix",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "maxBytesPerTrigger",
    "maxRecordsPerPartition",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
_IGNORED_PREFIXES = ("kafka.", "option.")
# What Spark's catalog knows of a table comes with its options, and they once more with a prefix.
_OF_CATALOG = (
    "collation",
    "comment",
    "external",
    "is_managed_location",
    "location",
    "owner",
    "provider",
    "table_type",
)
_KAFKA_ISOLATION = "kafka.isolation.level"


class OptionError(ValueError):
    """An option that is unknown, or a value it does not take."""


@dataclass(frozen=True)
class Topics:
    """Which partitions are read: those of named topics, of a pattern, or named ones; or all."""

    names: frozenset[str] | None = None
    pattern: str | None = None
    partitions: frozenset[tuple[str, int]] | None = None

    def take(self, topic: str, partition: int) -> bool:
        """Whether a partition is read."""
        if self.names is not None:
            return topic in self.names
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return self.partitions is None or (topic, partition) in self.partitions


@dataclass(frozen=True)
class Options:
    """What a read asks for, checked."""

    paths: tuple[str, ...]
    table: str
    columns: tuple[str, ...] | None
    """Those of the table; None: all it has."""
    topics: Topics
    starting: Edge
    ending: Edge
    isolation_level: str
    fail_fast: bool
    filter_pushdown: bool
    min_partitions: int | None
    max_decompressed_bytes: int


@dataclass(frozen=True)
class StreamOptions:
    """What a stream asks for, checked; see Spark's Kafka source for those that are not ours."""

    read: Options
    fail_on_data_loss: bool
    max_offsets: int | None
    """A trigger's, over all partitions."""
    min_offsets: int | None
    max_delay_seconds: float
    """How long to wait for `min_offsets`."""
    max_bytes: int | None
    """A trigger's, over all partitions, as the bytes lie in the segments; at least a chunk each."""


def parse_table(given: Mapping[str, str]) -> tuple[str, tuple[str, ...] | None]:
    """Only what says how rows look: the table, and its columns (None: all it has).

    Raises:
        OptionError: what is wrong, and what would be right.

    """
    options = _lower(given)
    table = _choice("table", options.get("table") or "records", TABLES)
    return table, _columns(options.get("columns"), table, options)


def parse_stream_options(given: Mapping[str, str]) -> StreamOptions:
    """Checks the options of a stream; names are case-insensitive.

    Raises:
        OptionError: what is wrong, and what would be right.

    """
    options = _lower(given)
    for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp", "filterPushdown"):
        if name.lower() in options:
            raise OptionError(f"{name} is for batch queries: a stream has no such thing")
    read = parse_options(given, streaming=True)
    if read.table not in ("records", "batches", "problems"):
        raise OptionError(f"table {read.table} cannot be streamed: records, batches and problems can")
    return StreamOptions(
        read,
        fail_on_data_loss=_flag("failOnDataLoss", options.get("failondataloss"), "true"),
        max_offsets=_positive("maxOffsetsPerTrigger", options.get("maxoffsetspertrigger")),
        min_offsets=_positive("minOffsetsPerTrigger", options.get("minoffsetspertrigger")),
        max_delay_seconds=_seconds("maxTriggerDelay", options.get("maxtriggerdelay") or "15m"),
        max_bytes=_positive("maxBytesPerTrigger", options.get("maxbytespertrigger")),
    )


def parse_options(given: Mapping[str, str], *, streaming: bool = False) -> Options:
    """Checks the options of a read; names are case-insensitive.

    Raises:
        OptionError: what is wrong, and what would be right.

    """
    options = _lower(given)

    def get(name: str) -> str | None:
        return options.get(name.lower())

    table = _choice("table", get("table") or "records", TABLES)
    isolation = get("isolationLevel") or get(_KAFKA_ISOLATION) or "read_uncommitted"
    mode = _choice("mode", (get("mode") or "PERMISSIVE").upper(), ("PERMISSIVE", "FAILFAST"))
    try:
        starting = starting_edge(get, streaming=streaming)
        ending = ending_edge(get)
    except ValueError as error:
        raise OptionError(str(error)) from None
    return Options(
        paths=_paths(options),
        table=table,
        columns=_columns(get("columns"), table, options),
        topics=_topics(options),
        starting=starting,
        ending=ending,
        isolation_level=_choice("isolationLevel", isolation, ("read_uncommitted", "read_committed")),
        fail_fast=mode == "FAILFAST",
        filter_pushdown=_flag("filterPushdown", get("filterPushdown")),
        min_partitions=_positive("minPartitions", get("minPartitions")),
        max_decompressed_bytes=_column_limit(get("maxDecompressedBytes")),
    )


def _lower(given: Mapping[str, str]) -> dict[str, str]:
    options = {key.lower(): value for key, value in given.items()}
    _check_names(options)
    return options


def _check_names(options: Mapping[str, str]) -> None:
    known = {name.lower() for name in _KNOWN}
    ignored = {name.lower() for name in (*_IGNORED, *_OF_CATALOG)}
    for name in options:
        if name in known or name in ignored or name.startswith(_IGNORED_PREFIXES):
            continue
        raise _unknown(name, _KNOWN)


def known_options(options: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Options for writing under their own names, whatever their case; unknown ones are refused."""
    known = {name.lower(): name for name in names}
    given = {}
    for name, value in options.items():
        low = name.lower()
        if low in known:
            given[known[low]] = value
        elif low not in ("paths", *_OF_CATALOG) and not low.startswith(_IGNORED_PREFIXES):
            raise _unknown(low, names)
    return given


def _unknown(name: str, names: tuple[str, ...]) -> OptionError:
    known = {name.lower(): name for name in names}
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {known[near[0]]}?" if near else "."
    return OptionError(f"unknown option {name}{hint} Known are: {', '.join(names)}")


def _choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise OptionError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    return value


def _flag(name: str, value: str | None, default: str = "false") -> bool:
    return _choice(name, (value or default).lower(), ("true", "false")) == "true"


def _seconds(name: str, value: str) -> float:
    """As Spark writes a duration: `15m`, `30s`, `500ms`; without a unit, milliseconds."""
    units = {"ms": 0.001, "": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
    parts = re.fullmatch(r"(\d+)\s*([a-z]*)", value.strip().lower())
    if parts is None or parts[2] not in units:
        raise OptionError(f"{name} must be a duration such as 15m, 30s or 500ms, not {value!r}")
    return int(parts[1]) * units[parts[2]]


def _positive(name: str, value: str | None) -> int | None:
    if value is None:
        return None
    if not value.strip().isdecimal() or int(value) == 0:
        raise OptionError(f"{name} must be a whole number above 0, not {value!r}")
    return int(value)


def _column_limit(value: str | None) -> int:
    limit = _positive("maxDecompressedBytes", value) or _core.DEFAULT_MAX_DECOMPRESSED_BYTES
    if limit > _core.MAX_COLUMN_PAYLOAD:
        raise OptionError(
            f"maxDecompressedBytes must be at most {_core.MAX_COLUMN_PAYLOAD} (1 GiB), not {limit}"
        )
    return limit


def _json(name: str, value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        raise OptionError(f"{name} is not JSON: {value!r}") from None


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    listed = _json("paths", options["paths"]) if "paths" in options else []
    paths = tuple(filter(None, (options.get("path"), *listed)))
    if not paths:
        raise OptionError(
            """option path is missing: .option("path", "/backup/kafka-logs"). Spark's catalog forgets the """
            "options of a table: SELECT ... FROM it WITH ('path' = '...'), or make it a temporary view"
        )
    return paths


def _topics(options: Mapping[str, str]) -> Topics:
    given = [name for name in ("subscribe", "subscribePattern", "assign") if name.lower() in options]
    if len(given) > 1:
        raise OptionError(f"only one of {' and '.join(given)} can be given")
    if given == ["subscribe"]:
        return Topics(names=frozenset(name.strip() for name in options["subscribe"].split(",")))
    if given == ["subscribePattern"]:
        try:
            re.compile(options["subscribepattern"])
        except re.error as error:
            raise OptionError(f"subscribePattern is no regular expression: {error}") from None
        return Topics(pattern=options["subscribepattern"])
    if given == ["assign"]:
        assigned = _json("assign", options["assign"])
        try:
            partitions = {(topic, int(number)) for topic, numbers in assigned.items() for number in numbers}
        except (AttributeError, TypeError, ValueError):
            raise OptionError('assign must look like {"topicA":[0,1],"topicB":[2,4]}') from None
        return Topics(partitions=frozenset(partitions))
    return Topics()


def _columns(listed: str | None, table: str, options: Mapping[str, str]) -> tuple[str, ...] | None:
    headers = _flag("includeHeaders", options.get("includeheaders"))
    metadata = _flag("includeBatchMetadata", options.get("includebatchmetadata"))
    if listed is not None:
        return tuple(name.strip() for name in listed.split(","))
    if table != "records":
        return None
    wanted = {*KAFKA_COLUMNS, *(("headers",) if headers else ()), *(BATCH_METADATA if metadata else ())}
    return tuple(name for name in RECORDS_WITH_METADATA if name in wanted)
