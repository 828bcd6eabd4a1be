"""`verify --against` real brokers: every partition of the fixtures, transactions, quotas, bad connections, TLS and each
mechanism of SASL."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import magicbyte
import pytest
from broker_versions import Node
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_broker import Broker, Tools
from magicbyte import _core
from magicbyte.jobs.find.choice import PartitionChoice
from secure_broker import PASSWORD, SecureBroker
from toxic_proxy import toxic_proxy

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


def produce(bootstrap: str, topic: str, values: Iterable[bytes], codec: str = "none") -> None:
    """Produces to the three partitions of a new topic in turn."""
    deadline = time.monotonic() + 60
    # A client that sees no controller at first is slow to look again.
    while (admin := AdminClient({"bootstrap.servers": bootstrap})).list_topics(timeout=30).controller_id < 0:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(60)
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "batch.size": 20_000})
    for number, value in enumerate(values):
        producer.produce(topic, value, b"key %d" % number, partition=number % 3)
        producer.poll(0)
    assert producer.flush(60) == 0


def copied(node: Node, topic: str, to: Path) -> Path:
    """A copy of the partitions of a topic, whose producer has ended."""
    for directory in sorted(node.logs.glob(f"{topic}-*")):
        shutil.copytree(directory, to / directory.name)
    return to


@pytest.mark.parametrize("version", ["oldest", "old", "new"])
def test_logs_of_old_and_new_brokers(request: pytest.FixtureRequest, version: str, tmp_path: Path) -> None:
    """Several partitions and codecs, read while the broker runs."""
    node: Node = request.getfixturevalue(version)
    copies = tmp_path / "logs"
    for codec in ("none", "lz4" if version == "oldest" else "zstd"):
        produce(node.bootstrap, f"against-{codec}", (b"value %d" % number for number in range(30_000)), codec)
        copied(node, f"against-{codec}", copies)
    comparison = magicbyte.verify(copies, against=node.bootstrap)["cluster"]
    assert comparison is not None
    assert comparison["equal"], comparison
    for level in comparison["levels"]:
        assert [one["records_b"] for one in level["partitions"]] == [10_000] * 6


def commit(bootstrap: str, group: str, offsets: Sequence[int]) -> None:
    """Commits positions of the partitions of the topic `grouped`."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    places = [TopicPartition("grouped", partition, offset) for partition, offset in enumerate(offsets)]
    for place in consumer.commit(offsets=places, asynchronous=False) or []:
        assert place.error is None
    consumer.close()


@pytest.mark.parametrize("version", ["oldest", "old", "new"])
def test_positions_of_groups(request: pytest.FixtureRequest, version: str, tmp_path: Path) -> None:
    """The cluster may be ahead of the files, but not behind them or without a position."""
    node: Node = request.getfixturevalue(version)
    produce(node.bootstrap, "grouped", (b"%d" % number for number in range(60)))
    for group in ("billing, inc.", "audit"):
        commit(node.bootstrap, group, [3, 4, 5])
    files = copied(node, "grouped", tmp_path / "logs")
    copied(node, "__consumer_offsets", files)

    def compared() -> tuple[bool, list[int], dict[tuple[str, int], str]]:
        comparison = magicbyte.verify(files, against=node.bootstrap)["cluster"]
        assert comparison is not None
        assert all(level["equal"] for level in comparison["levels"])
        groups = comparison["groups"]
        assert groups is not None
        differing = {(one["group"], one["partition"]): one["result"] for one in groups["positions"]}
        counts = [groups["equal"], groups["ahead"], groups["behind"], groups["missing"]]
        return comparison["equal"], counts, dict(differing)

    is_equal, [equal, *others], differing = compared()
    # Another test's groups are in the same topic.
    assert is_equal
    assert equal >= 6
    assert (others, differing) == ([0, 0, 0], {})
    commit(node.bootstrap, "audit", [4, 4, 5])
    assert compared() == (True, [equal - 1, 1, 0, 0], {("audit", 0): "ahead"})
    commit(node.bootstrap, "audit", [4, 1, 5])
    differing = {("audit", 0): "ahead", ("audit", 1): "behind"}
    assert compared() == (False, [equal - 2, 1, 1, 0], differing)


def test_resets_and_delays(new: Node, tmp_path: Path) -> None:
    """Connections end in the middle of a size, a frame and a batch; nothing is read twice or left out."""
    values = random.Random(7)
    produce(new.bootstrap, "toxic", (values.randbytes(1000) for _ in range(1500)))
    files = copied(new, "toxic", tmp_path / "logs")
    # The first connection lasts until records are sent: a command that cannot connect at all says so at once.
    cuts = [5000, 0, 2, 4, 40, 700, 1500, 40_000, 300_000]
    with toxic_proxy(new.bootstrap, cuts, delay=0.001) as proxy:
        host, port = proxy.address
        comparison = magicbyte.verify(files, against=f"{host}:{port}")["cluster"]
        assert proxy.resets == len(cuts)
    assert comparison is not None
    assert comparison["equal"], comparison


