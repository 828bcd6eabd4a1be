"""A sample of a topic's records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte.log import PartitionLog
from magicbyte.model.listings import PartitionListing, Problem

__all__ = ["first_rows"]


def first_rows(
    listings: Sequence[PartitionListing], columns: Sequence[str], count: int, problems: list[Problem]
) -> Iterator[pa.RecordBatch]:
    """The first records of each partition: `count` of all of them, or all that there are.

    Partitions give alike; where one has fewer records, the others give more. One is open at a time. What
    cannot be read before these records is added to `problems`, and left out.
    """
    pending: list[tuple[PartitionListing, int | None]] = [(listing, None) for listing in listings]
    while pending and count:
        share = -(-count // len(pending))
        longer = []
        for listing, start in pending:
            wanted = min(share, count)
            left = wanted
            for rows in _rows(listing, columns, start, left, problems):
                left -= rows.num_rows
                start = pc.max(rows.column("offset")).as_py() + 1
                yield rows.select(columns)
            count -= wanted - left
            if left == 0:
                longer.append((listing, start))
        pending = longer


def _rows(
    listing: PartitionListing,
    columns: Sequence[str],
    start: int | None,
    count: int,
    problems: list[Problem],
) -> Iterator[pa.RecordBatch]:
    """At most `count` rows from an offset on, with the column `offset`."""
    if not count:
        return
    log = PartitionLog.of_listing(listing, mode="PERMISSIVE")
    stream = log.to_arrow(list(dict.fromkeys(("offset", *columns))), start_offset=start)
    with pa.RecordBatchReader.from_stream(stream) as batches:
        for batch in batches:
            rows = batch.slice(0, count)
            count -= rows.num_rows
            if rows.num_rows:
                yield rows
            if not count:
                break
    # Another round of the same partition finds the same damage.
    problems += [problem for problem in stream.problems if problem not in problems]
