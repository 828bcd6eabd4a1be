"""Reading chunks: the one loop round `ChunkDecoder` that every job and the data source share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from magicbyte import _core
from magicbyte.jobs.columns import RECORDS_WITH_METADATA
from magicbyte.jobs.failure import RefusedError
from magicbyte.model import PartitionPlan

__all__ = [
    "ReadOptions",
    "Rows",
    "check_column_limit",
    "plan_problems",
    "read_chunk",
    "record_batch_of",
    "table_schema",
]


@dataclass(frozen=True)
class ReadOptions:
    """How chunks are decoded."""

    columns: tuple[str, ...] = ()
    """Of the table `records`; with none, every record is decoded all the same."""
    batches: bool = False
    """Whether rows of the table `batches` are made."""
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES
    """Largest size of one batch after decompression; with columns, at most `MAX_COLUMN_PAYLOAD`."""
    fail_fast: bool = False
    """Raise at the first bad batch instead of quarantining it."""


def check_column_limit(name: str, limit: int) -> None:
    """Raises `RefusedError` for a cap on batches, given as `name`, that is more than columns can take."""
    if limit > _core.MAX_COLUMN_PAYLOAD:
        most = _core.MAX_COLUMN_PAYLOAD
        raise RefusedError(f"{name} {limit}: tables take batches of at most {most} bytes (1 GiB)")


class Rows(NamedTuple):
    """Rows of one table."""

    table: str
    """One of `records batches problems`."""
    batch: pa.RecordBatch


def table_schema(table: str, columns: Sequence[str] | None = None) -> pa.Schema:
    """The Arrow schema of a table, or of some columns of `records`, as the core makes it."""
    if table == "records" and columns is None:
        columns = RECORDS_WITH_METADATA
    return pa.schema(_core.arrow_schema(table, columns))


def read_chunk(chunk: str, options: ReadOptions) -> Iterator[Rows | str]:
    """Decodes one chunk: yields rows as they come, and last its ChunkResult as JSON text.

    Memory is bounded by the largest batch of the log and the size of one Arrow batch. The columns
    `topic` and `partition` are in the rows of `batches` and `problems`, and in those of `records`
    if asked for. No rows of `records` are yielded when no column is asked for.
    """
    decoder = _core.ChunkDecoder(
        chunk,
        columns=options.columns,
        batches_table=options.batches,
        max_decompressed_bytes=options.max_decompressed_bytes,
        fail_fast=options.fail_fast,
    )

    def gathered() -> Iterator[Rows]:
        # Taken while records flow, so that these tables do not pile up in the decoder.
        for table, rows in (("batches", decoder.take_batches()), ("problems", decoder.take_problems())):
            if rows is not None:
                yield Rows(table, pa.record_batch(rows))

    for records in decoder:
        # Where only the other tables have rows, the batch is empty.
        if options.columns and (batch := pa.record_batch(records)).num_rows:
            yield Rows("records", batch)
        yield from gathered()
    yield from gathered()
    yield decoder.result()


def plan_problems(plan: PartitionPlan) -> pa.RecordBatch:
    """The problems known before decoding (ignored files, overlaps), as rows of `problems`."""
    return record_batch_of(plan["problems"], table_schema("problems"))


def record_batch_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Makes a record batch from dictionaries: a column `baseOffset` comes from `base_offset`."""
    named = [{name: row[_snake_case(name)] for name in schema.names} for row in rows]
    return pa.RecordBatch.from_pylist(named, schema)


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