def test_a_quota(new: Node, tmp_path: Path) -> None:
    """The client reads no faster than a quota allows, and all there is."""
    values = random.Random(8)
    rate, count = 600_000, 9000
    produce(new.bootstrap, "slow", (values.randbytes(1000) for _ in range(count)))
    config = tmp_path / "client.properties"
    config.write_text("client.id=throttled\n")
    tools = Tools()
    tools.run(
        "kafka-configs", "--bootstrap-server", new.bootstrap, "--alter", "--add-config",
        f"consumer_byte_rate={rate}", "--entity-type", "clients", "--entity-name", "throttled",
    )  # fmt: skip
    tools.close()
    ranges = [("slow", partition, 0, count // 3) for partition in range(3)]

    def digest(reader: _core.ClusterReader) -> tuple[float, object]:
        begun = time.monotonic()
        found = reader.digest(ranges, 4096, "read_uncommitted", 1 << 20)
        return time.monotonic() - begun, found

    _, expected = digest(_core.ClusterReader(new.bootstrap))
    seconds, found = digest(_core.ClusterReader(new.bootstrap, config))
    assert found == expected
    # The quota is that of ten seconds, which may pass at once.
    assert seconds > 0.8 * (count * 1000 / rate - 10)


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


def test_the_name_in_the_certificate(files: Path, secure: SecureBroker) -> None:
    """The broker's certificate is for 127.0.0.1, and not for another name that leads there."""
    address = f"localhost:{secure.ports['SASL_SSL']}"
    config = secure.properties("SASL_SSL", mechanism="PLAIN")
    with pytest.raises(PermissionError, match="not valid for name"):
        magicbyte.verify(files, against=address, command_config=config)
    config = secure.properties("SASL_SSL", "ssl.endpoint.identification.algorithm=", mechanism="PLAIN")
    assert magicbyte.verify(files, against=address, command_config=config)["cluster"] is not None


def test_the_wrong_listener(files: Path, secure: SecureBroker) -> None:
    """TLS where there is none, and none where there is TLS: an error in time."""
    tls = secure.properties("SASL_SSL", mechanism="PLAIN")
    with pytest.raises((PermissionError, ConnectionError, TimeoutError)):
        answered(files, secure, "SASL_PLAINTEXT", tls)
    plain = secure.properties("SASL_PLAINTEXT", "request.timeout.ms=3000", mechanism="PLAIN")
    with pytest.raises((PermissionError, ConnectionError, TimeoutError)):
        answered(files, secure, "SASL_SSL", plain)


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        ("SSL", ""),
        *(
            (listener, name)
            for listener in ("SASL_PLAINTEXT", "SASL_SSL")
            for name in ("PLAIN", "SCRAM-SHA-256")
        ),
        ("SASL_SSL", "SCRAM-SHA-512"),
        ("SASL_SSL", "OAUTHBEARER"),
    ],
)
def test_a_backup(secure: SecureBroker, tmp_path: Path, listener: str, mechanism: str) -> None:
    """It is made over every kind of connection, and has none of the secrets."""
    lines = {
        "": ("ssl.keystore.type=PEM", f"ssl.keystore.location={secure.root / 'client.pem'}"),
        "OAUTHBEARER": (f"sasl.oauthbearer.token.endpoint.url=file://{secure.token()}",),
    }
    topic = f"secured-{listener}-{mechanism or 'none'}"
    producer = Producer({"bootstrap.servers": secure.broker.bootstrap})
    admin = AdminClient({"bootstrap.servers": secure.broker.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    for number in range(10):
        producer.produce(topic, b"value %d" % number)
    producer.flush(60)
    config = secure.properties(listener, *lines.get(mechanism, ()), mechanism=mechanism)
    scheme = "kafka" if listener == "SASL_PLAINTEXT" else "kafkas"
    out = tmp_path / "backup"
    report = magicbyte.backup(
        f"{scheme}://127.0.0.1:{secure.ports[listener]}",
        out,
        choice=PartitionChoice(topics=(topic,)),
        command_config=config,
    )
    assert (report["copied_records"], report["findings"]) == (10, [])
    assert magicbyte.verify(out / f"{topic}-0")["total"]["rows"] == 10
    assert PASSWORD not in (out / "backup.json").read_text()
