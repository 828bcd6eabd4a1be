"""Directories of partitions, written anew without some of their records, as Kafka's cleaner writes them.

>>> import magicbyte, pathlib, tempfile
>>> builder = magicbyte.RecordsBuilder()
>>> builder.append(offset=0, timestamp=1_700_000_000_000, key=b"a", value=b"old")
>>> builder.append(offset=1, timestamp=1_700_000_000_000, key=b"b", value=b"of somebody")
>>> builder.append(offset=2, timestamp=1_700_000_000_000, key=b"a", value=b"new")
>>> place = pathlib.Path(tempfile.mkdtemp())
>>> (place / "logs" / "orders-0").mkdir(parents=True)
>>> _ = (place / "logs" / "orders-0" / f"{0:020}.log").write_bytes(builder.build())

>>> report = magicbyte.compact(place / "logs", place / "compacted", all=True)
>>> report["balanced"], report["counts"]["kept"], report["counts"]["superseded"]
(True, 2, 1)
>>> [record.value_bytes for record in magicbyte.PartitionLog(place / "compacted" / "orders-0").records()]
[b'of somebody', b'new']

>>> report = magicbyte.redact(place / "logs", place / "redacted", keys=[b"b"])
>>> report["written"][0]["redacted"][0]["ranges"]
[[1, 1]]
>>> [record.value_bytes for record in magicbyte.PartitionLog(place / "redacted" / "orders-0").records()]
[b'old', b'new']
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Literal, TypeAlias

from magicbyte import _core

if TYPE_CHECKING:
    from magicbyte.jobs.clean import CleanReport
    from magicbyte.jobs.engines import Engine

__all__ = ["Mode", "compact", "redact"]

Mode: TypeAlias = Literal["PERMISSIVE", "FAILFAST"]
"""PERMISSIVE leaves out what is damaged, and counts it; FAILFAST raises the first bad batch's error."""

_DAY_MS = 24 * 60 * 60 * 1000


def compact(
    source: str | PathLike[str],
    out: str | PathLike[str],
    *,
    now: int | None = None,
    delete_retention_ms: int = _DAY_MS,
    min_compaction_lag_ms: int = 0,
    until_offset: int | None = None,
    all: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    producer_id_expiration_ms: int = _DAY_MS,
    segment_bytes: int = 1 << 30,
    memory: int = 128 << 20,
    mode: Mode = "PERMISSIVE",
    topic_ids: Mapping[str, str] | None = None,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
    engine: Engine | None = None,
) -> CleanReport:
    """Writes every partition at and below `source` into `out` with the last record of each key.

    As `magicbyte compact` (Kafka's `LogCleaner`): whole segments are cleaned, up to the last stable offset,
    and not the last segment; all else is copied. `source` is only read; `out` has its name when all is done.

    Args:
        source: a partition's directory, or any with such directories below it.
        out: a directory that is not there yet, or is empty. It gets a directory a partition, a
            `cleaner-offset-checkpoint`, and the report as `reconciliation.json`.
        now: the time it is (ms since 1970); None takes the clock's.
        delete_retention_ms: how long tombstones and the markers of empty transactions stay.
        min_compaction_lag_ms: segments with a record younger than this are copied.
        until_offset: nothing is cleaned from the segment with this offset (inclusive) on.
        all: clean the last segment too.
        checkpoint: a broker's `cleaner-offset-checkpoint`: where old tombstones of magic 0 and 1 may go.
        producer_id_expiration_ms: producers silent for so long are forgotten; their last batch need not stay.
        segment_bytes: neighbouring segments that are not larger together become one.
        memory: bytes for the maps of keys, of all tasks that run at a time; more goes to files beside `out`.
        mode: what damage does.
        topic_ids: by topic its id, for `partition.metadata`; without it a broker writes that file.
        max_decompressed_bytes: the cap on one batch, stored or decompressed; larger ones are damage.
        engine: where the tasks run; None takes a thread a core. `magicbyte.jobs.engines.SparkEngine(spark)`
            runs them on Spark.

    Returns:
        What became of every record and byte: the content of `reconciliation.json`.

    Raises:
        RefusedError: nothing to read, a partition found twice, `out` is not empty, or the checkpoint is none.
        Error: with FAILFAST, at the first bad batch.
        OSError: a file could not be read or written.

    """
    from magicbyte.jobs import compact as job
    from magicbyte.jobs.engines import LocalEngine

    options = job.CompactOptions(
        now=round(time.time() * 1000) if now is None else now,
        delete_retention_ms=delete_retention_ms,
        min_compaction_lag_ms=min_compaction_lag_ms,
        until_offset=until_offset,
        all=all,
        checkpoint={} if checkpoint is None else job.read_checkpoint(os.fspath(checkpoint)),
        producer_id_expiration_ms=producer_id_expiration_ms,
        segment_bytes=segment_bytes,
        memory=memory,
        max_decompressed_bytes=max_decompressed_bytes,
        fail_fast=_fails_fast(mode),
        topic_ids=dict(topic_ids or {}),
    )
    return job.compact([os.fspath(source)], os.fspath(out), engine or LocalEngine(), options)


def redact(
    source: str | PathLike[str],
    out: str | PathLike[str],
    *,
    keys: Iterable[bytes] = (),
    where: str | None = None,
    tombstones: bool = False,
    check: bool = True,
    mode: Mode = "PERMISSIVE",
    topic_ids: Mapping[str, str] | None = None,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
    engine: Engine | None = None,
) -> CleanReport:
    """Writes every partition at and below `source` into `out` without the records to be forgotten.

    As `magicbyte redact`: their bytes are nowhere in `out`, all else stays as it is. `source` is only read;
    `out` has its name when all is done.

    Args:
        source: a partition's directory, or any with such directories below it.
        out: a directory that is not there yet, or is empty.
        keys: records with one of these keys. Those that no record has are in the report, by their place.
        where: records for which this SQL expression over `offset`, `timestamp` (ms), `key`, `value` and
            `headers` is true; `magicbyte redact --help` has examples. Needs pyarrow.
        tombstones: keep key, offset and timestamp, drop value and headers, instead of the whole record.
        check: read what was written again before `out` gets its name: it must hold none of the keys.
        mode: what damage does.
        topic_ids: by topic its id, for `partition.metadata`; without it a broker writes that file.
        max_decompressed_bytes: the cap on one batch, stored or decompressed; larger ones are damage.
        engine: where the tasks run; None takes a thread a core.

    Returns:
        What became of every record and byte, with the offsets (inclusive) that were redacted: the content of
        `reconciliation.json`.

    Raises:
        RefusedError: nothing selected or to read, a bad expression, a partition found twice, or `out` is not
            empty.
        JobError: a source changed while it was read, the check found something, or the expression cannot
            be answered for a record; nothing is in `out` then.
        Error: with FAILFAST, at the first bad batch.
        OSError: a file could not be read or written.

    """
    from magicbyte.jobs import redact as job
    from magicbyte.jobs.engines import LocalEngine

    options = job.RedactOptions(
        keys=tuple(keys),
        where=where,
        tombstones=tombstones,
        check=check,
        max_decompressed_bytes=max_decompressed_bytes,
        fail_fast=_fails_fast(mode),
        topic_ids=dict(topic_ids or {}),
    )
    return job.redact([os.fspath(source)], os.fspath(out), engine or LocalEngine(), options)


def _fails_fast(mode: str) -> bool:
    if mode.upper() not in ("PERMISSIVE", "FAILFAST"):
        raise ValueError(f"mode is PERMISSIVE or FAILFAST, not {mode!r}")
    return mode.upper() == "FAILFAST"
