"""What compaction and redaction share: partitions in, partitions without some of their records out.

list -> survey (tasks) -> plan (driver) -> keys, or what is selected (tasks) -> facts (driver)
     -> groups of segments written anew (tasks) -> sidecars (driver)

As for `jobs/rewrite.py`: the output gets its name last, the sources are only read, and the same input
gives the same bytes on every engine.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypedDict, cast

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.jobs.accounting import Answer, Totals, problems_of, reconcile_plans, total_of
from magicbyte.jobs.engines import Engine, group_by_size
from magicbyte.jobs.failure import JobError
from magicbyte.model import Chunk, PartitionListing, PartitionReconciliation, Problem
from magicbyte.jobs.output import PartitionsOutput
from magicbyte.jobs.partitions import list_partitions, refuse_unread
from magicbyte.jobs.plan import Planned, count_of, plan_partitions, target_bytes
from magicbyte.jobs.progress import Progress, format_bytes

__all__ = [
    "Checked",
    "CleanReport",
    "CleanedPartition",
    "Counts",
    "Group",
    "PassOne",
    "Passes",
    "Redacted",
    "clean",
]

_WHOLE_SEGMENTS = 1 << 62
"""Chunks of this size: a segment each."""
_LAST_OFFSET = (1 << 63) - 1


class Counts(TypedDict):
    """What became of records and batches."""

    kept: int
    superseded: int
    """Dropped: their key has a later record."""
    expired_tombstones: int
    aborted: int
    """Dropped: their transaction was aborted."""
    keyless: int
    """Dropped: they have no key."""
    markers: int
    """Control records dropped: nothing was left of their transaction, and their time was over."""
    redacted: int
    nulled: int
    """Redacted to tombstones; they are among the kept."""
    copied_batches: int
    rewritten_batches: int
    stripped_batches: int
    """Those of which bytes that no reader shows are gone, and no record; the others count them, too."""
    emptied_batches: int
    """Of these only the header is left, for what it says about a producer or the log's end."""
    dropped_batches: int


class Redacted(TypedDict):
    """Where redacted records stood in one segment of the source."""

    segment: str
    records: int
    ranges: list[tuple[int, int]]
    """First and last offset of each of the first `LISTED` runs."""
    records_left_out: int
    """How many of the records are in the runs after these."""


class CleanedPartition(TypedDict):
    """What was written of one partition."""

    topic: str
    partition: int
    clean_until: int
    """Behind the last offset that was cleaned: where a broker's cleaner goes on."""
    counts: Counts
    redacted: list[Redacted]
    batches: int
    size: int
    """Bytes of all segments."""
    segments: int


class Checked(TypedDict):
    """What a redaction found when it read again what it had written: no leak, and where else the keys are.

    Searched for are keys with at least eight bytes that are not zero.
    """

    files: int
    bytes: int
    records: int
    in_keys: int
    """Records kept whose own, longer key holds one of the keys."""
    in_values: int
    """Records kept whose value does."""
    in_headers: int
    """Records kept of which a header does."""
    in_names: int
    """Names of topics and directories that do."""


class CleanReport(TypedDict):
    """The content of `reconciliation.json`."""

    magicbyte: str
    sources: list[str]
    options: dict[str, Any]
    balanced: bool
    """The sources add up, and every record of a good batch was written or is in another count."""
    total: Totals
    counts: Counts
    partitions: list[PartitionReconciliation]
    written: list[CleanedPartition]
    unmatched_keys: list[tuple[int, int]]
    """First and last place (from 0) of each run of keys that no record has, among the keys given."""
    check: Checked | None
    """None if nothing was checked: in a compaction, or where that was turned off."""
    problems: list[Problem]
    """The first `LISTED`."""
    problems_left_out: int


class CleanerChunk(TypedDict):
    """A chunk on its way through the cleaner; hand it back to the core as it is."""

    number: int
    cleaned: bool
    chunk: Chunk


class Group(TypedDict):
    """Neighbouring segments that become one; hand it back to the core as it is."""

    base_offset: int
    cleaned: bool
    chunks: list[CleanerChunk]


class Compaction(TypedDict):
    """What becomes of a log's segments."""

    clean_until: int
    groups: list[Group]


