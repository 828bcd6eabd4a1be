"""Reading chunks: the loop around `ChunkDecoder` that all jobs and the data source share."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte import _core
from magicbyte.enums import DamageMode, PayloadType, fails_fast
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.run.columns import INVALID_COLUMNS, RECORDS_WITH_METADATA
from magicbyte.jobs.run.holes import Hole, joined
from magicbyte.jobs.run.live_chunks import LiveChunk, fetch_chunk, is_live_chunk, with_place
from magicbyte.jobs.run.selecting import ChunkSelection, decoded_columns
from magicbyte.jobs.run.sums import RecordSums, digest_field, with_digest
from magicbyte.model import Chunk, PartitionPlan, Problem
from magicbyte.typed_stream import typed_pieces

if TYPE_CHECKING:
    from magicbyte.expressions.record_filter import RecordFilter
    from magicbyte.schema.decoding import ColumnDecoder

__all__ = [
    "ROWS_ABOVE",
    "UNKNOWN_SCHEMAS",
    "HighWatermarks",
    "ReadOptions",
    "Rows",
    "check_column_limit",
    "decoded_problems",
    "no_rows",
    "plan_problems",
    "read_chunk",
    "record_batch_of",
    "table_schema",
]


HighWatermarks = Mapping[tuple[str, int], int]
"""High watermarks (exclusive) by topic and partition, where they are known."""
ROWS_ABOVE = "rows_above_high_watermark"
"""The field of a ChunkResult that counts rows at or above the high watermark, if there are any."""
UNKNOWN_SCHEMAS = "unknown_schemas"
"""The field of a ChunkResult that has the holes with all rows whose schema the registry did not have, if
there are any."""


@dataclass(frozen=True)
class ReadOptions:
    """Options for decoding chunks."""

    columns: tuple[str, ...] = ()
    """Columns of the table `records`. Every record is decoded even if there are none."""
    batches: bool = False
    """True to produce rows of the table `batches`."""
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES
    """The limit for one batch after decompression; with columns, at most `MAX_COLUMN_PAYLOAD`."""
    mode: DamageMode = "PERMISSIVE"
    """The treatment of a bad batch: quarantine it, or raise an error. In the second case, a key or value that
    is not text raises an error, too."""
    key_as: PayloadType = "binary"
    """The type to read keys as. With text, rows of `records` also have the column `invalidKey`."""
    value_as: PayloadType = "binary"
    """The type to read values as. With text, rows of `records` also have the column `invalidValue`."""
    start_timestamp: int | None = None
    """Records with an earlier timestamp (ms) are left out, and counted as outside."""
    end_timestamp: int | None = None
    """Records with this timestamp or a later one are left out, and counted as outside."""

    where: RecordFilter | None = None
    """Rows for which this is not true are left out, and counted as outside; only with columns."""

    typed: tuple[ColumnDecoder, ...] = ()
    """Decoders that turn binary keys or values into typed columns. `columns` then includes `headers`."""

    fails_on_unknown_schema: bool = False
    """True to raise an error for a row whose schema the registry does not have."""

    digests: bool = False
    """True to return rows of `records` with the sums of their digests. Typed rows also get `_digest`."""

    high_watermarks: HighWatermarks = dataclasses.field(default_factory=dict)
    """The high watermarks at which rows begin to count as `ROWS_ABOVE`, if `offset` is among the columns."""

    @property
    def records_schema(self) -> pa.Schema:
        """The schema of the rows of `records`."""
        schema = table_schema("records", self.columns, key_as=self.key_as, value_as=self.value_as)
        for decoder in self.typed:
            schema = decoder.replaced(schema)
        return schema.append(digest_field()) if self.typed and self.digests else schema


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
    sums: RecordSums = RecordSums()
    """The sums of rows of `records`, if their digests are requested."""


def table_schema(
    table: str,
    columns: Sequence[str] | None = None,
    *,
    key_as: PayloadType = "binary",
    value_as: PayloadType = "binary",
) -> pa.Schema:
    """The core's Arrow schema of a table, or of some columns of `records`."""
    if table == "records" and columns is None:
        columns = RECORDS_WITH_METADATA
    return pa.schema(_core.arrow_schema(table, columns, key_as=key_as, value_as=value_as))


