"""The manifest of a backup, which is replaced at the end of a run: the logs that the backup holds, up to
where, and the digest of every file. It is also the certificate of the backup.
"""

from __future__ import annotations

import base64
import json
import os
import re
import uuid
from collections.abc import Collection, Container, Iterable, Mapping
from itertools import chain
from typing import Any, Literal, NotRequired, TypedDict, cast

from magicbyte.errors import RefusedError
from magicbyte.internal_topics.names import is_topic
from magicbyte.jobs.certified import read_certificate
from magicbyte.jobs.publish.certificate import Certificate, CertifiedFile, CertifiedPartition
from magicbyte.jobs.publish.workspace import sync
from magicbyte.storage.location import locate

__all__ = [
    "MANIFEST",
    "BackedUpPartition",
    "BackupFinding",
    "BackupManifest",
    "CopiedBatches",
    "DamagedBatch",
    "LastRecord",
    "OpenTransaction",
    "backed_up_offsets",
    "beside_of",
    "certified",
    "files_in",
    "new_manifest",
    "read_manifest",
    "still_there",
    "write_file",
]

MANIFEST = "backup.json"


class DamagedBatch(TypedDict):
    """A batch that is kept as the cluster sent it although its CRC does not hold."""

    first_offset: int
    """The offset after the batch before it."""
    last_offset: int
    message: str


class OpenTransaction(TypedDict):
    """A transaction that has records, and no marker yet."""

    producer_id: int
    first_offset: int
    is_overlapped: bool
    """True if a transaction that began before this one has ended after its beginning."""


class Stopped(TypedDict):
    """Why a range could not be copied any further."""

    error: str
    """Kafka's name of the error, or TRUNCATED, TOPIC_RECREATED or CORRUPT."""
    message: str


class LastRecord(TypedDict):
    """The last record that was copied, which a leader with the same history still has, unless it was
    compacted or deleted.
    """

    offset: int
    digest: str
    """See `ClusterReader.digest_records`."""


class LogSums(TypedDict):
    """The sums of batches that were appended to a log (`AppendedBatches`)."""

    topic: str
    partition: int
    next_offset: int
    """The offset after the last one that was copied."""
    active_segment: int | None
    """The base offset of the segment that grows."""
    size: int
    """In bytes."""
    batches: int
    records: int
    leader_epochs: list[tuple[int, int]]
    """Epochs, and the offset at which each begins."""
    max_producer_id: int
    """-1 for none."""
    open_transactions: list[OpenTransaction]
    """The transactions that are open at the end, in the order of their beginnings."""
    damaged: list[DamagedBatch]
    """The first `LISTED`."""
    last_record: LastRecord | None
    """The last record of the last good batch that has one. Manifests of earlier versions do not tell it."""


class CopiedBatches(LogSums):
    """The batches of a partition that a request has added."""

    damaged_left_out: int
    stopped: Stopped | None


class BackedUpPartition(LogSums):
    """A partition in the backup, with the sums of all its segments."""

    topic_id: str | None
    """None if the brokers are older than Kafka 2.8."""
    replicas: list[int]
    """The brokers that had it; the metadata in the backup names only the backup itself."""
    first_offset: int
    """The offset from which on the backup has batches; earlier than `log_start_offset` if the cluster has
    deleted some of them since.
    """
    log_start_offset: int
    lost: list[tuple[int, int]]
    """Offsets (first, last) that neither the cluster nor the backup has any more."""


class BackupFinding(TypedDict):
    """A finding of a run."""

    topic: str
    partition: int | None
    """None for the whole topic."""
    found: Literal[
        "lost",
        "diverged",
        "recreated",
        "deleted",
        "incomplete",
        "damaged",
        "changed",
        "replaced",
        "stopped",
        "unavailable",
    ]
    """`lost`: the cluster deleted offsets before they were copied, or the backup does not have them any more
    and the cluster neither. `diverged`: the cluster does not have batches that were copied from an earlier
    leader. `recreated`: the topic was deleted and created again. `deleted`: the cluster does not have the
    topic any more, or does not show it. `incomplete`: files of the backup are missing or shorter than they
    were. `damaged`: the CRC of a batch does not hold. `changed`: a segment of the backup does not have the
    bytes that were copied, in every run until it has them again. `replaced`: a full copy has taken the place
    of a log that began earlier. `stopped`: the cluster does not send the rest. `unavailable`: the partition
    has no leader, so the backup has it as the last run has left it.
    """
    first_offset: int | None
    last_offset: int | None
    aside: str | None
    """The directory below the backup with the batches that are not part of it any more."""
    message: str


