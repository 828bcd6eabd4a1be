"""The job of `magicbyte restore`: the disks of a dead cluster become directories on which brokers start.

find copies, fold the metadata -> merge the copies of each partition -> place the logs -> write logs, snapshot
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.internal_topics.metadata.nodes import Voter
from magicbyte.internal_topics.metadata.snapshot import Snapshot
from magicbyte.internal_topics.metadata.topics import TopicState
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.merging.planning import PlannedMerge, Scratch
from magicbyte.jobs.merging.report import merged_partition, problems_of_merges
from magicbyte.jobs.merging.writing import cleaner_offsets
from magicbyte.jobs.publish.local_nodes import LocalNodes, opened_nodes
from magicbyte.jobs.restoring.amendments import (
    METADATA_VERSION,
    check_metadata_version,
    skip_producer_ids,
)
from magicbyte.jobs.restoring.cutting import CutPartition, cut_merges
from magicbyte.jobs.restoring.dead_cluster import DeadCluster, given_options, is_ruined
from magicbyte.jobs.restoring.doubts import producer_ids_in_doubt
from magicbyte.jobs.restoring.image import image_records, switched_off
from magicbyte.jobs.restoring.moved_positions import MovedPosition, move_positions
from magicbyte.jobs.restoring.moved_share_positions import MovedSharePosition, move_share_positions
from magicbyte.jobs.restoring.nodes import Node, nodes_of, voters_of
from magicbyte.jobs.restoring.placement import (
    Placement,
    Placer,
)
from magicbyte.jobs.restoring.producer_ids import highest_producer_id
from magicbyte.jobs.restoring.report import (
    LOST_FEATURES,
    RestorePlan,
    RestoreReport,
    next_steps,
    restored_node,
    restored_partition,
    restored_voter,
)
from magicbyte.jobs.restoring.until import read_until
from magicbyte.jobs.rewrite import Written
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.log_dir import (
    CLEANER_OFFSET_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    format_offset_checkpoint,
)
from magicbyte.options.restore import RestoreOptions

__all__ = ["Restore", "restore"]


def restore(
    sources: Sequence[str],
    out: str | None,
    engine: Engine,
    options: RestoreOptions,
    *,
    planned: Callable[[RestorePlan], None] | None = None,
    progress: Progress = NO_PROGRESS,
) -> RestoreReport:
    """Restores the cluster whose log directories are at or below `sources` into `out`; without it, writes
    nothing. `planned` gets the plan before anything is written.

    Raises:
        RefusedError: there is no metadata of a KRaft cluster, or no `metadata.version` in it; the sources are
            of several clusters; a node or a voter is not there; `until` names a file without offsets, or a
            partition that is not there; or `out` is not empty.

    """
    if options.command_config is not None:
        raise RefusedError("command_config is for another cluster: choose one with target")
    job = Restore(sources, engine, options, progress)
    with opened_nodes(out, job.inputs.paths) as (output, path, scratch):
        plan = job.plan(path, scratch)
        if planned is not None:
            planned(plan)
        return job.report(plan, output)


@dataclass(frozen=True)
class _Planned:
    """The parts of a plan that its report does not have."""

    nodes: dict[int, Node]
    placements: list[Placement]
    merges: list[PlannedMerge]
    """The merges of all partitions that have a copy; if nothing of one is readable, it is not written."""
    snapshot: str
    """The name of the metadata snapshot."""
    metadata: bytes
    """Its content."""


class _Cut(NamedTuple):
    """The merges as they are written, and the report of what `until` has changed in them."""

    merges: list[PlannedMerge]
    partitions: list[CutPartition]
    positions: list[MovedPosition]
    share_positions: list[MovedSharePosition]
    steps: list[str]
    """The positions of share groups that a person has to set."""


class Restore(DeadCluster):
    """Restores the cluster itself."""

    def __init__(
        self, sources: Sequence[str], engine: Engine, options: RestoreOptions, progress: Progress
    ) -> None:
        super().__init__(sources, engine, options, progress)
        self._has_features = METADATA_VERSION in self._cluster.state.features
        check_metadata_version(self._cluster.state, options.metadata_version)
        self._nodes = nodes_of(
            self.inputs.log_dirs,
            [one["path"] for one in self._metadata],
            {os.path.dirname(one["path"]) for one in self._directories.current},
            self._cluster.state,
            options.nodes,
        )
        self._voters: list[Voter] = voters_of(options.voters, self._cluster.state, self._nodes)
        self._planned: _Planned | None = None

    def plan(self, out: str, scratch: Scratch) -> RestorePlan:
        """Reads all copies, and decides what becomes of each partition."""
        state = self._cluster.state
        merges = self.merges(scratch)
        cut = self._cut(merges)
        by_name = {merge.partition.name: merge for merge in cut.merges if not is_ruined(merge)}
        placer = Placer(self._nodes, state.nodes.brokers)
        placements = [
            self.place(placer, topic, number, by_name.get(f"{topic.name}-{number}"))
            for topic in self.topics()
            for number in sorted(topic.partitions)
        ]
        highest = highest_producer_id(merges, self._engine, self._progress)
        in_doubt = producer_ids_in_doubt(self._cluster, bool(self.newer_epochs(merges)), highest)
        if in_doubt is not None:
            skip_producer_ids(state, highest.producer_id)
        metadata = self._cluster.metadata
        snapshot = Snapshot(
            metadata.next_offset,
            max(metadata.copies[0].leader_epoch, 0),
            metadata.last_timestamp or 0,
            state.quorum.kraft_version,
            self._voters,
        )
        content = snapshot.content(image_records(state, placements))
        self._planned = _Planned(self._nodes, placements, cut.merges, snapshot.name, content)
        changes = switched_off(state)
        return RestorePlan(
            cluster_id=self._cluster_id,
            snapshot=snapshot.name,
            metadata_end_offset=metadata.next_offset,
            metadata_problems=[*self.metadata_problems(merges), *filter(None, [in_doubt])],
            kraft_version=state.quorum.kraft_version,
            voters=[restored_voter(one) for one in self._voters],
            nodes=[restored_node(one, placements) for one in self._nodes.values()],
            partitions=[restored_partition(one) for one in placements],
            merged=[merged_partition(one) for one in merges],
            cut=cut.partitions,
            moved_positions=cut.positions,
            moved_share_positions=cut.share_positions,
            share_positions_to_reset=cut.steps,
            switched_off=changes,
            skipped=self.inputs.skipped,
            unassigned=self._directories.unassigned,
            steps=[
                *next_steps(out, self._cluster, self._nodes, self._voters, placements, changes),
                *([] if self._has_features else [LOST_FEATURES]),
                *cut.steps,
            ],
            **problems_of_merges(merges, []),
        )

    def place(self, placer: Placer, topic: TopicState, number: int, merge: PlannedMerge | None) -> Placement:
        """Places a partition; `merge` is None if nothing of it is readable here."""
        return placer.place(topic, number, merge, set() if merge is None else self.known_brokers(merge))

    def _cut(self, merges: list[PlannedMerge]) -> _Cut:
        """Cuts the logs as `until` demands."""
        until = read_until(self._options.until)
        if until is None:
            return _Cut(merges, [], [], [], [])
        topics = self.topics()
        known = {(topic.name, number) for topic in topics for number in topic.partitions}
        if unknown := sorted(until.offsets.keys() - known):
            topic, number = unknown[0]
            raise RefusedError(
                f"{self._options.until} names {topic}-{number}, which the cluster does not have"
            )
        cut, report = cut_merges(merges, until, self._engine, self._progress)
        cut, moved = move_positions(merges, cut, report)
        names = {topic.topic_id: topic.name for topic in topics}
        shared = move_share_positions(merges, cut, report, names)
        return _Cut(shared.merges, report, moved, shared.moved, shared.to_reset)

    def report_of(self, plan: RestorePlan) -> RestoreReport:
        """The report of a plan of which nothing is written."""
        return RestoreReport(
            **plan,
            magicbyte=_core.__version__,
            sources=list(self.inputs.sources),
            options=given_options(self._options),
            balanced=all(one["balanced"] for one in plan["merged"]),
            written=[],
        )

    def report(self, plan: RestorePlan, output: LocalNodes | None) -> RestoreReport:
        """Writes what is planned, if there is an output, and publishes it with its report."""
        assert self._planned is not None
        merges = self._planned.merges
        report = self.report_of(plan)
        if output is None:
            return report
        ids = {topic.name: topic.topic_id for topic in self.topics()}
        places = {(one.topic.name, one.number): one.places for one in self._planned.placements}
        placed_merges = [one for one in merges if places[one.partition.topic, one.partition.partition]]
        report.update(self.write(merges, placed_merges, output, ids))  # type: ignore[typeddict-item]
        placed = [(one, places[one["topic"], one["partition"]]) for one in report["written"]]
        output.publish_nodes(report, placed, self._files(placed), self.certify(report, merges, output))
        return report

    def _files(self, placed: Sequence[tuple[Written, Sequence[str]]]) -> dict[str, bytes]:
        """The files of log directories: whose they are, the offsets of their logs, and the snapshot."""
        assert self._planned is not None
        cleaned = cleaner_offsets(self._planned.merges)
        checkpoints: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
        for one, places in placed:
            partition = one["topic"], one["partition"]
            for name, offset in (
                (LOG_START_OFFSET_CHECKPOINT, one["log_start_offset"]),
                (CLEANER_OFFSET_CHECKPOINT, cleaned.get(partition)),
            ):
                if offset is not None:
                    for place in places:
                        checkpoints[f"{place}/{name}"][partition] = offset
        files: dict[str, bytes] = {}
        for node in self._planned.nodes.values():
            files[f"{node.places[0]}/{CLUSTER_METADATA}-0/{self._planned.snapshot}"] = self._planned.metadata
            for log_dir, place in zip(node.log_dirs, node.places, strict=True):
                properties = os.path.join(log_dir.path, META_PROPERTIES)
                files[f"{place}/{META_PROPERTIES}"] = bytes(_core.read_sidecar(properties))
        files.update((path, format_offset_checkpoint(own).encode()) for path, own in checkpoints.items())
        return files
