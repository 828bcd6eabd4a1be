"""`magicbyte topics` and `magicbyte offsets`: the state that Kafka's internal topics add up to."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow.dataset as ds
import pytest
from conftest import KAFKA, Cli
from magicbyte.internal_topics.groups import GroupsState
from magicbyte.internal_topics.metadata.cluster import ClusterState

Batch = magicbyte.RecordBatch | magicbyte.LegacyBatch


def copied(fixture: str, name: str, to: Path) -> Path:
    shutil.copytree(KAFKA / fixture, to / name)
    return to


def test_topics_of_a_cluster(tmp_path: Path, cli: Cli) -> None:
    copied("cluster_metadata", "__cluster_metadata-0", tmp_path)
    copied("consumer_offsets_0", "__consumer_offsets-0", tmp_path)
    report = cli.json("topics", tmp_path)
    assert report["cluster_metadata"] == str(tmp_path / "__cluster_metadata-0")
    assert report["problems"] == []
    by_name = {one["topic"]: one for one in report["topics"]}
    offsets = by_name["__consumer_offsets"]
    assert (offsets["cleanup_policy"], offsets["policy_from"]) == ("compact", "topic")
    assert [one["partition"] for one in offsets["partitions"] if one["here"]] == [0]
    assert all(one["replicas"] and one["leader_epoch"] >= 0 for one in offsets["partitions"])


def test_topics_without_metadata(tmp_path: Path, cli: Cli) -> None:
    copied("v2_none", "orders-0", tmp_path)
    copied("consumer_offsets_0", "__consumer_offsets-0", tmp_path)
    config = tmp_path / "topics.json"
    config.write_text('{"orders": {"cleanup.policy": "compact,delete", "segment.bytes": 1000}}')
    offsets, orders = cli.json("topics", tmp_path)["topics"]
    assert (offsets["cleanup_policy"], offsets["policy_from"]) == ("compact", "kafka")
    assert (orders["cleanup_policy"], orders["policy_from"]) == (None, None)
    assert orders["topic_id"] == (tmp_path / "orders-0" / "partition.metadata").read_text().split()[-1]
    orders = cli.json("topics", "--topic-config", config, tmp_path)["topics"][1]
    assert (orders["cleanup_policy"], orders["policy_from"]) == ("compact,delete", "file")
    assert orders["configs"]["segment.bytes"] == "1000"


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": {"cleanup.policy": "compakt"}}', "[" * 9999])
def test_wrong_topic_configs(tmp_path: Path, cli: Cli, text: str) -> None:
    config = tmp_path / "topics.json"
    config.write_text(text)
    assert cli("topics", "--topic-config", config, KAFKA / "v2_none", code=2) == ""
    assert str(config) in cli.error


def offsets_of(cli: Cli, *arguments: Any) -> dict[tuple[str, str, int], dict[str, Any]]:
    report = cli.json("offsets", *arguments)
    return {(one["group"], one["topic"], one["partition"]): one for one in report["offsets"]}


def test_offsets_are_the_last_ones(tmp_path: Path, cli: Cli) -> None:
    copied("consumer_offsets_0", "__consumer_offsets-0", tmp_path)
    expected: dict[tuple[str, str, int], int] = {}
    # As Kafka's own tool decodes them.
    text = (KAFKA.parent / "dump" / "consumer_offsets_0.decoded.txt").read_text()
    for line in re.findall(r" key: (\{.*)", text):
        key_text, _, value_text = line.partition(" payload: ")
        key, value = json.loads(key_text), None if value_text == "<DELETE>" else json.loads(value_text)
        if key["type"] not in ("0", "1"):
            continue
        place = key["data"]["group"], key["data"]["topic"], key["data"]["partition"]
        if value is not None:
            expected[place] = value["data"]["offset"]
        else:
            expected.pop(place, None)
    found = offsets_of(cli, tmp_path)
    assert {place: one["offset"] for place, one in found.items()} == expected
    assert expected
    assert {one["lag"] for one in found.values()} == {None}
    group = next(iter(expected))[0]
    assert {place[0] for place in offsets_of(cli, "--group", f"{group[:-1]}?", tmp_path)} >= {group}
    cli("offsets", "--group", "nobody", tmp_path, code=2)
    assert cli.error == "magicbyte: no group matches 'nobody'\n"
    assert "no partition of __consumer_offsets" in (cli("offsets", KAFKA / "v2_none", code=2) or cli.error)


def string(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def commit_key(partition: int = 0) -> bytes:
    return b"\0\1" + string("g") + string("t") + partition.to_bytes(4, "big")


def commit_value(offset: int) -> bytes:
    return b"\0\3" + offset.to_bytes(8, "big") + b"\xff" * 4 + string("") + (7).to_bytes(8, "big")


def offsets_batch(offset: int, key: bytes, value: bytes | None, producer: int = -1) -> Batch:
    """A batch of a commit; of a transaction if it has a producer."""
    transactional = {"is_transactional": True, "producer_epoch": 0, "base_sequence": 0}
    builder = magicbyte.RecordsBuilder(producer_id=producer, **(transactional if producer >= 0 else {}))
    builder.append(offset, 1, key, value)
    (batch,) = magicbyte.read_batches(builder.build())
    return batch


def marker(offset: int, producer: int, *, committed: bool) -> Batch:
    builder = magicbyte.RecordsBuilder(
        producer_id=producer, producer_epoch=0, is_transactional=True, is_control=True
    )
    builder.append(offset, 1, bytes([0, 0, 0, committed]), bytes(6))
    (batch,) = magicbyte.read_batches(builder.build())
    return batch


def test_transactions_count_when_committed() -> None:
    state = GroupsState()

    def replay(*batches: Batch) -> list[tuple[int, int]]:
        for batch in batches:
            assert list(state.replay(batch)) == []
        return [(one.partition, one.offset) for one in state.commits]

    found = replay(
        offsets_batch(0, commit_key(0), commit_value(10)),
        offsets_batch(1, commit_key(0), commit_value(20), 5),
        offsets_batch(2, commit_key(1), commit_value(21), 5),
        offsets_batch(3, commit_key(1), commit_value(30), 6),
    )
    assert found == [(0, 10)]
    assert state.pending == 3
    found = replay(
        offsets_batch(4, commit_key(0), commit_value(11)),
        marker(5, 6, committed=False),
        marker(6, 5, committed=True),
    )
    # The commit outside of the transaction is later in the log.
    assert found == [(0, 11), (1, 21)]
    found = replay(
        offsets_batch(7, commit_key(1), commit_value(40), 7),
        offsets_batch(8, commit_key(1), None),
        marker(9, 7, committed=True),
    )
    assert found == [(0, 11)]
    assert state.pending == 0


def test_keys_that_name_the_same_place() -> None:
    """Kafka ignores what follows a key, and the commits of both types of keys are the same."""
    state = GroupsState()
    legacy = b"\0\0" + commit_key()[2:]
    old_value = b"\0\0" + (12).to_bytes(8, "big") + string("") + (7).to_bytes(8, "big")
    for offset, key, value in (
        (0, commit_key(), commit_value(10)),
        (1, commit_key() + b"more", commit_value(11)),
        (2, legacy, old_value),
    ):
        assert list(state.replay(offsets_batch(offset, key, value))) == []
        (commit,) = state.commits
        assert (commit.offset, commit.record_offset) == (10 + offset, offset)
    assert commit.leader_epoch is None
    assert list(state.replay(offsets_batch(3, commit_key() + b"!", None))) == []
    assert state.commits == []


@pytest.mark.parametrize("size", range(len(commit_key())))
def test_a_key_that_is_cut(size: int) -> None:
    state = GroupsState()
    ((offset, error),) = state.replay(offsets_batch(4, commit_key()[:size], commit_value(1)))
    assert (offset, error.position is not None) == (4, True)
    assert state.commits == []


def test_a_value_that_is_cut() -> None:
    state = GroupsState()
    for size in range(len(commit_value(1))):
        ((_, error),) = state.replay(offsets_batch(4, commit_key(), commit_value(1)[:size]))
        assert size < 2 or "OffsetCommitValue version 3" in str(error)
    ((_, error),) = state.replay(offsets_batch(4, commit_key(), b"\0\5" + commit_value(1)[2:]))
    assert "OffsetCommitValue version 5 is not known: expected 0 to 4" in str(error)
    assert state.commits == []


def test_lag(tmp_path: Path, cli: Cli) -> None:
    builder = magicbyte.RecordsBuilder()
    builder.append(offset=0, timestamp=1, key=commit_key(0), value=commit_value(2))
    (tmp_path / "__consumer_offsets-0").mkdir()
    (tmp_path / "__consumer_offsets-0" / f"{0:020}.log").write_bytes(builder.build())
    builder = magicbyte.RecordsBuilder()
    for offset in range(5):
        builder.append(offset=offset, timestamp=1, key=None, value=b"x")
    open_transaction = magicbyte.RecordsBuilder(
        producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    open_transaction.append(offset=5, timestamp=1, key=None, value=b"x")
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(builder.build() + open_transaction.build())
    one = offsets_of(cli, tmp_path)["g", "t", 0]
    assert (one["log_end_offset"], one["last_stable_offset"]) == (6, 5)
    assert (one["lag"], one["committed_lag"]) == (4, 3)
    assert "1970-01-01T00:00:00.007Z" in cli("offsets", tmp_path)


def frame(kind: int, data: bytes) -> bytes:
    return bytes([1, kind, 0]) + data


ID = bytes(16)
TOPIC = frame(2, b"\2t" + ID + b"\0")
CONFIG = frame(4, b"\2\2t\x0fcleanup.policy\x08compact\0")


def test_deleted_topics_and_transactions_of_metadata() -> None:
    state = ClusterState()
    for value in (TOPIC, CONFIG):
        state.replay(value)
    assert state.names == {"t"}
    assert state.topic_configs("t") == {"cleanup.policy": "compact"}
    state.replay(frame(23, b"\0"))
    state.replay(frame(9, ID + b"\0"))
    assert state.names == {"t"}
    state.replay(frame(25, b"\0"))
    assert state.names == {"t"}
    state.replay(frame(23, b"\0"))
    state.replay(frame(9, ID + b"\0"))
    state.replay(frame(24, b"\0"))
    assert state.names == set()
    assert state.topic_configs("t") == {}


def test_a_metadata_transaction_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records compress to nothing: they are kept up to a limit, and then none of them counts."""
    monkeypatch.setattr("magicbyte.internal_topics.metadata.cluster._MAX_TRANSACTION", 1000)
    state = ClusterState()
    for count in (5, 500):
        state.replay(frame(23, b"\0"))
        for _ in range(count):
            state.replay(CONFIG)
        if count == 5:
            state.replay(frame(24, b"\0"))
            assert state.topic_configs("t") == {"cleanup.policy": "compact"}
    with pytest.raises(magicbyte.Error, match="more than 1,000 bytes: its records are left out"):
        state.replay(frame(24, b"\0"))
    state.replay(TOPIC)
    assert state.names == {"t"}


