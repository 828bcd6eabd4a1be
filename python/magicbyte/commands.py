"""The commands that run a job as functions: `magicbyte verify` is `magicbyte.verify`, and so on.

>>> import magicbyte
>>> report = magicbyte.verify("samples")
>>> report["balanced"], report["total"]["rows"] > 0
(True, True)

The first argument names directories with partitions anywhere below them, or segment files; they are only
read. The keywords are the options of the commands, and `choice`, `engine` and `progress`; `help` on a
function lists them. Times are in milliseconds since 1970. Every function returns the document that its
command prints with `--json`.

Every function raises `ValueError` for a keyword whose value is not of its kind or out of range;
`RefusedError` if there is nothing to read, a path does not exist, or the arguments contradict each other;
`JobError` if the job fails; `OSError` if a file cannot be read or written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from magicbyte.calls import Chosen, Path, Run, Tasks, reads, writes
from magicbyte.extras import naming_extras
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.options.audit import AuditOptions
from magicbyte.options.command_line import command_line
from magicbyte.options.compact import CompactOptions
from magicbyte.options.declare import argument
from magicbyte.options.diff import DiffOptions
from magicbyte.options.find import FindOptions
from magicbyte.options.ingest import IngestOptions, TargetOptions
from magicbyte.options.merge import MergeOptions
from magicbyte.options.read import (
    AdviseOptions,
    ClusterOptions,
    ExplainOptions,
    OffsetsOptions,
    SchemasOptions,
    VerifyOptions,
)
from magicbyte.options.redact import RedactOptions
from magicbyte.options.restore import RestoreOptions
from magicbyte.options.rewrite import ConvertOptions, RecoverOptions
from magicbyte.options.serve import ServeOptions
from magicbyte.options.shared import Decoding, TopicConfigFile

if TYPE_CHECKING:
    from magicbyte.jobs.advise import AdviseReport
    from magicbyte.jobs.audit import AuditReport
    from magicbyte.jobs.clean import CleanReport
    from magicbyte.jobs.cluster import ClusterReport
    from magicbyte.jobs.diff import DiffReport
    from magicbyte.jobs.field_costs import FieldCosts
    from magicbyte.jobs.ingest import IngestReport
    from magicbyte.jobs.merging.report import MergeReport
    from magicbyte.jobs.offsets import OffsetsReport
    from magicbyte.jobs.rescue import RescueReport
    from magicbyte.jobs.restoring.report import RestorePlan, RestoreReport
    from magicbyte.jobs.rewrite import RewriteReport
    from magicbyte.jobs.schemas import SchemasReport
    from magicbyte.jobs.serve import Server
    from magicbyte.jobs.stats import StatsReport
    from magicbyte.jobs.topics import TopicsReport
    from magicbyte.jobs.unnamed.find import FindReport
    from magicbyte.jobs.verify import VerifyReport
    from magicbyte.model import PartitionHistory
    from magicbyte.schema.http_client import HttpSettings

__all__ = [
    "advise",
    "audit",
    "cluster",
    "compact",
    "convert",
    "diff",
    "explain",
    "field_costs",
    "find",
    "ingest",
    "merge",
    "offsets",
    "recover",
    "redact",
    "rescue",
    "restore",
    "schemas",
    "serve",
    "stats",
    "topics",
    "verify",
]


@dataclass(frozen=True, kw_only=True)
class _Verify(Run, VerifyOptions):
    """The keywords of `verify`."""


@reads(_Verify, VerifyOptions)
def verify(sources: list[str], given: _Verify, options: VerifyOptions) -> VerifyReport:
    """Decodes every record and accounts for every byte; writes nothing.

    With `table`, an output of `ingest` in any format, also compares its rows with the records. Isolation
    level, ranges and expression are then those of the table.
    """
    from magicbyte.jobs.verify import verify

    table = None
    if options.table is not None:
        from magicbyte.lake.compare import LogOfTable
        from magicbyte.lake.read import open_stored

        stored = open_stored(os.fsdecode(options.table), options.catalog, options.catalog_properties)
        table = partial(LogOfTable, stored)
    return verify(sources, given.runner, options, choice=given.choice, table=table, progress=given.progress)


@dataclass(frozen=True, kw_only=True)
class _Audit(Chosen, AuditOptions):
    """The keywords of `audit`."""

    offsets_out: Path | None = argument(
        "The file for the offsets of the findings, for `redact`; only of those that are more than possible.",
        default=None,
    )
    progress: Progress = argument("The receiver of progress.", default=NO_PROGRESS)


@reads(_Audit, AuditOptions)
def audit(sources: list[str], given: _Audit, options: AuditOptions) -> AuditReport:
    """Finds batches that a producer put into another topic than their own (KAFKA-19012, CVE-2026-35554).

    Reads the headers of all batches, and the records of those that may be copies of each other. Topics that
    have many batches in common are reported as topics that share data. Runs in threads of this process.
    """
    from magicbyte.jobs.audit import audit_misrouted

    return audit_misrouted(
        sources,
        options,
        offsets_out=None if given.offsets_out is None else os.fsdecode(given.offsets_out),
        choice=given.choice,
        progress=given.progress,
    )


@dataclass(frozen=True, kw_only=True)
class _Ingest(Run, IngestOptions, TargetOptions):
    """The keywords of `ingest`."""


@writes(
    _Ingest,
    IngestOptions,
    out="The directory or URL of the tables: new or empty, but for `overwrite`. For delta, the table; for"
    " iceberg, its name in the catalog.",
)
def ingest(sources: list[str], out: str, given: _Ingest, options: IngestOptions) -> IngestReport:
    """Decodes every partition into Parquet tables in `out`: `records`, `batches` and `problems`.

    With the format delta (needs deltalake) or iceberg (needs pyiceberg; `out` is then the table's
    identifier), adds the records that the table does not have yet, in one commit.
    """
    if given.format == "parquet":
        from magicbyte.jobs.ingest import ingest

        return ingest(sources, out, given.runner, options, given.progress, choice=given.choice)
    with naming_extras("ingest", given.format):
        from magicbyte.lake.ingest import ingest_table
        from magicbyte.lake.table import TableTarget

    target = TableTarget(given.format, out, given.catalog, given.catalog_properties, given.partition_by)
    return ingest_table(sources, target, given.runner, options, given.progress, choice=given.choice)


@dataclass(frozen=True, kw_only=True)
class _Convert(Run, ConvertOptions):
    """The keywords of `convert`."""


@writes(_Convert, ConvertOptions)
def convert(sources: list[str], out: str, given: _Convert, options: ConvertOptions) -> RewriteReport:
    """Rewrites every partition into `out`, for a current broker to open."""
    from magicbyte.jobs.rewrite import rewrite

    command = command_line("convert", [*sources, out], options, given.choice) if options.certify else None
    return rewrite(
        sources, out, given.runner, options, choice=given.choice, progress=given.progress, command=command
    )


@dataclass(frozen=True, kw_only=True)
class _Diff(Run, DiffOptions):
    """The keywords of `diff`."""


@reads(_Diff, DiffOptions, sources="The two directories, files, archives or URLs to compare.")
def diff(sources: list[str], given: _Diff, options: DiffOptions) -> DiffReport:
    """Compares the records of two logs, partition by partition.

    Records are equal if offset, timestamp, key, value and headers are, and both or none are control records;
    codec, magic and batches make no difference.

    Returns:
        The partitions and ranges of offsets in which records differ; `equal` is True if there are none.

    """
    from magicbyte.jobs.diff import diff

    return diff(sources, given.runner, options, given.progress, choice=given.choice)


@dataclass(frozen=True, kw_only=True)
class _Recover(Run, RecoverOptions):
    """The keywords of `recover`."""


@writes(_Recover, RecoverOptions)
def recover(sources: list[str], out: str, given: _Recover, options: RecoverOptions) -> RewriteReport:
    """Writes the good batches of every partition into `out`, with new sidecars."""
    from magicbyte.jobs.recover import recover

    return recover(sources, out, given.runner, options, given.progress, choice=given.choice)


@dataclass(frozen=True, kw_only=True)
class _Merge(Run, MergeOptions):
    """The keywords of `merge`."""

    out: Path | None = argument(
        "A directory or URL that is new or empty; None to write nothing.",
        default=None,
    )


@reads(_Merge, MergeOptions)
def merge(sources: list[str], given: _Merge, options: MergeOptions) -> MergeReport:
    """Merges the replicas of every partition into one log, which a broker opens.

    The copy whose last batch has the highest leader epoch and offset leads, or that of `choice.prefer`. What
    it has lost is filled from the copies of the same lineage. What others have beyond that is left out, as
    a follower truncates.

    Returns:
        The origin of all bytes, the offsets that no copy has, and what was left out: the content of
        `reconciliation.json`.

    Raises:
        RefusedError: if there is nothing to read, copies are of different topics or clusters, or `out` is not
            empty.
        OSError: if a file cannot be read or written.

    """
    from magicbyte.jobs.merge import merge_partitions

    out = None if given.out is None else os.fsdecode(given.out)
    return merge_partitions(sources, out, given.runner, options, given.progress, choice=given.choice)


@dataclass(frozen=True, kw_only=True)
class _Rescue(Chosen, Decoding):
    """The keywords of `rescue`."""

    out: Path | None = argument("The directory or URL for what can be saved.", default=None)


@reads(_Rescue, Decoding)
def rescue(sources: list[str], given: _Rescue, options: Decoding) -> RescueReport:
    """Examines every damaged range, and saves what can be saved of it into `out`."""
    from magicbyte.jobs.rescue import rescue_partitions

    out = None if given.out is None else os.fsdecode(given.out)
    limit = options.max_decompressed_bytes
    return rescue_partitions(sources, out, max_decompressed_bytes=limit, choice=given.choice)


@dataclass(frozen=True, kw_only=True)
class _Find(Run, FindOptions):
    """The keywords of `find`."""

    out: Path | None = argument("The directory or URL for the partitions that are found.", default=None)


@reads(_Find, FindOptions, sources="Files of any kind, and directories of such files.")
def find(sources: list[str], given: _Find, options: FindOptions) -> FindReport:
    """Finds batches in files that have lost their names, and groups them into partitions.

    A file can be what a recovery tool saved, an entry of `lost+found`, or the image of a disk. The runs of
    batches in them are joined where batches are equal, where a file, a producer or the offsets go on. With
    `out`, each partition becomes a directory; with `like`, it gets its name. `choice` is of `like`.
    """
    from magicbyte.jobs.unnamed.find import find_unnamed

    out = None if given.out is None else os.fsdecode(given.out)
    return find_unnamed(
        sources, out, given.runner, like=options.like, choice=given.choice, progress=given.progress
    )


@dataclass(frozen=True, kw_only=True)
class _Restore(Tasks, RestoreOptions):
    """The keywords of `restore`."""

    out: Path | None = argument("A directory that is new or empty; None to write nothing.", default=None)
    planned: Callable[[RestorePlan], None] | None = argument(
        "Gets the plan before anything is written; what it raises ends the job.", default=None
    )


@reads(_Restore, RestoreOptions, sources="The log directories of a cluster's nodes, or what they are below.")
def restore(sources: list[str], given: _Restore, options: RestoreOptions) -> RestoreReport:
    """Makes directories on which the nodes of a dead cluster start, with its ids, offsets and settings.

    `out` gets `nodeN/logsM` for each log directory. The copies of a partition are merged, and every replica
    gets the same log. Everything else is in a snapshot of the metadata, which names the new voters.

    Returns:
        The plan, and what was written: the content of `reconciliation.json`.

    Raises:
        RefusedError: there is no metadata of a KRaft cluster, the sources are of several clusters, a node or
            a voter is not there, or `out` is not empty.
        OSError: if a file cannot be read or written.

    """
    from magicbyte.jobs.restore import restore

    out = None if given.out is None else os.fsdecode(given.out)
    return restore(sources, out, given.runner, options, planned=given.planned, progress=given.progress)


@dataclass(frozen=True, kw_only=True)
class _Compact(Run, CompactOptions):
    """The keywords of `compact`."""


@writes(_Compact, CompactOptions)
def compact(sources: list[str], out: str, given: _Compact, options: CompactOptions) -> CleanReport:
    """Writes every compacted partition to `out` with only the last record of each key.

    The rules are those of Kafka's `LogCleaner`: whole segments are cleaned, up to the last stable offset and
    without the last segment; everything else is copied.

    Partitions of topics whose `cleanup.policy` does not include `compact` are left out: it is read from
    `__cluster_metadata` in `sources`, or from `topic_config`. So are those that have the brokers' default,
    which only `server.properties` tells. Where nothing is known about a topic, it is compacted if all its
    records have keys.

    Returns:
        What became of every record and byte: the content of `reconciliation.json`.

    Raises:
        RefusedError: if there is nothing to compact, a partition is found twice, `out` is not empty,
            `checkpoint` is not such a file, or a topic whose policy is unknown has records without a key.
        Error: for the first bad batch, with FAILFAST.
        OSError: if a file cannot be read or written.

    """
    from magicbyte.jobs.compact import compact_partitions

    return compact_partitions(sources, out, given.runner, options, given.progress, choice=given.choice)


@dataclass(frozen=True, kw_only=True)
class _Redact(Run, RedactOptions):
    """The keywords of `redact`."""


@writes(_Redact, RedactOptions)
def redact(sources: list[str], out: str, given: _Redact, options: RedactOptions) -> CleanReport:
    """Writes every partition to `out` without the records that must be forgotten.

    No byte of those records is in `out`; everything else stays as it is. The report has the index of each key
    that no record has. An expression needs pyarrow and duckdb; `magicbyte redact --help` has its columns.

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
    from magicbyte.jobs.redact import redact_partitions

    return redact_partitions(sources, out, given.runner, options, given.progress, choice=given.choice)


