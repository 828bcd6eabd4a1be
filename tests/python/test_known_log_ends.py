"""`restore` and `merge`: a log that lost its tail ends where it is known to have ended."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from dead_clusters import LOG, World, commit, directory_id, only
from metadata_records import partition, topic
from replicas import batches, flip, replica

ZEROS = bytes(4096)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])


def put(world: World, data: list[bytes] = LOG, **options: Any) -> Path:
    return world.put(1, data, topic_id=directory_id(1), **options)


def last_segment(world: World) -> tuple[int, int]:
    """The base offset and the size of the last segment that was written."""
    path = max((world.root / "out/node1/logs1/orders-0").glob("*.log"))
    return int(path.name[:20]), path.stat().st_size


def ends_at(world: World, known: int, *, readable: int = 190) -> Any:
    """Restores, and checks that the log ends at an offset, with what is lost named; returns the report."""
    report = world.restore()
    (merged,) = report["merged"]
    assert only(report)["status"] == "online"
    assert report["balanced"]
    assert (merged["next_offset"], merged["log_end_offset"]) == (readable, known)
    assert merged["lost"] == ([(readable, known - 1)] if known > readable else [])
    if known > readable:
        assert merged["known_from"]
        assert last_segment(world) == (known, 0)
    return report


def checkpoint(world: World, name: str, offset: int) -> None:
    (world.log_dirs[1] / name).write_text(f"0\n1\norders 0 {offset}\n")


@pytest.mark.parametrize("bits", [2, 9])
def test_a_damaged_last_batch_has_its_offsets_in_its_header(world: World, bits: int) -> None:
    put(world)
    flip(world.log_dirs[1], [19], bits=bits)
    ends_at(world, 200)


def test_several_damaged_batches(world: World) -> None:
    put(world)
    flip(world.log_dirs[1], [16, 17, 18, 19])
    ends_at(world, 200, readable=160)


@pytest.mark.parametrize("kept", [27, 61, 200])
def test_a_torn_batch(world: World, kept: int) -> None:
    put(world, [*LOG[:19], LOG[19][:kept]])
    ends_at(world, 200)


def test_a_header_that_is_torn_stands_for_one_offset_per_byte(world: World) -> None:
    put(world, [*LOG[:19], LOG[19][:20]])
    ends_at(world, 210)


def test_garbage_stands_for_one_offset_per_byte(world: World) -> None:
    put(world, [*LOG[:19], b"garbage", ZEROS])
    ends_at(world, 197)


def test_garbage_after_a_damaged_batch(world: World) -> None:
    path = put(world) / f"{0:020}.log"
    flip(world.log_dirs[1], [19])
    path.write_bytes(path.read_bytes() + b"\xff" * 100)
    ends_at(world, 300)


@pytest.mark.parametrize("data", [LOG, [*LOG, ZEROS]])
def test_a_whole_log_ends_after_its_last_batch(world: World, data: list[bytes]) -> None:
    put(world, data)
    report = ends_at(world, 200, readable=200)
    assert report["merged"][0]["known_from"] is None
    assert last_segment(world)[1] > 0


def offset_index(offset: int) -> bytes:
    return struct.pack(">ii", offset, 1)


def time_index(offset: int) -> bytes:
    return struct.pack(">qi", 1, offset)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (f"{0:020}.index", offset_index(219)),
        (f"{0:020}.index", offset_index(219) + ZEROS),
        (f"{0:020}.timeindex", time_index(219)),
        (f"{220:020}.snapshot", b""),
        (f"{220:020}.index", b""),
        (f"{210:020}.index", offset_index(9)),
        (f"{210:020}.timeindex", time_index(9)),
        ("leader-epoch-checkpoint", b"0\n2\n3 100\n4 220\n"),
    ],
)
def test_files_beside_the_segments(world: World, name: str, content: bytes) -> None:
    (put(world) / name).write_bytes(content)
    ends_at(world, 220, readable=200)


@pytest.mark.parametrize(
    "name", [f"{0:020}.index", f"{0:020}.timeindex", f"{220:020}.snapshot", "leader-epoch-checkpoint"]
)
def test_damaged_files_beside_the_segments_are_no_reason_to_fail(world: World, name: str) -> None:
    (put(world) / name).write_bytes(b"\xff" * 17)
    assert only(world.restore())["status"] == "online"


@pytest.mark.parametrize("name", ["replication-offset-checkpoint", "recovery-point-offset-checkpoint"])
def test_checkpoints_of_the_broker(world: World, name: str) -> None:
    put(world)
    checkpoint(world, name, 220)
    ends_at(world, 220, readable=200)


def test_a_last_segment_that_is_missing(world: World) -> None:
    replica(world.log_dirs[1], {0: LOG[:10]}, topic_id=directory_id(1))
    directory = world.log_dirs[1] / "orders-0"
    (directory / f"{100:020}.index").write_bytes(offset_index(99))
    (directory / f"{100:020}.timeindex").write_bytes(b"")
    ends_at(world, 200, readable=100)


def test_a_missing_segment_counts_as_long_as_the_longest_other(world: World) -> None:
    """Nothing tells how far it went: its index had no entry yet."""
    replica(world.log_dirs[1], {0: LOG[:12], 120: LOG[12:15]}, topic_id=directory_id(1))
    (world.log_dirs[1] / "orders-0" / f"{150:020}.index").write_bytes(bytes(10 << 20))
    report = ends_at(world, 270, readable=150)
    assert "the longest other segment" in report["merged"][0]["known_from"]


def test_what_is_known_of_a_missing_segment_counts(world: World) -> None:
    replica(world.log_dirs[1], {0: LOG[:12], 120: LOG[12:15]}, topic_id=directory_id(1))
    (world.log_dirs[1] / "orders-0" / f"{150:020}.index").write_bytes(bytes(10 << 20))
    checkpoint(world, "replication-offset-checkpoint", 170)
    ends_at(world, 170, readable=150)


def test_an_unreadable_last_segment(world: World) -> None:
    replica(world.log_dirs[1], {0: LOG[:10]}, topic_id=directory_id(1))
    (world.log_dirs[1] / "orders-0" / f"{100:020}.log").mkdir()
    ends_at(world, 200, readable=100)


def test_a_last_segment_of_which_nothing_is_readable(world: World) -> None:
    replica(world.log_dirs[1], {0: LOG[:10], 100: LOG[10:]}, topic_id=directory_id(1))
    flip(world.log_dirs[1], range(9, 20))
    ends_at(world, 200, readable=90)


@pytest.mark.parametrize("offset", [201 + (1 << 31), (1 << 63) - 1])
def test_an_end_that_no_lost_segment_explains_is_not_believed(world: World, offset: int) -> None:
    put(world)
    checkpoint(world, "replication-offset-checkpoint", offset)
    (merged,) = world.restore()["merged"]
    assert (merged["log_end_offset"], merged["lost"]) == (200, [])
    assert len(merged["not_believed"]) == 1
    assert last_segment(world)[1] > 0


def test_the_highest_that_is_believed_counts(world: World) -> None:
    (put(world) / f"{250:020}.snapshot").write_bytes(b"")
    checkpoint(world, "recovery-point-offset-checkpoint", 220)
    checkpoint(world, "replication-offset-checkpoint", (1 << 63) - 1)
    merged = ends_at(world, 250, readable=200)["merged"][0]
    assert merged["known_from"].endswith(".snapshot")


def three(tmp_path: Path, isr: list[int]) -> World:
    return World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3], isr=isr)])


def test_the_end_that_another_replica_has_is_not_lost(tmp_path: Path) -> None:
    world = three(tmp_path, [1, 2])
    for node in (1, 2):
        world.put(node, LOG)
    flip(world.log_dirs[1], [19])
    ends_at(world, 200, readable=200)


def test_every_replica_lost_another_end(tmp_path: Path) -> None:
    world = three(tmp_path, [1, 2])
    world.put(1, LOG[:18])
    world.put(2, LOG)
    flip(world.log_dirs[2], [18, 19])
    ends_at(world, 200, readable=180)


def test_what_a_follower_had_after_the_end_of_the_isr_is_no_loss(tmp_path: Path) -> None:
    """It was never committed, whether it is damaged or not."""
    world = three(tmp_path, [1])
    world.put(1, LOG)
    world.put(2, [*LOG, *batches(200, 240, epoch=3)])
    flip(world.log_dirs[2], [23])
    ends_at(world, 200, readable=200)


def test_the_torn_end_of_a_lost_branch_is_no_loss(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3], isr=[2], epoch=5)])
    world.put(1, [*LOG[:10], *batches(100, 300, epoch=3, value="lost")])
    world.put(2, [*LOG[:10], *batches(100, 160, epoch=5)])
    flip(world.log_dirs[1], [29])
    ends_at(world, 160, readable=160)


def test_the_end_that_an_index_of_the_isr_knows_is_taken_from_others(tmp_path: Path) -> None:
    world = three(tmp_path, [2])
    world.put(1, LOG)
    (world.put(2, LOG[:10]) / f"{0:020}.index").write_bytes(offset_index(199))
    ends_at(world, 200, readable=200)


def test_a_restored_log_keeps_its_end(world: World, tmp_path: Path) -> None:
    put(world)
    flip(world.log_dirs[1], [19])
    world.restore()
    again = magicbyte.restore([tmp_path / "out"], out=tmp_path / "again", voters=["1@h:1"])
    assert again["merged"][0]["log_end_offset"] == 200
    path = max((tmp_path / "again/node1/logs1/orders-0").glob("*.log"))
    assert (int(path.name[:20]), path.stat().st_size) == (200, 0)


def test_new_records_get_new_offsets(world: World, tmp_path: Path) -> None:
    """As a broker appends: to the last segment, whose name is the next offset."""
    put(world)
    flip(world.log_dirs[1], [19])
    world.restore()
    base, _ = last_segment(world)
    new = magicbyte.RecordsBuilder(base_offset=base, partition_leader_epoch=9)
    new.append(None, 1, None, b"new")
    directory = tmp_path / "out/node1/logs1/orders-0"
    max(directory.glob("*.log")).write_bytes(new.build())
    offsets = [one.offset for one in magicbyte.PartitionLog(directory, mode="PERMISSIVE").records()]
    assert offsets == [*range(190), 200]


def test_merge_ends_its_log_there_too(world: World, tmp_path: Path) -> None:
    put(world)
    flip(world.log_dirs[1], [19])
    report = magicbyte.merge([world.log_dirs[1]], out=tmp_path / "merged")
    (merged,) = (one for one in report["partitions"] if one["topic"] == "orders")
    assert (merged["lost"], merged["lost_offsets"]) == ([(190, 199)], 10)
    assert (tmp_path / "merged/orders-0" / f"{200:020}.log").stat().st_size == 0


@pytest.mark.parametrize("magic", [0, 1])
def test_torn_messages(world: World, magic: int) -> None:
    def message(offset: int) -> bytes:
        builder = magicbyte.RecordsBuilder(magic=magic, base_offset=offset)
        builder.append(None, 1, b"k", b"v" * 50)
        return builder.build()

    put(world, [*map(message, range(10)), message(10)[:40]])
    ends_at(world, 11, readable=10)


def hostile_header(base: int, length: int, magic: int, delta: int) -> bytes:
    return struct.pack(">qiibiHi", base, length, 3, magic, 0, 0, delta)


@pytest.mark.parametrize(
    "header",
    [
        hostile_header(200, 0, 2, 9),
        hostile_header(200, 500, 3, 9),
        hostile_header(200, 500, -1, 9),
        hostile_header(200, 500, 2, -1),
        hostile_header(199, 500, 2, 9),
        hostile_header((1 << 63) - 1, 500, 2, 9),
        hostile_header(200 + (1 << 31), 500, 2, 0),
    ],
)
def test_headers_that_cannot_be(world: World, header: bytes) -> None:
    put(world, [*LOG, header])
    ends_at(world, 200 + len(header.rstrip(b"\0")), readable=200)


def test_the_largest_delta(world: World) -> None:
    put(world, [*LOG, hostile_header(200, 500, 2, (1 << 31) - 1)])
    ends_at(world, 200 + (1 << 31), readable=200)


def test_the_command_names_what_is_lost(world: World, cli: Any) -> None:
    put(world)
    flip(world.log_dirs[1], [19])
    shown = cli("restore", *world.log_dirs.values(), "--dry-run", code=1)
    assert "lost: no copy has offsets 190 to 199" in shown
    assert "next offset is 200" in shown


def commits(*positions: tuple[str, int]) -> list[bytes]:
    built = []
    for offset, (group, position) in enumerate(positions):
        builder = magicbyte.RecordsBuilder(base_offset=offset, partition_leader_epoch=3)
        builder.append(None, 1, *commit(group, position))
        built.append(builder.build())
    return built


def with_groups(tmp_path: Path, *positions: tuple[str, int]) -> World:
    records = [topic("orders", 1), topic("__consumer_offsets", 2), partition(1, 0, [1]), partition(2, 0, [1])]
    world = World(tmp_path, records)
    world.put(1, commits(*positions), "__consumer_offsets-0", topic_id=directory_id(2))
    return world


def of_orders(report: Any, part: str) -> Any:
    (found,) = (one for one in report[part] if one["topic"] == "orders")
    return found


@pytest.mark.parametrize(
    ("positions", "known"),
    [
        ([("billing", 220)], 220),
        ([("billing", 220), ("audit", 230)], 230),
        ([("billing", 220), ("billing", 210)], 210),
        ([("billing", 200)], 200),
        ([("billing", 5)], 200),
        ([("billing", (1 << 63) - 1)], 200),
    ],
)
def test_the_position_of_a_group_is_not_after_the_end(
    tmp_path: Path, positions: list[tuple[str, int]], known: int
) -> None:
    world = with_groups(tmp_path, *positions)
    world.put(1, LOG)
    merged = of_orders(world.restore(), "merged")
    assert merged["log_end_offset"] == known
    assert merged["lost"] == ([(200, known - 1)] if known > 200 else [])
    if known > 200:
        assert merged["known_from"].startswith("the position of group ")
    assert last_segment(world)[0] == (known if known > 200 else 0)


def test_an_empty_log_that_a_group_has_read_is_not_led(tmp_path: Path) -> None:
    world = with_groups(tmp_path, ("billing", 150))
    world.put(1, [b""])
    assert of_orders(world.restore(), "partitions")["status"] == "missing"


def test_the_checkpoint_of_a_broker_that_lost_the_directory(tmp_path: Path) -> None:
    world = three(tmp_path, [1, 2])
    world.put(1, LOG)
    (world.log_dirs[2] / "replication-offset-checkpoint").write_text("0\n1\norders 0 220\n")
    merged = ends_at(world, 220, readable=200)["merged"][0]
    assert merged["known_from"].startswith(str(world.log_dirs[2]))


def test_an_index_that_a_broker_has_allocated(world: World) -> None:
    entries = b"".join(struct.pack(">ii", offset, offset) for offset in range(1, 5000))
    (put(world) / f"{0:020}.index").write_bytes(entries + bytes((10 << 20) - len(entries)))
    ends_at(world, 5000, readable=200)
