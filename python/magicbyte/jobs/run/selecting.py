"""Selecting records with an expression (`--where`), for jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from magicbyte import _core
from magicbyte.errors import JobError, RefusedError
from magicbyte.expressions.errors import EvaluationError, ExpressionError
from magicbyte.extras import naming_extras
from magicbyte.jobs.run.columns import INVALID_COLUMNS
from magicbyte.model import Chunk, ChunkResult

if TYPE_CHECKING:
    import pyarrow as pa

    from magicbyte.expressions.record_filter import RecordFilter

__all__ = [
    "MAX_DECOMPRESSED_BYTES",
    "ChunkSelection",
    "Selected",
    "decoded_columns",
    "record_filter",
    "select_in_chunk",
    "select_rows",
]

MAX_DECOMPRESSED_BYTES = (1 << 30) - 1
"""The maximum limit for a batch that still lets every record be passed to an expression: half of what Arrow's
arrays hold."""

_NO_TIMESTAMP = -1

Selected = list[tuple[int, list[tuple[int, int]]]]
"""The position of each batch with selected records, and the runs of selected records in it: the first and the
last index, from 0. Both in order."""


def record_filter(expression: str) -> RecordFilter:
    """The filter of `--where`.

    Raises:
        RefusedError: if the expression is not valid.
        ModuleNotFoundError: if duckdb or pyarrow is missing.

    """
    # Imported here, because redacting by keys needs no pyarrow.
    with naming_extras("where", "sql"):
        from magicbyte.expressions.record_filter import RecordFilter

    try:
        return RecordFilter(expression)
    except ExpressionError as error:
        raise RefusedError(f"where: {error}") from None


def decoded_columns(where: RecordFilter, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns to decode for rows of these columns that `ChunkSelection` selects."""
    # Distinguishes a time that the column cannot hold from a missing one.
    more = ("timestampMillis",) if "timestamp" in columns else ()
    return tuple(dict.fromkeys((*columns, *where.columns, *more)))


class ChunkSelection:
    """Selects rows of a chunk; the others are counted as outside, like those outside a range.

    Args:
        where: the expression.
        chunk: the chunk, as JSON text.
        names: the columns of the rows that are passed on.

    """

    def __init__(self, where: RecordFilter, chunk: str, names: Sequence[str]) -> None:
        self._where = where
        self._chunk = cast(Chunk, json.loads(chunk))
        self._names = list(names)
        self._outside = 0
        self._null_timestamps = 0
        self._invalid = dict.fromkeys(INVALID_COLUMNS, 0)

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The selected rows of a batch with the columns `decoded_columns`.

        Raises:
            JobError: if the expression fails for a record, which the message names.

        """
        import pyarrow.compute as pc

        mask = select_rows(self._where, batch, self._chunk)
        left_out = mask.false_count
        if left_out:
            others = batch.filter(pc.invert(mask))
            self._outside += left_out
            if "timestamp" in self._names:
                absent = pc.equal(others.column("timestampMillis"), _NO_TIMESTAMP)
                self._null_timestamps += others.column("timestamp").null_count - absent.true_count
            for field, name in INVALID_COLUMNS.items():
                if name in batch.schema.names:
                    self._invalid[field] += left_out - others.column(name).null_count
            batch = batch.filter(mask)
        return batch.select(self._names)

    def account(self, result: str) -> str:
        """The chunk's ChunkResult, as JSON text, given that of all its rows."""
        sums = cast(ChunkResult, json.loads(result))
        sums["rows"] -= self._outside
        sums["outside"] += self._outside
        sums["null_timestamps"] -= self._null_timestamps
        sums["invalid_keys"] -= self._invalid["key"]
        sums["invalid_values"] -= self._invalid["value"]
        return json.dumps(sums)


def select_rows(where: RecordFilter, batch: pa.RecordBatch, chunk: Chunk) -> pa.BooleanArray:
    """A mask of the selected rows of a chunk.

    Raises:
        JobError: if the expression fails for a record, which the message names.

    """
    try:
        return where.mask(batch, f"{chunk['topic']}-{chunk['partition']}/{chunk['segment']}")
    except EvaluationError as error:
        raise JobError(f"where: {error}") from None


def select_in_chunk(
    select: Callable[[pa.RecordBatch], pa.BooleanArray],
    columns: Sequence[str],
    chunk: Chunk,
    indexed: dict[str, Any],
    max_decompressed_bytes: int,
) -> Selected:
    """The selected records of a chunk, by their place. `select` is given rows with `columns`.

    `indexed` is the result of the first pass, which decides what is written: everything that may be written
    must be seen here. More may be seen, such as markers that no broker could replay.

    Raises:
        JobError: if the expression fails for a record, or the file is not the one that was indexed.

    """
    import pyarrow as pa
    import pyarrow.compute as pc

    decoder = _core.ChunkDecoder(
        json.dumps(chunk),
        columns=[*columns, "position"],
        batches_table=False,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    selected: Selected = []
    position, index = -1, 0
    for rows in decoder:
        batch = pa.record_batch(rows)
        if batch.num_rows == 0:
            continue
        hits = pc.indices_nonzero(select(batch)).to_pylist()
        # Rows of the same batch of the log are neighbours; one such batch can span several Arrow batches.
        encoded = pc.run_end_encode(batch.column("position"), run_end_type=pa.int64())
        start, taken = 0, 0
        for at, end in zip(encoded.values.to_pylist(), encoded.run_ends.to_pylist(), strict=True):
            first = index if at == position else 0
            while taken < len(hits) and hits[taken] < end:
                _add(selected, at, first + hits[taken] - start)
                taken += 1
            position, index, start = at, first + end - start, end
    result, seen = indexed["result"], json.loads(decoder.result())
    if decoder.checksum != indexed["checksum"] or any(
        seen[name] < result[name] for name in ("good_bytes", "announced")
    ):
        raise JobError(f"{result['path']}: changed while it was read")
    return selected


def _add(selected: Selected, position: int, index: int) -> None:
    if not selected or selected[-1][0] != position:
        selected.append((position, []))
    runs = selected[-1][1]
    if runs and runs[-1][1] == index - 1:
        runs[-1] = (runs[-1][0], index)
    else:
        runs.append((index, index))
