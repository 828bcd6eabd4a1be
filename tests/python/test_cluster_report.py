"""`magicbyte cluster`: what disks say that are damaged, missing, contradictory or of another cluster."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import magicbyte
import metadata_records as records
import pytest
from conftest import KAFKA, Cli
from dead_clusters import World
from magicbyte.errors import RefusedError
from magicbyte.jobs.cluster import ClusterReport, findings
from magicbyte.jobs.disks.copies import common_ranges

DISKS = {
    "b1d1": (1, "AAAAAAAAAAAAAAAAAAAAZQ", 101),
    "b1d2": (1, "AAAAAAAAAAAAAAAAAAAAZg", 102),
    "b2d1": (2, "AAAAAAAAAAAAAAAAAAAAyQ", 201),
}
"""Node, directory id in Kafka's text form, and the same as a number."""
ORDERS = 7
ORDERS_ID = "AAAAAAAAAAAAAAAAAAAABw"


def uuid(disk: str) -> bytes:
    return records.topic_id(DISKS[disk][2])


METADATA = [
    records.feature("metadata.version", 27),
    records.broker(1, [uuid("b1d1"), uuid("b1d2")]),
    records.broker(2, [uuid("b2d1")], fenced=True),
    records.topic("orders", ORDERS),
    records.partition(ORDERS, 0, [1, 2], [uuid("b1d1"), uuid("b2d1")], isr=[1], elr=[2]),
    records.partition(ORDERS, 1, [1, 2], [uuid("b1d2"), uuid("b2d1")], isr=[1, 2]),
    records.partition(ORDERS, 2, [2], [uuid("b2d1")], isr=[], leader=-1),
    records.config(2, "orders", "retention.ms", "-1"),
    records.config(4, "", "log.cleaner.threads", "2"),
    records.config(4, "1", "listener.name.x.ssl.keystore.password", "s3cret"),
    records.config(32, "billing", "consumer.session.timeout.ms", "45000"),
    records.config(16, "all", "interval.ms", "1000"),
    records.quota({"user": "ann"}, "producer_byte_rate", 1024.0),
    records.acl(1, "User:ann", "ord"),
    records.scram("ann"),
    records.token("token-1"),
    records.producer_ids(5000),
]


def batch(first: int, count: int, *, epoch: int = 3, **options: Any) -> bytes:
    """A batch with records of 100 bytes."""
    builder = magicbyte.RecordsBuilder(base_offset=first, partition_leader_epoch=epoch, **options)
    for offset in range(first, first + count):
        builder.append(offset, 1_700_000_000_000, b"k%d" % offset, b"v" * 100)
    return bytes(builder.build())


