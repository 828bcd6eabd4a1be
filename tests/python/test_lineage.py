"""What a log continues: topics and leader epochs, by Kafka's rule for followers."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest
from magicbyte.jobs.find.lineage import UNKNOWN, EpochStart, Lineage, LogLineage, divergence, epochs_of
from magicbyte.model import PartitionPlan

OLD, NEW = "cThDCR9PQGKsbgjMRDDf3w", "u1mzpqQaRLOROuWi4MCVBw"


def log(
    *epochs: tuple[int, int], end: int, topic_id: str | None = OLD, cluster_id: str | None = None
) -> LogLineage:
    return LogLineage(topic_id, cluster_id, tuple(EpochStart(*one) for one in epochs), end)


@pytest.mark.parametrize(
    ("before", "read", "after", "expected"),
    [
        # The same log, longer, shorter, and without its first segments.
        (log((0, 0), end=100), 100, log((0, 0), end=200), None),
        (log((0, 0), end=100), 100, log((0, 0), (1, 100), end=200), None),
        (log((0, 0), (1, 50), end=100), 100, log((0, 0), (1, 50), end=60), None),
        (log((0, 0), (1, 50), end=100), 100, log((0, 0), end=50), None),
        (log((0, 0), (1, 50), end=100), 100, log((2, 150), end=200), None),
        (log((0, 0), (1, 50), end=100), 100, log((1, 80), (2, 120), end=200), None),
        (log((0, 0), (1, 50), end=100), 100, log(end=100), None),
        # Only a part of it was read.
        (log((0, 0), (1, 50), end=100), 40, log((0, 0), (2, 50), end=90), None),
        (log((0, 0), (1, 50), end=100), 50, log((0, 0), (2, 50), end=90), None),
        (log((0, 0), (1, 50), end=100), 51, log((0, 0), (2, 50), end=90), 50),
        # A new leader goes on within what was read.
        (log((0, 0), end=150), 150, log((0, 0), (1, 110), end=190), 110),
        (log((0, 0), end=150), 150, log((0, 0), (1, 110), end=120), 110),
        (log((0, 0), end=150), 150, log((0, 0), (1, 110), (4, 160), end=190), 110),
        # The leader that wrote the last records is not in the log.
        (log((0, 0), (2, 100), end=150), 150, log((0, 0), (3, 80), end=190), 80),
        (log((0, 0), (2, 100), end=150), 150, log((0, 0), (1, 100), (3, 180), end=190), 100),
        (log((0, 0), (2, 100), end=150), 150, log((0, 0), (3, 180), end=190), 100),
        # The log has only older leaders, and is longer than what they had written.
        (log((0, 0), (2, 100), end=150), 150, log((0, 0), end=120), 100),
        (log((0, 0), (2, 100), end=150), 150, log((0, 0), end=100), None),
        # Where the log begins, another leader had gone on.
        (log((0, 0), (1, 50), end=100), 100, log((3, 70), end=90), 70),
        # Another topic.
        (log((0, 0), end=100), 100, log((0, 0), end=150, topic_id=NEW), 0),
        (log((0, 0), end=100), 100, log((0, 0), end=50, topic_id=NEW), 0),
        (log((0, 0), end=100), 100, log(end=0, topic_id=NEW), 0),
        (log((0, 0), end=100), 100, log((0, 120), end=150, topic_id=NEW), 0),
        (log((0, 0), end=100), 0, log((0, 0), end=150, topic_id=NEW), None),
        # What is unknown proves nothing.
        (log((0, 0), end=100, topic_id=None), 100, log((0, 0), end=150, topic_id=NEW), None),
        (log((0, 0), end=100), 100, log((0, 0), end=150, topic_id=None), None),
        (log(end=100), 100, log((0, 0), (1, 50), end=150), None),
        (log((0, 0), end=100), 100, log(end=150), None),
    ],
)
def test_divergence(before: LogLineage, read: int, after: LogLineage, expected: int | None) -> None:
    found = divergence(before.before(read), read, after)
    assert (None if found is None else found.offset) == expected
    if found is not None:
        assert f"it diverges at offset {expected}" in str(found)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (log(end=9, cluster_id="a"), log(end=9, cluster_id="b"), None),  # of the same topic, by its id
        (log(end=9, topic_id=None, cluster_id="a"), log(end=9, cluster_id="b"), 0),
        (log(end=9, cluster_id="a"), log(end=9, topic_id=None, cluster_id="b"), 0),
        (log(end=9, cluster_id="a"), log(end=9, topic_id=None, cluster_id="a"), None),
        (log(end=9, topic_id=None, cluster_id="a"), log(end=9, topic_id=None), None),
        (log(end=9, cluster_id="a"), log(end=9, topic_id=NEW, cluster_id="a"), 0),
    ],
)
def test_another_cluster(before: LogLineage, after: LogLineage, expected: int | None) -> None:
    found = divergence(before.before(5), 5, after)
    assert (None if found is None else found.offset) == expected


def test_the_lineage_of_an_offset() -> None:
    known = log((0, 0), (3, 50), (4, 80), end=90, cluster_id="c")

    def lineage(epoch: int | None = None, start: int = 0) -> Lineage:
        return Lineage(OLD, None if epoch is None else EpochStart(epoch, start), "c")

    assert known.before(0) == lineage()
    assert known.before(1) == known.before(50) == lineage(0, 0)
    assert known.before(51) == lineage(3, 50)
    assert known.before(90) == lineage(4, 80)
    assert known.before(91) == lineage()
    assert log((3, 50), end=90).before(50) == Lineage(OLD)


def test_the_lineage_of_a_log_that_was_read_from_the_middle_on() -> None:
    earlier = Lineage(OLD, EpochStart(3, 50), "c")
    assert log(end=90, topic_id=None).before(90, earlier) == earlier
    assert log((3, 70), end=90).before(90, earlier) == earlier
    assert log((3, 50), (4, 80), end=90).before(80, earlier) == earlier
    assert log((3, 70), (4, 80), end=90).before(81, earlier) == Lineage(OLD, EpochStart(4, 80), "c")
    assert log((3, 70), end=90, topic_id=NEW, cluster_id="d").before(90, earlier) == Lineage(
        NEW, EpochStart(3, 50), "d"
    )


def test_unknown_parts_of_a_lineage_are_filled_in() -> None:
    known = Lineage(OLD, EpochStart(3, 50), "c")
    assert UNKNOWN.or_else(known) == known
    assert Lineage(None, EpochStart(2, 40)).or_else(known) == Lineage(OLD, EpochStart(2, 40), "c")
    assert Lineage(NEW).or_else(known) == Lineage(NEW, EpochStart(3, 50), "c")


def test_leaders_that_write_and_lose() -> None:
    """Two replicas take turns as leaders; what a follower of the log may keep is known record by record."""
    chance = random.Random(7)
    for _ in range(300):
        replicas: list[list[int]] = [[], []]
        for epoch in range(5):
            leader = chance.randrange(2)
            follower = replicas[1 - leader]
            shared = next(
                (at for at, pair in enumerate(zip(*replicas, strict=False)) if pair[0] != pair[1]),
                min(map(len, replicas)),
            )
            del follower[shared:]  # as a follower truncates; the leader does not
            follower += replicas[leader][shared:]
            replicas[leader] += [epoch] * chance.randrange(6)
            if chance.random() < 0.4:
                follower[:] = replicas[leader]
        (before, after) = (lineage_of(one) for one in replicas)
        read = chance.randint(0, len(replicas[0]))
        same = next(
            (at for at, pair in enumerate(zip(*replicas, strict=False)) if pair[0] != pair[1]),
            min(map(len, replicas)),
        )
        found = divergence(before.before(read), read, after)
        if same >= min(read, len(replicas[1])):
            assert found is None
        else:
            assert found is not None
            assert found.offset == same


def lineage_of(epochs: list[int]) -> LogLineage:
    starts = [(epoch, at) for at, epoch in enumerate(epochs) if at == 0 or epochs[at - 1] != epoch]
    return log(*starts, end=len(epochs))


@pytest.mark.parametrize(
    ("batches", "checkpoint", "expected"),
    [
        ([(0, 0), (2, 50)], [], [(0, 0), (2, 50)]),
        # Compaction left no batch of epoch 1, and none of the first ones of epoch 2.
        ([(0, 0), (2, 50)], [(0, 0), (1, 20), (2, 40)], [(0, 0), (1, 20), (2, 40)]),
        ([], [(0, 0), (1, 20)], [(0, 0), (1, 20)]),
        # A checkpoint that is newer than the segments, or of another log.
        ([(0, 0), (2, 50)], [(3, 100)], [(0, 0), (2, 50)]),
        ([(0, 0), (2, 50)], [(1, 60), (3, 40), (0, 10), (2, 70)], [(0, 0), (2, 50)]),
        ([(5, 30)], [(0, 0), (1, 20), (5, 30), (6, 60)], [(0, 0), (1, 20), (5, 30), (6, 60)]),
    ],
)
def test_epochs_of_batches_and_checkpoint(
    batches: list[tuple[int, int]], checkpoint: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    epochs = [{"epoch": epoch, "start_offset": start} for epoch, start in batches]
    plan = cast(PartitionPlan, {"leader_epochs": epochs, "next_offset": 100} | dict[str, Any]())
    assert epochs_of(plan, checkpoint) == tuple(expected)
