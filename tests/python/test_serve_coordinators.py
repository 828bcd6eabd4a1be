"""The knowledge of an archived cluster's coordinators, as `magicbyte serve` tells it: groups of all types,
transactions, producers; and all of that at an earlier time.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import KAFKA
from magicbyte.jobs.serve import Server
from test_serve import Connection

FETCH_OFFSETS = 9
DESCRIBE_GROUPS, LIST_GROUPS, DESCRIBE_PRODUCERS = 15, 16, 61
DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 65, 66
CONSUMER_GROUP_DESCRIBE, SHARE_GROUP_DESCRIBE = 69, 77
GROUP_ID_NOT_FOUND, TRANSACTIONAL_ID_NOT_FOUND, INVALID_REQUEST, INVALID_REGULAR_EXPRESSION = 69, 105, 42, 128
INVALID_GROUP_ID = 24
AS_OF = 10_000

Record = tuple[bytes, bytes | None]


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def transaction(
    name: str, producer: int, status: int, *, start: int = -1, topics: dict[str, list[int]] | None = None
) -> Record:
    """A record of `__transaction_state`, with a TransactionLogValue of version 0."""
    partitions = struct.pack(">i", len(topics or {}))
    for topic, numbers in (topics or {}).items():
        partitions += text(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    value = struct.pack(">hqhib", 0, producer, 3, 60_000, status) + partitions + struct.pack(">qq", 1, start)
    return b"\0\0" + text(name), value


def log(directory: Path, name: str, batches: list[tuple[int, list[Record]]]) -> None:
    """A partition with a batch for each time."""
    (directory / name).mkdir(parents=True)
    data, offset = b"", 0
    for time, records in batches:
        builder = magicbyte.RecordsBuilder()
        for key, value in records:
            builder.append(offset, time, key, value)
            offset += 1
        data += builder.build()
    (directory / name / f"{0:020}.log").write_bytes(data)


ORDERS = {"orders": [0, 2], "payments": [1]}
FIRST = [
    transaction("orders-1", 7, 1, start=1000, topics=ORDERS),
    transaction("orders-2", 8, 4, start=2000),
    transaction("billing", 9, 0),
    transaction("dead", 10, 6, start=1),
    transaction("expired", 11, 1, start=1),
    transaction("newer", 12, 99, start=3000),
]
LATER = [transaction("orders-1", 7, 5, start=1000)]


@pytest.fixture(scope="module")
def transactions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("transactions")
    batches = [(1000, FIRST), (AS_OF, [(b"\0\0" + text("expired"), None), (b"\0\0", b"cut")])]
    log(root, "__transaction_state-7", [*batches, (AS_OF + 1, LATER)])
    return root


@pytest.fixture(scope="module")
def server(transactions: Path) -> Iterator[Server]:
    with magicbyte.serve(transactions, as_of=AS_OF) as server:
        (problem,) = server.problems
        assert "__transaction_state-7: offset 7: " in problem
        yield server


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, ["billing", "newer", "orders-1", "orders-2"]),
        ({"stateFilters": ["Ongoing"]}, ["orders-1"]),
        ({"stateFilters": ["Ongoing", "Empty", "Dead"]}, ["billing", "orders-1"]),
        ({"producerIdFilters": [8, 9, 100]}, ["billing", "orders-2"]),
        ({"producerIdFilters": [8, 9], "stateFilters": ["Empty"]}, ["billing"]),
        ({"durationFilter": 0}, ["billing", "newer", "orders-1", "orders-2"]),
        ({"durationFilter": 8000}, ["billing", "orders-1"]),
        ({"durationFilter": 2**63 - 1}, []),
        ({"durationFilter": -5}, ["billing", "newer", "orders-1", "orders-2"]),
        ({"transactionalIdPattern": "orders-."}, ["orders-1", "orders-2"]),
        ({"transactionalIdPattern": "orders"}, []),
        ({"transactionalIdPattern": "orders-1|bill.*"}, ["billing", "orders-1"]),
        ({"transactionalIdPattern": ""}, ["billing", "newer", "orders-1", "orders-2"]),
        ({"transactionalIdPattern": "(a*)*b"}, []),
        ({"transactionalIdPattern": "orders-.", "durationFilter": 8000}, ["orders-1"]),
    ],
)
def test_filters(server: Server, filters: dict[str, Any], ids: list[str]) -> None:
    version = 2 if "transactionalIdPattern" in filters else 1 if "durationFilter" in filters else 0
    with Connection(server) as client:
        for asked in range(version, 3):
            body = client.ask(LIST_TRANSACTIONS, asked, **filters)
            assert (body["errorCode"], body["unknownStateFilters"]) == (0, [])
            assert [one["transactionalId"] for one in body["transactionStates"]] == ids


def test_what_is_listed(server: Server) -> None:
    with Connection(server) as client:
        body = client.ask(LIST_TRANSACTIONS, 0)
        states = {
            one["transactionalId"]: (one["producerId"], one["transactionState"])
            for one in body["transactionStates"]
        }
    assert states == {
        "billing": (9, "Empty"),
        "newer": (12, "Unknown"),
        "orders-1": (7, "Ongoing"),
        "orders-2": (8, "CompleteCommit"),
    }


def test_unknown_states_and_patterns(server: Server) -> None:
    with Connection(server) as client:
        filters = ["ongoing", "Empty", "ongoing", "Aborting"]
        body = client.ask(LIST_TRANSACTIONS, 2, stateFilters=filters)
        assert body["unknownStateFilters"] == ["ongoing", "Aborting"]
        assert [one["transactionalId"] for one in body["transactionStates"]] == ["billing"]
        body = client.ask(LIST_TRANSACTIONS, 2, stateFilters=["Nothing"])
        assert (body["unknownStateFilters"], body["transactionStates"]) == (["Nothing"], [])
        for pattern in ("a(", "a)(b", "[a", r"\w{1000}{1000}", "(?=a)"):
            body = client.ask(LIST_TRANSACTIONS, 2, transactionalIdPattern=pattern)
            assert (body["errorCode"], body["transactionStates"]) == (INVALID_REGULAR_EXPRESSION, [])


def test_descriptions(server: Server) -> None:
    ids = ["orders-1", "billing", "nobody", "dead", "expired", "", "orders-1"]
    with Connection(server) as client:
        body = client.ask(DESCRIBE_TRANSACTIONS, 0, transactionalIds=ids)
    found = body["transactionStates"]
    assert [one["transactionalId"] for one in found] == ids[:-1], "each once"
    assert [one["errorCode"] for one in found] == [0, 0, *3 * [TRANSACTIONAL_ID_NOT_FOUND], INVALID_REQUEST]
    assert found[0] == {
        "errorCode": 0,
        "transactionalId": "orders-1",
        "transactionState": "Ongoing",
        "transactionTimeoutMs": 60_000,
        "transactionStartTimeMs": 1000,
        "producerId": 7,
        "producerEpoch": 3,
        "topics": [{"topic": topic, "partitions": numbers} for topic, numbers in ORDERS.items()],
    }
    assert (found[1]["transactionStartTimeMs"], found[1]["topics"]) == (-1, [])


def test_transactions_of_now(transactions: Path) -> None:
    with magicbyte.serve(transactions) as server, Connection(server) as client:
        ended = client.ask(DESCRIBE_TRANSACTIONS, 0, transactionalIds=["orders-1"])["transactionStates"]
        assert ended[0]["transactionState"] == "CompleteAbort"
        # All of them began long ago.
        body = client.ask(LIST_TRANSACTIONS, 1, durationFilter=10**12)
        assert len(body["transactionStates"]) == 4


def test_the_coordinator_of_transactions_is_there(server: Server) -> None:
    with Connection(server) as client:
        for kind, error in ((0, 0), (1, 0), (2, 15)):
            body = client.ask(10, 6, keyType=kind, coordinatorKeys=["orders-1"])
            assert body["coordinators"][0]["errorCode"] == error


def epoch(kind: int, group: str, value: bytes | None) -> Record:
    """A record of `__consumer_offsets`, with a value of version 0 in a flexible version."""
    return struct.pack(">h", kind) + text(group), None if value is None else b"\0\0" + value + b"\0"


def number(value: int) -> bytes:
    return struct.pack(">i", value)


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Groups of each type, one that has moved to the new protocol, and one that was deleted."""
    root = tmp_path_factory.mktemp("groups")
    connect = text("connect") + number(4) + struct.pack(">hhi", -1, -1, 0)
    records = [
        (struct.pack(">h", 2) + text("workers"), b"\0\0" + connect),
        (struct.pack(">h", 2) + text("moved"), b"\0\0" + connect),
        (struct.pack(">h", 2) + text("moved"), None),
        epoch(3, "moved", number(9)),
        epoch(6, "moved", number(8)),
        epoch(3, "audit", number(5)),
        epoch(6, "audit", number(4)),
        epoch(11, "sharing", number(6) + bytes(8)),
        epoch(12, "sharing", number(6)),
        epoch(17, "application", number(7) + bytes(8)),
        epoch(3, "gone", number(1)),
        epoch(3, "gone", None),
    ]
    log(root, "__consumer_offsets-0", [(1000, records)])
    shutil.copytree(KAFKA / "v2_none", root / "v2_none-0")
    with magicbyte.serve(root) as server:
        assert server.problems == []
        yield server