def write_partition(disk: Path, name: str, data: Sequence[bytes], number: int | None = ORDERS) -> Path:
    """Writes a partition of one segment, which begins at its first batch; returns its segment."""
    directory = disk / name
    directory.mkdir(parents=True, exist_ok=True)
    base = int.from_bytes(data[0][:8]) if data else 0
    path = directory / f"{base:020}.log"
    path.write_bytes(b"".join(data))
    if number is not None:
        text = "A" * 20 + "Bw" if number == ORDERS else "B" * 22
        (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {text}")
    return path


def string(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def commit(group: str, topic: str, partition: int, offset: int) -> tuple[bytes, bytes]:
    """Key and value of a committed offset."""
    key = b"\0\1" + string(group) + string(topic) + partition.to_bytes(4, "big")
    return key, b"\0\3" + offset.to_bytes(8, "big") + b"\xff" * 4 + string("") + (7).to_bytes(8, "big")


def write_commits(disk: Path, *commits: tuple[bytes, bytes]) -> None:
    builder = magicbyte.RecordsBuilder(partition_leader_epoch=0)
    for offset, (key, value) in enumerate(commits):
        builder.append(offset, 1, key, value)
    write_partition(disk, "__consumer_offsets-0", [bytes(builder.build())], None)


LOG = [batch(first, 10) for first in range(0, 50, 10)]


@pytest.fixture
def disks(tmp_path: Path) -> dict[str, Path]:
    """The three disks of two brokers."""
    found = {}
    for name, (node, directory, _) in DISKS.items():
        found[name] = tmp_path / name
        records.write_meta(found[name], node, directory)
    log = records.batches(METADATA, size=4)
    records.write_log(found["b1d1"], log)
    records.write_log(found["b2d1"], log[:-1])
    write_partition(found["b1d1"], "orders-0", LOG)
    write_partition(found["b1d2"], "orders-1", LOG)
    write_partition(found["b2d1"], "orders-0", LOG)
    write_partition(found["b2d1"], "orders-1", LOG[:3])
    write_partition(found["b2d1"], "orders-2", LOG)
    return found


def report_of(*sources: Path, **options: Any) -> ClusterReport:
    return magicbyte.cluster(sources, **options)


def partitions_of(report: ClusterReport, topic: str = "orders") -> list[Any]:
    (found,) = (one for one in report["topics"] if one["topic"] == topic)
    return found["partitions"]


def test_the_whole_cluster(disks: dict[str, Path]) -> None:
    report = report_of(*disks.values())
    assert (report["problems"], report["unassigned"], findings(report)) == ([], [], 0)
    assert report["cluster_id"] == "abc"
    # A node may be formatted before it knows its cluster (KIP-1262).
    for log_dir in disks.values():
        meta = log_dir / "meta.properties"
        meta.write_text(meta.read_text().replace("cluster.id=abc", "cluster.id="))
    assert report_of(*disks.values())["cluster_id"] is None
    assert [one["node_id"] for one in report["metadata"]] == [1, 2]
    assert report["metadata_end_offset"] == len(METADATA)
    (topic,) = report["topics"]
    assert (topic["topic_id"], topic["known_from"]) == (ORDERS_ID, "metadata")
    assert topic["configs"] == {"retention.ms": "-1"}
    first, second, third = topic["partitions"]
    assert (first["replicas"], first["isr"], first["elr"], first["leader"]) == ([1, 2], [1], [2], 1)
    assert [(one["broker_id"], one["log_end_offset"]) for one in second["copies"]] == [(1, 50), (2, 30)]
    assert (second["log_start_offset"], second["log_end_offset"], second["lost_offsets"]) == (0, 50, 0)
    assert (third["leader"], third["isr"]) == (-1, [])
    one, two = report["brokers"]
    assert (one["rack"], one["fenced"], one["leads"], one["replicas"]) == ("rack1", False, 2, 2)
    assert (two["fenced"], two["leads"], two["replicas"]) == (True, 0, 3)
    assert [(disk["directory_id"], disk["partitions"], disk["assigned"]) for disk in one["disks"]] == [
        (DISKS["b1d1"][1], 1, 1),
        (DISKS["b1d2"][1], 1, 1),
    ]


def test_settings(disks: dict[str, Path]) -> None:
    report = report_of(*disks.values())
    settings = report["settings"]
    assert settings is not None
    assert settings["features"] == {"metadata.version": 27}
    assert settings["broker_configs"] == {
        "": {"log.cleaner.threads": "2"},
        "1": {"listener.name.x.ssl.keystore.password": "[hidden]"},
    }
    assert settings["group_configs"] == {"billing": {"consumer.session.timeout.ms": "45000"}}
    assert settings["client_metrics_configs"] == {"all": {"interval.ms": "1000"}}
    assert settings["quotas"] == [{"entity": {"user": "ann"}, "values": {"producer_byte_rate": 1024.0}}]
    assert [acl["principal"] for acl in settings["acls"]] == ["User:ann"]
    assert [user["name"] for user in settings["scram_users"]] == ["ann"]
    assert [token["renewers"] for token in settings["delegation_tokens"]] == [["User:bob"]]
    assert settings["next_producer_id"] == 5000
    assert "s3cret" not in json.dumps(report)


def test_a_disk_that_is_not_here(disks: dict[str, Path]) -> None:
    report = report_of(disks["b1d1"])
    missing = [
        (broker["broker_id"], disk["directory_id"], disk["assigned"])
        for broker in report["brokers"]
        for disk in broker["disks"]
        if disk["path"] is None
    ]
    assert missing == [(1, DISKS["b1d2"][1], 1), (2, DISKS["b2d1"][1], 3)]
    assert [bool(one["copies"]) for one in partitions_of(report)] == [True, False, False]
    # The other disk of a broker that is here in part is missed, unless it is left out on purpose.
    assert [f"{DISKS['b1d2'][1]} is not among the sources" in one for one in report["problems"]] == [True]
    choice = magicbyte.PartitionChoice(one_disk=True)
    assert report_of(disks["b1d1"], choice=choice)["problems"] == []


def test_lost_records_ahead_of_groups(disks: dict[str, Path], cli: Cli) -> None:
    """Damage counts where no copy has the records, and only for groups that have not read them."""
    write_commits(
        disks["b1d1"],
        commit("behind", "orders", 1, 5),
        commit("past", "orders", 1, 40),
        commit("gone", "orders", 2, 60),
    )
    segment = disks["b1d2"] / "orders-1" / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    for at in (1, 3):  # offsets 10 to 19 and 30 to 39; broker 2 has the former
        data[at * len(LOG[0]) + 100] ^= 1
    segment.write_bytes(data)
    report = cli.json("cluster", *disks.values(), code=1)
    assert report["problems"] == []
    positions = {group["group"]: group["positions"][0] for group in report["groups"]}
    assert (positions["behind"]["lost_ahead"], positions["behind"]["lost_ranges"]) == (10, [[30, 39]])
    assert (positions["past"]["lost_ahead"], positions["past"]["lag"]) == (0, 10)
    assert (positions["gone"]["out_of_range"], positions["gone"]["lag"]) == (True, -10)
    assert {group["type"] for group in report["groups"]} == {"classic"}
    text = cli("cluster", *disks.values(), code=1)
    assert "10 (30-39)" in text
    assert "positions hurt" in text
    report = cli.json("cluster", "--headers-only", "--group", "behind", *disks.values())
    assert [group["positions"][0]["lost_ahead"] for group in report["groups"]] == [0]


def test_a_missing_segment_is_lost_unless_another_copy_has_it(disks: dict[str, Path]) -> None:
    path = write_partition(disks["b1d2"], "orders-1", LOG[:2])
    write_partition(disks["b1d2"], "orders-1", LOG[4:])
    report = report_of(disks["b1d1"], disks["b1d2"])
    assert partitions_of(report)[1]["lost_offsets"] == 20
    assert path.exists()
    # Broker 2 has offsets 0 to 29.
    assert partitions_of(report_of(*disks.values()))[1]["lost_offsets"] == 10


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ([], [(0, 9)], []),
        ([(0, 9)], [(0, 9)], [(0, 9)]),
        ([(0, 9)], [(3, 4), (6, 20)], [(3, 4), (6, 9)]),
        ([(0, 4), (6, 9)], [(0, 9)], [(0, 4), (6, 9)]),
        ([(0, 4), (8, 9)], [(4, 8)], [(4, 4), (8, 8)]),
        ([(0, 1)], [(2, 3)], []),
    ],
)
def test_ranges_that_two_copies_lack(
    one: list[tuple[int, int]], other: list[tuple[int, int]], both: list[tuple[int, int]]
) -> None:
    assert common_ranges(one, other) == common_ranges(other, one) == both


