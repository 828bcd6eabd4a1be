"""`magicbyte merge`"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.find.problems import offsets_text
from magicbyte.options.merge import MergeOptions

if TYPE_CHECKING:
    from magicbyte.jobs.merging.report import MergedPartition, MergeReport

__all__ = ["merge", "print_changed"]

_SHOWN = 20


@click.command(short_help="Merge damaged replicas of partitions into one log.")
@partition_choice.local_sources
@partition_choice.out_option
@partition_choice.choice(prefer=True)
@flags(MergeOptions, "given")
@flags(EngineChoice, "engine")
@options.as_json
def merge(
    sources: tuple[str, ...],
    out: str | None,
    choice: PartitionChoice,
    given: MergeOptions,
    engine: EngineChoice,
    as_json: bool,
) -> int:
    """Merge the replicas at and below SRC into one log per partition, for a broker to open, in OUT.

    The copy whose last batch has the highest leader epoch and offset leads, or the one that --prefer names.
    Ranges that it has lost are copied from replicas of the same lineage, byte for byte; a flipped bit is
    repaired only where no replica has the batch. What a replica has that the leading log never had is left
    out and named, as a follower truncates it. The cleaned part of a compacted topic is taken from one
    replica.

    OUT gets every file that a broker keeps for a partition, and reconciliation.json: the origin of all
    bytes, the offsets that no replica has, and what was left out and why. SRC is only read. Without --out,
    nothing is written. If the job is killed, start it again.

    \b
    magicbyte merge broker1/ broker2/ broker3/ --dry-run        what would be lost?
    magicbyte merge broker1/ broker2/ broker3/ --out merged/
    magicbyte merge --prefer broker2/ broker1/ broker2/ --topic orders --out merged/
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.reports import print_json
    from magicbyte.jobs.merging.report import has_losses
    from magicbyte.jobs.run.progress import terminal_progress

    with engine.open(f"magicbyte merge {sources[0]}") as runner:
        report = magicbyte.merge(
            sources, out=out, choice=choice, engine=runner, progress=terminal_progress(), **vars(given)
        )
    if as_json:
        print_json(report)
    else:
        _print(report, out, certified=given.certify)
    partitions = report["partitions"]
    lost = any(map(has_losses, partitions))
    damaged = any(copy["damaged_bytes"] for partition in partitions for copy in partition["copies"])
    return exit_code(report["problems"] or lost or damaged, balanced=report["balanced"])


def _print(report: MergeReport, out: str | None, *, certified: bool) -> None:
    from magicbyte.cli.accounts import print_signing
    from magicbyte.cli.inputs import print_skipped
    from magicbyte.cli.overview import print_next
    from magicbyte.cli.reports import print_problems
    from magicbyte.cli.tables import print_table
    from magicbyte.cli.terminal import print_line

    rows = [_row(partition) for partition in report["partitions"]]
    names = [
        "partition",
        "copies",
        "bytes",
        "from others",
        "damaged",
        "repaired batches",
        "left out",
        "lost offsets",
    ]
    print_table(names, [*rows, ["total", *map(sum, list(zip(*rows, strict=True))[1:])]])
    for partition in report["partitions"]:
        _print_merged(partition)
    # What a copy has lost, another one may have.
    damage = [{**problem, "first_lost_offset": None} for problem in report["problems"]]
    print_problems(damage, report["problems_left_out"])
    print_skipped(report["skipped"])
    if out is None:
        print_line("nothing was written: give --out to merge")
    else:
        if certified:
            print_signing(out)
        print_next("magicbyte", "verify", out)


def _row(partition: MergedPartition) -> list[str | int]:
    copies = partition["copies"]
    used = sum(copy["used_bytes"] for copy in copies)
    others = sum(copy["used_bytes"] for copy in copies if copy["path"] != partition["leader"])
    return [
        f"{partition['topic']}-{partition['partition']}",
        len(copies),
        used,
        others,
        sum(copy["damaged_bytes"] for copy in copies),
        partition["repaired_batches"],
        sum(copy["left_out_bytes"] for copy in copies),
        partition["lost_offsets"],
    ]


def print_changed(merged: Iterable[MergedPartition], offline: Collection[tuple[str, int]] = ()) -> None:
    """Prints the merged logs that are not as one of their copies is; those of `offline` are not written."""
    for partition in merged:
        lost, left_out = partition["lost_offsets"], partition["left_out"]
        has_start = partition["log_start_offset"] is not None
        if lost or left_out or has_start or partition["repaired_batches"] or partition["not_believed"]:
            is_written = (partition["topic"], partition["partition"]) not in offline
            _print_merged(partition, is_written=is_written)


def _print_merged(partition: MergedPartition, *, is_written: bool = True) -> None:
    """Prints which copy leads, if there is a choice, and everything that is not in the merged log."""
    from magicbyte.cli.terminal import print_line

    name = f"{partition['topic']}-{partition['partition']}"
    details = list(_details(partition, is_written=is_written))
    if len(partition["copies"]) > 1 and is_written:
        print_line(f"{name}: {partition['leader']} leads, up to offset {partition['next_offset'] - 1:,}")
    elif details:
        copies = [copy["path"] for copy in partition["copies"]]
        only = f"its only copy here is {copies[0]}"
        print_line(f"{name}: {only if len(copies) == 1 else 'nothing is readable of ' + ', '.join(copies)}")
    for detail in details:
        print_line(f"  {detail}")


def _details(partition: MergedPartition, *, is_written: bool) -> Iterator[str]:
    """The records and bytes that are not in the merged log, with the reasons."""
    if partition["cleaned_copy"] is not None:
        yield (
            f"compacted: offsets before {partition['cleaned_until']:,} are those of"
            f" {partition['cleaned_copy']}"
        )
    if partition["log_start_offset"] is not None:
        yield (
            f"records before offset {partition['log_start_offset']:,} are left out: a copy's"
            " log-start-offset-checkpoint says that they were deleted"
        )
    for copy in partition["copies"]:
        if copy["damaged_bytes"]:
            yield f"{copy['path']}: {copy['damaged_bytes']:,} bytes are in no good batch of this log"
    for first, last in partition["lost"][:_SHOWN]:
        yield f"lost: no copy has {offsets_text(first, last, ',')}"
    yield from _more(len(partition["lost"]) + partition["lost_left_out"])
    if partition["known_from"] is not None:
        end = "the next offset is" if is_written else "it had reached offset"
        yield f"{end} {partition['log_end_offset']:,}: {partition['known_from']}"
    for one in partition["not_believed"]:
        yield f"not believed, since no lost segment reaches so far: {one}"
    for left_out in partition["left_out"][:_SHOWN]:
        yield (
            f"left out: {offsets_text(left_out['first_offset'], left_out['last_offset'], ',')} of"
            f" {left_out['path']} (leader epoch {left_out['leader_epoch']}): {_REASONS[left_out['reason']]}"
        )
    yield from _more(len(partition["left_out"]) + partition["left_out_left_out"])


def _more(count: int) -> Iterator[str]:
    if count > _SHOWN:
        yield f"... and {count - _SHOWN:,} more (--json has them)"


_REASONS = {
    "diverged": "the log that leads went on without them, so a follower would truncate them",
    "past_the_end": "the preferred copy ends before them",
    "cleaned": "compaction has cleaned each copy in another way",
    "differs": "the merged log has another batch there",
}
