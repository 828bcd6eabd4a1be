"""The job behind `magicbyte recover`: a damaged partition made one that a broker opens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from magicbyte import _core
from magicbyte.jobs.engines import Engine
from magicbyte.model import PartitionReconciliation
from magicbyte.jobs.progress import NO_PROGRESS, Progress
from magicbyte.jobs.rewrite import Cuts, RewriteOptions, RewriteReport, rewrite
from magicbyte.jobs.verify import VerifyReport, verify

__all__ = ["Mode", "cuts_of", "diagnose", "recover"]

Mode: TypeAlias = Literal["keep", "truncate"]
"""`keep` every good batch; or `truncate` the log at the first damage, as a broker does."""

_NOTICED = {
    "crc_mismatch",
    "invalid_size",
    "unsupported_magic",
    "zeros",
    "garbage",
    "partial_batch",
    "file_truncated",
}
"""What a broker that recovers looks at: sizes and checksums, not offsets, nor into records."""


def diagnose(
    sources: Sequence[str],
    engine: Engine,
    *,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
    progress: Progress = NO_PROGRESS,
) -> VerifyReport:
    """Reads everything, writes nothing: what a recovery would find."""
    return verify(sources, engine, max_decompressed_bytes=max_decompressed_bytes, progress=progress)


def cuts_of(partitions: Sequence[PartitionReconciliation]) -> Cuts:
    """Where a broker would cut each damaged partition: segment and position.

    Everything after it goes, later segments too: LogLoader.recoverLog deletes those after the first of
    which LogSegment.recover took any byte away. That may be a mere tail, torn or zeros, which only the
    last segment has by right. An empty segment loses nothing, so the log goes on after it.
    """
    cuts: Cuts = {}
    for partition in partitions:
        for number, segment in enumerate(partition["segments"], 1):
            noticed = [one["start"] for one in segment["quarantined"] if one["reason"] in _NOTICED]
            if segment["tail"] is not None and number < len(partition["segments"]):
                noticed.append(segment["tail"]["start"])
            if noticed:
                cuts[partition["topic"], partition["partition"]] = segment["file"], min(noticed)
                break
    return cuts


def recover(
    sources: Sequence[str],
    out: str,
    engine: Engine,
    options: RewriteOptions,
    mode: Mode = "keep",
    progress: Progress = NO_PROGRESS,
) -> RewriteReport:
    """Writes what is good of every partition into `out`, with sidecars made anew.

    Raises:
        RefusedError: nothing to read, a partition found twice, or `out` is there already.

    """
    cuts: Cuts = {}
    if mode == "truncate":
        found = diagnose(
            sources, engine, max_decompressed_bytes=options.max_decompressed_bytes, progress=progress
        )
        cuts = cuts_of(found["partitions"])
    return rewrite(sources, out, engine, options, cuts=cuts, progress=progress)