@dataclass(frozen=True, kw_only=True)
class _Explain(Run, ExplainOptions):
    """The keywords of `explain`."""


@reads(_Explain, ExplainOptions)
def explain(sources: list[str], given: _Explain, options: ExplainOptions) -> list[PartitionHistory]:
    """The history of every partition, from the headers of its batches."""
    from magicbyte.jobs.explain import explain

    return explain(sources, given.runner, options, choice=given.choice, progress=given.progress)


@dataclass(frozen=True, kw_only=True)
class _Schemas(Chosen, SchemasOptions):
    """The keywords of `schemas`."""

    out: Path | None = argument(
        "A directory for the schemas as files, and `schemas.json`, which describes them.", default=None
    )
    http: HttpSettings | None = argument(
        "Credentials and limits for the address of a registry.", default=None
    )


@reads(
    _Schemas,
    SchemasOptions,
    sources="Directories with the topic, one directory or JSON map of schemas in files, or an address.",
)
def schemas(sources: list[str], given: _Schemas, options: SchemasOptions) -> SchemasReport:
    """The schemas of a registry, from its topic's segments, from files or from itself.

    The sources are directories with the topic, one directory or JSON map of schemas in files, or the address
    of a live registry. To look schemas up, use `magicbyte.jobs.schemas.open_registry`; a registry that it
    opens is checked by `magicbyte.jobs.schema_check`.
    """
    from magicbyte.jobs.schemas import schemas

    return schemas(
        sources,
        None if given.out is None else os.fsdecode(given.out),
        choice=given.choice,
        http=given.http,
        **vars(options),
    )


