"""What hostile clients of `magicbyte serve` can take: memory and time, alone and together."""

from __future__ import annotations

import os
import resource
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from magicbyte import message
from test_serve import FETCH, PRODUCE, Connection

PARTITIONS = 1000
LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 2, 3, 8, 9, 10
JOIN_GROUP, LEAVE_GROUP, DESCRIBE_GROUPS, LIST_GROUPS = 11, 13, 15, 16
OFFSET_FOR_LEADER_EPOCH, DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS = 23, 32, 35
SERVED = """
import magicbyte, sys
with magicbyte.serve(sys.argv[1]) as server:
    print(server.bootstrap_servers, flush=True)
    sys.stdin.read()
"""


def log(directory: Path, topic: str, partition: int, records: int = 1, size: int = 100) -> Path:
    builder = magicbyte.RecordsBuilder()
    for offset in range(records):
        builder.append(offset, 1_700_000_000_000 + offset, b"k", b"v" * size)
    path = directory / f"{topic}-{partition}"
    path.mkdir()
    (path / f"{0:020}.log").write_bytes(builder.build())
    return path


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("archive")
    for partition in range(PARTITIONS):
        log(directory, "t", partition)
    return directory


@pytest.fixture(scope="module")
def server(archive: Path) -> Iterator[Any]:
    with magicbyte.serve(archive) as server:
        yield server