LISTED = {
    "application": ("streams", "streams"),
    "audit": ("consumer", "consumer"),
    "moved": ("consumer", "consumer"),
    "sharing": ("share", "share"),
    "workers": ("classic", "connect"),
}


@pytest.mark.parametrize("version", range(6))
def test_types_of_groups(groups: Server, version: int) -> None:
    with Connection(groups) as client:
        found = client.ask(LIST_GROUPS, version)["groups"]
    assert {one["groupId"]: one["protocolType"] for one in found} == {
        name: protocol_type for name, (_, protocol_type) in LISTED.items()
    }
    if version >= 4:
        assert {one["groupState"] for one in found} == {"Empty"}
    if version >= 5:
        assert {one["groupId"]: one["groupType"] for one in found} == {
            name: group_type for name, (group_type, _) in LISTED.items()
        }


@pytest.mark.parametrize(
    ("types", "states", "names"),
    [
        (["consumer"], [], ["audit", "moved"]),
        (["Classic", "SHARE"], [], ["sharing", "workers"]),
        (["streams"], ["empty"], ["application"]),
        (["streams"], ["Stable"], []),
        ([], ["Stable", "Dead"], []),
        (["unknown"], [], []),
    ],
)
def test_filters_of_groups(groups: Server, types: list[str], states: list[str], names: list[str]) -> None:
    with Connection(groups) as client:
        found = client.ask(LIST_GROUPS, 5, typesFilter=types, statesFilter=states)["groups"]
    assert [one["groupId"] for one in found] == names


