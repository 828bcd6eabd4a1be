"""The fold of the cluster's metadata: every kind of record, and several copies of which some are damaged."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import metadata_records as records
import pytest
from conftest import KAFKA
from magicbyte.internal_topics.metadata.cluster import ClusterState
from magicbyte.internal_topics.metadata.configs import BROKER, CLIENT_METRICS, GROUP
from magicbyte.jobs.find.metadata_log import FoldedMetadata, fold_metadata
from magicbyte.jobs.find.partitions import list_directory

CREATED = [records.topic("orders", 1), *(records.partition(1, number, [1, 2, 3]) for number in range(9))]
RECORDS = [*CREATED, *(records.config(2, "orders", f"config{number}", "1") for number in range(10))]
EVERY = 5
"""Records of a batch."""


def state_of(*values: bytes) -> ClusterState:
    state = ClusterState()
    for value in values:
        state.replay(value)
    return state


def fold(*log_dirs: Path) -> FoldedMetadata:
    return fold_metadata([list_directory(str(one / "__cluster_metadata-0")) for one in log_dirs])


def damage(path: Path, batch: bytes, *, at: int = 80, flips: int = 2) -> None:
    """Flips bits in a batch of a file: one can be repaired, two cannot."""
    data = bytearray(path.read_bytes())
    start = data.index(batch)
    for flip in range(flips):
        data[start + at + flip] ^= 0x10
    path.write_bytes(data)


def configs_of(folded: FoldedMetadata) -> list[str]:
    return sorted(folded.state.topic_configs("orders"))


ALL = sorted(f"config{number}" for number in range(10))


def test_partitions_change() -> None:
    state = state_of(
        records.topic("orders", 1),
        records.partition(1, 0, [1, 2, 3], isr=[1], elr=[2]),
        records.partition_change(1, 0, {0: records.ints([1, 2]), 1: struct.pack(">i", 2)}),
        records.partition_change(
            1, 0, {2: records.ints([4, 2, 1]), 3: records.ints([1]), 4: records.ints([4])}
        ),
        records.partition_change(1, 9, {0: records.ints([1])}),
        records.partition_change(2, 0, {0: records.ints([1])}),
    )
    (topic,) = state.topics.values()
    found = topic.partitions[0]
    assert (found.isr, found.leader, found.leader_epoch, found.partition_epoch) == ([1, 2], 2, 4, 9)
    assert (found.replicas, found.removing_replicas, found.adding_replicas) == ([4, 2, 1], [1], [4])
    assert found.elr == [2]
    state.replay(records.frame(28, records.text("other") + b"\0"))
    assert found.elr == [2]
    state.replay(records.frame(28, records.text("") + b"\0"))
    assert (found.elr, found.last_known_elr, found.partition_epoch) == ([], [], 10)
    state.replay(records.frame(28, records.text("") + b"\0"))
    assert found.partition_epoch == 10  # nothing to clear


def test_brokers() -> None:
    one, two = records.topic_id(11), records.topic_id(12)
    state = state_of(records.broker(1, [one, two], fenced=True), records.broker(2, []))
    broker = state.nodes.brokers[1]
    assert (broker.rack, broker.fenced, len(broker.log_dirs)) == ("rack1", True, 2)
    assert [(one.host, one.port) for one in broker.endpoints] == [("kafka.example", 9093)]
    state.replay(records.broker_change(1, {0: b"\xff", 1: b"\1"}))
    assert (broker.fenced, broker.in_controlled_shutdown) == (False, True)
    state.replay(records.broker_change(1, {2: records.uuids([two])}))
    assert state.log_dirs(1) == ["AAAAAAAAAAAAAAAAAAAADA"]
    state.replay(records.frame(7, struct.pack(">iq", 2, 5) + b"\0"))
    assert state.nodes.brokers[2].fenced
    state.replay(records.frame(8, struct.pack(">iq", 2, 5) + b"\0"))
    assert not state.nodes.brokers[2].fenced
    state.replay(records.frame(1, struct.pack(">iq", 1, 5) + b"\0"))
    assert list(state.nodes.brokers) == [2]
    # The registration is in a part of the log that damage took.
    state.replay(records.broker_change(9, {2: records.uuids([one])}))
    assert state.log_dirs(9) == ["AAAAAAAAAAAAAAAAAAAACw"]


def test_settings() -> None:
    state = state_of(
        records.feature("metadata.version", 27),
        records.feature("group.version", 1),
        records.feature("group.version", 0),
        records.producer_ids(3000),
        records.config(BROKER, "", "log.retention.ms", "1"),
        records.config(BROKER, "1", "log.retention.ms", "2"),
        records.config(GROUP, "billing", "consumer.session.timeout.ms", "45000"),
        records.config(CLIENT_METRICS, "all", "interval.ms", "1000"),
        records.config(CLIENT_METRICS, "all", "interval.ms", None),
        records.quota({"user": "ann", "client-id": None}, "producer_byte_rate", 1024.0),
        records.quota({"user": None}, "request_percentage", 50.0),
        records.quota({"user": None}, "request_percentage", 0, remove=True),
    )
    assert state.features == {"metadata.version": 27}
    assert state.next_producer_id == 3000
    assert state.configs.of_type(BROKER) == {"": {"log.retention.ms": "1"}, "1": {"log.retention.ms": "2"}}
    assert state.configs.of_type(GROUP) == {"billing": {"consumer.session.timeout.ms": "45000"}}
    assert state.configs.of_type(CLIENT_METRICS) == {}
    assert state.quotas.by_entity == {(("client-id", None), ("user", "ann")): {"producer_byte_rate": 1024.0}}


def test_security_has_no_secrets() -> None:
    state = state_of(
        records.acl(1, "User:ann", "orders-"),
        records.acl(2, "User:bob", "x"),
        records.frame(19, records.topic_id(2) + b"\0"),
        records.scram("ann"),
        records.scram("bob", 1),
        records.scram("later", 7),
        records.frame(22, records.text("bob") + b"\1\0"),
        records.token("t1"),
        records.token("t2"),
        records.frame(26, records.text("t2") + b"\0"),
        records.config(BROKER, "1", "ssl.keystore.password", "s3cret"),
    )
    (acl,) = state.security.acls.values()
    assert acl.principal == "User:ann"
    assert (acl.resource_type, acl.pattern_type, acl.operation, acl.permission_type) == (
        "TOPIC",
        "PREFIXED",
        "READ",
        "ALLOW",
    )
    assert [(one.name, one.mechanism) for one in state.security.scram_users.values()] == [
        ("ann", "SCRAM-SHA-512"),
        ("later", "UNKNOWN"),
    ]
    assert [one.renewers for one in state.security.delegation_tokens.values()] == [("User:bob",)]
    assert state.broker_configs("1") == {"ssl.keystore.password": "[hidden]"}
    assert "s3cret" not in repr([vars(state.security), state.configs.of_type(BROKER)])


def test_a_snapshot_and_what_follows(tmp_path: Path) -> None:
    records.write_snapshot(tmp_path, RECORDS[:-1], 100)
    # The log begins before the snapshot's end, as it does in Kafka: what the snapshot has is not read again.
    older = [records.config(2, "orders", "older", "1")] * 10
    log = [*records.batches(older, start=90, size=10), *records.batches(RECORDS[-1:], start=100)]
    records.write_log(tmp_path, log, base=90)
    folded = fold(tmp_path)
    assert folded.problems == []
    assert configs_of(folded) == ALL
    assert [voter.voter_id for voter in folded.state.quorum.voters] == [1, 2, 3]
    assert folded.state.quorum.voters[0].endpoints[0].host == "node1"
    assert folded.state.quorum.kraft_version == 1
    assert folded.next_offset == 101
    (copy,) = folded.copies
    assert (copy.leader_epoch, copy.last_offset) == (1, 100)
    assert copy.snapshot == "00000000000000000100-0000000001.checkpoint"


def test_a_snapshot_alone(tmp_path: Path) -> None:
    records.write_snapshot(tmp_path, RECORDS, 100, epoch=4)
    folded = fold(tmp_path)
    assert folded.problems == []
    assert (folded.copies[0].leader_epoch, folded.copies[0].last_offset) == (4, 99)
    assert configs_of(folded) == ALL


def test_a_damaged_snapshot_gives_way_to_an_older_one(tmp_path: Path) -> None:
    newest = records.write_snapshot(tmp_path, RECORDS, 100)
    damage(newest, records.batches(RECORDS, start=3, size=50)[0])
    records.write_snapshot(tmp_path, RECORDS[:-1], 99)
    records.write_log(tmp_path, records.batches(RECORDS[-1:], start=99), base=99)
    folded = fold(tmp_path)
    assert folded.snapshot is not None
    assert folded.snapshot.endswith("/00000000000000000099-0000000001.checkpoint")
    assert configs_of(folded) == ALL
    assert any("the snapshot is not whole" in problem for problem in folded.problems)


@pytest.mark.parametrize("cut", [1, 70, 200])
def test_a_cut_snapshot_is_not_whole(tmp_path: Path, cut: int) -> None:
    path = records.write_snapshot(tmp_path, RECORDS, len(RECORDS))
    path.write_bytes(path.read_bytes()[:-cut])
    records.write_log(tmp_path, records.batches(RECORDS))
    folded = fold(tmp_path)
    assert folded.snapshot is None
    assert configs_of(folded) == ALL
    assert any("the snapshot is not whole" in problem for problem in folded.problems)


def test_the_first_records_are_not_in_the_log(tmp_path: Path) -> None:
    """Since Kafka 4.4 a node is formatted with a snapshot that ends at 0, where the log begins (KIP-1170)."""
    path = records.write_snapshot(tmp_path, RECORDS[:-1], 0, epoch=0)
    records.write_log(tmp_path, records.batches(RECORDS[-1:]))
    folded = fold(tmp_path)
    assert (folded.problems, folded.is_whole, folded.next_offset) == ([], True, 1)
    assert configs_of(folded) == ALL
    path.write_bytes(path.read_bytes()[:-70])
    folded = fold(tmp_path)
    assert configs_of(folded) == ALL
    assert not folded.is_whole
    assert any("the snapshot is not whole" in problem for problem in folded.problems)


def test_a_flipped_bit_is_repaired(tmp_path: Path) -> None:
    log = records.batches(RECORDS, size=EVERY)
    for number, batch in enumerate(log):
        path = records.write_log(tmp_path / str(number), log)
        damage(path, batch, flips=1)
        folded = fold(tmp_path / str(number))
        assert configs_of(folded) == ALL, number
        assert len(folded.state.topics["AAAAAAAAAAAAAAAAAAAAAQ"].partitions) == 9
        assert folded.lost == []
        assert any("a repair that its CRC proves" in problem for problem in folded.problems)


def test_a_log_is_whole_unless_records_may_be_missing(tmp_path: Path) -> None:
    log = records.batches(RECORDS, size=EVERY)
    path = records.write_log(tmp_path, log)
    whole = path.read_bytes()
    assert fold(tmp_path).is_whole
    for at, flips, expected in ((1, 1, True), (1, 2, False), (3, 1, True), (3, 2, False)):
        damage(path, log[at], flips=flips)
        assert fold(tmp_path).is_whole is expected, (at, flips)
        path.write_bytes(whole)
    path.write_bytes(whole[:-10])
    assert not fold(tmp_path).is_whole
    path.write_bytes(whole + bytes(100))  # allocated ahead
    assert fold(tmp_path).is_whole
    path.write_bytes(whole + records.batches([records.frame(4, b"x")], start=len(RECORDS))[0])
    assert not fold(tmp_path).is_whole


def test_another_copy_has_what_one_lost(tmp_path: Path) -> None:
    """Each copy lost another batch; nothing is lost."""
    log = records.batches(RECORDS, size=EVERY)
    copies = [tmp_path / name for name in "abc"]
    for at, copy in enumerate(copies):
        damage(records.write_log(copy, log), log[at])
    for order in (copies, copies[::-1]):
        folded = fold(*order)
        assert configs_of(folded) == ALL
        assert folded.lost == []
        assert len([problem for problem in folded.problems if "crc" in problem.lower()]) == 3, folded.problems


def test_what_no_copy_has_is_named(tmp_path: Path) -> None:
    log = records.batches(RECORDS, size=EVERY)
    for name in "abc":
        damage(records.write_log(tmp_path / name, log), log[2])
    folded = fold(*(tmp_path / name for name in "abc"))
    assert folded.lost == [(10, 14)]
    assert any(
        "no readable copy of __cluster_metadata has offsets 10 to 14" in one for one in folded.problems
    )
    assert configs_of(folded) == ALL[5:]


def test_the_first_batches_are_only_in_an_older_copy(tmp_path: Path) -> None:
    log = records.batches(RECORDS, size=EVERY)
    records.write_log(tmp_path / "new", log[1:], base=EVERY)
    records.write_log(tmp_path / "old", log[:2])
    folded = fold(tmp_path / "new", tmp_path / "old")
    assert (configs_of(folded), folded.problems) == (ALL, [])
    assert [Path(copy.path).parent.name for copy in folded.copies] == ["new", "old"]
    folded = fold(tmp_path / "new")
    assert folded.lost == [(0, EVERY - 1)]


def branch(common: Sequence[bytes], name: str, epoch: int, size: int) -> list[bytes]:
    """A log that goes on with its own records."""
    own = [records.config(2, "orders", f"{name}{number}", "1") for number in range(size)]
    return [*common, *records.batches(own, start=len(RECORDS), epoch=epoch)]


def test_the_higher_epoch_leads(tmp_path: Path) -> None:
    """A longer branch of an older leader was not committed."""
    common = records.batches(RECORDS, size=EVERY)
    records.write_log(tmp_path / "lost", branch(common, "lost", 2, 9))
    path = records.write_log(tmp_path / "led", branch(common, "led", 3, 2))
    damage(path, common[1])
    folded = fold(tmp_path / "lost", tmp_path / "led")
    assert configs_of(folded) == [*ALL, "led0", "led1"]
    assert folded.lost == []
    (differs,) = (problem for problem in folded.problems if "differs from" in problem)
    assert f"at offset {len(RECORDS)}, with leader epoch 2 in place of 3" in differs


def test_a_lost_batch_of_the_leader_is_not_taken_from_another_branch(tmp_path: Path) -> None:
    common = records.batches(RECORDS, size=EVERY)
    led = branch(common, "led", 3, 4)
    records.write_log(tmp_path / "lost", branch(common, "lost", 2, 4))
    damage(records.write_log(tmp_path / "led", led), led[-4])
    folded = fold(tmp_path / "lost", tmp_path / "led")
    assert folded.lost == [(len(RECORDS), len(RECORDS))]
    assert configs_of(folded) == [*ALL, "led1", "led2", "led3"]


def test_the_quorum_of_a_real_log() -> None:
    folded = fold_metadata([list_directory(str(KAFKA / "cluster_metadata"))])
    quorum = folded.state.quorum
    assert folded.problems == []
    # Nothing after the snapshot elects a leader, so quorum-state tells it.
    assert (quorum.leader, quorum.leader_epoch) == (1, 5)
    assert [(voter.voter_id, voter.directory_id) for voter in quorum.voters] == [(1, None)]
    assert folded.state.next_producer_id == 4000
    assert folded.state.features["metadata.version"] == 30
    assert folded.state.nodes.controllers[1].endpoints[0].port == 19093


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"leaderId": "x"}',
        b"[" * 9999,
        b"\xff",
        b'{"leaderId": 1e400, "leaderEpoch": 1}',
        b'{"leaderId": 1, "leaderEpoch": 99999999999999999999}',
        b'{"leaderId": 1, "leaderEpoch": 1, "currentVoters": [{"voterId": 1e400}]}',
        b'{"leaderId": true, "leaderEpoch": 1}',
    ],
    ids=str,
)
def test_a_broken_quorum_state(tmp_path: Path, content: bytes) -> None:
    records.write_log(tmp_path, records.batches(RECORDS))
    (tmp_path / "__cluster_metadata-0" / "quorum-state").write_bytes(content)
    folded = fold(tmp_path)
    assert configs_of(folded) == ALL
    assert any("is not a quorum-state" in problem for problem in folded.problems)


def test_control_records_of_a_leader(tmp_path: Path) -> None:
    elected = bytes(2) + struct.pack(">i", 2)
    voter = b"".join(struct.pack(">i", one) + b"\0" for one in (1, 2, 3))
    elected += records.varint(4) + voter + records.varint(1) + b"\0"
    log = [records.control(2, elected, 0, 6), *records.batches(RECORDS, start=1, epoch=6)]
    records.write_log(tmp_path, log)
    quorum = fold(tmp_path).state.quorum
    assert (quorum.leader, quorum.leader_epoch) == (2, 6)
    assert [one.voter_id for one in quorum.voters] == [1, 2, 3]
