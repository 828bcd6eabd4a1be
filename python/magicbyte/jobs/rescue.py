"""The job of `magicbyte rescue`: saves what can be saved from damaged partitions."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

from magicbyte import _core
from magicbyte.damage import Rescued, Suspect, rescue
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.partitions import Inputs, SkippedDirectory, find_inputs
from magicbyte.jobs.publish.local_partitions import PartitionsOutput
from magicbyte.jobs.publish.outputs import partitions_output
from magicbyte.jobs.publish.workspace import sync_tree
from magicbyte.listing import log_start_of, unread_segments
from magicbyte.model import Problem

__all__ = ["RescueReport", "rescue_partitions"]

_REPORT = "rescue.json"


class RescuedRange(TypedDict):
    """A quarantined range in the report."""

    segment: str
    start: int
    end: int
    kind: str
    message: str
    repair: str | None
    """A description of the change that makes the batch valid, if one was found."""
    repair_is_proven: bool | None
    """True if the repair is more than a guess (see `magicbyte.damage.Repair`); None without a repair."""
    suspects: int
    """Records before the damage."""


class RescueReport(TypedDict):
    """The data that can be saved, or has been saved."""

    ranges: list[RescuedRange]
    """The first `LISTED` ranges."""
    ranges_left_out: int
    """The number of ranges that are not listed."""
    repairable: int
    """Proven repairs."""
    guesses: int
    """Unproven repairs, of batches so large that other damage may look the same."""
    suspects: int
    skipped: list[SkippedDirectory]
    problems: list[Problem]
    """Files and directories that cannot be listed or read at all."""


def rescue_partitions(
    sources: Sequence[str],
    out: str | None = None,
    *,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
    choice: PartitionChoice = EVERYTHING,
) -> RescueReport:
    """Examines every quarantined range of the partitions at and below `sources`, which are only read.

    `out`, if given, gets a directory for each partition: `raw/SEGMENT.START-END.bin` with the bytes of each
    range, `suspects.jsonl` with the records before the damage (base64), `repaired/SEGMENT.log` with a copy
    of each segment that has proven repairs, those made in place, and `guesses/SEGMENT.START-END.bin` with
    batches whose repair is a guess. The report, `rescue.json`, is written last.

    Raises:
        RefusedError: if there is nothing to read, a partition is found twice, `out` is not empty, it
            and a source overlap, or another job is writing to it.

    """
    inputs = find_inputs(sources, choice, distinct=True)
    if out is None:
        return _rescue(inputs, None, max_decompressed_bytes)
    with partitions_output(out, inputs.paths) as output:
        report = _rescue(inputs, output, max_decompressed_bytes)
        output.commit(report, name=_REPORT)
    return report


def _rescue(inputs: Inputs, output: PartitionsOutput | None, max_decompressed_bytes: int) -> RescueReport:
    report = RescueReport(
        ranges=[],
        ranges_left_out=0,
        repairable=0,
        guesses=0,
        suspects=0,
        skipped=inputs.skipped,
        problems=[],
    )
    for listing in inputs.listings:
        report["problems"] += unread_segments(listing)
        if not listing["segments"]:
            continue
        found = rescue(
            listing["path"],
            max_decompressed_bytes=max_decompressed_bytes,
            log_start_offset=log_start_of(listing),
        )
        if output is not None:
            found = _saving(found, output.target(listing))
        for rescued in found:
            repair = rescued.repair
            if repair is not None:
                report["repairable" if repair.is_proven else "guesses"] += 1
            report["suspects"] += len(rescued.suspects)
            if len(report["ranges"]) == _core.LISTED:
                report["ranges_left_out"] += 1
                continue
            report["ranges"].append(
                RescuedRange(
                    segment=rescued.segment,
                    start=rescued.start,
                    end=rescued.end,
                    kind=rescued.kind,
                    message=rescued.message,
                    repair=None if repair is None else repair.change,
                    repair_is_proven=None if repair is None else repair.is_proven,
                    suspects=len(rescued.suspects),
                )
            )
    return report


def _saving(found: Iterator[Rescued], out: str) -> Iterator[Rescued]:
    """Passes ranges on after writing the files for each."""
    for rescued in found:
        segment = os.path.basename(rescued.segment)
        name = f"{segment}.{rescued.start}-{rescued.end}.bin"
        _write(os.path.join(out, "raw", name), rescued.data)
        if rescued.suspects:
            with open(os.path.join(out, "suspects.jsonl"), "a", encoding="utf-8") as lines:
                lines.writelines(
                    f"{json.dumps(_suspect_row(segment, rescued.start, suspect))}\n"
                    for suspect in rescued.suspects
                )
        if rescued.repair is not None and not rescued.repair.is_proven:
            _write(os.path.join(out, "guesses", name), rescued.repair.batch)
        elif rescued.repair is not None:
            copy = os.path.join(out, "repaired", segment)
            _repair(rescued.segment, copy, rescued.start, rescued.repair.batch)
        yield rescued
    # Repairs are written in any order, so everything is synced once at the end.
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


def _suspect_row(segment: str, start: int, suspect: Suspect) -> dict[str, Any]:
    def text(data: bytes | None) -> str | None:
        return None if data is None else base64.b64encode(data).decode()

    return {
        "segment": segment,
        "start": start,
        "offset": suspect.offset,
        "timestamp": suspect.timestamp,
        "key": text(suspect.key),
        "value": text(suspect.value),
        "headers": [[key, text(value)] for key, value in suspect.headers],
    }
