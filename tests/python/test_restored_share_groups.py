"""`restore --until` and the positions of share groups."""

from __future__ import annotations

from pathlib import Path

import magicbyte
import pytest
from conftest import Cli
from dead_clusters import LOG, World, directory_id, offsets_file, restored, share_state
from magicbyte import _core
from magicbyte.internal_topics.share_groups import SharePartition, SharePartitions, StateBatch
from metadata_records import partition, topic
from replicas import TIME

SHARED = [topic("orders", 1), topic("__share_group_state", 2), partition(1, 0, [1]), partition(2, 0, [1])]


def shared_world(root: Path, *states: bytes, knows: bool = True) -> World:
    """A cluster with a share group, whose coordinator knows that it has orders-0, or no longer knows it."""
    world = World(root, [*SHARED, topic("__consumer_offsets", 3), partition(3, 0, [1])])
    world.put(1, LOG)
    world.put(1, states, "__share_group_state-0", topic_id=directory_id(2))
    known = [{"topicId": directory_id(1), "topicName": "orders", "partitions": [0]}]
    value = {"initializingTopics": [], "initializedTopics": known if knows else [], "deletingTopics": []}
    builder = magicbyte.RecordsBuilder(partition_leader_epoch=3)
    record = _core.encode_coordinator_record("__consumer_offsets", 15, 0, {"groupId": "sharing"}, value)
    builder.append(0, TIME, *record)
    world.put(1, [builder.build()], "__consumer_offsets-0", topic_id=directory_id(3))
    return world


def states_of(world: World) -> list[SharePartition]:
    """The states of share groups in what was restored."""
    state = SharePartitions()
    (log,) = (world.root / "out").rglob("__share_group_state-0")
    for record in magicbyte.PartitionLog(log).records():
        state.replay(record.key_bytes, record.value_bytes)
    return state.states


def delivered(*batches: tuple[int, int, int]) -> list[StateBatch]:
    """Offsets (inclusive) and their states, each delivered once."""
    return [StateBatch(*one, 1) for one in batches]


@pytest.mark.parametrize("start", [149, 150, 151, 1000])
def test_a_share_group_beyond_the_end_continues_there(tmp_path: Path, start: int) -> None:
    world = shared_world(tmp_path, share_state(start))
    report = restored(world, offsets_file(world, {"orders-0": 150}))
    (state,) = states_of(world)
    assert state.start_offset == min(start, 150)
    moved = {"group": "sharing", "topic": "orders", "partition": 0, "before": start, "offset": 150}
    expected = [moved | {"forgotten_offsets": 0}] if start > 150 else []
    assert (report["moved_share_positions"], report["share_positions_to_reset"]) == (expected, [])


@pytest.mark.parametrize(
    ("batches", "left"),
    [
        ([(100, 149, 2)], [(100, 149, 2)]),
        ([(100, 150, 2)], [(100, 149, 2)]),
        ([(100, 120, 2), (160, 170, 4)], [(100, 120, 2)]),
        ([(100, 120, 0), (130, 170, 4)], [(100, 120, 0), (130, 149, 4)]),
        ([(150, 150, 2)], []),
    ],
)
def test_what_a_share_group_had_done_after_the_end_is_forgotten(
    tmp_path: Path, batches: list[tuple[int, int, int]], left: list[tuple[int, int, int]]
) -> None:
    """Otherwise the new records at these offsets would count as acknowledged."""
    world = shared_world(tmp_path, share_state(100, batches=delivered(*batches)))
    report = restored(world, offsets_file(world, {"orders-0": 150}))
    (state,) = states_of(world)
    assert (state.start_offset, list(state.state_batches)) == (100, delivered(*left))
    sizes = [sum(last - first + 1 for first, last, _ in states) for states in (batches, left)]
    assert [one["forgotten_offsets"] for one in report["moved_share_positions"]] == (
        [sizes[0] - sizes[1]] if batches != left else []
    )
    if batches != left:
        done = sum(last - first + 1 for first, last, number in left if number in (2, 4))
        assert (state.delivery_complete_count, state.state_epoch, state.snapshot_epoch) == (done, 0, 1)


@pytest.mark.parametrize("end", [1 << 40, (1 << 63) - 1])
def test_a_state_without_sense_is_written(tmp_path: Path, end: int) -> None:
    """The count of what is done does not fit. No coordinator has written that, and nothing fails."""
    state = share_state(100, 1, 300, batches=delivered((120, end, 2)), epoch=(1 << 31) - 1)
    world = shared_world(tmp_path, share_state(0, 0, 300), state)
    (moved,) = restored(world, TIME + 150)["moved_share_positions"]
    (found,) = states_of(world)
    assert (moved["offset"], found.start_offset, found.snapshot_epoch) == (100, 100, (1 << 31) - 1)


@pytest.mark.parametrize("record", [(None, None), (b"", b""), (b"\0\0", b"\0\0"), (b"\0\x63", b"x")])
def test_records_that_no_coordinator_knows(tmp_path: Path, record: tuple[bytes | None, bytes | None]) -> None:
    builder = magicbyte.RecordsBuilder(partition_leader_epoch=3)
    builder.append(1, TIME, *record)
    world = shared_world(tmp_path, share_state(151), builder.build())
    (moved,) = restored(world, offsets_file(world, {"orders-0": 150}))["moved_share_positions"]
    assert moved["offset"] == 150


