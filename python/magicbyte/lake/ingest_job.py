"""The job that adds records to a table, until there is something to commit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from magicbyte import _core
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.lineage import EpochStart, LogLineage
from magicbyte.jobs.find.problems import offsets_text
from magicbyte.jobs.ingest import (
    CommittedPartition,
    RepairedRange,
)
from magicbyte.jobs.run.accounting import reconcile_partitions
from magicbyte.jobs.run.columns import RECORDS_WITH_METADATA
from magicbyte.jobs.run.decode_partitions import DecodeJob, decode_partitions
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.holes import Hole, joined, uncovered
from magicbyte.jobs.run.plan import (
    LARGEST_TARGET,
    DecodeTask,
    Planned,
    Range,
    plan_partitions,
)
from magicbyte.jobs.run.progress import Progress
from magicbyte.jobs.run.reading import HighWatermarks, ReadOptions
from magicbyte.jobs.run.sums import RecordSum, RecordSums, TopicPartition
from magicbyte.lake.checked import Checked
from magicbyte.lake.differences import TableRows
from magicbyte.lake.divergence import DivergedError, Divergence, LineageCheck
from magicbyte.lake.growing import GrowingLog
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
from magicbyte.lake.table import (
    Commit,
    TransactionalTable,
)
from magicbyte.lake.write import LakeWriteOptions, Written, write_task
from magicbyte.listing import first_offset_of, known_topic_id
from magicbyte.model import LeaderEpoch, PartitionListing, PartitionPlan, PartitionReconciliation, Problem
from magicbyte.options.ingest import IngestOptions

__all__ = ["IngestJob"]

_LOG_PER_FILE = 8
"""The maximum input of a task, in sizes of a file: rows may be smaller than the log by this factor."""


@dataclass
class IngestJob:
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
    growing: GrowingLog | None
    """None for a log that nobody writes to."""
    limits: HighWatermarks
    """The offsets where partitions end (exclusive) before the ends of their logs."""
    checked: Checked
    """The partitions that have been compared with their logs; updated."""
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

    def run(self, job: str, sources: Sequence[str]) -> Commit:
        """Reads the new records, and those to repair; returns the commit."""
        self.states = self.table.states([_place(one) for one in self.listings])
        if self.options.repair:
            self._plan_repair()
        self._decode()
        if not self.options.repair and (found := self._divergences(self.plans)):
            raise DivergedError(self.table.name, found)
        self._judge_problems()
        sums = RecordSums()
        sums.add_all(partition.sums for partition in self.written)
        if not (
            all(partition["balanced"] for partition in self.partitions)
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
            files=[*(file for partition in self.written for file in partition.files), *replaced.kept],
            schema=self.schema,
            states=states,
            before=self.states,
            replaced=replaced.replaced,
        )

    def _start(self, place: TopicPartition) -> int | None:
        return self.repair.start(place, self.states.get(place))

    def _from_start(self) -> list[PartitionListing]:
        return [_from_offset(listing, self._start(_place(listing)) or 0) for listing in self.listings]

    def _plan_repair(self) -> None:
        plans = plan_partitions(self._from_start(), self.engine, isolation_level=self.options.isolation_level)
        found = self._divergences(plans)
        self.repair = plan_repair(self.table, self.listings, self.states, found)

    def _divergences(self, plans: Sequence[Planned]) -> list[Divergence]:
        check = LineageCheck(
            self.table, self.states, self.engine, self.options.max_decompressed_bytes, self.clusters
        )
        ends = {_place(planned.plan): _log_end(planned) for planned in plans}
        return check.divergences(self.listings, plans, ends, self.checked)

    def _begin(self) -> Callable[[DecodeTask], Written]:
        _refuse_empty_columns(self.table, self.read().records_schema)
        self.schema = self.table.file_schema(self.read().records_schema)
        return partial(write_task, options=self._write_options(self.read(), self.schema))

    def _decode_job(self, check: Callable[[Planned], None] = lambda _: None) -> DecodeJob[Written]:
        return DecodeJob(
            self._begin,
            "ingest",
            lambda written: written.results,
            check,
            most_task_bytes=max(LARGEST_TARGET, _LOG_PER_FILE * self.options.file_size),
        )

    def _write_options(self, read: ReadOptions, schema: pa.Schema) -> LakeWriteOptions:
        return LakeWriteOptions(
            read,
            self.table.data,
            self.directory,
            schema,
            self.table.options.partition_by == "day",
            self.options.parquet_compression,
            ("key",) if self.options.bloom_filter else (),
            self.options.file_size,
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
            self._decode_job(find_end),
            listings,
            self.engine,
            surveyor=None if self.growing is None else self.growing.surveys.survey,
            isolation_level=self.options.isolation_level,
            bounds=bounds,
            narrow=lambda listing: _from_offset(listing, self._start(_place(listing)) or 0),
            progress=self.progress,
        )
        self.undecoded = undecoded_in(self.written)
        self.partitions = reconcile_partitions(
            self.plans, (text for partition in self.written for text in partition.results)
        )

    def _judge_problems(self) -> None:
        """Collects the problems, and refuses those that a job must not pass."""
        places = map(_place, self.listings)
        starts = {place: start for place in places if (start := self._start(place)) is not None}
        gaps = [
            gap
            for planned in self.plans
            for gap in gap_before(planned, starts.get(_place(planned.plan)), self.options.ranges)
        ]
        self.other_problems = len(gaps)
        self.problems = [*gaps, *_problems(self.plans, self.written)]
        self.left_out = sum(partition.problems_left_out for partition in self.written)
        if self.growing is not None:
            self.problems = list(without_ends(self.problems, self.partitions))
            refuse_losses(self.table.name, self.problems, self.left_out, starts)
        for listing in self.listings if self.options.fail_on_missing else ():
            for hole in self._new_holes(listing):
                raise JobError(
                    f"{self.table.name}: nothing is committed, since records of "
                    f"{listing['topic']}-{listing['partition']} are missing (--fail-on-missing), the first "
                    f"ones of {offsets_text(hole.start, hole.end - 1)}"
                )

    def _new_holes(self, listing: PartitionListing) -> tuple[Hole, ...]:
        """The offsets that this job passes without having read or decoded their records."""
        place = _place(listing)
        start = max(self._start(place) or 0, self.options.start_offset or 0)
        end = self.ends[place]
        if self.left_out:
            counted = sum(
                partition["problems"] for partition in self.partitions if _place(partition) == place
            )
            listed = sum((problem["topic"], problem["partition"]) == place for problem in self.problems)
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
            tuple(
                EpochStart(epoch["epoch"], epoch["start_offset"]) for epoch in planned.plan["leader_epochs"]
            ),
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
                begin = first_offset_of(listing) or 0
                states[place] = replace(state, holes=tuple(uncovered(state.holes, 0, begin)))
        sums.clear()
        sums.add_all(partition.sums for partition in self.written)
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
            self._decode_job(),
            [segments_for(listing, wanted)],
            self.engine,
            narrow=lambda listing: segments_for(listing, wanted),
            isolation_level=self.options.isolation_level,
            bounds=lambda _: _bounds(wanted.start, self.options, wanted.end),
            progress=self.progress,
        )
        partitions = reconcile_partitions(
            plans, (text for partition in written for text in partition.results)
        )
        sums = RecordSums()
        sums.add_all(partition.sums for partition in written)
        problems = _problems(plans, written)
        log_end = min(wanted.end, _log_end(plans[0]))
        missing = joined([*holes_in(problems, listing, wanted.start, wanted.end), Hole(log_end, wanted.end)])
        undecoded = undecoded_in(written).get(wanted.place, ())
        others = list(uncovered(holes, wanted.start, wanted.end))
        last = TableRows(self.table, wanted.place).last_offset(wanted.end)
        has_rows = last is not None and last >= wanted.start
        after = joined([*others, *missing, *undecoded])
        if (
            any(partition.problems_left_out for partition in written)
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
        *(problem for planned in plans for problem in planned.plan["problems"]),
        *(problem for partition in written for problem in partition.problems),
    ]


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
    bases = [segment["base_offset"] for segment in planned.plan["segments"]]
    return max(planned.plan["next_offset"] or 0, *bases, 0)


def _end(planned: Planned, start: int, options: IngestOptions, limit: int | None) -> int:
    """The offset that the next job starts at. `limit` is exclusive, like the end of the requested range."""
    ends, stable = [_log_end(planned)], planned.plan["last_stable_offset"]
    if options.isolation_level == "read_committed" and stable is not None:
        ends.append(stable)
    ends += [end for end in (limit, options.end_offset) if end is not None]
    return max(start, min(ends))


def _rows_agree(
    partitions: Sequence[PartitionReconciliation], sums: RecordSums, written: Sequence[Written]
) -> bool:
    """True if the files hold exactly the rows that were counted for each partition."""
    counted = {
        (partition["topic"], partition["partition"]): partition["rows"]
        for partition in partitions
        if partition["rows"]
    }
    in_files = sum(file.rows for partition in written for file in partition.files)
    return counted == {place: one.rows for place, one in sums.items()} and in_files == sum(counted.values())
