"""The job of `magicbyte audit --misrouted`: finds batches that a producer put into the wrong topic.

Java producers from 2.8 to 4.1.1 could use the buffer of a batch again while the batch was still sent
(KAFKA-19012, CVE-2026-35554): the broker then appended another topic's batch, whose CRC holds.

list -> headers (tasks) -> plan -> join copies -> compare their records (tasks) -> judge
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypedDict

from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.jobs.auditing.copies import RULES, find_copies
from magicbyte.jobs.auditing.headers import HeaderTable, open_headers
from magicbyte.jobs.auditing.likeness import Likeness
from magicbyte.jobs.auditing.schema_ids import find_foreign_schemas
from magicbyte.jobs.auditing.verdicts import (
    STRENGTHS,
    SharingTopics,
    Strength,
    find_filled_gaps,
    find_sharing,
    judge_copies,
)
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.offset_ranges import OFFSETS_START, OffsetRange, write_offsets
from magicbyte.jobs.find.partitions import SkippedDirectory, find_inputs
from magicbyte.jobs.publish.single_files import check_replaceable
from magicbyte.jobs.run.accounting import listed
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.plan import Planned, plan_partitions
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.schemas import open_registry
from magicbyte.model import Problem
from magicbyte.options.audit import AuditOptions
from magicbyte.options.declare import flag_of
from magicbyte.schema.registry import StoredRegistry

__all__ = ["AuditReport", "BatchPlace", "MisroutedBatch", "SharedTopics", "audit_misrouted"]


class BatchPlace(TypedDict):
    """The place of a batch, or of a gap in a producer's sequence."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    """Inclusive. Of a gap, the last offset before it and the first one after it, which are the producer's."""
    path: str | None
    """The file; None for a gap."""
    position: int | None
    """The first byte of the batch in the file; None for a gap."""


class MisroutedBatch(BatchPlace):
    """A batch that is in another topic than its own, or may be."""

    records: int
    size: int
    """Bytes as stored."""
    max_timestamp: int
    """Milliseconds; the broker's clock with LogAppendTime."""
    producer_id: int
    """-1 for none."""
    producer_epoch: int
    base_sequence: int
    strength: Strength
    evidence: list[str]
    """Names of `magicbyte.jobs.auditing.verdicts.EVIDENCE`."""
    belongs_to: BatchPlace | None
    """The batch of the other topic that it is a copy of, or the gap that it fills; None if only its schema
    id tells."""


class SharedTopics(TypedDict):
    """Two topics that have many batches in common, such as a topic and its retries: none is a finding."""

    topics: tuple[str, str]
    batches: int
    """The batches that both have."""
    of_batches: int
    """All batches of the smaller topic."""


class AuditReport(TypedDict):
    """The result of an audit for misrouted batches."""

    sources: list[str]
    topics: int
    partitions: int
    batches: int
    """All batches."""
    other_batches: int
    """The batches that are not audited: batches of magic 0 and 1, which these producers did not write to
    brokers of their time, control batches, batches without records, and batches before the start of their
    log."""
    compared_batches: int
    """The batches whose records were compared."""
    misrouted: list[MisroutedBatch]
    """The first `LISTED` findings, by strength, topic, partition and offset."""
    misrouted_count: int
    by_strength: dict[Strength, int]
    sharing: list[SharedTopics]
    skipped: list[SkippedDirectory]
    problems: list[Problem]
    """The first `LISTED` problems: batches in damaged bytes are not audited, and those that may be misrouted
    but cannot be read are `not_compared`."""
    problems_left_out: int


_BEST = """
CREATE TABLE best AS
SELECT * FROM findings
QUALIFY row_number() OVER (
    PARTITION BY log, baseOffset ORDER BY strength, rule, of_log, of_first
) = 1
"""


