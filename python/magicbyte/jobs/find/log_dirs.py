"""A broker's directory (one of its `log.dirs`): what its own files say about the partitions in it.

The checkpoints are those of Kafka's `LogManager` and `ReplicaManager`. A broker writes them every few
seconds, some every minute, so a broker that was killed had at least the offsets that they name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, TypeVar

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.find.problems import lost_ranges, partition_problem
from magicbyte.log_dir import (
    CLEAN_SHUTDOWN,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_OFFSET_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    read_meta_properties,
    read_offset_checkpoint,
)
from magicbyte.model import (
    PartitionCheckpoints,
    PartitionListing,
    PartitionPlan,
    PartitionReconciliation,
)
from magicbyte.storage.location import locate

__all__ = [
    "CheckpointedPartition",
    "LogDir",
    "LogDirReport",
    "absent_partition",
    "is_log_dir",
    "log_dir_reports",
    "note_missing_ids",
    "read_log_dir",
    "read_log_starts",
]

K = TypeVar("K")
V = TypeVar("V")

_CHECKPOINTS = {
    "log_start_offset": LOG_START_OFFSET_CHECKPOINT,
    "recovery_point": RECOVERY_POINT_OFFSET_CHECKPOINT,
    "high_watermark": REPLICATION_OFFSET_CHECKPOINT,
}
_MISSING = "partition_missing"
_PARTITION_METADATA = "partition.metadata"
_Name = tuple[str, int]


class CheckpointedPartition(TypedDict):
    """A partition that the checkpoints of a directory name."""

    topic: str
    partition: int
    checkpoints: PartitionCheckpoints
    next_offset: int | None
    """The log end offset of this copy; None if it has no good batch."""


class LogDirReport(TypedDict):
    """The files of a broker's directory about itself, compared with its actual content."""

    path: str
    broker_id: int | None
    cluster_id: str | None
    directory_id: str | None
    clean_shutdown: bool
    """True if the broker had shut down cleanly. After a crash, it would check all segments after the recovery
    point."""
    partitions: list[CheckpointedPartition]
    missing_partitions: int
    """The number of missing partitions that checkpoints or the cluster's metadata place in this directory."""
    partitions_elsewhere: int
    """The number of the broker's partitions that may be in directories that are not among the sources."""
    offsets: int
    """Offsets that the broker had according to its checkpoints, from each log's start to its high watermark.
    Compaction, control records and aborted transactions leave fewer records."""
    offsets_held: int
    """The number of these offsets that this copy covers, without those that damage may have cost."""
    problems: list[str]
    """Files of the directory that cannot be read."""
    notes: list[str]
    """Effects of a running broker between two writes of its checkpoints, such as retention: not problems."""


@dataclass(frozen=True)
class LogDir:
    """A broker's directory, as its own files describe it."""

    path: str
    broker_id: int | None
    cluster_id: str | None
    directory_id: str | None
    clean_shutdown: bool
    is_kraft: bool
    """True if `meta.properties` is that of a KRaft broker (version 1)."""
    checkpoints: dict[_Name, PartitionCheckpoints]
    absent: list[PartitionListing]
    """Partitions that the checkpoints or the cluster's metadata name and that have no directory."""
    problems: list[str]
    elsewhere: list[tuple[str, int]] = field(default_factory=list)
    """Partitions of the broker that may be in directories that are not among the sources."""
    notes: list[str] = field(default_factory=list)
    """See `LogDirReport`."""


def is_log_dir(names: Container[str]) -> bool:
    """True if a directory with these entries is one of a broker's `log.dirs`."""
    return any(name in names for name in (META_PROPERTIES, *_CHECKPOINTS.values()))


