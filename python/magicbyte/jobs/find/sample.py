"""A sample of a topic's records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from magicbyte._core import Record
from magicbyte.log import PartitionLog
from magicbyte.model.listings import PartitionListing, Problem

__all__ = ["first_records"]


def first_records(
    listings: Sequence[PartitionListing], count: int, problems: list[Problem]
) -> Iterator[Record]:
    """The first records of each partition, `count` of all of them.

    What cannot be read before these is added to `problems`, and left out.
    """
    share = -(-count // max(len(listings), 1))
    for listing in listings:
        records = PartitionLog.of_listing(listing, mode="PERMISSIVE").records()
        yield from islice(records, share)
        problems += records.problems