def read_chunk(encoded: str | _core.FetchedChunk, options: ReadOptions) -> Iterator[Rows | str]:
    """Decodes one chunk, of a file or fetched: yields its rows and finally its ChunkResult as JSON text.

    A chunk of a running cluster is fetched meanwhile. Memory is bounded by the largest batch of the log, one
    Arrow batch, and the answers that `FetchedChunks` fetches ahead. Rows of `batches` and `problems` have the
    columns `topic` and `partition`, rows of `records` only on request. Without any columns, no rows of
    `records` are yielded.
    """
    if isinstance(encoded, str) and is_live_chunk(chunk := cast(Chunk, json.loads(encoded))):
        yield from _fetch_and_decode(chunk, options)
    else:
        yield from _decode(encoded, options)


def _fetch_and_decode(chunk: LiveChunk, options: ReadOptions) -> Iterator[Rows | str]:
    fetched, lost, log_start = fetch_chunk(chunk, options.max_decompressed_bytes)
    unknown_schemas: tuple[Hole, ...] = ()
    account = _core.join_results([])
    for piece in fetched:
        for item in _decode(piece, options):
            if isinstance(item, Rows):
                yield item
                continue
            if UNKNOWN_SCHEMAS in item:
                holes = (Hole(*hole) for hole in json.loads(item)[UNKNOWN_SCHEMAS])
                unknown_schemas = joined([*unknown_schemas, *holes])
            account = _core.join_results([account, item])
    if lost is not None:
        yield Rows("problems", record_batch_of([lost], table_schema("problems")))
    result = with_place(account, chunk, lost, log_start)
    yield _completed(result, {}, unknown_schemas) if unknown_schemas else result


def _decode(encoded: str | _core.FetchedChunk, options: ReadOptions) -> Iterator[Rows | str]:
    chunk = encoded if isinstance(encoded, str) else encoded.to_json()
    where = options.where if options.columns else None
    untyped = replace(options, typed=())
    selection = where and ChunkSelection(where, chunk, untyped.records_schema.names)
    sums: Counter[str] = Counter()
    unknown_schemas: tuple[Hole, ...] = ()
    mark = _high_watermark(chunk, options)
    decoder = _core.ChunkDecoder(
        encoded,
        columns=decoded_columns(where, options.columns) if where else options.columns,
        batches_table=options.batches,
        max_decompressed_bytes=options.max_decompressed_bytes,
        mode=options.mode,
        key_as=options.key_as,
        value_as=options.value_as,
        start_timestamp=options.start_timestamp,
        end_timestamp=options.end_timestamp,
    )

    def other_tables() -> Iterator[Rows]:
        # Taken between batches of records, so that these rows do not pile up in the decoder.
        for table, rows in (("batches", decoder.take_batches()), ("problems", decoder.take_problems())):
            if rows is not None:
                yield Rows(table, pa.record_batch(rows))

    for records in decoder:
        # The batch is empty if only the other tables have rows.
        if options.columns and (batch := pa.record_batch(records)).num_rows:
            if selection:
                batch = selection.select(batch)
            start = 0
            for piece, columns in typed_pieces(batch, options.typed):
                digests = RecordSums()
                if options.digests and piece.num_rows:
                    digests.add_rows(batch.slice(start, piece.num_rows))
                start += piece.num_rows
                for typed, nameless in zip(options.typed, columns, strict=True):
                    column = typed.column
                    invalid = piece.num_rows - piece.column(INVALID_COLUMNS[column]).null_count
                    sums.update({f"invalid_{column}s": invalid, f"unframed_{column}s": nameless.unframed})
                    if nameless.absent and "offset" in piece.schema.names:
                        if options.fails_on_unknown_schema:
                            raise _unknown_schema(chunk, piece, typed, nameless.absent[0])
                        offsets = piece.column("offset").take(pa.array(nameless.absent)).to_pylist()
                        unknown = [Hole(offset, offset + 1) for offset in offsets]
                        unknown_schemas = joined([*unknown_schemas, *unknown])
                if fails_fast(options.mode):
                    _refuse_invalid(chunk, piece, options)
                if digests and options.typed:
                    piece = with_digest(piece, digests)
                if mark is not None:
                    above = pc.sum(pc.greater_equal(piece.column("offset"), mark)).as_py()
                    sums.update({ROWS_ABOVE: above or 0})
                if piece.num_rows:
                    yield Rows("records", piece, digests)
        yield from other_tables()
    yield from other_tables()
    result = selection.account(decoder.result()) if selection else decoder.result()
    yield _completed(result, sums, unknown_schemas) if unknown_schemas or any(sums.values()) else result


