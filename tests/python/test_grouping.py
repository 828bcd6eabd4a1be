"""The grouping of runs in `find`, by plain data: hostile files end in seconds, ambiguity joins nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import pytest
from magicbyte.jobs.unnamed.grouping import FileRun, Group, grouped
from magicbyte.model import BatchRun, ProducerRun


def producer(number: int, first: int, following: int, *, epoch: int = 0) -> ProducerRun:
    return ProducerRun(
        producer_id=number,
        first_epoch=epoch,
        first_sequence=first,
        last_epoch=epoch,
        next_sequence=following,
    )


def run(
    file: str, first: int, last: int, *, epoch: int = 0, producers: Iterable[ProducerRun] = ()
) -> FileRun:
    found = BatchRun(
        start=0,
        end=100,
        batches=1,
        first_offset=first,
        last_offset=last,
        gaps=0,
        first_epoch=epoch,
        last_epoch=epoch,
        max_timestamp=0,
        is_value=False,
        marks=[],
        producers=list(producers),
    )
    return FileRun(file, 100, found)


def joined(groups: list[Group]) -> list[list[str]]:
    return sorted(sorted(one.file for one in group.runs) for group in groups if len(group.runs) > 1)


HALF = 50_000
Hostile = Callable[[int], Iterable[FileRun]]


def same_offsets(n: int) -> Iterable[FileRun]:
    return (run(f"{n}", 100 * (n % 2), 100 * (n % 2) + 99) for _ in (0,))


def same_producer(n: int) -> Iterable[FileRun]:
    after = n % 2
    yield run(f"{n}", 100 * after, 100 * after + 99, producers=[producer(1, 100 * after, 100 * after + 100)])


def many_producers(n: int) -> Iterable[FileRun]:
    after = n % 2
    producers = [producer(number, 5 * after, 5 * after + 5) for number in range(8)]
    yield run(f"{n}", 100 * after, 100 * after + 99, producers=producers)


def overlapping_line(n: int) -> Iterable[FileRun]:
    yield run(f"{n}", 100 + n, 200 + n, producers=[producer(1, 100 + n, 201 + n)])


def falling_epochs(n: int) -> Iterable[FileRun]:
    yield run(f"{n}", 10 * n, 10 * n + 8, epoch=200_000 - n, producers=[producer(1, 10 * n, 10 * n + 9)])


def chain(n: int) -> Iterable[FileRun]:
    yield run(f"{n}", 10 * n, 10 * n + 9)


def crowds(n: int) -> Iterable[FileRun]:
    place, after = n // 32, n % 2
    yield run(f"{n}", 1000 * place + 100 * after, 1000 * place + 100 * after + 99)


def one_against_many(n: int) -> Iterable[FileRun]:
    after = int(n % 6000 > 0)
    yield run(f"{n}", 100 * after, 100 * after + 99)


@pytest.mark.parametrize(
    "hostile",
    [
        same_offsets,
        same_producer,
        many_producers,
        overlapping_line,
        falling_epochs,
        chain,
        crowds,
        one_against_many,
    ],
)
def test_hostile_runs_end_in_seconds(hostile: Hostile) -> None:
    runs = [one for n in range(2 * HALF) for one in hostile(n)]
    start = time.process_time()
    groups = grouped(runs)
    assert time.process_time() - start < 20
    assert sum(len(group.runs) for group in groups) == len(runs)
    if hostile is chain:
        assert len(groups) == 1
    elif hostile is not overlapping_line:
        assert len(groups) == len(runs)


def test_a_crowd_joins_nothing_but_a_producer_may_tell() -> None:
    """20 partitions whose segments end at the same offset."""
    plain = [run(f"{n} {at}", 100 * at, 100 * at + 99) for n in range(20) for at in range(2)]
    assert joined(grouped(plain)) == []
    told = [
        run(f"{n} {at}", 100 * at, 100 * at + 99, producers=[producer(n, 7 * at, 7 * at + 7)])
        for n in range(20)
        for at in range(2)
    ]
    assert joined(grouped(told)) == sorted([f"{n} 0", f"{n} 1"] for n in range(20))


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 40])
def test_ambiguity_is_the_same_in_groups_of_every_size(size: int) -> None:
    runs = [run(f"a{n}", 0, 99) for n in range(size)] + [run(f"b{n}", 100, 199) for n in range(size)]
    # The runs of a crowd are still ambiguous at their other ends.
    runs += [run(f"c{n}", 200, 299) for n in range(size)]
    assert joined(grouped(runs)) == ([["a0", "b0", "c0"]] if size == 1 else [])


def test_what_contradicts_leaves_one_pair() -> None:
    runs = [
        run("a", 0, 99, epoch=5),
        run("b", 100, 199, epoch=4),
        run("c", 100, 199, epoch=5),
        run("d", 300, 399, producers=[producer(1, 0, 10)]),
        run("e", 400, 499, producers=[producer(1, 5, 20)]),
        run("f", 400, 499, producers=[producer(1, 10, 20)]),
    ]
    assert joined(grouped(runs)) == [["a", "c"], ["d", "f"]]


def test_a_producer_goes_on_over_a_gap_at_the_nearest_run() -> None:
    runs = [
        run(f"{first}", first, first + 9, producers=[producer(1, first, first + 10)]) for first in (0, 50, 90)
    ]
    assert joined(grouped(runs)) == [["0", "50", "90"]]
    runs.append(run("other", 50, 59, producers=[producer(1, 50, 60)]))
    assert joined(grouped(runs)) == []