class Child:
    """A server in a process of its own, whose memory can be measured."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.bootstrap_servers = process.stdout.readline().strip()

    def mebibytes(self, of: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith(of)).split()[1]) >> 10

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def child(archive: Path) -> Iterator[Any]:
    if not sys.platform.startswith("linux"):
        pytest.skip("memory is measured in /proc")
    command = [sys.executable, "-c", SERVED, str(archive)]
    limit = 4 << 30
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    ) as process:
        try:
            yield Child(process)
            assert process.poll() is None, "the server has ended"
        finally:
            process.kill()


def post(client: Connection, api: int, version: int, **body: Any) -> None:
    header = {"correlationId": 1, "clientId": "test"}
    client.send(message.encode_request(api, version, body, header=header))


def compact(text: bytes) -> bytes:
    return varint(len(text) + 1) + text


def varint(number: int) -> bytes:
    out = b""
    while number >= 128:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


TWICE: dict[str, tuple[int, int, dict[str, Any], Callable[[dict[str, Any]], list[Any]]]] = {
    "Metadata": (METADATA, 12, {"topics": [{"name": "t"}, {"name": "no"}] * 2}, lambda body: body["topics"]),
    "Produce": (
        PRODUCE,
        9,
        {"acks": 1, "topicData": [{"name": "t", "partitionData": [{"index": 0}, {"index": 1}] * 2}] * 2},
        lambda body: body["responses"][0]["partitionResponses"],
    ),
    "Fetch": (
        FETCH,
        12,
        {"topics": [{"topic": "t", "partitions": [{"partition": 0}, {"partition": 1}] * 2}] * 2},
        lambda body: body["responses"][0]["partitions"],
    ),
    "ListOffsets": (
        LIST_OFFSETS,
        6,
        {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0}, {"partitionIndex": 1}] * 2}] * 2},
        lambda body: body["topics"][0]["partitions"],
    ),
    "OffsetForLeaderEpoch": (
        OFFSET_FOR_LEADER_EPOCH,
        4,
        {"topics": [{"topic": "t", "partitions": [{"partition": 0}, {"partition": 1}] * 2}] * 2},
        lambda body: body["topics"][0]["partitions"],
    ),
    "OffsetCommit": (
        OFFSET_COMMIT,
        8,
        {
            "groupId": "twice",
            "generationIdOrMemberEpoch": -1,
            "topics": [{"name": "t", "partitions": [{"partitionIndex": 0}, {"partitionIndex": 1}] * 2}] * 2,
        },
        lambda body: body["topics"][0]["partitions"],
    ),
    "OffsetFetch": (
        OFFSET_FETCH,
        7,
        {"groupId": "twice", "topics": [{"name": "t", "partitionIndexes": [0, 1, 0, 1]}] * 2},
        lambda body: body["topics"][0]["partitions"],
    ),
    "OffsetFetch of groups": (
        OFFSET_FETCH,
        8,
        {"groups": [{"groupId": "a", "topics": None}, {"groupId": "b", "topics": None}] * 2},
        lambda body: body["groups"],
    ),
    "FindCoordinator": (
        FIND_COORDINATOR,
        4,
        {"coordinatorKeys": ["a", "b", "a", "b"]},
        lambda body: body["coordinators"],
    ),
    "LeaveGroup": (
        LEAVE_GROUP,
        4,
        {"groupId": "none", "members": [{"memberId": "a"}, {"memberId": "b"}] * 2},
        lambda body: body["members"],
    ),
    "DescribeGroups": (DESCRIBE_GROUPS, 5, {"groups": ["a", "b", "a", "b"]}, lambda body: body["groups"]),
    "DescribeConfigs": (
        DESCRIBE_CONFIGS,
        4,
        {"resources": [{"resourceType": 2, "resourceName": name} for name in ("t", "no", "t", "no")]},
        lambda body: body["results"],
    ),
    "DescribeLogDirs": (
        DESCRIBE_LOG_DIRS,
        4,
        {"topics": [{"topic": "t", "partitions": [0, 1, 0, 1]}] * 2},
        lambda body: body["results"][0]["topics"][0]["partitions"],
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_names_that_are_repeated_are_answered_once(server: Any, name: str) -> None:
    api, version, body, answers = TWICE[name]
    with Connection(server) as client:
        answer = client.ask(api, version, **body)
        assert len(answers(answer)) == 2, answer
        if api == LIST_OFFSETS:
            # As a broker says of partitions that are named twice.
            assert {one["errorCode"] for one in answers(answer)} == {42}
        for topics in ("topics", "responses"):
            assert len(answer.get(topics) or [0]) <= 2


def test_the_last_mention_of_a_partition_counts(server: Any) -> None:
    with Connection(server) as client:
        partitions = [{"partitionIndex": 5, "committedOffset": offset} for offset in (7, 8, 9)]
        topics = [{"name": "t", "partitions": partitions}]
        client.ask(OFFSET_COMMIT, 8, groupId="last", generationIdOrMemberEpoch=-1, topics=topics)
        body = client.ask(OFFSET_FETCH, 7, groupId="last", topics=[{"name": "t", "partitionIndexes": [5]}])
        assert body["topics"][0]["partitions"][0]["committedOffset"] == 9


def test_a_thousand_partitions(server: Any) -> None:
    """Ordinary clients of a large archive meet no limit."""
    numbers = range(PARTITIONS)
    with Connection(server) as client:
        (topic,) = client.ask(METADATA, 12, topics=[{"name": "t"}])["topics"]
        assert len(topic["partitions"]) == PARTITIONS
        lookups = [{"partitionIndex": number, "timestamp": -1} for number in numbers]
        (listed,) = client.ask(LIST_OFFSETS, 6, topics=[{"name": "t", "partitions": lookups}])["topics"]
        assert [one["offset"] for one in listed["partitions"]] == [1] * PARTITIONS
        partitions = [{"partition": number, "partitionMaxBytes": 1 << 20} for number in numbers]
        topics = [{"topic": "t", "partitions": partitions}]
        body = client.ask(FETCH, 12, maxBytes=50 << 20, sessionEpoch=0, topics=topics)
        assert sum(bool(one["records"]) for one in body["responses"][0]["partitions"]) == PARTITIONS
        assert body["sessionId"] > 0
        commits = [{"partitionIndex": number, "committedOffset": number} for number in numbers]
        topics = [{"name": "t", "partitions": commits}]
        client.ask(OFFSET_COMMIT, 8, groupId="large", generationIdOrMemberEpoch=-1, topics=topics)
        (fetched,) = client.ask(OFFSET_FETCH, 7, groupId="large", topics=None)["topics"]
        assert [one["committedOffset"] for one in fetched["partitions"]] == list(numbers)


def test_sizes_of_the_logs(server: Any, archive: Path) -> None:
    """User interfaces ask for them, and call a broker without an answer offline."""
    with Connection(server) as client:
        for version in range(1, 6):
            (log_dir,) = client.ask(DESCRIBE_LOG_DIRS, version, topics=None)["results"]
            assert log_dir["logDir"] == str(archive)
            (topic,) = log_dir["topics"]
            found = {one["partitionIndex"]: one["partitionSize"] for one in topic["partitions"]}
            path = archive / "t-7" / f"{0:020}.log"
            assert (len(found), found[7]) == (PARTITIONS, path.stat().st_size)


def consumer_offsets(directory: Path, groups: int) -> None:
    def string(text: str) -> bytes:
        return struct.pack(">h", len(text)) + text.encode()

    builder = magicbyte.RecordsBuilder()
    for number in range(groups):
        key = struct.pack(">h", 1) + string(f"app-{number}") + string("t") + struct.pack(">i", 0)
        value = struct.pack(">hqi", 3, number, -1) + string("") + struct.pack(">q", 1_700_000_000_000)
        builder.append(number, 1_700_000_000_000, key, value)
    path = directory / "__consumer_offsets-0"
    path.mkdir()
    (path / f"{0:020}.log").write_bytes(builder.build())


def join(client: Connection, group: str) -> int:
    protocols = [{"name": "range", "metadata": b"m"}]
    timeouts = {"sessionTimeoutMs": 6000, "rebalanceTimeoutMs": 6000}
    body = client.ask(
        JOIN_GROUP, 3, groupId=group, memberId="", protocolType="consumer", protocols=protocols, **timeouts
    )
    return int(body["errorCode"])


def test_groups_of_the_archive_lock_nobody_out(tmp_path: Path) -> None:
    groups = 3000
    log(tmp_path, "t", 0)
    consumer_offsets(tmp_path, groups)
    with magicbyte.serve(tmp_path) as server, Connection(server) as client:
        assert join(client, "new") == 0
        assert join(client, "app-7") == 0
        listed = client.ask(LIST_GROUPS, 4)["groups"]
        assert len(listed) == groups + 1, "app-7 is listed once"
        states = {one["groupId"]: one["groupState"] for one in listed}
        assert (states["app-8"], states["app-7"]) == ("Empty", "CompletingRebalance")
        described = client.ask(DESCRIBE_GROUPS, 4, groups=["app-8", "no"])["groups"]
        assert [one["groupState"] for one in described] == ["Empty", "Dead"]

        def committed(group: str) -> int:
            topics = [{"name": "t", "partitionIndexes": [0]}]
            one = client.ask(OFFSET_FETCH, 7, groupId=group, topics=topics)["topics"][0]["partitions"][0]
            (all_topics,) = client.ask(OFFSET_FETCH, 7, groupId=group, topics=None)["topics"]
            assert all_topics["partitions"][0]["committedOffset"] == one["committedOffset"]
            return int(one["committedOffset"])

        assert (committed("app-8"), committed("app-7")) == (8, 7)
        topics = [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": 1}]}]
        client.ask(OFFSET_COMMIT, 8, groupId="app-8", generationIdOrMemberEpoch=-1, topics=topics)
        assert committed("app-8") == 1


def test_groups_that_were_used_once_lock_nobody_out(tmp_path: Path) -> None:
    log(tmp_path, "t", 0)
    with magicbyte.serve(tmp_path) as server, Connection(server) as client:
        metadata = "m" * 4096
        partition = {"partitionIndex": 0, "committedOffset": 1, "committedMetadata": metadata}
        topics = [{"name": "t", "partitions": [partition]}]
        for number in range(20_000):
            group = f"console-consumer-{number}"
            post(client, OFFSET_COMMIT, 2, groupId=group, generationIdOrMemberEpoch=-1, topics=topics)
            body = message.decode_response(client.receive(), OFFSET_COMMIT, 2).body
            assert body["topics"][0]["partitions"][0]["errorCode"] == 0, number
        assert join(client, "console-consumer-77777") == 0


def test_repeated_names_take_no_memory(archive: Path) -> None:
    """Each request of 2 MiB would have taken gigabytes."""
    with child(archive) as served, Connection(served) as client:
        member = [{"name": "range", "metadata": bytes(1_900_000)}]
        timeouts = {"sessionTimeoutMs": 600_000, "rebalanceTimeoutMs": 60_000}
        body = client.ask(
            JOIN_GROUP,
            5,
            groupId="g",
            memberId="",
            groupInstanceId="i",
            protocolType="c",
            protocols=member,
            **timeouts,
        )
        assert body["errorCode"] == 0
        answer = client.ask(DESCRIBE_GROUPS, 0, groups=["g"] * 5000)
        assert len(answer["groups"]) == 1
        topics = [{"name": "t"}] * 400_000
        assert len(client.ask(METADATA, 1, topics=topics)["topics"]) == 1
        groups = [{"groupId": "g", "topics": None}] * 10_000
        assert len(client.ask(OFFSET_FETCH, 8, groups=groups)["groups"]) == 1
        assert served.mebibytes("VmHWM") < 900


def test_a_long_name_of_many_partitions(archive: Path) -> None:
    """It is kept once by the session, not for each partition."""
    count, name = 60_000, b"n" * 32_000
    body = struct.pack(">iiiibiii", -1, 0, 1, 1 << 24, 0, 0, 0, 1) + struct.pack(">h", len(name)) + name
    body += struct.pack(">i", count)
    body += b"".join(struct.pack(">iqqi", number, 0, -1, 1 << 20) for number in range(count))
    frame = struct.pack(">hhih", FETCH, 7, 1, 1) + b"x" + body + struct.pack(">i", 0)
    with child(archive) as served, Connection(served) as client:
        client.send(frame)
        answer = message.decode_response(client.receive(), FETCH, 7).body
        assert len(answer["responses"][0]["partitions"]) == count
        assert served.mebibytes("VmHWM") < 900
        assert served.mebibytes("VmRSS") < 500


def test_protocols_without_bytes_take_memory(archive: Path) -> None:
    count = 600_000
    names = {"the same": b"\1\1\0" * count}
    names["others"] = b"".join(compact(b"%x" % n) + b"\1\0" for n in range(count // 4))
    with child(archive) as served:
        for protocols, n in ((names["the same"], count), (names["others"], count // 4)):
            for group in range(12):
                frame = struct.pack(">hhih", JOIN_GROUP, 6, 1, 1) + b"x\0" + compact(b"g%d" % group)
                frame += struct.pack(">ii", 1_000_000, 60_000) + compact(b"") + compact(b"i%d" % group)
                frame += compact(b"consumer") + varint(n + 1) + protocols + b"\0"
                with Connection(served) as client:
                    client.send(frame)
                    # An answer, or the end of the connection: the decoded names are above its limit.
                    client.receive()
        assert served.mebibytes("VmRSS") < 500
        with Connection(served) as client:
            assert join(client, "new") == 0


def test_ids_of_members_that_never_come_take_no_memory(archive: Path) -> None:
    with child(archive) as served, Connection(served) as client:
        before = served.mebibytes("VmRSS")
        protocols = [{"name": "range", "metadata": b""}]
        body = {
            "sessionTimeoutMs": 600_000,
            "rebalanceTimeoutMs": 60_000,
            "memberId": "",
            "protocolType": "c",
        }
        header = {"correlationId": 1, "clientId": "c" * 32_000}
        for number in range(5000):
            asked = {"groupId": f"g{number % 500}", "protocols": protocols, **body}
            client.send(message.encode_request(JOIN_GROUP, 4, asked, header=header))
            assert message.decode_response(client.receive(), JOIN_GROUP, 4).body["errorCode"] == 79
        assert served.mebibytes("VmRSS") - before < 200


def test_large_responses_that_nobody_takes(archive: Path) -> None:
    """Many clients ask for much, and read nothing: others get their answers."""
    with child(archive) as served:
        with Connection(served) as client:
            for number in range(8):
                member = [{"name": "range", "metadata": bytes(1_900_000)}]
                timeouts = {"sessionTimeoutMs": 600_000, "rebalanceTimeoutMs": 60_000}
                group = {"groupId": f"g{number}", "memberId": "", "protocolType": "c", "protocols": member}
                client.ask(JOIN_GROUP, 1, **group, **timeouts)
        idle = [Connection(served) for _ in range(60)]
        for client in idle:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            post(client, DESCRIBE_GROUPS, 0, groups=[f"g{number}" for number in range(8)])
        with Connection(served) as client:
            begun = time.monotonic()
            for _ in range(20):
                assert client.ask(METADATA, 12, topics=[{"name": "t"}])["topics"]
            assert time.monotonic() - begun < 20
            assert served.mebibytes("VmHWM") < 1100
        for client in idle:
            client.socket.close()


def test_requests_that_never_arrive(archive: Path) -> None:
    """Memory for large requests is limited; small ones need none of it."""
    with child(archive) as served:
        idle = [Connection(served) for _ in range(100)]
        for client in idle:
            client.socket.settimeout(0.1)
            client.socket.sendall(struct.pack(">i", 2 << 20))
            try:
                client.socket.sendall(bytes((2 << 20) - 1))
            except TimeoutError:
                # The server has no memory for it.
                continue
        with Connection(served) as client:
            assert client.ask(METADATA, 12, topics=[{"name": "t"}])["topics"]
            assert served.mebibytes("VmRSS") < 400
        for client in idle:
            client.socket.close()


def test_work_ends_with_its_client(tmp_path: Path) -> None:
    """Lookups by time decompress batches: nobody waits for those of a client that is gone."""
    count = 400
    builder = magicbyte.RecordsBuilder(compression="zstd")
    for offset in range(20):
        builder.append(offset, 1_700_000_000_000 + offset, None, bytes(1_000_000))
    data = builder.build()
    for partition in range(count):
        path = tmp_path / f"t-{partition}"
        path.mkdir()
        (path / f"{0:020}.log").write_bytes(data)
    with child(tmp_path) as served:
        lookups = [{"partitionIndex": n, "timestamp": 1_700_000_000_019} for n in range(count)]
        with Connection(served) as client:
            post(client, LIST_OFFSETS, 1, topics=[{"name": "t", "partitions": lookups}])
            time.sleep(0.2)
        with Connection(served) as other:
            names = [{"name": f"topic-{number}"} for number in range(2000)]
            assert len(other.ask(METADATA, 1, topics=names)["topics"]) == 2000
        deadline = time.monotonic() + 30
        while True:
            before = served.cpu_seconds()
            time.sleep(0.5)
            if served.cpu_seconds() - before < 0.05:
                break
            assert time.monotonic() < deadline, "the work goes on"


FORK = """
import os, signal, sys
import magicbyte, pyarrow
if sys.argv[1] == "serve":
    kept = magicbyte.serve(sys.argv[2])
