"""The tables `producers` and `transactions`: rows of each partition's story, from batch headers alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from magicbyte.jobs.engines import Engine
from magicbyte.jobs.explain import tell
from magicbyte.model import PartitionListing
from magicbyte.spark.schema import arrow_schema_of

__all__ = ["STORIES", "story_rows"]

STORIES = ("producers", "transactions")


def story_rows(table: str, listings: Sequence[PartitionListing], engine: Engine) -> pa.RecordBatch:
    """Makes the rows of one of the tables; open transactions age up to now."""
    rows: list[dict[str, Any]] = []
    # A table has all its rows, whatever that takes.
    for story in tell(listings, engine, now=round(time.time() * 1000), listed=sys.maxsize):
        place = {"topic": story["topic"], "partition": story["partition"]}
        told: Sequence[Mapping[str, Any]]
        told = story["producers"] if table == "producers" else story["transactions"]
        rows += [place | {_camel(name): value for name, value in one.items()} for one in told]
    return pa.RecordBatch.from_pylist(rows, arrow_schema_of(table))


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