@dataclass(frozen=True, kw_only=True)
class _Stats(Run, Decoding):
    """The keywords of `stats`."""


@reads(_Stats, Decoding)
def stats(sources: list[str], given: _Stats, options: Decoding) -> StatsReport:
    """Counts records, bytes and batches by codec, magic, producer and time; decodes every record."""
    from magicbyte.jobs.stats import statistics

    return statistics(sources, given.runner, choice=given.choice, progress=given.progress, **vars(options))


@reads(_Stats, Decoding)
def field_costs(sources: list[str], given: _Stats, options: Decoding) -> FieldCosts:
    """Counts the bytes of every partition by field, and the bytes that other formats would take.

    It is `magicbyte stats --fields`.
    """
    from magicbyte.jobs.field_costs import field_costs

    return field_costs(sources, given.runner, choice=given.choice, progress=given.progress, **vars(options))


@dataclass(frozen=True, kw_only=True)
class _Advise(Run, AdviseOptions):
    """The keywords of `advise`."""


@reads(_Advise, AdviseOptions)
def advise(sources: list[str], given: _Advise, options: AdviseOptions) -> AdviseReport:
    """Tries codecs, levels and batch sizes on a sample of each topic, and recommends one."""
    from magicbyte.jobs.advise import advise

    return advise(sources, given.runner, options, choice=given.choice, progress=given.progress)