def test_another_branch_does_not_help(disks: dict[str, Path]) -> None:
    """The other copy has the offsets, but of an older leader whose records were not committed."""
    newer = [batch(first, 10, epoch=5) for first in (20, 30, 40)]
    write_partition(disks["b1d2"], "orders-1", [*LOG[:2], *newer[:1]])
    write_partition(disks["b1d2"], "orders-1", newer[2:])
    write_partition(disks["b2d1"], "orders-1", LOG)
    assert partitions_of(report_of(*disks.values()))[1]["lost_offsets"] == 10


@pytest.mark.parametrize(
    ("isr", "empty", "full", "is_named"),
    [
        ([1], [1], [2, 3], True),
        ([1, 2], [1, 2], [3], True),
        ([1, 2], [1], [3], True),
        ([1, 2], [1], [2, 3], False),
        ([2], [1], [2], False),
        ([1], [1], [], False),
        ([1], [], [1, 2], False),
    ],
)
def test_an_empty_copy_that_was_in_sync_is_named_beside_records(
    tmp_path: Path, isr: list[int], empty: list[int], full: list[int], is_named: bool
) -> None:
    world = World(tmp_path, [records.topic("orders", 1), records.partition(1, 0, [1, 2, 3], isr=isr)])
    for node in (*empty, *full):
        world.put(node, LOG if node in full else [])
    found = report_of(*world.log_dirs.values())["problems"]
    problems = [one for one in found if "there is no directory" not in one]
    assert len(problems) == is_named
    if is_named:
        assert f"{world.log_dirs[empty[0]]}/orders-0" in problems[0]
        assert "was in sync and is empty, but another copy reaches 50" in problems[0]


