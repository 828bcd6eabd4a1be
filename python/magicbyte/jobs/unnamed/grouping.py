"""The partitions that runs of batches belong to, judged by the runs alone. Pure: no file is read.

Runs are joined by evidence, the strongest first. Evidence that leads to two places joins nothing:

1. An equal batch: replicas are copied byte for byte.
2. The same file: the next run in it goes on after a damaged batch.
3. A producer: its sequence ends in one run and goes on in the other, as far from it as the offsets are.
4. The offsets alone: one run ends right before the other, and no third run fits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TypeAlias, TypeVar

from magicbyte.model import BatchRun, ProducerRun

__all__ = ["FileRun", "Group", "TopicPartition", "by_name_and_size", "grouped"]

TopicPartition: TypeAlias = "tuple[str, int]"

_SECTOR = 512
"""File systems place files at multiples of this many bytes."""
_DAMAGE = 4 << 20
"""Two runs in a file with more bytes between them say nothing about each other."""
_RECORDS_PER_BYTE = 10
"""More records than this are rarely compressed into a byte."""
_SEQUENCES = 1 << 31
"""Sequences go on with 0 after 2^31 - 1."""
_CROWD = 16
"""If more parts than this end at a place, and more than this begin, nothing tells which belong together."""


@dataclass(frozen=True)
class FileRun:
    """A run of batches, and the file that it is in."""

    file: str
    size: int
    """The size of the file."""
    run: BatchRun
    name: TopicPartition | None = None
    """The partition, if the file has its name: such a run gives the name, and is not looked for."""


@dataclass
class Group:
    """The runs of one partition."""

    runs: list[FileRun]
    reasons: list[str]
    """The evidence that joined them, each kind once."""
    name: TopicPartition | None
    branch_of: Group | None = None
    """The runs of the same partition that these contradict."""


class _Offsets:
    """A set of offsets, as ranges of them."""

    def __init__(self, first: int, last: int) -> None:
        self.firsts, self.lasts = [first], [last]

    def overlaps(self, other: _Offsets) -> bool:
        """True if an offset is in both. `other` has the fewer ranges."""
        for first, last in zip(other.firsts, other.lasts, strict=True):
            before = bisect_right(self.firsts, last) - 1
            if before >= 0 and self.lasts[before] >= first:
                return True
        return False

    def add(self, other: _Offsets) -> None:
        """Adds offsets, some of which may be there already."""
        for first, last in zip(other.firsts, other.lasts, strict=True):
            start = bisect_left(self.lasts, first - 1)
            end = bisect_right(self.firsts, last + 1)
            if start < end:
                first, last = min(first, self.firsts[start]), max(last, self.lasts[end - 1])
            self.firsts[start:end], self.lasts[start:end] = [first], [last]


class _Part:
    """Runs that belong together, while others are joined to them."""

    def __init__(self, number: int, run: FileRun) -> None:
        self.runs = [number]
        self.name = run.name
        self.offsets = _Offsets(run.run["first_offset"], run.run["last_offset"])
        self.reasons: dict[str, None] = {}


class _Parts:
    """The runs, each with the part that it is in."""

    def __init__(self, runs: Sequence[FileRun]) -> None:
        self.of = [_Part(number, run) for number, run in enumerate(runs)]

    def join(self, one: int, other: int, reason: str, *, are_copies: bool = False) -> None:
        """Joins two parts, unless they have different names, or offsets of both are in different batches."""
        first, second = self.of[one], self.of[other]
        if first is second:
            return
        if len(first.runs) < len(second.runs):
            first, second = second, first
        if first.name and second.name and first.name != second.name:
            return
        if not are_copies and first.offsets.overlaps(second.offsets):
            return
        first.runs += second.runs
        first.name = first.name or second.name
        first.offsets.add(second.offsets)
        first.reasons |= second.reasons
        first.reasons.setdefault(reason)
        for number in second.runs:
            self.of[number] = first


def grouped(runs: Sequence[FileRun]) -> list[Group]:
    """The runs by partition. Groups with a name come first, by it; then the largest."""
    parts = _Parts(runs)
    _join_copies(runs, parts)
    _join_in_files(runs, parts)
    _join_uniquely(parts, _by_producers(runs, parts), "a producer's sequence goes on")
    _join_uniquely(parts, _by_offsets(runs, parts), "the offsets go on")
    groups = []
    for part in {id(part): part for part in parts.of}.values():
        looked_for = [runs[number] for number in sorted(part.runs) if runs[number].name is None]
        if looked_for:
            groups.append(Group(looked_for, list(part.reasons), part.name))
    return sorted(groups, key=by_name_and_size)


def by_name_and_size(group: Group) -> tuple[bool, TopicPartition, int, str, int]:
    """The key of the order of groups: those with a name by it, then the largest first."""
    first = group.runs[0]
    size = sum(one.run["end"] - one.run["start"] for one in group.runs)
    return group.name is None, group.name or ("", 0), -size, first.file, first.run["start"]


def _join_copies(runs: Sequence[FileRun], parts: _Parts) -> None:
    seen: dict[tuple[int, int, int], int] = {}
    # A run with a name comes first, so that others join it rather than each other.
    for number in sorted(range(len(runs)), key=lambda n: runs[n].name is None):
        for mark in runs[number].run["marks"]:
            first = seen.setdefault((mark["offset"], mark["epoch"], mark["crc"]), number)
            if first != number:
                parts.join(first, number, "equal batches", are_copies=True)


def _join_in_files(runs: Sequence[FileRun], parts: _Parts) -> None:
    for one, other in pairwise(range(len(runs))):
        if runs[one].file == runs[other].file and _goes_on_in_file(runs[one], runs[other]):
            parts.join(one, other, "the same file")


def _goes_on_in_file(one: FileRun, other: FileRun) -> bool:
    """True if the second run follows the first in its file as if the bytes between them were damaged."""
    before, after = one.run, other.run
    lost = after["first_offset"] - before["last_offset"] - 1
    between = after["start"] - before["end"]
    if lost < 0 or between > _DAMAGE or after["first_epoch"] < before["last_epoch"]:
        return False
    if any(_distance(*pair) is None for pair in _shared_producers(before, after)):
        return False
    # Another file may begin at a sector. A run at the start of its file says that this is no disk image.
    may_be_other_file = after["start"] % _SECTOR == 0 and before["start"] > 0
    return lost == 0 or (not may_be_other_file and (between == 0 or lost <= _RECORDS_PER_BYTE * between))


def _join_uniquely(parts: _Parts, pairs: Iterable[tuple[int, int]], reason: str) -> None:
    """Joins the runs of each pair, unless either could also be joined to another part."""
    found = [(one, other) for one, other in pairs if parts.of[one] is not parts.of[other]]
    after: dict[int, set[int]] = defaultdict(set)
    before: dict[int, set[int]] = defaultdict(set)
    for one, other in found:
        after[id(parts.of[one])].add(id(parts.of[other]))
        before[id(parts.of[other])].add(id(parts.of[one]))
    unique = [
        (one, other)
        for one, other in found
        if len(after[id(parts.of[one])]) == 1 and len(before[id(parts.of[other])]) == 1
    ]
    for one, other in unique:
        parts.join(one, other, reason)


def _by_producers(runs: Sequence[FileRun], parts: _Parts) -> Iterator[tuple[int, int]]:
    """Pairs in which a producer goes on: right after its last sequence, or, if it is the only one in both, as
    many sequences later as offsets.
    """
    ends, begins = defaultdict(list), defaultdict(list)
    for number, one in enumerate(runs):
        for producer in one.run["producers"]:
            ends[one.run["last_offset"] + 1, producer["producer_id"]].append(number)
            begins[one.run["first_offset"], producer["producer_id"]].append(number)
    goes_on = _Continuity(runs).has_producer
    yield from _candidates(parts, ends, begins, goes_on)
    yield from _later_by_producers(runs)


def _later_by_producers(runs: Sequence[FileRun]) -> Iterator[tuple[int, int]]:
    """Pairs of a run and those nearest to it among the later runs of the same single producer."""
    begins: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    alone = [(n, one.run["producers"][0]) for n, one in enumerate(runs) if len(one.run["producers"]) == 1]
    for number, producer in sorted(alone, key=lambda found: runs[found[0]].run["first_offset"]):
        line = (producer["first_sequence"] - runs[number].run["first_offset"]) % _SEQUENCES
        begins[producer["producer_id"], producer["first_epoch"], line].append(number)
    for number, producer in alone:
        line = (producer["next_sequence"] - runs[number].run["last_offset"] - 1) % _SEQUENCES
        same = begins.get((producer["producer_id"], producer["last_epoch"], line), [])
        start = bisect_right(same, runs[number].run["last_offset"], key=lambda n: runs[n].run["first_offset"])
        later = [other for other in same[start : start + _CROWD] if _is_after(runs[other], runs[number])]
        nearest = runs[later[0]].run["first_offset"] if later else None
        yield from ((number, other) for other in later if runs[other].run["first_offset"] == nearest)


def _by_offsets(runs: Sequence[FileRun], parts: _Parts) -> Iterator[tuple[int, int]]:
    """Pairs of which one ends right before the other begins, and no producer contradicts."""
    ends, begins = defaultdict(list), defaultdict(list)
    for number, one in enumerate(runs):
        ends[one.run["last_offset"] + 1].append(number)
        begins[one.run["first_offset"]].append(number)
    return _candidates(parts, ends, begins, _Continuity(runs).is_possible)


_Place = TypeVar("_Place", bound=Hashable)


def _candidates(
    parts: _Parts,
    ends: Mapping[_Place, Sequence[int]],
    begins: Mapping[_Place, Sequence[int]],
    follows: Callable[[int, int], bool],
) -> Iterator[tuple[int, int]]:
    """The pairs of runs that end and begin at the same place, one run of each part, if one follows the other.

    Where too many parts end and begin, all of them count as ambiguous: each run is in two pairs at least. So
    the number of pairs grows no faster than that of the runs.
    """
    for place in ends.keys() & begins.keys():
        before, after = _one_of_each_part(parts, ends[place]), _one_of_each_part(parts, begins[place])
        if min(len(before), len(after)) <= _CROWD:
            yield from (pair for pair in product(before, after) if follows(*pair))
        else:
            yield from product(before, after[:3])
            yield from product(before[:3], after)


def _one_of_each_part(parts: _Parts, numbers: Sequence[int]) -> list[int]:
    return list({id(parts.of[number]): number for number in reversed(numbers)}.values())


class _Continuity:
    """Runs in which the producers of another run go on. A comparison costs the fewer producers of both."""

    def __init__(self, runs: Sequence[FileRun]) -> None:
        self._runs = runs
        self._by_id = [{one["producer_id"]: one for one in run.run["producers"]} for run in runs]

    def is_possible(self, one: int, later: int) -> bool:
        """True if the second run can follow the first."""
        distances = self._distances(one, later)
        return _is_after(self._runs[later], self._runs[one]) and all(found is not None for found in distances)

    def has_producer(self, one: int, later: int) -> bool:
        """True if a producer also goes on right after its last sequence."""
        return self.is_possible(one, later) and any(found == 0 for found in self._distances(one, later))

    def _distances(self, one: int, later: int) -> Iterator[int | None]:
        before, after = self._by_id[one], self._by_id[later]
        fewer = before if len(before) < len(after) else after
        return (
            _distance(before[number], after[number])
            for number in fewer
            if number in before and number in after
        )


def _is_after(later: FileRun, one: FileRun) -> bool:
    return (
        later.run["first_offset"] > one.run["last_offset"]
        and later.run["first_epoch"] >= one.run["last_epoch"]
    )


def _shared_producers(one: BatchRun, other: BatchRun) -> Iterator[tuple[ProducerRun, ProducerRun]]:
    by_id = {producer["producer_id"]: producer for producer in other["producers"]}
    for producer in one["producers"]:
        if (same := by_id.get(producer["producer_id"])) is not None:
            yield producer, same


def _distance(before: ProducerRun, after: ProducerRun) -> int | None:
    """The sequences between two runs of a producer; None if the second cannot follow the first."""
    if after["first_epoch"] != before["last_epoch"]:
        return 0 if after["first_epoch"] > before["last_epoch"] else None
    distance = (after["first_sequence"] - before["next_sequence"]) % _SEQUENCES
    return distance if distance < _SEQUENCES // 2 else None
