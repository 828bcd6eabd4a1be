"""`magicbyte explain`: compared with the fixtures' own lines, in a browser, on hostile and on large logs."""

from __future__ import annotations

import json
import shutil
import struct
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import chromium, opened
from conftest import KAFKA, PARTITIONS, Cli
from magicbyte import RecordsBuilder
from magicbyte.cli.history_text import figures_of
from magicbyte.jobs.explain import explain
from magicbyte.jobs.run.engines import SparkEngine
from magicbyte.options.read import ExplainOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCREENSHOTS = Path(__file__).parents[2] / "target" / "explain"


def history_of(cli: Cli, directory: Path, *options: object, code: int | None = None) -> dict[str, Any]:
    text = cli("explain", "--json", *options, directory, code=code)
    (history,) = json.loads(text)["partitions"]
    return history


@pytest.mark.parametrize("name", PARTITIONS)
def test_the_history_agrees_with_kafkas_lines(cli: Cli, name: str) -> None:
    """Kafka's own reading of each batch is in `batches.jsonl`."""
    history = history_of(cli, KAFKA / name)
    batches = [json.loads(line) for line in (KAFKA / name / "batches.jsonl").read_text().splitlines()]
    assert history["batches"] == len(batches)
    assert history["magics"] == {str(magic): n for magic, n in Counter(b["magic"] for b in batches).items()}
    v2 = [batch for batch in batches if batch["magic"] == 2]
    data = [batch for batch in v2 if batch["pid"] >= 0 and not batch["control"]]
    producers = {
        (one["producer_id"], one["producer_epoch"]): one for one in history["producers"] if one["batches"]
    }
    assert producers.keys() == {(batch["pid"], batch["epoch"]) for batch in data}
    for (producer, epoch), one in producers.items():
        own = [b for b in data if (b["pid"], b["epoch"]) == (producer, epoch)]
        assert (one["batches"], one["records"]) == (len(own), sum(b["count"] for b in own))
        assert (one["first_sequence"], one["last_sequence"]) == (
            own[0]["baseSequence"],
            own[-1]["lastSequence"],
        )
    assert sum(one["batches"] for one in history["controls"]) == sum(b["control"] for b in v2)
    assert history["without_producer"] == len(batches) - sum(b["pid"] >= 0 for b in v2)
    if len(v2) == len(batches) and batches:
        length = batches[-1]["lastOffset"] + 1 - batches[0]["baseOffset"]
        assert history["missing_offsets"] == length - sum(b["count"] for b in v2)
    assert sum(one["batches"] for one in history["bins"]) == len(batches)
    # Compaction removes sequences; apart from that, these brokers appended nothing out of order.
    assert sum(history["anomaly_counts"].values()) == history["compacted_anomalies"]


def test_a_hanging_transaction(cli: Cli) -> None:
    """By the rule of `find-hanging`: its last append is older than the longest transaction allowed."""
    history = history_of(cli, KAFKA / "v2_txn", "--now", 1_700_000_060_014 + 15 * 60_000, code=0)
    (one,) = [one for one in history["transactions"] if one["outcome"] == "open"]
    assert (one["producer_id"], one["first_offset"], one["age_ms"]) == (4, 83, 900_000)
    assert not one["hanging"]
    history = history_of(cli, KAFKA / "v2_txn", "--now", 1_700_000_060_015 + 15 * 60_000, code=1)
    assert [one["first_offset"] for one in history["transactions"] if one["hanging"]] == [83]
    assert "hanging" in cli("explain", KAFKA / "v2_txn", code=1)


def transaction_state(producer: int, status: int, *partitions: int, topic: bytes = b"v2_txn") -> bytes:
    """A TransactionLogValue of version 0."""
    numbers = struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    topics = struct.pack(">ih", 1, len(topic)) + topic + numbers if partitions else struct.pack(">i", 0)
    return struct.pack(">hqhib", 0, producer, 0, 60_000, status) + topics + struct.pack(">qq", 1, 1)


