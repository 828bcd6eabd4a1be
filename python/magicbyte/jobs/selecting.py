"""Selecting records with an expression (`--where`), for jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from magicbyte import _core
from magicbyte.expressions.errors import EvaluationError, ExpressionError
from magicbyte.jobs.failure import JobError, RefusedError
from magicbyte.model import Chunk

if TYPE_CHECKING:
    import pyarrow as pa

    from magicbyte.expressions.record_filter import RecordFilter

__all__ = ["MAX_DECOMPRESSED_BYTES", "Selected", "record_filter", "select_in_chunk", "selected_rows"]

MAX_DECOMPRESSED_BYTES = (1 << 30) - 1
"""The largest limit for a batch that still lets every record be passed to an expression: half of what Arrow's
arrays hold."""

Selected = list[tuple[int, list[tuple[int, int]]]]
"""The position of each batch with selected records, and the runs of selected records in it: the first and the
last index, from 0. Both in order."""


def record_filter(expression: str) -> RecordFilter:
    """The filter of `--where`.

    Raises:
        RefusedError: if the expression is not valid.
        ModuleNotFoundError: if duckdb or pyarrow is missing.

    """
    # Here, as redacting by keys needs no pyarrow.
    from magicbyte.expressions.record_filter import RecordFilter

    try:
        return RecordFilter(expression)
    except ExpressionError as error:
        raise RefusedError(f"--where: {error}") from None


def selected_rows(where: RecordFilter, batch: pa.RecordBatch, chunk: Chunk) -> pa.BooleanArray:
    """Whether each row of a chunk is selected.

    Raises:
        JobError: if the expression fails for a record, which the message names.

    """
    try:
        return where.mask(batch, f"{chunk['topic']}-{chunk['partition']}/{chunk['segment']}")
    except EvaluationError as error:
        raise JobError(f"--where: {error}") from None


def select_in_chunk(
    where: RecordFilter, chunk: Chunk, indexed: dict[str, Any], max_decompressed_bytes: int
) -> Selected:
    """The selected records of a chunk, by their place.

    `indexed` is the result of the first pass, which decides what is written: everything that may be written
    must be seen here. More may be seen, such as markers that no broker could replay.

    Raises:
        JobError: if the expression fails for a record, or the file is not the one that was indexed.

    """
    import pyarrow as pa
    import pyarrow.compute as pc

    decoder = _core.ChunkDecoder(
        json.dumps(chunk),
        columns=[*where.columns, "position"],
        batches_table=False,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    selected: Selected = []
    position, index = -1, 0
    for rows in decoder:
        batch = pa.record_batch(rows)
        if batch.num_rows == 0:
            continue
        hits = pc.indices_nonzero(selected_rows(where, batch, chunk)).to_pylist()
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