@dataclass(frozen=True, kw_only=True)
class _Offsets(Run, OffsetsOptions):
    """The keywords of `offsets`."""


@reads(_Offsets, OffsetsOptions)
def offsets(sources: list[str], given: _Offsets, options: OffsetsOptions) -> OffsetsReport:
    """The committed offsets and the lag of each consumer group, read from `__consumer_offsets`."""
    from magicbyte.jobs.offsets import offsets

    return offsets(sources, given.runner, options, choice=given.choice, progress=given.progress)


@dataclass(frozen=True, kw_only=True)
class _Topics(Chosen, TopicConfigFile):
    """The keywords of `topics`."""


@reads(_Topics, TopicConfigFile)
def topics(sources: list[str], given: _Topics, options: TopicConfigFile) -> TopicsReport:
    """The topics with their ids, configs and partitions, read from `__cluster_metadata` if it is there."""
    from magicbyte.jobs.topics import topics

    return topics(sources, options, choice=given.choice)


@dataclass(frozen=True, kw_only=True)
class _Cluster(Run, ClusterOptions):
    """The keywords of `cluster`."""


@reads(_Cluster, ClusterOptions)
def cluster(sources: list[str], given: _Cluster, options: ClusterOptions) -> ClusterReport:
    """What the disks say about their cluster: brokers, topics, settings, groups and transactions.

    Topics and settings come from the copies of `__cluster_metadata`, with proven repairs of damaged ones; if
    there are none, topics come from the directories. Passwords and keys are not in the report.
    """
    from magicbyte.jobs.cluster import cluster

    return cluster(sources, given.runner, options, choice=given.choice, progress=given.progress)


@dataclass(frozen=True, kw_only=True)
class _Serve(Run, ServeOptions):
    """The keywords of `serve`."""


@reads(_Serve, ServeOptions)
def serve(sources: list[str], given: _Serve, options: ServeOptions) -> Server:
    """Lets Kafka clients read the partitions: a read-only broker.

    It runs in threads until it is stopped, as at the end of `with magicbyte.serve(path) as server`; clients
    connect to `server.bootstrap_servers`. Nothing is ever written; docs/serve.md says what clients can do.
    The engine reads `__consumer_offsets`.
    """
    from magicbyte.jobs.serve import serve

    return serve(sources, given.runner, options, choice=given.choice, progress=given.progress)
