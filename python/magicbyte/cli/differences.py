"""Printing the differences between two sides: two logs, or files and a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from magicbyte.cli.terminal import print_line
from magicbyte.jobs.find.problems import offsets_text
from magicbyte.jobs.run.plan import count_of

if TYPE_CHECKING:
    from magicbyte.jobs.comparing.against import ClusterComparison
    from magicbyte.jobs.comparing.cluster_side import DamagedOffsets
    from magicbyte.jobs.comparing.differences import Difference, PartitionDiff, Unproven
    from magicbyte.jobs.comparing.group_positions import GroupComparison

__all__ = ["print_compared", "print_damaged", "print_outside", "print_partition"]

_SHOWN = 20
_IN_FILES: Mapping[Difference, str] = {
    "only_in_a": "only in the files",
    "only_in_b": "only in the cluster",
    "differs": "not the same",
}
_UNPROVEN: Mapping[Unproven, str] = {
    "unread": "nobody knows which records damaged bytes had",
    "changed": "records changed while they were compared: compare them again",
    "nothing_in_common": "nothing was compared: one side ends before the other begins",
    "no_timestamps": "{} cannot be compared: the table does not have their timestamps",
}


def print_partition(partition: PartitionDiff, names: Mapping[Difference, str]) -> None:
    """Prints how a partition differs and why it may do so unnoticed, and nothing for one that is equal."""
    name = f"{partition['topic']}-{partition['partition']}"
    result = partition["result"]
    for reason in partition["unproven"]:
        records = count_of(partition["unproven_records"], "record")
        print_line(f"{name}: {_UNPROVEN[reason].format(records)}")
    if result in ("only_in_a", "only_in_b"):
        print_line(f"{name}: {names[result]}")
    if result != "differs":
        return
    print_line(f"{name}: {count_of(partition['differing_records'], 'record')} differ")
    for one in partition["ranges"][:_SHOWN]:
        print_line(
            f"  {offsets_text(one['first_offset'], one['last_offset'], ',')}:"
            f" {count_of(one['records'], 'record')} {names[one['difference']]}"
        )
    more = len(partition["ranges"]) - _SHOWN + partition["ranges_left_out"]
    if more > 0:
        print_line(f"  ... and {count_of(more, 'more range')}")


def print_compared(comparison: ClusterComparison) -> None:
    """Prints how files compare with a running cluster, at each isolation level."""
    for level in comparison["levels"]:
        partitions = level["partitions"]
        equal = sum(partition["result"] == "equal" for partition in partitions)
        print_line(
            f"{comparison['bootstrap_servers']}, {level['isolation_level']}:"
            f" {equal:,} of {count_of(len(partitions), 'partition')} equal"
        )
        for partition in partitions:
            print_partition(partition, _IN_FILES)
    print_damaged(comparison["damaged"], comparison["damaged_left_out"])
    if comparison["groups"] is not None:
        _print_groups(comparison["groups"])
    if comparison["not_compared"]:
        print_line(f"not compared: {', '.join(comparison['not_compared'])}")


def print_outside(partition: PartitionDiff) -> None:
    """Prints which records were left out, by the start of a side's log or by its cut."""
    name, removed = f"{partition['topic']}-{partition['partition']}", partition["removed"]
    if removed is not None:
        side, first = removed["side"].upper(), removed["last_offset"] + 1
        why = "has removed them there" if removed["stated"] else "may have removed them there"
        print_line(
            f"{name}: {side} starts at offset {first:,}: {count_of(removed['records'], 'record')} before it"
            f" not compared, since retention or a user {why}"
        )
    if partition["records_after_end"]:
        print_line(
            f"{name}: compared up to offset {partition['end_offset']:,}, the cut of a backup or table:"
            f" {count_of(partition['records_after_end'], 'more record')} after it"
        )


def print_damaged(damaged: Sequence[DamagedOffsets], left_out: int) -> None:
    """Prints the batches of a running cluster that do not decode."""
    for damage in damaged[:_SHOWN]:
        name = f"{damage['topic']}-{damage['partition']}"
        offsets = offsets_text(damage["first_offset"], damage["last_offset"], ",")
        print_line(f"{name}: what the cluster has of {offsets} does not decode: {damage['message']}")
    more = len(damaged) - _SHOWN + left_out
    if more > 0:
        print_line(f"... and {count_of(more, 'more batch', 'more batches')}")


def _print_groups(groups: GroupComparison) -> None:
    """Prints how many positions of groups the cluster has, and each that it has elsewhere."""
    print_line(
        f"positions of groups: {groups['equal']:,} equal, {groups['ahead']:,} ahead,"
        f" {groups['behind']:,} behind, {groups['missing']:,} missing in the cluster"
    )
    for one in groups["positions"][:_SHOWN]:
        there = "" if one["cluster_offset"] is None else f", the cluster at {one['cluster_offset']:,}"
        name = f"group {one['group']}, {one['topic']}-{one['partition']}"
        print_line(f"  {name}: {one['result']}, the files at {one['offset']:,}{there}")
    more = len(groups["positions"]) - _SHOWN + groups["positions_left_out"]
    if more > 0:
        print_line(f"  ... and {count_of(more, 'more position')}")
