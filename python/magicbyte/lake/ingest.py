"""The job of `magicbyte ingest --format delta|iceberg`: what is new in a log becomes one commit.

list -> survey (tasks) -> plan from the table's offsets -> decode and write (tasks) -> commit (driver)
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial

import pyarrow as pa

from magicbyte import _core
from magicbyte.enums import PartitionBy
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.lineage import EpochStart, LogLineage
from magicbyte.jobs.find.log_dirs import log_dir_reports
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.ingest import (
    CommitReport,
    CommittedPartition,
    IngestOptions,
    IngestReport,
    ManifestRow,
    RepairedRange,
    TableSum,
    check_options,
    read_options,
)
from magicbyte.jobs.internal_tables import InternalTopicsReport
from magicbyte.jobs.publish.workspace import check_apart
from magicbyte.jobs.run.accounting import reconcile_partitions, total_of
from magicbyte.jobs.run.columns import RECORDS_WITH_METADATA
from magicbyte.jobs.run.decode_partitions import decode_partitions
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.high_watermarks import high_watermarks, partitions_above
from magicbyte.jobs.run.holes import Hole, joined, uncovered
from magicbyte.jobs.run.plan import (
    LARGEST_TARGET,
    DecodeTask,
    Planned,
    Range,
    Surveyor,
    plan_partitions,
    survey,
)
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.run.reading import HighWatermarks, ReadOptions
from magicbyte.jobs.run.sums import RecordSum, RecordSums, TopicPartition
from magicbyte.jobs.typed import column_decoders
from magicbyte.lake.checked import Checked
from magicbyte.lake.delta import DeltaTable
from magicbyte.lake.differences import TableRows
from magicbyte.lake.divergence import DivergedError, Divergence, LineageCheck
from magicbyte.lake.growth import refuse_types
from magicbyte.lake.iceberg import IcebergTable
from magicbyte.lake.job_files import JobFiles, LocalJobFiles
from magicbyte.lake.losses import (
    gap_before,
    holes_in,
    refuse_losses,
    remembered_holes,
    undecoded_in,
    without_ends,
)
from magicbyte.lake.ranges import OffsetRange
from magicbyte.lake.repair import MAX_OFFSET, Repair, plan_repair, segments_for
from magicbyte.lake.rewrite import Rewritten, rewrite_without
from magicbyte.lake.state import PartitionState
from magicbyte.lake.stored_job_files import StoredJobFiles
from magicbyte.lake.table import (
    Commit,
    ConflictError,
    TableOptions,
    TableTarget,
    TransactionalTable,
    UnsettledError,
)
from magicbyte.lake.write import LakeWriteOptions, Written, write_task
from magicbyte.listing import known_topic_id
from magicbyte.model import LeaderEpoch, PartitionListing, PartitionPlan, PartitionReconciliation, Problem
from magicbyte.storage.paths import is_url

__all__ = ["ingest_table"]

_ATTEMPTS = 8
"""The number of attempts at a commit, if other jobs commit to the table as well."""
_WAIT_SECONDS = 0.2
_LOG_PER_FILE = 8
"""The maximum input of a task, in sizes of a file: rows may be smaller than the log by this factor."""


def ingest_table(
    sources: Sequence[str],
    target: TableTarget,
    engine: Engine,
    options: IngestOptions,
    progress: Progress = NO_PROGRESS,
    *,
    partition_by: PartitionBy = "topic",
    choice: PartitionChoice = EVERYTHING,
    surveyor: Surveyor = survey,
    whole: bool = False,
    above_high_watermark: bool = True,
    checked: Checked | None = None,
) -> IngestReport:
    """Adds the records of every partition at and below `sources` that the table does not have yet.

    The table is created if it is not there. A partition is continued at the offset that the table's own
    commits name, so a job that is repeated, or killed and repeated, adds nothing twice.

    Args:
        sources: see `jobs.ingest.ingest`, also for the arguments that are not listed here.
        target: the table.
        engine: where the tasks run.
        options: which records the table has, and how.
        progress: where to report progress.
        partition_by: how the table's files are partitioned.
        choice: which partitions to read.
        surveyor: surveys the segments.
        whole: for a log that is being written: its last batch may be there in part, and nothing is added if
            a file, or offsets between the files, are missing. Otherwise they are problems, as damage is.
        above_high_watermark: add the records, too, that may not be replicated. Otherwise a broker's partition
            ends at its high watermark.
        checked: the partitions that an earlier job has compared with their logs; updated.

    Raises:
        RefusedError: as for `jobs.ingest.ingest`, or if the table was made with other options.
        DivergedError: logs are not those that the table continues; not with `options.repair`.
        UnsettledError: if another job has added the same records meanwhile; for `whole`.
        JobError: if the expression fails for a record.

    """
    check_options(options)
    if options.overwrite:
        raise RefusedError("a table is never overwritten: a job adds to it what is new")
    made = _table_options(options, partition_by)
    inputs = find_inputs(sources, choice, distinct=True, assigned=True)
    marks = high_watermarks(inputs.listings, required=not above_high_watermark)

    @cache
    def read() -> ReadOptions:
        # Called only if there are records, since it queries a registry. This is after the log was listed, so
        # that the registry knows the schemas of all records.
        topics = {one["topic"] for one in inputs.listings}
        decoders = column_decoders(options.typed, topics)
        found = read_options(options, decoders, high_watermarks=marks, digests=True)
        refuse_types(target.name, found.records_schema)
        return found

    table = _open(target, lambda: read().records_schema, made)
    check_apart(table.data, inputs.paths)
    table.options.check(table.name, made)
    files: JobFiles = StoredJobFiles(table.data) if is_url(table.data) else LocalJobFiles(table.data)
    keep: bool | None = False
    try:
        orphans = files.remove_orphans(table)
        table.refresh()
        job = _Job(
            table=table,
            directory=files.name,
            listings=inputs.listings,
            clusters={one.path: one.cluster_id for one in inputs.log_dirs},
            engine=engine,
            options=options,
            read=read,
            progress=progress,
            surveyor=surveyor,
            whole=whole,
            limits={} if above_high_watermark else marks,
        )
        checked = Checked() if checked is None else checked
        commit = job.run(files.job, sources, checked)
        if commit.states:
            files.complete(commit.files)
            keep = None
            moved = _commit(table, commit, job.states, files.name)
            keep = moved is None
            if moved is not None:
                raise UnsettledError(
                    f"{table.name}: another job has changed {moved[0]}-{moved[1]} meanwhile, "
                    "so nothing is added: run it again"
                )
            checked.advance(commit.states)
    except UnsettledError:
        keep = False
        raise
    finally:
        files.close(keep=keep)
    total = total_of(job.partitions)
    total["problems"] += job.other_problems
    added = [file for one in job.written for file in one.files]
    return IngestReport(
        magicbyte=_core.__version__,
        format=target.format,
        sources=list(sources),
        isolation_level=options.isolation_level,
        ranges=asdict(options.ranges),
        where=options.where,
        key_as=options.key_as,
        value_as=options.value_as,
        key_format=options.typed.key_format,
        value_format=options.typed.value_format,
        schema_registry=options.typed.schema_registry,
        balanced=True,
        total=total,
        tables={
            "records": TableSum(
                files=len(added), rows=sum(one.rows for one in added), size=sum(one.size for one in added)
            )
        },
        partitions=job.partitions,
        skipped=inputs.skipped,
        log_dirs=log_dir_reports(inputs.log_dirs, [one.plan for one in job.plans], job.partitions),
        above_high_watermark=partitions_above(
            job.plans, marks, (text for one in job.written for text in one.results)
        ),
        internal_topics=InternalTopicsReport(pending_offsets=0, problems=[]),
        files=[
            ManifestRow(table="records", topic=one.topic, path=one.path, rows=one.rows, size=one.size)
            for one in added
        ],
        commit=CommitReport(
            table=table.name,
            version=table.version,
            job=commit.job if commit.states else None,
            partitions=list(commit.partitions),
            repaired=job.repaired,
            orphans=orphans,
            problems=job.problems[: _core.LISTED],
            problems_left_out=job.left_out + len(job.problems[_core.LISTED :]),
        ),
    )


@dataclass
class _Job:
    """One job, until there is something to commit."""

    table: TransactionalTable
    directory: str
    listings: Sequence[PartitionListing]
    clusters: Mapping[str, str | None]
    """The cluster ids of brokers' directories, by path."""
    engine: Engine
    options: IngestOptions
    read: Callable[[], ReadOptions]
    progress: Progress
    surveyor: Surveyor
    whole: bool
    limits: HighWatermarks
    """The offsets where partitions end (exclusive) before the ends of their logs."""
    states: dict[TopicPartition, PartitionState] = field(init=False)
    """The states of the table's partitions when the job began."""
    repair: Repair = field(init=False, default_factory=Repair)
    ends: dict[TopicPartition, int] = field(init=False, default_factory=dict)
    """The offsets at which the next job starts."""
    schema: pa.Schema = field(init=False, default_factory=lambda: pa.schema([]))
    plans: list[Planned] = field(init=False, default_factory=list)
    written: list[Written] = field(init=False, default_factory=list)
    partitions: list[PartitionReconciliation] = field(init=False, default_factory=list)
    undecoded: Mapping[TopicPartition, tuple[Hole, ...]] = field(init=False, default_factory=dict)
    """Rows whose schemas were unknown."""
    problems: list[Problem] = field(init=False, default_factory=list)
    left_out: int = field(init=False, default=0)
    other_problems: int = field(init=False, default=0)
    """The number of problems that no partition has counted."""
    repaired: list[RepairedRange] = field(init=False, default_factory=list)

    def run(self, job: str, sources: Sequence[str], checked: Checked) -> Commit:
        """Reads the new records, and those to repair; returns the commit."""
        self.states = self.table.states([_place(one) for one in self.listings])
        if self.options.repair:
            self._plan_repair(checked)
        self._decode()
        if not self.options.repair and (found := self._divergences(self.plans, checked)):
            raise DivergedError(self.table.name, found)
        self._judge_problems()
        sums = RecordSums()
        sums.add_all(one.sums for one in self.written)
        if not (
            all(one["balanced"] for one in self.partitions)
            and _rows_agree(self.partitions, sums, self.written)
        ):
            raise JobError(
                f"{self.table.name}: the sum of bytes and records does not add up: nothing is committed"
            )
        states = {
            place: self._state(listing, planned)
            for listing, planned in zip(self.listings, self.plans, strict=True)
            if self.ends[place := _place(listing)] > (self._start(place) or 0)
            or place in self.repair.divergences
        }
        replaced = self._replace(states, sums)
        remembered = [
            problem
            for one in self.listings
            for problem in remembered_holes(one, self._kept_holes(one, states))
        ]
        self.problems = [*remembered, *self.problems]
        self.other_problems += len(remembered)
        return Commit(
            job=job,
            magicbyte=_core.__version__,
            sources=list(sources),
            partitions=[self._committed(place, state, sums) for place, state in states.items()],
            files=[*(file for one in self.written for file in one.files), *replaced.kept],
            schema=self.schema,
            states=states,
            before=self.states,
            replaced=replaced.replaced,
        )

    def _start(self, place: TopicPartition) -> int | None:
        return self.repair.start(place, self.states.get(place))

    def _from_start(self) -> list[PartitionListing]:
        return [_from_offset(one, self._start(_place(one)) or 0) for one in self.listings]

    def _plan_repair(self, checked: Checked) -> None:
        plans = plan_partitions(self._from_start(), self.engine, isolation_level=self.options.isolation_level)
        found = self._divergences(plans, checked)
        self.repair = plan_repair(self.table, self.listings, self.states, found)

    def _divergences(self, plans: Sequence[Planned], checked: Checked) -> list[Divergence]:
        check = LineageCheck(
            self.table, self.states, self.engine, self.options.max_decompressed_bytes, self.clusters
        )
        ends = {_place(one.plan): _log_end(one) for one in plans}
        return check.divergences(self.listings, plans, ends, checked)

    def _begin(self) -> Callable[[DecodeTask], Written]:
        _refuse_empty_columns(self.table, self.read().records_schema)
        self.schema = self.table.file_schema(self.read().records_schema)
        return partial(write_task, options=self._write_options(self.read(), self.schema))

    def _write_options(self, read: ReadOptions, schema: pa.Schema) -> LakeWriteOptions:
        return LakeWriteOptions(
            read,
            self.table.data,
            self.directory,
            schema,
            self.table.options.partition_by == "day",
            self.options.codec,
            ("key",) if self.options.bloom_filter else (),
            self.options.target_file_size,
        )

    def _decode(self) -> None:
        """Reads each partition from where the table ends, or diverges."""
        listings = self._from_start()

        def find_end(planned: Planned) -> None:
            place = _place(planned.plan)
            self.ends[place] = _end(planned, self._start(place) or 0, self.options, self.limits.get(place))

        def bounds(planned: Planned) -> Range:
            place = _place(planned.plan)
            return _bounds(self._start(place) or 0, self.options, self.limits.get(place))

        self.plans, self.written = decode_partitions(
            self._begin,
            listings,
            self.engine,
            verb="ingest",
            accounts_of=lambda written: written.results,
            surveyor=self.surveyor,
            isolation_level=self.options.isolation_level,
            bounds=bounds,
            narrow=lambda listing: _from_offset(listing, self._start(_place(listing)) or 0),
            check=find_end,
            most_task_bytes=max(LARGEST_TARGET, _LOG_PER_FILE * self.options.target_file_size),
            progress=self.progress,
        )
        self.undecoded = undecoded_in(self.written)
        self.partitions = reconcile_partitions(
            self.plans, (text for one in self.written for text in one.results)
        )

    def _judge_problems(self) -> None:
        """Collects the problems, and refuses those that a job must not pass."""
        places = map(_place, self.listings)
        starts = {place: start for place in places if (start := self._start(place)) is not None}
        gaps = [
            gap
            for one in self.plans
            for gap in gap_before(one.plan, starts.get(_place(one.plan)), self.options.ranges)
        ]
        self.other_problems = len(gaps)
        self.problems = [*gaps, *_problems(self.plans, self.written)]
        self.left_out = sum(one.problems_left_out for one in self.written)
        if self.whole:
            self.problems = list(without_ends(self.problems, self.partitions))
            refuse_losses(self.table.name, self.problems, self.left_out, starts)
        for listing in self.listings if self.options.fail_on_missing else ():
            for hole in self._new_holes(listing):
                raise JobError(
                    f"{self.table.name}: nothing is committed, since records of "
                    f"{listing['topic']}-{listing['partition']} are missing (--fail-on-missing), the first "
                    f"ones of the offsets {hole.start}..={hole.end - 1}"
                )

    def _new_holes(self, listing: PartitionListing) -> tuple[Hole, ...]:
        """The offsets that this job passes without having read or decoded their records."""
        place = _place(listing)
        start = max(self._start(place) or 0, self.options.ranges.start_offset or 0)
        end = self.ends[place]
        if self.left_out:
            counted = sum(one["problems"] for one in self.partitions if _place(one) == place)
            listed = sum((one["topic"], one["partition"]) == place for one in self.problems)
            if counted > listed:
                return (Hole(start, end),) if start < end else ()
        return joined([*holes_in(self.problems, listing, start, end), *self.undecoded.get(place, ())])

    def _state(self, listing: PartitionListing, planned: Planned) -> PartitionState:
        place = _place(listing)
        before = self.states.get(place)
        if before is not None and (divergence := self.repair.divergences.get(place)) is not None:
            holes = tuple(uncovered(before.holes, divergence.offset, MAX_OFFSET))
            before = PartitionState(divergence.offset, holes=holes)
        before = before or PartitionState(0)
        log = LogLineage(
            known_topic_id(listing),
            self.clusters.get(os.path.dirname(listing["path"])),
            tuple(EpochStart(one["epoch"], one["start_offset"]) for one in planned.plan["leader_epochs"]),
            _log_end(planned),
        )
        end = self.ends[place]
        holes = joined([*before.holes, *self._new_holes(listing)])
        return PartitionState(end, log.before(end, before.lineage), holes)

    def _kept_holes(
        self, listing: PartitionListing, states: Mapping[TopicPartition, PartitionState]
    ) -> list[Hole]:
        """The holes that earlier jobs have left and that stay."""
        place = _place(listing)
        before, after = self.states.get(place), states.get(place)
        if before is None or after is None:
            return [] if before is None else list(before.holes)
        kept = [
            Hole(max(one.start, hole.start), min(one.end, hole.end))
            for one in before.holes
            for hole in after.holes
        ]
        return list(joined(kept))

    def _replace(self, states: dict[TopicPartition, PartitionState], sums: RecordSums) -> Rewritten:
        """Fills holes, and takes the rows out of the table that this job has read again."""
        replaced = self.repair.replaced
        read: dict[OffsetRange, int] = {one: sums.get(one.place, RecordSum()).rows for one in replaced}
        for listing in self.listings:
            place = _place(listing)
            for wanted in self.repair.fills.get(place, ()):
                state = states.get(place, self.states[place])
                fill = self._fill(listing, wanted, state.holes)
                if fill is None:
                    continue
                rows, holes = fill
                read[wanted] = rows
                replaced.append(wanted)
                states[place] = replace(state, holes=holes)
            if place in self.repair.acknowledged:
                state = states.get(place, self.states[place])
                begin = listing["segments"][0]["base_offset"]
                states[place] = replace(state, holes=tuple(uncovered(state.holes, 0, begin)))
        sums.clear()
        sums.add_all(one.sums for one in self.written)
        options = self._write_options(ReadOptions(), self.table.whole_schema())
        rewritten = rewrite_without(self.table, replaced, options)
        self.repaired = [
            RepairedRange(
                topic=one.topic,
                partition=one.partition,
                start_offset=one.start,
                end_offset=min(one.end, self.states[one.place].next_offset),
                removed_rows=rewritten.removed[one],
                rows=rows,
            )
            for one, rows in read.items()
        ]
        return rewritten

    def _fill(
        self, listing: PartitionListing, wanted: OffsetRange, holes: Sequence[Hole]
    ) -> tuple[int, tuple[Hole, ...]] | None:
        """Reads a range again; returns the number of its rows, and the remaining holes of the partition.
        Returns None if nothing is gained.
        """
        plans, written = decode_partitions(
            self._begin,
            [segments_for(listing, wanted)],
            self.engine,
            verb="ingest",
            accounts_of=lambda written: written.results,
            narrow=lambda listing: segments_for(listing, wanted),
            isolation_level=self.options.isolation_level,
            bounds=lambda _: _bounds(wanted.start, self.options, wanted.end),
            most_task_bytes=max(LARGEST_TARGET, _LOG_PER_FILE * self.options.target_file_size),
            progress=self.progress,
        )
        partitions = reconcile_partitions(plans, (text for one in written for text in one.results))
        sums = RecordSums()
        sums.add_all(one.sums for one in written)
        problems = _problems(plans, written)
        log_end = min(wanted.end, _log_end(plans[0]))
        missing = joined([*holes_in(problems, listing, wanted.start, wanted.end), Hole(log_end, wanted.end)])
        undecoded = undecoded_in(written).get(wanted.place, ())
        others = list(uncovered(holes, wanted.start, wanted.end))
        last = TableRows(self.table, wanted.place).last_offset(wanted.end)
        has_rows = last is not None and last >= wanted.start
        after = joined([*others, *missing, *undecoded])
        if (
            any(one.problems_left_out for one in written)
            or not _rows_agree(partitions, sums, written)
            or (missing and has_rows)
            or after == tuple(holes)
        ):
            return None
        self.written += written
        return sums.get(wanted.place, RecordSum()).rows, after

    def _committed(
        self, place: TopicPartition, state: PartitionState, sums: RecordSums
    ) -> CommittedPartition:
        lineage = state.lineage
        epoch = lineage.leader_epoch
        found = sums.get(place, RecordSum())
        return CommittedPartition(
            topic=place[0],
            partition=place[1],
            start_offset=self._start(place) or 0,
            next_offset=state.next_offset,
            rows=found.rows,
            digest=found.hex_digest,
            topic_id=lineage.topic_id,
            cluster_id=lineage.cluster_id,
            leader_epoch=None
            if epoch is None
            else LeaderEpoch(epoch=epoch.epoch, start_offset=epoch.start_offset),
            holes=[list(hole) for hole in state.holes],
        )


