"""`magicbyte diff`"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.diff import DiffOptions

if TYPE_CHECKING:
    from magicbyte.jobs.comparing.differences import Difference
    from magicbyte.jobs.diff import DiffReport

__all__ = ["diff"]

_DIFFERENCES: Mapping[Difference, str] = {
    "only_in_a": "only in A",
    "only_in_b": "only in B",
    "differs": "not the same",
}


@click.command(short_help="Compare two logs, record by record.")
@partition_choice.two_sources
@partition_choice.choice(prefer=True)
@flags(DiffOptions, "given")
@flags(EngineChoice, "engine")
@options.as_json
def diff(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    given: DiffOptions,
    engine: EngineChoice,
    as_json: bool,
) -> int:
    """Compare the records of A and B: directories, partitions, segment files, archives, buckets, running
    clusters, or tables that ingest has written.

    Prints the partitions that only one of them has, and in the others the ranges of offsets in which records
    differ. Records are equal if offset, timestamp, key, value and headers are; codec, magic and batches make
    no difference. Both are read once, and ranges that differ a second time. With --cache, the next run reads
    only what is new in files.

    A running cluster is kafka://HOST:PORT, or a topic or partition of it: each partition is fetched from its
    start to its present end. A table is the directory or URL of Parquet or Delta tables, or with --catalog
    the identifier of an Iceberg table. It has no control records, and only the records of its own isolation
    level: the other side is read likewise. Tables with typed keys or values, or made with an expression or a
    range of times, are for `magicbyte verify --table`.

    A backup and a table end at their cut: records that the other side has from there on are counted, and make
    no difference. So are records before the start of the other side, if a broker says that its log starts
    there, since retention has removed what was before. If only the first segment begins there, the exit code
    is 1.

    A partition counts as equal only if everything was compared: not if bytes of it are damaged, if records
    changed meanwhile, if one side ends before the other begins, or if a table lacks timestamps.

    \b
    magicbyte diff /var/lib/kafka/data s3://backup/kafka-logs
    magicbyte diff --cache digests.json broker1/ broker2/
    magicbyte diff old-logs/orders-0 converted/orders-0
    magicbyte diff kafka://broker:9092 /backup/kafka
    magicbyte diff --command-config client.properties kafkas://old:9093/orders kafkas://new:9093/orders
    magicbyte diff records/ /var/lib/kafka/data
    magicbyte diff --catalog prod kafka.records kafka://broker:9092

    Exit codes: 0 equal; 1 they differ, something is damaged, or not everything could be compared.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.reports import print_json
    from magicbyte.jobs.run.progress import terminal_progress

    with engine.open(f"magicbyte diff {sources[0]}") as runner:
        report = magicbyte.diff(
            sources, choice=choice, engine=runner, progress=terminal_progress(), **vars(given)
        )
    if as_json:
        print_json(report)
    else:
        _print(report)
    return exit_code(not report["equal"] or report["problems"])


def _print(report: DiffReport) -> None:
    from magicbyte.cli.differences import print_damaged, print_outside, print_partition
    from magicbyte.cli.reports import print_problems
    from magicbyte.cli.terminal import print_line
    from magicbyte.jobs.run.plan import count_of
    from magicbyte.jobs.run.progress import format_bytes

    for partition in report["partitions"]:
        print_partition(partition, _DIFFERENCES)
        print_outside(partition)
    print_damaged(report["damaged"], report["damaged_left_out"])
    print_problems(report["problems"], report["problems_left_out"])
    equal = sum(partition["result"] == "equal" for partition in report["partitions"])
    sides = (report["a"], report["b"])
    read, size = sum(side["read_bytes"] for side in sides), sum(side["size"] for side in sides)
    cut = sum(partition["end_offset"] is not None for partition in report["partitions"])
    cuts = f", {cut:,} compared up to the cut of a backup or table" if cut else ""
    print_line(
        f"{equal:,} of {count_of(len(report['partitions']), 'partition')} equal{cuts};"
        f" {format_bytes(read)} of {format_bytes(size)} read"
    )
    if len(report["not_compared"]) > 1:
        print_line(f"not compared: {'; '.join(report['not_compared'])}")
