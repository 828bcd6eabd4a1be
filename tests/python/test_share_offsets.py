"""The positions of share groups: what the records of `__share_group_state` add up to."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import magicbyte
import metadata_records as records
import pyarrow.parquet as pq
import pytest
from conftest import Cli
from magicbyte.internal_topics.share_groups import (
    SharePartition,
    SharePartitions,
    StateBatch,
    state_partition_of,
)

ORDERS = 7
ORDERS_ID = "A" * 20 + "Bw"
Batches = Sequence[tuple[int, int, int, int]]
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def string(text: str) -> bytes:
    return len(text).to_bytes(2) + text.encode()


def key(kind: int, partition: int = 0, group: str = "sharing") -> bytes:
    """The key of a snapshot (0) or an update (1)."""
    return kind.to_bytes(2) + string(group) + records.topic_id(ORDERS) + partition.to_bytes(4)


def state_batches(batches: Batches) -> bytes:
    return records.varint(len(batches) + 1) + b"".join(
        first.to_bytes(8, signed=True)
        + last.to_bytes(8, signed=True)
        + state.to_bytes(1)
        + count.to_bytes(2)
        + b"\0"
        for first, last, state, count in batches
    )


def complete(count: int | None) -> bytes:
    return records.tagged({} if count is None else {0: count.to_bytes(4)})


def snapshot(start: int, batches: Batches = (), count: int | None = 0, leader_epoch: int = 3) -> bytes:
    head = bytes(2) + bytes(4) + (5).to_bytes(4) + leader_epoch.to_bytes(4, signed=True)
    return head + start.to_bytes(8, signed=True) + bytes(16) + state_batches(batches) + complete(count)


def update(start: int, batches: Batches = (), count: int | None = 0, leader_epoch: int = -1) -> bytes:
    head = bytes(2) + bytes(4) + leader_epoch.to_bytes(4, signed=True)
    return head + start.to_bytes(8, signed=True) + state_batches(batches) + complete(count)


def folded(*values: tuple[int, bytes | None]) -> SharePartition | None:
    """The state after a snapshot (0) or update (1) for each value."""
    state = SharePartitions()
    for kind, value in values:
        state.replay(key(kind), value)
    found = state.states
    return found[0] if found else None


def batches_of(*values: tuple[int, bytes | None]) -> Batches:
    found = folded(*values)
    assert found is not None
    return [one[:] for one in found.state_batches]


def test_a_snapshot() -> None:
    found = folded((0, snapshot(20, [(20, 24, ACKNOWLEDGED, 1), (30, 30, AVAILABLE, 2)], 5)))
    batches = [StateBatch(20, 24, 2, 1), StateBatch(30, 30, 0, 2)]
    assert found == SharePartition("sharing", ORDERS_ID, 0, 20, 3, 5, 5, batches, 0)


def test_a_snapshot_replaces_all() -> None:
    before = (0, snapshot(0, [(0, 9, ACKNOWLEDGED, 1)], 10, 9))
    found = folded(before, (1, update(3, [(12, 12, ARCHIVED, 1)])), (0, snapshot(20)))
    assert found == SharePartition("sharing", ORDERS_ID, 0, 20, 3, 5, 0, [], 0)


def test_an_update_keeps_what_it_does_not_tell() -> None:
    before = (0, snapshot(20, [(25, 25, ACKNOWLEDGED, 1)], 1))
    found = folded(before, (1, update(-1, [(27, 27, ACKNOWLEDGED, 1)], 2)))
    assert found is not None
    assert (found.start_offset, found.leader_epoch, found.state_epoch) == (20, 3, 5)
    assert found.delivery_complete_count == 2
    assert found.state_batches == [StateBatch(25, 25, 2, 1), StateBatch(27, 27, 2, 1)]
    found = folded(before, (1, update(21, leader_epoch=4)))
    assert found is not None
    assert (found.start_offset, found.leader_epoch) == (21, 4)


def test_the_count_of_an_update_is_not_kept() -> None:
    """As in Kafka, whose older versions do not write it: then the lag is unknown."""
    found = folded((0, snapshot(20, count=3)), (1, update(-1, count=None)))
    assert found is not None
    assert found.delivery_complete_count is None


def test_an_update_without_a_snapshot() -> None:
    found = folded((1, update(4, [(2, 6, AVAILABLE, 1)], 1)))
    assert found == SharePartition("sharing", ORDERS_ID, 0, 4, None, None, 1, [StateBatch(2, 6, 0, 1)], 0)


def test_a_tombstone() -> None:
    assert folded((0, snapshot(20)), (0, None)) is None
    assert folded((0, None)) is None
    assert folded((0, snapshot(20)), (1, None)) is not None


@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [
        # The higher delivery count has the offset, then the higher state.
        (
            [(10, 19, AVAILABLE, 1)],
            [(12, 13, AVAILABLE, 2)],
            [(10, 11, 0, 1), (12, 13, 0, 2), (14, 19, 0, 1)],
        ),
        ([(10, 19, AVAILABLE, 2)], [(12, 13, ACKNOWLEDGED, 1)], [(10, 19, 0, 2)]),
        ([(10, 19, AVAILABLE, 1)], [(10, 19, ACKNOWLEDGED, 1)], [(10, 19, 2, 1)]),
        ([(10, 14, AVAILABLE, 1)], [(12, 19, ARCHIVED, 1)], [(10, 11, 0, 1), (12, 19, 4, 1)]),
        ([(12, 19, ARCHIVED, 1)], [(10, 14, AVAILABLE, 1)], [(10, 11, 0, 1), (12, 19, 4, 1)]),
        # Equal neighbours become one.
        ([(10, 11, ACKNOWLEDGED, 1)], [(12, 12, ACKNOWLEDGED, 1)], [(10, 12, 2, 1)]),
        ([(10, 11, ACKNOWLEDGED, 1)], [(13, 13, ACKNOWLEDGED, 1)], [(10, 11, 2, 1), (13, 13, 2, 1)]),
        ([(10, 11, ACKNOWLEDGED, 1)], [(12, 12, ACKNOWLEDGED, 2)], [(10, 11, 2, 1), (12, 12, 2, 2)]),
        # A batch that ends before it begins is none.
        ([(10, 11, ACKNOWLEDGED, 1)], [(9, 4, ARCHIVED, 1)], [(10, 11, 2, 1)]),
    ],
)
def test_batches_are_combined(old: Batches, new: Batches, merged: Batches) -> None:
    assert batches_of((0, snapshot(0, old)), (1, update(-1, new))) == merged


def test_the_start_cuts_batches() -> None:
    old = [(10, 12, ACKNOWLEDGED, 1), (13, 19, AVAILABLE, 1)]
    assert batches_of((0, snapshot(10, old)), (1, update(15))) == [(15, 19, 0, 1)]
    assert batches_of((0, snapshot(15, old))) == old, "a snapshot is used as it is"
    # A start that goes back brings nothing back, and keeps what comes with it.
    back = [(0, snapshot(10, old)), (1, update(15)), (1, update(12, [(12, 12, ARCHIVED, 1)]))]
    assert batches_of(*back) == [(12, 12, 4, 1), (15, 19, 0, 1)]


def test_many_updates_add_up_to_each_offset() -> None:
    """Thousands of updates, which are merged now and then."""
    chance = random.Random(1)
    state, start = SharePartitions(), 0
    expected: dict[int, tuple[int, int]] = {}
    state.replay(key(0), snapshot(0))
    for _ in range(5000):
        start += chance.randrange(2)
        first = start + chance.randrange(200)
        batch = first, first + chance.randrange(9), chance.choice((0, 2, 4)), chance.randrange(1, 4)
        state.replay(key(1), update(start, [batch]))
        for offset in range(batch[0], batch[1] + 1):
            expected[offset] = max(expected.get(offset, (0, 0)), (batch[3], batch[2]))
    (found,) = state.states
    assert {
        offset: (one.delivery_count, one.delivery_state)
        for one in found.state_batches
        for offset in range(one.first_offset, one.last_offset + 1)
    } == {offset: value for offset, value in expected.items() if offset >= start}


def test_too_many_batches_are_cut() -> None:
    batches: Batches = [(2 * number, 2 * number, ACKNOWLEDGED, 1) for number in range(100_001)]
    found = folded((0, snapshot(0, batches)), (1, update(-1, [(300_000, 300_000, ARCHIVED, 1)])))
    assert found is not None
    assert len(found.state_batches) == 100_000


@pytest.mark.parametrize("cut", [0, 1, 2, 9, 20, 33])
def test_a_value_that_is_cut(cut: int) -> None:
    with pytest.raises(magicbyte.Error):
        folded((0, snapshot(20, [(20, 24, ACKNOWLEDGED, 1)])[:cut]))


@pytest.mark.parametrize(
    ("group", "partition", "of_50", "of_7"),
    # By `Utils.abs(SharePartitionKey.asCoordinatorKey().hashCode()) % partitions` of Kafka 4.4.0.
    [("sharing", 0, 41, 1), ("grüppe \N{GRINNING FACE}", 1, 25, 5), ("g", 2**31 - 1, 42, 1)],
)
def test_the_partition_of_a_state(group: str, partition: int, of_50: int, of_7: int) -> None:
    assert state_partition_of(group, ORDERS_ID, partition, 50) == of_50
    assert state_partition_of(group, ORDERS_ID, partition, 7) == of_7


def write(root: Path, name: str, *pairs: tuple[bytes, bytes | None]) -> Path:
    """A partition of a batch for each record."""
    data = b""
    for offset, (record_key, value) in enumerate(pairs):
        builder = magicbyte.RecordsBuilder()
        builder.append(offset, 1, record_key, value)
        data += bytes(builder.build())
    (root / name).mkdir(parents=True, exist_ok=True)
    path = root / name / f"{0:020}.log"
    path.write_bytes(data)
    return path


def initialized(group: str, topic: str, *partitions: int) -> tuple[bytes, bytes]:
    """A `ShareGroupStatePartitionMetadata` record."""
    info = records.topic_id(ORDERS) + records.text(topic) + records.ints(partitions) + b"\0"
    return b"\0\x0f" + string(group), bytes(2) + b"\1" + b"\2" + info + b"\1\0"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two groups of one topic, whose states are in two of three partitions."""
    root = tmp_path / "logs"
    write(root, "orders-0", *((b"k", b"v") for _ in range(50)))
    write(root, "__consumer_offsets-0", initialized("sharing", "orders", *range(8)))
    pairs: dict[int, list[tuple[bytes, bytes | None]]] = {0: [], 1: [], 2: []}
    for partition in range(4):
        at = state_partition_of("sharing", ORDERS_ID, partition, 3)
        pairs[at].append((key(0, partition), snapshot(20, [(30, 35, ACKNOWLEDGED, 1)], 6)))
    for partition, own in pairs.items():
        write(root, f"__share_group_state-{partition}", *own)
    return root


