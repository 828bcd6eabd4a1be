"""The job of `magicbyte recover`: turns damaged partitions into ones that a broker opens."""

from __future__ import annotations

from collections.abc import Sequence

from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.rewrite import Cuts, RewriteReport, rewrite
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.verify import VerifyReport, verify
from magicbyte.model import PartitionReconciliation
from magicbyte.options.command_line import command_line
from magicbyte.options.declare import narrowed
from magicbyte.options.read import VerifyOptions
from magicbyte.options.rewrite import ConvertOptions, CopyOptions, RecoverOptions
from magicbyte.options.shared import Decoding

__all__ = ["cuts_of", "diagnose", "recover"]

_NOTICED_BY_A_BROKER = {
    "crc_mismatch",
    "invalid_size",
    "unsupported_magic",
    "zeros",
    "garbage",
    "partial_batch",
    "file_truncated",
}
"""A recovering broker checks sizes and checksums, but neither offsets nor the insides of records."""


def diagnose(
    sources: Sequence[str],
    engine: Engine,
    options: Decoding,
    *,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> VerifyReport:
    """Reads everything and writes nothing: the damage that a recovery would find."""
    only = VerifyOptions(max_decompressed_bytes=options.max_decompressed_bytes)
    return verify(sources, engine, only, choice=choice, progress=progress)


def cuts_of(partitions: Sequence[PartitionReconciliation]) -> Cuts:
    """Where a broker would truncate each damaged partition: segment and position.

    Everything after that is lost, later segments included: LogLoader.recoverLog deletes all segments after
    the first one that LogSegment.recover shortens. A tail (a torn batch or zeros) is enough for that, as
    only the last segment may have one. An empty segment is not shortened, so the log continues after it.
    """
    cuts: Cuts = {}
    for partition in partitions:
        for number, segment in enumerate(partition["segments"], 1):
            noticed = [
                damage["start"]
                for damage in segment["quarantined"]
                if damage["reason"] in _NOTICED_BY_A_BROKER
            ]
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
    options: RecoverOptions,
    progress: Progress = NO_PROGRESS,
    *,
    choice: PartitionChoice = EVERYTHING,
) -> RewriteReport:
    """Writes the good batches of every partition into `out`, with new sidecars.

    Raises:
        RefusedError: if there is nothing to read, a partition is found twice, or `out` is not empty.

    """
    cuts: Cuts = {}
    if options.method == "truncate":
        found = diagnose(sources, engine, options, choice=choice, progress=progress)
        cuts = cuts_of(found["partitions"])
    kept = ConvertOptions(**vars(narrowed(CopyOptions, options)), magic=None)
    command = command_line("recover", [*sources, out], options, choice) if options.certify else None
    return rewrite(sources, out, engine, kept, cuts=cuts, choice=choice, progress=progress, command=command)
