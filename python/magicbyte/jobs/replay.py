"""Reading a log of an internal topic batch by batch, to fold its records into a state."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from magicbyte._core import DEFAULT_MAX_DECOMPRESSED_BYTES, LegacyBatch, Record, RecordBatch
from magicbyte.errors import Error
from magicbyte.log import PartitionLog

__all__ = ["Apply", "replay"]

Batch = RecordBatch | LegacyBatch
Apply = Callable[[Batch, Record], None]
"""Applies a record. May raise LookupError for an unknown type of record, and Error for invalid bytes."""


def replay(
    path: str,
    apply: Apply,
    *,
    start_offset: int | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> list[str]:
    """Applies every record of a partition's directory, or of one file, in offset order.

    What cannot be read or decoded is left out, and is in the list of problems that is returned, at most
    1000 of them. Record types of later versions of Kafka are skipped, as Kafka does.
    """
    log = PartitionLog(path, mode="PERMISSIVE", max_decompressed_bytes=max_decompressed_bytes)
    batches = log.batches(start_offset)
    problems: list[str] = []
    for batch in batches:
        for error in _applied(batch, apply, start_offset or 0):
            if len(problems) < _LISTED:
                problems.append(f"{path}: {error}")
    problems += [f"{path}/{one['segment']}: {one['message']}" for one in batches.problems]
    return problems


_LISTED = 1000


def _applied(batch: Batch, apply: Apply, start_offset: int) -> Iterator[Error]:
    try:
        records = iter(batch)
    except Error as error:
        yield error
        return
    for record in records:
        if record.offset < start_offset:
            continue
        try:
            apply(batch, record)
        except LookupError:
            continue
        except Error as error:
            yield type(error)(f"offset {record.offset}: {error}", error.kind)