@pytest.mark.parametrize(
    ("api", "version", "group_type", "names"),
    [
        (DESCRIBE_GROUPS, 6, "classic", {"workers": {"protocolType": "connect", "members": []}}),
        (
            CONSUMER_GROUP_DESCRIBE,
            1,
            "consumer",
            {
                "audit": {"groupEpoch": 5, "assignmentEpoch": 4, "assignorName": "uniform"},
                "moved": {"groupEpoch": 9, "assignmentEpoch": 8, "assignorName": "uniform"},
            },
        ),
        (
            SHARE_GROUP_DESCRIBE,
            1,
            "share",
            {"sharing": {"groupEpoch": 6, "assignmentEpoch": 6, "assignorName": "simple"}},
        ),
    ],
)
def test_descriptions_of_groups(
    groups: Server, api: int, version: int, group_type: str, names: dict[str, dict[str, Any]]
) -> None:
    field = "groups" if api == DESCRIBE_GROUPS else "groupIds"
    with Connection(groups) as client:
        found = client.ask(api, version, **{field: [*LISTED, "gone", ""]})["groups"]
    for one in found:
        name = one["groupId"]
        if name in names:
            wanted = {"errorCode": 0, "groupState": "Empty", **names[name]}
            assert {key: one[key] for key in wanted} == wanted
        elif name in LISTED:
            message = f"Group {name} is not a {group_type} group."
            assert (one["errorCode"], one["errorMessage"]) == (GROUP_ID_NOT_FOUND, message)
        else:
            error = INVALID_GROUP_ID if name == "" else GROUP_ID_NOT_FOUND
            assert (one["errorCode"], one["errorMessage"]) == (error, f"Group {name} not found.")