def log_of(path: Path, *records: tuple[bytes | None, bytes]) -> None:
    builder = magicbyte.RecordsBuilder()
    for offset, (key, value) in enumerate(records):
        builder.append(offset, 1, key, value)
    path.mkdir(parents=True)
    (path / f"{0:020}.log").write_bytes(builder.build())


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    """Copies of a broker's directory: the second has another topic and a later commit."""
    one, two = tmp_path / "disk1", tmp_path / "disk2"
    log_of(one / "__cluster_metadata-0", (None, TOPIC), (None, PARTITION))
    log_of(two / "__cluster_metadata-0", (None, TOPIC), (None, PARTITION), (None, CONFIG))
    log_of(one / "__consumer_offsets-0", (commit_key(0), commit_value(1)))
    log_of(two / "__consumer_offsets-0", (commit_key(0), commit_value(2)), (commit_key(1), commit_value(3)))
    for disk in (one, two):
        log_of(disk / "t-0", *[(b"k", b"v")] * 4)
    return one, two


PARTITION = frame(3, bytes(4) + ID + b"\2" + bytes(4) + b"\2" + bytes(4) + b"\1\1" + bytes(12) + b"\0")


def test_the_preferred_copy_is_read(disks: tuple[Path, Path], cli: Cli, tmp_path: Path) -> None:
    # Without a preference, the newest copy is read, whichever comes first.
    for order in (disks, disks[::-1]):
        assert cli.json("topics", *order)["cluster_metadata"] == str(disks[1] / "__cluster_metadata-0")
        assert offsets_of(cli, *order)["g", "t", 0]["offset"] == 2
    for disk, policy, offset in zip(disks, ("default", "topic"), (1, 2), strict=True):
        report = cli.json("topics", "--prefer", disk, *disks)
        assert report["cluster_metadata"] == str(disk / "__cluster_metadata-0")
        assert [one["policy_from"] for one in report["topics"]] == [policy]
        assert offsets_of(cli, "--prefer", disk, *disks)["g", "t", 0]["offset"] == offset
        # A job that needs the policy reads the preferred copy, too, whichever topics are chosen.
        chosen = ["--topic", "t", "--prefer", disk, *disks, tmp_path / "out"]
        cli("compact", *chosen, code=0 if policy == "topic" else 2)
        assert policy == "topic" or "cleanup.policy is the brokers' default" in cli.error


