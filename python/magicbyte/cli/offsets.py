"""`magicbyte offsets`"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.cli.terminal import print_data, print_line, print_problem
from magicbyte.cli.times import time_text
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.read import OffsetsOptions

if TYPE_CHECKING:
    from magicbyte.jobs.offsets import CommittedOffset

__all__ = ["offsets"]


@click.command(short_help="Show what consumer groups have committed, and how far behind they are.")
@partition_choice.local_sources
@partition_choice.choice(prefer=True)
@flags(OffsetsOptions, "given")
@flags(EngineChoice, "engine")
@click.option(
    "--csv",
    "as_csv",
    is_flag=True,
    help="Print lines for kafka-consumer-groups --reset-offsets --from-file: group,topic,partition,offset.",
)
@options.as_json
def offsets(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    given: OffsetsOptions,
    engine: EngineChoice,
    as_csv: bool,
    as_json: bool,
) -> int:
    """Show the committed offsets of each consumer group, from __consumer_offsets-N at and below SRC.

    They are read as a broker reads them when it starts: offsets in a transaction count only if the
    transaction was committed, and offsets that the broker deleted or let expire are missing. --topic and the
    like choose among the partitions that the groups have offsets in.

    The lag is the distance to the end of the log in SRC, and the committed lag is the distance to the last
    stable offset, where consumers with read_committed end. Both are - if the partition is not in SRC, and
    negative if its copy ends before the commit.

    An offset is out of range if it is before the start or after the end of the log in SRC: the group would
    start again according to its consumers' auto.offset.reset. "lost ahead" counts offsets that the group has
    not read and that are in no file. Either makes the exit code 1. If a partition has several copies, the
    newest is read, by leader epoch and offset.

    The groups follow. Their state is Empty or Stable, by the members in the log: a broker keeps the state of
    a rebalance in memory. --json also has the metadata of commits, and the members.

    --csv prints what gives the groups their positions in another cluster with the same offsets, whether or
    not the logs are in SRC. Share groups are not in it: Kafka keeps their positions elsewhere, and `cluster`
    shows them.

    \b
    magicbyte offsets /backup/kafka-logs
    magicbyte offsets --group 'billing-*' /backup/kafka-logs
    magicbyte offsets --csv --group 'billing-*' /backup/kafka-logs > positions.csv
    magicbyte offsets --topic orders --prefer /disk2 /disk1 /disk2
    magicbyte offsets --json /backup/kafka-logs | jq '.offsets[] | select(.lag > 10000)'
    magicbyte offsets /backup/kafka-logs/__consumer_offsets-7 /backup/kafka-logs/orders-0
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports, tables
    from magicbyte.jobs.run.progress import terminal_progress

    if as_csv and as_json:
        raise click.UsageError("--csv and --json are different forms: give one of them")
    with engine.open("magicbyte offsets") as runner:
        report = magicbyte.offsets(
            sources, choice=choice, engine=runner, progress=terminal_progress(), **vars(given)
        )
    if as_json:
        reports.print_json(report)
    elif as_csv:
        _print_csv(report["offsets"])
    else:
        tables.print_table(["group", *_COLUMNS], [_row(offset) for offset in report["offsets"]])
        print_line()
        tables.print_table(
            ["group", "type", "state", "epoch", "protocol", "members"],
            [
                [
                    group["group"],
                    group["type"],
                    group["state"],
                    group["epoch"],
                    group["protocol"],
                    len(group["members"]),
                ]
                for group in report["groups"]
            ],
        )
        if report["pending"]:
            print_line(f"{report['pending']:,} offsets of transactions that had not ended are left out")
    for problem in report["problems"]:
        print_problem(f"magicbyte: {problem}")
    marked = any(offset["out_of_range"] or offset["lost_ahead"] for offset in report["offsets"])
    return exit_code(report["problems"] or marked)


_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "log start",
    "log end",
    "last stable",
    "lag",
    "committed lag",
    "lost ahead",
    "out of range",
    "leader epoch",
    "committed at",
    "expires",
    "metadata",
)


def _print_csv(offsets: Iterable[CommittedOffset]) -> None:
    """Prints the lines that `ConsumerGroupCommand` parses: without a header, quoted where it is necessary."""
    for one in offsets:
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(
            [one["group"], one["topic"], one["partition"], one["offset"]]
        )
        print_data(line.getvalue())


def _row(one: CommittedOffset) -> list[object]:
    return [
        one["group"],
        one["topic"],
        one["partition"],
        one["offset"],
        one["log_start_offset"],
        one["log_end_offset"],
        one["last_stable_offset"],
        one["lag"],
        one["committed_lag"],
        one["lost_ahead"],
        "yes" if one["out_of_range"] else None,
        one["leader_epoch"],
        time_text(one["commit_timestamp"]),
        time_text(one["expire_timestamp"]),
        one["metadata"] or None,
    ]
