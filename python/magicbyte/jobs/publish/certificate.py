"""Certificates: the digests of what a job read and wrote, with its sums and its command line.

A certificate is published together with the output that it describes. It is made while the output is still
private, so nobody can change the output between the job and its digests.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypedDict

from magicbyte import _core
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import Progress, format_bytes
from magicbyte.model import PartitionListing, Segment
from magicbyte.storage.location import locate

__all__ = [
    "CERTIFICATE",
    "Certificate",
    "CertifiedFile",
    "CertifiedPartition",
    "Certify",
    "certifier",
    "digest_of",
]

CERTIFICATE = "certificate.json"
_BLOCK_BYTES = 1 << 20


class CertifiedFile(TypedDict):
    """A file, or the part of a growing segment that was read."""

    size: int
    """In bytes, from the start of the file."""
    sha256: str | None
    """In hexadecimal; None for a segment that was changed or deleted while the job ran."""


class CertifiedPartition(TypedDict):
    """The sums of a partition that was written."""

    topic: str
    partition: int
    segments: int
    size: int
    """Bytes of all segments."""
    batches: int
    records: int


class Certificate(TypedDict):
    """The content of `certificate.json`."""

    magicbyte: str
    """The version that wrote the output."""
    command: list[str]
    """The command line; confidential values are hidden."""
    made_ms: int
    """The time in milliseconds since 1970."""
    balanced: bool
    """See the report of the job."""
    problems: int
    """The number of problems that the job found in its sources."""
    written: list[CertifiedPartition]
    inputs: dict[str, CertifiedFile]
    """Every segment that was read, by path."""
    outputs: dict[str, CertifiedFile]
    """Every file that was written but this one, by its path in the output, with `/` between names."""


Certify = Callable[[str], Certificate]
"""Makes the certificate of the output in a local directory, which is complete but not yet published."""


def certifier(
    command: Sequence[str] | None,
    report: Mapping[str, Any],
    listings: Iterable[PartitionListing],
    engine: Engine,
    progress: Progress,
) -> Certify | None:
    """Digests the segments of `listings`, which the job has read; None if there is no command to certify."""
    if command is None:
        return None
    return partial(_certificate_of, command, report, _digests_of_segments(listings, engine, progress))


def _certificate_of(
    command: Sequence[str], report: Mapping[str, Any], inputs: dict[str, CertifiedFile], directory: str
) -> Certificate:
    paths = [os.path.join(parent, name) for parent, _, names in os.walk(directory) for name in names]
    names = [os.path.relpath(path, directory).replace(os.sep, "/") for path in paths]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        digests = dict(zip(names, pool.map(digest_of, paths), strict=True))
    return Certificate(
        magicbyte=_core.__version__,
        command=list(command),
        made_ms=time.time_ns() // 1_000_000,
        balanced=report["balanced"],
        problems=len(report["problems"]) + report["problems_left_out"],
        written=[
            CertifiedPartition(**{name: one[name] for name in CertifiedPartition.__annotations__})  # type: ignore[typeddict-item]
            for one in report["written"]
        ],
        inputs=inputs,
        outputs={name: digests[name] for name in sorted(digests)},
    )


def _digests_of_segments(
    listings: Iterable[PartitionListing], engine: Engine, progress: Progress
) -> dict[str, CertifiedFile]:
    """The digests of the segments at the sizes that they were listed with."""
    segments = [segment for listing in listings for segment in listing["segments"]]
    sizes = [segment["size"] for segment in segments]
    name = f"magicbyte certificate: {len(segments):,} segments, {format_bytes(sum(sizes))}"
    digests = engine.map(_digest_of_segment, segments, name=name, sizes=sizes, progress=progress)
    unchanged = _unchanged(segments)
    return {
        segment["path"]: CertifiedFile(
            size=segment["size"], sha256=digest if segment["path"] in unchanged else None
        )
        for segment, digest in zip(segments, digests, strict=True)
    }


def _digest_of_segment(segment: Segment) -> str | None:
    try:
        found = digest_of(segment["path"], segment["size"])
    except OSError:
        return None  # a broker has deleted it
    return found["sha256"] if found["size"] == segment["size"] else None


def _unchanged(segments: Iterable[Segment]) -> set[str]:
    """The paths that still lead to the files that were listed."""
    directories = {os.path.dirname(segment["path"]) for segment in segments}
    now = {
        listed["path"]: listed["version"]
        for directory in directories
        if locate(directory).exists()
        for listed in json.loads(_core.list_partition(directory))["segments"]
    }
    return {
        segment["path"]
        for segment in segments
        if segment["path"] in now and _core.is_same_file(now[segment["path"]], segment["version"])
    }


def digest_of(path: str, size: int | None = None) -> CertifiedFile:
    """The digest of a file, or of its first `size` bytes. Raises OSError if it cannot be read."""
    digest, read = hashlib.sha256(), 0
    with locate(path).open(_BLOCK_BYTES) as file:
        while block := file.read(_BLOCK_BYTES if size is None else min(_BLOCK_BYTES, size - read)):
            digest.update(block)
            read += len(block)
    return CertifiedFile(size=read, sha256=digest.hexdigest())
