"""`magicbyte topics` and `magicbyte offsets`: the state that Kafka's internal topics add up to."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import KAFKA, Cli
from magicbyte.internal_topics.cluster import ClusterState
from magicbyte.internal_topics.groups import GroupsState


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
    assert offsets_of(cli, "--group", "nobody", tmp_path) == {}
    assert "no partition of __consumer_offsets" in (cli("offsets", KAFKA / "v2_none", code=2) or cli.error)


def string(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def commit_key(partition: int = 0) -> bytes:
    return b"\0\1" + string("g") + string("t") + partition.to_bytes(4, "big")


def commit_value(offset: int) -> bytes:
    return b"\0\3" + offset.to_bytes(8, "big") + b"\xff" * 4 + string("") + (7).to_bytes(8, "big")


def test_transactions_count_when_committed() -> None:
    state = GroupsState()
    state.replay(0, commit_key(0), commit_value(10), None)
    state.replay(1, commit_key(0), commit_value(20), 5)
    state.replay(2, commit_key(1), commit_value(21), 5)
    state.replay(3, commit_key(1), commit_value(30), 6)
    assert [one.offset for one in state.commits] == [10]
    assert state.pending == 3
    state.replay(4, commit_key(0), commit_value(11), None)
    state.end_transaction(6, committed=False)
    state.end_transaction(5, committed=True)
    # The commit outside of the transaction is later in the log.
    assert [(one.partition, one.offset) for one in state.commits] == [(0, 11), (1, 21)]
    state.replay(5, commit_key(1), commit_value(40), 7)
    state.replay(6, commit_key(1), None, None)
    state.end_transaction(7, committed=True)
    assert [(one.partition, one.offset) for one in state.commits] == [(0, 11)]


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
