"""Where a job writes: the one place that tells directories from URLs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from magicbyte.jobs.publish.local_partitions import LocalPartitions, PartitionsOutput
from magicbyte.storage.paths import is_url, local_path

if TYPE_CHECKING:
    from magicbyte.jobs.publish.local_tables import TablesOutput

__all__ = ["partitions_output", "tables_output"]


def partitions_output(path: str | os.PathLike[str], sources: Sequence[str]) -> PartitionsOutput:
    """Claims `path`, a directory or a URL, for a job that writes partitions.

    Raises:
        RefusedError: it is not empty, it and a source overlap, or another job is writing to it.

    """
    if is_url(path):
        from magicbyte.jobs.publish.stored_partitions import StoredPartitions

        return StoredPartitions(os.fspath(path), sources)
    return LocalPartitions(local_path(path), sources)


def tables_output(path: str, sources: Sequence[str], *, overwrite: bool) -> TablesOutput:
    """Claims `path`, a directory or a URL, for a job that writes tables.

    Raises:
        RefusedError: content of `path` would be lost, it and a source overlap, or another job is writing to
            it.

    """
    # They need pyarrow, which is not needed for partitions.
    if is_url(path):
        from magicbyte.jobs.publish.stored_tables import StoredTables

        return StoredTables(path, sources, overwrite=overwrite)
    from magicbyte.jobs.publish.local_tables import LocalTables

    return LocalTables(local_path(path), sources, overwrite=overwrite)