def rows_of(report: Any) -> dict[int, Any]:
    return {row["partition"]: row for row in report["share_offsets"]}


def test_positions_of_share_groups(logs: Path, cli: Cli) -> None:
    report = cli.json("offsets", logs)
    assert report["problems"] == []
    rows = rows_of(report)
    assert list(rows) == list(range(8))
    assert rows[0] == {
        "group": "sharing",
        "topic": "orders",
        "topic_id": ORDERS_ID,
        "partition": 0,
        "start_offset": 20,
        "leader_epoch": 3,
        "state_epoch": 5,
        "delivery_complete_count": 6,
        "state_batches": [
            {"first_offset": 30, "last_offset": 35, "delivery_state": "ACKNOWLEDGED", "delivery_count": 1}
        ],
        "log_start_offset": 0,
        "log_end_offset": 50,
        "lag": 50 - 20 - 6,
        "lost_ahead": 0,
        "out_of_range": False,
        "state_partition": state_partition_of("sharing", ORDERS_ID, 0, 3),
        "state_log": "whole",
    }
    assert (rows[1]["start_offset"], rows[1]["lag"]) == (20, None), "there is no log"
    assert (rows[7]["start_offset"], rows[7]["state_log"]) == (None, "whole")
    text = cli("offsets", logs)
    assert "share group" in text
    assert "6 acknowledged" in text


