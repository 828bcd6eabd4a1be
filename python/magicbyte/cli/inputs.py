"""Printing what a job found besides the partitions that it read."""

from __future__ import annotations

from collections.abc import Sequence

from magicbyte.cli.terminal import print_line
from magicbyte.jobs.find.log_dirs import LogDirReport
from magicbyte.jobs.find.partitions import SkippedDirectory
from magicbyte.jobs.run.plan import count_of
from magicbyte.model import PartitionReconciliation

__all__ = ["print_log_dirs", "print_skipped", "print_unread"]

_SHOWN = 20


def print_log_dirs(log_dirs: Sequence[LogDirReport]) -> None:
    """Prints what each broker had according to its own files, and how much of it is here."""
    for log_dir in log_dirs:
        broker = "a broker" if log_dir["broker_id"] is None else f"broker {log_dir['broker_id']}"
        cluster = "" if log_dir["cluster_id"] is None else f" of cluster {log_dir['cluster_id']}"
        stopped = "stopped in order" if log_dir["clean_shutdown"] else "did not stop in order"
        print_line(f"{log_dir['path']}: {broker}{cluster}, which {stopped}")
        if log_dir["partitions"]:
            print_line(
                f"  its checkpoints name {count_of(len(log_dir['partitions']), 'partition')}"
                f" with {count_of(log_dir['offsets'], 'offset')};"
                f" this copy has {log_dir['offsets_held']:,} of them"
            )
        if log_dir["missing_partitions"]:
            print_line(f"  {count_of(log_dir['missing_partitions'], 'partition')} without a directory")
        if log_dir["partitions_elsewhere"]:
            count = count_of(log_dir["partitions_elsewhere"], "partition")
            print_line(f"  {count} of this broker may be in other directories, which are not among SRC")
        for line in (*log_dir["problems"], *log_dir["notes"]):
            print_line(f"  {line}")


def print_unread(
    partitions: Sequence[PartitionReconciliation],
    skipped: Sequence[SkippedDirectory],
    log_dirs: Sequence[LogDirReport] = (),
) -> None:
    """Prints which files and directories were not read, and what each broker had."""
    _print_ignored(partitions)
    print_skipped(skipped)
    print_log_dirs(log_dirs)


def _print_ignored(partitions: Sequence[PartitionReconciliation]) -> None:
    """Prints a line for each reason why files of the partitions' directories were not read."""
    by_reason: dict[str, list[str]] = {}
    for partition in partitions:
        for file in partition["ignored"]:
            by_reason.setdefault(file["reason"], []).append(f"{partition['path']}/{file['file']}")
    for reason, files in by_reason.items():
        more = ", ..." if len(files) > 1 else ""
        print_line(f"ignored: {count_of(len(files), f'{reason} file')}: {files[0]}{more}")


def print_skipped(skipped: Sequence[SkippedDirectory]) -> None:
    """Prints a line for each directory that was not read; of many only the first ones."""
    for directory in skipped[:_SHOWN]:
        why = (
            "another copy was preferred"
            if directory["state"] == "current"
            else f"{directory['state']}; --include-{directory['state']} reads it"
        )
        print_line(f"not read: {directory['path']} ({count_of(directory['size'], 'byte')}): {why}")
    if len(skipped) > _SHOWN:
        print_line(f"... and {len(skipped) - _SHOWN:,} more that were not read (--json has all)")
