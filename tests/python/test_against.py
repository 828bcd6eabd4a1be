"""`verify --against`: files and what a cluster sends, which `magicbyte serve` plays here."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import KAFKA, Cli
from magicbyte.errors import RefusedError

TOPICS = ("v2_lz4", "v2_txn", "v1_gzip", "v2_compacted_txn", "mixed_012", "v0_none")
FIRST_LOG = f"{0:020}.log"


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The address of a cluster with some partitions of real brokers."""
    with magicbyte.serve([KAFKA / topic for topic in TOPICS], listen="127.0.0.1:0") as server:
        yield server.bootstrap_servers


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A copy of these partitions."""
    root = tmp_path / "files"
    for topic in TOPICS:
        shutil.copytree(KAFKA / topic, root / topic)
    return root


def levels(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The partitions of each level by their topics."""
    return {
        level["isolation_level"]: {one["topic"]: one for one in level["partitions"]}
        for level in report["cluster"]["levels"]
    }


def test_equal(cli: Cli, served: str, files: Path) -> None:
    """At both levels; aborted records count only at the first."""
    report = cli.json("verify", "--against", served, files)
    assert report["cluster"]["equal"]
    found = levels(report)
    assert set(found) == {"read_uncommitted", "read_committed"}
    for level in found.values():
        assert set(level) == set(TOPICS)
        for topic, one in level.items():
            assert one["result"] == "equal", topic
            assert one["records_a"] == one["records_b"] > 0, topic
    assert found["read_committed"]["v2_txn"]["records_b"] < found["read_uncommitted"]["v2_txn"]["records_b"]
    text = cli("verify", "--against", served, files)
    assert f"{served}, read_committed: 6 of 6 partitions equal" in text


def test_the_newest_of_several_copies_counts(served: str, files: Path) -> None:
    """As on the disks of all brokers, of which some lag behind."""
    behind = files.parent / "behind"
    shutil.copytree(files / "v2_lz4", behind / "v2_lz4")
    *_, log = sorted((behind / "v2_lz4").glob("*.log"))
    first = next(iter(magicbyte.read_batches(log.read_bytes())))
    log.write_bytes(log.read_bytes()[: first.size_in_bytes])
    report = magicbyte.verify([behind, files], against=served)
    assert report["cluster"] is not None
    assert report["cluster"]["equal"]


def test_records_that_only_one_side_has(cli: Cli, served: str, files: Path) -> None:
    """The files end before the last batch of the first segment, and have another record."""
    log = files / "v2_lz4" / FIRST_LOG
    batches = list(magicbyte.read_batches(log.read_bytes()))
    first = batches[0].base_offset
    other = magicbyte.RecordsBuilder(compression="lz4")
    for record in batches[0]:
        value = b"another value" if record.offset == first else record.value_bytes
        other.append(record.offset, record.timestamp, record.key_bytes, value)
    shutil.rmtree(log.parent)
    log.parent.mkdir()
    log.write_bytes(other.build() + b"".join(batch.to_bytes() for batch in batches[1:-1]))
    report = cli.json("verify", "--against", served, files, code=3)
    for level in levels(report).values():
        assert [topic for topic, one in level.items() if one["result"] != "equal"] == ["v2_lz4"]
        ranges = level["v2_lz4"]["ranges"]
        assert ranges[-1]["first_offset"] == batches[-1].base_offset
        assert ranges[-1]["difference"] == "only_in_b"
        assert any(one["first_offset"] <= first <= one["last_offset"] for one in ranges)
    text = cli("verify", "--against", served, files, code=3)
    assert f"{served}, read_uncommitted: 5 of 6 partitions equal" in text
    assert "only in the cluster" in text


def test_partitions_that_the_cluster_does_not_have(cli: Cli, served: str, files: Path) -> None:
    """The files may be those of one broker: what else the cluster has is no difference."""
    shutil.copytree(files / "v2_lz4", files / "unknown-3")
    for topic in TOPICS[1:]:
        shutil.rmtree(files / topic)
    text = cli("verify", "--against", served, files, code=3)
    assert f"{served}, read_committed: 1 of 2 partitions equal" in text
    assert "unknown-3: only in the files" in text
    cli("verify", "--against", served, "--exclude", "unknown", files)


