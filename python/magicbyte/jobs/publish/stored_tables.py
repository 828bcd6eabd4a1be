"""The tables of an ingest in a store: tasks upload their files under final names, and the driver commits.

    OUT/records/part-JOB-...                  uploaded by the tasks; JOB is the ID of the job
    OUT/reconciliation.json, OUT/_SUCCESS     the sums, and last the mark of a complete output

`stored_job.py` keeps other jobs away until then, `stored_uploads.py` undoes what a killed job has done. Other
readers have to look for `_SUCCESS` themselves: there is no name that they would overlook until the end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

import pyarrow as pa

from magicbyte.jobs.find.outputs import RECONCILIATION, SUCCESS, UNFINISHED
from magicbyte.jobs.publish.local_tables import TablesOutput, check_replaced, foreign_file, write_empty_tables
from magicbyte.jobs.publish.parquet import DataFile
from magicbyte.jobs.publish.stored_job import StoredJob
from magicbyte.jobs.publish.stored_partitions import check_uploaded, local_workspace
from magicbyte.jobs.publish.stored_uploads import REPLACED, remember_replaced
from magicbyte.jobs.publish.table_files import Decoded, WriteOptions, decode_task
from magicbyte.jobs.publish.workspace import check_apart
from magicbyte.jobs.run.plan import DecodeTask
from magicbyte.storage.stored_directory import StoredDirectory

__all__ = ["StoredTables"]


@dataclass(frozen=True)
class _Uploads:
    """Uploads data files: in tasks, and in the driver."""

    output: StoredDirectory
    job: str

    def __call__(self, task: DecodeTask, options: WriteOptions) -> Decoded:
        """Runs a task in a directory of its own, and uploads its files."""
        with TemporaryDirectory(prefix="magicbyte-") as staging:
            decoded = decode_task(task, replace(options, staging=staging))
            return replace(decoded, files=tuple(self.upload(decoded.files)))

    def upload(self, files: Sequence[DataFile]) -> list[DataFile]:
        """Uploads local files; returns them as they are in the output."""
        named = {f"{file.table}/{self._name(file)}": file for file in files}
        self.output.put_files({name: one.path for name, one in named.items()})
        return [replace(one, path=self.output.url_of(name)) for name, one in named.items()]

    def _name(self, file: DataFile) -> str:
        return f"part-{self.job}-{file.name.removeprefix('part-')}"


class StoredTables(TablesOutput):
    """An output in a store."""

    def __init__(self, output: StoredDirectory, sources: Sequence[str], *, overwrite: bool = False) -> None:
        """Claims `output`.

        Raises:
            RefusedError: content of `output` would be lost, it and a source overlap, or another job is
                writing to it.

        """
        check_apart(output.path, sources)
        self._output = output
        self._workspace = local_workspace(output.path)
        self._job: StoredJob | None = None
        self._files: list[DataFile] = []
        self._empty: dict[str, int] = {}
        try:
            self.staging = os.path.join(self._workspace.directory, "attempts")
            os.mkdir(self.staging)
            self._job = StoredJob(self._output)
            self._uploads = self.decode = _Uploads(self._output, self._job.id)
            self._begin(overwrite)
        except BaseException:
            self._close()
            raise

    def _begin(self, overwrite: bool) -> None:
        assert self._job is not None
        found = self._output.files()
        # Of a job whose output somebody has removed.
        self._output.delete([name for name in found if name == REPLACED])
        files = [name for name in found if not name.startswith(f"{UNFINISHED}/")]
        replaced = check_replaced(
            self._output.path,
            {name.partition("/")[0] for name in files},
            lambda: foreign_file(self._output.read(RECONCILIATION), (file for file in files if "/" in file)),
            overwrite=overwrite,
        )
        if replaced:
            remember_replaced(self._output, files)
        self._job.announce([RECONCILIATION], SUCCESS)
        self._output.delete([name for name in replaced if name == SUCCESS])

    def add(self, files: Sequence[DataFile], staged: Sequence[DataFile] = ()) -> list[DataFile]:
        """See `TablesOutput.add`: files of tasks have been uploaded."""
        added = [*files, *self._uploads.upload(staged)]
        self._files += added
        return added

    def add_empty_tables(self, schemas: Mapping[str, pa.Schema]) -> None:
        """See `TablesOutput.add_empty_tables`."""
        name, whole = f"part-{self._uploads.job}-empty.parquet", self._workspace.whole
        with_rows = {file.table for file in self._files}
        missing = {table: schema for table, schema in schemas.items() if table not in with_rows}
        write_empty_tables(whole, missing, name)
        files = {f"{table}/{name}": os.path.join(whole, table, name) for table in missing}
        self._output.put_files(files)
        self._empty = {one: os.path.getsize(path) for one, path in files.items()}

    def commit(self, reconciliation: Mapping[str, Any]) -> None:
        """See `TablesOutput.commit`."""
        assert self._job is not None
        sizes = {f"{file.table}/{file.name}": file.size for file in self._files}
        check_uploaded(self._output, {**sizes, **self._empty})
        self._job.confirm()
        self._output.put(RECONCILIATION, json.dumps(reconciliation, indent=1).encode())
        self._job.confirm()
        self._output.put(SUCCESS, b"")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        try:
            if self._job is not None:
                self._job.close()
        finally:
            self._workspace.close()
