"""Dead letters are joined to their source records, by the headers of share groups and connectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import magicbyte
import pytest
from conftest import Cli

Headers = Sequence[tuple[str, bytes | None]]
Row = tuple[int, bytes | None, bytes | None, Headers]


def write(root: Path, name: str, *batches: Sequence[Row], compression: str = "none") -> Path:
    """Writes a partition, whose first batch names its segment."""
    (root / name).mkdir(parents=True)
    data = b""
    for rows in batches:
        builder = magicbyte.RecordsBuilder(compression=compression)
        for offset, key, value, headers in rows:
            builder.append(offset, 1_700_000_000_000, key, value, headers)
        data += bytes(builder.build())
    path = root / name / f"{batches[0][0][0]:020}.log"
    path.write_bytes(data)
    return path


def of_share_group(
    topic: str, partition: int | str, offset: int | str, *others: tuple[str, bytes]
) -> Headers:
    named = (("topic", topic), ("partition", partition), ("offset", offset), ("group", "sharing"))
    return [*((f"__dlq.errors.{name}", str(value).encode()) for name, value in named), *others]


def of_connector(topic: str, partition: int, offset: int) -> Headers:
    named = {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "connector.name": "sink",
        "stage": "VALUE_CONVERTER",
        "exception.message": "no JSON",
    }
    return [(f"__connect.errors.{name}", str(value).encode()) for name, value in named.items()]


def orders(*offsets: int) -> list[Row]:
    return [(offset, b"key %d" % offset, b"value %d" % offset, ()) for offset in offsets]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A topic that begins at 10 and lacks 25, and the dead letters of two consumers."""
    root = tmp_path / "logs"
    write(root, "orders-0", orders(*range(10, 20)), orders(*(set(range(20, 30)) - {25})))
    counts = ("__dlq.errors.delivery.count", b"5"), ("__dlq.errors.message", b"Offset rejected by client.")
    write(
        root,
        "orders.dlq-0",
        [
            (0, b"key 12", b"value 12", of_share_group("orders", 0, 12, *counts)),
            (1, None, None, of_share_group("orders", 0, 21)),
            (2, b"key 22", b"VALUE 22", of_connector("orders", 0, 22)),
            (3, b"plain", b"record", [("offset", b"3")]),
        ],
        [
            (4, b"key 5", b"value 5", of_share_group("orders", 0, 5)),
            (5, b"key 25", b"value 25", of_share_group("orders", 0, 25)),
            (6, b"key 30", b"value 30", of_share_group("orders", 0, 30)),
            (7, b"key 1", b"value 1", of_share_group("orders", 1, 1)),
            (8, b"key 1", b"value 1", of_share_group("orders", "one", 1)),
            (9, b"key 12", b"value 12", of_share_group("orders", 0, 12)),
        ],
        compression="lz4",
    )
    return root


EXPECTED = {
    0: ("orders", 0, 12, "found", "equal", "equal"),
    1: ("orders", 0, 21, "found", "not_copied", "not_copied"),
    2: ("orders", 0, 22, "found", "equal", "different"),
    4: ("orders", 0, 5, "deleted", None, None),
    5: ("orders", 0, 25, "missing", None, None),
    6: ("orders", 0, 30, "after_end", None, None),
    7: ("orders", 1, 1, "absent", None, None),
    8: ("orders", None, 1, "unnamed", None, None),
    9: ("orders", 0, 12, "found", "equal", "equal"),
}


def test_explain(logs: Path, cli: Cli) -> None:
    report = cli.json("explain", "--dead-letters", logs)["dead_letters"]
    assert {one["offset"]: tuple(one["source"].values()) for one in report["dead_letters"]} == EXPECTED
    assert report["counts"] == {
        "found": 4,
        "deleted": 1,
        "missing": 1,
        "after_end": 1,
        "absent": 1,
        "unnamed": 1,
    }
    assert (report["different"], report["problems"]) == (1, [])
    first, connector = report["dead_letters"][0], report["dead_letters"][2]
    del first["source"], connector["source"]
    assert first == {
        "topic": "orders.dlq",
        "partition": 0,
        "offset": 0,
        "timestamp": 1_700_000_000_000,
        "group": "sharing",
        "delivery_count": 5,
        "connector": None,
        "stage": None,
        "message": "Offset rejected by client.",
    }
    assert (connector["connector"], connector["stage"], connector["message"]) == (
        "sink",
        "VALUE_CONVERTER",
        "no JSON",
    )
    text = cli("explain", "--dead-letters", logs)
    assert "9 dead letters; source records: 4 found" in text
    assert "not_copied" in text
    assert cli.json("explain", logs)["dead_letters"] is None


def test_records(logs: Path, cli: Cli) -> None:
    lines = cli("records", "--dead-letters", "--topic", "orders.dlq", logs).splitlines()
    rows = [json.loads(line) for line in lines]
    assert {row["offset"]: tuple(row["source"].values()) for row in rows if "source" in row} == EXPECTED
    plain = cli("records", "--topic", "orders.dlq", logs).splitlines()
    for row, line in zip(rows, plain, strict=True):
        row.pop("source", None)
        assert row == json.loads(line)
    assert lines[3] == plain[3]


