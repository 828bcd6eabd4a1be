"""Data files of a table without the rows that a repair replaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte.errors import JobError
from magicbyte.lake.ranges import OffsetRange
from magicbyte.lake.table import LakeFile, TableFile, TransactionalTable
from magicbyte.lake.write import LakeWriteOptions, write_rows

__all__ = ["Rewritten", "rewrite_without"]


@dataclass
class Rewritten:
    """Files to remove from a table, and files with the rows to keep."""

    replaced: list[TableFile] = field(default_factory=list)
    kept: list[LakeFile] = field(default_factory=list)
    removed: Counter[OffsetRange] = field(default_factory=Counter)
    """The number of removed rows of each range."""


def rewrite_without(
    table: TransactionalTable, ranges: Sequence[OffsetRange], options: LakeWriteOptions
) -> Rewritten:
    """Writes the other rows of all files that have rows in these ranges, one file after the other."""
    found = Rewritten()
    if not ranges:
        return found
    for file in table.files_with(ranges):
        removed = Counter[OffsetRange]()
        read = 0

        def others(
            file: TableFile = file, removed: Counter[OffsetRange] = removed
        ) -> Iterator[pa.RecordBatch]:
            nonlocal read
            for batch in file.batches():
                read += batch.num_rows
                if (rows := _without(batch, ranges, removed)).num_rows:
                    yield rows

        kept = write_rows(file.topic, others(), options)
        if not removed.total():
            continue  # what was written is not committed
        if read != removed.total() + sum(one.rows for one in kept):
            raise JobError(f"{table.name}: the rows of a file do not add up: nothing is committed")
        found.replaced.append(file)
        found.kept += kept
        found.removed.update(removed)
    return found


def _without(
    batch: pa.RecordBatch, ranges: Sequence[OffsetRange], removed: Counter[OffsetRange]
) -> pa.RecordBatch:
    """The rows outside the ranges; counts the others."""
    for one in ranges:
        topic, partition, offset = (batch.column(name) for name in ("topic", "partition", "offset"))
        within = pc.and_(
            pc.and_(pc.equal(topic, one.topic), pc.equal(partition, one.partition)),
            pc.and_(pc.greater_equal(offset, one.start), pc.less(offset, one.end)),
        )
        if count := pc.sum(within).as_py():
            removed[one] += count
            batch = batch.filter(pc.invert(within))
    return batch
