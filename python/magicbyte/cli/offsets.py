"""`magicbyte offsets`"""

from __future__ import annotations

from collections import Counter
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
    from magicbyte.jobs.offsets import CommittedOffset, OffsetsReport
    from magicbyte.jobs.share_offsets import DeliveryBatch, ShareOffset

__all__ = ["deliveries", "offsets"]


@click.command(short_help="Show the positions of groups, and how far behind they are.")
@partition_choice.local_sources_or_clusters
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
    """Show the committed offsets of each group, from __consumer_offsets-N at and below SRC, and the positions
    of share groups, from __share_group_state-N; or those of a running cluster: kafka://HOST:PORT.

    A running cluster is asked as kafka-consumer-groups, kafka-share-groups and kafka-streams-groups ask it,
    for groups of every kind that the user may see. It does not tell when offsets were committed, what is
    lost, and what a share group has delivered after its start offset: these are -.

    In log directories they are read as a broker reads them when it starts: offsets in a transaction count
    only if the transaction was committed, and offsets that the broker deleted or let expire are missing.
    --topic and the like choose among the partitions that the groups have positions in.

    The lag is the distance to the end of the log in SRC, and the committed lag is the distance to the last
    stable offset, where consumers with read_committed end. Both are - if the partition is not in SRC, and
    negative if its copy ends before the commit.

    An offset is out of range if it is before the start or after the end of the log in SRC: the group would
    start again according to its consumers' auto.offset.reset. "lost ahead" counts offsets that the group has
    not read and that are in no file. Either makes the exit code 1. If a partition has several copies, the
    newest is read, by leader epoch and offset.

    A share group continues at its start offset, and may have delivered records after it: they are counted by
    state (acknowledged, archived, or available for another delivery), and those that are done are no lag.
    Positions that were not read are -. "state in" is the partition of __share_group_state that has the
    position: if it is damaged, the position may be old; if it is absent, the position is unknown.

    The groups follow. Their state is Empty or Stable, by the members in the log: a broker keeps the state of
    a rebalance in memory, and only a running cluster tells it. --json also has the metadata of commits, and
    the members.

    --csv prints what gives the groups their positions in another cluster with the same offsets, whether or
    not the logs are in SRC. Share groups are not in it: kafka-share-groups reads no such file.

    \b
    magicbyte offsets /backup/kafka-logs
    magicbyte offsets --group 'billing-*' /backup/kafka-logs
    magicbyte offsets --csv --group 'billing-*' /backup/kafka-logs > positions.csv
    magicbyte offsets --topic orders --prefer /disk2 /disk1 /disk2
    magicbyte offsets --json /backup/kafka-logs | jq '.offsets[] | select(.lag > 10000)'
    magicbyte offsets kafka://broker:9092
    magicbyte offsets --command-config client.properties --group 'billing-*' kafkas://broker:9093
    magicbyte offsets /backup/kafka-logs/__consumer_offsets-7 /backup/kafka-logs/orders-0
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports
    from magicbyte.jobs.offsets import csv_lines
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
        rows = ((one["group"], one["topic"], one["partition"], one["offset"]) for one in report["offsets"])
        for line in csv_lines(rows):
            print_data(line)
    else:
        _print_tables(report)
    for problem in report["problems"]:
        print_problem(f"magicbyte: {problem}")
    positions = (*report["offsets"], *report["share_offsets"])
    marked = any(position["out_of_range"] or position["lost_ahead"] for position in positions)
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


_SHARE_COLUMNS = (
    "topic",
    "partition",
    "start offset",
    "log start",
    "log end",
    "lag",
    "after start offset",
    "lost ahead",
    "out of range",
    "leader epoch",
    "state epoch",
    "state in",
)


def _print_tables(report: OffsetsReport) -> None:
    from magicbyte.cli import tables

    tables.print_table(["group", *_COLUMNS], [_row(offset) for offset in report["offsets"]])
    print_line()
    if report["share_offsets"]:
        rows = [_share_row(offset) for offset in report["share_offsets"]]
        tables.print_table(["share group", *_SHARE_COLUMNS], rows)
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


def _share_row(one: ShareOffset) -> list[object]:
    at, log = one["state_partition"], one["state_log"]
    return [
        one["group"],
        one["topic"],
        one["partition"],
        one["start_offset"],
        one["log_start_offset"],
        one["log_end_offset"],
        one["lag"],
        deliveries(one["state_batches"]),
        one["lost_ahead"],
        "yes" if one["out_of_range"] else None,
        one["leader_epoch"],
        one["state_epoch"],
        None if at is None and log is None else f"{'?' if at is None else at}{_noted(log)}",
    ]


def _noted(log: str | None) -> str:
    return "" if log in (None, "whole") else f" ({log})"


def deliveries(batches: Iterable[DeliveryBatch] | None) -> str | None:
    """The number of offsets in each delivery state, such as `6 acknowledged, 1 available`."""
    counts: Counter[str] = Counter()
    for one in batches or ():
        counts[one["delivery_state"].lower()] += one["last_offset"] + 1 - one["first_offset"]
    return ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items())) or None
