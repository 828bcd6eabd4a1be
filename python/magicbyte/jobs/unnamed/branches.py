"""Runs of one partition that are not one log.

An equal batch says that two runs are of the same partition, as replicas are. After their last common batch,
each may go on by itself: one of them was written before an unclean election, or was cleaned at another time.
Two topics to which a program writes the same have equal batches, too. So runs with common offsets are of one
log only if one of them has the marked batches of the other, which are its last one and a sample of all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from magicbyte.jobs.unnamed.grouping import FileRun, Group, by_name_and_size, grouped
from magicbyte.model import BatchMark

__all__ = ["split_branches"]

_ROUNDS = 8
"""The number of times that files are searched again: one more for each further branch of a partition."""

Search: TypeAlias = Callable[[Mapping[str, Sequence[BatchMark]]], Sequence[FileRun]]
"""Finds the runs of files again, with the marks that are looked for in each."""
_Place: TypeAlias = tuple[str, int]
"""A file, and the position of a run."""
_Mark: TypeAlias = tuple[int, int, int]


def split_branches(groups: Sequence[Group], search: Search) -> list[Group]:
    """The groups, with another group for each branch. The branch that stays has the highest leader epoch and
    offset, as the copy that leads a merge.

    Files are searched again only for batches of runs that overlap and end at different offsets.
    """
    marks: dict[_Place, set[_Mark]] = {
        _place(one): set(map(_key, one.run["marks"])) for group in groups for one in group.runs
    }
    asked: set[tuple[_Place, _Mark]] = set()
    waiting, done = list(groups), []
    for _ in range(_ROUNDS):
        wanted: dict[str, list[BatchMark]] = defaultdict(list)
        for _, holder, expected in chain.from_iterable(_overlaps(group.runs) for group in waiting):
            for mark in expected:
                question = _place(holder), _key(mark)
                if question[1] not in marks[question[0]] and question not in asked:
                    asked.add(question)
                    wanted[holder.file].append(mark)
        for found in search(wanted) if wanted else ():
            if (known := marks.get(_place(found))) is not None:
                known |= set(map(_key, found.run["marks"]))
        following: list[Group] = []
        for group in waiting:
            others = _of_other_branches(group.runs, marks)
            if not others:
                done.append(group)
                continue
            group.runs = [one for one in group.runs if _place(one) not in others]
            following.append(group)
            for other in grouped(list(others.values())):
                other.branch_of = group.branch_of or group
                following.append(other)
        waiting = following
        if not waiting:
            break
    done += [alone for group in waiting for alone in _one_by_one(group)]
    return sorted(done, key=by_name_and_size)


def _of_other_branches(runs: Sequence[FileRun], marks: Mapping[_Place, set[_Mark]]) -> dict[_Place, FileRun]:
    """The runs that another one contradicts, of which each is of the lower epoch and offset, with their
    copies.
    """
    branches = {_place(one): [one] for one in runs}
    contradictions = []
    for one, other, expected in _overlaps(runs):
        branch, same = sorted((branches[_place(one)], branches[_place(other)]), key=len)
        if not marks[_place(other)].issuperset(map(_key, expected)):
            contradictions.append((one, other))
        elif branch is not same:
            same += branch
            branches.update((_place(copy), same) for copy in branch)
    others: dict[_Place, FileRun] = {}
    for pair in contradictions:
        lower, higher = sorted(pair, key=lambda one: (one.run["last_epoch"], one.run["last_offset"]))
        branch = branches[_place(lower)]
        leaves = [lower] if branch is branches[_place(higher)] else branch
        others |= {_place(one): one for one in leaves}
    return others


def _overlaps(runs: Sequence[FileRun]) -> Iterator[tuple[FileRun, FileRun, list[BatchMark]]]:
    """Pairs of runs with common offsets: the one that ends first, the other, and the marks of the first that
    the other has if they are of one log.
    """
    longest: FileRun | None = None
    for one in sorted(runs, key=lambda one: (one.run["first_offset"], -one.run["last_offset"])):
        if longest is None or longest.run["last_offset"] < one.run["first_offset"]:
            longest = one
        elif longest.run["last_offset"] < one.run["last_offset"]:
            yield longest, one, _marks_from(longest, one.run["first_offset"])
            longest = one
        else:
            yield one, longest, one.run["marks"]


def _marks_from(one: FileRun, offset: int) -> list[BatchMark]:
    return [mark for mark in one.run["marks"] if mark["offset"] >= offset]


def _one_by_one(group: Group) -> Iterator[Group]:
    first, *others = sorted(group.runs, key=lambda one: -one.run["last_offset"])
    group.runs = [first]
    yield group
    for one in others:
        yield Group([one], [], None, group.branch_of or group)


def _place(one: FileRun) -> _Place:
    return one.file, one.run["start"]


def _key(mark: BatchMark) -> _Mark:
    return mark["offset"], mark["epoch"], mark["crc"]
