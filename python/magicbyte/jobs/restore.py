"""The job of `magicbyte restore`: the disks of a dead cluster become directories on which brokers start.

find copies, fold the metadata -> merge the copies of each partition -> place the logs -> write logs, snapshot
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace

from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.internal_topics.metadata.nodes import Voter
from magicbyte.internal_topics.metadata.snapshot import Snapshot
from magicbyte.internal_topics.metadata.topics import TopicState
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.cluster import copies_of_metadata
from magicbyte.jobs.disks.brokers import one_cluster
from magicbyte.jobs.disks.topics import Directories, assign
from magicbyte.jobs.find.choice import EVERYTHING
from magicbyte.jobs.find.cluster import Cluster, read_cluster
from magicbyte.jobs.find.copies import PartitionCopies
from magicbyte.jobs.find.partitions import Inputs, find_inputs
from magicbyte.jobs.merging.planning import PlannedMerge, Scratch, plan_merges
from magicbyte.jobs.merging.report import merged_partition, problems_of_merges
from magicbyte.jobs.merging.writing import cleaner_offsets, is_complete, write_merges
from magicbyte.jobs.publish.certificate import certifier
from magicbyte.jobs.publish.local_nodes import LocalNodes
from magicbyte.jobs.restoring.image import image_records, switched_off
from magicbyte.jobs.restoring.nodes import Node, nodes_of, voters_of
from magicbyte.jobs.restoring.placement import Placement, Placer, in_sync_copies, preferred_copy
from magicbyte.jobs.restoring.report import (
    RestorePlan,
    RestoreReport,
    next_steps,
    restored_node,
    restored_partition,
    restored_voter,
)
from magicbyte.jobs.rewrite import Written
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.log_dir import (
    CLEANER_OFFSET_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    format_offset_checkpoint,
)
from magicbyte.model import PartitionListing
from magicbyte.options.command_line import command_line
from magicbyte.options.restore import RestoreOptions
from magicbyte.options.rewrite import ConvertOptions
from magicbyte.storage.paths import is_url

__all__ = ["restore"]


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
        RefusedError: there is no metadata of a KRaft cluster, the sources are of several clusters, a node or
            a voter is not there, or `out` is not empty.

    """
    job = _Restore(sources, engine, options, progress)
    with ExitStack() as stack:
        output = None
        if out is None:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="magicbyte-restore-"))
            plan = job.plan("OUT", lambda name: tempfile.mkdtemp(prefix=name[:64], dir=directory))
        elif is_url(out):
            raise RefusedError(f"{out}: brokers start on local directories only: choose one")
        else:
            output = LocalNodes(out, job.inputs.paths)
            stack.enter_context(output)
            plan = job.plan(output.path, output.scratch)
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