def test_positions_are_chosen(logs: Path, cli: Cli) -> None:
    for options, where in (
        (("--group", "other"), ""),
        (("--group", "o*"), ""),
        (("--group", "other", "--topic", "orders"), " and has positions in the partitions chosen"),
    ):
        assert cli("offsets", *options, logs, code=2) == ""
        assert cli.error == f"magicbyte: no group matches {options[1]!r}{where}\n"
    assert cli.json("offsets", "--group", "sh*", logs) == cli.json("offsets", logs)
    assert cli.json("offsets", "--topic", "other", logs)["share_offsets"] == []
    assert list(rows_of(cli.json("offsets", "--partition", "1-2", logs))) == [1, 2]
    assert cli("offsets", "--csv", logs) == ""


def test_a_share_group_without_its_offsets(logs: Path, cli: Cli) -> None:
    """Without `__consumer_offsets`, nothing has the topic's name."""
    shutil.rmtree(logs / "__consumer_offsets-0")
    rows = rows_of(cli.json("offsets", logs))
    assert list(rows) == list(range(4))
    assert {row["topic"] for row in rows.values()} == {ORDERS_ID}


def test_a_start_offset_out_of_range(logs: Path, cli: Cli) -> None:
    at = state_partition_of("sharing", ORDERS_ID, 0, 3)
    write(logs, f"__share_group_state-{at}", (key(0, 0), snapshot(51)))
    row = rows_of(cli.json("offsets", logs, code=1))[0]
    assert (row["out_of_range"], row["lag"]) == (True, -1)


