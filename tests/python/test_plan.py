"""How work is split into tasks."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from magicbyte.jobs.find.partitions import list_partitions
from magicbyte.jobs.run.engines import LocalEngine, group_by_size
from magicbyte.jobs.run.plan import MIB, plan_partitions, size_of, target_bytes, tasks_of


def test_small_neighbours_are_grouped() -> None:
    assert [*group_by_size("abcdef", [1, 1, 8, 9, 0, 20], 10)] == [["a", "b", "c"], ["d", "e"], ["f"]]
    assert [*group_by_size("ab", [0, 0], 10)] == [["a", "b"]]
    assert [*group_by_size("", [], 10)] == []


@pytest.mark.parametrize(
    ("size", "parallelism", "tasks", "target"),
    [
        (1 << 40, 8, None, 128 * MIB),  # the largest task
        (1 << 10, 8, None, 4 * MIB),  # as small
        (1200 * MIB, 10, None, 40 * MIB),  # three tasks a slot
        (1000, 8, 10, 100),  # what is asked for, however small
    ],
)
def test_target(size: int, parallelism: int, tasks: int | None, target: int) -> None:
    assert target_bytes(size, parallelism, tasks) == target


def test_tasks_cover_every_byte_once(kafka: Path) -> None:
    listings = list_partitions([str(kafka)])
    plans = plan_partitions(listings, LocalEngine(2), chunk_bytes=target_bytes(size_of(listings), 2, 100))
    chunks = [chunk for planned in plans for chunk in planned.plan["chunks"]]
    for planned in plans:
        for segment in planned.plan["segments"]:
            ranges = [(chunk["start"], chunk["end"]) for chunk in chunks if chunk["path"] == segment["path"]]
            borders = [0, *(end for _, end in ranges)]
            assert [start for start, _ in ranges] == borders[:-1]
            assert borders[-1] == segment["size"]
    tasks = tasks_of(plans, 2, tasks=100)
    assert len(tasks) >= 30
    assert sum(len(task.chunks) for task in tasks) == len(chunks)
    assert [task.number for task in tasks] == list(range(len(tasks)))


def test_many_tiny_segments_and_a_huge_one(kafka: Path, tmp_path: Path) -> None:
    batch = (kafka / "v2_none" / f"{0:020d}.log").read_bytes()[4695:]

    def write(path: Path, first: int, batches: int) -> None:
        with path.open("wb") as file:
            for number in range(batches):  # the base offset is not under the checksum
                file.write(struct.pack(">q", first + 60 * number) + batch[8:])

    for partition in range(3):
        directory = tmp_path / f"t-{partition}"
        directory.mkdir()
        for number in range(400):
            write(directory / f"{60 * number:020d}.log", 60 * number, 1)
    write(tmp_path / "t-1" / f"{60 * 400:020d}.log", 60 * 400, 7000)
    steps: list[int] = []

    class Counting(LocalEngine):
        def map(self, function: Any, items: Any, **options: Any) -> Any:
            steps.append(len(items))
            return super().map(function, items, **options)

    plans = plan_partitions(list_partitions([str(tmp_path)]), Counting(2))
    assert steps[0] <= 6  # 1,201 segments, 47 MiB
    tasks = tasks_of(plans, 2)
    assert sum(len(task.chunks) for task in tasks) > 1200
    assert len(tasks) <= 10
    assert max(task.size for task in tasks) < 2 * sum(task.size for task in tasks) / 6