class IndexedKeys(TypedDict):
    """What the first pass learned of a run of chunks."""

    chunks: list[dict[str, Any]]
    producers: str
    """JSON text for `log_facts`."""
    files: list[str | None]


class _Cleaned(Answer):
    counts: Counts
    redacted: list[Redacted]
    matched: list[int]
    """The keys that were found, a bit each, 64 in a number."""


@dataclass(frozen=True)
class PassOne:
    """A run of chunks to index."""

    directory: str
    """The partition's hidden directory."""
    chunks: tuple[str, ...]
    size: int
    whole_log: int
    """Bytes of the partition."""


@dataclass(frozen=True)
class PassTwo:
    """A group to write."""

    directory: str
    group: str
    indexed: tuple[str, ...]
    facts: str
    clean_until: int
    found: Any
    """What the middle of the job found for this partition."""
    size: int


class Passes(Protocol):
    """What differs between compaction and redaction. It goes to the tasks with them."""

    def plan(self, planned: Planned) -> Compaction:
        """What becomes of the log's segments."""

    def index(self, task: PassOne) -> str:
        """Runs in a task: the first pass over a run of chunks."""

    def between(
        self,
        engine: Engine,
        logs: Sequence[tuple[Compaction, str, Sequence[IndexedKeys]]],
        progress: Progress,
    ) -> list[Any]:
        """Runs in the driver: for each log what its second pass needs besides."""

    def clean(self, task: PassTwo, directory: str) -> str:
        """Runs in a task: the second pass over a group."""

    @property
    def expired_until(self) -> int | None:
        """Producers last heard of at this time (ms) or before are forgotten."""

    def unmatched(self, matched: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
        """For the report: which keys nobody has, after what the second pass found."""

    def check(
        self, directories: Mapping[str, str], report: CleanReport, engine: Engine, progress: Progress
    ) -> Checked | None:
        """Looks at what is about to get its name: each partition, where it is now, and the report."""


@dataclass(frozen=True)
class _Second:
    passes: Passes

    def __call__(self, task: PassTwo) -> str:
        # An attempt has a directory of its own: of several, the driver takes the one it hears of.
        try:
            return self.passes.clean(task, os.path.join(task.directory, f"attempt-{uuid.uuid4().hex[:12]}"))
        except Error:
            raise
        except ValueError as error:
            # The files are not what they were.
            raise JobError(str(error)) from error


def clean(
    sources: Sequence[str],
    out: str,
    engine: Engine,
    passes: Passes,
    progress: Progress,
    *,
    options: dict[str, Any],
    topic_ids: dict[str, str],
    fail_fast: bool,
    files: Callable[[CleanReport], dict[str, str]] = lambda _report: {},
) -> CleanReport:
    """Writes every partition at and below `sources` anew into `out`, a directory a partition.

    `options` are for the report; `files` gives what else belongs into `out`, by name.
    """
    listings = list_partitions(sources, distinct=True)
    if fail_fast:
        refuse_unread(listings)
    with PartitionsOutput(out, [*sources, *(listing["path"] for listing in listings)]) as output:
        plans = plan_partitions(listings, engine, chunk_bytes=_WHOLE_SEGMENTS, progress=progress)
        compactions = [passes.plan(planned) for planned in plans]
        places = [str(_core.begin_partition(output.target(listing))) for listing in listings]
        indexed = _first_pass(compactions, places, engine, passes, progress)
        logs = list(zip(compactions, places, indexed, strict=True))
        found = passes.between(engine, logs, progress)
        tasks = [
            _second_tasks(compaction, place, answers, extra, passes)
            for (compaction, place, answers), extra in zip(logs, found, strict=True)
        ]
        cleaned = _map(engine, _Second(passes), tasks, "write", progress)
        results = [[result for one in of_log for result in one["results"]] for of_log in cleaned]
        partitions = reconcile_plans(plans, results)
        written = [
            _finish(output.target(listing), listing, compaction, of_log, topic_ids)
            for listing, compaction, of_log in zip(listings, compactions, cleaned, strict=True)
        ]
        report = CleanReport(
            magicbyte=_core.__version__,
            sources=list(sources),
            options=options,
            balanced=all(map(_adds_up, partitions, written)),
            total=total_of(partitions),
            counts=_sum([one["counts"] for one in written]),
            partitions=partitions,
            written=written,
            unmatched_keys=passes.unmatched([one["matched"] for of_log in cleaned for one in of_log]),
            check=None,
            **problems_of(plans, cleaned),
        )
        targets = {f"{one['topic']}-{one['partition']}": output.target(one) for one in listings}
        report["check"] = passes.check(targets, report, engine, progress)
        output.commit(report, files(report))
    return report


def _map(
    engine: Engine, function: Any, tasks: Sequence[Sequence[Any]], verb: str, progress: Progress
) -> list[list[Any]]:
    """Runs the tasks of all partitions; what they answer, parsed, by partition."""
    flat = [task for of_log in tasks for task in of_log]
    sizes = [task.size for task in flat]
    name = f"magicbyte {verb}: {count_of(len(flat), 'task')}, {format_bytes(sum(sizes))}"
    done = iter(engine.map(function, flat, name=name, sizes=sizes, progress=progress))
    return [[json.loads(next(done)) for _ in of_log] for of_log in tasks]


def _first_pass(
    compactions: Sequence[Compaction],
    places: Sequence[str],
    engine: Engine,
    passes: Passes,
    progress: Progress,
) -> list[list[IndexedKeys]]:
    logs = [[chunk for group in one["groups"] for chunk in group["chunks"]] for one in compactions]
    sizes = [[_size_of(chunk) for chunk in log] for log in logs]
    target = target_bytes(sum(map(sum, sizes)), engine.parallelism)
    tasks = [
        [
            PassOne(
                place,
                tuple(json.dumps(chunk) for chunk in run),
                sum(map(_size_of, run)),
                sum(own),
            )
            for run in group_by_size(log, own, target)
        ]
        for log, own, place in zip(logs, sizes, places, strict=True)
    ]
    return _map(engine, passes.index, tasks, "index", progress)


def _size_of(chunk: CleanerChunk) -> int:
    return chunk["chunk"]["end"] - chunk["chunk"]["start"]


def _second_tasks(
    compaction: Compaction, place: str, answers: Sequence[IndexedKeys], found: Any, passes: Passes
) -> list[PassTwo]:
    groups = compaction["groups"]
    starts = [group["base_offset"] for group in groups]
    bounds = [(first, behind - 1) for first, behind in pairwise([*starts, _LAST_OFFSET])]
    facts = _core.log_facts([one["producers"] for one in answers], bounds, expired_until=passes.expired_until)
    indexed = iter([json.dumps(chunk) for one in answers for chunk in one["chunks"]])
    return [
        PassTwo(
            place,
            json.dumps(group),
            tuple(next(indexed) for _ in group["chunks"]),
            own_facts,
            compaction["clean_until"],
            found,
            sum(map(_size_of, group["chunks"])),
        )
        for group, own_facts in zip(groups, facts, strict=True)
    ]


def _finish(
    target: str,
    listing: PartitionListing,
    compaction: Compaction,
    answers: Sequence[_Cleaned],
    topic_ids: dict[str, str],
) -> CleanedPartition:
    segments = [segment for answer in answers for segment in answer["segments"]]
    if segments:
        try:
            topic_id = topic_ids.get(listing["topic"])
            _core.finish_partition(target, segments, topic_id=topic_id, epochs_of=listing["path"])
        except ValueError as error:
            # Segments that overlap behind forged headers, or no topic id.
            raise JobError(f"{listing['path']}: {error}") from error
    return CleanedPartition(
        topic=listing["topic"],
        partition=listing["partition"],
        clean_until=compaction["clean_until"],
        counts=_sum([answer["counts"] for answer in answers]),
        redacted=[one for answer in answers for one in answer["redacted"]],
        batches=sum(answer["batches"] for answer in answers),
        size=sum(answer["size"] for answer in answers),
        segments=len(segments),
    )


def _sum(counts: Sequence[Counts]) -> Counts:
    names = Counts.__annotations__
    return cast(Counts, {name: sum(cast(dict[str, int], one)[name] for one in counts) for name in names})


def _adds_up(source: PartitionReconciliation, written: CleanedPartition) -> bool:
    counts = written["counts"]
    gone = (
        counts["superseded"]
        + counts["expired_tombstones"]
        + counts["aborted"]
        + counts["keyless"]
        + counts["markers"]
        + counts["redacted"]
    )
    return source["balanced"] and counts["kept"] + gone == source["announced"] - source["outside"]
