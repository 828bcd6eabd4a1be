"""The tables `producers` and `transactions`: rows of each partition's history, from batch headers alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from magicbyte.jobs.explain import coordinated_transactions, partition_histories
from magicbyte.jobs.run.engines import Engine
from magicbyte.model import PartitionListing
from magicbyte.spark.names import camel_case
from magicbyte.spark.options import TableOptions
from magicbyte.spark.schema import arrow_schema_of

__all__ = ["HISTORY_TABLES", "history_rows"]

HISTORY_TABLES = ("producers", "transactions")


def history_rows(table: str, listings: Sequence[PartitionListing], engine: Engine) -> pa.RecordBatch:
    """Makes the rows of one of the tables; the age of open transactions is counted to the current time."""
    rows: list[dict[str, Any]] = []
    # A table has all its rows, however many there are.
    histories = partition_histories(
        listings,
        engine,
        coordinated=coordinated_transactions(listings)[0].open_by_producer,
        now=round(time.time() * 1000),
        max_listed=sys.maxsize,
    )
    for history in histories:
        partition = {"topic": history["topic"], "partition": history["partition"]}
        entries: Sequence[Mapping[str, Any]]
        entries = history["producers"] if table == "producers" else history["transactions"]
        rows += [partition | {camel_case(name): value for name, value in entry.items()} for entry in entries]
    return pa.RecordBatch.from_pylist(rows, arrow_schema_of(TableOptions(table)))