def read_log_dir(path: str, listings: Iterable[PartitionListing]) -> LogDir:
    """Reads the files of a broker's directory, and gives the listings of its partitions their checkpoints."""
    problems: list[str] = []

    def read(name: str, reader: Callable[[str], dict[K, V]]) -> dict[K, V]:
        try:
            return reader(os.path.join(path, name))
        except FileNotFoundError:
            return {}
        except (Error, OSError) as error:
            problems.append(str(error))
            return {}

    by_file = {field: read(name, read_offset_checkpoint) for field, name in _CHECKPOINTS.items()}
    meta = read(META_PROPERTIES, read_meta_properties)
    checkpoints = {
        name: PartitionCheckpoints(
            log_start_offset=by_file["log_start_offset"].get(name),
            recovery_point=by_file["recovery_point"].get(name),
            high_watermark=by_file["high_watermark"].get(name),
        )
        for name in sorted({name for offsets in by_file.values() for name in offsets})
    }
    there = set()
    for listing in listings:
        if os.path.dirname(listing["path"]) == path:
            name = listing["topic"], listing["partition"]
            there.add(name)
            # A broker has the log or its future copy in a directory, and its checkpoints speak of that one.
            if listing["state"] in ("current", "future"):
                listing["checkpoints"] = checkpoints.get(name)
    broker_id = meta.get("node.id", meta.get("broker.id", ""))
    return LogDir(
        path=path,
        broker_id=int(broker_id) if broker_id.isdecimal() else None,
        cluster_id=meta.get("cluster.id") or None,
        directory_id=meta.get("directory.id"),
        clean_shutdown=locate(path).below(CLEAN_SHUTDOWN).exists(),
        is_kraft=meta.get("version") == "1",
        checkpoints=checkpoints,
        absent=[
            absent_partition(path, name, own, "the broker's checkpoints name the partition")
            for name, own in checkpoints.items()
            if name not in there and not _has_log(path, name)
        ],
        problems=problems,
    )


def _has_log(path: str, name: _Name) -> bool:
    """True if a partition has a directory by now, created after the directories were listed."""
    directory = f"{name[0]}-{name[1]}"
    try:
        return locate(path).is_live and _core.is_partition(
            directory, os.listdir(os.path.join(path, directory))
        )
    except (OSError, ValueError):
        return False  # a name from a damaged checkpoint may have a zero byte, which no path has


def note_missing_ids(log_dirs: Iterable[LogDir], listings: Iterable[PartitionListing]) -> None:
    """Gives a problem to each partition of a KRaft broker that has no `partition.metadata`.

    A broker that starts takes such a log for that of a deleted topic (`LogManager.isStrayKraftReplica`).
    """
    kraft = {log_dir.path for log_dir in log_dirs if log_dir.is_kraft}
    for listing in listings:
        files = {one["file"] for one in (*listing["sidecars"], *listing["ignored"])}
        if (
            os.path.dirname(listing["path"]) in kraft
            and listing["state"] == "current"
            and listing["topic"] != CLUSTER_METADATA
            and listing["segments"]
            and _PARTITION_METADATA not in files
        ):
            problem = partition_problem(
                listing["topic"],
                listing["partition"],
                "topic_id_missing",
                "there is no partition.metadata: a KRaft broker sets the directory aside as stray when it "
                "starts, and serves an empty partition in its place",
            )
            problem["segment"] = _PARTITION_METADATA
            listing["problems"].append(problem)


def absent_partition(
    log_dir: str, name: tuple[str, int], checkpoints: PartitionCheckpoints | None, claim: str
) -> PartitionListing:
    """The listing of a partition that has no directory in `log_dir` although `claim` says that it should."""
    topic, partition = name
    path = os.path.join(log_dir, f"{topic}-{partition}")
    message = f"{claim}, but there is no directory {path}"
    problem = partition_problem(topic, partition, _MISSING, message)
    return PartitionListing(
        path=path,
        topic=topic,
        partition=partition,
        state="current",
        checkpoints=checkpoints,
        include_deleted_records=False,
        segments=[],
        sidecars=[],
        ignored=[],
        leader_epochs=[],
        problems=[problem],
    )