def test_of_copies_with_leader_epochs_the_higher_epoch_is_newer(cli: Cli, tmp_path: Path) -> None:
    """A longer log of an older leader is the branch that was lost."""
    long, newer = tmp_path / "long", tmp_path / "newer"
    log_of(long / "__consumer_offsets-0", *[(commit_key(0), commit_value(9))] * 3)
    log_of(newer / "__consumer_offsets-0", (commit_key(0), commit_value(2)))
    segment = newer / "__consumer_offsets-0" / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    data[12:16] = (5).to_bytes(4, "big")  # the leader epoch, which the CRC does not cover
    segment.write_bytes(data)
    assert offsets_of(cli, long, newer)["g", "t", 0]["offset"] == 2


def test_recover_reads_the_newest_copy_of_kafkas_own_topics(
    disks: tuple[Path, Path], cli: Cli, tmp_path: Path
) -> None:
    cli("recover", *disks, tmp_path / "out", code=2)
    assert "there are 2 copies of t-0" in cli.error
    cli("recover", "--exclude", "t", *disks, tmp_path / "out")
    assert offsets_of(cli, tmp_path / "out")["g", "t", 0]["offset"] == 2


def test_topics_that_damaged_metadata_does_not_name(cli: Cli, tmp_path: Path) -> None:
    """The batch that created them is bad, but their directories are there."""
    log_of(tmp_path / "__cluster_metadata-0", (None, TOPIC), (None, PARTITION))
    for name in ("t-0", "other-0", "other-1"):
        log_of(tmp_path / name, (b"k", b"v"))
    (tmp_path / "other-1" / "partition.metadata").write_text("version: 0\ntopic_id: cThDCR9PQGKsbgjMRDDf3w\n")
    topics = {one["topic"]: one for one in cli.json("topics", tmp_path)["topics"]}
    assert "other" not in topics  # the metadata is whole: the directory is not the cluster's
    segment = tmp_path / "__cluster_metadata-0" / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    data[70] ^= 4
    segment.write_bytes(data)
    topics = {one["topic"]: one for one in cli.json("topics", tmp_path, code=1)["topics"]}
    assert set(topics) >= {"t", "other"}
    other = topics["other"]
    assert (other["topic_id"], other["cleanup_policy"]) == ("cThDCR9PQGKsbgjMRDDf3w", None)
    assert [one["partition"] for one in other["partitions"]] == [0, 1]


