"""The commands that run a job as functions: `magicbyte verify` is `magicbyte.verify`, and so on.

>>> import magicbyte
>>> report = magicbyte.verify("samples")
>>> report["balanced"], report["total"]["rows"] > 0
(True, True)

The first argument names directories with partitions anywhere below them, or segment files: one path, or a
sequence of them. They are only read. The functions share these arguments:

- `choice`: which of the partitions to read.
- `engine`: where the tasks run; None for one thread per core. `magicbyte.jobs.run.engines.SparkEngine(spark)`
  runs them on Spark.
- `progress`: where to report progress; `magicbyte.jobs.run.progress.terminal_progress()` shows a bar.
- `max_decompressed_bytes`: the limit for one batch, stored or decompressed; larger ones are damage.

An `out` is a directory that does not exist or is empty; it appears under its name when all is done. Every
function raises `RefusedError` if there is nothing to read, a path does not exist, or the arguments contradict
each other; `JobError` if the job fails; `OSError` if a file cannot be read or written. Times are in
milliseconds since 1970. What a function returns is what its command prints with `--json`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from functools import partial
from os import PathLike
from typing import Literal, overload

from magicbyte import _core
from magicbyte.enums import Compression, DamageMode, IsolationLevel, PartitionBy, PayloadType, TableFormat
from magicbyte.following import ingest_stream
from magicbyte.jobs.advise import AdviseReport
from magicbyte.jobs.advise import advise as advise_topics
from magicbyte.jobs.clean import CleanReport
from magicbyte.jobs.compact import DAY_MS, CompactOptions, compact_partitions, read_checkpoint
from magicbyte.jobs.explain import DEFAULT_TRANSACTION_MAX_TIMEOUT_MS
from magicbyte.jobs.explain import explain as partition_histories
from magicbyte.jobs.field_costs import FieldCosts, field_costs
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.cluster import read_topic_config
from magicbyte.jobs.ingest import TARGET_FILE_SIZE, IngestOptions, IngestReport
from magicbyte.jobs.ingest import ingest as ingest_partitions
from magicbyte.jobs.offsets import OffsetsReport
from magicbyte.jobs.offsets import offsets as committed_offsets
from magicbyte.jobs.recover import RecoveryMethod
from magicbyte.jobs.recover import recover as recover_partitions
from magicbyte.jobs.redact import RedactOptions, redact_partitions
from magicbyte.jobs.rescue import RescueReport, rescue_partitions
from magicbyte.jobs.rewrite import RewriteOptions, RewriteReport, rewrite
from magicbyte.jobs.run.engines import Engine, LocalEngine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.run.ranges import Ranges
from magicbyte.jobs.schemas import SchemasReport
from magicbyte.jobs.schemas import schemas as registered_schemas
from magicbyte.jobs.stats import StatsReport, statistics
from magicbyte.jobs.topics import TopicsReport
from magicbyte.jobs.topics import topics as topics_of_partitions
from magicbyte.jobs.typed import UNTYPED, TypedColumns
from magicbyte.jobs.verify import VerifyReport
from magicbyte.jobs.verify import verify as verify_partitions
from magicbyte.lake.compare import LogOfTable
from magicbyte.lake.ingest import ingest_table
from magicbyte.lake.read import open_stored
from magicbyte.lake.table import TableTarget
from magicbyte.logs import Sources, paths_of
from magicbyte.model import PartitionHistory
from magicbyte.schema.http_client import DEFAULT_SETTINGS, HttpSettings
from magicbyte.schema.schemas_topic import SCHEMAS_TOPIC
from magicbyte.serving import serve

__all__ = [
    "advise",
    "compact",
    "convert",
    "explain",
    "ingest",
    "ingest_stream",
    "offsets",
    "recover",
    "redact",
    "rescue",
    "schemas",
    "serve",
    "stats",
    "topics",
    "verify",
]


def verify(
    sources: Sources,
    *,
    isolation_level: IsolationLevel = "read_uncommitted",
    choice: PartitionChoice = EVERYTHING,
    table: str | PathLike[str] | None = None,
    catalog: str | None = None,
    catalog_properties: Mapping[str, str] | None = None,
    indexes: bool = False,
    engine: Engine | None = None,
    progress: Progress = NO_PROGRESS,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> VerifyReport:
    """Decodes every record and accounts for every byte; writes nothing.

    With `table`, an output of `ingest` in any format, also compares its rows with the records; `catalog` and
    `catalog_properties` are as there. Isolation level, ranges and expression are then those of the table.
    With `indexes`, also compares the entries of the indexes with the segments.
    """
    return verify_partitions(
        paths_of(sources),
        engine or LocalEngine(),
        isolation_level=isolation_level,
        max_decompressed_bytes=max_decompressed_bytes,
        choice=choice,
        table=None
        if table is None
        else partial(LogOfTable, open_stored(os.fspath(table), catalog, catalog_properties)),
        indexes=indexes,
        progress=progress,
    )


def ingest(
    sources: Sources,
    out: str | PathLike[str],
    *,
    isolation_level: IsolationLevel = "read_uncommitted",
    batch_metadata: bool = False,
    start_offset: int | None = None,
    end_offset: int | None = None,
    start_timestamp: int | None = None,
    end_timestamp: int | None = None,
    where: str | None = None,
    key_as: PayloadType = "binary",
    value_as: PayloadType = "binary",
    typed: TypedColumns = UNTYPED,
    digest: bool = False,
    codec: str = "zstd",
    bloom_filter: bool = False,
    overwrite: bool = False,
    format: TableFormat = "parquet",
    partition_by: PartitionBy = "topic",
    target_file_size: int = TARGET_FILE_SIZE,
    repair: bool = False,
    fail_on_missing: bool = False,
    catalog: str | None = None,
    catalog_properties: Mapping[str, str] | None = None,
    choice: PartitionChoice = EVERYTHING,
    engine: Engine | None = None,
    progress: Progress = NO_PROGRESS,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> IngestReport:
    """Decodes every partition into Parquet tables in `out`: `records`, `batches` and `problems`.

    With another format, adds the records that the table `out` does not have yet, in one commit; docs/lake.md
    describes it.

    Args:
        sources: what to read.
        out: the directory of the tables.
        isolation_level: `read_committed` leaves out aborted records and ends at the last stable offset.
        batch_metadata: whether `records` also has the fields of each record's batch.
        start_offset: the first offset (inclusive) of each partition.
        end_offset: the end (exclusive).
        start_timestamp: the first time (inclusive).
        end_timestamp: the end (exclusive).
        where: write only records for which this SQL expression is true; the guide describes it. Needs duckdb.
        key_as: what keys are read as; with text, `records` has the column `invalidKey`.
        value_as: the same for values and `invalidValue`.
        typed: which of them are decoded by the schemas that they name.
        digest: whether `records` then has `_digest`, by which `verify` compares it with the log: for typed
            keys or values, which take longer then. Delta and Iceberg tables always have it.
        codec: the compression of the files: zstd, snappy, gzip, lz4 or none.
        bloom_filter: whether to write bloom filters of the keys, for readers that look for single keys.
        overwrite: whether to replace an earlier output, once the job is done.
        format: `delta` (needs deltalake) and `iceberg` (needs pyiceberg) are transactional tables.
        partition_by: how their files are partitioned.
        target_file_size: how large they become, in bytes, if there is enough to write.
        repair: whether their rows are replaced from the offset on where a log diverges from them, and what
            earlier runs could not read is added.
        fail_on_missing: whether nothing is added to them if records of a log are lost or unreadable.
        catalog: of an Iceberg table, whose identifier is `out`: the name in pyiceberg's configuration.
        catalog_properties: properties of the catalog, besides those in the configuration.
        choice: see the module, as the arguments after it.
        engine: where the tasks run.
        progress: where to report progress.
        max_decompressed_bytes: at most 1 GiB.

    """
    options = IngestOptions(
        isolation_level=isolation_level,
        batch_metadata=batch_metadata,
        ranges=Ranges(start_offset, end_offset, start_timestamp, end_timestamp),
        where=where,
        key_as=key_as,
        value_as=value_as,
        typed=typed,
        digest=digest,
        codec=codec,
        bloom_filter=bloom_filter,
        max_decompressed_bytes=max_decompressed_bytes,
        overwrite=overwrite,
        target_file_size=target_file_size,
        repair=repair,
        fail_on_missing=fail_on_missing,
    )
    paths, name, engine = paths_of(sources), os.fspath(out), engine or LocalEngine()
    if format == "parquet":
        return ingest_partitions(paths, name, engine, options, progress, choice=choice)
    target = TableTarget(format, name, catalog, catalog_properties or {}, partition_by)
    return ingest_table(paths, target, engine, options, progress, choice=choice)


def convert(
    sources: Sources,
    out: str | PathLike[str],
    *,
    magic: int | None = 2,
    compression: int | str | None = None,
    level: int | None = None,
    rebatch: int | None = None,
    leader_epoch: int | None = None,
    segment_bytes: int = 128 << 20,
    topic_ids: Mapping[str, str] | None = None,
    choice: PartitionChoice = EVERYTHING,
    engine: Engine | None = None,
    progress: Progress = NO_PROGRESS,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> RewriteReport:
    """Rewrites every partition into `out`, for a current broker to open.

    Args:
        sources: what to read.
        out: gets a directory for each partition.
        magic: 0, 1 or 2; None keeps each batch's.
        compression: the codec or its name; None keeps each batch's.
        level: the codec's level; None for Kafka's default.
        rebatch: pack the records of batches without a producer id into batches of up to this many bytes.
        leader_epoch: of every batch; None keeps each batch's, and gives those without one that of the batch
            before, or 0. For another cluster, use 0.
        segment_bytes: the largest size of a segment.
        topic_ids: the id of each topic in the cluster that `out` is for, for `partition.metadata`; otherwise
            it is that of `sources`. The key "" stands for the only topic.
        choice: see the module, as the arguments after it.
        engine: where the tasks run.
        progress: where to report progress.
        max_decompressed_bytes: the limit for one batch.

    """
    options = RewriteOptions(
        magic=magic,
        compression=_number(compression),
        level=level,
        rebatch=rebatch,
        leader_epoch=leader_epoch,
        max_decompressed_bytes=max_decompressed_bytes,
        segment_bytes=segment_bytes,
        topic_ids=dict(topic_ids or {}),
    )
    return rewrite(
        paths_of(sources), os.fspath(out), engine or LocalEngine(), options, choice=choice, progress=progress
    )


def _number(compression: int | str | None) -> int | None:
    if not isinstance(compression, str):
        return compression
    names = [codec.name.lower() for codec in Compression]
    if compression.lower() not in names:
        raise ValueError(f"no codec {compression!r}: expected one of {', '.join(names)}")
    return Compression[compression.upper()].value


def recover(
    sources: Sources,
    out: str | PathLike[str],
    *,
    method: RecoveryMethod = "keep",
    leader_epoch: int | None = None,
    segment_bytes: int = 128 << 20,
    topic_ids: Mapping[str, str] | None = None,
    choice: PartitionChoice = EVERYTHING,
    engine: Engine | None = None,
    progress: Progress = NO_PROGRESS,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> RewriteReport:
    """Writes the good batches of every partition into `out`, with new sidecars.

    Args:
        sources: what to read.
        out: gets a directory for each partition.
        method: `keep` keeps all good batches, including those after damage; `truncate` keeps nothing from the
            first damage on, as a broker does when it starts.
        leader_epoch: as in `convert`.
        segment_bytes: as in `convert`.
        topic_ids: as in `convert`.
        choice: see the module, as the arguments after it.
        engine: where the tasks run.
        progress: where to report progress.
        max_decompressed_bytes: the limit for one batch.

    """
    options = RewriteOptions(
        leader_epoch=leader_epoch,
        max_decompressed_bytes=max_decompressed_bytes,
        segment_bytes=segment_bytes,
        topic_ids=dict(topic_ids or {}),
    )
    return recover_partitions(
        paths_of(sources), os.fspath(out), engine or LocalEngine(), options, method, progress, choice=choice
    )


def rescue(
    sources: Sources,
    out: str | PathLike[str] | None = None,
    *,
    choice: PartitionChoice = EVERYTHING,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> RescueReport:
    """Examines every damaged range, and saves what can be saved of it into `out`."""
    directory = None if out is None else os.fspath(out)
    return rescue_partitions(
        paths_of(sources), directory, max_decompressed_bytes=max_decompressed_bytes, choice=choice
    )


def compact(
    sources: Sources,
    out: str | PathLike[str],
    *,
    now: int | None = None,
    delete_retention_ms: int | None = None,
    min_compaction_lag_ms: int | None = None,
    until_offset: int | None = None,
    all: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    producer_id_expiration_ms: int = DAY_MS,
    segment_bytes: int | None = None,
    memory_bytes: int = 128 << 20,
    mode: DamageMode = "PERMISSIVE",
    topic_ids: Mapping[str, str] | None = None,
    topic_config: str | PathLike[str] | None = None,
    all_topics: bool = False,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
    choice: PartitionChoice = EVERYTHING,
    engine: Engine | None = None,
    progress: Progress = NO_PROGRESS,
) -> CleanReport:
    """Writes every compacted partition at and below `sources` to `out` with only the last record of each key.

    As `magicbyte compact`, by the rules of Kafka's `LogCleaner`: whole segments are cleaned, up to the last
    stable offset and without the last segment; everything else is copied. `sources` is only read, and `out`
    is published when everything is done.

    Partitions of topics whose `cleanup.policy` does not include `compact` are left out: it is read from
    `__cluster_metadata` in `sources`, or from `topic_config`. So are those that have the brokers' default,
    which only `server.properties` tells. Where nothing is known about a topic, it is compacted if all its
    records have keys.

    Args:
        sources: one path or several: a partition's directory, or a directory with partitions below it.
        out: a directory that does not exist or is empty. It gets a directory for each partition, a
            `cleaner-offset-checkpoint`, and the report as `reconciliation.json`.
        now: the current time (ms since 1970); None for the clock's.
        delete_retention_ms: how long tombstones and the markers of empty transactions are kept; None for the
            topic's config, or a day.
        min_compaction_lag_ms: segments with a record younger than this are copied; None for the topic's
            config, or 0.
        until_offset: nothing is cleaned from the segment with this offset (inclusive) on.
        all: clean the last segment too.
        checkpoint: a broker's `cleaner-offset-checkpoint`, which decides when tombstones of magic 0 and 1
            may be removed.
        producer_id_expiration_ms: producers that have been silent for this long are forgotten: their last
            batch need not be kept.
        segment_bytes: neighbouring segments become one if they are not larger than this together; None for
            the topic's config, or 1 GiB.
        memory_bytes: for the maps of keys of all running tasks together; larger maps go to files next to
            `out`.
        mode: what happens at damage.
        topic_ids: the id of each topic in the cluster that `out` is for, for `partition.metadata`; otherwise
            it is that of `sources`. The key "" stands for the only topic.
        topic_config: a JSON file with configs of topics, see `magicbyte.jobs.find.cluster.read_topic_config`.
        all_topics: compact topics whatever their `cleanup.policy`, and drop records without a key.
        max_decompressed_bytes: the limit for one batch, stored or decompressed; larger ones are damage.
        choice: which partitions to read.
        engine: where the tasks run; None for one thread per core.
            `magicbyte.jobs.run.engines.SparkEngine(spark)` runs them on Spark.
        progress: where to report progress.

    Returns:
        What became of every record and byte: the content of `reconciliation.json`.

    Raises:
        RefusedError: if there is nothing to compact, a partition is found twice, `out` is not empty,
            `checkpoint` is not such a file, or a topic whose policy is unknown has records without a key.
        Error: for the first bad batch, with FAILFAST.
        OSError: if a file cannot be read or written.

    """
    options = CompactOptions(
        now=_now() if now is None else now,
        delete_retention_ms=delete_retention_ms,
        min_compaction_lag_ms=min_compaction_lag_ms,
        until_offset=until_offset,
        all=all,
        checkpoint={} if checkpoint is None else read_checkpoint(checkpoint),
        producer_id_expiration_ms=producer_id_expiration_ms,
        segment_bytes=segment_bytes,
        memory_bytes=memory_bytes,
        max_decompressed_bytes=max_decompressed_bytes,
        mode=mode,
        topic_ids=dict(topic_ids or {}),
        topic_config={} if topic_config is None else read_topic_config(topic_config),
        all_topics=all_topics,
    )
    return compact_partitions(
        paths_of(sources), os.fspath(out), engine or LocalEngine(), options, progress, choice=choice
    )


def redact(
    sources: Sources,
    out: str | PathLike[str],
    *,
    keys: Iterable[bytes] = (),
    where: str | None = None,
    tombstones: bool = False,
    check: bool = True,
    mode: DamageMode = "PERMISSIVE",
    topic_ids: Mapping[str, str] | None = None,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
    choice: PartitionChoice = EVERYTHING,
    engine: Engine | None = None,
    progress: Progress = NO_PROGRESS,
) -> CleanReport:
    """Writes every partition at and below `sources` to `out` without the records that must be forgotten.

    As `magicbyte redact`: no byte of those records is in `out`; everything else stays as it is. `sources` is
    only read, and `out` is published when everything is done.

    Args:
        sources: one path or several: a partition's directory, or a directory with partitions below it.
        out: a directory that does not exist or is empty.
        keys: redact records with one of these keys. The report has the index of each key that no record
            has.
        where: redact records for which this SQL expression is true; `magicbyte redact --help` has its columns
            and examples. Needs pyarrow and duckdb.
        tombstones: keep key, offset and timestamp of redacted records, but neither value nor headers.
        check: reread the output before it is published: it must contain none of the keys.
        mode: what happens at damage.
        topic_ids: the id of each topic in the cluster that `out` is for, for `partition.metadata`; otherwise
            it is that of `sources`. The key "" stands for the only topic.
        max_decompressed_bytes: the limit for one batch, stored or decompressed; larger ones are damage.
        choice: which partitions to read.
        engine: where the tasks run; None for one thread per core.
        progress: where to report progress.

    Returns:
        What became of every record and byte, and the offsets (inclusive) that were redacted: the content of
        `reconciliation.json`.

    Raises:
        RefusedError: if nothing is selected, there is nothing to read, the expression is invalid, a
            partition is found twice, or `out` is not empty.
        JobError: if a source changes while it is read, the check finds a key, or the expression fails for a
            record; then nothing is published.
        Error: for the first bad batch, with FAILFAST.
        OSError: if a file cannot be read or written.

    """
    options = RedactOptions(
        keys=tuple(keys),
        where=where,
        tombstones=tombstones,
        check=check,
        max_decompressed_bytes=max_decompressed_bytes,
        mode=mode,
        topic_ids=dict(topic_ids or {}),
    )
    return redact_partitions(
        paths_of(sources), os.fspath(out), engine or LocalEngine(), options, progress, choice=choice
    )


def explain(
    sources: Sources,
    *,
    now: int | None = None,
    transaction_max_timeout_ms: int = DEFAULT_TRANSACTION_MAX_TIMEOUT_MS,
    max_listed: int = _core.LISTED,
    choice: PartitionChoice = EVERYTHING,
    engine: Engine | None = None,
    progress: Progress = NO_PROGRESS,
) -> list[PartitionHistory]:
    """The history of every partition, from the headers of its batches.

    Args:
        sources: what to read.
        now: the current time, from which the age of open transactions is counted; None for the clock's.
        transaction_max_timeout_ms: an open transaction hangs if its producer was last heard from longer ago.
        max_listed: how many producers, transactions, gaps and so on each history lists; it counts all.
        choice: see the module, as the arguments after it.
        engine: where the tasks run.
        progress: where to report progress.

    """
    return partition_histories(
        paths_of(sources),
        engine or LocalEngine(),
        now=_now() if now is None else now,
        transaction_max_timeout_ms=transaction_max_timeout_ms,
        max_listed=max_listed,
        choice=choice,
        progress=progress,
    )


def schemas(
    sources: Sources,
    out: str | PathLike[str] | None = None,
    *,
    schemas_topic: str = SCHEMAS_TOPIC,
    choice: PartitionChoice = EVERYTHING,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
    http: HttpSettings = DEFAULT_SETTINGS,
) -> SchemasReport:
    """The schemas of a registry, from its topic's segments, from files or from itself.

    To look schemas up, use `magicbyte.jobs.schemas.open_registry`; what it opens is checked by
    `magicbyte.jobs.schema_check`.

    Args:
        sources: directories with the topic, one directory or JSON map of schemas in files, or the address of
            a live registry.
        out: gets the schemas as files, and `schemas.json`, which says what they are.
        schemas_topic: the registry's topic.
        choice: which copy of the topic to read, if there are several.
        max_decompressed_bytes: the limit for one batch.
        http: credentials and limits for an address.

    """
    return registered_schemas(
        paths_of(sources),
        None if out is None else os.fspath(out),
        schemas_topic=schemas_topic,
        choice=choice,
        max_decompressed_bytes=max_decompressed_bytes,
        http=http,
    )


@overload
def stats(
    sources: Sources,
    *,
    fields: Literal[False] = False,
    choice: PartitionChoice = ...,
    engine: Engine | None = ...,
    progress: Progress = ...,
    max_decompressed_bytes: int = ...,
) -> StatsReport: ...
@overload
def stats(
    sources: Sources,
    *,
    fields: Literal[True],
    choice: PartitionChoice = ...,
    engine: Engine | None = ...,
    progress: Progress = ...,
    max_decompressed_bytes: int = ...,
) -> FieldCosts: ...
def stats(
    sources: Sources,
    *,
    fields: bool = False,
    choice: PartitionChoice = EVERYTHING,
    engine: Engine | None = None,
    progress: Progress = NO_PROGRESS,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> StatsReport | FieldCosts:
    """Counts records, bytes and batches by codec, magic, producer and time; decodes every record.

    With `fields`, counts the bytes of every partition by field instead, and what they would be in other
    formats.
    """
    job = field_costs if fields else statistics
    return job(
        paths_of(sources),
        engine or LocalEngine(),
        max_decompressed_bytes=max_decompressed_bytes,
        choice=choice,
        progress=progress,
    )


def advise(
    sources: Sources,
    *,
    windows: int = 32,
    window_bytes: int = 4 << 20,
    price_per_tb_month: float | None = None,
    seed: int = 0,
    choice: PartitionChoice = EVERYTHING,
    engine: Engine | None = None,
    progress: Progress = NO_PROGRESS,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> AdviseReport:
    """Tries codecs, levels and batch sizes on a sample of each topic, and recommends one.

    Args:
        sources: what to read.
        windows: how many places of the log are sampled, in all.
        window_bytes: bytes of each after decompression.
        price_per_tb_month: what a month of storing a terabyte (10^12 bytes) costs.
        seed: the same seed takes the same sample.
        choice: see the module, as the arguments after it.
        engine: where the tasks run.
        progress: where to report progress.
        max_decompressed_bytes: the limit for one batch.

    """
    return advise_topics(
        paths_of(sources),
        engine or LocalEngine(),
        windows=windows,
        window_bytes=window_bytes,
        price_per_tb_month=price_per_tb_month,
        seed=seed,
        max_decompressed_bytes=max_decompressed_bytes,
        choice=choice,
        progress=progress,
    )


def offsets(
    sources: Sources,
    *,
    group: str = "*",
    choice: PartitionChoice = EVERYTHING,
    engine: Engine | None = None,
    progress: Progress = NO_PROGRESS,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> OffsetsReport:
    """The committed offsets and the lag of each consumer group, read from `__consumer_offsets`.

    Args:
        sources: what to read.
        group: which groups: a name, or a pattern with `*`, `?` and `[...]`.
        choice: see the module, as the arguments after it.
        engine: where the tasks run.
        progress: where to report progress.
        max_decompressed_bytes: the limit for one batch.

    """
    return committed_offsets(
        paths_of(sources),
        engine or LocalEngine(),
        choice=choice,
        group=group,
        max_decompressed_bytes=max_decompressed_bytes,
        progress=progress,
    )


def topics(
    sources: Sources,
    *,
    topic_config: str | PathLike[str] | None = None,
    choice: PartitionChoice = EVERYTHING,
) -> TopicsReport:
    """The topics with their ids, configs and partitions, read from `__cluster_metadata` if it is there.

    Args:
        sources: what to read.
        topic_config: a JSON file with configs of topics: see `magicbyte.jobs.find.cluster.read_topic_config`.
        choice: which partitions to read.

    """
    given = None if topic_config is None else read_topic_config(topic_config)
    return topics_of_partitions(paths_of(sources), given, choice=choice)


def _now() -> int:
    return round(time.time() * 1000)