class _Restore:
    def __init__(
        self, sources: Sequence[str], engine: Engine, options: RestoreOptions, progress: Progress
    ) -> None:
        self.inputs: Inputs = find_inputs(sources, may_be_none=True)
        metadata = copies_of_metadata(self.inputs)
        if not metadata:
            raise RefusedError(
                f"no {CLUSTER_METADATA}-0 is below {', '.join(sources)}: without the cluster's metadata its"
                " topics, settings and users are unknown. Give the directories of its controllers, too"
            )
        self._metadata = metadata
        self._cluster_id = one_cluster(self.inputs.log_dirs)
        self._cluster: Cluster = read_cluster(metadata)
        self._nodes = nodes_of(self.inputs.log_dirs, [one["path"] for one in metadata], options.nodes)
        self._voters: list[Voter] = voters_of(options.voters, self._cluster.state, self._nodes)
        self._directories: Directories = assign(self._cluster, self.inputs.directories, EVERYTHING)
        self._brokers = {one.path: one.broker_id for one in self.inputs.log_dirs}
        self._engine = engine
        self._options = options
        self._progress = progress
        self._planned: _Planned | None = None

    def plan(self, out: str, scratch: Scratch) -> RestorePlan:
        """Reads all copies, and decides what becomes of each partition."""
        state = self._cluster.state
        merges = self._merges(scratch)
        by_name = {merge.partition.name: merge for merge in merges if not _is_ruined(merge)}
        placer = Placer(self._nodes, state.nodes.brokers)
        placements = []
        for topic in sorted(state.topics.values(), key=lambda one: one.name):
            for number in sorted(topic.partitions):
                merge = by_name.get(f"{topic.name}-{number}")
                here = set() if merge is None else self._known_brokers(merge)
                placements.append(placer.place(topic, number, merge, here))
        metadata = self._cluster.metadata
        snapshot = Snapshot(
            metadata.next_offset,
            max(metadata.copies[0].leader_epoch, 0),
            metadata.last_timestamp or 0,
            state.quorum.kraft_version,
            self._voters,
        )
        content = snapshot.content(image_records(state, placements))
        self._planned = _Planned(self._nodes, placements, merges, snapshot.name, content)
        changes = switched_off(state)
        return RestorePlan(
            cluster_id=self._cluster_id,
            snapshot=snapshot.name,
            metadata_end_offset=metadata.next_offset,
            metadata_problems=[
                *metadata.problems,
                *self._unknown_nodes(),
                *self._unnamed_topics(),
                *self._tiered_topics(),
            ],
            kraft_version=state.quorum.kraft_version,
            voters=[restored_voter(one) for one in self._voters],
            nodes=[restored_node(one, placements) for one in self._nodes.values()],
            partitions=[restored_partition(one) for one in placements],
            merged=[merged_partition(one) for one in merges],
            switched_off=changes,
            skipped=self.inputs.skipped,
            unassigned=self._directories.unassigned,
            steps=next_steps(out, self._cluster, self._nodes, self._voters, placements, changes),
            **problems_of_merges(merges, []),
        )

    def _merges(self, scratch: Scratch) -> list[PlannedMerge]:
        """The merged log of every partition of the metadata that has a copy here."""
        partitions = [
            PartitionCopies(topic.name, number, topic.topic_id, tuple(copies), None)
            for topic in self._topics()
            for number, listings in sorted(self._of(topic).items())
            if number in topic.partitions
            and (copies := sorted(filter(_is_log, listings), key=lambda one: one["path"]))
        ]
        merges = self._merge(partitions, scratch)
        again: dict[int, PartitionCopies] = {}
        for place, merge in enumerate(merges):
            old = self._cluster.state.topics[str(merge.partition.topic_id)].partitions[
                merge.partition.partition
            ]
            brokers = self._brokers_of(merge.partition)
            in_sync = in_sync_copies(old, self._known_brokers(merge))
            best = preferred_copy(merge, [one in in_sync for one in brokers])
            if best is not None:
                again[place] = replace(merge.partition, preferred=best)
        for place, merge in zip(again, self._merge(list(again.values()), scratch), strict=True):
            merges[place] = merge
        return merges

    def _merge(self, partitions: Sequence[PartitionCopies], scratch: Scratch) -> list[PlannedMerge]:
        limit = self._options.max_decompressed_bytes
        return plan_merges(
            partitions,
            self._cluster,
            self._engine,
            scratch,
            max_decompressed_bytes=limit,
            progress=self._progress,
        )

    def _topics(self) -> list[TopicState]:
        return sorted(self._cluster.state.topics.values(), key=lambda one: one.name)

    def _of(self, topic: TopicState) -> dict[int, list[PartitionListing]]:
        return self._directories.of_topics.get((topic.name, topic.topic_id), {})

    def _brokers_of(self, partition: PartitionCopies) -> list[int | None]:
        """The broker of each copy; None where nothing tells it."""
        return [self._brokers.get(os.path.dirname(one["path"])) for one in partition.listings]

    def _known_brokers(self, merge: PlannedMerge) -> set[int]:
        """The brokers of the copies of which something is readable."""
        brokers = enumerate(self._brokers_of(merge.partition))
        return {broker for place, broker in brokers if broker is not None and not _is_lost(merge, place)}

    def _unknown_nodes(self) -> list[str]:
        """Files of log directories that cannot be read, and directories of which nothing tells the node."""
        problems = [problem for log_dir in self.inputs.log_dirs for problem in log_dir.problems]
        paths = {os.path.dirname(one["path"]) for one in self._directories.current}
        unknown = sorted(path for path in paths if self._brokers.get(path) is None)
        return problems + [
            f"{path}: no {META_PROPERTIES} tells whose log directory it is: its copies count as not in sync"
            for path in unknown
        ]

    def _unnamed_topics(self) -> list[str]:
        """Topics and partitions that only directories know, since records of the metadata are lost."""
        topics = self._cluster.state.topics
        problems = []
        for (name, topic_id), listings in self._directories.of_topics.items():
            topic = topics.get(topic_id or "")
            unnamed = sorted(listings if topic is None else listings.keys() - topic.partitions.keys())
            if unnamed:
                what = name if topic is None else f"{name}-{unnamed[0]}"
                problems.append(
                    f"{what} ({topic_id or 'of an unknown id'}) is not restored: the metadata that can be"
                    f" read does not name it, but {listings[unnamed[0]][0]['path']} is there"
                )
        return problems

    def _tiered_topics(self) -> list[str]:
        """Topics whose older segments brokers will not find: that takes the leader epochs of those."""
        return [
            f"{topic.name} has remote.storage.enable=true: segments that are only in tiered storage are not"
            " restored"
            for topic in self._topics()
            if self._cluster.configs(topic.name).get("remote.storage.enable") == "true"
        ]

    def report(self, plan: RestorePlan, output: LocalNodes | None) -> RestoreReport:
        """Writes what is planned, if there is an output, and publishes it with its report."""
        assert self._planned is not None
        merges = self._planned.merges
        given = {name: value for name, value in asdict(self._options).items() if value}
        report = RestoreReport(
            **plan,
            magicbyte=_core.__version__,
            sources=list(self.inputs.sources),
            options=given,
            balanced=all(one["balanced"] for one in plan["merged"]),
            written=[],
        )
        if output is None:
            return report
        copied = ConvertOptions(
            magic=None,
            max_decompressed_bytes=self._options.max_decompressed_bytes,
            index_interval_bytes=self._options.index_interval_bytes,
        )
        ids = {topic.name: topic.topic_id for topic in self._topics()}
        usable = [merge for merge in merges if not _is_ruined(merge)]
        rewritten, written = write_merges(usable, output, ids, self._engine, copied, self._progress)
        report["written"] = written
        report["balanced"] = report["balanced"] and all(map(is_complete, usable, rewritten))
        report.update(problems_of_merges(merges, [task for done in rewritten for task in done]))  # type: ignore[typeddict-item]
        places = {(one.topic.name, one.number): one.places for one in self._planned.placements}
        placed = [(one, places[one["topic"], one["partition"]]) for one in written]
        listings = [*self._metadata, *(one for merge in merges for one in merge.partition.listings)]
        command = None
        if self._options.certify:
            command = command_line("restore", [*self.inputs.sources, "--out", output.path], self._options)
        certify = certifier(command, report, listings, self._engine, self._progress)
        output.publish_nodes(report, placed, self._files(placed), certify)
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


def _is_ruined(merge: PlannedMerge) -> bool:
    """True if no copy has a good batch, and at least one had some: with an empty log, groups would jump."""
    copies = merge.alignment["copies"]
    is_empty = all(copy["last"] is None for copy in copies)
    return is_empty and any(_is_lost(merge, place) for place, _ in enumerate(copies))


def _is_lost(merge: PlannedMerge, copy: int) -> bool:
    """True if a copy has no good batch, but had some, by its bytes or the broker's checkpoints."""
    account = merge.alignment["copies"][copy]
    if account["last"] is not None:
        return False
    problems = merge.copies[copy].plan["problems"]
    return account["damaged_bytes"] > 0 or any(one["first_lost_offset"] is not None for one in problems)


def _is_log(listing: PartitionListing) -> bool:
    """True for a log that a broker would open; copies of moves between disks and strays are none."""
    return listing["state"] == "current" and bool(listing["segments"])
