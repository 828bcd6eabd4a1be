"""The options of the data source, as its readers need them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from magicbyte import _core
from magicbyte.enums import DamageMode, IsolationLevel, PayloadType
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run.columns import BATCH_METADATA, INVALID_COLUMNS, KAFKA_COLUMNS, RECORDS_WITH_METADATA
from magicbyte.options.ingest import IngestOptions
from magicbyte.options.shared import Damage, Decoding, Isolation
from magicbyte.options.typed import UNTYPED, Column, TypedColumns
from magicbyte.options.typed_rules import broken_rule, flag_of_rule
from magicbyte.schema.decoding import TYPED_COLUMNS, window_columns
from magicbyte.schema.http_client import read_settings
from magicbyte.spark.cluster_options import (
    CLUSTER_TABLES,
    OF_SPARKS_SOURCE,
    ClusterOptions,
    cluster_options,
)
from magicbyte.spark.declared import BatchOptions, QueryOptions, StreamOnlyOptions, TriggerOptions
from magicbyte.spark.given import Given, OptionError, names_of
from magicbyte.spark.names import spark_name
from magicbyte.spark.offsets import Edge, ending_edge, starting_edge
from magicbyte.spark.paths import absolute_paths
from magicbyte.storage.encryption_keys import EncryptionKey, add_keys, named_key
from magicbyte.storage.location import cluster_of
from magicbyte.storage.mounts import mount
from magicbyte.storage.options import StorageOptions

__all__ = [
    "BATCH_OPTIONS",
    "QUERY_OPTIONS",
    "STREAM_OPTIONS",
    "TRIGGER_OPTIONS",
    "Options",
    "StreamOptions",
    "TableOptions",
    "Topics",
    "parse_options",
    "parse_stream_options",
    "parse_table",
]

QUERY_OPTIONS = (
    *names_of(QueryOptions),
    *names_of(Isolation),
    *names_of(Damage),
    *names_of(Decoding),
    *names_of(PartitionChoice, "include_deleted_records"),
    *names_of(IngestOptions, "key_as", "value_as", "include_batch_metadata"),
    *names_of(TypedColumns),
)
"""The options of batch queries and streams."""
BATCH_OPTIONS = names_of(BatchOptions)
"""The options of batch queries only."""
TRIGGER_OPTIONS = names_of(TriggerOptions)
"""The options of streams that batch queries ignore, as Spark's Kafka source does."""
STREAM_OPTIONS = names_of(StreamOnlyOptions)
"""The options of streams only."""
_KNOWN = (*QUERY_OPTIONS, *BATCH_OPTIONS, *TRIGGER_OPTIONS, *STREAM_OPTIONS)
_STORAGE_PREFIX = "storage."
"""The prefix of options that are passed on to the store of a URL."""
_KAFKA_ISOLATION = "kafka.isolation.level"


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
            # Spark's source searches, too (`findFirstIn`): ^ and $ are for whole names.
            return re.search(self.pattern, topic) is not None
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
    """The directories and URLs; empty if a running cluster is read."""
    cluster: ClusterOptions | None
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


def _given(options: Mapping[str, str]) -> Given:
    lower = {name.lower(): text for name, text in options.items()}
    if not lower.get("isolationlevel") and _KAFKA_ISOLATION in lower:
        lower["isolationlevel"] = lower[_KAFKA_ISOLATION]
    return Given(lower, _KNOWN, ignored=OF_SPARKS_SOURCE, prefixes=(_STORAGE_PREFIX,))


def parse_table(options: Mapping[str, str]) -> TableOptions:
    """Parses only the options that determine the schema.

    Raises:
        OptionError: if an option is not valid; the message says what would be valid.

    """
    given = _given(options)
    return _table(given, given.read(QueryOptions))


def _table(given: Given, query: QueryOptions) -> TableOptions:
    key_as = given.value(IngestOptions, "key_as")
    value_as = given.value(IngestOptions, "value_as")
    typed = _typed(given, query, {"key": key_as, "value": value_as})
    if typed and query.table != "records":
        raise OptionError(f"keyFormat and valueFormat are for the table records, not for {query.table}")
    shape = TableOptions(query.table, query.columns, key_as, value_as, typed)
    if query.columns is None and query.table == "records":
        return replace(shape, columns=_columns(given, query, shape))
    return shape


