"""The plan and the report of partitions that another cluster gets, and the steps that a person follows."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypedDict

from magicbyte.jobs.disks.topics import Unassigned
from magicbyte.jobs.find.partitions import SkippedDirectory
from magicbyte.jobs.merging.report import MergedPartition
from magicbyte.jobs.restoring.moved_share_positions import RESET_SINCE
from magicbyte.jobs.restoring.target import Target, TargetTopic
from magicbyte.jobs.rewrite import Written
from magicbyte.jobs.run.accounting import Problems

__all__ = [
    "POSITIONS",
    "PUT_SCRIPT",
    "SHARE_POSITIONS",
    "OpenProducer",
    "TargetPartition",
    "TargetPlan",
    "TargetReport",
    "target_steps",
]

PUT_SCRIPT = "put.sh"
"""The script that puts the partitions of a broker into its log directories."""
POSITIONS = "positions.csv"
"""The file with the positions of groups, for `kafka-consumer-groups.sh --reset-offsets --from-file`."""
SHARE_POSITIONS = "share-positions-{}.csv"
"""The positions of each share group: kafka-share-groups.sh sets those of one at a time."""


class TargetPartition(TypedDict):
    """A partition of a topic that the target can take."""

    topic: str
    partition: int
    topic_id: str
    """The id that the target has for the topic."""
    status: Literal["restored", "out_of_sync", "missing"]
    """`out_of_sync`: only copies that were not in sync are here, so that records may be lost. `missing`: no
    readable copy is here; the target's partition stays empty."""
    replicas: list[int]
    """The target's brokers that have it."""
    places: list[str]
    """The directories below the output, one for each replica."""


class OpenProducer(TypedDict):
    """A transaction that was open when the cluster died. No coordinator of the target knows it."""

    topic: str
    partition: int
    producer_id: int
    first_offset: int


class TargetPlan(Problems):
    """The plan of a restore into another cluster; nothing is written yet."""

    cluster_id: str | None
    """The id of the dead cluster."""
    target_cluster_id: str
    topics: list[TargetTopic]
    partitions: list[TargetPartition]
    metadata_problems: list[str]
    merged: list[MergedPartition]
    """The logs of the partitions that have a copy here: what they are made from, and what no copy has."""
    skipped: list[SkippedDirectory]
    unassigned: list[Unassigned]
    groups: list[str]
    """The groups that get positions."""
    share_groups: list[str]
    """The share groups that get positions: their start offsets."""
    steps: list[str]
    """The steps that a person takes next, in order."""


class TargetReport(TargetPlan):
    """The content of `reconciliation.json`."""

    magicbyte: str
    sources: list[str]
    options: dict[str, Any]
    balanced: bool
    """True if every byte of the copies is accounted for, and everything that was planned was written."""
    written: list[Written]
    open_transactions: list[OpenProducer]


def target_steps(
    out: str,
    target: Target,
    plan: TargetPlan,
    transactions: Iterable[OpenProducer],
) -> list[str]:
    """The steps, in order; without the commands for topics that the target lacks, if others are restored."""
    commands = {
        result: [one["command"] for one in plan["topics"] if one["command"] and one["result"] == result]
        for result in ("missing", "accepted")
    }
    missing = commands["missing"]
    placed = [one for one in plan["partitions"] if one["places"]]
    if not placed:
        return [*missing, "give the command again"] if missing else []
    tools = target.tool_options
    against = tools.removeprefix("--bootstrap-server ")
    steps = [
        *commands["accepted"],
        *_steps_of_brokers(out, placed),
        f"magicbyte verify {shlex.quote(out)} --against {against}",
        *(
            f"kafka-transactions.sh {tools} abort --topic {shlex.quote(one['topic'])}"
            f" --partition {one['partition']} --start-offset {one['first_offset']}"
            for one in transactions
        ),
    ]
    if plan["groups"]:
        groups = " ".join(f"--group {shlex.quote(group)}" for group in plan["groups"])
        file = shlex.quote(f"{out}/{POSITIONS}")
        steps.append(
            f"kafka-consumer-groups.sh {tools} {groups} --reset-offsets --from-file {file} --execute"
        )
    for number, group in enumerate(plan["share_groups"], 1):
        file = shlex.quote(f"{out}/{SHARE_POSITIONS.format(number)}")
        steps.append(
            f"kafka-share-groups.sh {tools} --group {shlex.quote(group)} --reset-offsets --from-file {file}"
            f" --execute # with the tool of {RESET_SINCE} or newer"
        )
    return [*steps, "start the producers and consumers"]


def _steps_of_brokers(out: str, placed: Sequence[TargetPartition]) -> Iterator[str]:
    brokers = sorted({broker for one in placed for broker in one["replicas"]})
    several = len(brokers) > 1
    named = f"broker{'s' * several} {', '.join(map(str, brokers))}"
    stop = (
        f"stop {named} with kafka-server-stop.sh, and wait until {'all have' if several else 'it has'} ended"
    )
    if any(len(one["replicas"]) > 1 for one in placed):
        stop += "; all are down at once: a replica follows its leader, which would still be empty"
    yield stop
    for broker in brokers:
        yield (
            f"copy {shlex.quote(f'{out}/broker{broker}')} to broker {broker}; there, as its user, with all of"
            f" its log.dirs: sh broker{broker}/{PUT_SCRIPT} --check LOG_DIR... and then without --check"
        )
    yield (
        f"start {named}; {'their logs' if several else 'its log'} must have neither `treat it as a stray log`"
        " nor `below high watermark`"
    )