def _problems(plans: Iterable[Planned], written: Iterable[Written]) -> list[Problem]:
    return [
        *(problem for one in plans for problem in one.plan["problems"]),
        *(problem for one in written for problem in one.problems),
    ]


def _table_options(options: IngestOptions, partition_by: PartitionBy) -> TableOptions:
    return TableOptions(
        isolation_level=options.isolation_level,
        **asdict(options.ranges),
        where=options.where,
        key_as=options.key_as,
        value_as=options.value_as,
        partition_by=partition_by,
        key_format=options.typed.key_format,
        value_format=options.typed.value_format,
        messages=options.typed.messages,
    )


def _open(target: TableTarget, schema: Callable[[], pa.Schema], options: TableOptions) -> TransactionalTable:
    if target.format == "delta":
        return DeltaTable.open_or_create(target.name, schema, options)
    return IcebergTable.open_or_create(target, schema, options)


def _refuse_empty_columns(table: TransactionalTable, schema: pa.Schema) -> None:
    """Refuses to leave columns of ours empty; those of typed keys and values are the same in every job."""
    known = RECORDS_WITH_METADATA
    if missing := [name for name in table.column_names if name in known and name not in schema.names]:
        raise RefusedError(
            f"{table.name} has the columns {', '.join(missing)}, which would be null in new rows: "
            "add --include-batch-metadata, or choose another table"
        )