TRANSACTIONAL_ID = struct.pack(">hh", 0, 5) + b"tx-17"


@pytest.mark.parametrize(
    ("states", "known"),
    [
        ([transaction_state(4, 1, 0)], "Ongoing"),
        ([transaction_state(4, 1, 2, 0)], "Ongoing"),
        ([transaction_state(4, 2, 0)], "PrepareCommit"),
        ([transaction_state(4, 3, 0)], "PrepareAbort"),
        ([transaction_state(4, 4)], None),  # it had ended: the log lacks its marker
        ([transaction_state(4, 1, 0), transaction_state(4, 5)], None),
        ([transaction_state(4, 1, 0), None], None),  # the id has expired
        ([transaction_state(4, 1, 1)], None),  # it has not written here
        ([transaction_state(4, 1, 0, topic=b"others")], None),
        ([transaction_state(5, 1, 0)], None),  # another producer
        ([transaction_state(4, 99, 0)], None),  # a state that no version has
        ([b"\0\0cut"], None),
        ([], None),
    ],
)
def test_a_transaction_that_the_coordinator_knows_does_not_hang(
    cli: Cli, tmp_path: Path, states: list[bytes | None], known: str | None
) -> None:
    shutil.copytree(KAFKA / "v2_txn", tmp_path / "v2_txn-0")
    builder = RecordsBuilder()
    for offset, state in enumerate(states):
        builder.append(offset, 1000, TRANSACTIONAL_ID, state)
    (tmp_path / "__transaction_state-3").mkdir()
    (tmp_path / "__transaction_state-3" / f"{0:020}.log").write_bytes(builder.build() if states else b"")
    for choice in ((), ("--topic", "v2_txn")):
        text = cli("explain", "--json", *choice, tmp_path, code=0 if known else 1)
        (history,) = (one for one in json.loads(text)["partitions"] if one["topic"] == "v2_txn")
        (one,) = (one for one in history["transactions"] if one["outcome"] == "open")
        assert one["hanging"] == (known is None)
        assert one["coordinator_state"] == known
        assert one["transactional_id"] == (known and "tx-17")
        assert history["transaction_counts"]["hanging"] == int(known is None)
    shown = f"open, known to the coordinator (tx-17, {known})" if known else "hanging"
    assert shown in cli("explain", tmp_path, code=0 if known else 1)


LEGACY = [name for name in PARTITIONS if name.startswith(("v0", "v1", "mixed"))]


@pytest.mark.parametrize("name", LEGACY)
def test_records_in_wrappers_count(cli: Cli, name: str) -> None:
    """Their headers have neither the number of their messages nor the first offset."""
    history = history_of(cli, KAFKA / name)
    (read,) = cli.json("verify", KAFKA / name)["partitions"]
    assert history["records"] == read["announced"]
    assert history["unknown_wrappers"] == 0
    assert (history["first_offset"], history["missing_offsets"]) == (
        read["first_offset"],
        read["missing_offsets"],
    )


