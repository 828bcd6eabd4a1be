"""The options of the data source, with the names and meanings of Spark's Kafka source, if it has them."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from magicbyte import _core
from magicbyte.enums import DamageMode, IsolationLevel, PayloadType
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run.columns import BATCH_METADATA, INVALID_COLUMNS, KAFKA_COLUMNS, RECORDS_WITH_METADATA
from magicbyte.options.declare import declared
from magicbyte.options.ingest import IngestOptions
from magicbyte.options.shared import Damage, Decoding, Isolation
from magicbyte.options.typed import UNTYPED, Column, TypedColumns
from magicbyte.options.typed_rules import broken_rule, flag_of_rule
from magicbyte.options.values import Repeated
from magicbyte.schema.decoding import TYPED_COLUMNS, window_columns
from magicbyte.schema.http_client import read_settings
from magicbyte.spark.names import spark_name
from magicbyte.spark.offsets import Edge, ending_edge, starting_edge
from magicbyte.spark.paths import absolute_paths
from magicbyte.storage.encryption_keys import EncryptionKey, add_keys, named_key
from magicbyte.storage.mounts import mount
from magicbyte.storage.options import StorageOptions

__all__ = [
    "BATCH_OPTIONS",
    "QUERY_OPTIONS",
    "STREAM_OPTIONS",
    "TRIGGER_OPTIONS",
    "OptionError",
    "Options",
    "StreamOptions",
    "TableOptions",
    "Topics",
    "known_options",
    "parse_options",
    "parse_stream_options",
    "parse_table",
]

TABLES = ("records", "batches", "segments", "problems", "producers", "transactions")

QUERY_OPTIONS = (
    "path",
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "isolationLevel",
    "failOnDataLoss",
    "includeDeletedRecords",
    "mode",
    "minPartitions",
    "maxRecordsPerPartition",
    "table",
    "columns",
    "includeHeaders",
    "includeBatchMetadata",
    "keyAs",
    "valueAs",
    *(spark_name(option.flag) for option in declared(TypedColumns)),
    "registryConfig",
    "maxDecompressedBytes",
    "encryptionKey",
)
"""The options of batch queries and streams."""
BATCH_OPTIONS = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp", "filterPushdown")
"""The options of batch queries only."""
TRIGGER_OPTIONS = (
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "maxBytesPerTrigger",
)
"""The options of streams that batch queries ignore, as Spark's Kafka source does."""
STREAM_OPTIONS = ("includeAboveHighWatermark", "failOnUnknownSchema")
"""The options of streams only."""
_KNOWN = (*QUERY_OPTIONS, *BATCH_OPTIONS, *TRIGGER_OPTIONS, *STREAM_OPTIONS)
# Options of Spark's Kafka source that concern a broker: a job that moves to files may keep them. `paths` is
# how Spark passes on `load([...])`.
_IGNORED = (
    "paths",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
_IGNORED_PREFIXES = ("kafka.", "option.")
_STORAGE_PREFIX = "storage."
"""The prefix of options that are passed on to the store of a URL."""
# Spark's catalog passes the properties of a table as options, and the options again with a prefix.
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

C = TypeVar("C", bound=str)


class OptionError(ValueError):
    """An unknown option, or an invalid value of an option."""


@dataclass(frozen=True)
class Topics:
    """The partitions to read: those of some topics or of a pattern of topics, some partitions, or all."""

    names: frozenset[str] | None = None
    pattern: str | None = None
    partitions: frozenset[tuple[str, int]] | None = None

    def take(self, topic: str, partition: int) -> bool:
        """True if a partition is read."""
        if self.names is not None:
            return topic in self.names
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return self.partitions is None or (topic, partition) in self.partitions


@dataclass(frozen=True)
class TableOptions:
    """The checked options that determine the schema."""

    table: str
    columns: tuple[str, ...] | None = None
    """The columns of the table; None for all."""
    key_as: PayloadType = "binary"
    """The format of the keys of `records`."""
    value_as: PayloadType = "binary"
    typed: TypedColumns = UNTYPED
    """The keys and values that become typed columns."""

    @property
    def is_binary(self) -> bool:
        """True if keys and values are bytes."""
        return self.key_as == self.value_as == "binary" and not self.typed


@dataclass(frozen=True)
class Options:
    """The checked options of a read."""

    paths: tuple[str, ...]
    shape: TableOptions
    topics: Topics
    starting: Edge
    ending: Edge
    isolation_level: IsolationLevel
    mode: DamageMode
    filter_pushdown: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    fail_on_data_loss: bool
    """True if a query fails when offsets that it requests are gone."""
    max_decompressed_bytes: int
    choice: PartitionChoice
    """The records of the partitions that count; `topics` has the partitions to read."""
    storage: StorageOptions
    encryption_keys: tuple[EncryptionKey, ...]

    def mount(self, paths: Sequence[str]) -> None:
        """Makes the paths readable in this process: mounts their stores, and adds encryption keys."""
        mount(paths, self.storage or None)
        add_keys(self.encryption_keys)

    @property
    def table(self) -> str:
        """The table that is read."""
        return self.shape.table


@dataclass(frozen=True)
class StreamOptions:
    """The checked options of a stream; most are those of Spark's Kafka source."""

    read: Options
    max_offsets: int | None
    """The maximum number of offsets per trigger, over all partitions."""
    min_offsets: int | None
    max_delay_seconds: float
    """The maximum time to wait for `min_offsets`, in seconds."""
    max_bytes: int | None
    """The maximum bytes per trigger, over all partitions, as stored; at least one chunk for each."""
    above_high_watermark: bool
    """True to read records that a broker may not have replicated."""
    fail_on_unknown_schema: bool
    """True if a micro-batch fails when the registry does not have the schema of a key or value."""


def parse_table(given: Mapping[str, str]) -> TableOptions:
    """Parses only the options that determine the schema.

    Raises:
        OptionError: if an option is not valid; the message says what would be valid.

    """
    options = _lower(given)
    table = _choice("table", options.get("table") or "records", TABLES)
    key_as = _value(IngestOptions, "key_as", options)
    value_as = _value(IngestOptions, "value_as", options)
    typed = _typed(options, {"key": key_as, "value": value_as})
    if typed and table != "records":
        raise OptionError(f"keyFormat and valueFormat are for the table records, not for {table}")
    shape = TableOptions(table, None, key_as, value_as, typed)
    return replace(shape, columns=_columns(options, shape))


def parse_stream_options(given: Mapping[str, str]) -> StreamOptions:
    """Parses the options of a stream; names are case-insensitive.

    Raises:
        OptionError: if an option is not valid; the message says what would be valid.

    """
    options = _lower(given)
    for name in BATCH_OPTIONS:
        if name.lower() in options:
            raise OptionError(f"{name} is only for batch queries, not for streams")
    read = parse_options(given, streaming=True)
    if read.table not in ("records", "batches", "problems"):
        raise OptionError(f"table {read.table} cannot be streamed: records, batches and problems can")
    return StreamOptions(
        read,
        max_offsets=_positive("maxOffsetsPerTrigger", options.get("maxoffsetspertrigger")),
        min_offsets=_positive("minOffsetsPerTrigger", options.get("minoffsetspertrigger")),
        max_delay_seconds=_seconds("maxTriggerDelay", options.get("maxtriggerdelay") or "15m"),
        max_bytes=_positive("maxBytesPerTrigger", options.get("maxbytespertrigger")),
        above_high_watermark=_flag("includeAboveHighWatermark", options.get("includeabovehighwatermark")),
        fail_on_unknown_schema=_flag("failOnUnknownSchema", options.get("failonunknownschema"), "true"),
    )


def parse_options(given: Mapping[str, str], *, streaming: bool = False) -> Options:
    """Parses the options of a read; names are case-insensitive.

    Raises:
        OptionError: if an option is not valid; the message says what would be valid.

    """
    options = _lower(given)

    def get(name: str) -> str | None:
        return options.get(name.lower())

    options["isolationlevel"] = get("isolationLevel") or get(_KAFKA_ISOLATION) or ""
    for name in STREAM_OPTIONS:
        if not streaming and get(name) is not None:
            raise OptionError(f"{name} is only for streams, not for batch queries")
    try:
        starting = starting_edge(get, streaming=streaming)
        ending = ending_edge(get)
    except ValueError as error:
        raise OptionError(str(error)) from None
    return Options(
        paths=_paths(options),
        shape=parse_table(given),
        topics=_topics(options),
        starting=starting,
        ending=ending,
        isolation_level=_value(Isolation, "isolation_level", options),
        mode=_value(Damage, "mode", options),
        filter_pushdown=_flag("filterPushdown", get("filterPushdown")),
        min_partitions=_positive("minPartitions", get("minPartitions")),
        max_records_per_partition=_positive("maxRecordsPerPartition", get("maxRecordsPerPartition")),
        fail_on_data_loss=_flag("failOnDataLoss", get("failOnDataLoss"), "true"),
        max_decompressed_bytes=_column_limit(options),
        choice=PartitionChoice(
            include_deleted_records=_value(PartitionChoice, "include_deleted_records", options)
        ),
        storage=StorageOptions(
            {
                name.removeprefix(_STORAGE_PREFIX): value
                for name, value in options.items()
                if name.startswith(_STORAGE_PREFIX)
            }
        ),
        encryption_keys=_encryption_keys(get("encryptionKey") or ""),
    )


def _lower(given: Mapping[str, str]) -> dict[str, str]:
    options = {key.lower(): value for key, value in given.items()}
    _check_names(options)
    return options


def _check_names(options: Mapping[str, str]) -> None:
    known = {name.lower() for name in _KNOWN}
    ignored = {name.lower() for name in (*_IGNORED, *_OF_CATALOG)}
    for name in options:
        if name in known or name in ignored or name.startswith((*_IGNORED_PREFIXES, _STORAGE_PREFIX)):
            continue
        raise _unknown(name, _KNOWN)


def known_options(options: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Returns options for writing under their proper names, whatever their case; refuses unknown ones."""
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


def _choice(name: str, value: str, choices: tuple[C, ...]) -> C:
    for choice in choices:
        if choice == value:
            return choice
    raise OptionError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def _flag(name: str, value: str | None, default: str = "false") -> bool:
    return _choice(name, (value or default).lower(), ("true", "false")) == "true"


def _seconds(name: str, value: str) -> float:
    """Parses a duration as Spark does: `15m`, `30s`, `500ms`; milliseconds without a unit."""
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


def _encryption_keys(value: str) -> tuple[EncryptionKey, ...]:
    try:
        return tuple(named_key(one.strip()) for one in value.split(",") if one.strip())
    except OSError as error:
        raise OptionError(f"encryptionKey: {error}") from None


def _value(cls: type, name: str, options: Mapping[str, str]) -> Any:
    """The value of an option that a class declares, under its name in Spark."""
    option = next(each for each in declared(cls) if each.name == name)
    shown = spark_name(option.flag)
    text = options.get(shown.lower())
    if not text:
        return option.default
    if option.kind is None:
        return _flag(shown, text)
    try:
        if isinstance(option.kind, Repeated):
            return option.kind.parse_all([part.strip() for part in text.split(",")])
        return option.kind.parse(text)
    except ValueError as error:
        raise OptionError(f"{shown}: {error}") from None


def _column_limit(options: Mapping[str, str]) -> int:
    limit: int = _value(Decoding, "max_decompressed_bytes", options)
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
            """option path is missing: .option("path", "/backup/kafka-logs"). Spark's catalog does not """
            "keep the options of a table: SELECT ... FROM it WITH ('path' = '...'), or use a temporary view"
        )
    try:
        return tuple(absolute_paths(paths))
    except ValueError as error:
        raise OptionError(str(error)) from None


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
            raise OptionError(f"subscribePattern is not a regular expression: {error}") from None
        return Topics(pattern=options["subscribepattern"])
    if given == ["assign"]:
        assigned = _json("assign", options["assign"])
        try:
            partitions = {(topic, int(number)) for topic, numbers in assigned.items() for number in numbers}
        except (AttributeError, TypeError, ValueError):
            raise OptionError('assign must look like {"topicA":[0,1],"topicB":[2,4]}') from None
        return Topics(partitions=frozenset(partitions))
    return Topics()


def _typed(options: Mapping[str, str], payloads: Mapping[Column, PayloadType]) -> TypedColumns:
    config = options.get("registryconfig")
    typed = TypedColumns(
        **{option.name: _value(TypedColumns, option.name, options) for option in declared(TypedColumns)},
        http=None if config is None else read_settings(config),
    )
    rule = broken_rule(typed, typed.formats, payloads, spelled=lambda name: spark_name(flag_of_rule(name)))
    if rule is not None:
        raise OptionError(rule)
    return typed


def _columns(options: Mapping[str, str], shape: TableOptions) -> tuple[str, ...] | None:
    headers = _flag("includeHeaders", options.get("includeheaders"))
    metadata = _value(IngestOptions, "include_batch_metadata", options)
    if (listed := options.get("columns")) is not None:
        return tuple(name.strip() for name in listed.split(","))
    if shape.table != "records":
        return None
    wanted = {*KAFKA_COLUMNS, *(("headers",) if headers else ()), *(BATCH_METADATA if metadata else ())}
    others: list[str] = []
    for name, payload, schema_format in (
        ("key", shape.key_as, shape.typed.key_format),
        ("value", shape.value_as, shape.typed.value_format),
    ):
        if schema_format is not None:
            others += TYPED_COLUMNS[name]
            others += window_columns(shape.typed.key_windows) if name == "key" else ()
        elif payload != "binary":
            others.append(INVALID_COLUMNS[name])
    return (*(name for name in RECORDS_WITH_METADATA if name in wanted), *others)