def _place(plan: PartitionPlan | PartitionListing | PartitionReconciliation) -> TopicPartition:
    return plan["topic"], plan["partition"]


def _from_offset(listing: PartitionListing, start: int) -> PartitionListing:
    """The partition without the segments before the one that holds the offset to start at."""
    segments = json.loads(_core.segments_from(json.dumps(listing), start))
    return {**listing, "segments": segments}


def _bounds(start: int, options: IngestOptions, end: int | None = None) -> Range:
    ranges = options.ranges
    ends = [one for one in (end, ranges.end_offset) if one is not None]
    return max(start, ranges.start_offset or 0) or None, min(ends, default=None)


def _log_end(planned: Planned) -> int:
    bases = [one["base_offset"] for one in planned.plan["segments"]]
    return max(planned.plan["next_offset"] or 0, *bases, 0)


def _end(planned: Planned, start: int, options: IngestOptions, limit: int | None) -> int:
    """The offset that the next job starts at. `limit` is exclusive, like the end of the requested range."""
    ends, stable = [_log_end(planned)], planned.plan["last_stable_offset"]
    if options.isolation_level == "read_committed" and stable is not None:
        ends.append(stable)
    ends += [end for end in (limit, options.ranges.end_offset) if end is not None]
    return max(start, min(ends))


