"""`magicbyte restore`"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import CLEAN, exit_code
from magicbyte.cli.flags import flags
from magicbyte.cli.restore_target import is_target_hurt, print_target_plan, print_target_report
from magicbyte.options.restore import RestoreOptions

if TYPE_CHECKING:
    from magicbyte.jobs.restore_in_place import InPlaceReport
    from magicbyte.jobs.restoring.report import RestorePlan, RestoreReport
    from magicbyte.jobs.restoring.target_report import TargetReport

__all__ = ["restore"]

_SHOWN = 20


@click.command(short_help="Make directories on which the brokers of a dead cluster start again.")
@partition_choice.local_sources
@partition_choice.local_out_or_dry_run
@flags(RestoreOptions, "given")
@flags(EngineChoice, "engine")
@options.as_json
def restore(
    sources: tuple[str, ...],
    out: str | None,
    dry_run: bool,
    given: RestoreOptions,
    engine: EngineChoice,
    as_json: bool,
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
    magicbyte restore kafka-?/ --until 2026-03-01T00:00:00 --out restored/         the logs as they were then
    magicbyte restore kafka-?/ --target broker:9092 --out restored/                another, running cluster
    magicbyte restore kafka-1/ --voters 1@kafka-1:9093 --in-place                  the disks themselves

    With --target, OUT/broker1 and so on have the partitions for the brokers of another cluster, whose topics
    a person has created; the plan has the commands for those that are missing. OUT/broker1/put.sh puts
    them into the log directories of broker 1 while it is stopped, and checks first that they fit there.
    OUT/positions.csv has the positions of groups, OUT/share-positions-1.csv and so on those of share groups.
    Settings, ACLs and users remain those of that cluster.

    With --in-place, SRC itself is restored, without room for copies: the metadata becomes the snapshot,
    copies that are not whole are moved aside if another one is, and no log is written. What changes is moved
    to .NAME.magicbyte-restore beside each log directory, after a journal. A partition that needs a merge is
    refused. --undo takes it back, until a node has started.

    Exit codes: 0 all comes back, 1 something is lost, stays offline, or does not belong to the cluster, or
    a person has to set the position of a share group.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.reports import print_json
    from magicbyte.cli.terminal import print_line
    from magicbyte.jobs.merging.report import has_losses
    from magicbyte.jobs.run.progress import terminal_progress

    with engine.open(f"magicbyte restore {sources[0]}") as runner:
        report = magicbyte.restore(
            sources,
            out=None if dry_run else out,
            dry_run=dry_run,
            planned=None if as_json else print_target_plan if given.target else _print,
            engine=runner,
            progress=terminal_progress(),
            **vars(given),
        )
    if report is None:
        print_line("everything is as it was")
        return CLEAN
    if as_json:
        print_json(report)
    if given.target:
        into = cast("TargetReport", report)
        if not as_json:
            print_target_report(into, out, certified=given.certify)
        return exit_code(is_target_hurt(into), balanced=into["balanced"])
    report = cast("RestoreReport", report)
    if not as_json:
        if given.in_place:
            _print_in_place(cast("InPlaceReport", report), dry_run=dry_run)
        else:
            _print_end(out, certified=given.certify)
    hurt = (
        report["problems"]
        or report["metadata_problems"]
        or report["unassigned"]
        or any(one["status"] != "online" for one in report["partitions"])
        or any(map(has_losses, report["merged"]))
        or report["share_positions_to_reset"]
    )
    return exit_code(hurt, balanced=report["balanced"])


def _print_in_place(report: InPlaceReport, *, dry_run: bool) -> None:
    """Prints which files are not as they were."""
    from magicbyte.cli.terminal import print_line

    for one in report["changed"]:
        what = "moved aside" if one["size"] is None else "new" if one["aside"] is None else "replaced"
        print_line(f"{what}: {one['path']}: {one['reason']}")
    if dry_run:
        print_line("nothing was changed: leave out --dry-run to restore")
    else:
        print_line("restored in place; until a node has started, --undo takes it back")


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
    from magicbyte.cli.merge import print_changed
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
    voters = (f"{one['node_id']}@{one['address'] or 'HOST:PORT'}" for one in plan["voters"])
    print_line(f"voters: {', '.join(voters)}")
    for problem in plan["metadata_problems"]:
        print_line(problem)
    _print_partitions(plan)
    offline = {
        (one["topic"], one["partition"])
        for one in plan["partitions"]
        if one["status"] in ("missing", "unelectable")
    }
    print_changed(plan["merged"], offline)
    _print_cuts(plan)
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


def _print_cuts(plan: RestorePlan) -> None:
    """Prints which logs end earlier than they did, and which positions move."""
    from magicbyte.cli.terminal import print_line

    for one in plan["cut"]:
        reasons = [
            *(["a transaction was open there"] if one["before_open_transaction"] else []),
            *(["compaction may have removed what it had then"] if one["is_compacted"] else []),
        ]
        print_line(
            f"cut: {one['topic']}-{one['partition']} ends at offset {one['log_end_offset']:,}, without"
            f" {one['cut_offsets']:,} offsets{': ' * bool(reasons)}{'; '.join(reasons)}"
        )
    for moved in plan["moved_positions"]:
        print_line(
            f"moved: group {moved['group']} continues at offset {moved['offset']:,} of"
            f" {moved['topic']}-{moved['partition']}; its position was {moved['before']:,}"
        )
    for shared in plan["moved_share_positions"]:
        forgotten = shared["forgotten_offsets"]
        print_line(
            f"moved: share group {shared['group']} begins at offset {max(shared['offset'], 0):,} of"
            f" {shared['topic']}-{shared['partition']}; its start offset was {max(shared['before'], 0):,}"
            f"{f', and it forgets {forgotten:,} offsets after the end' if forgotten else ''}"
        )


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
    "unelectable": "an epoch of it is so high that no election could follow",
}
