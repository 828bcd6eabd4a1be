"""The job of `magicbyte restore --target`: another running cluster gets the partitions of a dead one.

find copies, fold the metadata -> ask the target -> merge the copies -> write logs, checkpoints, positions

The target creates the topics, and has the ids and leader epochs. Its brokers find the logs when they start.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.internal_topics.groups import Commit
from magicbyte.internal_topics.metadata.topics import TopicState
from magicbyte.internal_topics.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from magicbyte.jobs.merging.planning import PlannedMerge, Scratch
from magicbyte.jobs.merging.report import merged_partition, problems_of_merges
from magicbyte.jobs.merging.writing import cleaner_offsets
from magicbyte.jobs.offsets import csv_lines
from magicbyte.jobs.publish.local_nodes import LocalNodes, opened_nodes
from magicbyte.jobs.restoring.dead_cluster import DeadCluster, given_options, is_ruined
from magicbyte.jobs.restoring.moved_positions import commits_of
from magicbyte.jobs.restoring.moved_share_positions import share_starts
from magicbyte.jobs.restoring.placement import is_committed
from magicbyte.jobs.restoring.target import Target, decide_topics, read_target
from magicbyte.jobs.restoring.target_report import (
    POSITIONS,
    PUT_SCRIPT,
    SHARE_POSITIONS,
    OpenProducer,
    TargetPartition,
    TargetPlan,
    TargetReport,
    target_steps,
)
from magicbyte.jobs.rewrite import Written
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.log_dir import (
    CLEANER_OFFSET_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_OFFSET_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    format_offset_checkpoint,
)
from magicbyte.options.restore import RestoreOptions

__all__ = ["restore_into"]

_LEADER_EPOCH = 0
"""The epoch of all batches: that of a new topic, so that it is never above a partition's."""


def restore_into(
    sources: Sequence[str],
    out: str | None,
    engine: Engine,
    options: RestoreOptions,
    *,
    planned: Callable[[TargetPlan], None] | None = None,
    progress: Progress = NO_PROGRESS,
) -> TargetReport:
    """Writes the partitions of a dead cluster for the brokers of `options.target`; without `out`, writes
    nothing. `planned` gets the plan before anything is written. The target is only read.

    Raises:
        RefusedError: there is no metadata of a KRaft cluster, the sources are of several clusters, the target
            can take no topic, or `out` is not empty.
        OSError: the target does not answer or refuses.

    """
    if options.nodes or options.voters:
        raise RefusedError("nodes and voters are those of the target: choose neither")
    if options.until is not None or options.metadata_version is not None:
        raise RefusedError("until and metadata_version are for a cluster that comes back: not with target")
    job = _RestoreInto(sources, engine, options, progress)
    with opened_nodes(out, job.inputs.paths) as (output, path, scratch):
        plan = job.plan(path, scratch)
        if planned is not None:
            planned(plan)
        report = job.report(plan)
        if output is not None:
            job.write_report(report, output)
        return report


