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
    """Compare the records of A and B: directories, partitions, segment files, archives or buckets.

    Prints the partitions that only one of them has, and in the others the ranges of offsets in which records
    differ. Records are equal if offset, timestamp, key, value and headers are; codec, magic and batches make
    no difference. Both are read once, and ranges that differ a second time. With --cache, the next run reads
    only what is new.

    \b
    magicbyte diff /var/lib/kafka/data s3://backup/kafka-logs
    magicbyte diff --cache digests.json broker1/ broker2/
    magicbyte diff old-logs/orders-0 converted/orders-0

    Exit codes: 0 equal; 1 they differ, or something is damaged.
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
    from magicbyte.cli.differences import print_partition
    from magicbyte.cli.reports import print_problems
    from magicbyte.cli.terminal import print_line
    from magicbyte.jobs.run.plan import count_of
    from magicbyte.jobs.run.progress import format_bytes

    for partition in report["partitions"]:
        print_partition(partition, _DIFFERENCES)
    print_problems(report["problems"], report["problems_left_out"])
    equal = sum(partition["result"] == "equal" for partition in report["partitions"])
    sides = (report["a"], report["b"])
    read, size = sum(side["read_bytes"] for side in sides), sum(side["size"] for side in sides)
    print_line(
        f"{equal:,} of {count_of(len(report['partitions']), 'partition')} equal;"
        f" {format_bytes(read)} of {format_bytes(size)} read"
    )