@dataclass(frozen=True)
class _Audit:
    """An audit whose joins are done."""

    headers: HeaderTable
    plans: Sequence[Planned]
    sharing: Sequence[SharingTopics]
    compared: int
    problems: Sequence[Problem]
    """Problems of the records that were decoded."""

    def findings(self) -> Iterator[MisroutedBatch]:
        """All findings, by strength, topic, partition and offset."""
        with self.headers.database.cursor() as cursor:
            cursor.execute("FROM best ORDER BY strength, topic, log, baseOffset")
            names = [column[0] for column in cursor.description or ()]
            while rows := cursor.fetchmany(1000):
                for row in rows:
                    yield self._finding(dict(zip(names, row, strict=True)))

    def offsets(self) -> Iterator[OffsetRange]:
        """The offsets of findings that are more than possible, by topic, partition and offset."""
        with self.headers.database.cursor() as cursor:
            possible = STRENGTHS.index("possible")
            cursor.execute(
                "SELECT log, baseOffset, lastOffset FROM best WHERE strength < ?"
                " ORDER BY topic, log, baseOffset",
                [possible],
            )
            while rows := cursor.fetchmany(1000):
                for log, first, last in rows:
                    listing = self.plans[log].listing
                    yield OffsetRange(listing["topic"], listing["partition"], first, last)

    def unread(self) -> Iterator[Problem]:
        """The batches that may be copies, but were not compared."""
        with self.headers.database.cursor() as cursor:
            cursor.execute(
                "SELECT log, segment, position, size, baseOffset"
                " FROM unread JOIN headers USING (segment, position) ORDER BY topic, log, baseOffset"
            )
            while rows := cursor.fetchmany(1000):
                for log, segment, position, size, first in rows:
                    listing = self.plans[log].listing
                    yield Problem(
                        topic=listing["topic"],
                        partition=listing["partition"],
                        segment=self.headers.segments[segment]["file"],
                        kind="not_compared",
                        start=position,
                        end=position + size,
                        base_offset=first,
                        record_index=None,
                        field=None,
                        first_lost_offset=None,
                        last_lost_offset=None,
                        message="the records of a batch that may be misrouted cannot be read: they are"
                        " damaged, larger than max_decompressed_bytes, or have changed since the scan",
                    )

    def counts(self) -> dict[Strength, int]:
        rows = self.headers.database.execute("SELECT strength, count(*) FROM best GROUP BY ALL").fetchall()
        counts = dict(rows)
        return {name: counts.get(number, 0) for number, name in enumerate(STRENGTHS)}

    def _place(
        self, log: int, segment: int | None, position: int | None, first: int, last: int
    ) -> BatchPlace:
        listing = self.plans[log].listing
        return BatchPlace(
            topic=listing["topic"],
            partition=listing["partition"],
            first_offset=first,
            last_offset=last,
            path=None if segment is None else self.headers.segments[segment]["path"],
            position=position,
        )

    def _finding(self, row: dict[str, Any]) -> MisroutedBatch:
        evidence = [] if row["rule"] < 0 else [list(RULES)[row["rule"]].removesuffix("_shifted")]
        return MisroutedBatch(
            **self._place(row["log"], row["segment"], row["position"], row["baseOffset"], row["lastOffset"]),
            records=row["count"],
            size=row["size"],
            max_timestamp=row["maxTimestamp"],
            producer_id=row["producerId"],
            producer_epoch=row["producerEpoch"],
            base_sequence=row["baseSequence"],
            strength=STRENGTHS[row["strength"]],
            evidence=[*evidence, *filter(None, [row["evidence"]])],
            belongs_to=None
            if row["of_log"] is None
            else self._place(
                row["of_log"], row["of_segment"], row["of_position"], row["of_first"], row["of_last"]
            ),
        )


def audit_misrouted(
    sources: Sequence[str],
    options: AuditOptions,
    *,
    offsets_out: str | None = None,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> AuditReport:
    """Finds batches that are in another topic than their own, in the partitions at and below `sources`.

    Reads the headers of all batches, and the records of those that may be copies. Writes the offsets of the
    findings that are more than possible to the file `offsets_out`, for `redact`. Memory: `memory_limit`, and
    some MiB for each thread.

    Raises:
        RefusedError: if there is nothing to read, a partition is found twice, there is no registry, or there
            is another file at `offsets_out`.
        RegistryError: if a live registry does not answer as one does.
        JobError: if the joins need more memory than the limit, or the disk for them is full.

    """
    if options.http is not None and options.schema_registry is None:
        needed, without = flag_of(AuditOptions, "schema_registry"), flag_of(AuditOptions, "http")
        raise RefusedError(f"{without} needs {needed}")
    if offsets_out is not None:
        check_replaceable(offsets_out, OFFSETS_START, "a file of offsets that audit has written", sources)
    registry = None
    if options.schema_registry is not None:
        registry = open_registry([options.schema_registry], http=options.http)[1].snapshot()
    inputs = find_inputs(sources, choice, distinct=True)
    engine = LocalEngine(options.threads)
    with open_headers(options, engine) as headers:
        plans = plan_partitions(
            inputs.listings,
            engine,
            surveyor=lambda listings, _engine, of_progress: headers.survey(listings, engine, of_progress),
            progress=progress,
        )
        audit = _judged(headers, plans, engine, options, progress, registry)
        if offsets_out is not None:
            write_offsets(offsets_out, audit.offsets())
        counts = audit.counts()
        (rows,) = headers.database.execute("SELECT count(*) FROM headers").fetchone() or (0,)
        problems = [problem for planned in plans for problem in planned.plan["problems"]]
        problems += [*audit.unread(), *audit.problems]
        return AuditReport(
            sources=list(sources),
            topics=len(headers.topics),
            partitions=len(plans),
            batches=headers.batches,
            other_batches=headers.batches - rows,
            compared_batches=audit.compared,
            misrouted=list(islice(audit.findings(), _core.LISTED)),
            misrouted_count=sum(counts.values()),
            by_strength=counts,
            sharing=[
                SharedTopics(topics=(one.first, one.second), batches=one.batches, of_batches=one.of_batches)
                for one in audit.sharing
            ],
            skipped=inputs.skipped,
            **listed(problems, 0),
        )


def _judged(
    headers: HeaderTable,
    plans: Sequence[Planned],
    engine: LocalEngine,
    options: AuditOptions,
    progress: Progress,
    registry: StoredRegistry | None,
) -> _Audit:
    headers.drop_deleted(plans)
    limit = options.max_decompressed_bytes
    compared = find_copies(headers, engine, limit, progress)
    sharing = find_sharing(headers)
    chunks = {chunk["path"]: chunk for planned in plans for chunk in planned.plan["chunks"]}
    judge_copies(headers, Likeness(headers, chunks, limit))
    find_filled_gaps(headers)
    undecoded: list[Problem] = []
    if options.schema_ids or registry is not None:
        undecoded = find_foreign_schemas(headers, plans, engine, limit, registry, progress)
    headers.database.execute(_BEST)
    return _Audit(headers, plans, sharing, compared, undecoded)