def _completed(result: str, sums: Mapping[str, int], unknown_schemas: Sequence[Hole]) -> str:
    """The chunk's ChunkResult with the rows that are counted here, and those of unknown schemas."""
    account = json.loads(result)
    for name, rows in sums.items():
        account[name] = account.get(name, 0) + rows
    if unknown_schemas:
        account[UNKNOWN_SCHEMAS] = unknown_schemas
    return json.dumps(account)


def _high_watermark(chunk: str, options: ReadOptions) -> int | None:
    """The high watermark of the chunk's partition, if the chunk may have rows above it."""
    if not options.high_watermarks:
        return None
    place = cast(Chunk, json.loads(chunk))
    mark = options.high_watermarks.get((place["topic"], place["partition"]))
    ends = [one for one in (place["next_offset"], place["end_offset"]) if one is not None]
    return None if mark is None or min(ends, default=mark + 1) <= mark else mark


def _unknown_schema(chunk: str, batch: pa.RecordBatch, decoder: ColumnDecoder, row: int) -> JobError:
    """The error for a row whose schema the registry does not have."""
    place = cast(Chunk, json.loads(chunk))
    offset, reason = batch.column("offset")[row], batch.column(decoder.error_column)[row]
    return JobError(
        f"{place['topic']}-{place['partition']}, offset {offset}: the schema of the {decoder.column} is "
        f"unknown: {reason}"
    )


def _refuse_invalid(chunk: str, batch: pa.RecordBatch, options: ReadOptions) -> None:
    """Raises an error for the first key or value that is not what it is read as."""
    typed = {decoder.column: decoder for decoder in options.typed}
    for field, payload in (("key", options.key_as), ("value", options.value_as)):
        name = INVALID_COLUMNS[field]
        if name in batch.schema.names and batch.column(name).null_count < batch.num_rows:
            row = batch.column(name).is_valid().index(True).as_py()
            place = cast(Chunk, json.loads(chunk))
            at = f", offset {batch.column('offset')[row]}" if "offset" in batch.schema.names else ""
            name = f"{place['topic']}-{place['partition']}/{place['segment']}"
            if field in typed:
                reason = batch.column(typed[field].error_column)[row]
                raise JobError(f"{name}{at}: the {field} cannot be decoded: {reason}")
            raise JobError(f"{name}{at}: the {field} is not {_EXPECTED[payload]}")


_EXPECTED = {"string": "UTF-8", "json": "JSON"}


def plan_problems(plan: PartitionPlan) -> pa.RecordBatch:
    """The problems that are known before decoding (ignored files, overlaps), as rows of `problems`."""
    return record_batch_of(plan["problems"], table_schema("problems"))


def decoded_problems(rows: pa.RecordBatch) -> list[Problem]:
    """Rows of the table `problems` as in the core's JSON, where the column `baseOffset` is `base_offset`."""
    names = [_snake_case(name) for name in rows.schema.names]
    return [cast(Problem, dict(zip(names, row.values(), strict=True))) for row in rows.to_pylist()]


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A record batch without rows."""
    # Not from a list, since pyarrow loads pandas for those.
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def record_batch_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Makes a record batch from dictionaries: the column `baseOffset` comes from `base_offset`."""
    named = [{name: row[_snake_case(name)] for name in schema.names} for row in rows]
    return pa.RecordBatch.from_pylist(named, schema)


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
