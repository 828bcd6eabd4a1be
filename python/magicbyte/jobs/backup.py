"""The job of `magicbyte backup`: a running cluster becomes the log directory of one more broker.

describe the cluster -> open the logs of earlier runs -> copy up to the cut -> digest -> replace the manifest
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import cast

from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.internal_topics.names import INTERNAL_TOPICS
from magicbyte.jobs.backing_up.digests import digests_of, known_files
from magicbyte.jobs.backing_up.files import LogDirImage, remove_leftovers, write_log_dir
from magicbyte.jobs.backing_up.findings import Findings
from magicbyte.jobs.backing_up.full_copies import has_more_damage, only_in_former, put_in_place
from magicbyte.jobs.backing_up.kept_log import (
    KeptLog,
    aside_name,
    check_directory,
    deleted_name,
    future_name,
)
from magicbyte.jobs.backing_up.kept_tree import KeptTree
from magicbyte.jobs.backing_up.leaders import Leaders
from magicbyte.jobs.backing_up.lineage import find_divergences, find_other_histories
from magicbyte.jobs.backing_up.manifest import (
    MANIFEST,
    BackedUpPartition,
    BackupManifest,
    CopiedBatches,
    certified,
    files_in,
    new_manifest,
    read_manifest,
    still_there,
    write_file,
)
from magicbyte.jobs.backing_up.opened_log import OfCluster, open_log
from magicbyte.jobs.backing_up.trees import open_tree
from magicbyte.jobs.backing_up.waits import Waits
from magicbyte.jobs.describing.cluster import Description, Settings, describe_cluster, describe_settings
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.publish.workspace import sync
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, Step
from magicbyte.listing import topic_id_of
from magicbyte.live import open_cluster
from magicbyte.model import Place
from magicbyte.options.backup import BackupOptions
from magicbyte.options.command_line import command_line
from magicbyte.storage.location import ClusterUrl, cluster_of

__all__ = ["BackupReport", "backup"]

_TOPICS_NAMED = 10
"""The number of topics that a message names."""
_FINAL = {
    "OFFSET_OUT_OF_RANGE",
    "TRUNCATED",
    "TOPIC_RECREATED",
    "CORRUPT",
    "UNKNOWN_TOPIC_OR_PARTITION",
}
"""Errors that no leader would take back."""


class BackupReport(BackupManifest):
    """The manifest, with the sums of this run."""

    copied_bytes: int
    copied_batches: int
    copied_records: int


def backup(
    source: str,
    out: str,
    options: BackupOptions,
    *,
    choice: PartitionChoice,
    progress: Progress = NO_PROGRESS,
) -> BackupReport:
    """Copies the chosen partitions of a cluster into `out`: what is new since the last run, or everything.

    Raises:
        RefusedError: `out` is no backup of this cluster, is in use, or already goes on after the time of the
            cut.
        OSError: the cluster does not answer or refuses, or a file cannot be written.

    """
    url = cluster_of(source)
    if url is None or url.topic is not None:
        raise RefusedError(f"{source}: expected a cluster, such as kafka://HOST:PORT; --topic chooses topics")
    with closing(open_tree(out)) as tree:
        return _Backup(url, out, tree, options, choice, progress).run()


class _Backup:
    def __init__(
        self,
        url: ClusterUrl,
        out: str,
        tree: KeptTree,
        options: BackupOptions,
        choice: PartitionChoice,
        progress: Progress,
    ) -> None:
        self._url, self._named, self._options = url, out, options
        self._tree, self._out = tree, tree.path
        self._choice, self._progress = choice, progress
        self._waits = Waits()
        self._cluster = open_cluster(url.cluster, options.command_config, self._waits.failed)
        self._leaders = Leaders(self._cluster, self._waits, self._leave_out)
        self._description: Description = describe_cluster(self._cluster)
        self._manifest = self._opened_manifest()
        self._entries = {(one["topic"], one["partition"]): one for one in self._manifest["partitions"]}
        self._settings = Settings()
        self._findings = Findings()
        self._logs: dict[Place, KeptLog] = {}
        self._full: dict[Place, KeptLog] = {}
        """The full copies that are to take the places of logs."""
        self._ends: dict[Place, int] = {}
        self._log_ends: dict[Place, int] = {}
        """The ends without a cut in time."""
        self._touched: set[str] = set()
        """The names of directories in which files have changed."""
        self._rewritten: set[str] = set()
        """The names of those in which segments have not only grown."""
        self._copied = [0, 0, 0]
        """Bytes, batches, records."""

    def run(self) -> BackupReport:
        """Makes the backup."""
        places = self._places()
        remove_leftovers(self._out, self._manifest, is_full=self._options.full)
        self._set_aside_deleted(set(places))
        starts = self._leaders.ask(self._leaders.wait_for(places), self._cut)
        places = sorted(starts)
        topics = {topic for topic, _ in [*self._entries, *places]} & self._description.topics.keys()
        self._settings = describe_settings(self._cluster, self._description, topics)
        for place in places:
            self._open(place, starts[place])
        for logs in (self._full, self._logs):
            self._check_lineage(logs)
            self._check_history(logs, starts)
            for place, log in logs.items():
                self._skip_deleted(log, starts[place])
        if self._findings.all or any(log.rewritten for log in self._logs.values()):
            # They are known before anything is copied, and have to be after a kill.
            self._write()
        else:
            self._tree.publish()
        self._begin_copying()
        self._copy()
        for log in self._targets().values():
            if self._options.as_of is not None:
                self._cut_off_open_transactions(log)
            log.complete()
        self._replace_by_full_copies()
        manifest = self._write()
        bytes_, batches, records = self._copied
        return BackupReport(**manifest, copied_bytes=bytes_, copied_batches=batches, copied_records=records)

    def _places(self) -> list[Place]:
        """The chosen partitions of the cluster."""
        there = [
            (topic.name, number) for topic in self._description.topics.values() for number in topic.partitions
        ]
        chosen = sorted(place for place in there if self._choice.includes(*place))
        if there and not chosen and not any(self._choice.includes(*place) for place in self._entries):
            topics = ", ".join(sorted(self._description.topics)[:_TOPICS_NAMED])
            raise RefusedError(
                f"{self._url.cluster}: no partition is chosen; there are partitions of {topics}"
            )
        return chosen

    def _opened_manifest(self) -> BackupManifest:
        """The manifest of the last run, or the first one, which is written before anything else."""
        manifest = read_manifest(self._out)
        if manifest is not None:
            if manifest["cluster_id"] != self._description.cluster_id:
                raise RefusedError(
                    f"{self._named} is a backup of the cluster {manifest['cluster_id']}, not of"
                    f" {self._description.cluster_id}: choose another output"
                )
            return manifest
        manifest = new_manifest(_core.__version__, self._description.cluster_id, self._description.brokers)
        write_file(os.path.join(self._out, MANIFEST), manifest)
        # A run that is killed from now on leaves a backup.
        self._tree.publish()
        return manifest

    def _targets(self) -> dict[Place, KeptLog]:
        """The logs to which batches are added."""
        return self._logs | self._full

    def _directory(self, name: str) -> str:
        return os.path.join(self._out, name)

    def _set_aside_deleted(self, places: set[Place]) -> None:
        """Keeps logs of topics that the cluster does not have any more under another name."""
        for (topic, number), entry in list(self._entries.items()):
            name = f"{topic}-{number}"
            if (topic, number) in places or not self._choice.includes(topic, number):
                continue
            aside = None
            if os.path.isdir(self._directory(name)):
                aside = self._set_aside(name, entry["topic_id"])
            elif os.path.isdir(self._directory(former := aside_name(name, entry["topic_id"]))):
                aside = former  # a run that was killed has moved it
            if aside is not None:
                self._manifest.setdefault("set_aside", {})[aside] = entry
            del self._entries[topic, number]
            message = "the cluster does not have it any more, or does not show it to this client"
            self._findings.add((topic, number), "deleted", message, aside=aside)

    def _set_aside(self, name: str, topic_id: str | None) -> str:
        """Keeps a log under another name, which it returns."""
        aside = aside_name(name, topic_id)
        if os.path.lexists(self._directory(aside)):
            aside = aside_name(name)
        os.rename(self._directory(name), self._directory(aside))
        return aside

    def _leave_out(self, place: Place) -> None:
        self._findings.add(place, "unavailable", "no broker is its leader now: run again when it has one")

    def _cut(self, places: Sequence[Place]) -> dict[Place, int]:
        """Decides where each partition ends; returns where each starts.

        The positions of groups are never later than the records: Kafka's own topics are asked first.
        """
        starts: dict[Place, int] = {}
        for internal in (True, False):
            asked = [place for place in places if (place[0] in INTERNAL_TOPICS) == internal]
            bounds = self._cluster.offsets(asked, "read_uncommitted")
            starts.update({place: start for place, (start, _) in zip(asked, bounds, strict=True)})
            self._ends.update({place: end for place, (_, end) in zip(asked, bounds, strict=True)})
        self._log_ends = dict(self._ends)
        if self._options.as_of is not None:
            of_time = self._cluster.offsets_for_time(places, self._options.as_of)
            for place, offset in zip(places, of_time, strict=True):
                if offset is not None:
                    self._ends[place] = min(self._ends[place], offset)
        return starts

    def _open(self, place: Place, start: int) -> None:
        """Opens the log of a partition, or begins one."""
        topic, number = place
        name = f"{topic}-{number}"
        topic_id = self._description.topics[topic].topic_id
        directory, entry = self._directory(name), self._entries.get(place)
        check_directory(directory)
        self._set_aside_other(place, topic_id)
        lost: list[tuple[int, int]] = []
        if not os.path.isdir(directory):
            aside = "" if topic_id is None else aside_name(name, topic_id)
            if aside and os.path.isdir(self._directory(aside)):
                # The cluster shows the topic again.
                os.rename(self._directory(aside), directory)
                former = self._manifest.get("set_aside", {}).pop(aside, None)
                lost = [(first, last) for first, last in former["lost"]] if former is not None else []
            entry = None
        log = self._logs[place] = KeptLog(directory, topic, number, topic_id, lost=lost)
        if not os.path.isdir(directory):
            self._begin(log, start)
            return
        self._open_files(log, entry, start)
        if self._options.full:
            full = KeptLog(self._directory(future_name(name, topic_id)), topic, number, topic_id)
            self._full[place] = full
            if os.path.isdir(full.directory):
                self._open_files(full, None, start)
            else:
                self._begin(full, start)

    def _open_files(self, log: KeptLog, entry: BackedUpPartition | None, start: int) -> None:
        """Opens a log whose directory is there; `entry` is what the last manifest says of it."""
        place, name = log.place, log.name
        log.create()
        end = self._ends[place] if self._options.as_of is not None else None
        if entry is None:
            self._tree.fetch(log, 0)
        before = log.segments()
        aside = self._directory(aside_name(name))
        for one in open_log(log, entry, self._manifest["outputs"], OfCluster(start, end), aside):
            self._findings.add(place, *one)
        if log.segments() != before or entry is None:
            self._touched.add(name)
        if log.first_offset is None and not (log.is_known and log.next_offset <= self._ends[place]):
            log.next_offset = start
        if end is not None and log.next_offset > max(end, start):
            raise RefusedError(
                f"{name}: the backup already goes on to offset {log.next_offset:,}, but the cut of the time"
                f" is {end:,}: choose another output, or a later time"
            )

    def _begin(self, log: KeptLog, start: int) -> None:
        """Begins a log, also in the place of one that is missing."""
        log.create()
        log.next_offset = start
        if not self._is_kept(log):
            return
        self._rewritten.add(log.name)
        former = self._entries.get(log.place)
        if former is None:
            return
        log.lost = [(first, last) for first, last in former["lost"]]
        if not former["batches"]:
            return
        message = (
            f"the directory of the backup is missing, which had {former['records']:,} records: it is copied"
            f" again from offset {start:,} on, where the log of the cluster starts now"
        )
        self._findings.add(log.place, "incomplete", message)
        if former["first_offset"] < start:
            lost = former["first_offset"], start - 1
            message = "the cluster has deleted what the missing directory had"
            self._findings.add(log.place, "lost", message, lost)
            log.lost.append(lost)

    def _set_aside_other(self, place: Place, topic_id: str | None) -> None:
        """Keeps the log of an earlier topic of the same name under another name."""
        name = f"{place[0]}-{place[1]}"
        directory = self._directory(name)
        entry = self._entries.get(place)
        former = topic_id_of({"state": "current", "path": directory})  # type: ignore[typeddict-item]
        if former is None and entry is not None:
            # A run that was killed has moved it, or the file with its id is missing.
            former = entry["topic_id"]
        if topic_id is None or former is None or former == topic_id:
            return
        aside = aside_name(name, former)
        if os.path.isdir(directory):
            aside = self._set_aside(name, former)
        self._entries.pop(place, None)
        message = f"the topic was deleted and created again: the log of {former} is kept in {aside}"
        self._findings.add(place, "recreated", message, aside=aside)

    def _check_lineage(self, logs: Mapping[Place, KeptLog]) -> None:
        """Sets batches aside that the leader does not have: an unclean election has removed them, or the
        cluster has come back from an older copy.
        """
        asked = list(logs.values())
        while asked:
            ends = find_divergences(self._cluster, self._leaders, asked, self._log_ends)
            # The epoch before may have ended earlier, too.
            asked = [logs[place] for place in ends]
            for log in asked:
                self._set_aside_diverged(log, ends[log.place])

    def _set_aside_diverged(self, log: KeptLog, end: int) -> None:
        last = log.next_offset - 1
        # The end of a damaged batch may be wrong: what the leader has there is copied again.
        end = min((one["first_offset"] for one in log.damaged if one["last_offset"] >= end), default=end)
        aside = aside_name(log.name)
        self._tree.fetch(log, 0)
        if log.cut_at(end, self._directory(aside)):
            message = f"the leader does not have the batches from offset {end:,} on: they are kept in {aside}"
            self._findings.add(log.place, "diverged", message, (end, last), aside)
        self._touched.add(log.name)

    def _check_history(self, logs: dict[Place, KeptLog], starts: Mapping[Place, int]) -> None:
        """Sets logs aside whose last record is not that of the leader, although the epochs agree."""
        bounds = {place: (starts[place], self._log_ends[place]) for place in logs}
        for place in find_other_histories(self._cluster, self._leaders, logs.values(), bounds):
            log, start = logs[place], starts[place]
            aside = aside_name(log.name)
            os.rename(log.directory, self._directory(aside))
            assert log.last_record is not None
            message = (
                f"the leader has another record at offset {log.last_record['offset']:,}, under the same"
                " epoch, as after the return of an older copy of the cluster: its log is copied again from"
                f" offset {start:,} on, and what was copied before is kept in {aside}"
            )
            first = log.next_offset if log.first_offset is None else log.first_offset
            self._findings.add(place, "diverged", message, (first, log.next_offset - 1), aside)
            if self._is_kept(log):
                self._entries.pop(place, None)
                if (full := self._full.pop(place, None)) is not None:
                    # The new log is a full copy, too.
                    shutil.rmtree(full.directory)
            logs[place] = KeptLog(log.directory, *place, log.topic_id)
            self._begin(logs[place], start)

    def _skip_deleted(self, log: KeptLog, start: int) -> None:
        """Notes the start of the cluster's log, and the offsets before it that no run has copied."""
        log.log_start_offset = start
        if log.next_offset < start:
            if log.first_offset is not None or log.is_known:
                message = "the cluster deleted these offsets before they were copied"
                self._findings.add(log.place, "lost", message, (log.next_offset, start - 1))
            log.go_on_at(start)

    def _begin_copying(self) -> None:
        for log in self._targets().values():
            self._tree.begin(log)

    def _copy(self) -> None:
        """Copies all partitions up to the cut."""
        pending = {
            place: log
            for place, log in self._targets().items()
            if log.next_offset < self._ends[place] and place not in self._leaders.unavailable
        }
        logs = dict(pending)
        with self._progress.step(f"magicbyte backup: {len(pending):,} partitions", 0) as step:
            while pending:
                ranges = [log.range_to(self._ends[place]) for place, log in pending.items()]
                text = self._cluster.copy_batches(ranges, self._options.segment_bytes)
                copies: list[CopiedBatches] = json.loads(text)
                if any(
                    one["stopped"] is not None and one["stopped"]["error"] not in _FINAL for one in copies
                ):
                    self._leaders.leave_out(pending)
                added = [(logs[one["topic"], one["partition"]], one) for one in copies]
                for log, copied in added:
                    self._add(log, copied, step)
                # A manifest that is written now counts all that was appended.
                for log, copied in added:
                    ends_here = copied["stopped"] is not None and not self._goes_on(log, copied)
                    if ends_here or log.next_offset >= self._ends[log.place]:
                        del pending[log.place]
                self._tree.move_out(logs.values(), [log for log, copied in added if copied["batches"]])

    def _add(self, log: KeptLog, copied: CopiedBatches, step: Step) -> None:
        log.add(copied)
        if copied["batches"]:
            self._touched.add(log.name)
            self._waits.succeeded()
        for one in copied["damaged"]:
            offsets = one["first_offset"], one["last_offset"]
            self._findings.add(log.place, "damaged", one["message"], offsets)
        if copied["damaged_left_out"]:
            self._findings.add(log.place, "damaged", f"{copied['damaged_left_out']:,} more batches")
        sums = copied["size"], copied["batches"], copied["records"]
        self._copied = [before + now for before, now in zip(self._copied, sums, strict=True)]
        step.done(self._copied[0])

    def _goes_on(self, log: KeptLog, copied: CopiedBatches) -> bool:
        """Reacts to what has stopped the copy of a partition; False if it ends there."""
        stopped = copied["stopped"]
        assert stopped is not None
        if log.place in self._leaders.unavailable:
            return False
        if stopped["error"] not in _FINAL and copied["batches"]:
            return True
        if stopped["error"] == "OFFSET_OUT_OF_RANGE":
            ((start, _),) = self._cluster.offsets([log.place], "read_uncommitted")
            if log.next_offset < start <= self._ends[log.place]:
                # Retention has overtaken the run. After a kill, nothing else would tell.
                self._skip_deleted(log, start)
                self._write()
                self._begin_copying()
                return True
        self._findings.add(log.place, "stopped", stopped["message"])
        return False

    def _cut_off_open_transactions(self, log: KeptLog) -> None:
        """Ends a log at the last stable offset that it had at the time of the cut.

        The batches tell it: that of the cluster is the one of now. The log stays as it is if it would lose
        the marker of an earlier transaction, or batches that an earlier run has counted.
        """
        entry, end = self._entries.get(log.place), log.last_stable_offset
        counted = entry["next_offset"] if entry is not None and self._is_kept(log) else 0
        is_overlapped = any(one["is_overlapped"] for one in log.open_transactions[:1])
        if end == log.next_offset or end < counted or is_overlapped:
            return
        aside = aside_name(log.name)
        self._tree.fetch(log, end)
        moved = log.cut_at(end, self._directory(aside), is_stable=True)
        self._touched.add(log.name)
        if moved and log.next_offset >= counted:
            shutil.rmtree(self._directory(aside))
        elif moved:
            message = f"batches before offset {counted:,} are damaged: they are kept in {aside}"
            self._findings.add(log.place, "incomplete", message, aside=aside)

    def _replace_by_full_copies(self) -> None:
        """Puts full copies in the places of the old ones, except for those that could not be finished."""
        stopped = self._findings.stopped() | self._leaders.unavailable
        finished = [log for log in self._full.values() if log.place not in stopped]
        worse = [log for log in finished if has_more_damage(log, self._logs[log.place])]
        for log in worse:
            message = "the full copy has damaged batches that the former one may have whole: that one stays"
            self._findings.add(log.place, "stopped", message)
            shutil.rmtree(log.directory)
        whole = [log for log in finished if log not in worse]
        if not whole:
            return
        older = {log.name: self._older(log) for log in whole}
        # Other bytes under the same names: if this run is killed now, the next one has to read all of them.
        others = {f"{one['topic']}-{one['partition']}" for one in self._entries.values()} - older.keys()
        self._manifest = cast(
            BackupManifest,
            {
                **self._manifest,
                "outputs": files_in(others, self._manifest["outputs"]),
                "changed": files_in(others, self._manifest.get("changed", {})),
                "findings": self._findings.all,
            },
        )
        write_file(os.path.join(self._out, MANIFEST), self._manifest)
        for log in whole:
            segments, aside = older[log.name]
            for segment in segments:
                self._logs[log.place].move_rest(segment, 0, segment, self._directory(aside))
        self._tree.replace({log.name: deleted_name(log.name, log.topic_id) for log in whole})
        for log in whole:
            put_in_place(log, self._logs[log.place])
            self._logs[log.place] = log
            self._touched.add(log.name)
        self._findings.forget_changes({log.place for log in whole})

    def _older(self, full: KeptLog) -> tuple[list[int], str]:
        """The segments of a log with what the cluster has deleted since, and the name of the directory to
        which they have to be moved before a full copy takes its place.
        """
        segments, start = only_in_former(full, self._logs[full.place])
        aside = aside_name(full.name)
        if segments:
            message = f"the cluster deleted what the former copy has before offset {start:,}: kept in {aside}"
            self._findings.add(full.place, "replaced", message, (segments[0], start - 1), aside)
        return segments, aside

    def _is_kept(self, log: KeptLog) -> bool:
        """False for a full copy beside the log that the backup has."""
        return log.directory == self._directory(log.name)

    def _write(self) -> BackupManifest:
        """Writes the files beside the segments, and then the manifest."""
        settings = self._settings
        for log in self._logs.values():
            log.write_epochs()
            self._entries[log.place] = log.entry(self._replicas(log.place))
        entries = [self._entries[place] for place in sorted(self._entries)]
        made_ms = time.time_ns() // 1_000_000
        image = LogDirImage(self._description, settings, entries, made_ms, self._options.with_acls)
        self._manifest["max_producer_id"] = write_log_dir(
            self._out, self._manifest, image, self._tree.digests().keys()
        )
        for name in self._touched:
            sync(self._directory(name))
        opened = {log.name: log for log in self._logs.values()}
        stored = self._tree.digests()
        known = known_files(self._out, self._manifest, self._logs.values(), self._rewritten, stored)
        digests = digests_of(self._out, opened, known)
        named = self._findings.messages
        for name in sorted(digests.changed):
            message = f"{name} is not what was copied, or has more bytes: copy it again with --full"
            if message not in named:
                self._findings.add(opened[os.path.dirname(name)].place, "changed", message)
        # What this run has not looked at is as the last one has left it.
        others = {f"{one['topic']}-{one['partition']}" for one in entries} - opened.keys()
        manifest = cast(
            BackupManifest,
            {
                **self._manifest,
                "magicbyte": _core.__version__,
                "command": command_line("backup", [self._url.cluster, self._named], self._options),
                "made_ms": made_ms,
                "problems": len(self._findings.all),
                "written": [certified(one) for one in entries],
                "outputs": dict(
                    sorted({**files_in(others, self._manifest["outputs"]), **digests.files}.items())
                ),
                "changed": {**files_in(others, self._manifest.get("changed", {})), **digests.changed},
                "bootstrap_servers": self._url.bootstrap_servers,
                "as_of": self._options.as_of,
                "brokers": list(self._description.brokers),
                "features": dict(self._description.features),
                "metadata_end_offset": self._description.metadata_end_offset,
                "set_aside": still_there(self._out, self._manifest.get("set_aside", {})),
                "partitions": entries,
                "findings": self._findings.all,
                "acl_resources": sorted(
                    {f"{one['resourceType']} {one['resourceName']}" for one in settings.acls}
                )[: _core.LISTED],
                "secret_configs": settings.secret_configs,
                "scram_users": settings.users,
                "unknown_settings": settings.unknown,
            },
        )
        write_file(os.path.join(self._out, MANIFEST), manifest)
        self._tree.publish()
        self._manifest = manifest
        self._touched, self._rewritten = set(), set()
        for log in self._logs.values():
            log.rewritten.clear()
        return manifest

    def _replicas(self, place: Place) -> list[int]:
        return list(self._description.topics[place[0]].partitions[place[1]].replicas)