@pytest.mark.parametrize("start", [150, 151])
def test_a_share_group_beyond_the_end_is_printed(tmp_path: Path, cli: Cli, start: int) -> None:
    world = shared_world(tmp_path, share_state(start))
    until = offsets_file(world, {"orders-0": 150})
    printed = cli("restore", world.log_dirs[1], "--until", until, "--voters", "1@h:1", "--dry-run", code=0)
    said = "moved: share group sharing begins at offset 150 of orders-0; its start offset was 151"
    assert (said in printed) == (start > 150)


@pytest.mark.parametrize(("times", "lost"), [((300, 300), True), ((100, 300), False), ((100, 100), False)])
@pytest.mark.parametrize("knows", [True, False])
def test_a_share_group_whose_position_is_cut(
    tmp_path: Path, cli: Cli, times: tuple[int, int], *, lost: bool, knows: bool
) -> None:
    """Brokers delete records of `__share_group_state` that have later ones. If the group may not have been
    there yet, a person decides."""
    states = [share_state(20 + offset, offset, time) for offset, time in enumerate(times)]
    world = shared_world(tmp_path, *states, knows=knows)
    report = restored(world, TIME + 150)
    moved, steps = report["moved_share_positions"], report["share_positions_to_reset"]
    assert [one["offset"] for one in moved] == ([21] if lost and knows else [])
    left = [] if lost and not knows else [20 if times == (100, 300) else 21]
    assert [one.start_offset for one in states_of(world)] == left
    assert report["steps"][len(report["steps"]) - len(steps) :] == steps
    assert len(steps) == (lost and not knows)
    if steps:
        assert "share group sharing did not have orders-0 at the cut" in steps[0]
        assert steps[0].endswith("--to-offset 21 --topic orders:0 --execute")
        command = ("restore", world.log_dirs[1], "--until", str(TIME + 150), "--voters", "1@h:1", "--dry-run")
        assert "share group sharing" in cli(*command, code=1)


def test_a_share_group_is_not_at_a_position_that_brokers_deleted(tmp_path: Path) -> None:
    """The bytes of deleted records stay in the active segment."""
    world = World(tmp_path, SHARED)
    world.put(1, LOG)
    states = [share_state(20, 0, 100), share_state(30, 1, 300), share_state(40, 2, 400)]
    world.put(1, states, "__share_group_state-0", topic_id=directory_id(2))
    (world.log_dirs[1] / "log-start-offset-checkpoint").write_text("0\n1\n__share_group_state 0 1\n")
    steps = restored(world, TIME + 150)["steps"]
    assert any("did not have orders-0" in step and "--to-offset 40 " in step for step in steps)


def test_the_start_of_a_share_group_is_not_after_the_end(tmp_path: Path) -> None:
    world = World(tmp_path, SHARED)
    world.put(1, LOG)
    world.put(1, [share_state(220)], "__share_group_state-0", topic_id=directory_id(2))
    (merged,) = (one for one in world.restore()["merged"] if one["topic"] == "orders")
    assert (merged["log_end_offset"], merged["known_from"]) == (220, "the position of share group sharing")


@pytest.mark.parametrize(("first", "second"), [(180, 220), (220, 180)])
def test_a_copy_that_lags_hides_no_position(tmp_path: Path, first: int, second: int) -> None:
    """The end of `orders` is known from the newest position that a copy has."""
    world = World(tmp_path, [*SHARED[:3], partition(2, 0, [1, 2])])
    world.put(1, LOG)
    newer = [share_state(180), share_state(220, 1)]
    for node, start in ((1, first), (2, second)):
        world.put(node, newer[: 1 + (start == 220)], "__share_group_state-0", topic_id=directory_id(2))
    (merged,) = (one for one in world.restore()["merged"] if one["topic"] == "orders")
    assert merged["log_end_offset"] == 220


def test_a_batch_that_does_not_decode_does_not_stop_it(tmp_path: Path) -> None:
    """Its CRC is right, so that it is no damage of the log."""
    builder = magicbyte.RecordsBuilder(partition_leader_epoch=3, compression="gzip")
    builder.append(1, TIME, b"k" * 50, b"v" * 50)
    data = bytearray(builder.build())
    data[70] ^= 0xFF
    data[17:21] = magicbyte.crc32c(data[21:]).to_bytes(4, "big")
    world = shared_world(tmp_path, share_state(151), bytes(data))
    (moved,) = world.restore(until=offsets_file(world, {"orders-0": 150}))["moved_share_positions"]
    assert moved["offset"] == 150


def test_a_batch_of_offsets_that_ends_before_it_begins(tmp_path: Path) -> None:
    state = share_state(100, batches=delivered((1 << 40, 120, 2), (130, 160, 2)))
    world = shared_world(tmp_path, state)
    (moved,) = restored(world, offsets_file(world, {"orders-0": 150}))["moved_share_positions"]
    (found,) = states_of(world)
    assert (moved["forgotten_offsets"], found.delivery_complete_count) == (11, 20)


def test_the_ends_of_share_groups_cut_logs(tmp_path: Path) -> None:
    """The output of `offsets --json`, where only share groups have positions."""
    world = shared_world(tmp_path, share_state(100))
    row = {"topic": "orders", "partition": 0, "log_end_offset": 150}
    report = restored(world, offsets_file(world, {"offsets": [], "share_offsets": [row]}))
    assert [(one["topic"], one["log_end_offset"]) for one in report["cut"]] == [("orders", 150)]
