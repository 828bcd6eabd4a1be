"""`verify --against` real brokers: every partition of the fixtures, transactions, TLS and each mechanism of SASL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import magicbyte
import pytest
from broker_versions import Node
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_broker import Broker, Tools
from secure_broker import PASSWORD, SecureBroker

pytestmark = pytest.mark.interop

FIXTURES = [
    "mixed_012", "v0_gzip", "v0_lz4", "v0_none", "v0_snappy", "v1_gzip", "v1_logappend", "v1_lz4", "v1_none",
    "v1_snappy", "v2_big_batch", "v2_big_record", "v2_compacted", "v2_compacted_txn", "v2_epochs", "v2_gzip",
    "v2_headers", "v2_idempotent", "v2_large_batches", "v2_logappend", "v2_lz4", "v2_mixed_codecs", "v2_none",
    "v2_nulls", "v2_snappy", "v2_timestamps", "v2_tombstones", "v2_txn", "v2_zstd",
]  # fmt: skip


def test_fixtures_in_a_real_broker(broker: Broker, kafka: Path, tmp_path: Path) -> None:
    """The broker has opened the partitions, and sends them to consumers of both levels."""
    named = broker.open({name: kafka / name for name in FIXTURES}, clean=True)
    copies = tmp_path / "logs"
    for name, topic in named.items():
        shutil.copytree(kafka / name, copies / f"{topic}-0")
    report = magicbyte.verify(copies, against=broker.bootstrap)
    comparison = report["cluster"]
    assert comparison is not None
    for level in comparison["levels"]:
        names = {topic: name for name, topic in named.items()}
        different = [(names[one["topic"]], one) for one in level["partitions"] if one["result"] != "equal"]
        assert not different
        assert len(level["partitions"]) == len(FIXTURES)
    assert comparison["equal"]

    # One record less in the files.
    log = copies / f"{named['v2_none']}-0" / f"{0:020}.log"
    batches = [batch.to_bytes() for batch in magicbyte.read_batches(log.read_bytes())]
    log.write_bytes(b"".join(batches[:-1]))
    comparison = magicbyte.verify(copies, against=broker.bootstrap)["cluster"]
    assert comparison is not None
    assert not comparison["equal"]
    for level in comparison["levels"]:
        (one,) = [one for one in level["partitions"] if one["result"] != "equal"]
        assert one["topic"] == named["v2_none"]
        assert {range_["difference"] for range_ in one["ranges"]} == {"only_in_b"}


@pytest.mark.parametrize("version", ["old", "new"])
def test_logs_of_old_and_new_brokers(request: pytest.FixtureRequest, version: str, tmp_path: Path) -> None:
    """Several partitions and codecs, read while the broker runs."""
    node: Node = request.getfixturevalue(version)
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for codec in ("none", "zstd"):
        topic = f"against-{codec}"
        admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(60)
        settings = {"bootstrap.servers": node.bootstrap, "compression.type": codec, "batch.size": 20_000}
        producer = Producer({**settings, "enable.idempotence": True})
        for number in range(30_000):
            producer.produce(topic, b"value %d" % number, b"key %d" % number, partition=number % 3)
            producer.poll(0)
        assert producer.flush(60) == 0
    copies = tmp_path / "logs"
    for directory in sorted(node.logs.glob("against-*")):
        shutil.copytree(directory, copies / directory.name)
    comparison = magicbyte.verify(copies, against=node.bootstrap)["cluster"]
    assert comparison is not None
    assert comparison["equal"], comparison
    for level in comparison["levels"]:
        assert [one["records_b"] for one in level["partitions"]] == [10_000] * 6


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """A broker with the user alice."""
    node = SecureBroker(tmp_path_factory.mktemp("secure") / "root")
    tools = Tools()
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        change = ("--alter", "--add-config", f"{mechanism}=[password={PASSWORD}]")
        tools.run(
            "kafka-configs", "--bootstrap-server", node.broker.bootstrap, *change,
            "--entity-type", "users", "--entity-name", "alice",
        )  # fmt: skip
    tools.close()
    yield node
    node.broker.kill()


@pytest.fixture
def files(kafka: Path, tmp_path: Path) -> Path:
    """A partition whose topic the broker does not have."""
    shutil.copytree(kafka / "v2_lz4", tmp_path / "files" / "orders-0")
    return tmp_path / "files"


def answered(files: Path, secure: SecureBroker, listener: str, config: Path) -> bool:
    """True if the broker has accepted the client, and so could say that it has no such topic."""
    address = f"127.0.0.1:{secure.ports[listener]}"
    comparison = magicbyte.verify(files, against=address, command_config=config)["cluster"]
    assert comparison is not None
    return all(one["result"] == "only_in_a" for level in comparison["levels"] for one in level["partitions"])


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_passwords(files: Path, secure: SecureBroker, listener: str, mechanism: str) -> None:
    config = secure.properties(listener, mechanism=mechanism)
    assert answered(files, secure, listener, config)
    config = secure.properties(listener, mechanism=mechanism, password="not the password")
    with pytest.raises(PermissionError, match="does not accept the user") as raised:
        answered(files, secure, listener, config)
    assert "not the password" not in str(raised.value)


def test_tokens(files: Path, secure: SecureBroker) -> None:
    """Tokens come from a file or a command; what is not a token is refused."""
    token = secure.token()
    for source in (
        f"sasl.oauthbearer.token.endpoint.url=file://{token}",
        f"magicbyte.sasl.oauthbearer.token.command=cat {token}",
    ):
        config = secure.properties("SASL_SSL", source, mechanism="OAUTHBEARER")
        assert answered(files, secure, "SASL_SSL", config)
    for wrong, expected in (
        ("e30.e30.", "SaslAuthenticate"),
        ("a\x01b", "no token from"),
        ("", "no token from"),
    ):
        token.write_text(wrong)
        with pytest.raises((PermissionError, ConnectionError), match=expected):
            answered(files, secure, "SASL_SSL", config)


def test_certificates(files: Path, secure: SecureBroker) -> None:
    """The broker's has to be of a trusted issuer and for its host; the client's is asked for."""
    mine = ("ssl.keystore.type=PEM", f"ssl.keystore.location={secure.root / 'client.pem'}")
    assert answered(files, secure, "SSL", secure.properties("SSL", *mine))
    strangers = ("ssl.keystore.type=PEM", f"ssl.keystore.location={secure.root / 'stranger.pem'}")
    for lines, expected in (
        ((*mine, f"ssl.truststore.location={secure.other_ca}"), "UnknownIssuer|TLS"),
        ((), "TLS|certificate"),
        (strangers, "TLS|certificate"),
    ):
        config = secure.properties("SSL")
        # The last line of a name counts.
        config.write_text(config.read_text() + "\n".join(lines) + "\n")
        with pytest.raises((PermissionError, ConnectionError), match=expected):
            answered(files, secure, "SSL", config)


def test_the_wrong_listener(files: Path, secure: SecureBroker) -> None:
    """TLS where there is none, and none where there is TLS: an error in time."""
    tls = secure.properties("SASL_SSL", mechanism="PLAIN")
    with pytest.raises((PermissionError, ConnectionError, TimeoutError)):
        answered(files, secure, "SASL_PLAINTEXT", tls)
    plain = secure.properties("SASL_PLAINTEXT", "request.timeout.ms=3000", mechanism="PLAIN")
    with pytest.raises((PermissionError, ConnectionError, TimeoutError)):
        answered(files, secure, "SASL_SSL", plain)