def test_a_log_that_retention_has_emptied_is_none_of_a_new_disk(tmp_path: Path) -> None:
    world = World(tmp_path, [records.topic("orders", 1), records.partition(1, 0, [1, 2], isr=[1])])
    world.put(1, []).joinpath(f"{0:020}.log").rename(tmp_path / f"b1/orders-0/{50:020}.log")
    world.put(2, LOG)
    assert report_of(*world.log_dirs.values())["problems"] == []


def test_a_position_beyond_the_end_does_not_hide_the_lag_of_others(disks: dict[str, Path], cli: Cli) -> None:
    """Of a partition, the lag is what kafka-consumer-groups shows: negative there."""
    positions = commit("far", "orders", 0, 10**18), commit("far", "orders", 1, 20)
    write_commits(disks["b1d1"], *positions)
    (group,) = report_of(*disks.values())["groups"]
    assert [one["lag"] for one in group["positions"]] == [50 - 10**18, 30]
    shown = cli("cluster", *disks.values(), code=1)
    (row,) = (line for line in shown.splitlines() if line.startswith("far") and "classic" in line)
    assert row.split()[-3:] == ["30", "0", "1"]


def test_several_clusters_are_refused(disks: dict[str, Path], cli: Cli) -> None:
    records.write_meta(disks["b2d1"], 2, DISKS["b2d1"][1], cluster="xyz")
    with pytest.raises(RefusedError, match="belong to 2 clusters"):
        report_of(*disks.values())
    cli("cluster", *disks.values(), code=2)
    assert f"abc: {disks['b1d1']}" in cli.error
    assert f"xyz: {disks['b2d1']}" in cli.error


def test_directories_of_other_topics_are_shown_apart(disks: dict[str, Path]) -> None:
    write_partition(disks["b1d1"], "orders-0", LOG, 8)
    write_partition(disks["b1d1"], "deleted-3", LOG, 9)
    write_partition(disks["b1d1"], "orders-9", LOG)
    write_partition(disks["b1d1"], f"orders-1.{'0' * 32}-delete", LOG)
    report = report_of(*disks.values())
    reasons = {Path(one["path"]).name: one["reason"] for one in report["unassigned"]}
    assert f"its topic id is not {ORDERS_ID}" in reasons.pop("orders-0")
    assert "does not name the topic" in reasons.pop("deleted-3")
    assert reasons.pop("orders-9") == "the topic has no such partition"
    assert list(reasons.values()) == ["the broker was deleting it"]
    assert [one["topic"] for one in report["topics"]] == ["orders"]
    assert [one["broker_id"] for one in partitions_of(report)[0]["copies"]] == [2]


