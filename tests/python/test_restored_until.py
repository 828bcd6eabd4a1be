"""`restore --until`: the logs as they were at a time, or up to given offsets."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import Cli
from dead_clusters import LOG, TOPIC_CONFIG, World, commit, directory_id, offsets_file, restored
from magicbyte import RefusedError
from metadata_records import config, partition, topic
from replicas import TIME, batch, batches, content, flip, offsets_of, replica

TOPICS = [topic("orders", 1), topic("__consumer_offsets", 2), partition(1, 0, [1]), partition(2, 0, [1])]


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, TOPICS)
    made.put(1, LOG)
    return made


def end_of(world: World, name: str = "orders-0") -> tuple[list[int], int]:
    """The offsets of a restored log, and its end by its last segment."""
    directory = world.root / "out/node1/logs1"
    log = magicbyte.PartitionLog(directory / name, mode="PERMISSIVE")
    offsets = [record.offset for record in log.records()]
    last = max((directory / name).glob("*.log"))
    return offsets, int(last.name[:20]) if last.stat().st_size == 0 else max(offsets) + 1


# At a time. The records have the timestamps TIME + offset.


@pytest.mark.parametrize(
    ("time", "end"), [(199, 200), (1000, 200), (198, 190), (150, 150), (149, 150), (9, 10), (8, 0), (-5, 0)]
)
def test_a_log_ends_before_the_first_later_batch(world: World, time: int, end: int) -> None:
    report = restored(world, TIME + time)
    assert end_of(world) == ([*range(end)], end)
    cut = [] if end == 200 else [("orders", 0, end, 200 - end, False, False)]
    assert [tuple(one.values()) for one in report["cut"]] == cut
    assert {one["status"] for one in report["partitions"] if one["topic"] == "orders"} == {"online"}


def test_the_rule_is_that_of_serve(world: World) -> None:
    """A later timestamp ends the log, even if earlier ones follow."""
    odd = batches(200, 210)[0]
    world = World(world.root / "odd", TOPICS)
    builder = magicbyte.RecordsBuilder(partition_leader_epoch=0)
    builder.append(50, TIME + 900, None, b"late")
    world.put(1, [*batches(0, 50), builder.build(), *batches(60, 100), odd])
    restored(world, TIME + 300)
    assert end_of(world) == ([*range(50)], 50)


def test_segments_and_sidecars_are_those_of_the_shorter_log(tmp_path: Path) -> None:
    world = World(tmp_path, TOPICS)
    replica(world.log_dirs[1], {0: LOG[:10], 100: LOG[10:]}, epochs=[(0, 0), (3, 100)])
    restored(world, TIME + 95)
    directory = tmp_path / "out/node1/logs1/orders-0"
    assert {path.name for path in directory.glob("*.log")} == {f"{0:020}.log"}
    assert (directory / "leader-epoch-checkpoint").read_text().split()[2:] == ["0", "0"]


def test_the_next_leader_epoch_is_above_those_that_are_cut(world: World) -> None:
    report = restored(world, TIME + 50)
    assert [one["leader_epoch"] for one in report["partitions"] if one["topic"] == "orders"] == [4]


def test_every_replica_is_cut(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2])])
    for node in (1, 2):
        world.put(node, LOG)
    flip(world.log_dirs[1], [3])
    world.restore(until=TIME + 99)
    for node in (1, 2):
        assert offsets_of(tmp_path / f"out/node{node}/logs1") == [*range(100)]


def test_what_compaction_had_removed_is_named(tmp_path: Path) -> None:
    compact = config(TOPIC_CONFIG, "orders", "cleanup.policy", "compact")
    world = World(tmp_path, [*TOPICS, compact])
    world.put(1, LOG)
    (world.log_dirs[1] / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 100\n")
    (cut,) = restored(world, TIME + 150)["cut"]
    assert cut["is_compacted"]


def test_deleted_records_stay_deleted(world: World) -> None:
    (world.log_dirs[1] / "log-start-offset-checkpoint").write_text("0\n1\norders 0 55\n")
    report = world.restore(until=TIME + 20)
    assert [one["log_end_offset"] for one in report["cut"]] == [55]
    assert end_of(world) == ([], 55)


def test_a_tail_that_is_lost_is_cut_with_the_rest(world: World) -> None:
    flip(world.log_dirs[1], [19])
    report = world.restore(until=TIME + 149)
    assert [one["cut_offsets"] for one in report["cut"]] == [50]
    assert end_of(world) == ([*range(150)], 150)


# Up to offsets


@pytest.mark.parametrize(
    ("offset", "end"), [(200, 200), (500, 200), (199, 190), (150, 150), (155, 150), (1, 0), (0, 0)]
)
def test_offsets_of_a_map(world: World, offset: int, end: int) -> None:
    restored(world, offsets_file(world, {"orders-0": offset}))
    assert end_of(world) == ([*range(end)], end)


def test_offsets_of_magicbyte_offsets(world: World) -> None:
    world.put(1, [commits(("a", 10), ("b", 20))], "__consumer_offsets-0", topic_id=directory_id(2))
    written = magicbyte.offsets(world.log_dirs[1])
    for row in written["offsets"]:
        assert row["log_end_offset"] == 200
        row["log_end_offset"] = 150
    restored(world, str(offsets_file(world, written)))
    assert end_of(world) == ([*range(150)], 150)


def test_offsets_as_for_kafka_delete_records(world: World) -> None:
    document = {"partitions": [{"topic": "orders", "partition": 0, "offset": 150}], "version": 1}
    restored(world, offsets_file(world, document))
    assert end_of(world) == ([*range(150)], 150)


def test_an_offset_in_a_gap_is_the_end(tmp_path: Path) -> None:
    world = World(tmp_path, TOPICS)
    world.put(1, [*LOG[:10], *LOG[15:]])
    world.restore(until=offsets_file(world, {"orders-0": 120}))
    assert end_of(world) == ([*range(100)], 120)


def test_an_offset_before_the_start(tmp_path: Path) -> None:
    world = World(tmp_path, TOPICS)
    replica(world.log_dirs[1], {100: LOG[10:]})
    world.restore(until=offsets_file(world, {"orders-0": 50}))
    assert end_of(world) == ([], 100)


def test_an_offset_in_a_lost_tail_is_the_end(world: World) -> None:
    flip(world.log_dirs[1], [18, 19])
    report = world.restore(until=offsets_file(world, {"orders-0": 195}))
    assert [(one["log_end_offset"], one["cut_offsets"]) for one in report["cut"]] == [(195, 5)]
    assert end_of(world) == ([*range(180)], 195)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_wrappers_stay_whole(tmp_path: Path, magic: int) -> None:
    def wrapper(first: int) -> bytes:
        builder = magicbyte.RecordsBuilder(magic=magic, compression="gzip")
        for offset in range(first, first + 10):
            builder.append(offset, TIME, b"k", b"v" * 50)
        return builder.build()

    world = World(tmp_path, TOPICS)
    world.put(1, [wrapper(0), wrapper(10), wrapper(20)])
    world.restore(until=offsets_file(world, {"orders-0": 25}))
    assert end_of(world) == ([*range(20)], 20)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "not an object"),
        ({}, "nothing would be cut"),
        ({"orders": 5}, "not TOPIC-PARTITION"),
        ({"orders-x": 5}, "not TOPIC-PARTITION"),
        ({"orders-0": -1}, "not an offset"),
        ({"orders-0": 1 << 63}, "not an offset"),
        ({"orders-0": True}, "not an offset"),
        ({"orders-0": "5"}, "not an offset"),
        ({"orders-1": 5}, "the cluster does not have"),
        ({"other-0": 5}, "the cluster does not have"),
        ({"offsets": [{"topic": "orders"}]}, "no offsets"),
        ({"offsets": [5]}, "no offsets"),
        ({"partitions": [{"topic": "orders", "partition": "0", "offset": 5}]}, "not an offset"),
        ({"orders-0": 5, "orders-00": 6}, "orders-0 has two, 5 and 6"),
        ({"partitions": [{"topic": "orders", "partition": 0, "offset": at} for at in (5, 6)]}, "has two"),
    ],
)
def test_files_that_are_refused(world: World, document: Any, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        world.restore(until=offsets_file(world, document))
    assert not (world.root / "out").exists()


def test_a_file_that_is_no_json(world: World) -> None:
    path = world.root / "offsets.json"
    path.write_bytes(b"\xff\xfe{")
    with pytest.raises(RefusedError, match="no offsets"):
        world.restore(until=path)


# Transactions


def transaction(
    first: int, producer: int, *, control: int | None = None, epoch: int = 0, time: int | None = None
) -> bytes:
    """Ten records of a transaction, or its marker (0 abort, 1 commit)."""
    if control is None:
        return batch(
            first, is_transactional=True, producer_id=producer, producer_epoch=epoch, base_sequence=0
        )
    builder = magicbyte.RecordsBuilder(
        is_transactional=True,
        is_control=True,
        producer_id=producer,
        producer_epoch=epoch,
        partition_leader_epoch=0,
    )
    builder.append(first, TIME + first, struct.pack(">hh", 0, control), struct.pack(">hi", 0, 0))
    return builder.build()


def transactions(tmp_path: Path, log: Sequence[bytes]) -> World:
    world = World(tmp_path, TOPICS)
    world.put(1, log)
    return world


@pytest.mark.parametrize(("end", "expected"), [(25, 10), (30, 10), (31, 31), (41, 31), (42, 42), (10, 10)])
def test_the_log_ends_at_the_last_stable_offset(tmp_path: Path, end: int, expected: int) -> None:
    world = transactions(
        tmp_path,
        [
            *batches(0, 10),
            transaction(10, 7),
            *batches(20, 30),
            transaction(30, 7, control=1),
            transaction(31, 8),
            transaction(41, 8, control=0),
            *batches(42, 60, step=9),
        ],
    )
    report = restored(world, offsets_file(world, {"orders-0": end}))
    (cut,) = report["cut"]
    assert cut["log_end_offset"] == expected
    assert cut["before_open_transaction"] == (end in (25, 30, 41) and expected < end - 5)


def test_a_transaction_that_is_open_for_ever_does_not_cut_a_log_by_itself(tmp_path: Path) -> None:
    world = transactions(tmp_path, [*batches(0, 10), transaction(10, 7), *batches(20, 30)])
    assert restored(world, TIME + 900)["cut"] == []
    assert end_of(world)[0] == [*range(30)]


def test_the_first_of_several_open_transactions_counts(tmp_path: Path) -> None:
    log = [*batches(0, 10), transaction(10, 7), transaction(20, 8), transaction(30, 8, control=1)]
    world = transactions(tmp_path, [*log, transaction(31, 7, control=1)])
    (cut,) = restored(world, TIME + 30)["cut"]
    assert (cut["log_end_offset"], cut["before_open_transaction"]) == (10, True)


# Positions of groups


def commits(*positions: tuple[str, int], first: int = 0, time: int = 0) -> bytes:
    builder = magicbyte.RecordsBuilder(partition_leader_epoch=3)
    for offset, (group, position) in enumerate(positions, first):
        builder.append(offset, TIME + time, *commit(group, position))
    return builder.build()


def positions_of(world: World) -> dict[str, int]:
    found = magicbyte.offsets(world.root / "out/node1/logs1")
    assert found["problems"] == []
    return {one["group"]: one["offset"] for one in found["offsets"]}


def test_positions_beyond_the_end_move_to_it(world: World) -> None:
    world.put(
        1,
        [commits(("far", 180), ("near", 20), ("at", 150))],
        "__consumer_offsets-0",
        topic_id=directory_id(2),
    )
    report = restored(world, offsets_file(world, {"orders-0": 150}))
    assert positions_of(world) == {"far": 150, "near": 20, "at": 150}
    assert report["moved_positions"] == [
        {"group": "far", "topic": "orders", "partition": 0, "before": 180, "offset": 150}
    ]
    written = {one["topic"]: one["records"] for one in report["written"]}
    assert written == {"orders": 150, "__consumer_offsets": 4}


def test_positions_are_those_of_the_time(world: World) -> None:
    log = [commits(("g", 50), time=50), commits(("g", 180), first=1, time=180)]
    world.put(1, log, "__consumer_offsets-0", topic_id=directory_id(2))
    report = restored(world, TIME + 99)
    assert positions_of(world) == {"g": 50}
    assert report["moved_positions"] == []
    assert [one["log_end_offset"] for one in report["cut"]] == [1, 100]


@pytest.mark.parametrize(("position", "expected"), [(180, 100), (100, 100), (70, 70)])
def test_a_position_that_compaction_has_replaced_is_not_lost(
    world: World, position: int, expected: int
) -> None:
    """Without it, the group would start where its `auto.offset.reset` says."""
    log = [commits(("other", 50), time=50), commits(("g", position), first=7, time=180)]
    world.put(1, log, "__consumer_offsets-0", topic_id=directory_id(2))
    (moved,) = restored(world, TIME + 99)["moved_positions"]
    assert (moved["group"], moved["before"], moved["offset"]) == ("g", position, expected)
    assert positions_of(world) == {"other": 50, "g": expected}


def test_positions_by_a_clock_that_was_early(world: World) -> None:
    world.put(1, [commits(("g", 180), time=50)], "__consumer_offsets-0", topic_id=directory_id(2))
    restored(world, TIME + 99)
    assert positions_of(world) == {"g": 100}


def test_positions_in_logs_that_are_not_cut_stay(world: World) -> None:
    world.put(1, [commits(("g", 180))], "__consumer_offsets-0", topic_id=directory_id(2))
    report = restored(world, TIME + 900)
    assert positions_of(world) == {"g": 180}
    assert report["moved_positions"] == report["cut"] == []


def test_the_moved_positions_continue_the_log(world: World) -> None:
    world.put(1, [commits(("g", 180))], "__consumer_offsets-0", topic_id=directory_id(2))
    restored(world, offsets_file(world, {"orders-0": 150}))
    log = magicbyte.PartitionLog(world.root / "out/node1/logs1/__consumer_offsets-0")
    last = [*log.batches()][-1]
    assert isinstance(last, magicbyte.RecordBatch)
    assert (last.base_offset, last.partition_leader_epoch, last.max_timestamp) == (1, 3, TIME)
    verified = magicbyte.verify(world.root / "out")
    assert verified["balanced"]
    assert verified["problems"] == []


@pytest.mark.parametrize("limit", [50, 100_000])
def test_positions_in_a_batch_beyond_the_limit_are_not_passed_over(world: World, limit: int) -> None:
    builder = magicbyte.RecordsBuilder(partition_leader_epoch=3, compression="gzip")
    builder.append(0, TIME, *commit("g" * 100, 180))
    world.put(1, [builder.build()], "__consumer_offsets-0", topic_id=directory_id(2))
    until = offsets_file(world, {"orders-0": 150})
    report = world.restore(until=until, max_decompressed_bytes=limit)
    problems = [one for one in report["problems"] if one["topic"] == "__consumer_offsets"]
    assert [one["kind"] for one in problems] == ["limit_exceeded"] * (limit < 100)
    assert len(report["moved_positions"]) == (limit > 100)


# The command


def test_the_command(world: World, cli: Cli) -> None:
    world.put(1, [commits(("g", 180))], "__consumer_offsets-0", topic_id=directory_id(2))
    path = offsets_file(world, {"orders-0": 155})
    shown = cli("restore", *world.log_dirs.values(), "--dry-run", "--until", path)
    assert "cut: orders-0 ends at offset 150, without 50 offsets" in shown
    assert "moved: group g continues at offset 150 of orders-0; its position was 180" in shown
    assert not (world.root / "out").exists()
    shown = cli("restore", *world.log_dirs.values(), "--dry-run", "--until", str(TIME + 59))
    assert "cut: orders-0 ends at offset 60, without 140 offsets" in shown


def test_neither_a_time_nor_a_file(world: World) -> None:
    from click.testing import CliRunner
    from magicbyte.cli.app import app

    done = CliRunner().invoke(app, ["restore", str(world.root), "--dry-run", "--until", "soon"])
    assert done.exit_code == 2
    assert "neither a time nor a file" in done.output


def test_the_same_bytes_again(world: World) -> None:
    world.put(1, [commits(("g", 180))], "__consumer_offsets-0", topic_id=directory_id(2))
    path = offsets_file(world, {"orders-0": 155})
    world.restore(until=path)
    first = content(world.root / "out")
    again = world.restore(until=path, out=world.root / "again")
    assert again["balanced"]
    assert content(world.root / "again") == first
