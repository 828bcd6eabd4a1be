"""`magicbyte restore`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.options.restore import RestoreOptions

if TYPE_CHECKING:
    from magicbyte.jobs.restoring.report import RestorePlan

__all__ = ["restore"]

_SHOWN = 20


@click.command(short_help="Make directories on which the brokers of a dead cluster start again.")
@partition_choice.local_sources
@partition_choice.local_out_option
@flags(RestoreOptions, "given")
@flags(EngineChoice, "engine")
@options.as_json
def restore(
    sources: tuple[str, ...], out: str | None, given: RestoreOptions, engine: EngineChoice, as_json: bool
) -> int:
    """Restore the cluster whose log directories are at and below SRC: OUT/node1/logs1 and so on become the
    log.dirs of its nodes. SRC is only read.

    The cluster keeps its id, topic ids, offsets, groups, settings, ACLs and users: they are in a snapshot of
    its metadata, which names the voters from now on. So fewer nodes, and a quorum that is lost, are the same
    command. The copies of each partition are merged first, and every replica gets the same log. A partition
    of which no copy is here, or none that was in sync, stays offline rather than lose records silently.

    The plan is printed first, with the steps to follow; --dry-run ends there.

    \b
    magicbyte restore kafka-1/ kafka-2/ kafka-3/ --dry-run                         what would come back?
    magicbyte restore kafka-1/ kafka-2/ kafka-3/ --out restored/                   all nodes
    magicbyte restore kafka-1/ --voters 1@kafka-1:9093 --out restored/             the survivor of a quorum
    magicbyte restore kafka-?/ --nodes 1 --voters 1@localhost:9093 --out restored/ everything on one node

    Exit codes: 0 all comes back, 1 something is lost, stays offline, or is no part of the cluster.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.reports import print_json
    from magicbyte.jobs.merging.report import has_losses
    from magicbyte.jobs.run.progress import terminal_progress

    with engine.open(f"magicbyte restore {sources[0]}") as runner:
        report = magicbyte.restore(
            sources,
            out=out,
            planned=None if as_json else _print,
            engine=runner,
            progress=terminal_progress(),
            **vars(given),
        )
    if as_json:
        print_json(report)
    else:
        _print_end(out, certified=given.certify)
    hurt = (
        report["problems"]
        or report["metadata_problems"]
        or report["unassigned"]
        or any(one["status"] != "online" for one in report["partitions"])
        or any(map(has_losses, report["merged"]))
    )
    return exit_code(hurt, balanced=report["balanced"])


def _print_end(out: str | None, *, certified: bool) -> None:
    from magicbyte.cli.accounts import print_signing
    from magicbyte.cli.overview import print_next
    from magicbyte.cli.terminal import print_line

    if out is None:
        print_line("nothing was written: give --out to restore")
    else:
        print_line(f"restored into {out}")
        if certified:
            print_signing(out)
        print_next("magicbyte", "cluster", out)


def _print(plan: RestorePlan) -> None:
    from magicbyte.cli.merge import print_merged
    from magicbyte.cli.reports import print_problems
    from magicbyte.cli.tables import print_table
    from magicbyte.cli.terminal import print_line

    rows = [
        [node["node_id"], one["place"], one["source"], one["directory_id"] or "-", one["partitions"]]
        for node in plan["nodes"]
        for one in node["log_dirs"]
    ]
    print_table(["node", "log directory", "from", "directory id", "partitions"], rows)
    print_line(f"cluster {plan['cluster_id']}: metadata up to offset {plan['metadata_end_offset']:,}")
    named = (f"{one['node_id']}@{one['address'] or 'HOST:PORT'}" for one in plan["voters"])
    print_line(f"voters: {', '.join(named)}")
    for problem in plan["metadata_problems"]:
        print_line(problem)
    _print_partitions(plan)
    for merge in plan["merged"]:
        if merge["lost_offsets"] or merge["left_out"] or merge["repaired_batches"]:
            print_merged(merge)
    for change in plan["switched_off"]:
        print_line(f"switched off: {change['setting']}: {change['reason']}")
    # What a copy has lost, another one may have.
    damage = [{**problem, "first_lost_offset": None} for problem in plan["problems"]]
    print_problems(damage, plan["problems_left_out"])
    for skipped in plan["skipped"]:
        print_line(f"left out: {skipped['path']}: {_STATES.get(skipped['state'], skipped['state'])}")
    for one in plan["unassigned"]:
        print_line(f"left out: {one['path']}: {one['reason']}")
    print_line("next:")
    for number, step in enumerate(plan["steps"], 1):
        print_line(f"{number:3}. {step}")


def _print_partitions(plan: RestorePlan) -> None:
    """Prints what becomes of the partitions; those that come back as they were are only counted."""
    from magicbyte.cli.terminal import print_line

    partitions = plan["partitions"]
    online = sum(one["status"] == "online" for one in partitions)
    print_line(f"{online:,} of {len(partitions):,} partitions can lead")
    offline = [one for one in partitions if one["status"] != "online"]
    for one in offline[:_SHOWN]:
        print_line(f"  {one['topic']}-{one['partition']} stays offline: {_REASONS[one['status']]}")
    if len(offline) > _SHOWN:
        print_line(f"  ... and {len(offline) - _SHOWN:,} more (--json has them)")
    for one in partitions:
        if one["cancelled"]:
            adding = ", ".join(map(str, one["cancelled"]))
            print_line(f"  {one['topic']}-{one['partition']}: the reassignment to {adding} is cancelled")


_STATES = {
    "future": "a copy that the broker was moving between its disks; the partition comes from the others",
    "stray": "the broker was not assigned this log",
    "deleted": "the broker was deleting this log",
}
_REASONS = {
    "missing": "no readable copy of it is here",
    "out_of_sync": "the copies here were not in sync, so that records may be lost",
}