def test_positions_of_groups(cli: Cli, served: str, files: Path) -> None:
    """The records of Kafka's own topics are not compared: a running cluster keeps writing to them."""
    shutil.copytree(KAFKA / "consumer_offsets_0", files / "__consumer_offsets-0")
    committed = magicbyte.offsets(files)["offsets"]
    report = cli.json("verify", "--against", served, files, code=3)["cluster"]
    assert report["not_compared"] == ["__consumer_offsets"]
    assert all(level["equal"] for level in report["levels"])
    groups = report["groups"]
    assert groups["missing"] == len(committed) == len(groups["positions"]) > 0
    assert (groups["equal"], groups["ahead"], groups["behind"], groups["positions_left_out"]) == (0, 0, 0, 0)
    assert not groups["unread"]
    for one, found in zip(committed, groups["positions"], strict=True):
        assert one["offset"] == found["offset"]
        assert found["cluster_offset"] is None
    text = cli("verify", "--against", served, files, code=3)
    assert f"0 equal, 0 ahead, 0 behind, {len(committed)} missing in the cluster" in text
    assert cli.json("verify", "--against", served, "--exclude", "__*", files)["cluster"]["groups"] is None


def test_positions_that_cannot_be_read_are_not_equal(cli: Cli, served: str, files: Path) -> None:
    """Nobody knows which positions the damaged batches had."""
    directory = files / "__consumer_offsets-0"
    shutil.copytree(KAFKA / "consumer_offsets_0", directory)
    for path in directory.glob("*.log"):
        data = bytearray(path.read_bytes())
        for batch in magicbyte.read_batches(bytes(data)):
            data[batch.position + 17] ^= 1  # the CRC
        path.write_bytes(data)
    assert magicbyte.offsets(files)["offsets"] == []
    report = cli.json("verify", "--against", served, files, code=1)
    assert report["cluster"]["groups"]["unread"]
    assert not report["cluster"]["equal"]


def test_nothing_to_compare_is_not_equal(cli: Cli, served: str, files: Path) -> None:
    for topic in TOPICS:
        shutil.rmtree(files / topic)
    shutil.copytree(KAFKA / "v2_txn", files / "__transaction_state-0")
    report = cli.json("verify", "--against", served, files, code=1)["cluster"]
    assert (report["equal"], report["differs"]) == (False, False)
    assert report["not_compared"] == ["__transaction_state"]


def test_damaged_files_differ(cli: Cli, served: str, files: Path) -> None:
    """A quarantined range lacks its records."""
    log = files / "v2_lz4" / FIRST_LOG
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    assert "only in the cluster" in cli("verify", "--against", served, files, code=3)


def test_clusters_that_do_not_answer(cli: Cli, files: Path) -> None:
    """The address is named, and the files are not read first."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        cli("verify", "--against", address, files, code=3)
    assert address in cli.error
    with pytest.raises(ConnectionError, match=address):
        magicbyte.verify(files, against=address)


@pytest.mark.parametrize(
    "wrong", ["", "broker", "broker:", "broker:0", "kafka://broker:9092/orders", "a:1,,b:2"]
)
def test_addresses_that_are_none(files: Path, wrong: str) -> None:
    with pytest.raises(RefusedError, match="expected HOST:PORT"):
        magicbyte.verify(files, against=wrong)


def test_a_cluster_may_be_a_url(served: str, files: Path) -> None:
    report = magicbyte.verify(files, against=f"kafka://{served}")["cluster"]
    assert report is not None
    assert report["equal"]
    with pytest.raises(OSError, match="TLS"):
        magicbyte.verify(files, against=f"kafkas://{served}")


def test_properties(cli: Cli, served: str, files: Path, tmp_path: Path) -> None:
    """Those of Kafka's clients; no message has a password."""
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=PLAINTEXT\nclient.id=checker\n")
    command = ("verify", "--against", served, "--command-config", config, files)
    cli(*command)
    secret = 'sasl.jaas.config=M required username="u" password="hunter2";'
    for text, expected in (
        ("security.protocol=SSL\nssl.truststore.location=a.jks\n", "JKS is Java's own format: expected PEM"),
        (f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n{secret}\n", "sasl.mechanism: GSSAPI"),
        (f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{secret}\n", "SaslHandshake"),
        (f"security.protocol=nothing\n{secret}\n", "security.protocol: expected"),
    ):
        config.write_text(text)
        cli(*command, code=3 if expected == "SaslHandshake" else 2)
        assert expected in cli.error
        assert "hunter2" not in cli.error
    cli("verify", "--command-config", config, files, code=2)
    assert "no running cluster" in cli.error
    with pytest.raises(RefusedError, match=r"missing\.properties"):
        magicbyte.verify(files, against=served, command_config=tmp_path / "missing.properties")


def test_a_report_without_a_cluster(cli: Cli, files: Path) -> None:
    assert cli.json("verify", files)["cluster"] is None