def test_a_wrapper_that_does_not_decode_is_unknown(cli: Cli, tmp_path: Path) -> None:
    whole = history_of(cli, KAFKA / "v1_gzip")
    shutil.copytree(KAFKA / "v1_gzip", tmp_path / "t-0", ignore=shutil.ignore_patterns("rebuilt", "*.json*"))
    segment = min((tmp_path / "t-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[12 + int.from_bytes(data[8:12], "big") - 5] ^= 1  # near the end of the first message
    segment.write_bytes(data)
    history = history_of(cli, tmp_path / "t-0")
    assert history["unknown_wrappers"] == 1
    assert history["records"] < whole["records"]
    # Nothing is said about the offsets in it.
    assert history["gaps"] == whole["gaps"]
    assert "1 wrapper that does not decode" in cli("explain", tmp_path / "t-0", KAFKA / "v2_none")


def batch(
    offset: int, producer: int, epoch: int, sequence: int, *, time: int = 1000, transactional: bool = False
) -> bytes:
    builder = RecordsBuilder(
        producer_id=producer, producer_epoch=epoch, base_sequence=sequence, is_transactional=transactional
    )
    builder.append_many([(offset, time, b"k", b"v"), (offset + 1, time, b"k", b"v")])
    return builder.build()


def marker(offset: int, producer: int, epoch: int, coordinator: int) -> bytes:
    builder = RecordsBuilder(
        producer_id=producer, producer_epoch=epoch, is_transactional=True, is_control=True
    )
    builder.append(offset, 2000, struct.pack(">hh", 0, 1), struct.pack(">hi", 0, coordinator))
    return builder.build()


def test_nothing_odd_is_left_out(cli: Cli, tmp_path: Path) -> None:
    """Duplicates, gaps, epochs and coordinators that go back, markers without data, damage."""
    log = [
        batch(0, 1, 0, 0),
        batch(2, 1, 0, 2),
        batch(4, 1, 0, 0, time=500),  # A late duplicate of the first.
        batch(6, 1, 0, 2),  # The next one after that, but it repeats the second.
        batch(8, 1, 0, 9),  # Five are missing.
        batch(10, 1, 3, 4),  # A new epoch does not begin with 4.
        batch(12, 1, 2, 0),  # An epoch goes back.
        marker(14, 2, 0, 7),  # There is nothing to end.
        batch(15, 2, 0, 0, transactional=True),
        batch(17, 2, 0, 2),  # Not of the open transaction.
        marker(19, 2, 0, 6),  # From a coordinator that has been replaced.
        b"\x01" * 300,
        batch(30, 1, 2, 2, transactional=True),
    ]
    directory = tmp_path / "odd-0"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(b"".join(log))
    history = history_of(cli, directory, code=1)
    found = [(one["offset"], one["kind"], one["sequence"]) for one in history["anomalies"]]
    assert found == [
        (4, "DUPLICATE_SEQUENCE_NUMBER", 0),
        (6, "DUPLICATE_SEQUENCE_NUMBER", 2),
        (8, "OUT_OF_ORDER_SEQUENCE_NUMBER", 9),
        (10, "OUT_OF_ORDER_SEQUENCE_NUMBER", 4),
        (12, "INVALID_PRODUCER_EPOCH", 0),
        (17, "INVALID_TXN_STATE", 2),
        (19, "TRANSACTION_COORDINATOR_FENCED", -1),
    ]
    late = history["steps_back"][0]
    assert (late["offset"], late["before"] - late["timestamp"]) == (4, 500)
    position = sum(map(len, log[:11]))
    assert history["skipped"] == [
        {"segment": f"{0:020}.log", "start": position, "end": position + 300, "is_tail": False}
    ]
    assert [(one["first_offset"], one["missing"]) for one in history["gaps"]] == [(20, 10)]
    outcomes = [
        (one["outcome"], one["first_offset"], one["marker_offset"]) for one in history["transactions"]
    ]
    assert outcomes == [("committed", None, 14), ("committed", 15, 19), ("open", 30, None)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_in_a_browser(cli: Cli, tmp_path: Path, scheme: str) -> None:
    name = {"light": "v2_txn", "dark": "v2_compacted_txn"}[scheme]
    file = tmp_path / "page.html"
    history: Any = history_of(cli, KAFKA / name, "--html", file)
    page = opened(file)
    assert page.figures == {key: figure for key, _, figure in figures_of(history)}
    counted = Counter(one["outcome"] for one in history["transactions"])
    assert [int(page.figures[f"transactions.{outcome}"]) for outcome in ("committed", "aborted", "open")] == [
        counted["committed"],
        counted["aborted"],
        counted["open"],
    ]
    assert page.tags["svg"] >= 3
    assert page.tags["script"] == 0
    with_words = [value for key, value in page.attributes if key == "aria-label"]
    assert len(with_words) == page.tags["svg"]
    links = {value for key, value in page.attributes if key in ("src", "href", "xlink:href")}
    assert links == set()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    shot = SCREENSHOTS / f"{name}.png"
    shot.unlink(missing_ok=True)
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    chromium(file, *dark, f"--screenshot={shot}", "--window-size=1100,1900")
    assert shot.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert shot.stat().st_size > 50_000


def test_a_hostile_name(cli: Cli, tmp_path: Path) -> None:
    directory = tmp_path / "<img src=x onerror=alert(1)>\x1b[31m&quot;'\"-0"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(batch(0, 1, 0, 0))
    (directory / "<script>alert(2)<script>").write_bytes(b"x")
    file = tmp_path / "page.html"
    text = cli("explain", directory, "--html", file)
    assert "\x1b" not in text + file.read_text()
    page = opened(file)
    assert page.tags["img"] == page.tags["script"] == 0
    assert not [key for key, _ in page.attributes if key.startswith("on")]


def test_a_hundred_thousand_batches(cli: Cli, tmp_path: Path) -> None:
    """The page's size depends on its bins only, and its figures count all batches."""
    directory = tmp_path / "many-0"
    directory.mkdir()
    count = 100_000
    one = bytearray(batch(0, 7, 0, 0))
    with (directory / f"{0:020}.log").open("wb") as log:
        # Offsets are not under the checksum; the repeated sequence is reported.
        for at in range(count):
            struct.pack_into(">q", one, 0, at * 2)
            log.write(one)
    file = tmp_path / "page.html"
    history: Any = history_of(cli, directory, "--html", file, code=1)
    assert history["batches"] == count
    assert history["anomaly_counts"] == {"DUPLICATE_SEQUENCE_NUMBER": count - 1}
    assert len(history["anomalies"]) == 1000
    assert len(history["bins"]) <= 320
    assert file.stat().st_size < 500_000
    assert opened(file).figures["batches"] == "100,000"


@pytest.mark.spark
def test_on_spark(cli: Cli, spark: SparkSession) -> None:
    """The same history from Spark's tasks, and its tables."""
    source = str(KAFKA / "v2_compacted_txn")
    local: Any = history_of(cli, Path(source), "--now", 2_000_000_000_000)
    assert explain([source], SparkEngine(spark), ExplainOptions(now=2_000_000_000_000)) == [local]
    for table in ("producers", "transactions"):
        frame = spark.read.format("magicbyte").option("table", table).load(source)
        rows = [row.asDict() for row in frame.collect()]
        assert len(rows) == len(local[table])
        for row, expected_row in zip(rows, local[table], strict=True):
            for name, value in expected_row.items():
                first, *others = name.split("_")
                assert row[first + "".join(map(str.capitalize, others))] == value
    counts = Counter(one["outcome"] for one in local["transactions"])
    assert frame.where("outcome = 'aborted'").select("markerOffset").count() == counts["aborted"]


def test_a_page_replaces_only_a_page(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explain(file: Path, code: int = 0) -> None:
        cli("explain", KAFKA / "v2_none", "--html", file, code=code)

    foreign = tmp_path / f"{0:020}.log"
    shutil.copyfile(KAFKA / "v2_none" / foreign.name, foreign)
    explain(foreign, code=2)
    assert "not a page of magicbyte explain" in cli.error
    assert foreign.read_bytes() == (KAFKA / "v2_none" / foreign.name).read_bytes()
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.touch()
    link.symlink_to(page)
    explain(link)
    explain(page)
    first = page.read_bytes()
    assert link.is_symlink()
    (tmp_path / "umask").touch()
    assert page.stat().st_mode == (tmp_path / "umask").stat().st_mode

    # The old page is kept if the new one cannot be written.
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    explain(page, code=3)
    assert page.read_bytes() == first
    assert {path.name for path in tmp_path.iterdir()} == {foreign.name, "page.html", "link.html", "umask"}


def test_control_batches_are_no_data(cli: Cli, tmp_path: Path) -> None:
    """A marker has the coordinator's time, and is smaller than any batch of records."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    data = batch(0, 1, 0, 0, time=5000, transactional=True)
    (directory / f"{0:020}.log").write_bytes(data + marker(2, 1, 0, 1) + marker(3, 1, 0, 1))
    history = history_of(cli, directory)
    assert history["step_back_count"] == 0
    assert [one["control_batches"] for one in history["bins"]] == [0, 1, 1]
    assert [one["smallest"] for one in history["bins"]] == [len(data), 0, 0]
    assert [one["max_timestamp"] for one in history["bins"]] == [5000, -1, -1]
    page = tmp_path / "page.html"
    cli("explain", directory, "--html", page)
    size = f"{len(data)} B"
    assert f"1 batches of data from {size} to {size}" in page.read_text()
    # Control batches alone have no sizes to show.
    (directory / f"{0:020}.log").write_bytes(marker(0, 1, 0, 1))
    cli("explain", directory, "--html", page)
    assert "Sizes of batches" not in page.read_text()


def test_several_partitions_begin_with_what_is_notable(cli: Cli, tmp_path: Path) -> None:
    for partition in range(30):
        directory = tmp_path / "logs" / f"t-{partition}"
        directory.mkdir(parents=True)
        log = batch(0, 1, 0, 0) + batch(2, 1, 0, 2, time=500 if partition == 3 else 2000)
        (directory / f"{0:020}.log").write_bytes(log + (b"\x01" * 300 if partition == 7 else b""))
    text = cli("explain", tmp_path / "logs", code=1)
    assert text.splitlines()[:3] == [
        "30 partitions, 120 records, 4.9 KiB; 2 notable:",
        "  t-7                            1 range of bytes in no batch",
        "  t-3                            1 step back in time",
    ]
    assert [line for line in text.splitlines() if line.startswith("t-")] == [
        f"t-{partition}  {tmp_path}/logs/t-{partition}" for partition in (7, 3)
    ]
    assert "28 more partitions" in text
    assert "CRCs and records were not checked" in text
    page = tmp_path / "page.html"
    cli("explain", tmp_path / "logs", "--html", page, code=1)
    shown = page.read_text()
    assert [name for name in ("t-7", "t-3", "t-0", "t-29") if f"<h1>{name}<" in shown] == [
        "t-7",
        "t-3",
        "t-0",
    ]
    assert shown.count('class="history" id=') == 20
    assert shown.count("<td>t-") + shown.count('">t-') == 30
    assert "were not checked" in shown


def test_crcs_are_checked_on_request(cli: Cli, tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    log = bytearray(batch(0, 1, 0, 0) + batch(2, 1, 0, 2))
    log[70] ^= 1
    (directory / f"{0:020}.log").write_bytes(log)
    cli("explain", directory)
    text = cli("explain", "--verify", directory, code=1)
    assert "crc_mismatch" in text
    report = json.loads(cli("explain", "--verify", "--json", directory, code=1))
    assert report["verification"]["total"]["quarantined_bytes"] == len(log) // 2
    assert json.loads(cli("explain", "--json", directory))["verification"] is None


def test_time_steps_hold_all_bytes(cli: Cli) -> None:
    from magicbyte.cli.history_notes import time_steps

    for name in ("v2_none", "v2_timestamps", "mixed_012", "v2_txn"):
        history = history_of(cli, KAFKA / name, code=None)
        steps = time_steps(history["bins"], 50)
        timed = [one for one in history["bins"] if one["max_timestamp"] >= 0]
        if steps is None:
            assert not timed
            continue
        assert sum(steps.bytes) == pytest.approx(sum(one["bytes"] - one["control_bytes"] for one in timed))
        assert sum(steps.records) == pytest.approx(sum(one["records"] for one in timed))
        assert steps.start <= steps.end
