"""A dead cluster: the copies of its partitions, which are merged, and what its metadata says of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from magicbyte.errors import RefusedError
from magicbyte.internal_topics.metadata.topics import PartitionState, TopicState
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
from magicbyte.jobs.merging.writing import is_complete, write_merges
from magicbyte.jobs.publish.certificate import Certify, certifier
from magicbyte.jobs.publish.local_nodes import LocalNodes
from magicbyte.jobs.restoring.amendments import leave_out_impossible
from magicbyte.jobs.restoring.doubts import newer_epoch, older_than_the_disks, repeated_directories
from magicbyte.jobs.restoring.emptied import is_lost, is_outrun, is_zeroed
from magicbyte.jobs.restoring.placement import (
    electable_copies,
    in_sync_copies,
    is_committed,
    newest_of_brokers,
    preferred_copy,
)
from magicbyte.jobs.restoring.positions import ends_elsewhere, last_positions
from magicbyte.jobs.restoring.without_metadata import topics_of_directories
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import Progress
from magicbyte.log_dir import META_PROPERTIES
from magicbyte.model import PartitionListing
from magicbyte.options.command_line import command_line
from magicbyte.options.restore import RestoreOptions
from magicbyte.options.rewrite import ConvertOptions

__all__ = ["DeadCluster", "given_options", "is_ruined"]


def given_options(options: RestoreOptions) -> dict[str, Any]:
    """The options as reports have them."""
    return {name: value for name, value in asdict(options).items() if value}


class DeadCluster:
    """The copies and the metadata of a cluster whose log directories are at or below some sources."""

    needs_metadata = True
    """False if the directories of partitions alone tell enough."""

    def __init__(
        self, sources: Sequence[str], engine: Engine, options: RestoreOptions, progress: Progress
    ) -> None:
        self.inputs: Inputs = find_inputs(sources, may_be_none=True)
        metadata = copies_of_metadata(self.inputs)
        if not metadata and self.needs_metadata:
            raise RefusedError(
                f"no {CLUSTER_METADATA}-0 is below {', '.join(sources)}: without the cluster's metadata its"
                " topics, settings and users are unknown. Give the directories of its controllers, too; those"
                " of a cluster with ZooKeeper can be restored into another one (--target)"
            )
        self._metadata = metadata
        self._cluster_id = one_cluster(self.inputs.log_dirs)
        self._cluster: Cluster = read_cluster(metadata)
        self._left_out: list[str] = list(leave_out_impossible(self._cluster.state))
        """Topics and partitions that are left out, the copies that are not read, and why."""
        self._directories: Directories = assign(self._cluster, self.inputs.directories, EVERYTHING)
        self._brokers = {one.path: one.broker_id for one in self.inputs.log_dirs}
        if not metadata:
            found = topics_of_directories(self._directories, self._brokers)
            self._cluster.state.topics.update((topic.topic_id, topic) for topic in found)
        self._engine = engine
        self._options = options
        self._progress = progress

    def merges(self, scratch: Scratch) -> list[PlannedMerge]:
        """The merged log of every partition of the metadata that has a copy here."""
        partitions = [
            PartitionCopies(topic.name, number, topic.topic_id, tuple(copies), None)
            for topic in self.merged_topics()
            for number, listings in sorted(self._of(topic).items())
            if number in topic.partitions
            and (copies := sorted(filter(_is_log, listings), key=lambda one: one["path"]))
        ]
        merges = self._without_unelectable(self._merge(partitions, scratch), scratch)
        again: dict[int, PartitionCopies] = {}
        for place, merge in enumerate(merges):
            best = preferred_copy(merge, self._in_sync(merge) or ())
            if best is not None:
                again[place] = replace(merge.partition, preferred=best)
        self._merge_again(merges, again, scratch)
        positions = last_positions(merges, self._cluster, self._engine, self._options.max_decompressed_bytes)
        for name, end in ends_elsewhere(self.inputs.log_dirs):
            positions[name] = max(end, positions.get(name, end))
        return [
            replace(
                merge,
                in_sync=self._in_sync(merge),
                position=positions.get((merge.partition.topic, merge.partition.partition)),
            )
            for merge in merges
        ]

    def _without_unelectable(self, merges: list[PlannedMerge], scratch: Scratch) -> list[PlannedMerge]:
        """Leaves out the copies with leader epochs after which none can come, if others are there."""
        again: dict[int, PartitionCopies] = {}
        for place, merge in enumerate(merges):
            partition, kept = merge.partition, electable_copies(merge)
            if 0 < len(kept) < len(partition.listings):
                listings = tuple(partition.listings[copy] for copy in kept)
                again[place] = replace(partition, listings=listings)
                self._left_out += (
                    f"{one['path']} has a batch of a leader epoch after which no election could come: it is"
                    " left out, since there are other copies"
                    for one in partition.listings
                    if one not in listings
                )
        self._merge_again(merges, again, scratch)
        return merges

    def _merge_again(
        self, merges: list[PlannedMerge], partitions: dict[int, PartitionCopies], scratch: Scratch
    ) -> None:
        for place, merge in zip(partitions, self._merge(list(partitions.values()), scratch), strict=True):
            merges[place] = merge

    def _in_sync(self, merge: PlannedMerge) -> frozenset[int] | None:
        """The copies that were in sync when the metadata ended; None if none is here, or that is outdated."""
        old = self.state_of(merge)
        if newer_epoch(merge, old) is not None:
            return None
        in_sync = in_sync_copies(old, self.known_brokers(merge))
        return frozenset(newest_of_brokers(merge, self.brokers_of(merge.partition), in_sync)) or None

    def state_of(self, merge: PlannedMerge) -> PartitionState:
        """The state of a partition when the metadata ended."""
        topic = self._cluster.state.topics[str(merge.partition.topic_id)]
        return topic.partitions[merge.partition.partition]

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

    def topics(self) -> list[TopicState]:
        """The topics to restore, by name."""
        return sorted(self._cluster.state.topics.values(), key=lambda one: one.name)

    def merged_topics(self) -> list[TopicState]:
        """The topics whose copies are merged, by name."""
        return self.topics()

    def _of(self, topic: TopicState) -> dict[int, list[PartitionListing]]:
        topic_id = None if topic.topic_id == topic.name else topic.topic_id
        return self._directories.of_topics.get((topic.name, topic_id), {})

    def brokers_of(self, partition: PartitionCopies) -> list[int | None]:
        """The broker of each copy; None where nothing tells it."""
        return [self._brokers.get(os.path.dirname(one["path"])) for one in partition.listings]

    def known_brokers(self, merge: PlannedMerge) -> set[int]:
        """The brokers of the copies that tell something: neither a log of which nothing is readable does, nor
        an empty one beside records.
        """
        brokers = enumerate(self.brokers_of(merge.partition))
        return {
            broker
            for copy, broker in brokers
            if broker is not None
            and not is_lost(merge, copy)
            and not is_outrun(merge, copy)
            and not self._has_lost_zeros(merge, copy)
        }

    def _has_lost_zeros(self, merge: PlannedMerge, copy: int) -> bool:
        preallocate = self._cluster.config(merge.partition.topic, "preallocate") or ""
        return is_zeroed(merge, copy) and preallocate.strip().lower() != "true"

    def newer_epochs(self, merges: Iterable[PlannedMerge]) -> dict[str, tuple[int, str]]:
        """The partitions whose copies have newer leader epochs than the metadata (`newer_epoch`)."""
        return {
            one.partition.name: found
            for one in merges
            if (found := newer_epoch(one, self.state_of(one))) is not None
        }

    def metadata_problems(self, merges: Sequence[PlannedMerge]) -> list[str]:
        """Names the gaps in the metadata and the files of log directories, and their contradictions."""
        unassigned = self._directories.unassigned
        without = (
            "the sources have no metadata, as those of a cluster with ZooKeeper: topics are those of the"
            " directories, their settings are unknown, and so is who was in sync: the copy with the last"
            " leader epoch leads"
        )
        return [
            *(
                older_than_the_disks(self._cluster, self.newer_epochs(merges), unassigned)
                if self._metadata
                else [without]
            ),
            *self._cluster.metadata.problems,
            *repeated_directories(self.inputs.log_dirs, self._directories),
            *self._left_out,
            *self._emptied(merges),
            *self._unknown_nodes(),
            *self._unnamed_topics(),
            *self._tiered_topics(),
        ]

    def _emptied(self, merges: Iterable[PlannedMerge]) -> Iterator[str]:
        """Copies that were in sync and have no records, although none of their files is damaged, if no other
        copy counts.
        """
        for merge in merges:
            state = self.state_of(merge)
            if is_committed(state, self.known_brokers(merge), merge):
                continue
            brokers = self.brokers_of(merge.partition)
            for copy, (broker, listing) in enumerate(zip(brokers, merge.partition.listings, strict=True)):
                if broker not in (*state.isr, *state.elr) or is_lost(merge, copy):
                    continue
                what = f"{merge.partition.name}: {listing['path']} was in sync and"
                if self._has_lost_zeros(merge, copy):
                    yield (
                        f"{what} has bytes, but no batch: its records are lost, unless its broker has"
                        " log.preallocate=true. It does not count as in sync"
                    )
                elif is_outrun(merge, copy):
                    yield (
                        f"{what} is empty, but other copies have records: its disk may be a new one, so it"
                        " does not count as in sync"
                    )

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
        if not self._metadata:
            return []
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
            for topic in self.topics()
            if self._cluster.configs(topic.name).get("remote.storage.enable") == "true"
        ]

    def write(
        self,
        merges: Sequence[PlannedMerge],
        placed: Sequence[PlannedMerge],
        output: LocalNodes,
        ids: Mapping[str, str],
        leader_epoch: int | None = None,
    ) -> dict[str, Any]:
        """Writes those of the merged logs that are placed somewhere, with the ids of their topics; returns
        what that adds to the report. Nothing is published yet. With `leader_epoch`, all batches get this one.
        """
        options = ConvertOptions(
            magic=None,
            leader_epoch=leader_epoch,
            max_decompressed_bytes=self._options.max_decompressed_bytes,
            index_interval_bytes=self._options.index_interval_bytes,
        )
        rewritten, written = write_merges(placed, output, ids, self._engine, options, self._progress)
        is_balanced = all(merged_partition(merge)["balanced"] for merge in merges)
        return {
            "balanced": is_balanced and all(map(is_complete, placed, rewritten)),
            "written": written,
            **problems_of_merges(merges, [task for done in rewritten for task in done]),
        }

    def certify(
        self, report: Mapping[str, Any], merges: Sequence[PlannedMerge], output: LocalNodes
    ) -> Certify | None:
        """Makes the certificate of what is written, if there has to be one."""
        listings = [*self._metadata, *(one for merge in merges for one in merge.partition.listings)]
        command = None
        if self._options.certify:
            command = command_line("restore", [*self.inputs.sources, "--out", output.path], self._options)
        return certifier(command, report, listings, self._engine, self._progress)


def is_ruined(merge: PlannedMerge) -> bool:
    """True if no copy has a good batch, and at least one had some: with an empty log, groups would jump."""
    copies = merge.alignment["copies"]
    is_empty = all(copy["last"] is None for copy in copies)
    lost = (is_lost(merge, copy) for copy, _ in enumerate(copies))
    return is_empty and (any(lost) or bool(merge.known_ends))


def _is_log(listing: PartitionListing) -> bool:
    """True for a log that a broker would open; copies of moves between disks and strays are none."""
    return listing["state"] == "current" and bool(listing["segments"])
