"""Tables, servers and descriptions of logs and clusters."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magicbyte.calls import Chosen, Path, Run, reads, writes
from magicbyte.errors import RefusedError
from magicbyte.extras import naming_extras
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.options.backup import BackupOptions
from magicbyte.options.declare import argument
from magicbyte.options.ingest import IngestOptions, TargetOptions
from magicbyte.options.read import ClusterOptions, OffsetsOptions, SchemasOptions, TopicsOptions
from magicbyte.options.serve import ServeOptions

if TYPE_CHECKING:
    from magicbyte.jobs.backup import BackupReport
    from magicbyte.jobs.cluster import ClusterReport
    from magicbyte.jobs.ingest import IngestReport
    from magicbyte.jobs.offsets import OffsetsReport
    from magicbyte.jobs.schemas import SchemasReport
    from magicbyte.jobs.serve import Server
    from magicbyte.jobs.topics import TopicsReport
    from magicbyte.schema.http_client import HttpSettings

__all__ = ["backup", "cluster", "ingest", "offsets", "schemas", "serve", "topics"]


_DESCRIBED = "Directories with partitions at or below them, or a running cluster: `kafka://host:9092`."


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


@dataclass(frozen=True, kw_only=True)
class _Backup(Chosen, BackupOptions):
    """The keywords of `backup`."""

    progress: Progress = argument("The receiver of progress.", default=NO_PROGRESS)


@writes(
    _Backup,
    BackupOptions,
    sources="The cluster: `kafka://host:port[,host:port]`, or `kafkas://` with TLS.",
    out="A local directory that does not exist, is empty, or has an earlier backup of the cluster.",
)
def backup(sources: list[str], out: str, given: _Backup, options: BackupOptions) -> BackupReport:
    """Copies a running cluster into `out`, batch by batch; a second run adds what is new.

    `out` is like the log directory of one more broker, which every command reads. A run that is killed is
    continued by the next one.

    Returns:
        The content of `backup.json`, and the sums of this run.

    Raises:
        RefusedError: `out` is no backup of this cluster, is in use, or already goes on after the time of the
            cut.
        OSError: the cluster does not answer or refuses, or a file cannot be written.

    """
    from magicbyte.jobs.backup import backup

    if len(sources) != 1:
        raise RefusedError("a backup is of one cluster: name several of its brokers with commas between them")
    return backup(sources[0], out, options, choice=given.choice, progress=given.progress)


@dataclass(frozen=True, kw_only=True)
class _Cluster(Run, ClusterOptions):
    """The keywords of `cluster`."""


@reads(_Cluster, ClusterOptions)
def cluster(sources: list[str], given: _Cluster, options: ClusterOptions) -> ClusterReport:
    """Describes a cluster from its disks: brokers, topics, settings, groups and transactions.

    Topics and settings come from the copies of `__cluster_metadata`, with proven repairs of damaged ones; if
    there are none, topics come from the directories. Passwords and keys are not in the report.
    """
    from magicbyte.jobs.cluster import cluster

    return cluster(sources, given.runner, options, choice=given.choice, progress=given.progress)


@dataclass(frozen=True, kw_only=True)
class _Topics(Chosen, TopicsOptions):
    """The keywords of `topics`."""


@reads(_Topics, TopicsOptions, sources=_DESCRIBED)
def topics(sources: list[str], given: _Topics, options: TopicsOptions) -> TopicsReport:
    """The topics with their ids, configs and partitions, read from `__cluster_metadata` if it is there, or
    from a running cluster.
    """
    from magicbyte.jobs.topics import topics

    return topics(sources, options, choice=given.choice)


@dataclass(frozen=True, kw_only=True)
class _Offsets(Run, OffsetsOptions):
    """The keywords of `offsets`."""


@reads(_Offsets, OffsetsOptions, sources=_DESCRIBED)
def offsets(sources: list[str], given: _Offsets, options: OffsetsOptions) -> OffsetsReport:
    """The positions and the lag of each group, read from `__consumer_offsets` and `__share_group_state`, or
    from a running cluster.
    """
    from magicbyte.jobs.offsets import offsets

    return offsets(sources, given.runner, options, choice=given.choice, progress=given.progress)


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