class BackupManifest(Certificate):
    """The content of `backup.json`."""

    cluster_id: str
    node_id: int
    """The backup is the log directory of this broker, which the cluster does not have."""
    directory_id: str
    bootstrap_servers: str
    as_of: int | None
    """See `BackupOptions.as_of`."""
    brokers: list[int]
    features: dict[str, int]
    metadata_end_offset: int
    max_producer_id: int
    """The highest producer id that was seen in the state of transactions, or -1."""
    partitions: list[BackedUpPartition]
    findings: list[BackupFinding]
    """The findings of the last run."""
    set_aside: NotRequired[dict[str, BackedUpPartition]]
    """Partitions that the cluster does not show any more, by the names of their directories."""
    changed: NotRequired[dict[str, CertifiedFile]]
    """The last digests that held of segments that have `changed` since."""
    acl_resources: list[str]
    """The resources that ACLs of the cluster are for, such as `TOPIC orders`."""
    secret_configs: list[str]
    """Configs whose values no broker tells: set them again after a restore."""
    scram_users: list[str]
    """Users whose credentials no broker tells: create them again after a restore."""
    unknown_settings: list[str]
    """The parts that the cluster did not tell, with the reasons."""


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "cluster_id": str,
    "node_id": int,
    "directory_id": str,
    "max_producer_id": int,
    "partitions": list,
    "outputs": dict,
}
_OF_PARTITION: Mapping[str, type | tuple[type, ...]] = {
    "topic": str,
    "partition": int,
    "topic_id": (str, type(None)),
    "first_offset": int,
    "next_offset": int,
    "active_segment": (int, type(None)),
    "batches": int,
    "records": int,
    "leader_epochs": list,
    "max_producer_id": int,
    "lost": list,
    "size": int,
    "log_start_offset": int,
    "open_transactions": list,
    "damaged": list,
}
_OF_TRANSACTION: Mapping[str, type | tuple[type, ...]] = {"producer_id": int, "first_offset": int}
_OF_DAMAGE: Mapping[str, type | tuple[type, ...]] = {
    "first_offset": int,
    "last_offset": int,
    "message": str,
}
_OF_RECORD: Mapping[str, type | tuple[type, ...]] = {"offset": int, "digest": str}
_OF_FILE: Mapping[str, type | tuple[type, ...]] = {"size": int, "sha256": str}
_INDEXES, _OFFSETS, _LONGS = range(1 << 31), range(1 << 63), range(-(1 << 63), 1 << 63)
_ID = re.compile(r"[\w-]{22}", re.ASCII)


def new_manifest(version: str, cluster_id: str, brokers: Collection[int]) -> BackupManifest:
    """The manifest of an empty backup, which stands for a node that the cluster with these brokers does not
    have.
    """
    # The next one after the highest, if there is one.
    candidates = chain([max(brokers, default=0) + 1], _INDEXES)
    node_id = next(one for one in candidates if one in _INDEXES and one not in brokers)
    return BackupManifest(
        magicbyte=version,
        command=[],
        made_ms=0,
        balanced=True,
        problems=0,
        written=[],
        inputs={},
        outputs={},
        cluster_id=cluster_id,
        node_id=node_id,
        directory_id=base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="),
        bootstrap_servers="",
        as_of=None,
        brokers=[],
        features={},
        metadata_end_offset=0,
        max_producer_id=-1,
        partitions=[],
        findings=[],
        changed={},
        acl_resources=[],
        secret_configs=[],
        scram_users=[],
        unknown_settings=[],
    )


def read_manifest(out: str) -> BackupManifest | None:
    """The manifest of the backup in a directory; None if the directory has none.

    Raises:
        RefusedError: if it is not one.

    """
    path = os.path.join(out, MANIFEST)
    try:
        document: Any = read_certificate(path)
    except FileNotFoundError:
        return None
    changed, set_aside = document.get("changed", {}), document.get("set_aside", {})
    if (
        not _has(document, _TYPES)
        or not isinstance(set_aside, dict)
        or not all(map(_is_partition, [*document["partitions"], *set_aside.values()]))
        or not isinstance(changed, dict)
        or not all(_has(file, _OF_FILE) for file in changed.values())
    ):
        raise RefusedError(
            f"{path} is not the manifest of a backup: a field is missing, of another type or out of range"
        )
    return cast(BackupManifest, document)