def test_a_partition_on_two_disks_of_a_broker(disks: dict[str, Path]) -> None:
    write_partition(disks["b1d2"], "orders-0", LOG[:2])
    report = report_of(*disks.values())
    (problem,) = report["problems"]
    assert "orders-0 is in 2 directories of broker 1" in problem
    # A copy that the broker was moving is no contradiction.
    shutil.move(disks["b1d2"] / "orders-0", disks["b1d2"] / f"orders-0.{'0' * 32}-future")
    report = report_of(*disks.values())
    assert report["problems"] == []
    assert [one["state"] for one in partitions_of(report)[0]["copies"]] == ["current", "current", "future"]


def test_a_disk_and_its_copy(disks: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(disks["b2d1"], tmp_path / "copy")
    report = report_of(*disks.values(), tmp_path / "copy")
    assert any(
        "the sources have 2 copies of directory" in problem and "of broker 2" in problem
        for problem in report["problems"]
    )


def test_without_metadata(disks: dict[str, Path], cli: Cli) -> None:
    """As of ZooKeeper: topics, ids and logs from the directories, groups from their topic."""
    for name in ("b1d1", "b2d1"):
        shutil.rmtree(disks[name] / "__cluster_metadata-0")
    write_commits(disks["b1d1"], commit("g", "orders", 1, 5))
    report = report_of(*disks.values())
    assert (report["problems"], report["metadata"], report["quorum"], report["settings"]) == (
        [],
        [],
        None,
        None,
    )
    topics = {one["topic"]: one for one in report["topics"]}
    assert (topics["orders"]["topic_id"], topics["orders"]["known_from"]) == (ORDERS_ID, "directories")
    assert [len(one["copies"]) for one in topics["orders"]["partitions"]] == [2, 2, 1]
    assert [one["broker_id"] for one in report["brokers"]] == [1, 2]
    assert report["groups"][0]["positions"][0]["lag"] == 45
    assert "there is no __cluster_metadata" in cli("cluster", *disks.values())
    # Two topics of the same name: nothing tells which is right.
    write_partition(disks["b2d1"], "orders-0", LOG, 8)
    report = report_of(*disks.values())
    assert any("2 topic ids, shown apart" in problem for problem in report["problems"])
    assert len([one for one in report["topics"] if one["topic"] == "orders"]) == 2


def test_damaged_metadata(disks: dict[str, Path]) -> None:
    """The batch that created the topic is bad in every copy: its directories still tell of it."""
    for name in ("b1d1", "b2d1"):
        segment = disks[name] / "__cluster_metadata-0" / f"{0:020}.log"
        data = bytearray(segment.read_bytes())
        for at in (80, 95):
            data[at] ^= 0x10
        segment.write_bytes(data)
    report = report_of(*disks.values())
    assert any(
        "no readable copy of __cluster_metadata has offsets 0 to 3" in one for one in report["problems"]
    )
    (topic,) = report["topics"]
    assert (topic["topic_id"], topic["known_from"]) == (ORDERS_ID, "directories")
    assert topic["configs"] == {"retention.ms": "-1"}
    assert [len(one["copies"]) for one in topic["partitions"]] == [2, 2, 1]
    # One flipped bit is repaired.
    log = records.batches(METADATA, size=4)
    for name in ("b1d1", "b2d1"):
        data = bytearray(b"".join(log))
        data[80] ^= 0x10
        (disks[name] / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(data)
    write_partition(disks["b1d1"], "deleted-0", LOG, 9)
    report = report_of(*disks.values())
    # So the metadata knows all topics.
    assert [one["topic"] for one in report["unassigned"]] == ["deleted"]
    assert all("a repair that its CRC proves" in one or "crc" in one.lower() for one in report["problems"])
    assert [one["known_from"] for one in report["topics"]] == ["metadata"]


def test_the_preferred_copy_decides(disks: dict[str, Path]) -> None:
    choice = magicbyte.PartitionChoice(prefer=(str(disks["b2d1"]),))
    report = report_of(*disks.values(), choice=choice)
    assert [one["node_id"] for one in report["metadata"]] == [2]
    assert partitions_of(report)[1]["log_end_offset"] == 30


def test_an_open_transaction(disks: dict[str, Path], cli: Cli) -> None:
    transaction = batch(50, 3, producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True)
    write_partition(disks["b1d2"], "orders-1", [*LOG, transaction])
    report = cli.json("cluster", "--now", "2023-11-14T22:13:21Z", *disks.values())
    (opened,) = report["open_transactions"]
    assert (opened["topic"], opened["partition"], opened["producer_id"]) == ("orders", 1, 9)
    assert (opened["first_offset"], opened["last_offset"], opened["hanging"]) == (50, 52, False)
    assert partitions_of(report)[1]["last_stable_offset"] == 50
    (opened,) = cli.json("cluster", *disks.values(), code=1)["open_transactions"]
    assert opened["hanging"] is True


def test_every_kind_of_group(disks: dict[str, Path]) -> None:
    """A group with members, and positions or none."""
    epoch = (4).to_bytes(4)
    groups = [
        (b"\0\3" + string("new"), bytes(2) + epoch + b"\0"),
        (b"\0\x0b" + string("shared"), bytes(2) + epoch + bytes(8) + b"\0"),
        (
            b"\0\x0a" + string("shared") + string("member-1"),
            bytes(2) + b"\0" + records.text("client") + records.text("/10.0.0.1") + b"\1\0",
        ),
        (b"\0\x11" + string("streaming"), bytes(2) + epoch + bytes(8) + b"\0"),
    ]
    write_commits(
        disks["b1d1"], *groups, commit("streaming", "orders", 0, 12), commit("by hand", "orders", 0, 1)
    )
    report = report_of(*disks.values())
    assert report["problems"] == []
    assert [(one["group"], one["type"], one["epoch"], one["state"]) for one in report["groups"]] == [
        ("by hand", "classic", None, "Empty"),
        ("new", "consumer", 4, "Empty"),
        ("shared", "share", 4, "Stable"),
        ("streaming", "streams", 4, "Empty"),
    ]
    assert [one["lag"] for one in report["groups"][3]["positions"]] == [38]


def share_key(kind: int, partition: int) -> bytes:
    """The key of a snapshot (0) or an update (1) of the group `sharing`."""
    return kind.to_bytes(2) + string("sharing") + records.topic_id(ORDERS) + partition.to_bytes(4)


def test_share_groups(disks: dict[str, Path]) -> None:
    def snapshot(start: int) -> bytes:
        return (
            bytes(14)
            + start.to_bytes(8, signed=True)
            + bytes(16)
            + b"\1"
            + records.tagged({0: (4).to_bytes(4)})
        )

    update = bytes(10) + (30).to_bytes(8) + b"\1" + records.tagged({0: (6).to_bytes(4)})
    unchanged = bytes(10) + (-1).to_bytes(8, signed=True) + b"\1" + records.tagged({0: (6).to_bytes(4)})
    builder = magicbyte.RecordsBuilder()
    for offset, (key, value) in enumerate(
        (
            (share_key(0, 1), snapshot(20)),
            (share_key(1, 1), update),
            (share_key(1, 1), unchanged),
            (share_key(0, 0), snapshot(-1)),
            (share_key(0, 2), snapshot(5)),
            (share_key(0, 2), None),
        )
    ):
        builder.append(offset, 1, key, value)
    write_partition(disks["b1d1"], "__share_group_state-0", [bytes(builder.build())], None)
    report = report_of(*disks.values())
    assert report["problems"] == []
    (group,) = report["groups"]
    (position,) = group["positions"]
    assert (position["topic"], position["partition"], position["offset"]) == ("orders", 1, 30)
    assert position["lag"] == 50 - 30 - 6
    assert position["share_state"]["state_partition"] == 0
    assert position["share_state"]["delivery_complete_count"] == 6
    assert report_of(*disks.values(), group="other")["groups"] == []
    other = magicbyte.PartitionChoice(topics=("other",))
    assert report_of(*disks.values(), choice=other)["groups"] == []


def test_text_and_page(disks: dict[str, Path], cli: Cli, tmp_path: Path) -> None:
    page = tmp_path / "cluster.html"
    text = cli("cluster", "--html", page, *disks.values())
    for word in ("orders-2", "missing", "User:ann", "SCRAM-SHA-512", "token-1", "rack1", "[hidden]"):
        assert (word in text) == (word != "missing"), word
    # Those that are whole are only on the page.
    assert "orders-1" not in text
    html = page.read_text()
    assert "orders-1" in html
    assert "s3cret" not in html + text
    cli("cluster", "--html", page, disks["b1d1"], code=1)
    assert "missing" in page.read_text()
    (tmp_path / "other.html").write_text("mine")
    cli("cluster", "--html", tmp_path / "other.html", disks["b1d1"], code=2)


def test_a_real_log(cli: Cli, tmp_path: Path) -> None:
    for name, topic in (
        ("cluster_metadata", "__cluster_metadata-0"),
        ("consumer_offsets_0", "__consumer_offsets-0"),
    ):
        shutil.copytree(KAFKA / name, tmp_path / topic, ignore=shutil.ignore_patterns("rebuilt", "*.json*"))
    report = cli.json("cluster", tmp_path, code=1)
    assert (report["quorum"]["leader"], report["quorum"]["leader_epoch"]) == (1, 5)
    assert [len(one["disks"]) for one in report["brokers"]] == [1]
    assert any("1 of 2 partitions of __consumer_offsets are not here" in one for one in report["problems"])
    assert [group["group"] for group in report["groups"]] == ["grüppe"]


@pytest.mark.parametrize("name", ["cluster_metadata", "v2_none"])
def test_one_partition(cli: Cli, name: str) -> None:
    """A single directory, not below a broker's."""
    report = cli.json("cluster", KAFKA / name, code=None)
    assert len(report["topics"]) == 1 or name == "cluster_metadata"


def test_a_snapshot_alone(tmp_path: Path) -> None:
    """As before a node's first start."""
    records.write_meta(tmp_path, 1, DISKS["b1d1"][1])
    records.write_snapshot(tmp_path, METADATA, 100)
    report = report_of(tmp_path, choice=magicbyte.PartitionChoice(one_disk=True))
    assert (report["problems"], report["metadata_end_offset"]) == ([], 100)
    assert [one["topic"] for one in report["topics"]] == ["orders"]
    assert report["quorum"] is not None
    assert [one["controller_id"] for one in report["quorum"]["controllers"]] == [1, 2, 3]


def test_nothing_to_read(cli: Cli, tmp_path: Path) -> None:
    cli("cluster", tmp_path, code=2)
    assert "no Kafka segments" in cli.error


def test_positions_as_csv(disks: dict[str, Path], cli: Cli) -> None:
    write_commits(
        disks["b1d1"], commit("b, 1", "orders", 1, 5), commit('q"', "orders", 0, 6), commit("a", "lost", 3, 7)
    )
    text = cli("offsets", "--csv", *disks.values())
    assert text == 'a,lost,3,7\n"b, 1",orders,1,5\n"q""",orders,0,6\n'
    cli("offsets", "--csv", "--json", *disks.values(), code=2)
    assert "give one of them" in cli.error


def test_a_thousand_partitions(tmp_path: Path) -> None:
    """They are listed and surveyed once: a second is left of the three that are promised."""
    import time

    made = [records.topic(f"t{number}", number + 1) for number in range(100)]
    made += [
        records.partition(number + 1, partition, [1]) for number in range(100) for partition in range(10)
    ]
    records.write_meta(tmp_path, 1, DISKS["b1d1"][1])
    records.write_log(tmp_path, records.batches(made, size=100))
    for number in range(1000):
        write_partition(tmp_path, f"t{number // 10}-{number % 10}", LOG, None)
    start = time.process_time()
    report = report_of(tmp_path)
    assert time.process_time() - start < 6
    assert sum(len(topic["partitions"]) for topic in report["topics"]) == 1000
    assert all(one["log_end_offset"] == 50 for topic in report["topics"] for one in topic["partitions"])
