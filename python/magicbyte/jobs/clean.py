"""Shared code of `compact` and `redact`: rewrites partitions without some of their records.

list -> survey (tasks) -> plan (driver) -> index keys, or select records (tasks) -> producer summary (driver)
     -> rewrite groups of segments (tasks) -> sidecars (driver)

As in `jobs/rewrite.py`, the output is published at the end, the sources are only read, and the same input
gives the same bytes on every engine.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypedDict, cast

from magicbyte import _core
from magicbyte.enums import fails_fast
from magicbyte.errors import Error, JobError
from magicbyte.jobs.cleanup_policy import LeftOut
from magicbyte.jobs.find.partitions import Inputs, SkippedDirectory, refuse_unread
from magicbyte.jobs.publish.carried import (
    Carried,
    carried_ids,
    carried_start,
    log_start_checkpoint,
    with_log_end,
)
from magicbyte.jobs.publish.certificate import certifier
from magicbyte.jobs.publish.outputs import partitions_output
from magicbyte.jobs.run.accounting import SegmentsWritten, Totals, problems_of, reconcile_plans, total_of
from magicbyte.jobs.run.engines import Engine, group_by_size
from magicbyte.jobs.run.plan import Planned, count_of, plan_partitions, target_bytes
from magicbyte.jobs.run.progress import Progress, format_bytes
from magicbyte.model import Chunk, PartitionReconciliation, Problem
from magicbyte.options.shared import CleanOptions

__all__ = [
    "CheckResult",
    "CleanReport",
    "CleanedPartition",
    "Compaction",
    "Counts",
    "Group",
    "IndexedKeys",
    "PassOne",
    "PassTwo",
    "Passes",
    "Redacted",
    "clean",
]

_WHOLE_SEGMENTS = 1 << 62
"""A chunk size that makes every segment one chunk."""
_LAST_OFFSET = (1 << 63) - 1


class Counts(TypedDict):
    """Counts of records and batches, by outcome."""

    kept: int
    superseded: int
    """Records dropped because their key has a later record."""
    expired_tombstones: int
    aborted: int
    """Records dropped because their transaction was aborted."""
    keyless: int
    """Records dropped because they have no key."""
    markers: int
    """Control records dropped because their transaction was empty and their retention time was over."""
    redacted: int
    nulled: int
    """Records redacted to tombstones; also counted as kept."""
    copied_batches: int
    rewritten_batches: int
    stripped_batches: int
    """Batches that kept all records but lost bytes that no reader returns; also counted above."""
    emptied_batches: int
    """Batches reduced to their header, which carries the state of a producer or the end of the log."""
    dropped_batches: int


class Redacted(TypedDict):
    """The redacted records of one segment of the source."""

    segment: str
    records: int
    ranges: list[tuple[int, int]]
    """First and last offset of each run of records, for the first `LISTED` runs."""
    records_left_out: int
    """The number of records in the other runs."""


class CleanedPartition(Carried):
    """The output for one partition."""

    clean_until: int
    """The offset after the last cleaned one, at which a broker's cleaner continues."""
    counts: Counts
    redacted: list[Redacted]
    records: int
    """Records written: those that were kept."""
    batches: int
    size: int
    """Bytes of all segments."""
    segments: int


class CheckResult(TypedDict):
    """The result of rereading a redaction's output: there is no leak, but the keys may occur elsewhere.

    Only keys with at least eight bytes other than zero are searched for.
    """

    files: int
    bytes: int
    records: int
    in_keys: int
    """Kept records whose longer key contains one of the keys."""
    in_values: int
    """Kept records whose value contains one of the keys."""
    in_headers: int
    """Kept records with a header that contains one of the keys."""
    in_names: int
    """Names of topics and directories that contain one of the keys."""


class CleanReport(TypedDict):
    """The content of `reconciliation.json`."""

    magicbyte: str
    sources: list[str]
    options: dict[str, Any]
    balanced: bool
    """True if the sources add up, and every record of a good batch was written or is counted as dropped."""
    total: Totals
    counts: Counts
    partitions: list[PartitionReconciliation]
    skipped: list[SkippedDirectory]
    written: list[CleanedPartition]
    left_out: list[LeftOut]
    """Partitions that are not in the output: `compact` leaves out topics that Kafka does not compact."""
    unmatched_keys: list[tuple[int, int]]
    """First and last index (from 0) of each run of the given keys that no record has."""
    check: CheckResult | None
    """None if nothing was checked: in a compaction, or if the check was turned off."""
    problems: list[Problem]
    """The first `LISTED` problems."""
    problems_left_out: int


class CleanerChunk(TypedDict):
    """A chunk on its way through the cleaner; pass it back to the core unchanged."""

    number: int
    cleaned: bool
    chunk: Chunk


class Group(TypedDict):
    """Neighbouring segments that become one; pass it back to the core unchanged."""

    base_offset: int
    cleaned: bool
    chunks: list[CleanerChunk]


