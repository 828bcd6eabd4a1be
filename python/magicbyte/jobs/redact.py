"""The job of `magicbyte redact`: removes records that must be forgotten.

>>> import magicbyte, pathlib, tempfile
>>> builder = magicbyte.RecordsBuilder()
>>> builder.append(offset=0, timestamp=1_700_000_000_000, key=b"a", value=b"keep")
>>> builder.append(offset=1, timestamp=1_700_000_000_000, key=b"b", value=b"forget")
>>> directory = pathlib.Path(tempfile.mkdtemp())
>>> (directory / "logs" / "orders-0").mkdir(parents=True)
>>> _ = (directory / "logs" / "orders-0" / f"{0:020}.log").write_bytes(builder.build())

>>> report = magicbyte.redact(directory / "logs", directory / "redacted", keys=[b"b"])
>>> report["written"][0]["redacted"][0]["ranges"]
[[1, 1]]
>>> [record.value_bytes for record in magicbyte.PartitionLog(directory / "redacted" / "orders-0").records()]
[b'keep']
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

from magicbyte import _core
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.clean import (
    CheckResult,
    CleanReport,
    Compaction,
    IndexedKeys,
    PassOne,
    PassTwo,
    clean,
)
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.offset_ranges import Ranges, merged, offsets_in, refuse_unknown
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import Planned, count_of
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, format_bytes
from magicbyte.jobs.run.selecting import (
    MAX_DECOMPRESSED_BYTES,
    record_filter,
    select_in_chunk,
    select_rows,
)
from magicbyte.options.command_line import command_line
from magicbyte.options.redact import RedactOptions
from magicbyte.partition_files import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA

if TYPE_CHECKING:
    import pyarrow as pa

    from magicbyte.expressions.record_filter import RecordFilter
    from magicbyte.model import Chunk

__all__ = ["RowSelection", "numbered_keys", "redact_partitions", "selection_of", "unmatched_runs"]

_COUNTS = ("records", "in_keys", "in_values", "in_headers")
_NEUTRAL_FILES = {LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA}
"""Text files that we write from numbers and a topic id: if a key occurs there, it only consists of digits."""
_WITHHELD = "(withheld: it holds one of the keys)"


def redact_partitions(
    sources: Sequence[str],
    out: str,
    engine: Engine,
    options: RedactOptions,
    progress: Progress = NO_PROGRESS,
    *,
    choice: PartitionChoice = EVERYTHING,
) -> CleanReport:
    """Redacts every partition at and below `sources` into `out`: see `redact`.

    The report has the redacted offsets, but neither the keys nor the expression, which may be confidential
    themselves. It names keys that no record has by their index in `options.keys`.

    Raises:
        RefusedError: if nothing is selected, there is nothing to read, the expression is invalid, a
            partition is found twice, there are offsets of a partition that is not read, or `out` is not
            empty.
        JobError: if a source changes while it is read, the check finds a key, or the expression fails for a
            record; then nothing is published.
        Error: for the first bad batch, with FAILFAST.

    """
    selection = selection_of(options)
    inputs = find_inputs(sources, choice, distinct=True)
    refuse_unknown(selection.offsets, inputs.listings)
    return clean(
        inputs,
        out,
        engine,
        _Redact(options, selection),
        progress,
        options,
        command=command_line("redact", [*sources, out], options, choice) if options.certify else None,
    )


@dataclass(frozen=True)
class RowSelection:
    """Records that are selected by an expression or their offsets."""

    where: RecordFilter | None
    offsets: Mapping[tuple[str, int], Ranges]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of `records` that `mask` needs."""
        return tuple(dict.fromkeys(("offset", *(self.where.columns if self.where else ()))))

    def selects_in(self, chunk: Chunk) -> bool:
        """True if there can be a selected record in the chunk."""
        return self.where is not None or (chunk["topic"], chunk["partition"]) in self.offsets

    def mask(self, batch: pa.RecordBatch, chunk: Chunk) -> pa.BooleanArray:
        """Booleans that say which records of a chunk are selected.

        Raises:
            JobError: if the expression fails for a record.

        """
        import pyarrow.compute as pc

        hits = offsets_in(batch.column("offset"), self.offsets.get((chunk["topic"], chunk["partition"]), ()))
        return hits if self.where is None else pc.or_(hits, select_rows(self.where, batch, chunk))


def selection_of(options: RedactOptions) -> RowSelection:
    """The records that are selected otherwise than by their keys.

    Raises:
        RefusedError: if nothing is selected at all, or the expression is invalid.
        ValueError: if a range of offsets ends before it begins.

    """
    if not options.keys and options.where is None and options.offsets is None:
        raise RefusedError("nothing is selected: give keys, offsets, or an expression")
    where = None if options.where is None else record_filter(options.where)
    return RowSelection(where, {place: merged(ranges) for place, ranges in (options.offsets or {}).items()})


def numbered_keys(keys: Iterable[bytes | str]) -> dict[bytes, int]:
    """Each key with its first index among the given keys. Its place in the result is its number."""
    indexes: dict[bytes, int] = {}
    for index, key in enumerate(keys):
        indexes.setdefault(key.encode() if isinstance(key, str) else key, index)
    return indexes


def unmatched_runs(numbered: Mapping[bytes, int], seen: Container[int]) -> list[tuple[int, int]]:
    """First and last index of each run of keys whose numbers were not seen."""
    runs: list[tuple[int, int]] = []
    for number, index in enumerate(numbered.values()):
        if number not in seen:
            if runs and runs[-1][1] == index - 1:
                runs[-1] = (runs[-1][0], index)
            else:
                runs.append((index, index))
    return runs


