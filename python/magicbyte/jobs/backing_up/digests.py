"""The digests of a backup's files. A run reads only the segments that it has written to, and keeps the former
digest of a segment whose bytes are not those that were copied.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Container, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from magicbyte.jobs.backing_up.files import METADATA, OF_LOG_DIR, SEGMENT_SUFFIX
from magicbyte.jobs.backing_up.kept_log import KeptLog
from magicbyte.jobs.backing_up.manifest import BackupManifest
from magicbyte.jobs.publish.certificate import CertifiedFile

__all__ = ["Digests", "KnownFiles", "digests_of", "known_files"]

_BLOCK_BYTES = 1 << 18
_OF_PARTITION = re.compile(
    r"\d{20}\.log|partition\.metadata|leader-epoch-checkpoint|.+\.checkpoint|quorum-state"
)


class KnownFiles(NamedTuple):
    """The digests that need not be taken again, by the paths of segments in the backup."""

    files: Mapping[str, CertifiedFile]
    """The digests of those that are as they were in the last manifest, but for what has been appended."""
    growing: Container[str]
    """The segments to which this run may have appended."""
    changed: Mapping[str, CertifiedFile]
    """The last digests that held of those of the files that are known to have changed."""
    elsewhere: Mapping[str, CertifiedFile]
    """The digests of those that are in a store."""


class Digests(NamedTuple):
    """The digests of the files of a backup."""

    files: dict[str, CertifiedFile]
    """By their paths in the backup."""
    changed: dict[str, CertifiedFile]
    """The last digests that held of segments that do not begin as they did, or have grown although another
    one follows. They keep these, which prove that they have changed: no certificate may say otherwise.
    """


def known_files(
    out: str,
    manifest: BackupManifest,
    logs: Iterable[KeptLog],
    rewritten: Container[str],
    elsewhere: Mapping[str, CertifiedFile],
) -> KnownFiles:
    """The digests that a manifest has of segments, but for those of which counted bytes were cut off.

    Args:
        out: the backup.
        manifest: the last one.
        logs: the logs that this run has opened.
        rewritten: the names of directories in which segments have not only grown.
        elsewhere: the digests of segments that are in a store.

    """
    outputs = manifest["outputs"]
    cut = {
        os.path.relpath(path, out): [path, *rests]
        for log in logs
        for path, rests in ((log.path_of(segment), rests) for segment, rests in log.rewritten.items())
    }
    short = {
        name
        for name, (path, *_) in cut.items()
        if name in outputs and (not os.path.exists(path) or os.path.getsize(path) < outputs[name]["size"])
    }
    files = {
        name: file
        for name, file in outputs.items()
        if name not in short and name.partition("/")[0] not in rewritten
    }
    growing = {
        f"{one['topic']}-{one['partition']}/{one['active_segment']:020}{SEGMENT_SUFFIX}"
        for one in manifest["partitions"]
        if one["active_segment"] is not None
    }
    changed = dict(manifest.get("changed", {}))
    for name in short - changed.keys():
        path, *rests = cut[name]
        if rests and os.path.exists(path) and not _is_cut_of(cut[name], outputs[name]):
            changed[name] = outputs[name]
    # A cut segment still has to begin with what was copied.
    changed = {name: file for name, file in changed.items() if name in files or name in short}
    return KnownFiles(files, growing, changed, elsewhere)


def digests_of(out: str, logs: Iterable[str], known: KnownFiles) -> Digests:
    """The digests of the files of the backup. Files that are read become durable.

    Args:
        out: the backup.
        logs: the names of the partitions' directories.
        known: what need not be read.

    """
    names = list(OF_LOG_DIR)
    for log in [*logs, METADATA]:
        if os.path.isdir(directory := os.path.join(out, log)):
            names += [f"{log}/{file}" for file in filter(_OF_PARTITION.fullmatch, os.listdir(directory))]
    names.sort()
    changed: dict[str, CertifiedFile] = {}

    def digest(name: str) -> CertifiedFile:
        path = os.path.join(out, name)
        size = os.path.getsize(path)
        former = known.files.get(name) if name.endswith(SEGMENT_SUFFIX) else None
        held = known.changed.get(name, former)
        if former is not None and size != former["size"] and name not in known.growing:
            changed[name] = former if held is None else held
            return former
        if name in known.elsewhere:
            if former is None or held is None or name not in known.changed:
                return known.elsewhere[name]
            changed[name] = held
            return former
        if former is not None and size == former["size"] and name not in known.changed:
            return former
        start, whole = _read_through(path, 0 if held is None else held["size"])
        if held is None or start == held:
            return whole
        changed[name] = held
        return CertifiedFile(size=whole["size"], sha256=held["sha256"])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return Digests(dict(zip(names, pool.map(digest, names), strict=True)), changed)


def _is_cut_of(parts: Iterable[str], former: CertifiedFile) -> bool:
    """False if a segment and what was cut off it do not begin together with the bytes of this digest. A
    segment that was too short cannot tell.
    """
    digest, left = hashlib.sha256(), former["size"]
    for part in parts:
        with open(part, "rb") as file:
            while left and (block := file.read(min(left, _BLOCK_BYTES))):
                digest.update(block)
                left -= len(block)
    return left > 0 or digest.hexdigest() == former["sha256"]


def _read_through(path: str, size: int) -> tuple[CertifiedFile, CertifiedFile]:
    """The digests of the first `size` bytes of a file, and of all of it."""
    digest = hashlib.sha256()
    # One that stays in the processor's cache.
    block = memoryview(bytearray(_BLOCK_BYTES))
    with open(path, "rb", buffering=0) as file:
        os.fsync(file.fileno())
        left = size
        while left and (count := file.readinto(block[:left])):
            digest.update(block[:count])
            left -= count
        start = CertifiedFile(size=size - left, sha256=digest.hexdigest())
        while count := file.readinto(block):
            digest.update(block[:count])
        return start, CertifiedFile(size=file.tell(), sha256=digest.hexdigest())
