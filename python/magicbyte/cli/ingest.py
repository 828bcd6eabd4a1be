"""`magicbyte ingest`"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

import magicbyte
from magicbyte.cli import expressions, overview, partition_choice
from magicbyte.cli.catalogs import check_catalog
from magicbyte.cli.commits import print_above, print_commit, print_invalid, print_stream
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.cli.interrupts import stopped_by_signals
from magicbyte.cli.overview import View
from magicbyte.cli.terminal import print_line
from magicbyte.cli.typed import typed_columns
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run.progress import terminal_progress
from magicbyte.options.declare import narrowed
from magicbyte.options.ingest import FollowOptions, IngestOptions, TargetOptions
from magicbyte.options.shared import Follow

if TYPE_CHECKING:
    from magicbyte.jobs.ingest import IngestReport

__all__ = ["ingest"]

_PROBLEMS_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class _Following(Follow, FollowOptions):
    """`--follow`, and its pace."""


@click.command(short_help="Write Parquet tables, with proof that nothing is lost.", epilog=expressions.HELP)
@partition_choice.sources_or_clusters
@click.argument("out", metavar="OUT", type=click.Path())
@partition_choice.choice(prefer=True, assigned=True)
@flags(IngestOptions, "given")
@typed_columns
@flags(TargetOptions, "target")
@flags(_Following, "following")
@flags(EngineChoice, "engine")
@flags(View, "view")
def ingest(
    sources: tuple[str, ...],
    out: str,
    choice: PartitionChoice,
    given: IngestOptions,
    target: TargetOptions,
    following: _Following,
    view: View,
    engine: EngineChoice,
) -> int:
    """Write every partition at and below SRC as Parquet tables into the directory OUT.

    OUT gets the tables records, batches and problems, each a directory of Parquet files in which every row
    has its topic and partition, and reconciliation.json, which counts each byte of each segment and each
    record once. Where Kafka's own topics are read, the tables offsets (__consumer_offsets: what groups have
    committed) and topics (__cluster_metadata) are added. An output without OUT/_SUCCESS is incomplete. OUT
    may be a URL. On a Spark cluster, SRC and OUT must be URLs, or on a file system that all machines share,
    and magicbyte must be installed on each.

    SRC may be a running cluster, or a topic or partition of it: kafka://HOST:PORT/TOPIC/PARTITION. Each
    partition is fetched as far as its consumers could read it when the run began, in ranges of offsets by
    several tasks; with --engine spark by the executors, where the file that --command-config names must
    have the same path. Tables of Kafka's own topics are left out.

    Records outside a range of offsets or timestamps, or for which EXPR is not true, are read and counted as
    outside, but not written. A record is in a range of timestamps if its own timestamp is, regardless of its
    place in the log.

    With --format delta, OUT is the directory or URL of a Delta table; with --format iceberg it is an Iceberg
    table, NAMESPACE.TABLE in a catalog. The table is created, or gets the records that it does not have yet,
    in one commit that also holds the offsets to continue at. verify --table proves that it equals the log.
    With --follow this goes on, with a line for each commit, until Ctrl-C or SIGTERM ends it after a commit;
    it fails if records are deleted before they were read. In a broker's directory, records wait until they
    are below the high watermark (replication-offset-checkpoint); without --follow, records above it are
    written, and counted.

    A table that continues another log is refused, with the offset where they diverge: after a failover that
    rewrote the end of a partition, or once a topic was created again. If a run could not read some data, all
    later runs report it. --repair replaces and adds exactly these rows.

    With --key-as and --value-as, a key or value that is not valid in that format is NULL, and its bytes are
    in the column invalidKey or invalidValue. It is counted, and makes the exit code 1.

    With --key-format and --value-format, key or value gets the types of its topic's latest schema (subject
    TOPIC-key, TOPIC-value), whatever schema each record was written with. A key or value that cannot be
    decoded is also NULL; the column _key_error or _error has the reason. _key_schema_id and _schema_id are
    the ids. With --validate, so is JSON that its own schema does not allow. A Delta or Iceberg table gets the
    fields that the schema has gained since the last run, and keeps the fields that it has lost.

    \b
    magicbyte ingest /backup/kafka-logs tables/
    magicbyte ingest --topic orders --key-as string --value-as json /backup/kafka-logs tables/
    magicbyte ingest --topic orders --value-format avro --schema-registry schemas/ /backup/kafka-logs tables/
    magicbyte ingest --start-timestamp 2024-05-01 --end-timestamp 2024-05-02 /backup/kafka-logs tables/
    magicbyte ingest --where "header(headers, 'tenant') = 'x'" /backup/kafka-logs tables/
    magicbyte ingest --include-batch-metadata orders-0/ orders/
    magicbyte ingest --isolation-level read_committed --overwrite /backup/kafka-logs tables/
    magicbyte ingest --format delta --partition-by day /backup/kafka-logs records/
    magicbyte ingest --format delta --follow --interval 5 /var/lib/kafka records/
    magicbyte ingest --format delta --follow kafka://broker:9092/orders orders/
    magicbyte ingest --format delta --repair /backup/kafka-logs records/
    magicbyte ingest --format delta --value-format avro --schema-registry schemas/ logs/orders-0 orders/
    magicbyte ingest --format iceberg --catalog prod /backup/kafka-logs kafka.records
    magicbyte ingest --engine spark --master spark://host:7077 /backup/kafka-logs tables/
    magicbyte ingest --engine spark --conf spark.driver.memory=4g /backup/kafka-logs tables/
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports

    _check(given, target, following)
    with engine.open(f"magicbyte ingest {sources[0]}") as runner:
        run = {"choice": choice, "engine": runner, "progress": terminal_progress()}
        arguments = {**run, **vars(given), **vars(target)}
        if following.follow:
            with stopped_by_signals() as stop:
                stream = magicbyte.ingest_stream(
                    sources, out, stop=stop, **vars(narrowed(FollowOptions, following)), **arguments
                )
                return print_stream(stream, as_json=view.as_json)
        report = magicbyte.ingest(sources, out, **arguments)
    if view.as_json:
        reports.print_json(report)
    else:
        _print(report, out, view)
        if given.repair and report["commit"] is not None and report["commit"]["job"] is None:
            print_line("nothing is to be repaired")
    return exit_code(_problems(report), balanced=report["balanced"])


