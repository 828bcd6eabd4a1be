"""The job of `magicbyte restore --in-place`: the disks of a dead cluster become those on which it starts.

lock, finish a journal -> find copies, fold the metadata -> choose the copies to keep -> journal -> renames

No log is written: a copy stays as it is, or is moved aside, so that its broker gets it from the leader again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from magicbyte.errors import Error, RefusedError
from magicbyte.internal_topics.metadata.topics import TopicState
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.find.log_dirs import LogDir, read_log_dir
from magicbyte.jobs.find.partitions import find_log_dirs
from magicbyte.jobs.merging.planning import PlannedMerge
from magicbyte.jobs.publish.local_nodes import opened_nodes
from magicbyte.jobs.restore import Restore
from magicbyte.jobs.restoring.aside import (
    Change,
    ChangedFile,
    changed_files,
    changed_log_dirs,
    in_use_by_none,
    journal_of,
    prepare,
)
from magicbyte.jobs.restoring.dead_cluster import given_options
from magicbyte.jobs.restoring.doubts import repeated_directories
from magicbyte.jobs.restoring.kept_logs import copies_to_keep, missing_files, why_not_kept
from magicbyte.jobs.restoring.nodes import Node
from magicbyte.jobs.restoring.placement import Placement, Placer
from magicbyte.jobs.restoring.report import RestorePlan, RestoreReport
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.log_dir import CLEAN_SHUTDOWN, OFFSET_CHECKPOINTS, read_offset_checkpoint
from magicbyte.options.restore import RestoreOptions

__all__ = ["InPlaceReport", "restore_in_place", "undo_in_place"]

_BOOTSTRAP = "bootstrap.checkpoint"
_METADATA = f"{CLUSTER_METADATA}-0"
_PARTITION = re.compile(r".+-\d+(\.[0-9a-f]{32}-(delete|future|stray))?")
"""The names of directories that a broker opens when it starts (`UnifiedLog.parseTopicPartitionName`)."""
_NAMED = 5


class InPlaceReport(RestoreReport):
    """The report of a restore in place."""

    changed: list[ChangedFile]
    """Every file that is not as it was, or would not be; all others are untouched."""


def restore_in_place(
    sources: Sequence[str],
    engine: Engine,
    options: RestoreOptions,
    *,
    dry_run: bool = False,
    planned: Callable[[RestorePlan], None] | None = None,
    progress: Progress = NO_PROGRESS,
) -> InPlaceReport:
    """Restores the cluster on the log directories at or below `sources` themselves; with `dry_run`, changes
    nothing. A job that was killed is finished as it was planned.

    Raises:
        RefusedError: as `restore`, and: a broker or another job uses a directory; a directory or a partition
            is there several times; only a merge has all records of a partition; brokers have started on
            what was restored, or that was with other options or fewer directories; or a rename is impossible.

    """
    _check(options)
    with _locked(sources) as log_dirs:
        journal = journal_of(log_dirs)
        if journal is not None:
            report = cast(InPlaceReport, journal.report())
            _check_same(options, report, [one for one in log_dirs if not journal.concerns(one)])
            if journal.is_done:
                journal.check_untouched()
            elif not dry_run:
                journal.finish()
            return report
        job = RestoreInPlace(sources, engine, options, progress)
        with opened_nodes(None, job.inputs.paths) as (_, _, scratch):
            plan = job.plan("", scratch)
        if planned is not None:
            planned(plan)
        changes = list(job.changes())
        report = InPlaceReport(**job.report_of(plan), changed=list(changed_files(changes)))
        if not dry_run:
            prepare([one.path for one in job.log_dirs], changes, report).finish()
        return report


def undo_in_place(sources: Sequence[str]) -> None:
    """Takes back what `restore_in_place` has changed, finished or not: every file is as it was.

    Raises:
        RefusedError: there is nothing to take back; a broker or another job uses a directory; or brokers have
            started on what was restored.

    """
    with _locked(sources) as log_dirs:
        journal = journal_of(log_dirs)
        if journal is None:
            raise RefusedError(f"nothing was restored in place at or below {', '.join(sources)}")
        journal.undo()


@contextmanager
def _locked(sources: Sequence[str]) -> Iterator[list[str]]:
    """The log directories at and below `sources`, which nobody else uses."""
    # Without their meta.properties, they may be found by what is beside them only.
    log_dirs = sorted({*find_log_dirs(sources), *changed_log_dirs(sources)})
    with in_use_by_none(log_dirs):
        yield log_dirs


def _check_same(options: RestoreOptions, report: InPlaceReport, others: Sequence[str]) -> None:
    """Refuses to take what was restored for what is asked for now."""
    if json.loads(json.dumps(given_options(options))) != report["options"]:
        raise RefusedError(
            "these log directories were restored with other options, which their snapshot has: take that back"
            " first (--undo)"
        )
    for path in others:
        log_dir = read_log_dir(path, [])
        if log_dir.is_kraft and log_dir.broker_id is not None:
            raise RefusedError(
                f"{path} was not among the log directories when the others were restored: take that back"
                " first (--undo)"
            )


def _check(options: RestoreOptions) -> None:
    """Refuses what would write logs, or would have to copy them from node to node."""
    for name in ("until", "target", "nodes", "command_config", "certify"):
        if getattr(options, name):
            raise RefusedError(f"{name} needs directories that are written anew: use out, not in_place")


class RestoreInPlace(Restore):
    """Restores the log directories themselves."""

    def __init__(
        self, sources: Sequence[str], engine: Engine, options: RestoreOptions, progress: Progress
    ) -> None:
        super().__init__(sources, engine, options, progress)
        self._nodes: dict[int, Node] = {
            number: replace(node, in_place=True) for number, node in self._nodes.items()
        }
        self._kept: dict[str, dict[str, bytes]] = {}
        """The files that are written in the directories of partitions that are kept, by their path."""
        self._reasons: dict[str, str] = {}
        """Why others are not kept."""
        self._to_merge: list[str] = []
        for problem in repeated_directories(self.inputs.log_dirs, self._directories):
            raise RefusedError(f"{problem.partition(': their copies')[0]}: use --out, which merges them")
        known = {one.path for one in self.log_dirs}
        for listing in self._directories.current:
            if os.path.dirname(listing["path"]) not in known:
                raise RefusedError(f"{listing['path']} is in no log directory of a KRaft node: use --out")

    @property
    def log_dirs(self) -> list[LogDir]:
        """The directories that are restored."""
        return [log_dir for node in self._nodes.values() for log_dir in node.log_dirs]

    def place(self, placer: Placer, topic: TopicState, number: int, merge: PlannedMerge | None) -> Placement:
        """Places a partition where it is. Only whole copies that reach its end are in sync."""
        placement = super().place(placer, topic, number, merge)
        if merge is None or not placement.places:
            return replace(placement, places=())
        kept, brokers, paths = copies_to_keep(merge), self.brokers_of(merge.partition), {}
        in_sync: list[int] = []
        for copy, (broker, listing) in enumerate(zip(brokers, merge.partition.listings, strict=True)):
            if copy not in kept:
                self._reasons[listing["path"]] = why_not_kept(merge, copy)
            elif broker in placement.state.replicas:
                paths[broker] = listing["path"]
                self._kept[listing["path"]] = missing_files(
                    merge, copy, topic.topic_id, placement.state.leader_epoch + 1
                )
                in_sync += [broker] if kept[copy] else []
        if not in_sync:
            self._to_merge.append(placement.name)
        isr = [one for one in placement.state.replicas if one in in_sync]
        state = placement.state if placement.status != "online" else replace(placement.state, isr=isr)
        return replace(placement, state=state, places=tuple(map(os.path.dirname, paths.values())))

    def changes(self) -> Iterator[Change]:
        """The planned changes of the log directories.

        Raises:
            RefusedError: a log has to be written.

        """
        assert self._planned is not None
        if self._to_merge:
            named = ", ".join(self._to_merge[:_NAMED]) + ", ..." * (len(self._to_merge) > _NAMED)
            raise RefusedError(
                f"no copy of {named} has all records that are left: use --out, which writes their logs anew"
            )
        snapshot = {self._planned.snapshot: self._planned.metadata}
        for node in self._nodes.values():
            for log_dir in node.log_dirs:
                metadata = snapshot if log_dir == node.log_dirs[0] else {}
                yield from self._changes_in(log_dir.path, metadata)

    def _changes_in(self, log_dir: str, metadata: dict[str, bytes]) -> Iterator[Change]:
        names = sorted(os.listdir(log_dir))
        if metadata or _METADATA in names:
            yield Change(log_dir, _METADATA, metadata, "a snapshot replaces the old metadata")
        if _BOOTSTRAP in names:
            yield Change(log_dir, _BOOTSTRAP, {}, "a snapshot replaces it")
        if CLEAN_SHUTDOWN in names:
            yield Change(log_dir, CLEAN_SHUTDOWN, {}, "the broker has to check its logs")
        for name in OFFSET_CHECKPOINTS:
            if name in names and (why := _why_unreadable(os.path.join(log_dir, name))) is not None:
                yield Change(log_dir, name, {}, f"a broker does not start with it: {why}")
        for name in names:
            path = os.path.join(log_dir, name)
            if path in self._kept:
                for file, data in self._kept[path].items():
                    reason = "it was missing, or contradicted the log"
                    yield Change(log_dir, os.path.join(name, file), {"": data}, reason)
            elif name != _METADATA and _PARTITION.fullmatch(name) and os.path.isdir(path):
                yield Change(log_dir, name, {}, self._reasons.get(path, "the restored node has no such log"))


def _why_unreadable(path: str) -> str | None:
    try:
        read_offset_checkpoint(path)
    except (Error, OSError) as error:
        return str(error)
    return None