@dataclass(frozen=True)
class _Redact:
    options: RedactOptions
    selection: RowSelection

    @cached_property
    def key_indexes(self) -> dict[bytes, int]:
        return numbered_keys(self.options.keys)

    @cached_property
    def key_set(self) -> _core.KeySet:
        return _core.KeySet(list(self.key_indexes))

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the cached properties, which a task computes again."""
        return {"options": self.options, "selection": self.selection}

    @property
    def max_decompressed_bytes(self) -> int:
        """The limit for one batch: an expression must see every batch that may be written."""
        limit = self.options.max_decompressed_bytes
        by_keys = self.selection.where is None and not self.selection.offsets
        return limit if by_keys else min(limit, MAX_DECOMPRESSED_BYTES)

    def reported(self) -> dict[str, Any]:
        return {
            "keys": len(self.key_indexes),
            "where": self.options.where is not None,
            "offsets": sum(map(len, self.selection.offsets.values())),
            "tombstones": self.options.tombstones,
        }

    def files(self, report: CleanReport) -> dict[str, str]:
        return {}

    def plan(self, planned: Planned) -> Compaction:
        return cast(Compaction, json.loads(_core.plan_redaction(planned.text)))

    def index(self, task: PassOne) -> str:
        chunks = [json.loads(text)["chunk"] for text in task.chunks]
        files = [_state_of(chunk["path"]) for chunk in chunks]
        indexed = json.loads(
            _core.index_keys(
                list(task.chunks),
                max_decompressed_bytes=self.max_decompressed_bytes,
                mode=self.options.mode,
            )
        )
        for chunk, found, file in zip(chunks, indexed["chunks"], files, strict=True):
            found["file"] = file
            if self.selection.selects_in(chunk):
                # Aborted records are redacted like all others, and so are all records of a batch.
                unbounded = {**chunk, "aborted": [], "start_offset": None, "end_offset": None}
                found["selected"] = select_in_chunk(
                    partial(self.selection.mask, chunk=chunk),
                    self.selection.columns,
                    cast("Chunk", unbounded),
                    found,
                    self.max_decompressed_bytes,
                )
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
            task.summary,
            directory,
            keys=self.key_set,
            tombstones=self.options.tombstones,
            clean_until=task.clean_until,
            max_decompressed_bytes=self.max_decompressed_bytes,
            index_interval_bytes=self.options.index_interval_bytes,
            mode=self.options.mode,
        )
        # The core compared the batches that it read with those of the first pass. The rest of the file is
        # the same, too, unless someone modified it.
        for indexed in map(json.loads, task.indexed):
            path = indexed["result"]["path"]
            if _state_of(path) != indexed["file"]:
                raise JobError(f"{path}: changed while it was read")
        return cleaned

    @property
    def expired_until(self) -> int | None:
        return None

    def unmatched(self, matched: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
        words = [0] * (len(self.key_indexes) // 64 + 1)
        for bits in matched:
            for number, word in enumerate(bits):
                words[number] |= word
        seen = {number for number in range(len(self.key_indexes)) if words[number // 64] >> number % 64 & 1}
        return unmatched_runs(self.key_indexes, seen)

    def check(
        self, directories: Mapping[str, str], report: CleanReport, engine: Engine, progress: Progress
    ) -> CheckResult | None:
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
        sums = {name: sum(one[name] for one in found) for name in _COUNTS}
        return CheckResult(
            files=len(files),
            bytes=sum(sizes),
            records=sums["records"],
            in_keys=sums["in_keys"],
            in_values=sums["in_values"],
            in_headers=sums["in_headers"],
            in_names=in_names,
        )

    def check_file(self, file: tuple[str, str]) -> dict[str, int]:
        """Counts, in a task, the records that contain one of the keys where it may stay."""
        name, path = file
        if os.path.basename(path) in _NEUTRAL_FILES:
            return dict.fromkeys(_COUNTS, 0)
        if not path.endswith(".log"):
            with open(path, "rb") as sidecar:
                found = self.key_set.find(sidecar.read())
            if found is not None:
                raise JobError(f"{name}: one of the keys is at byte {found}; nothing was written")
            return dict.fromkeys(_COUNTS, 0)
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
            batch = f"batch at byte {first['position']}{offset}"
            raise JobError(f"{name}: {first['what']} ({batch}){more}; nothing was written")
        return cast(dict[str, int], checked)

    def _withhold(self, report: CleanReport) -> int:
        """Removes names and messages that contain one of the keys from the report.

        Returns how many names of topics and directories contain one. Those stay, as the output has them, too.
        """
        for partition in report["partitions"]:
            for ignored in partition["ignored"]:
                if self._holds_key(ignored["file"]):
                    ignored["file"] = _WITHHELD
        for problem in report["problems"]:
            if self._holds_key(problem["message"]):
                problem["message"] = _WITHHELD
            if problem["segment"] is not None and self._holds_key(problem["segment"]):
                problem["segment"] = _WITHHELD
        names = {*report["sources"]}
        for partition in report["partitions"]:
            names |= {partition["topic"], partition["path"]}
        return sum(map(self._holds_key, names))

    def _holds_key(self, text: str) -> bool:
        return self.key_set.find(os.fsencode(text)) is not None


def _state_of(path: str) -> list[int]:
    """Values that change when someone replaces a file or writes to it."""
    state = os.stat(path)
    return [state.st_ino, state.st_size, state.st_mtime_ns]


def _files_in(directory: str) -> list[str]:
    return sorted(os.listdir(directory)) if os.path.isdir(directory) else []