class Compaction(TypedDict):
    """The cleaning and grouping of a log's segments."""

    clean_until: int
    groups: list[Group]


class IndexedKeys(TypedDict):
    """The result of the first pass over a run of chunks."""

    chunks: list[dict[str, Any]]
    producers: str
    """JSON text for `producer_summary`."""
    files: list[str | None]


class _Cleaned(SegmentsWritten):
    counts: Counts
    redacted: list[Redacted]
    matched: list[int]
    """The keys that were found, as bits: 64 to a number."""


@dataclass(frozen=True)
class PassOne:
    """A run of chunks to index."""

    topic: str
    directory: str
    """The partition's staging directory."""
    chunks: tuple[str, ...]
    size: int
    whole_log: int
    """Bytes of the partition."""


@dataclass(frozen=True)
class PassTwo:
    """A group to write."""

    topic: str
    directory: str
    group: str
    indexed: tuple[str, ...]
    summary: str
    clean_until: int
    extra: Any
    """The result of `Passes.between` for this partition."""
    size: int


class Passes(Protocol):
    """The steps that differ between compaction and redaction. Tasks get a copy of this object."""

    def plan(self, planned: Planned) -> Compaction:
        """Decides how the segments of a log are cleaned and grouped."""

    def index(self, task: PassOne) -> str:
        """The first pass over a run of chunks, in a task."""

    def between(
        self,
        engine: Engine,
        logs: Sequence[tuple[Compaction, str, Sequence[IndexedKeys]]],
        progress: Progress,
    ) -> list[Any]:
        """Prepares additional data for the second pass, one item for each log. Runs in the driver."""

    def clean(self, task: PassTwo, directory: str) -> str:
        """The second pass over a group, in a task."""

    def reported(self) -> dict[str, Any]:
        """The options as the report shows them. Runs in the driver."""

    def files(self, report: CleanReport) -> dict[str, str]:
        """The text of further files of the output, by name. Runs in the driver."""

    @property
    def expired_until(self) -> int | None:
        """Producers last heard from at this time (ms) or earlier are forgotten."""

    def unmatched(self, matched: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
        """The keys that no record has, for the report, given what the second pass found."""

    def check(
        self, directories: Mapping[str, str], report: CleanReport, engine: Engine, progress: Progress
    ) -> CheckResult | None:
        """Checks the output before it is published: the report, and the directory of each partition."""


@dataclass(frozen=True)
class _SecondPass:
    passes: Passes

    def __call__(self, task: PassTwo) -> str:
        # Each attempt has its own directory: the driver uses that of the attempt whose result it gets.
        try:
            return self.passes.clean(task, os.path.join(task.directory, f"attempt-{uuid.uuid4().hex[:12]}"))
        except Error:
            raise
        except ValueError as error:
            # The files have changed since the first pass.
            raise JobError(str(error)) from error


def clean(
    inputs: Inputs,
    out: str,
    engine: Engine,
    passes: Passes,
    progress: Progress,
    options: CleanOptions,
    *,
    left_out: Sequence[LeftOut] = (),
    command: Sequence[str] | None = None,
) -> CleanReport:
    """Rewrites every partition of `inputs` into `out`, which gets a directory for each.

    `left_out` are the partitions that the report names as left out. With `command`, the output gets a
    certificate, which names it.
    """
    listings = inputs.listings
    ids = carried_ids(inputs, options.topic_ids)
    if fails_fast(options.mode):
        refuse_unread(listings)
    with partitions_output(out, inputs.paths) as output:
        plans = plan_partitions(listings, engine, chunk_bytes=_WHOLE_SEGMENTS, progress=progress)
        compactions = [passes.plan(planned) for planned in plans]
        directories = [str(_core.begin_partition(output.target(listing))) for listing in listings]
        topics = [listing["topic"] for listing in listings]
        indexed = _first_pass(topics, compactions, directories, engine, passes, progress)
        logs = list(zip(compactions, directories, indexed, strict=True))
        extras = passes.between(engine, logs, progress)
        tasks = [
            _second_pass(listing["topic"], log, extra, passes)
            for listing, log, extra in zip(listings, logs, extras, strict=True)
        ]
        cleaned = _map(engine, _SecondPass(passes), tasks, "write", progress)
        results = [[result for one in of_log for result in one["results"]] for of_log in cleaned]
        partitions = reconcile_plans(plans, results)
        written = [
            _finish(output.target(one.listing), directory, one, compaction, of_log, ids)
            for one, directory, compaction, of_log in zip(
                plans, directories, compactions, cleaned, strict=True
            )
        ]
        report = CleanReport(
            magicbyte=_core.__version__,
            sources=list(inputs.sources),
            options=passes.reported(),
            balanced=all(map(_adds_up, partitions, written)),
            total=total_of(partitions),
            counts=_sum([partition["counts"] for partition in written]),
            partitions=partitions,
            skipped=inputs.skipped,
            written=written,
            left_out=list(left_out),
            unmatched_keys=passes.unmatched([one["matched"] for of_log in cleaned for one in of_log]),
            check=None,
            **problems_of(plans, cleaned),
        )
        targets = {f"{one['topic']}-{one['partition']}": output.target(one) for one in listings}
        report["check"] = passes.check(targets, report, engine, progress)
        certify = certifier(command, report, (one.listing for one in plans), engine, progress)
        output.commit(report, {**passes.files(report), **log_start_checkpoint(written)}, certify=certify)
    return report


def _map(
    engine: Engine, function: Any, tasks: Sequence[Sequence[Any]], verb: str, progress: Progress
) -> list[list[Any]]:
    """Runs the tasks of all partitions. Returns their results, parsed, by partition."""
    flat = [task for of_log in tasks for task in of_log]
    sizes = [task.size for task in flat]
    name = f"magicbyte {verb}: {count_of(len(flat), 'task')}, {format_bytes(sum(sizes))}"
    results = iter(engine.map(function, flat, name=name, sizes=sizes, progress=progress))
    return [[json.loads(next(results)) for _ in of_log] for of_log in tasks]


def _first_pass(
    topics: Sequence[str],
    compactions: Sequence[Compaction],
    directories: Sequence[str],
    engine: Engine,
    passes: Passes,
    progress: Progress,
) -> list[list[IndexedKeys]]:
    logs = [
        [chunk for group in compaction["groups"] for chunk in group["chunks"]] for compaction in compactions
    ]
    sizes = [[_size_of(chunk) for chunk in log] for log in logs]
    target = target_bytes(sum(map(sum, sizes)), engine.parallelism)
    tasks = [
        [
            PassOne(
                topic,
                directory,
                tuple(json.dumps(chunk) for chunk in run),
                sum(map(_size_of, run)),
                sum(own),
            )
            for run in group_by_size(log, own, target)
        ]
        for topic, log, own, directory in zip(topics, logs, sizes, directories, strict=True)
    ]
    return _map(engine, passes.index, tasks, "index", progress)


def _size_of(chunk: CleanerChunk) -> int:
    return chunk["chunk"]["end"] - chunk["chunk"]["start"]


def _second_pass(
    topic: str, log: tuple[Compaction, str, Sequence[IndexedKeys]], extra: Any, passes: Passes
) -> list[PassTwo]:
    compaction, directory, keys = log
    groups = compaction["groups"]
    starts = [group["base_offset"] for group in groups]
    bounds = [(first, end - 1) for first, end in pairwise([*starts, _LAST_OFFSET])]
    summaries = _core.producer_summary(
        [one["producers"] for one in keys], bounds, expired_until=passes.expired_until
    )
    indexed = iter([json.dumps(chunk) for one in keys for chunk in one["chunks"]])
    return [
        PassTwo(
            topic,
            directory,
            json.dumps(group),
            tuple(next(indexed) for _ in group["chunks"]),
            summary,
            compaction["clean_until"],
            extra,
            sum(map(_size_of, group["chunks"])),
        )
        for group, summary in zip(groups, summaries, strict=True)
    ]


def _finish(
    target: str,
    directory: str,
    planned: Planned,
    compaction: Compaction,
    cleaned: Sequence[_Cleaned],
    ids: Mapping[str, str],
) -> CleanedPartition:
    listing, topic_id = planned.listing, ids.get(planned.plan["topic"])
    segments = [segment for task in cleaned for segment in task["segments"]]
    segments = with_log_end(planned.plan, segments, directory)
    if segments:
        try:
            _core.finish_partition(target, segments, topic_id=topic_id, epochs_of=listing["path"])
        except ValueError as error:
            # Segments that overlap because of forged headers, or an invalid topic id.
            raise JobError(f"{listing['path']}: {error}") from error
    counts = _sum([task["counts"] for task in cleaned])
    return CleanedPartition(
        topic=listing["topic"],
        partition=listing["partition"],
        topic_id=topic_id,
        log_start_offset=carried_start(planned.plan, target),
        clean_until=compaction["clean_until"],
        counts=counts,
        records=counts["kept"],
        redacted=[one for task in cleaned for one in task["redacted"]],
        batches=sum(task["batches"] for task in cleaned),
        size=sum(task["size"] for task in cleaned),
        segments=len(segments),
    )


def _sum(counts: Sequence[Counts]) -> Counts:
    names = Counts.__annotations__
    return cast(Counts, {name: sum(cast(dict[str, int], one)[name] for one in counts) for name in names})


def _adds_up(source: PartitionReconciliation, written: CleanedPartition) -> bool:
    counts = written["counts"]
    dropped = (
        counts["superseded"]
        + counts["expired_tombstones"]
        + counts["aborted"]
        + counts["keyless"]
        + counts["markers"]
        + counts["redacted"]
    )
    read = source["announced"] - source["outside"] - source["deleted"]
    return source["balanced"] and counts["kept"] + dropped == read