@pytest.mark.parametrize("options", [("--batches",), ("--format", "csv"), ("-f", "%o")])
def test_records_in_other_forms(logs: Path, cli: Cli, options: tuple[str, ...]) -> None:
    assert cli("records", "--dead-letters", *options, logs, code=2) == ""
    assert "--dead-letters" in cli.error


def test_the_choice_selects_queues_and_not_sources(logs: Path) -> None:
    choice = magicbyte.PartitionChoice(topics=("orders.dlq",))
    report = magicbyte.dead_letters(logs, choice=choice)
    assert report["counts"]["found"] == 4
    choice = magicbyte.PartitionChoice(topics=("orders",))
    assert magicbyte.dead_letters(logs, choice=choice)["dead_letters"] == []


def test_a_queue_without_its_sources(logs: Path) -> None:
    counts = magicbyte.dead_letters(logs / "orders.dlq-0")["counts"]
    assert {state: count for state, count in counts.items() if count} == {"absent": 8, "unnamed": 1}


def test_several_copies_of_a_source(logs: Path, tmp_path: Path) -> None:
    """What one copy lacks, another may have."""
    write(tmp_path / "other", "orders-0", orders(5, 25, 30))
    report = magicbyte.dead_letters([logs, tmp_path / "other"])
    states = {one["offset"]: one["source"]["state"] for one in report["dead_letters"]}
    assert states[0] == states[4] == states[5] == states[6] == "found"


def test_a_topic_by_its_id(logs: Path, tmp_path: Path) -> None:
    """A broker that does not know the topic's name any more writes its ID."""
    topic_id = "A" * 20 + "Bw"
    (logs / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    write(logs, "late-0", [(0, b"key 12", b"value 12", of_share_group(topic_id, 0, 12))])
    (letter,) = (one for one in magicbyte.dead_letters(logs)["dead_letters"] if one["topic"] == "late")
    assert letter["source"] == {
        "topic": "orders",
        "partition": 0,
        "offset": 12,
        "state": "found",
        "key": "equal",
        "value": "equal",
    }


def test_a_damaged_source(logs: Path) -> None:
    """The second batch: what it had is missing, also where the log ended with it."""
    (path,) = (logs / "orders-0").glob("*.log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 255
    path.write_bytes(data)
    report = magicbyte.dead_letters(logs)
    states = {one["offset"]: one["source"]["state"] for one in report["dead_letters"]}
    assert (states[0], states[1], states[2], states[9]) == ("found", "missing", "missing", "found")


def test_a_damaged_queue(logs: Path, cli: Cli) -> None:
    (path,) = (logs / "orders.dlq-0").glob("*.log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 255
    path.write_bytes(data)
    report = cli.json("explain", "--dead-letters", "--topic", "orders.dlq", logs, code=1)["dead_letters"]
    assert [one["offset"] for one in report["dead_letters"]] == [0, 1, 2]
    assert len(report["problems"]) == 1


def test_a_record_that_failed_twice(tmp_path: Path) -> None:
    """A connector keeps the headers of what it reads: its own are the later ones."""
    both = [*of_share_group("orders", 0, 3), *of_connector("orders.dlq", 0, 1)]
    write(tmp_path, "failed-0", [(0, b"k", b"v", both)])
    (letter,) = magicbyte.dead_letters(tmp_path)["dead_letters"]
    assert (letter["source"]["topic"], letter["source"]["offset"]) == ("orders.dlq", 1)


@pytest.mark.parametrize("number", [b"", b"-1", b"1.0", b" 1", b"9" * 30, "٣".encode(), b"\xff", None])
def test_headers_that_are_no_numbers(tmp_path: Path, number: bytes | None) -> None:
    headers = [
        ("__dlq.errors.topic", b"t"),
        ("__dlq.errors.partition", b"0"),
        ("__dlq.errors.offset", number),
    ]
    write(tmp_path, "t-0", [(0, b"k", b"v", headers)])
    (letter,) = magicbyte.dead_letters(tmp_path)["dead_letters"]
    assert (letter["source"]["state"], letter["source"]["offset"]) == ("unnamed", None)


def test_many_dead_letters_in_any_order(tmp_path: Path) -> None:
    """Their source records are near each other and far apart, in several segments and partitions."""
    for partition in range(3):
        first = orders(*range(1000))
        path = write(tmp_path, f"orders-{partition}", first, orders(*range(50_000, 51_000)))
        builder = magicbyte.RecordsBuilder()
        for offset, key, value, _ in orders(*range(90_000, 90_100)):
            builder.append(offset, 1, key, value)
        (path.parent / f"{90_000:020}.log").write_bytes(builder.build())
    places = [
        (partition, offset)
        for offset in (90_099, 3, 999, 50_500, 2, 90_000, 0, 50_000, 998, 1000, 70_000, 90_100)
        for partition in range(3)
    ]
    write(
        tmp_path,
        "dlq-0",
        [
            (number, b"key %d" % offset, b"value %d" % offset, of_share_group("orders", partition, offset))
            for number, (partition, offset) in enumerate(places)
        ],
    )
    report = magicbyte.dead_letters(tmp_path)
    for letter, (partition, offset) in zip(report["dead_letters"], places, strict=True):
        source = letter["source"]
        assert (source["partition"], source["offset"]) == (partition, offset)
        state = "after_end" if offset == 90_100 else "missing" if offset in (1000, 70_000) else "found"
        assert source["state"] == state, offset
        assert source["value"] == ("equal" if state == "found" else None)
