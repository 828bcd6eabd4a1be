"""The job behind `magicbyte rescue`: files for what can be saved of each damaged partition."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

from magicbyte import _core
from magicbyte.model import PartitionListing, Problem
from magicbyte.jobs.output import PartitionsOutput
from magicbyte.jobs.partitions import list_partitions, unread_names
from magicbyte.jobs.workspace import sync_tree
from magicbyte.rescue import Rescued, Suspect, rescue

__all__ = ["RescueReport", "rescue_partitions"]

_REPORT = "rescue.json"


class RescuedRange(TypedDict):
    """One quarantined range in the report."""

    segment: str
    start: int
    end: int
    kind: str
    message: str
    repair: str | None
    """What a sound copy changes."""
    repair_is_proven: bool | None
    """Whether it is more than a guess (see `magicbyte.rescue.Repair`); None without a repair."""
    suspects: int
    """Records before the damage."""


class RescueReport(TypedDict):
    """What can be saved, or was."""

    ranges: list[RescuedRange]
    """The first `LISTED`."""
    ranges_left_out: int
    """How many more there are."""
    repairable: int
    """Proven repairs."""
    guesses: int
    """Repairs of batches so large that other damage may look the same."""
    suspects: int
    problems: list[Problem]
    """What cannot be listed or read at all."""


def rescue_partitions(
    sources: Sequence[str],
    out: str | None = None,
    *,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> RescueReport:
    """Looks at every quarantined range of the partitions at and below `sources`.

    Into `out`, a directory a partition: `raw/SEGMENT.START-END.bin` holds each range's bytes,
    `suspects.jsonl` the records before the damage (base64), `repaired/SEGMENT.log` a copy of each
    segment that proven repairs make better, with the repaired batches in place;
    `guesses/SEGMENT.START-END.bin` a batch whose repair is a guess; `rescue.json` is the report, and says
    that all is there. The sources are only read.

    Raises:
        RefusedError: nothing to read, a partition found twice, `out` is not empty, it and a source lie
            inside each other, or another job is writing it.

    """
    listings = list_partitions(sources, distinct=True)
    if out is None:
        return _rescue(listings, None, max_decompressed_bytes)
    with PartitionsOutput(out, [*sources, *(listing["path"] for listing in listings)]) as output:
        report = _rescue(listings, output, max_decompressed_bytes)
        output.commit(report, name=_REPORT)
    return report


def _rescue(
    listings: Sequence[PartitionListing], output: PartitionsOutput | None, max_decompressed_bytes: int
) -> RescueReport:
    report = RescueReport(ranges=[], ranges_left_out=0, repairable=0, guesses=0, suspects=0, problems=[])
    for listing in listings:
        report["problems"] += unread_names(listing)
        if not listing["segments"]:
            continue
        found = rescue(listing["path"], max_decompressed_bytes=max_decompressed_bytes)
        if output is not None:
            found = _saved(found, output.target(listing))
        for one in found:
            if one.repair is not None:
                report["repairable" if one.repair.is_proven else "guesses"] += 1
            report["suspects"] += len(one.suspects)
            if len(report["ranges"]) == _core.LISTED:
                report["ranges_left_out"] += 1
                continue
            report["ranges"].append(
                RescuedRange(
                    segment=one.segment,
                    start=one.start,
                    end=one.end,
                    kind=one.kind,
                    message=one.message,
                    repair=None if one.repair is None else one.repair.change,
                    repair_is_proven=None if one.repair is None else one.repair.is_proven,
                    suspects=len(one.suspects),
                )
            )
    return report


def _saved(found: Iterator[Rescued], out: str) -> Iterator[Rescued]:
    """Writes what each range gives before it passes it on."""
    for one in found:
        segment = os.path.basename(one.segment)
        _write(os.path.join(out, "raw", f"{segment}.{one.start}-{one.end}.bin"), one.data)
        if one.suspects:
            with open(os.path.join(out, "suspects.jsonl"), "a", encoding="utf-8") as lines:
                lines.writelines(f"{json.dumps(_row(segment, one, row))}\n" for row in one.suspects)
        if one.repair is not None and not one.repair.is_proven:
            _write(os.path.join(out, "guesses", f"{segment}.{one.start}-{one.end}.bin"), one.repair.batch)
        elif one.repair is not None:
            _repair(one.segment, os.path.join(out, "repaired", segment), one.start, one.repair.batch)
        yield one
    # Repairs came in any order: what lasts is said once, when all are there.
    sync_tree(out)


def _write(path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "xb") as file:
        file.write(data)


def _repair(source: str, copy: str, start: int, batch: bytes) -> None:
    """Puts a repaired batch into a copy of its segment, which has the same size."""
    if not os.path.exists(copy):
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copyfile(source, copy)
    with open(copy, "r+b") as file:
        file.seek(start)
        file.write(batch)


def _row(segment: str, one: Rescued, suspect: Suspect) -> dict[str, Any]:
    def text(data: bytes | None) -> str | None:
        return None if data is None else base64.b64encode(data).decode()

    return {
        "segment": segment,
        "start": one.start,
        "offset": suspect.offset,
        "timestamp": suspect.timestamp,
        "key": text(suspect.key),
        "value": text(suspect.value),
        "headers": [[key, text(value)] for key, value in suspect.headers],
    }
