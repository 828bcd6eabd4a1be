"""Reading chunks: the loop around `ChunkDecoder` that all jobs and the data source share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import pyarrow as pa

from magicbyte import _core
from magicbyte.enums import DamageMode
from magicbyte.jobs.columns import RECORDS_WITH_METADATA
from magicbyte.jobs.failure import RefusedError
from magicbyte.model import PartitionPlan, Problem

__all__ = [
    "ReadOptions",
    "Rows",
    "check_column_limit",
    "decoded_problems",
    "plan_problems",
    "read_chunk",
    "record_batch_of",
    "table_schema",
]


@dataclass(frozen=True)
class ReadOptions:
    """How chunks are decoded."""

    columns: tuple[str, ...] = ()
    """Columns of the table `records`. Every record is decoded even if there are none."""
    batches: bool = False
    """Whether to produce rows of the table `batches`."""
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES
    """The limit for one batch after decompression; with columns, at most `MAX_COLUMN_PAYLOAD`."""
    mode: DamageMode = "PERMISSIVE"
    """Whether a bad batch is quarantined or raises an error."""


def check_column_limit(name: str, limit: int) -> None:
    """Raises `RefusedError` if the limit for batches, called `name`, is more than columns can hold."""
    if limit > _core.MAX_COLUMN_PAYLOAD:
        most = _core.MAX_COLUMN_PAYLOAD
        raise RefusedError(f"{name} {limit}: tables take batches of at most {most} bytes (1 GiB)")


class Rows(NamedTuple):
    """Rows of one table."""

    table: str
    """`records`, `batches` or `problems`."""
    batch: pa.RecordBatch


def table_schema(table: str, columns: Sequence[str] | None = None) -> pa.Schema:
    """The core's Arrow schema of a table, or of some columns of `records`."""
    if table == "records" and columns is None:
        columns = RECORDS_WITH_METADATA
    return pa.schema(_core.arrow_schema(table, columns))


def read_chunk(chunk: str, options: ReadOptions) -> Iterator[Rows | str]:
    """Decodes one chunk: yields its rows and finally its ChunkResult as JSON text.

    Memory is bounded by the largest batch of the log and one Arrow batch. Rows of `batches` and `problems`
    have the columns `topic` and `partition`, rows of `records` only on request. Without any columns, no
    rows of `records` are yielded.
    """
    decoder = _core.ChunkDecoder(
        chunk,
        columns=options.columns,
        batches_table=options.batches,
        max_decompressed_bytes=options.max_decompressed_bytes,
        mode=options.mode,
    )

    def other_tables() -> Iterator[Rows]:
        # Taken between batches of records, so that these rows do not pile up in the decoder.
        for table, rows in (("batches", decoder.take_batches()), ("problems", decoder.take_problems())):
            if rows is not None:
                yield Rows(table, pa.record_batch(rows))

    for records in decoder:
        # The batch is empty if only the other tables have rows.
        if options.columns and (batch := pa.record_batch(records)).num_rows:
            yield Rows("records", batch)
        yield from other_tables()
    yield from other_tables()
    yield decoder.result()


def plan_problems(plan: PartitionPlan) -> pa.RecordBatch:
    """The problems that are known before decoding (ignored files, overlaps), as rows of `problems`."""
    return record_batch_of(plan["problems"], table_schema("problems"))


def decoded_problems(rows: pa.RecordBatch) -> list[Problem]:
    """Rows of the table `problems` as in the core's JSON, where the column `baseOffset` is `base_offset`."""
    names = [_snake_case(name) for name in rows.schema.names]
    return [cast(Problem, dict(zip(names, row.values(), strict=True))) for row in rows.to_pylist()]


def record_batch_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Makes a record batch from dictionaries: the column `baseOffset` comes from `base_offset`."""
    named = [{name: row[_snake_case(name)] for name in schema.names} for row in rows]
    return pa.RecordBatch.from_pylist(named, schema)


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
