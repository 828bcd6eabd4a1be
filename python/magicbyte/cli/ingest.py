"""`magicbyte ingest`"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from magicbyte.cli import catalogs, engines, expressions, options, overview, partition_choice
from magicbyte.cli.catalogs import CatalogChoice
from magicbyte.cli.commits import print_above, print_commit, print_invalid, print_stream
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.interrupts import stopped_by_signals
from magicbyte.cli.overview import View
from magicbyte.cli.selection import ranges as range_options
from magicbyte.cli.terminal import print_line
from magicbyte.cli.typed import typed_columns
from magicbyte.enums import IsolationLevel, PartitionBy, PayloadType, TableFormat
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run.ranges import Ranges

if TYPE_CHECKING:
    from magicbyte.jobs.ingest import IngestReport
    from magicbyte.jobs.typed import TypedColumns

__all__ = ["ingest"]

_PROBLEMS_SHOWN = 20
F = TypeVar("F", bound=Callable[..., Any])


def _payload(name: str) -> Callable[[F], F]:
    """`--key-as` and `--value-as`"""
    return click.option(
        f"--{name}-as",
        type=click.Choice(["binary", "string", "json"]),
        default="binary",
        show_default=True,
        help=f"The type of the column {name}: string is UTF-8, json are JSON documents.",
    )


@click.command(short_help="Write Parquet tables, with proof that nothing is lost.", epilog=expressions.HELP)
@partition_choice.sources
@click.argument("out", metavar="OUT", type=click.Path())
@partition_choice.options(prefer=True, assigned=True)
@range_options
@expressions.where("Write only records for which this SQL expression is true.")
@overview.options
@engines.options
@options.isolation_level
@_payload("key")
@_payload("value")
@typed_columns
@click.option(
    "--include-batch-metadata",
    is_flag=True,
    help="Add columns to the records: magic, compression, producer, sequence, leader epoch, segment, position"
    " and timestampMillis.",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace an earlier output of ingest in OUT, once the new output is complete.",
)
@click.option(
    "--parquet-compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="zstd",
    show_default=True,
    help="The codec of the Parquet files.",
)
@click.option(
    "--bloom-filter",
    is_flag=True,
    help="Write bloom filters of the keys, so that readers that look for a key skip most other row groups.",
)
@click.option(
    "--digest",
    is_flag=True,
    help="Write the column _digest, by which verify --table compares typed keys and values with the log."
    " Delta and Iceberg tables always have it.",
)
@click.option(
    "--format",
    "table_format",
    type=click.Choice(["parquet", "delta", "iceberg"]),
    default="parquet",
    show_default=True,
    help="The output: a directory of Parquet tables, or the new records as one commit of a table.",
)
@click.option(
    "--partition-by",
    type=click.Choice(["topic", "day"]),
    default="topic",
    show_default=True,
    help="With delta and iceberg: the partitioning of files; day is by topic and day of the timestamp.",
)
@click.option(
    "--target-file-size",
    type=options.BYTES,
    show_default="256MiB",
    metavar="SIZE",
    help="With delta and iceberg: the target size of files, if a task has enough to write.",
)
@click.option(
    "--repair",
    is_flag=True,
    help="With delta and iceberg: replace the rows from the offset on where the log diverges from the table,"
    " and add records that earlier runs could not read, in one commit with the new records.",
)
@click.option(
    "--fail-on-missing",
    is_flag=True,
    help="With delta and iceberg: add nothing if records of the log are lost or unreadable.",
)
@options.follow
@click.option(
    "--interval",
    type=click.FloatRange(min=0, min_open=True),
    show_default="10",
    metavar="SECONDS",
    help="With --follow: the time from one look at SRC to the next.",
)
@click.option(
    "--above-high-watermark",
    is_flag=True,
    help="With --follow: do not wait until a broker has replicated records; a failover may replace them.",
)
@catalogs.options
@options.max_decompressed_bytes
@options.as_json
def ingest(
    sources: tuple[str, ...],
    out: str,
    choice: PartitionChoice,
    ranges: Ranges,
    where: str | None,
    view: View,
    engine: EngineChoice,
    isolation_level: IsolationLevel,
    key_as: PayloadType,
    value_as: PayloadType,
    typed: TypedColumns,
    include_batch_metadata: bool,
    overwrite: bool,
    parquet_compression: str,
    bloom_filter: bool,
    digest: bool,
    table_format: TableFormat,
    partition_by: PartitionBy,
    target_file_size: int | None,
    repair: bool,
    fail_on_missing: bool,
    follow: bool,
    interval: float | None,
    above_high_watermark: bool,
    catalog: CatalogChoice,
    max_decompressed_bytes: int,
    as_json: bool,
) -> int:
    """Write every partition at and below SRC as Parquet tables into the directory OUT.

    OUT gets the tables records, batches and problems, each a directory of Parquet files in which every row
    has its topic and partition, and reconciliation.json, which counts each byte of each segment and each
    record once. Where Kafka's own topics are read, the tables offsets (__consumer_offsets: what groups have
    committed) and topics (__cluster_metadata) are added. An output without OUT/_SUCCESS is incomplete. OUT
    may be a URL. On a Spark cluster, SRC and OUT must be URLs, or on a file system that all machines share,
    and magicbyte must be installed on each.

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
    magicbyte ingest --format delta --repair /backup/kafka-logs records/
    magicbyte ingest --format delta --value-format avro --schema-registry schemas/ logs/orders-0 orders/
    magicbyte ingest --format iceberg --catalog prod /backup/kafka-logs kafka.records
    magicbyte ingest --engine spark --master spark://host:7077 /backup/kafka-logs tables/
    magicbyte ingest --engine spark --conf spark.driver.memory=4g /backup/kafka-logs tables/
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports
    from magicbyte.jobs.ingest import TARGET_FILE_SIZE, IngestOptions
    from magicbyte.jobs.ingest import ingest as ingest_job
    from magicbyte.jobs.run.progress import terminal_progress

    for_tables = partition_by != "topic" or target_file_size is not None or repair or fail_on_missing
    if table_format == "parquet" and (for_tables or follow):
        raise click.UsageError(
            "--partition-by, --target-file-size, --repair, --fail-on-missing and --follow need "
            "--format delta or iceberg"
        )
    if repair and follow:
        raise click.UsageError("--repair is one run: --follow can go on after it")
    if interval is not None and not follow:
        raise click.UsageError("--interval needs --follow")
    if above_high_watermark and not follow:
        raise click.UsageError("--above-high-watermark needs --follow: a single run reads the whole log")
    catalog.check(needed=table_format == "iceberg")

    settings = IngestOptions(
        isolation_level=isolation_level,
        batch_metadata=include_batch_metadata,
        ranges=ranges,
        where=where,
        key_as=key_as,
        value_as=value_as,
        typed=typed,
        codec=parquet_compression,
        bloom_filter=bloom_filter,
        digest=digest,
        max_decompressed_bytes=max_decompressed_bytes,
        overwrite=overwrite,
        target_file_size=TARGET_FILE_SIZE if target_file_size is None else target_file_size,
        repair=repair,
        fail_on_missing=fail_on_missing,
    )
    with engine.open(f"magicbyte ingest {sources[0]}") as runner:
        progress = terminal_progress()
        if table_format == "parquet":
            report = ingest_job(sources, out, runner, settings, progress, choice=choice)
        else:
            from magicbyte.lake.ingest import ingest_table
            from magicbyte.lake.stream import DEFAULT_INTERVAL_SECONDS, ingest_stream
            from magicbyte.lake.table import TableTarget

            target = TableTarget(table_format, out, catalog.name, catalog.properties, partition_by)
            if follow:
                with stopped_by_signals() as stop:
                    stream = ingest_stream(
                        sources,
                        target,
                        runner,
                        settings,
                        progress,
                        choice=choice,
                        interval=interval or DEFAULT_INTERVAL_SECONDS,
                        stop=stop,
                        above_high_watermark=above_high_watermark,
                    )
                    return print_stream(stream, as_json=as_json)
            report = ingest_table(sources, target, runner, settings, progress, choice=choice)
    if as_json:
        reports.print_json(report)
    else:
        _print(report, out, view)
        if repair and report["commit"] is not None and report["commit"]["job"] is None:
            print_line("nothing is to be repaired")
    total = report["total"]
    problems = total["problems"] + total["invalid_keys"] + total["invalid_values"]
    problems += sum(len(one["problems"]) for one in (*report["log_dirs"], report["internal_topics"]))
    return exit_code(problems, balanced=report["balanced"])


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