@pytest.mark.parametrize(
    ("committed", "out_of_range", "lost_ahead"),
    [(0, True, 100), (99, True, 100), (100, False, 100), (150, False, 51), (203, False, 0), (204, True, 0)],
)
def test_groups_that_damage_has_hurt(
    cli: Cli, tmp_path: Path, committed: int, out_of_range: bool, lost_ahead: int
) -> None:
    """The log has the offsets 0 to 99 no more, 100 is its first, and 101 to 200 are in no file."""
    log_of(tmp_path / "__consumer_offsets-0", (commit_key(0), commit_value(committed)))
    (tmp_path / "t-0").mkdir()
    for base, count in ((100, 1), (201, 2)):
        builder = magicbyte.RecordsBuilder()
        for offset in range(base, base + count):
            builder.append(offset, 1, b"k", b"v")
        (tmp_path / "t-0" / f"{base:020}.log").write_bytes(builder.build())
    row = cli.json("offsets", tmp_path, code=int(out_of_range or lost_ahead > 0))["offsets"][0]
    assert (row["log_start_offset"], row["log_end_offset"]) == (100, 203)
    assert (row["out_of_range"], row["lost_ahead"]) == (out_of_range, lost_ahead)
    lines = cli("offsets", tmp_path, code=int(out_of_range or lost_ahead > 0)).splitlines()
    assert (" yes " in lines[1]) == out_of_range