def parse_stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Parses the options of a stream; names are case-insensitive.

    Raises:
        OptionError: if an option is not valid; the message says what would be valid.

    """
    given = _given(options)
    for name in BATCH_OPTIONS:
        if given.text(name) is not None:
            raise OptionError(f"{name} is only for batch queries, not for streams")
    read = parse_options(options, streaming=True)
    if read.table not in ("records", "batches", "problems"):
        raise OptionError(f"table {read.table} cannot be streamed: records, batches and problems can")
    trigger, stream = given.read(TriggerOptions), given.read(StreamOnlyOptions)
    least, most = trigger.min_offsets_per_trigger, trigger.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise OptionError(f"minOffsetsPerTrigger is {least}, above maxOffsetsPerTrigger, {most}")
    return StreamOptions(
        read,
        max_offsets=most,
        min_offsets=least,
        max_delay_seconds=trigger.max_trigger_delay,
        max_bytes=trigger.max_bytes_per_trigger,
        above_high_watermark=stream.include_above_high_watermark,
        fail_on_unknown_schema=stream.fail_on_unknown_schema,
    )


def parse_options(options: Mapping[str, str], *, streaming: bool = False) -> Options:
    """Parses the options of a read; names are case-insensitive.

    Raises:
        OptionError: if an option is not valid; the message says what would be valid.

    """
    given = _given(options)
    for name in STREAM_OPTIONS:
        if not streaming and given.text(name) is not None:
            raise OptionError(f"{name} is only for streams, not for batch queries")
    query = given.read(QueryOptions)
    try:
        strict = query.starting_offsets_by_timestamp_strategy == "error"
        starting = starting_edge(given.text, strict=strict, streaming=streaming)
        ending = ending_edge(given.text)
    except ValueError as error:
        raise OptionError(str(error)) from None
    deleted = given.value(PartitionChoice, "include_deleted_records")
    paths, cluster = _sources(given, query)
    return Options(
        paths=paths,
        cluster=cluster,
        shape=_table(given, query),
        topics=_topics(query),
        starting=starting,
        ending=ending,
        isolation_level=given.read(Isolation).isolation_level,
        mode=given.read(Damage).mode,
        filter_pushdown=given.read(BatchOptions).filter_pushdown,
        min_partitions=query.min_partitions,
        max_records_per_partition=query.max_records_per_partition,
        fail_on_data_loss=query.fail_on_data_loss,
        max_decompressed_bytes=_column_limit(given),
        choice=PartitionChoice(include_deleted_records=deleted),
        storage=StorageOptions(given.below(_STORAGE_PREFIX)),
        encryption_keys=_encryption_keys(query),
    )


def _encryption_keys(query: QueryOptions) -> tuple[EncryptionKey, ...]:
    try:
        return tuple(named_key(key) for key in query.encryption_key)
    except OSError as error:
        raise OptionError(f"encryptionKey: {error}") from None


def _column_limit(given: Given) -> int:
    limit = given.read(Decoding).max_decompressed_bytes
    if limit > _core.MAX_COLUMN_PAYLOAD:
        raise OptionError(
            f"maxDecompressedBytes must be at most {_core.MAX_COLUMN_PAYLOAD} (1 GiB), not {limit}"
        )
    return limit


def _sources(given: Given, query: QueryOptions) -> tuple[tuple[str, ...], ClusterOptions | None]:
    """The paths, or else the cluster: a job that moves from Kafka to files may keep its address."""
    paths = _paths(given, query)
    cluster = None if paths else cluster_options(given)
    if not paths and cluster is None:
        raise OptionError(
            """option path is missing: .option("path", "/backup/kafka-logs"), or for a running cluster """
            "kafka.bootstrap.servers. Spark's catalog does not keep the options of a table: "
            "SELECT ... FROM it WITH ('path' = '...'), or use a temporary view"
        )
    if cluster is not None and query.table not in CLUSTER_TABLES:
        raise OptionError(
            f"table {query.table} needs files: of a cluster, {', '.join(CLUSTER_TABLES)} are read"
        )
    return paths, cluster


def _paths(given: Given, query: QueryOptions) -> tuple[str, ...]:
    text = given.text("paths")
    try:
        listed = [] if text is None else json.loads(text)
    except ValueError:
        raise OptionError(f"paths is not JSON: {text!r}") from None
    paths = tuple(filter(None, (query.path, *listed)))
    try:
        if any(map(cluster_of, paths)):
            raise OptionError("path: a running cluster is named by kafka.bootstrap.servers, and by subscribe")
        return tuple(absolute_paths(paths))
    except ValueError as error:
        raise OptionError(str(error)) from None


def _topics(query: QueryOptions) -> Topics:
    chosen = {
        "subscribe": query.subscribe,
        "subscribePattern": query.subscribe_pattern,
        "assign": query.assign,
    }
    given = [name for name, value in chosen.items() if value is not None]
    if len(given) > 1:
        raise OptionError(f"only one of {' and '.join(given)} can be given")
    names = None if query.subscribe is None else frozenset(query.subscribe)
    return Topics(names, query.subscribe_pattern, query.assign)


def _typed(given: Given, query: QueryOptions, payloads: Mapping[Column, PayloadType]) -> TypedColumns:
    typed = given.read(TypedColumns)
    if query.registry_config is not None:
        typed = replace(typed, http=read_settings(query.registry_config))
    rule = broken_rule(typed, typed.formats, payloads, spelled=lambda name: spark_name(flag_of_rule(name)))
    if rule is not None:
        raise OptionError(rule)
    return typed


def _columns(given: Given, query: QueryOptions, shape: TableOptions) -> tuple[str, ...]:
    """The columns of `records` that no option names."""
    metadata = BATCH_METADATA if given.value(IngestOptions, "include_batch_metadata") else ()
    wanted = {*KAFKA_COLUMNS, *(("headers",) if query.include_headers else ()), *metadata}
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
