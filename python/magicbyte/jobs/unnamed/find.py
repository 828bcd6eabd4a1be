"""The job of `magicbyte find`: partitions from files that have lost their names.

find runs in each file (tasks) -> group them (driver) -> copy their batches into segments (tasks) -> publish

Files are only read. The output is a directory for each partition, as `recover` writes them.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.publish.local_partitions import Counted
from magicbyte.jobs.publish.outputs import partitions_output
from magicbyte.jobs.run.accounting import SegmentsWritten
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import count_of
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, format_bytes
from magicbyte.jobs.unnamed.branches import split_branches
from magicbyte.jobs.unnamed.grouping import FileRun, Group, TopicPartition, grouped
from magicbyte.model import BatchMark, FoundRuns, Problem

__all__ = ["FindReport", "find_unnamed"]

UNKNOWN = "unknown"
"""The topic of partitions whose names are unknown."""
MAX_RUNS = 200_000
"""The runs of all files that are kept: some hundred bytes each."""
_MARKS_LOOKED_FOR = 4
_MAX_OFFSET = (1 << 63) - 2


class FoundFile(TypedDict):
    """A file that was searched."""

    file: str
    size: int
    batches: int
    batch_bytes: int
    """The rest of the file is in no whole batch."""
    values: int
    """Runs of batches that are values of damaged records: they are left out."""


class PlacedRun(TypedDict):
    """A run of batches, and its place in a partition."""

    file: str
    start: int
    end: int
    batches: int
    first_offset: int
    last_offset: int
    is_copy: bool
    """True if other runs have all of its offsets: it is not written."""


class FoundPartition(TypedDict):
    """The runs of one partition."""

    topic: str
    """`unknown` if nothing tells the name; such partitions are numbered by size."""
    partition: int
    is_named: bool
    reasons: list[str]
    """The evidence that its runs belong together."""
    branch_of: str | None
    """The partition, such as `unknown-0`, with which it has batches in common, and then others at the same
    offsets: one of the two was written before an unclean election, or cleaned at another time, or it is
    another topic to which the same was written.
    """
    first_offset: int
    last_offset: int
    missing: list[tuple[int, int]]
    """Offsets between the runs that are in none, first and last: lost or compacted away."""
    runs: list[PlacedRun]


class WrittenPartition(Counted):
    """A partition in the output."""

    records: int


class UnreadFile(TypedDict):
    """A file that was not read, or not to its end."""

    file: str
    reason: str


class FindReport(TypedDict):
    """The content of `reconciliation.json`."""

    magicbyte: str
    sources: list[str]
    options: dict[str, Any]
    files: list[FoundFile]
    """The files with batches."""
    other_files: int
    """Files without any batch."""
    partitions: list[FoundPartition]
    written: list[WrittenPartition]
    """The partitions in the output."""
    unread: list[UnreadFile]
    problems: list[Problem]
    """Batches whose records do not decode: they are not written. The first `LISTED`."""
    problems_left_out: int


@dataclass(frozen=True)
class _Search:
    """The task of searching a file."""

    file: str
    size: int
    wanted: str
    """Marks of batches, as JSON."""


class _Written(SegmentsWritten):
    records: int


def find_unnamed(
    sources: Sequence[str],
    out: str | None,
    engine: Engine,
    *,
    like: Sequence[str] = (),
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> FindReport:
    """Finds batches in `sources`, files of any kind and directories of such files, and groups them.

    Args:
        sources: they are only read.
        out: a directory or URL that is new or empty; None writes nothing.
        engine: runs the tasks.
        like: directories with partitions that have their names.
        choice: the partitions of `like` to compare with.
        progress: receives progress.

    Raises:
        RefusedError: if no file has a batch, the files have more than `MAX_RUNS` runs, or `out` is not empty.

    """
    unread: list[UnreadFile] = []
    paths = list(_files(sources, unread))
    found = _search([_Search(path, size, "[]") for path, size in paths], engine, unread, progress)
    runs = [one for one in found if not one.run["is_value"]]
    if not runs:
        raise RefusedError(f"no whole batch in {count_of(len(paths), 'file')} of {', '.join(sources)}")
    named = _named(like, choice, runs, engine, unread, progress)

    def search(wanted: Mapping[str, Sequence[BatchMark]]) -> list[FileRun]:
        sizes = dict(paths)
        again = [_Search(path, sizes[path], json.dumps(marks)) for path, marks in wanted.items()]
        return _search(again, engine, unread, progress)

    groups = split_branches(grouped([*runs, *named]), search)
    names = _names(groups)
    placed = [_partition(group, names) for group in groups]
    files = _files_of(found)
    report = FindReport(
        magicbyte=_core.__version__,
        sources=list(sources),
        options={"like": list(like)} if like else {},
        files=files,
        other_files=len(paths) - len(files) - len({one["file"] for one in unread} & {p for p, _ in paths}),
        partitions=placed,
        written=[],
        unread=unread,
        problems=[],
        problems_left_out=0,
    )
    if out is not None:
        _write(report, groups, out, [*sources, *like], engine, progress)
    return report


def _files(sources: Sequence[str], unread: list[UnreadFile]) -> Iterator[tuple[str, int]]:
    """The regular files at and below `sources`, with their sizes. Links in directories are not followed."""

    def unlisted(error: OSError) -> None:
        unread.append(UnreadFile(file=str(error.filename), reason=error.strerror or str(error)))

    for source in sources:
        if not os.path.isdir(source):
            yield from _file(source, os.stat(source), unread)
            continue
        for directory, directories, names in os.walk(source, onerror=unlisted):
            directories.sort()
            links = [name for name in directories if os.path.islink(os.path.join(directory, name))]
            for name in sorted([*names, *links]):
                path = os.path.join(directory, name)
                yield from _file(path, os.lstat(path), unread)


def _file(path: str, found: os.stat_result, unread: list[UnreadFile]) -> Iterator[tuple[str, int]]:
    if not stat.S_ISREG(found.st_mode):
        unread.append(UnreadFile(file=path, reason="it is not a regular file; copy a device into one"))
    elif found.st_size:
        yield path, found.st_size


def _search(
    tasks: Sequence[_Search], engine: Engine, unread: list[UnreadFile], progress: Progress
) -> list[FileRun]:
    sizes = [task.size for task in tasks]
    name = f"magicbyte find: {count_of(len(tasks), 'file')}, {format_bytes(sum(sizes))}"
    found: list[FileRun] = []
    for task, text in zip(
        tasks, engine.map(_find_runs, tasks, name=name, sizes=sizes, progress=progress), strict=True
    ):
        result: FoundRuns | str = json.loads(text)
        if isinstance(result, str):
            unread.append(UnreadFile(file=task.file, reason=result))
            continue
        found += [FileRun(task.file, result["size"], run) for run in result["runs"]]
        if len(found) > MAX_RUNS or result["is_cut"]:
            raise RefusedError(
                f"more than {MAX_RUNS:,} runs of batches up to {task.file}: search fewer files at a time"
            )
        if result["unreadable"] is not None:
            unread.append(UnreadFile(file=task.file, reason=result["unreadable"]))
    return found


def _find_runs(task: _Search) -> str:
    try:
        return _core.find_runs(task.file, MAX_RUNS, task.wanted)
    except OSError as error:
        return json.dumps(error.strerror or str(error))


def _named(
    like: Sequence[str],
    choice: PartitionChoice,
    runs: Sequence[FileRun],
    engine: Engine,
    unread: list[UnreadFile],
    progress: Progress,
) -> list[FileRun]:
    """The runs of the segments that have their names."""
    if not like:
        return []
    marks: list[BatchMark] = [mark for one in runs for mark in one.run["marks"][:_MARKS_LOOKED_FOR]]
    wanted = json.dumps(marks)
    names: dict[str, TopicPartition] = {}
    tasks = []
    for listing in find_inputs(like, choice).listings:
        for segment in listing["segments"]:
            names[segment["path"]] = listing["topic"], listing["partition"]
            tasks.append(_Search(segment["path"], segment["size"], wanted))
    found = _search(tasks, engine, unread, progress)
    return [FileRun(one.file, one.size, one.run, names[one.file]) for one in found]


def _names(groups: Sequence[Group]) -> dict[int, TopicPartition]:
    """A name for each group, by its `id`: its own, or a number. A second group of a partition cannot have its
    name.
    """
    taken: set[TopicPartition] = set()
    names: dict[int, TopicPartition] = {}
    unknown = 0
    for group in groups:
        name = group.name
        while name is None or name in taken:
            name = UNKNOWN, unknown
            unknown += 1
        taken.add(name)
        names[id(group)] = name
    return names


def _partition(group: Group, names: Mapping[int, TopicPartition]) -> FoundPartition:
    topic, partition = names[id(group)]
    branch_of = None if group.branch_of is None else names[id(group.branch_of)]
    ordered = sorted(group.runs, key=lambda one: (one.run["first_offset"], -one.run["last_offset"]))
    placed: list[PlacedRun] = []
    missing: list[tuple[int, int]] = []
    first = ordered[0].run["first_offset"]
    next_offset = first
    for one in ordered:
        run = one.run
        if run["first_offset"] > next_offset:
            missing.append((next_offset, run["first_offset"] - 1))
        placed.append(
            PlacedRun(
                file=one.file,
                start=run["start"],
                end=run["end"],
                batches=run["batches"],
                first_offset=run["first_offset"],
                last_offset=run["last_offset"],
                is_copy=run["last_offset"] < next_offset,
            )
        )
        next_offset = max(next_offset, run["last_offset"] + 1)
    return FoundPartition(
        topic=topic,
        partition=partition,
        is_named=group.name is not None,
        reasons=group.reasons,
        branch_of=None if branch_of is None else f"{branch_of[0]}-{branch_of[1]}",
        first_offset=first,
        last_offset=next_offset - 1,
        missing=missing,
        runs=placed,
    )


def _files_of(found: Sequence[FileRun]) -> list[FoundFile]:
    files: dict[str, FoundFile] = {}
    for one in found:
        file = files.setdefault(
            one.file, FoundFile(file=one.file, size=one.size, batches=0, batch_bytes=0, values=0)
        )
        file["batches"] += one.run["batches"]
        file["batch_bytes"] += one.run["end"] - one.run["start"]
        file["values"] += one.run["is_value"]
    return list(files.values())


def _write(
    report: FindReport,
    groups: Sequence[Group],
    out: str,
    sources: Sequence[str],
    engine: Engine,
    progress: Progress,
) -> None:
    sizes = {one.file: one.size for group in groups for one in group.runs}
    with partitions_output(out, sources) as output:
        targets = [output.target(partition) for partition in report["partitions"]]
        tasks = [
            (str(_core.begin_partition(target)), _chunks(partition, sizes))
            for target, partition in zip(targets, report["partitions"], strict=True)
        ]
        read = [sum(run["end"] - run["start"] for run in one["runs"]) for one in report["partitions"]]
        name = f"magicbyte find: {count_of(len(tasks), 'partition')}, {format_bytes(sum(read))}"
        results = engine.map(_copy, tasks, name=name, sizes=read, progress=progress)
        for target, partition, text in zip(targets, report["partitions"], results, strict=True):
            written = cast(_Written, json.loads(text))
            if written["segments"]:
                _core.finish_partition(target, written["segments"], topic_id=None)
                counted = WrittenPartition(
                    topic=partition["topic"],
                    partition=partition["partition"],
                    segments=len(written["segments"]),
                    size=written["size"],
                    records=written["records"],
                )
                report["written"].append(counted)
            room = _core.LISTED - len(report["problems"])
            report["problems"] += written["problems"][:room]
            report["problems_left_out"] += written["problems_left_out"] + len(written["problems"][room:])
        output.commit(report)


def _chunks(partition: FoundPartition, sizes: dict[str, int]) -> list[str]:
    """The runs to copy, as chunks in the order of their offsets."""
    chunks = []
    next_offset = partition["first_offset"]
    for run in partition["runs"]:
        if run["is_copy"]:
            continue
        chunk = {
            "path": run["file"],
            "segment": os.path.basename(run["file"]),
            "topic": partition["topic"],
            "partition": partition["partition"],
            "size": sizes[run["file"]],
            "start": run["start"],
            "end": run["end"],
            "expected_offset": run["first_offset"],
            "max_offset": _MAX_OFFSET,
            "next_offset": None,
            # The beginning of a run that overlaps the one before is in that one.
            "start_offset": next_offset if run["first_offset"] < next_offset else None,
            "end_offset": None,
            "aborted": [],
        }
        chunks.append(json.dumps(chunk))
        next_offset = run["last_offset"] + 1
    return chunks


def _copy(task: tuple[str, list[str]]) -> str:
    directory, chunks = task
    first = json.loads(chunks[0])["expected_offset"]
    return _core.rewrite_chunks(chunks, os.path.join(directory, "segments"), first)
