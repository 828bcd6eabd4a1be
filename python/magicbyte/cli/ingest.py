"""`magicbyte ingest`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from magicbyte.cli import engines, options, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.terminal import print_line
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.choice import PartitionChoice

if TYPE_CHECKING:
    from magicbyte.jobs.ingest import IngestReport

__all__ = ["ingest"]


@click.command(short_help="Write Parquet tables, with proof that nothing is lost.")
@partition_choice.sources
@click.argument("out", metavar="OUT", type=click.Path())
@partition_choice.options(prefer=True)
@engines.options
@options.isolation_level
@click.option(
    "--include-batch-metadata",
    is_flag=True,
    help="Add columns to the records: magic, compression, producer, sequence, leader epoch, segment, position"
    " and timestampMillis.",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace an earlier output of ingest in OUT, once the new one is complete.",
)
@click.option(
    "--parquet-compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="snappy",
    show_default=True,
    help="The codec of the Parquet files.",
)
@options.max_decompressed_bytes
@options.as_json
def ingest(
    sources: tuple[str, ...],
    out: str,
    choice: PartitionChoice,
    engine: EngineChoice,
    isolation_level: IsolationLevel,
    include_batch_metadata: bool,
    overwrite: bool,
    parquet_compression: str,
    max_decompressed_bytes: int,
    as_json: bool,
) -> int:
    """Write every partition at and below SRC as Parquet tables into the directory OUT.

    OUT gets the tables records, batches and problems, laid out as TABLE/topic=T/partition=N/, and
    reconciliation.json, which counts each byte of each segment and each record once. An output without
    OUT/_SUCCESS is incomplete. On a Spark cluster, SRC and OUT must be on a file system that all machines
    share, and magicbyte must be installed on each.

    \b
    magicbyte ingest /backup/kafka-logs tables/
    magicbyte ingest --include-batch-metadata orders-0/ orders/
    magicbyte ingest --isolation-level read_committed --overwrite /backup/kafka-logs tables/
    magicbyte ingest --engine spark --master spark://host:7077 /backup/kafka-logs tables/
    magicbyte ingest --engine spark --conf spark.driver.memory=4g /backup/kafka-logs tables/
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports
    from magicbyte.jobs.ingest import IngestOptions
    from magicbyte.jobs.ingest import ingest as ingest_job
    from magicbyte.jobs.progress import terminal_progress

    settings = IngestOptions(
        isolation_level=isolation_level,
        batch_metadata=include_batch_metadata,
        codec=parquet_compression,
        max_decompressed_bytes=max_decompressed_bytes,
        overwrite=overwrite,
    )
    with engine.open(f"magicbyte ingest {sources[0]}") as runner:
        report = ingest_job(sources, out, runner, settings, terminal_progress(), choice=choice)
    if as_json:
        reports.print_json(report)
    else:
        _print(report, out)
    problems = report["total"]["problems"] + sum(len(one["problems"]) for one in report["log_dirs"])
    return reports.exit_code(balanced=report["balanced"], problems=problems)


def _print(report: IngestReport, out: str) -> None:
    """Prints the sums, and the size of each table."""
    from magicbyte.cli import inputs, reports
    from magicbyte.jobs.plan import count_of
    from magicbyte.jobs.progress import format_bytes

    reports.print_reconciliation(report["partitions"], report["total"])
    inputs.print_skipped(report["skipped"])
    inputs.print_log_dirs(report["log_dirs"])
    print_line()
    for table, sums in report["tables"].items():
        rows, files = count_of(sums["rows"], "row"), count_of(sums["files"], "file")
        print_line(f"{out}/{table}: {rows} in {files}, {format_bytes(sums['size'])}")
    if report["total"]["null_timestamps"]:
        print_line(
            f"{report['total']['null_timestamps']:,} timestamps are null: out of range in microseconds;"
            " --include-batch-metadata keeps them as timestampMillis"
        )
