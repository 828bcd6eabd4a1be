"""Printing the differences between two sides: two logs, or files and a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from magicbyte.cli.terminal import print_line
from magicbyte.jobs.run.plan import count_of

if TYPE_CHECKING:
    from magicbyte.jobs.comparing.cluster_side import ClusterComparison
    from magicbyte.jobs.comparing.differences import Difference, PartitionDiff

__all__ = ["print_compared", "print_partition"]

_SHOWN = 20
_IN_FILES: Mapping[Difference, str] = {
    "only_in_a": "only in the files",
    "only_in_b": "only in the cluster",
    "differs": "not the same",
}


def print_partition(partition: PartitionDiff, names: Mapping[Difference, str]) -> None:
    """Prints how a partition differs, and nothing for one that is equal."""
    name = f"{partition['topic']}-{partition['partition']}"
    if partition["result"] == "equal":
        return
    if partition["result"] != "differs":
        print_line(f"{name}: {names[partition['result']]}")
        return
    print_line(f"{name}: {count_of(partition['differing_records'], 'record')} differ")
    for one in partition["ranges"][:_SHOWN]:
        print_line(
            f"  offsets {one['first_offset']:,}..={one['last_offset']:,}:"
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
    for damage in comparison["damaged"][:_SHOWN]:
        name = f"{damage['topic']}-{damage['partition']}"
        print_line(
            f"{name}: offsets {damage['first_offset']:,}..={damage['last_offset']:,} of the cluster do not"
            f" decode: {damage['message']}"
        )
    more = len(comparison["damaged"]) - _SHOWN + comparison["damaged_left_out"]
    if more > 0:
        print_line(f"... and {count_of(more, 'more batch', 'more batches')}")
    if comparison["not_compared"]:
        print_line(f"not compared: {', '.join(comparison['not_compared'])}")
