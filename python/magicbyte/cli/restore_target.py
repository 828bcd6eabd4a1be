"""The output of `magicbyte restore --target`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from magicbyte.cli.terminal import print_line

if TYPE_CHECKING:
    from magicbyte.jobs.restoring.target_report import TargetPlan, TargetReport

__all__ = ["is_target_hurt", "print_target_plan", "print_target_report"]

_REASONS = {
    "missing": "no readable copy of it is here: it stays empty, and groups get no positions in it",
    "out_of_sync": "the copies here were not in sync, so that records may be lost",
}


def print_target_plan(plan: TargetPlan) -> None:
    """Prints what the target gets, and what it does not get."""
    from magicbyte.cli.merge import print_changed
    from magicbyte.cli.reports import print_problems
    from magicbyte.cli.tables import print_table

    print_line(f"cluster {plan['cluster_id']} into cluster {plan['target_cluster_id']}")
    partitions = plan["partitions"]
    rows = [
        [
            one["topic"],
            sum(part["topic"] == one["topic"] and bool(part["places"]) for part in partitions) or None,
            one["result"],
            one["reason"],
        ]
        for one in plan["topics"]
    ]
    print_table(["topic", "partitions", "result", "reason"], rows)
    for part in partitions:
        if reason := _REASONS.get(part["status"]):
            print_line(f"  {part['topic']}-{part['partition']}: {reason}")
    for problem in plan["metadata_problems"]:
        print_line(problem)
    print_changed(plan["merged"])
    # What a copy has lost, another one may have.
    damage = [{**problem, "first_lost_offset": None} for problem in plan["problems"]]
    print_problems(damage, plan["problems_left_out"])
    commands = [one["command"] for one in plan["topics"] if one["result"] == "missing" and one["command"]]
    if commands and partitions:
        print_line("to restore the missing topics, too, create them first, and give the command again:")
        _print_numbered(commands)


def print_target_report(report: TargetReport, out: str | None, *, certified: bool) -> None:
    """Prints the end: the transactions that nobody ends, and the steps to follow."""
    from magicbyte.cli.accounts import print_signing

    for one in report["open_transactions"]:
        print_line(
            f"{one['topic']}-{one['partition']}: a transaction of producer {one['producer_id']} is open from"
            f" offset {one['first_offset']}, and no coordinator will end it"
        )
    if report["steps"]:
        print_line("next:")
        _print_numbered(report["steps"])
    print_line("nothing was written: give --out to restore" if out is None else f"restored into {out}")
    if out is not None and certified:
        print_signing(out)


def _print_numbered(lines: Iterable[str]) -> None:
    for number, line in enumerate(lines, 1):
        print_line(f"{number:3}. {line}")


def is_target_hurt(report: TargetReport) -> bool:
    """True if something is lost, or the target does not get it. Kafka's own topics do not count."""
    from magicbyte.internal_topics.names import INTERNAL_TOPICS
    from magicbyte.jobs.merging.report import has_losses

    return bool(
        report["problems"]
        or report["metadata_problems"]
        or report["unassigned"]
        or any(one["result"] != "accepted" for one in report["topics"] if one["topic"] not in INTERNAL_TOPICS)
        or any(one["status"] != "restored" for one in report["partitions"])
        or any(map(has_losses, report["merged"]))
    )