def test_a_damaged_state(logs: Path, cli: Cli) -> None:
    at = state_partition_of("sharing", ORDERS_ID, 0, 3)
    path = logs / f"__share_group_state-{at}" / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[70] ^= 255
    path.write_bytes(data)
    report = cli.json("offsets", logs, code=1)
    rows = rows_of(report)
    for partition, row in rows.items():
        own = state_partition_of("sharing", ORDERS_ID, partition, 3) == at
        assert row["state_log"] == ("damaged" if own else "whole")
        assert own or partition > 3 or row["start_offset"] == 20
    assert rows[0]["start_offset"] is None
    named = [one for one in report["problems"] if one.startswith(f"__share_group_state-{at} is damaged")]
    assert len(named) == 1
    assert "sharing: orders-0" in named[0]
    assert "(damaged)" in cli("offsets", logs, code=1)


def test_a_state_that_is_not_here(logs: Path, cli: Cli) -> None:
    at = state_partition_of("sharing", ORDERS_ID, 0, 3)
    shutil.rmtree(logs / f"__share_group_state-{at}")
    rows = rows_of(cli.json("offsets", logs))
    if at < 2:
        assert {row["state_partition"] for row in rows.values() if row["state_log"] == "absent"} == {at}
    # The last directory cannot be missed without the cluster's metadata, unless a key belongs elsewhere.
    assert rows[0]["start_offset"] is None


def test_the_table_of_an_ingest(logs: Path, cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    cli("ingest", logs, out)
    (file,) = (out / "share_offsets").rglob("*.parquet")
    rows = pq.read_table(file).to_pylist()
    assert [row["partition"] for row in rows] == list(range(8))
    assert rows[0]["lag"] == 24
    assert rows[0]["stateBatches"] == [
        {"firstOffset": 30, "lastOffset": 35, "deliveryState": "ACKNOWLEDGED", "deliveryCount": 1}
    ]
