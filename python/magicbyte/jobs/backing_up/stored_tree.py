"""A backup in a store, where nothing can be appended, renamed or locked.

A run works in a local directory that looks like the backup. Segments that the store has are empty files of
the same size there, whose inodes tell which object each represents; new ones are real until they
are uploaded. What the run renames, cuts or removes locally is done in the store when it is published:

    copies of objects under their new names -> what is set aside -> uploads -> the manifest -> removals

A run that is killed in between has therefore left every batch under its old name, its new one, or both.
Each run begins a segment in every partition that has something new.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from magicbyte.errors import RefusedError
from magicbyte.internal_topics.names import TRANSACTION_STATE
from magicbyte.jobs.backing_up.kept_log import KeptLog, aside_name, deleted_name, future_name
from magicbyte.jobs.backing_up.kept_tree import KeptTree, not_a_backup
from magicbyte.jobs.backing_up.manifest import MANIFEST, BackedUpPartition, beside_of, read_manifest
from magicbyte.jobs.find.outputs import UNFINISHED
from magicbyte.jobs.publish.certificate import CertifiedFile
from magicbyte.jobs.publish.stored_job import StoredJob
from magicbyte.jobs.publish.stored_partitions import local_workspace
from magicbyte.listing import topic_id_of
from magicbyte.storage.stored_directory import StoredDirectory

__all__ = ["StoredTree"]

_SEGMENT = ".log"
_DELETED, _FUTURE, _STRAY = "-delete", "-future", "-stray"
_NAME = re.compile(r"[^/]+(/[^/]+)?")
_TRANSFERS = 8
"""The maximum number of small files that are transferred at a time."""
_GROWING_BYTES = 4 << 30
"""The maximum size of the segments that grow: all of them end when they have it."""


@dataclass(frozen=True)
class _Stored:
    """An object for which a local file stands."""

    name: str
    modified_ns: int
    """The last write of the local file: another file may get its inode."""
    digest: CertifiedFile | None
    """None if no manifest has it."""


class StoredTree(KeptTree):
    """A local directory that stands for one in a store."""

    def __init__(self, out: StoredDirectory) -> None:
        """Claims the output in the store.

        Raises:
            RefusedError: it is no backup, another run works in it, or nothing can be written there.

        """
        if not out.is_writable:
            raise RefusedError(f"{out.path}: nothing can be written to a web server; choose another output")
        self._out = out
        self._stored: dict[int, _Stored] = {}
        """By the inodes of the local files."""
        self._fetched: dict[int, _Stored] = {}
        """The objects whose content is in the local file."""
        self._known: Mapping[str, CertifiedFile] = {}
        """The files of the manifest."""
        self._small: dict[str, bytes] = {}
        """The content of the small files that the store has."""
        self._objects: set[str] = set()
        self._workspace = local_workspace(out.path)
        self._job: StoredJob | None = None
        self.path = self._workspace.whole
        try:
            self._job = StoredJob(out)
            self._load()
            self._job.announce([], MANIFEST)
        except BaseException:
            self.close()
            raise

    def _load(self) -> None:
        files = {name: size for name, size in self._out.files().items() if not name.startswith(UNFINISHED)}
        if files and MANIFEST not in files:
            raise not_a_backup(self._out.path)
        self._objects = set(files)
        files = {name: size for name, size in files.items() if _NAME.fullmatch(name)}
        small = [name for name in files if not name.endswith(_SEGMENT)]
        self._get(small)
        for name in small:
            with open(self._local(name), "rb") as file:
                self._small[name] = file.read()
        manifest = read_manifest(self.path)
        known = self._known = {} if manifest is None else manifest["outputs"]
        cut = {name.partition("/")[0] for name, file in known.items() if files.get(name, -1) < file["size"]}
        segments = {name: size for name, size in files.items() if name.endswith(_SEGMENT)}
        # Batches that no manifest counts are read, and all of a log that has lost some of what it counts.
        whole = [
            name
            for name, size in segments.items()
            if name in known and known[name]["size"] == size and name.partition("/")[0] not in cut
        ]
        elsewhere = {*whole, *filter(_is_aside, segments)}
        for name in elsewhere:
            self._stand_for(name, segments[name], known.get(name))
        self._get(segments.keys() - elsewhere)
        self._finish_moves([] if manifest is None else manifest["partitions"])

    def _get(self, names: Iterable[str]) -> None:
        def get(name: str) -> None:
            path = self._local(name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._get_file(name, path)

        with ThreadPoolExecutor(_TRANSFERS) as pool:
            for _ in pool.map(get, names):
                pass

    def _get_file(self, name: str, path: str) -> None:
        self._out.get_file(name, path)
        status = os.stat(path)
        known = self._known.get(name)
        digest = known if known is not None and known["size"] == status.st_size else None
        self._fetched[status.st_ino] = _Stored(name, status.st_mtime_ns, digest)

    def _stand_for(self, name: str, size: int, digest: CertifiedFile | None) -> None:
        """Puts an empty file of this size in the place of an object."""
        path = self._local(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.truncate(size)
        status = os.stat(path)
        self._stored[status.st_ino] = _Stored(name, status.st_mtime_ns, digest)

    def _finish_moves(self, entries: Iterable[BackedUpPartition]) -> None:
        """Ends what a killed run has begun to rename: copies come before removals."""
        names = {name for name in os.listdir(self.path) if os.path.isdir(self._local(name))}
        for name in names:
            directory = os.path.join(self.path, name)
            topic_id = topic_id_of({"state": "current", "path": directory})  # type: ignore[typeddict-item]
            if topic_id is not None and (aside := aside_name(name, topic_id)) in names:
                # Of what is in both, one is the copy of the other.
                for file in os.listdir(directory):
                    os.rename(os.path.join(directory, file), os.path.join(self.path, aside, file))
                os.rmdir(directory)
        for entry in entries:
            name, topic_id = f"{entry['topic']}-{entry['partition']}", entry["topic_id"]
            if {name, future_name(name, topic_id), deleted_name(name, topic_id)} <= names:
                # The full copy is whole, and the log in its place may be any part of either.
                shutil.rmtree(self._local(name))

    def _local(self, name: str) -> str:
        return os.path.join(self.path, name)

    def begin(self, log: KeptLog) -> None:
        """See `KeptTree.begin`: an object does not grow. An empty one is written again."""
        if log.active_segment is not None and os.path.getsize(log.path_of(log.active_segment)):
            log.active_segment = None

    def fetch(self, log: KeptLog, offset: int) -> None:
        """See `KeptTree.fetch`."""
        for path in map(log.path_of, log.segments_from(offset)):
            if (stored := self._stored_at(path)) is not None:
                self._get_file(stored.name, path)

    def move_out(self, logs: Collection[KeptLog], grown: Iterable[KeptLog]) -> None:
        """See `KeptTree.move_out`."""
        growing = [log for log in logs if log.active_segment is not None]
        sizes = [os.path.getsize(log.path_of(log.active_segment or 0)) for log in growing]
        if sum(sizes) >= _GROWING_BYTES:
            for log in growing:
                log.active_segment = None
            grown = logs
        active = {log.path_of(log.active_segment) for log in growing if log.active_segment is not None}
        for log in grown:
            if log.topic == TRANSACTION_STATE:
                continue  # read for the ids of producers when the manifest is written
            for path in map(log.path_of, log.segments()):
                if path not in active and self._stored_at(path) is None:
                    self._upload_segment(path)

    def _upload_segment(self, path: str) -> None:
        name, size = os.path.relpath(path, self.path), os.path.getsize(path)
        fetched = _of_file(self._fetched, path)
        # The digest of what was uploaded once: an object may have rotted since.
        digest = None if fetched is None else fetched.digest
        if digest is None:
            with open(path, "rb") as file:
                digest = CertifiedFile(size=size, sha256=hashlib.file_digest(file, "sha256").hexdigest())
        if fetched is None or fetched.name != name:
            self._out.put_file(name, path)
        self._objects.add(name)
        os.truncate(path, 0)
        self._stand_for(name, size, digest)

    def _stored_at(self, path: str) -> _Stored | None:
        """The object for which the file at a path stands; None if it is a file of its own."""
        return _of_file(self._stored, path)

    def digests(self) -> Mapping[str, CertifiedFile]:
        """See `KeptTree.digests`."""
        found = ((name, self._stored_at(self._local(name))) for name in self._files())
        return {
            name: stored.digest for name, stored in found if stored is not None and stored.digest is not None
        }

    def _files(self) -> Iterator[str]:
        for directory, _, files in os.walk(self.path):
            for file in files:
                if file != os.path.basename(beside_of(MANIFEST)):
                    yield os.path.relpath(os.path.join(directory, file), self.path)

    def publish(self) -> None:
        """See `KeptTree.publish`."""
        names = sorted(self._files())
        stored = {name: one for name in names if (one := self._stored_at(self._local(name))) is not None}
        moved = {name: one for name, one in stored.items() if one.name != name}
        for name, one in moved.items():
            self._out.copy(one.name, name)
            self._stored[os.stat(self._local(name)).st_ino] = replace(one, name=name)
        self._objects |= stored.keys()
        new = [name for name in names if name not in stored and name != MANIFEST]
        for name in filter(_is_aside, new):
            self._upload(name)
        # Another log may take the place of one that is set aside. Until it does, the metadata there tells
        # whose place it was.
        self._remove_objects({one.name for name, one in moved.items() if _is_aside(name)})
        for name in new:
            if not _is_aside(name):
                self._upload(name)
        assert self._job is not None
        self._job.confirm()
        if MANIFEST in names:
            self._upload(MANIFEST)
        self._remove_objects(self._objects - set(names))

    def _upload(self, name: str) -> None:
        path = self._local(name)
        if name.endswith(_SEGMENT):
            self._upload_segment(path)
            return
        with open(path, "rb") as file:
            content = file.read()
        if self._small.get(name) != content:
            self._out.put(name, content)
            self._small[name] = content
            self._objects.add(name)

    def _remove_objects(self, names: set[str]) -> None:
        """Removes objects. A full copy goes after the sign that it is whole."""
        signs = {name for name in names if name.partition("/")[0].endswith(_DELETED)}
        copies = {name for name in names if name.partition("/")[0].endswith(_FUTURE)}
        for some in (names - signs - copies, signs, copies):
            # What a killed run leaves of a full copy has its beginning.
            self._out.delete(sorted(some, reverse=True))
        self._objects -= names
        for name in names:
            self._small.pop(name, None)

    def replace(self, names: Mapping[str, str]) -> None:
        """See `KeptTree.replace`: the sign that the full copies are whole."""
        self.publish()
        for deleted in names.values():
            self._out.put(f"{deleted}/{_SIGN}", b"")
            self._objects.add(f"{deleted}/{_SIGN}")

    def close(self) -> None:
        """See `KeptTree.close`."""
        try:
            if self._job is not None:
                self._job.close()
        finally:
            self._workspace.close()


_SIGN = "whole"
"""A file in the directory of a log that a full copy is about to replace."""


def _is_aside(name: str) -> bool:
    return name.partition("/")[0].endswith(_STRAY)


def _of_file(files: Mapping[int, _Stored], path: str) -> _Stored | None:
    status = os.stat(path)
    found = files.get(status.st_ino)
    return found if found is not None and found.modified_ns == status.st_mtime_ns else None
