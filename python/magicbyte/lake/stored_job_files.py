"""The data files of one job in a store, apart from those of others until they are committed.

    DATA/magicbyte-ID/part-...        the files of one job, as in `job_files.py`
    DATA/_magicbyte/ID.avro           rewritten by that job while it runs (`jobs/publish/heartbeat.py`)

Jobs may run at the same time, and none waits for another: a job that has not rewritten its file for 30
seconds, by the clock of the store, was killed. Its files are removed by the next job, unless they are
committed. The file is JSON; it has the ending of data files since stores that know Iceberg's layout accept
no others.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterable

from magicbyte.jobs.publish import heartbeat
from magicbyte.jobs.publish.heartbeat import Heartbeat
from magicbyte.jobs.publish.written_sizes import check_size
from magicbyte.lake.job_files import JobFiles, directory_name
from magicbyte.lake.table import LakeFile, TransactionalTable
from magicbyte.storage.stored_directory import StoredDirectory

__all__ = ["StoredJobFiles"]

_JOBS = "_magicbyte"
_JOB = re.compile(r"([0-9a-f]{12})\.avro")


def _file_of(job: str) -> str:
    return f"{job}.avro"


class StoredJobFiles(JobFiles):
    """See `JobFiles`."""

    def __init__(self, data: StoredDirectory) -> None:
        self.job = uuid.uuid4().hex[:12]
        self.name = directory_name(self.job)
        self._data = data
        self._files = data.below(self.name)
        self._jobs = data.below(_JOBS)
        self._heartbeat = Heartbeat(self._jobs, _file_of(self.job), self._text)
        self._heartbeat.create()

    def _text(self, beats: int) -> bytes:
        return json.dumps({"job": self.job, "beats": beats}).encode()

    def complete(self, files: Iterable[LakeFile]) -> None:
        """See `JobFiles.complete`."""
        wanted = {os.path.basename(file.path): file.size for file in files}
        found = self._files.files()
        self._files.delete([name for name in found if name not in wanted])  # of an attempt that failed
        for name, size in wanted.items():
            check_size(self._files.url_of(name), size, found.get(name), "nothing is committed")
        self._heartbeat.confirm()

    def close(self, *, keep: bool | None) -> None:
        """See `JobFiles.close`."""
        try:
            if keep is False:
                self._files.delete(list(self._files.files()))
            if keep is not None:
                self._heartbeat.remove()
        finally:
            self._heartbeat.stop()

    def remove_orphans(self, table: TransactionalTable) -> list[str]:
        """See `JobFiles.remove_orphans`."""
        times = self._jobs.modified()
        now = times.get(_file_of(self.job), 0)
        removed = []
        for found in filter(None, map(_JOB.fullmatch, times)):
            name, job = found.group(), found.group(1)
            if not 0 < times[name] < now - heartbeat.SILENCE_SECONDS * 1000:
                continue
            if (read := self._jobs.read_tagged(name)) is None:
                continue
            # From here on that job cannot commit; should this one be killed, another one goes on.
            if self._jobs.update(name, f"removed by {self.job}".encode(), read[1]) is None:
                continue
            # The job is dead: whether it has committed will not change, but it may have just now.
            table.refresh()
            directory = directory_name(job)
            files = self._data.below(directory)
            if not table.holds(job, directory) and (left := files.files()):
                files.delete(list(left))
                removed.append(directory)
            self._jobs.delete([name])
        return removed
