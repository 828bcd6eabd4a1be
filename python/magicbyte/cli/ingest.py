"""`magicbyte ingest`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from magicbyte.cli import engines, options
from magicbyte.cli.terminal import print_line
from magicbyte.enums import IsolationLevel

if TYPE_CHECKING:
    from magicbyte.jobs.ingest import IngestReport

__all__ = ["ingest"]


@click.command(short_help="Make Parquet tables, with the proof that nothing is lost.")
@click.argument("source", metavar="SRC", type=click.Path(exists=True, file_okay=False))
@click.argument("out", metavar="OUT", type=click.Path())
@engines.options
@options.isolation_level
@click.option(
    "--include-batch-metadata",
    is_flag=True,
    help="Add magic, compression, producer, sequence, leader epoch, segment, position and timestampMillis"
    " to the records.",
)
@click.option("--overwrite", is_flag=True, help="Replace an earlier output of magicbyte in OUT, at the end.")
@click.option(
    "--parquet-compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="snappy",
    show_default=True,
    help="The codec of the Parquet files.",
)
@options.max_decompressed_bytes
@options.threads
@options.as_json
def ingest(
    source: str,
    out: str,
    engine: str,
    master: str | None,
    conf: tuple[str, ...],
    isolation_level: IsolationLevel,
    include_batch_metadata: bool,
    overwrite: bool,
    parquet_compression: str,
    max_decompressed_bytes: int,
    threads: int | None,
    as_json: bool,
) -> int:
    """Turn every partition at and below SRC into Parquet tables in the directory OUT.

    OUT gets the tables records, batches and problems, laid out as TABLE/topic=T/partition=N/, and
    reconciliation.json: each byte of each segment and each record, counted once. Without OUT/_SUCCESS
    an output is not complete. With a --master of a cluster, SRC and OUT must lie on a file system that
    all its machines share, and magicbyte must be installed on them.

    \b
    magicbyte ingest /backup/kafka-logs tables/
    magicbyte ingest --engine local --include-batch-metadata orders-0/ orders/
    magicbyte ingest --master 'local[4]' --conf spark.driver.memory=4g /backup/kafka-logs tables/
    magicbyte ingest --isolation-level read_committed --overwrite /backup/kafka-logs tables/
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import report
    from magicbyte.jobs.ingest import IngestOptions
    from magicbyte.jobs.ingest import ingest as ingest_job
    from magicbyte.jobs.progress import terminal_progress

    asked = IngestOptions(
        isolation_level=isolation_level,
        batch_metadata=include_batch_metadata,
        codec=parquet_compression,
        max_decompressed_bytes=max_decompressed_bytes,
        overwrite=overwrite,
    )
    with engines.chosen(f"magicbyte ingest {source}", engine, master, conf, threads) as runner:
        found = ingest_job([source], out, runner, asked, terminal_progress())
    if as_json:
        report.print_json(found)
    else:
        _print(found, out)
    return report.exit_code(balanced=found["balanced"], problems=found["total"]["problems"])


def _print(found: IngestReport, out: str) -> None:
    from magicbyte.cli import report
    from magicbyte.jobs.plan import count_of
    from magicbyte.jobs.progress import format_bytes

    report.print_reconciliation(found["partitions"], found["total"])
    print_line()
    for table, sums in found["tables"].items():
        rows, files = count_of(sums["rows"], "row"), count_of(sums["files"], "file")
        print_line(f"{out}/{table}: {rows} in {files}, {format_bytes(sums['size'])}")
    if found["total"]["null_timestamps"]:
        print_line(
            f"{found['total']['null_timestamps']:,} timestamps are null: microseconds cannot hold them;"
            " --include-batch-metadata keeps them as timestampMillis"
        )
