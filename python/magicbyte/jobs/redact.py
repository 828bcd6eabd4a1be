"""The job behind `magicbyte redact`: partitions without the records that somebody must forget."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from magicbyte import _core
from magicbyte.jobs.clean import (
    Checked,
    CleanReport,
    Compaction,
    IndexedKeys,
    PassOne,
    PassTwo,
    clean,
)
from magicbyte.jobs.engines import Engine
from magicbyte.jobs.failure import JobError, RefusedError
from magicbyte.jobs.plan import Planned, count_of
from magicbyte.jobs.progress import NO_PROGRESS, Progress, format_bytes
from magicbyte.jobs.where import MAX_DECOMPRESSED_BYTES, Where

__all__ = ["RedactOptions", "redact"]

_SUMS = ("records", "in_keys", "in_values", "in_headers")
_TEXTS = {"leader-epoch-checkpoint", "partition.metadata"}
"""Written by us from numbers and a topic's id: whatever key is in them is made of digits."""
_WITHHELD = "(withheld: it holds one of the keys)"


@dataclass(frozen=True)
class RedactOptions:
    """Which records are redacted, and how."""

    keys: Collection[bytes] = field(default=(), repr=False)
    """Records with one of these keys."""
    where: str | None = field(default=None, repr=False)
    """Records for which this expression is true: see `jobs/where.py`."""
    tombstones: bool = False
    """They stay as tombstones: key, offset and timestamp, but no value and no headers."""
    check: bool = True
    """What was written is read again before it gets its name, and must hold none of the keys."""
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
    forgotten. Keys that no record has are told by their place among `options.keys`.

    Raises:
        RefusedError: nothing selected or to read, a bad expression, a partition found twice, or `out`
            is there already.
        JobError: a source changed while it was read, what was written holds one of the keys, or the
            expression cannot be answered for a record. Nothing has been written then.
        Error: with `fail_fast`, the first bad batch.

    """
    if not options.keys and options.where is None:
        raise RefusedError("nothing is selected: give keys, or an expression")
    passes = _Redact(options, None if options.where is None else Where(options.where))
    told = {"keys": len(passes.places), "where": options.where is not None, "tombstones": options.tombstones}
    return clean(
        sources,
        out,
        engine,
        passes,
        progress,
        options=told,
        topic_ids=options.topic_ids,
        fail_fast=options.fail_fast,
    )


@dataclass(frozen=True)
class _Redact:
    options: RedactOptions
    where: Where | None

    @cached_property
    def places(self) -> dict[bytes, int]:
        """Each key, and its first place among those that were given."""
        places: dict[bytes, int] = {}
        for place, key in enumerate(self.options.keys):
            places.setdefault(key, place)
        return places

    @cached_property
    def key_set(self) -> _core.KeySet:
        return _core.KeySet(list(self.places))

    def __getstate__(self) -> dict[str, Any]:
        """On the way to a task: what is made of the keys is made there again."""
        return {"options": self.options, "where": self.where}

    @property
    def max_decompressed_bytes(self) -> int:
        """An expression must see every batch that may be written."""
        limit = self.options.max_decompressed_bytes
        return limit if self.where is None else min(limit, MAX_DECOMPRESSED_BYTES)

    def plan(self, planned: Planned) -> Compaction:
        return cast(Compaction, json.loads(_core.plan_redaction(planned.text)))

    def index(self, task: PassOne) -> str:
        chunks = [json.loads(text)["chunk"] for text in task.chunks]
        files = [_state_of(chunk["path"]) for chunk in chunks]
        indexed = json.loads(
            _core.index_keys(
                list(task.chunks),
                max_decompressed_bytes=self.max_decompressed_bytes,
                fail_fast=self.options.fail_fast,
            )
        )
        for chunk, found, file in zip(chunks, indexed["chunks"], files, strict=True):
            found["file"] = file
            if self.where is not None:
                # Aborted records are redacted as all others are, and each record of a batch counts.
                everything = json.dumps({**chunk, "aborted": [], "start_offset": None, "end_offset": None})
                found["selected"] = self.where.selected(everything, found, self.max_decompressed_bytes)
        return json.dumps(indexed)

    def between(
        self,
        _engine: Engine,
        logs: Sequence[tuple[Compaction, str, Sequence[IndexedKeys]]],
        _progress: Progress,
    ) -> list[None]:
        return [None for _ in logs]

    def clean(self, task: PassTwo, directory: str) -> str:
        cleaned = _core.redact_group(
            task.group,
            list(task.indexed),
            task.facts,
            directory,
            keys=self.key_set,
            tombstones=self.options.tombstones,
            clean_until=task.clean_until,
            max_decompressed_bytes=self.max_decompressed_bytes,
            index_interval_bytes=self.options.index_interval_bytes,
            fail_fast=self.options.fail_fast,
        )
        # The batches were the same: so were those that were not looked at, if nobody touched the file.
        for indexed in map(json.loads, task.indexed):
            path = indexed["result"]["path"]
            if _state_of(path) != indexed["file"]:
                raise JobError(f"{path}: changed while it was read")
        return cleaned

    @property
    def expired_until(self) -> int | None:
        return None

    def unmatched(self, matched: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
        places = list(self.places.values())
        seen = [0] * (len(places) // 64 + 1)
        for bits in matched:
            for number, word in enumerate(bits):
                seen[number] |= word
        runs: list[tuple[int, int]] = []
        for number, place in enumerate(places):
            if not seen[number // 64] >> number % 64 & 1:
                if runs and runs[-1][1] == place - 1:
                    runs[-1] = (runs[-1][0], place)
                else:
                    runs.append((place, place))
        return runs

    def check(
        self, directories: Mapping[str, str], report: CleanReport, engine: Engine, progress: Progress
    ) -> Checked | None:
        in_names = self._withhold(report)
        if not self.options.check:
            return None
        files = [
            (f"{partition}/{file}", os.path.join(directory, file))
            for partition, directory in directories.items()
            for file in _files_in(directory)
        ]
        sizes = [os.path.getsize(path) for _, path in files]
        found = engine.map(
            self.check_file,
            files,
            name=f"magicbyte check: {count_of(len(files), 'task')}, {format_bytes(sum(sizes))}",
            sizes=sizes,
            progress=progress,
        )
        sums = {name: sum(one[name] for one in found) for name in _SUMS}
        return Checked(
            files=len(files),
            bytes=sum(sizes),
            records=sums["records"],
            in_keys=sums["in_keys"],
            in_values=sums["in_values"],
            in_headers=sums["in_headers"],
            in_names=in_names,
        )

    def check_file(self, file: tuple[str, str]) -> dict[str, int]:
        """Runs in a task: how many records have one of the keys where nobody asked to remove it."""
        name, path = file
        if os.path.basename(path) in _TEXTS:
            return dict.fromkeys(_SUMS, 0)
        if not path.endswith(".log"):
            with open(path, "rb") as sidecar:
                found = self.key_set.find(sidecar.read())
            if found is not None:
                raise JobError(f"{name}: one of the keys is at byte {found}; nothing was written")
            return dict.fromkeys(_SUMS, 0)
        checked = json.loads(
            _core.check_segment(
                path,
                self.key_set,
                tombstones=self.options.tombstones,
                max_decompressed_bytes=self.max_decompressed_bytes,
            )
        )
        if leaks := checked.pop("leaks"):
            first = checked["first_leaks"][0]
            offset = "" if first["offset"] is None else f", offset {first['offset']}"
            more = f", and {count_of(leaks - 1, 'other place')}" if leaks > 1 else ""
            place = f"batch at byte {first['position']}{offset}"
            raise JobError(f"{name}: {first['what']} ({place}){more}; nothing was written")
        return cast(dict[str, int], checked)

    def _withhold(self, report: CleanReport) -> int:
        """Takes names and messages that hold one of the keys out of the report.

        Returns how many names of topics and directories do, which stay: they are the output's, too.
        """
        for partition in report["partitions"]:
            for ignored in partition["ignored"]:
                if self._holds_key(ignored["file"]):
                    ignored["file"] = _WITHHELD
        for problem in report["problems"]:
            if self._holds_key(problem["message"]):
                problem["message"] = _WITHHELD
        names = {*report["sources"]}
        for partition in report["partitions"]:
            names |= {partition["topic"], partition["path"]}
        return sum(map(self._holds_key, names))

    def _holds_key(self, text: str) -> bool:
        return self.key_set.find(os.fsencode(text)) is not None


def _state_of(path: str) -> list[int]:
    """What changes when somebody replaces a file, or writes to it."""
    state = os.stat(path)
    return [state.st_ino, state.st_size, state.st_mtime_ns]


def _files_in(directory: str) -> list[str]:
    return sorted(os.listdir(directory)) if os.path.isdir(directory) else []
