"""The job behind `magicbyte redact`: partitions without the records that somebody must forget."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from magicbyte import _core
from magicbyte.jobs.clean import CleanReport, Compaction, IndexedKeys, PassOne, PassTwo, clean
from magicbyte.jobs.engines import Engine
from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.plan import Planned
from magicbyte.jobs.progress import NO_PROGRESS, Progress
from magicbyte.jobs.where import Where

__all__ = ["RedactOptions", "redact"]


@dataclass(frozen=True)
class RedactOptions:
    """Which records are redacted, and how."""

    keys: frozenset[bytes] = frozenset()
    """Records with one of these keys."""
    where: str | None = None
    """Records for which this expression is true: see `jobs/where.py`."""
    tombstones: bool = False
    """They stay as tombstones: key, offset and timestamp, but no value and no headers."""
    index_interval_bytes: int = 4096
    """Bytes of log between two index entries."""
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES
    """The cap on one batch, stored or decompressed."""
    fail_fast: bool = False
    """The first bad batch ends the job with its error, instead of being quarantined."""
    topic_ids: dict[str, str] = field(default_factory=dict)
    """By topic: its id, for `partition.metadata`; without it a broker writes that file."""


def redact(
    sources: Sequence[str],
    out: str,
    engine: Engine,
    options: RedactOptions,
    progress: Progress = NO_PROGRESS,
) -> CleanReport:
    """Writes every partition at and below `sources` into `out` without the selected records.

    The report says which offsets, but neither keys nor the expression: they may be what is to be
    forgotten.

    Raises:
        RefusedError: nothing selected or to read, a bad expression, a partition found twice, or `out`
            is there already.
        Error: with `fail_fast`, the first bad batch.

    """
    if not options.keys and options.where is None:
        raise RefusedError("nothing is selected: give keys, or an expression")
    where = None if options.where is None else Where(options.where)
    told = {"keys": len(options.keys), "where": options.where is not None, "tombstones": options.tombstones}
    return clean(
        sources,
        out,
        engine,
        _Redact(options, where),
        progress,
        options=told,
        topic_ids=options.topic_ids,
        fail_fast=options.fail_fast,
    )


@dataclass(frozen=True)
class _Redact:
    options: RedactOptions
    where: Where | None

    def plan(self, planned: Planned) -> Compaction:
        return cast(Compaction, json.loads(_core.plan_redaction(planned.text)))

    def index(self, task: PassOne) -> str:
        indexed = json.loads(
            _core.index_keys(
                list(task.chunks),
                max_decompressed_bytes=self.options.max_decompressed_bytes,
                fail_fast=self.options.fail_fast,
            )
        )
        if self.where is not None:
            limit = self.options.max_decompressed_bytes
            for text, chunk in zip(task.chunks, indexed["chunks"], strict=True):
                # Aborted records are redacted as all others are.
                everything = {**json.loads(text)["chunk"], "aborted": []}
                chunk["offsets"] = self.where.offsets(json.dumps(everything), chunk["result"], limit)
        return json.dumps(indexed)

    def between(
        self,
        _engine: Engine,
        logs: Sequence[tuple[Compaction, str, Sequence[IndexedKeys]]],
        _progress: Progress,
    ) -> list[None]:
        return [None for _ in logs]

    def clean(self, task: PassTwo, directory: str) -> str:
        offsets = {offset for text in task.indexed for offset in json.loads(text).get("offsets", ())}
        return _core.redact_group(
            task.group,
            list(task.indexed),
            task.facts,
            directory,
            keys=list(self.options.keys),
            offsets=offsets,
            tombstones=self.options.tombstones,
            clean_until=task.clean_until,
            max_decompressed_bytes=self.options.max_decompressed_bytes,
            index_interval_bytes=self.options.index_interval_bytes,
            fail_fast=self.options.fail_fast,
        )

    @property
    def expired_until(self) -> int | None:
        return None
