"""`magicbyte verify`"""

from __future__ import annotations

from pathlib import Path

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.catalogs import check_catalog
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.flags import flags
from magicbyte.cli.overview import View
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.read import VerifyOptions

__all__ = ["verify"]


@click.command(short_help="Decode every record, write nothing, print the sums.")
@partition_choice.sources_or_clusters
@partition_choice.choice(assigned=True)
@flags(VerifyOptions, "given")
@options.html("what is certified, and whether the files still are as certified,")
@flags(EngineChoice, "engine")
@flags(View, "view")
def verify(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    given: VerifyOptions,
    page: Path | None,
    view: View,
    engine: EngineChoice,
) -> int:
    """Decode every record of every partition at and below SRC, and write nothing.

    SRC may be a running cluster, or a topic or partition of it: kafka://HOST:PORT/TOPIC/PARTITION. Each
    partition is then fetched once, from its start to its present end.

    Checks sizes, CRCs, compression, and each record. Each byte is counted once: in a good batch, in a
    quarantined range with its reason, or in the tail of a segment. Each record that a batch announces has to
    be found.

    With --table, the table has to hold the same records: their number, their offsets, and a digest of all
    their fields are compared for each partition, up to the end of the table. Isolation level, ranges and
    expression are those that the table was made with. The exit code is 1 if the log goes on after the table,
    and 3 if they differ; the first different offset is then reported. Rows that compaction has removed from
    the log do not count as a difference.

    With --against, the records have to be those that a running cluster sends to consumers, without and with
    transactions (read_uncommitted and read_committed): each partition is compared with that of the same name,
    from the start to the end of both. Kafka's own topics are left out, and so is what only the cluster has.
    The exit code is 3 if they differ; the ranges of offsets are then reported. It is 1 if nothing differs,
    but not everything could be compared, as where bytes are damaged.

    With --indexes, the rules are those of kafka-dump-log: an entry's offset has to be the last one of its
    batch. Brokers before 4.1 wrote entries that point inside an append; these are differences too, but do no
    harm. The exit code is 1 if there are any.

    With --certificate, SRC is the output of a job that was run with --certify, and every file there has
    to have the SHA-256 that the job wrote down. The exit code is 1 if a file is missing, changed, or new in
    the directory of a partition, or if a partition or a checkpoint is new, as it is when a broker has been
    started on them.

    \b
    magicbyte verify /backup/kafka-logs
    magicbyte verify /backup/kafka-logs/orders-0 /backup/kafka-logs/orders-1
    magicbyte verify --json /backup/kafka-logs | jq '.problems[] | .message'
    magicbyte verify --table records/ /backup/kafka-logs
    magicbyte verify --table kafka.records --catalog prod /backup/kafka-logs
    magicbyte verify --indexes orders-0/
    magicbyte verify --certificate repaired/certificate.json --html proof.html repaired/
    magicbyte verify --against broker:9092 --command-config client.properties /backup/kafka-logs
    magicbyte verify kafka://broker:9092/orders
    magicbyte verify --engine spark --master spark://host:7077 /backup/kafka-logs

    --json lists the first 1000 problems and counts all; the table problems of ingest holds each.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import accounts, reports
    from magicbyte.cli.certificate_page import certificate_page
    from magicbyte.cli.html_page import check_page, write_page
    from magicbyte.jobs.run.progress import terminal_progress

    if page is not None:
        if given.certificate is None:
            raise click.UsageError("--html needs --certificate")
        check_page(page, "verify", sources)
    if given.table is None:
        check_catalog(given, needed=False)
    with engine.open("magicbyte verify") as runner:
        report = magicbyte.verify(
            sources, choice=choice, engine=runner, progress=terminal_progress(), **vars(given)
        )
    if page is not None and report["certificate"] is not None:
        write_page(page, "verify", certificate_page(report["certificate"]))
    if view.as_json:
        reports.print_json(report)
    else:
        accounts.print_verified(report, sources, view)
    return accounts.verify_code(report)