def test_a_group_that_clients_have_taken_over(groups: Server) -> None:
    """It is of the type that its members give it, and in no list twice."""
    joining = {"rebalanceTimeoutMs": 60_000, "subscribedTopicNames": ["v2_none"], "topicPartitions": []}
    with Connection(groups) as client:
        assert client.ask(68, 1, groupId="workers", memberId="m", memberEpoch=0, **joining)["errorCode"] == 0
        listed = client.ask(LIST_GROUPS, 5)["groups"]
        assert [one["groupType"] for one in listed if one["groupId"] == "workers"] == ["consumer"]
        (described,) = client.ask(DESCRIBE_GROUPS, 6, groups=["workers"])["groups"]
        assert described["errorMessage"] == "Group workers is not a classic group."
        assert client.ask(68, 1, groupId="workers", memberId="m", memberEpoch=-1)["errorCode"] == 0


def cut(source: Path, target: Path, time: int) -> Path:
    """A copy that ends before the first batch with a later timestamp."""
    target.mkdir(parents=True)
    for segment in sorted(source.glob("*.log")):
        data = segment.read_bytes()
        end = next(
            (one.position for one in magicbyte.read_batches(data) if one.max_timestamp > time), len(data)
        )
        (target / segment.name).write_bytes(data[:end])
        if end < len(data):
            break
    return target


def times_of(directory: Path) -> list[int]:
    batches = (
        one for log in sorted(directory.glob("*.log")) for one in magicbyte.read_batches(log.read_bytes())
    )
    return sorted({one.max_timestamp for one in batches})


@pytest.mark.parametrize("name", ["v2_txn", "v2_idempotent"])
def test_producers_of_an_earlier_time(tmp_path: Path, name: str) -> None:
    """They are those of a log that ends there."""
    states = []
    for time in times_of(KAFKA / name)[::3]:
        with (
            magicbyte.serve(KAFKA / name, as_of=time) as then,
            magicbyte.serve(cut(KAFKA / name, tmp_path / f"{time}" / f"{name}-0", time)) as short,
        ):
            topics = [{"name": name, "partitionIndexes": [0]}]
            answers = []
            for server in (then, short):
                with Connection(server) as client:
                    body = client.ask(DESCRIBE_PRODUCERS, 0, topics=topics)
                answers.append(body["topics"][0]["partitions"][0]["activeProducers"])
            assert answers[0] == answers[1], time
            states.append(answers[0])
    assert len({str(one) for one in states}) > 3
    if name == "v2_txn":
        assert {one["currentTxnStartOffset"] >= 0 for state in states for one in state} == {True, False}


def test_producers_without_what_is_not_committed() -> None:
    """The log ends at the last stable offset, where no transaction is open."""
    topics = [{"name": "v2_txn", "partitionIndexes": [0]}]
    with magicbyte.serve(KAFKA / "v2_txn", read_committed_only=True) as server, Connection(server) as client:
        body = client.ask(DESCRIBE_PRODUCERS, 0, topics=topics)
    producers = body["topics"][0]["partitions"][0]["activeProducers"]
    assert producers
    assert {one["currentTxnStartOffset"] for one in producers} == {-1}


def test_committed_offsets_of_an_earlier_time(tmp_path: Path) -> None:
    source = KAFKA / "consumer_offsets_0"
    shutil.copytree(source, tmp_path / "all" / "__consumer_offsets-0")
    found = []
    for time in times_of(source):
        cut(source, tmp_path / f"{time}" / "__consumer_offsets-0", time)
        commits = magicbyte.offsets(tmp_path / f"{time}")["offsets"]
        with magicbyte.serve(tmp_path / "all", as_of=time) as server, Connection(server) as client:
            groups = [{"groupId": one, "topics": None} for one in sorted({one["group"] for one in commits})]
            body = client.ask(FETCH_OFFSETS, 8, groups=groups)
        offsets = [
            (group["groupId"], topic["name"], one["partitionIndex"], one["committedOffset"])
            for group in body["groups"]
            for topic in group["topics"]
            for one in topic["partitions"]
        ]
        assert offsets == [(one["group"], one["topic"], one["partition"], one["offset"]) for one in commits]
        found.append(len(offsets))
    assert len(set(found)) > 1