class _RestoreInto(DeadCluster):
    def __init__(
        self, sources: Sequence[str], engine: Engine, options: RestoreOptions, progress: Progress
    ) -> None:
        super().__init__(sources, engine, options, progress)
        assert options.target is not None
        topics = super().topics()
        self._target: Target = read_target(options.target, options.command_config, topics)
        configs = {topic.name: self._cluster.configs(topic.name) for topic in topics}
        self._decided = decide_topics(topics, configs, self._target)
        self._merged: list[PlannedMerge] = []
        self._of_groups: list[PlannedMerge] = []
        """The merged partitions of Kafka's own topics with the positions of groups."""
        self._positions: list[Commit] = []
        self._share_positions: dict[str, list[tuple[str, int, int]]] = {}
        """Topic, partition and start offset of each position, by group."""

    needs_metadata = False

    def merged_topics(self) -> list[TopicState]:
        """Topics that the target can take, and Kafka's own ones with the positions of groups."""
        own = (CONSUMER_OFFSETS, SHARE_GROUP_STATE)
        return [*self.topics(), *(topic for topic in super().topics() if topic.name in own)]

    def topics(self) -> list[TopicState]:
        """The topics that the target can take, by name."""
        names = {one["topic"] for one in self._decided if one["result"] == "accepted"}
        return [topic for topic in super().topics() if topic.name in names]

    def plan(self, out: str, scratch: Scratch) -> TargetPlan:
        """Reads all copies, and decides what becomes of each partition."""
        every = self.merges(scratch)
        names = {topic.name for topic in self.topics()}
        self._merged = [one for one in every if one.partition.topic in names]
        self._of_groups = [one for one in every if one.partition.topic not in names]
        usable = {merge.partition.name: merge for merge in self._merged if not is_ruined(merge)}
        plan = TargetPlan(
            cluster_id=self._cluster_id,
            target_cluster_id=self._target.cluster_id,
            topics=self._decided,
            partitions=[
                self._placed(topic, number, usable.get(f"{topic.name}-{number}"))
                for topic in self.topics()
                for number in sorted(topic.partitions)
            ],
            metadata_problems=self.metadata_problems(every),
            merged=[merged_partition(one) for one in every],
            skipped=self.inputs.skipped,
            unassigned=self._directories.unassigned,
            groups=[],
            share_groups=[],
            steps=[],
            **problems_of_merges(every, []),
        )
        self._positions, self._share_positions = self._read_positions(plan), self._read_share_positions(plan)
        plan["groups"] = sorted({one.group for one in self._positions})
        plan["share_groups"] = sorted(self._share_positions)
        plan["steps"] = target_steps(out, self._target, plan, [])
        return plan

    def _placed(self, topic: TopicState, number: int, merge: PlannedMerge | None) -> TargetPartition:
        there = self._target.topics[topic.name]
        replicas = list(there.replicas[number])
        status: Literal["restored", "out_of_sync", "missing"] = "missing"
        if merge is not None:
            committed = is_committed(topic.partitions[number], self.known_brokers(merge), merge)
            status = "restored" if committed else "out_of_sync"
        return TargetPartition(
            topic=topic.name,
            partition=number,
            topic_id=str(there.topic_id),
            status=status,
            replicas=replicas,
            places=[] if merge is None else [f"broker{broker}" for broker in replicas],
        )

    def _read_positions(self, plan: TargetPlan) -> list[Commit]:
        """The committed offsets of the partitions that are restored, in the merged logs."""
        places = _restored(plan)
        commits = (
            commit
            for merge in self._of_groups
            if merge.partition.topic == CONSUMER_OFFSETS
            for commit in commits_of(merge).values()
            if (commit.topic, commit.partition) in places
        )
        return sorted(commits, key=lambda one: (one.group, one.topic, one.partition))

    def _read_share_positions(self, plan: TargetPlan) -> dict[str, list[tuple[str, int, int]]]:
        """The start offsets of share groups in the partitions that are restored: topic, partition, offset."""
        places = _restored(plan)
        names = {topic.topic_id: topic.name for topic in self.topics()}
        found: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
        for (group, topic_id, partition), offset in sorted(share_starts(self._of_groups).items()):
            topic = names.get(topic_id)
            if topic is not None and (topic, partition) in places:
                found[group].append((topic, partition, offset))
        return found

    def report(self, plan: TargetPlan) -> TargetReport:
        """The report of a plan of which nothing is written."""
        return TargetReport(
            **plan,
            magicbyte=_core.__version__,
            sources=list(self.inputs.sources),
            options=given_options(self._options),
            balanced=all(one["balanced"] for one in plan["merged"]),
            written=[],
            open_transactions=[],
        )

    def write_report(self, report: TargetReport, output: LocalNodes) -> None:
        """Writes what is planned, and publishes it with its report.

        Raises:
            RefusedError: the target can take nothing.

        """
        if not any(one["places"] for one in report["partitions"]):
            raise RefusedError("the target can take none of the topics that are here: see the plan")
        ids = {one["topic"]: one["topic_id"] for one in report["partitions"]}
        placed_merges = [merge for merge in self._merged if not is_ruined(merge)]
        every = [*self._merged, *self._of_groups]
        report.update(self.write(every, placed_merges, output, ids, _LEADER_EPOCH))  # type: ignore[typeddict-item]
        report["open_transactions"] = [
            OpenProducer(
                topic=one["topic"],
                partition=one["partition"],
                producer_id=entry.producer_id,
                first_offset=entry.current_txn_first_offset,
            )
            for one in report["written"]
            for entry in _core.forget_producers(output.target(one))
            if entry.current_txn_first_offset is not None
        ]
        report["steps"] = target_steps(output.path, self._target, report, report["open_transactions"])
        places = {(one["topic"], one["partition"]): one["places"] for one in report["partitions"]}
        placed = [(one, places[one["topic"], one["partition"]]) for one in report["written"]]
        files = self._files(placed, {_key(one): _log_end(output.target(one)) for one in report["written"]})
        rows = ((one.group, one.topic, one.partition, one.offset) for one in self._positions)
        positions = "".join(f"{line}\n" for line in csv_lines(rows))
        files[POSITIONS] = positions.encode(errors="replace")
        for number, group in enumerate(report["share_groups"], 1):
            lines = (
                f"{topic},{partition},{offset}\n" for topic, partition, offset in self._share_positions[group]
            )
            files[SHARE_POSITIONS.format(number)] = "".join(lines).encode()
        output.publish_nodes(report, placed, files, self.certify(report, every, output))

    def _files(
        self, placed: Sequence[tuple[Written, Sequence[str]]], ends: Mapping[tuple[str, int], int]
    ) -> dict[str, bytes]:
        """The files beside the partitions of each broker: whose they are, their checkpoints, the script."""
        cleaned = cleaner_offsets(self._merged)
        checkpoints: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
        for one, places in placed:
            for name, offset in (
                (RECOVERY_POINT_OFFSET_CHECKPOINT, ends[_key(one)]),
                (REPLICATION_OFFSET_CHECKPOINT, ends[_key(one)]),
                (LOG_START_OFFSET_CHECKPOINT, one["log_start_offset"]),
                (CLEANER_OFFSET_CHECKPOINT, cleaned.get(_key(one))),
            ):
                if offset is not None:
                    for place in places:
                        checkpoints[f"{place}/{name}"][_key(one)] = offset
        script = Path(__file__).parent.joinpath("restoring", PUT_SCRIPT).read_bytes()
        files: dict[str, bytes] = {}
        for place in sorted({place for _, places in placed for place in places}):
            node = place.removeprefix("broker")
            properties = f"version=1\ncluster.id={self._target.cluster_id}\nnode.id={node}\n"
            files[f"{place}/{META_PROPERTIES}"] = properties.encode()
            files[f"{place}/{PUT_SCRIPT}"] = script
        files.update((path, format_offset_checkpoint(own).encode()) for path, own in checkpoints.items())
        return files


def _restored(plan: TargetPlan) -> set[tuple[str, int]]:
    return {(one["topic"], one["partition"]) for one in plan["partitions"] if one["places"]}


def _key(one: Written) -> tuple[str, int]:
    return one["topic"], one["partition"]


def _log_end(directory: str) -> int:
    """The end (exclusive) of the log that was written: a snapshot is there, or an empty last segment."""
    names = (name.partition(".") for name in os.listdir(directory))
    return max((int(offset) for offset, _, kind in names if kind in ("log", "snapshot")), default=0)
