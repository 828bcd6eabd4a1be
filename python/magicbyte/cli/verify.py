"""`magicbyte verify`"""

from __future__ import annotations

from functools import partial

import click

from magicbyte.cli import catalogs, engines, options, overview, partition_choice
from magicbyte.cli.catalogs import CatalogChoice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.overview import View
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.find.choice import PartitionChoice

__all__ = ["verify"]


@click.command(short_help="Decode every record, write nothing, print the sums.")
@partition_choice.sources
@partition_choice.options(assigned=True)
@options.isolation_level
@click.option(
    "--table",
    metavar="TABLE",
    help="Compare the records with those of a table of ingest: a Delta or Parquet directory or URL, or an"
    " Iceberg table with --catalog.",
)
@click.option(
    "--indexes",
    is_flag=True,
    help="Also compare the indexes (.index .timeindex .txnindex) with their segments, entry by entry.",
)
@catalogs.options
@overview.options
@engines.options
@options.max_decompressed_bytes
@options.as_json
def verify(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    isolation_level: IsolationLevel,
    table: str | None,
    indexes: bool,
    catalog: CatalogChoice,
    view: View,
    engine: EngineChoice,
    max_decompressed_bytes: int,
    as_json: bool,
) -> int:
    """Decode every record of every partition at and below SRC, and write nothing.

    Checks sizes, CRCs, compression, and each record. Each byte is counted once: in a good batch, in a
    quarantined range with its reason, or in the tail of a segment. Each record that a batch announces has to
    be found.

    With --table, the table has to hold the same records: their number, their offsets, and a digest of all
    their fields are compared for each partition, up to the end of the table. Isolation level, ranges and
    expression are those that the table was made with. The exit code is 1 if the log goes on after the table,
    and 3 if they differ; the first different offset is then reported. Rows that compaction has removed from
    the log do not count as a difference.

    With --indexes, the rules are those of kafka-dump-log: an entry's offset has to be the last one of its
    batch. Brokers before 4.1 wrote entries that point inside an append; these are differences too, but do no
    harm. The exit code is 1 if there are any.

    \b
    magicbyte verify /backup/kafka-logs
    magicbyte verify /backup/kafka-logs/orders-0 /backup/kafka-logs/orders-1
    magicbyte verify --json /backup/kafka-logs | jq '.problems[] | .message'
    magicbyte verify --table records/ /backup/kafka-logs
    magicbyte verify --table kafka.records --catalog prod /backup/kafka-logs
    magicbyte verify --indexes orders-0/
    magicbyte verify --engine spark --master spark://host:7077 /backup/kafka-logs

    --json lists the first 1000 problems and counts all; the table problems of ingest holds each.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import accounts, reports
    from magicbyte.jobs.run.progress import terminal_progress
    from magicbyte.jobs.verify import verify as verify_job

    if table is None:
        catalog.check(needed=False)
    compared = None
    if table is not None:
        from magicbyte.lake.compare import LogOfTable
        from magicbyte.lake.read import open_stored

        compared = partial(LogOfTable, open_stored(table, catalog.name, catalog.properties))
    with engine.open("magicbyte verify") as runner:
        report = verify_job(
            sources,
            runner,
            isolation_level=isolation_level,
            choice=choice,
            table=compared,
            indexes=indexes,
            max_decompressed_bytes=max_decompressed_bytes,
            progress=terminal_progress(),
        )
    if as_json:
        reports.print_json(report)
    else:
        accounts.print_verified(report, sources, view)
    return accounts.verify_code(report)