def _rows_agree(
    partitions: Sequence[PartitionReconciliation], sums: RecordSums, written: Sequence[Written]
) -> bool:
    """True if the files hold exactly the rows that were counted for each partition."""
    counted = {(one["topic"], one["partition"]): one["rows"] for one in partitions if one["rows"]}
    in_files = sum(file.rows for one in written for file in one.files)
    return counted == {place: one.rows for place, one in sums.items()} and in_files == sum(counted.values())


def _commit(
    table: TransactionalTable,
    commit: Commit,
    before: Mapping[TopicPartition, PartitionState],
    directory: str,
) -> TopicPartition | None:
    """Commits, and tries again if commits that change different partitions come first.

    Returns None, or a partition that another job has changed: then nothing is committed.
    """
    places = list(commit.states)
    for attempt in range(_ATTEMPTS):
        try:
            table.commit(commit)
            return None
        except ConflictError as error:
            conflict = error
        except JobError:
            # The answer may have been lost after the commit.
            table.refresh()
            if table.holds(commit.job, directory):
                return None
            raise
        time.sleep(random.uniform(0, _WAIT_SECONDS * (attempt + 1)))
        table.refresh()
        now = table.states(places)
        if moved := [place for place in places if now.get(place) != before.get(place)]:
            return moved[0]
        if commit.replaced:
            raise UnsettledError(
                f"{table.name}: others have changed the table meanwhile, so nothing is repaired: run it again"
            )
    raise UnsettledError(f"{table.name}: others commit all the time, so this job cannot: {conflict}")