else:
    kept = pyarrow.RecordBatchReader.from_stream(magicbyte.PartitionLog(sys.argv[2]).to_arrow(threads=4))
    kept.read_next_batch()
pid = os.fork()
if pid == 0:
    signal.alarm(30)
    if sys.argv[1] == "serve":
        assert kept.connections == 0
        kept.stop()
    else:
        try:
            for _ in kept:
                pass
        except Exception as error:
            assert "forked" in str(error), error
    del kept
    sys.exit(0)
_, status = os.waitpid(pid, 0)
assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, status
if sys.argv[1] == "serve":
    import socket
    host, _, port = kept.bootstrap_servers.rpartition(":")
    socket.create_connection((host, int(port)), timeout=20).close()
else:
    print(sum(len(batch) for batch in kept))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("what", ["serve", "stream"])
def test_a_forked_child_ends(tmp_path: Path, what: str) -> None:
    """It has none of the threads of its parent, which goes on."""
    path = log(tmp_path, "t", 0, records=200_000, size=40)
    command = [sys.executable, "-W", "ignore", "-c", FORK, what, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")


LONG = "x" * 32_767
HEARTBEAT = {
    "groupId": "g",
    "memberId": "m",
    "memberEpoch": 0,
    "instanceId": None,
    "rackId": None,
    "rebalanceTimeoutMs": 1000,
    "subscribedTopicNames": ["t"],
    "subscribedTopicRegex": None,
    "serverAssignor": None,
    "topicPartitions": [],
}


@pytest.mark.parametrize(
    ("api", "version", "body", "code"),
    [
        (68, 1, HEARTBEAT | {"subscribedTopicRegex": "(" + LONG[1:]}, 128),
        (68, 1, HEARTBEAT | {"groupId": LONG, "memberId": LONG, "memberEpoch": 3}, 69),
        (68, 1, HEARTBEAT | {"serverAssignor": LONG}, 112),
        (69, 1, {"groupIds": [LONG], "includeAuthorizedOperations": False}, 69),
        (15, 6, {"groups": [LONG], "includeAuthorizedOperations": False}, 69),
    ],
)
def test_texts_that_an_answer_repeats_may_be_long(
    tmp_path: Path, api: int, version: int, body: dict[str, Any], code: int
) -> None:
    log(tmp_path, "t", 0)
    with magicbyte.serve(tmp_path) as server, Connection(server) as client:
        answer = client.ask(api, version, **body)
        (answer,) = answer.get("groups", [answer])
        assert answer["errorCode"] == code
        assert "x" * 500 in answer["errorMessage"]
        assert len(answer["errorMessage"]) < 4_000