def backed_up_offsets(directories: Iterable[str]) -> dict[tuple[str, tuple[str, int]], tuple[int, int]]:
    """The first offset that a backup has of each partition, and the offset after the last one, by the path of
    the backup and the partition, for those of the directories of partitions that are in one. Another file
    with the name of a manifest makes no backup, and neither does one that cannot be read.
    """
    found: dict[tuple[str, tuple[str, int]], tuple[int, int]] = {}
    for out in {os.path.dirname(directory) for directory in directories}:
        try:
            manifest = read_manifest(out) if locate(out).below(MANIFEST).exists() else None
        except (OSError, RefusedError):
            continue
        for one in manifest["partitions"] if manifest is not None else ():
            found[out, (one["topic"], one["partition"])] = one["first_offset"], one["next_offset"]
    return found


def files_in(names: Container[str], files: Mapping[str, CertifiedFile]) -> dict[str, CertifiedFile]:
    """The files in directories with these names."""
    return {name: file for name, file in files.items() if name.partition("/")[0] in names}


def still_there(out: str, aside: Mapping[str, BackedUpPartition]) -> dict[str, BackedUpPartition]:
    """The partitions that are set aside and whose directories are still there."""
    return {name: entry for name, entry in aside.items() if os.path.isdir(os.path.join(out, name))}


def certified(entry: BackedUpPartition) -> CertifiedPartition:
    """The partition in the certificate."""
    return CertifiedPartition(
        topic=entry["topic"],
        partition=entry["partition"],
        segments=0,
        size=entry["size"],
        batches=entry["batches"],
        records=entry["records"],
    )


def _is_partition(entry: Any) -> bool:
    return (
        _has(entry, _OF_PARTITION)
        and is_topic(entry["topic"])
        and entry["partition"] in _INDEXES
        and entry["next_offset"] in _OFFSETS
        and entry["first_offset"] in _OFFSETS
        and entry["log_start_offset"] in _OFFSETS
        and (entry["active_segment"] is None or entry["active_segment"] in _OFFSETS)
        and entry["max_producer_id"] in _LONGS
        and (entry["topic_id"] is None or _ID.fullmatch(entry["topic_id"]) is not None)
        and all(_is_pair(one, _INDEXES) for one in entry["leader_epochs"])
        and all(_is_pair(one, _OFFSETS) for one in entry["lost"])
        and all(_has(one, _OF_DAMAGE) for one in entry["damaged"])
        and all(map(_is_transaction, entry["open_transactions"]))
        and _is_record(entry.get("last_record"))
    )


def _is_record(value: Any) -> bool:
    return value is None or (_has(value, _OF_RECORD) and value["offset"] in _OFFSETS)


def _is_transaction(value: Any) -> bool:
    return (
        _has(value, _OF_TRANSACTION)
        and isinstance(value.get("is_overlapped"), bool)
        and value["producer_id"] in _LONGS
        and value["first_offset"] in _OFFSETS
    )


def _is_pair(value: Any, firsts: range) -> bool:
    """True for a pair of a number of this range and an offset."""
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(type(one) is int for one in value)
        and value[0] in firsts
        and value[1] in _OFFSETS
    )


def _has(document: Any, types: Mapping[str, type | tuple[type, ...]]) -> bool:
    # True is an int to Python.
    return isinstance(document, dict) and all(
        isinstance(document.get(name), expected) and type(document.get(name)) is not bool
        for name, expected in types.items()
    )


def beside_of(path: str) -> str:
    """The file that becomes the one at `path`."""
    directory, name = os.path.split(path)
    return os.path.join(directory, f".{name}.tmp")


def write_file(path: str, content: bytes | Mapping[str, Any]) -> None:
    """Replaces a file atomically and durably; a mapping is written as JSON."""
    data = content if isinstance(content, bytes) else (json.dumps(content, indent=1) + "\n").encode()
    directory, beside = os.path.dirname(path), beside_of(path)
    # Only one run writes at a time: a file that a killed run has left is overwritten.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(beside, flags, 0o644)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
    sync(directory)
