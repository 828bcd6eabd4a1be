"""The claim of a job on its output in a store, where nothing can be locked and nothing renamed.

    OUT/.magicbyte-unfinished/job.json    which job is at work, and what it uploads under final names

The job writes `job.json` before anything else, rewrites it every 10 seconds (`heartbeat.py`), and removes it
at the end. A reader that finds it without the marker of a complete output takes nothing for output.

A second job watches it for 30 seconds. If it changes, the first job is alive, and the second one is
refused. If not, the first was killed: the second one takes over `job.json`, and removes what the first has
uploaded, if its marker is not there. These steps are conditional requests, of which a store lets only one
succeed. A job that has lost `job.json`, because its process was suspended or could not reach the store,
notices that before it writes its marker, and publishes nothing.

Where a store has no conditional requests, a file is looked at before it is written: two jobs that start in
the same moment may both go on then, until one of them notices.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict

from magicbyte.errors import RefusedError
from magicbyte.jobs.find.outputs import UNFINISHED
from magicbyte.jobs.publish import heartbeat
from magicbyte.jobs.publish.heartbeat import Heartbeat
from magicbyte.jobs.publish.stored_uploads import JobRecord, clear_uploads
from magicbyte.storage.stored_directory import StoredDirectory

__all__ = ["StoredJob"]

_LOOKS = 10
"""The number of times that a second job looks for signs of life of the first."""
_JOB = f"{UNFINISHED}/job.json"
_LOGGER = logging.getLogger("magicbyte.jobs")


class StoredJob:
    """A job while it writes to a directory of a store."""

    def __init__(self, output: StoredDirectory) -> None:
        """Claims the directory, and removes what killed jobs have uploaded there.

        Raises:
            RefusedError: another job is alive, or `job.json` is not from a job.

        """
        self._output = output
        self._record = JobRecord(uuid.uuid4().hex[:12])
        self._killed: tuple[JobRecord, ...] = ()
        self._heartbeat = Heartbeat(output, _JOB, self._text)
        self._claim()
        try:
            self._clear_killed()
        except BaseException:
            self._heartbeat.stop()  # and leaves `job.json` to the next job
            raise

    @property
    def id(self) -> str:
        """The ID of this job."""
        return self._record.job

    def announce(self, names: Sequence[str], marker: str) -> None:
        """Says what will be uploaded, before it is, so that the next job can remove it."""
        self._record = JobRecord(self.id, tuple(names), marker)
        self.confirm()

    def confirm(self) -> None:
        """Makes sure that this job still holds the directory.

        Raises:
            JobError: it does not.

        """
        self._heartbeat.confirm()

    def close(self) -> None:
        """Removes what was uploaded, unless it is committed, and lets the next job in."""
        try:
            if not self._heartbeat.is_lost:
                clear_uploads(self._output, self._record)
                self._heartbeat.remove()
        except OSError as error:
            _LOGGER.warning(
                "%s: what this job leaves there is removed by the next one: %s", self._output.path, error
            )
        finally:
            self._heartbeat.stop()

    def _text(self, beats: int) -> bytes:
        state = {**asdict(self._record), "killed": list(map(asdict, self._killed)), "beats": beats}
        return json.dumps(state).encode()

    def _clear_killed(self) -> None:
        for killed in self._killed:
            clear_uploads(self._output, killed)
        self._killed = ()
        self.confirm()

    def _claim(self) -> None:
        while True:
            found = self._output.read_tagged(_JOB)
            if found is None:
                if self._heartbeat.create():
                    return
                continue
            data, tag = found
            if self._watch(data):
                self._killed = self._parse(data)
                if not self._heartbeat.take_over(tag):
                    raise self._in_use()
                return

    def _watch(self, data: bytes) -> bool:
        """True if the job that has written `data` was killed; False if it has ended."""
        self._parse(data)
        _LOGGER.warning(
            "%s: another job is at work there, or was killed; watching it for %.0f s",
            self._output.path,
            heartbeat.SILENCE_SECONDS,
        )
        for _ in range(_LOOKS):
            time.sleep(heartbeat.SILENCE_SECONDS / _LOOKS)
            now = self._output.read(_JOB)
            if now is None:
                return False
            if now != data:
                raise self._in_use()
        return True

    def _parse(self, data: bytes) -> tuple[JobRecord, ...]:
        """The records of a job and of those whose uploads it was removing."""
        if not data:  # killed when it created the file, on a file system that does so in two steps
            return ()
        try:
            found = json.loads(data)
            return (*map(JobRecord.parse, found["killed"]), JobRecord.parse(found))
        except (ValueError, TypeError, KeyError):
            url = self._output.url_of(_JOB)
            raise RefusedError(f"{url} is not from a job: remove it, or choose another output") from None

    def _in_use(self) -> RefusedError:
        return RefusedError(
            f"another job is writing {self._output.path}: wait until it ends, or choose another output"
        )