def test_topics_and_offsets_are_chosen(disks: tuple[Path, Path], cli: Cli) -> None:
    disk = disks[1]
    log_of(disk / "other-0", (b"k", b"v"))
    assert [one["topic"] for one in cli.json("topics", "--topic", "t*", disk)["topics"]] == ["t"]
    cli("topics", "--topic", "nothing", disk, code=2)
    assert "no topic is chosen; there are partitions of __cluster_metadata, __consumer_offsets" in cli.error
    assert {place[2] for place in offsets_of(cli, disk)} == {0, 1}
    assert {place[2] for place in offsets_of(cli, "--partition", 1, disk)} == {1}
    assert offsets_of(cli, "--topic", "other", disk) == {}
    # Its own topic need not be chosen, and the lag is known if the partition is.
    assert offsets_of(cli, "--topic", "t", "--exclude-internal", disk)["g", "t", 0]["lag"] == 2


# --- tables of ingest ----------------------------------------------------------------------------


def table(out: Path, name: str) -> list[dict[str, Any]]:
    return ds.dataset(out / name).to_table().to_pylist()


def test_offsets_and_topics_are_tables(disks: tuple[Path, Path], cli: Cli, tmp_path: Path) -> None:
    disk, out = disks[1], tmp_path / "out"
    report = cli.json("ingest", disk, out)
    assert report["balanced"]
    assert report["internal_topics"] == {"pending_offsets": 0, "problems": [], "left_out": []}
    assert {name: one["rows"] for name, one in report["tables"].items()} == {
        "records": 9, "batches": 3, "problems": 0, "offsets": 2, "topics": 1,
    }  # fmt: skip
    expected = cli.json("offsets", disk)["offsets"]
    rows = sorted(table(out, "offsets"), key=lambda row: row["partition"])
    assert [(row["group"], row["topic"], row["partition"], row["offset"]) for row in rows] == [
        ("g", "t", 0, 2),
        ("g", "t", 1, 3),
    ]
    assert [(row["lag"], row["logEndOffset"]) for row in rows] == [
        (one["lag"], one["log_end_offset"]) for one in expected
    ]
    assert rows[0]["commitTimestamp"] == 7
    (row,) = table(out, "topics")
    assert row == {
        "topic": "t", "topicId": row["topicId"], "cleanupPolicy": "compact", "policyFrom": "topic",
        "configs": [("cleanup.policy", "compact")], "partition": 0, "leader": 0, "leaderEpoch": 0,
        "replicas": [0], "isr": [0], "here": True,
    }  # fmt: skip
    # An output without these tables replaces one with them.
    report = cli.json("ingest", "--overwrite", "--exclude-internal", disk, out)
    assert set(report["tables"]) == {"records", "batches", "problems"}
    names = {path.name for path in out.iterdir()}
    assert names == {"records", "batches", "problems", "reconciliation.json", "_SUCCESS"}
    assert cli.json("ingest", "--overwrite", disk, out)["tables"]["offsets"]["rows"] == 2


def test_tables_of_a_real_broker(cli: Cli, tmp_path: Path) -> None:
    copied("cluster_metadata", "__cluster_metadata-0", tmp_path / "logs")
    copied("consumer_offsets_0", "__consumer_offsets-0", tmp_path / "logs")
    report = cli.json("ingest", tmp_path / "logs", tmp_path / "out")
    assert report["balanced"]
    offsets = cli.json("offsets", tmp_path / "logs")["offsets"]
    assert len(table(tmp_path / "out", "offsets")) == len(offsets) > 0
    topics = cli.json("topics", tmp_path / "logs")["topics"]
    rows = table(tmp_path / "out", "topics")
    assert {row["topic"] for row in rows} == {one["topic"] for one in topics}
    assert len(rows) == sum(len(one["partitions"]) for one in topics)


def test_offsets_that_cannot_be_decoded_are_reported(cli: Cli, tmp_path: Path) -> None:
    log_of(tmp_path / "logs" / "__consumer_offsets-0", (commit_key(0), b"\0\3cut"))
    report = cli.json("ingest", tmp_path / "logs", tmp_path / "out", code=1)
    (problem,) = report["internal_topics"]["problems"]
    assert "offset 0" in problem
    assert report["tables"]["offsets"]["rows"] == 0
    assert problem in cli("ingest", tmp_path / "logs", tmp_path / "again", code=1)