def _problems(report: IngestReport) -> int:
    """The number of problems that make the exit code 1."""
    total = report["total"]
    problems = total["problems"] + total["invalid_keys"] + total["invalid_values"]
    return problems + sum(len(one["problems"]) for one in (*report["log_dirs"], report["internal_topics"]))


def _check(given: IngestOptions, target: TargetOptions, following: _Following) -> None:
    """Raises UsageError for options that contradict each other."""
    for_tables = (
        target.partition_by != "topic"
        or given.target_file_size is not None
        or given.repair
        or given.fail_on_missing
    )
    if target.format == "parquet" and (for_tables or following.follow):
        raise click.UsageError(
            "--partition-by, --target-file-size, --repair, --fail-on-missing and --follow need "
            "--format delta or iceberg"
        )
    if given.repair and following.follow:
        raise click.UsageError("--repair is one run: --follow can go on after it")
    if following.interval is not None and not following.follow:
        raise click.UsageError("--interval needs --follow")
    if following.above_high_watermark and not following.follow:
        raise click.UsageError("--above-high-watermark needs --follow: a single run reads the whole log")
    check_catalog(target, needed=target.format == "iceberg")


def _print(report: IngestReport, out: str, view: View) -> None:
    """Prints the sums, and the size of each table."""
    from magicbyte.cli import inputs
    from magicbyte.jobs.run.plan import count_of
    from magicbyte.jobs.run.progress import format_bytes

    overview.print_overview(report["partitions"], report["total"], view)
    inputs.print_unread(report["partitions"], report["skipped"], report["log_dirs"])
    print_line()
    if report["commit"] is not None:
        print_commit(report["commit"], report["tables"]["records"])
    for table, sums in report["tables"].items() if report["commit"] is None else ():
        rows, files = count_of(sums["rows"], "row"), count_of(sums["files"], "file")
        print_line(f"{out}/{table}: {rows} in {files}, {format_bytes(sums['size'])}")
    if pending := report["internal_topics"]["pending_offsets"]:
        print_line(
            f"{pending:,} offsets of transactions that had not ended are left out of the table offsets"
        )
    if topics := report["internal_topics"]["left_out"]:
        print_line(f"{', '.join(topics)}: a running cluster gets no tables of what these records mean")
    for problem in report["internal_topics"]["problems"][:_PROBLEMS_SHOWN]:
        print_line(problem)
    total = report["total"]
    if total["null_timestamps"]:
        print_line(
            f"{total['null_timestamps']:,} timestamps are null: out of range in microseconds;"
            " --include-batch-metadata keeps them as timestampMillis"
        )
    print_invalid(report)
    print_above(report)
    if report["commit"] is None:
        overview.print_next("duckdb", "-c", f"SELECT * FROM '{out}/records/*.parquet' LIMIT 10")