def read_log_starts(listings: Iterable[PartitionListing], log_dirs: Container[str]) -> None:
    """Gives listings whose broker's directory is not one of `log_dirs` the starts of their logs.

    Only the partition itself is a source then. A checkpoint that cannot be read is a problem of the listing.
    """
    known: dict[str, dict[_Name, int] | str] = {}
    for listing in listings:
        segments = listing["segments"]
        path = listing["path"]
        directory = os.path.dirname(path) if [segment["path"] for segment in segments] == [path] else path
        parent = os.path.dirname(directory)
        if parent in log_dirs or listing["state"] != "current":
            continue
        if parent not in known:
            known[parent] = _log_starts(parent)
        starts = known[parent]
        if isinstance(starts, str):
            name = listing["topic"], listing["partition"]
            listing["problems"].append(partition_problem(*name, "invalid_sidecar", starts))
        elif (start := starts.get((listing["topic"], listing["partition"]))) is not None:
            listing["checkpoints"] = PartitionCheckpoints(
                log_start_offset=start, recovery_point=None, high_watermark=None
            )


def _log_starts(path: str) -> dict[_Name, int] | str:
    """The log start offsets in a directory, or why they cannot be read."""
    try:
        return read_offset_checkpoint(os.path.join(path, LOG_START_OFFSET_CHECKPOINT))
    except FileNotFoundError:
        return {}
    except (Error, OSError) as error:
        return str(error)


def log_dir_reports(
    log_dirs: Sequence[LogDir], plans: Sequence[PartitionPlan], partitions: Sequence[PartitionReconciliation]
) -> list[LogDirReport]:
    """Compares each directory with what was read; `plans` and `partitions` are in the same order."""
    read = {plan["path"]: (plan, one) for plan, one in zip(plans, partitions, strict=True)}
    return [_report(log_dir, read) for log_dir in log_dirs]


def _report(log_dir: LogDir, read: dict[str, tuple[PartitionPlan, PartitionReconciliation]]) -> LogDirReport:
    partitions, offsets, held = [], 0, 0
    for (topic, partition), checkpoints in log_dir.checkpoints.items():
        found = read.get(os.path.join(log_dir.path, f"{topic}-{partition}"))
        if found is None:  # not chosen
            continue
        plan, reconciliation = found
        partitions.append(
            CheckpointedPartition(
                topic=topic, partition=partition, checkpoints=checkpoints, next_offset=plan["next_offset"]
            )
        )
        had, has = _offsets(checkpoints, plan, reconciliation)
        offsets += had
        held += has
    absent = {one["path"] for one in log_dir.absent}
    return LogDirReport(
        path=log_dir.path,
        broker_id=log_dir.broker_id,
        cluster_id=log_dir.cluster_id,
        directory_id=log_dir.directory_id,
        clean_shutdown=log_dir.clean_shutdown,
        partitions=partitions,
        missing_partitions=sum(path in absent for path in read),
        partitions_elsewhere=len(log_dir.elsewhere),
        offsets=offsets,
        offsets_held=held,
        problems=log_dir.problems,
        notes=log_dir.notes,
    )


def _offsets(
    checkpoints: PartitionCheckpoints, plan: PartitionPlan, reconciliation: PartitionReconciliation
) -> tuple[int, int]:
    """The number of a partition's offsets that the broker had, and the number that the copy covers."""
    bases = [segment["base_offset"] for segment in plan["segments"]]
    lost = lost_ranges(plan["problems"])
    begin = min([*bases, *(first for first, _ in lost)], default=0)
    begin = begin if checkpoints["log_start_offset"] is None else checkpoints["log_start_offset"]
    end = max(begin, checkpoints["high_watermark"] or 0)
    reached = min(end, max([plan["next_offset"] or begin, *bases]))
    in_files = reconciliation["lost_offsets"] - sum(last + 1 - first for first, last in lost)
    missing = sum(max(0, min(last + 1, reached) - max(first, begin)) for first, last in lost)
    return end - begin, max(0, reached - begin - missing - in_files)
