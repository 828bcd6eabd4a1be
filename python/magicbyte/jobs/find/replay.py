"""Reading a log of an internal topic batch by batch, to fold its records into a state."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from magicbyte._core import DEFAULT_MAX_DECOMPRESSED_BYTES, LISTED, LegacyBatch, Record, RecordBatch
from magicbyte.errors import Error
from magicbyte.log import PartitionLog

__all__ = ["Apply", "ApplyBatch", "replay", "replay_batches"]

Batch = RecordBatch | LegacyBatch
Apply = Callable[[Batch, Record], None]
"""Applies a record. May raise LookupError for an unknown type of record, and Error for invalid bytes."""
ApplyBatch = Callable[[Batch], Iterator[tuple[int, Error]]]
"""Applies the records of a batch; yields the offset and error of those that do not decode. May raise Error
for the batch.
"""


def replay(
    path: str,
    apply: Apply,
    *,
    start_offset: int | None = None,
    as_of: int | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> list[str]:
    """Applies every record of a partition's directory, or of one file, in offset order. With `as_of`, the log
    ends before the first batch with a later timestamp (ms).

    What cannot be read or decoded is left out, and is in the list of problems that is returned, at most
    1000 of them. Record types of later versions of Kafka are skipped, as Kafka does.
    """

    def apply_batch(batch: Batch) -> Iterator[tuple[int, Error]]:
        for record in batch:
            if start_offset is not None and record.offset < start_offset:
                continue
            try:
                apply(batch, record)
            except LookupError:
                continue
            except Error as error:
                yield record.offset, error

    return replay_batches(
        path,
        apply_batch,
        start_offset=start_offset,
        as_of=as_of,
        max_decompressed_bytes=max_decompressed_bytes,
    )


def replay_batches(
    path: str,
    apply: ApplyBatch,
    *,
    start_offset: int | None = None,
    as_of: int | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> list[str]:
    """Applies every batch, from the one with `start_offset` on; otherwise as `replay`."""
    log = PartitionLog(path, mode="PERMISSIVE", max_decompressed_bytes=max_decompressed_bytes)
    batches = log.batches(start_offset)
    problems: list[str] = []

    def report(problem: str) -> None:
        if len(problems) < LISTED:
            problems.append(f"{path}: {problem}")

    for batch in batches:
        if as_of is not None and batch.max_timestamp > as_of:
            break
        try:
            for offset, error in apply(batch):
                report(f"offset {offset}: {error}")
        except Error as error:
            report(str(error))
    problems += [f"{path}/{one['segment']}: {one['message']}" for one in batches.problems]
    return problems
