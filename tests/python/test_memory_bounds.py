"""The memory and report sizes that hostile directories cause: the table of limits in SECURITY.md, measured.

A command runs in its own process, and once over a small log: the difference is what the input took.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from magicbyte import PartitionLog, RecordsBuilder, _core

ROOT = Path(__file__).parent.parent.parent
TRANSACTIONAL, CONTROL = 0x10, 0x20
RECORD = bytes([14]) + b"\0\0\0\1\2v\0"
LISTED = _core.LISTED


def batch(
    offset: int,
    *,
    producer: int = -1,
    attributes: int = 0,
    leader_epoch: int = 0,
    record: bytes = RECORD,
) -> bytes:
    """A batch of magic 2 with one record."""
    epoch, sequence = (-1, -1) if producer < 0 else (0, 0)
    body = struct.pack(">hiqqqhii", attributes, 0, 1, 1, producer, epoch, sequence, 1) + record
    head = struct.pack(">qiibI", offset, 9 + len(body), leader_epoch, 2, _core.crc32c(body))
    return head + body


def marker(offset: int, producer: int, *, commits: bool = True) -> bytes:
    """The end of a transaction."""
    key, value = struct.pack(">hh", 0, commits), struct.pack(">hi", 0, 7)
    record = b"\0\0\0" + bytes([len(key) * 2]) + key + bytes([len(value) * 2]) + value + b"\0"
    record = bytes([len(record) * 2]) + record
    return batch(offset, producer=producer, attributes=TRANSACTIONAL | CONTROL, record=record)


def damaged(count: int) -> Iterator[bytes]:
    """Sound batches with zeros between them: each is a range of its own."""
    return (batch(offset) + bytes(64) for offset in range(count))


def transactions(count: int) -> Iterator[bytes]:
    """Each of a producer of its own."""
    for at in range(count):
        yield batch(2 * at, producer=at, attributes=TRANSACTIONAL) + marker(2 * at + 1, at)


def segment(directory: Path, base_offset: int, batches: Iterator[bytes] | bytes) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{base_offset:020}.log").open("wb") as file:
        file.write(batches) if isinstance(batches, bytes) else file.writelines(batches)


_MEASURED = """
import resource, subprocess, sys
code = subprocess.call([sys.executable, "-m", "magicbyte", *sys.argv[1:]], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def peak(*arguments: object) -> int:
    """The most memory that the command takes, in bytes.

    A process begins with the peak of the one that starts it: a small one between knows nothing of ours.
    """
    command = [sys.executable, "-c", _MEASURED, *map(str, arguments)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return int(done.stderr.split()[-1]) << (0 if sys.platform == "darwin" else 10)


def taken(command: list[object], log: Path, out: Path | None = None, *, batches: int = 1) -> int:
    """How many bytes more the command takes for this log than for a small sound one."""
    small = log.parent / "small" / log.name
    segment(small, 0, map(batch, range(batches)))
    name, *options = command
    outs = ([], []) if out is None else ([out.with_name(f"small-{out.name}")], [out])
    before, after = (
        peak(name, *options, source, *where) for source, where in zip((small, log), outs, strict=True)
    )
    return after - before


def local(name: str, *options: str) -> list[object]:
    return [name, "--engine", "local", "--threads", "2", *options]


@pytest.mark.parametrize(
    "command", [local("convert"), local("ingest"), local("redact", "--key", "k")], ids=lambda words: words[0]
)
def test_damaged_ranges(command: list[object], tmp_path: Path) -> None:
    """A range cost five kilobytes, and its lines in the report were larger than the log."""
    count = 10_000
    log, out = tmp_path / "t-0", tmp_path / "out"
    segment(log, 0, damaged(count))
    assert taken(command, log, out, batches=count) < 1500 * count
    text = (out / "reconciliation.json").read_text()
    assert len(text) < 1 << 20
    report = json.loads(text)
    (partition,) = report["partitions"]
    (one,) = partition["segments"]
    # The last zeros are the file's tail.
    assert report["balanced"]
    assert partition["rows"] == count
    assert one["quarantined_ranges"] == count - 1 == partition["problems"]
    assert one["quarantined_bytes"] == 64 * (count - 1) == partition["quarantined_bytes"]
    assert [part["start"] for part in one["quarantined"][:2]] == [69, 69 + 133]
    assert one["quarantined"][-1]["end"] == 133 * (count - 1)
    assert len(one["quarantined"]) == LISTED + 1
    if command[0] == "ingest":
        rows = sum(pq.read_metadata(path).num_rows for path in (out / "problems").rglob("*.parquet"))
        assert rows == count - 1, "the table has all"
    else:
        assert (len(report["problems"]), report["problems_left_out"]) == (LISTED, count - 1 - LISTED)


def test_damaged_ranges_of_a_verification(tmp_path: Path, cli: Any) -> None:
    count = 6000
    segment(tmp_path / "t-0", 0, damaged(count))
    command: list[object] = ["verify", "--threads", "2", "--json"]
    assert taken(command, tmp_path / "t-0", batches=count) < 1500 * count
    segment(tmp_path / "u-0", 0, damaged(LISTED + 30))
    report = cli.json("verify", tmp_path / "u-0", code=1)
    assert (len(report["problems"]), report["problems_left_out"]) == (LISTED, 29)
    assert report["total"]["problems"] == LISTED + 29
    text = cli("verify", tmp_path / "u-0", code=1)
    assert f"... and {LISTED + 9:,} more problems (ingest writes all of them as a table)" in text


def test_damaged_ranges_of_a_log_that_is_read(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, damaged(3 * LISTED))
    log = PartitionLog(str(tmp_path / "t-0"), mode="PERMISSIVE")
    import pyarrow as pa

    records, stream = log.records(), log.to_arrow(["offset"])
    assert sum(1 for _ in records) == pa.table(stream).num_rows == 3 * LISTED
    for read in (records, stream):
        assert (len(read.problems), read.problems_left_out) == (LISTED, 2 * LISTED - 1)
    assert log.verify().sums["problems"] == 3 * LISTED - 1


def test_the_first_range_of_each_kind_is_listed(tmp_path: Path, cli: Any) -> None:
    """A recovery that cuts needs the first that a broker notices, wherever it is."""
    bad = bytes([14]) + b"\0\0\0\1\2v\7"
    undecodable = [batch(at, record=bad if at % 2 else RECORD) for at in range(3 * LISTED)]
    torn = bytearray(batch(3 * LISTED))
    torn[30] ^= 1
    segment(tmp_path / "t-0", 0, iter([*undecodable, bytes(torn), batch(3 * LISTED + 1)]))
    report = cli.json("recover", "--engine", "local", tmp_path / "t-0", code=1)
    (cut,) = report["cuts"]
    assert cut["position"] == 69 * 3 * LISTED


def test_snapshots_of_producers(tmp_path: Path) -> None:
    """Each of the snapshots has all producers so far: they were held together, 46 bytes times the square."""
    count = 1500
    log = tmp_path / "t-0"
    for at in range(count):
        segment(log, at, batch(at, producer=at))
    assert taken(local("redact", "--key", "k"), log, tmp_path / "out") < 32_000 * count
    snapshots = [path.stat().st_size for path in (tmp_path / "out" / "t-0").glob("*.snapshot")]
    assert max(snapshots) == 10 + 46 * count
    assert len(snapshots) == count


def test_tiny_segments(tmp_path: Path) -> None:
    """A segment once took 140 KiB of its tables' memory until a row group was full."""
    count = 1500
    for at in range(count):
        segment(tmp_path / "t-0", at, batch(at))
    assert taken(local("ingest"), tmp_path / "t-0", tmp_path / "out") < 32_000 * count
    files = (tmp_path / "out" / "batches").rglob("*.parquet")
    groups = [pq.read_metadata(path).num_row_groups for path in files]
    assert sum(groups) <= 10, "tiny segments make no tiny row groups"


def test_transactions_of_a_history(tmp_path: Path, cli: Any) -> None:
    """One took nine kilobytes."""
    count = 15_000
    segment(tmp_path / "t-0", 0, transactions(count))
    assert taken(local("explain", "--json"), tmp_path / "t-0") < 2500 * count
    (history,) = cli.json("explain", "--engine", "local", tmp_path / "t-0")["partitions"]
    assert len(history["transactions"]) == len(history["producers"]) == LISTED
    assert history["producer_count"] == history["producer_ids"] == count
    assert history["transaction_counts"] == {"aborted": 0, "committed": count, "hanging": 0, "open": 0}
    assert sum(map(sum, history["transaction_steps"])) == count
    (listed,) = cli.json("explain", "--max-listed", 20_000, tmp_path / "t-0")["partitions"]
    assert len(listed["transactions"]) == len(listed["producers"]) == count
    text = cli("explain", "--engine", "local", tmp_path / "t-0")
    assert f"... and {count - 20:,} more" in text


def test_transactions_of_a_conversion(tmp_path: Path) -> None:
    """What segments say of producers was parsed into Python's objects, and written to JSON from these."""
    count = 20_000
    segment(tmp_path / "t-0", 0, transactions(count))
    assert taken(local("convert"), tmp_path / "t-0", tmp_path / "out") < 1500 * count
    assert taken(local("redact", "--key", "k"), tmp_path / "t-0", tmp_path / "out-2") < 1500 * count


def test_a_history_lists_what_is_open_first(tmp_path: Path, cli: Any) -> None:
    segment(
        tmp_path / "t-0",
        0,
        iter([*transactions(50), batch(100, producer=99, attributes=TRANSACTIONAL)]),
    )
    (history,) = cli.json("explain", "--max-listed", 3, tmp_path / "t-0", code=None)["partitions"]
    assert [one["outcome"] for one in history["transactions"]] == ["committed", "committed", "open"]
    assert history["transaction_counts"]["hanging"] == 1


def test_anomalies_and_skipped_bytes_of_a_history(tmp_path: Path, cli: Any) -> None:
    segment(tmp_path / "t-0", 0, damaged(3 * LISTED))
    segment(tmp_path / "u-0", 0, (batch(at, producer=1) for at in range(3 * LISTED)))
    damage, repeats = cli.json("explain", "--engine", "local", tmp_path, code=1)["partitions"]
    assert (len(damage["skipped"]), damage["skipped_count"]) == (LISTED, 3 * LISTED)
    assert len(repeats["anomalies"]) == LISTED
    assert sum(repeats["anomaly_counts"].values()) == 3 * LISTED - 1


@pytest.mark.parametrize(
    "command",
    [["verify", "--isolation-level", "read_committed"], local("compact", "--all-topics")],
    ids=["read_committed", "compact"],
)
def test_long_transactions(command: list[object], tmp_path: Path) -> None:
    """Aborted ones that span all segments were in each chunk: 700 bytes times the square."""
    count = 600
    log = tmp_path / "t-0"
    segment(log, 0, (batch(at, producer=at, attributes=TRANSACTIONAL) for at in range(count)))
    for at in range(count, 2 * count):
        segment(log, at, batch(at))
    markers = (marker(2 * count + at, at, commits=False) for at in range(count))
    segment(log, 2 * count, markers)
    out = tmp_path / "out" if command[0] == "compact" else None
    assert taken(command, log, out) < 40_000 * count
    if out is None:
        log_read = PartitionLog(str(log))
        assert sum(1 for _ in log_read.records(isolation_level="read_committed")) == count
        assert log_read.verify("read_committed").sums["aborted"] == count


def test_leader_epochs(tmp_path: Path) -> None:
    count = 40_000
    segment(tmp_path / "t-0", 0, (batch(at, leader_epoch=at) for at in range(count)))
    assert taken(["verify", "--threads", "2"], tmp_path / "t-0") < 900 * count
    assert taken(local("convert"), tmp_path / "t-0", tmp_path / "out") < 900 * count


def test_producers_of_statistics(tmp_path: Path, cli: Any) -> None:
    count = 3 * LISTED
    segment(tmp_path / "t-0", 0, (batch(at, producer=at) for at in range(count)))
    total = cli.json("stats", tmp_path / "t-0")["total"]
    assert (len(total["producers"]), total["producer_count"]) == (LISTED, count)
    assert total["other_producers"]["batches"] == count - LISTED
    listed = sum(one["size"] for one in total["producers"].values())
    assert listed + total["other_producers"]["size"] == total["size"]
    assert "others" in cli("stats", tmp_path / "t-0")


def test_ranges_of_a_rescue(tmp_path: Path, cli: Any) -> None:
    segment(tmp_path / "t-0", 0, damaged(LISTED + 5))
    report = cli.json("rescue", tmp_path / "t-0", code=1)
    assert (len(report["ranges"]), report["ranges_left_out"]) == (LISTED, 4)


def test_redacted_offsets(tmp_path: Path, cli: Any) -> None:
    keyed = bytes([16]) + b"\0\0\0\2k\2v\0"
    count = 2 * LISTED + 2
    batches = (batch(at, record=RECORD if at % 2 else keyed) for at in range(2 * count))
    segment(tmp_path / "t-0", 0, batches)
    arguments = ["redact", "--engine", "local", "--key", "k", tmp_path / "t-0", tmp_path / "out"]
    (one,) = cli.json(*arguments)["written"][0]["redacted"]
    assert (one["records"], len(one["ranges"]), one["records_left_out"]) == (count, LISTED, count - LISTED)


def test_a_stored_batch_above_the_cap_is_not_read(tmp_path: Path, cli: Any) -> None:
    value = bytes(80 << 20)  # a survey loads batches of up to 64 MiB to check their CRC
    builder = RecordsBuilder()
    builder.append(0, 0, None, value)
    segment(tmp_path / "t-0", 0, iter([builder.build(), batch(1)]))
    command: list[object] = ["verify", "--threads", "2", "--max-decompressed-bytes", "1m"]
    assert taken(command, tmp_path / "t-0") < 16 << 20
    (problem,) = cli.json(*command, tmp_path / "t-0", code=1)["problems"]
    assert problem["kind"] == "limit_exceeded"


def test_entries_that_are_dumped(tmp_path: Path) -> None:
    count = 30_000
    index = tmp_path / "00000000000000000000.index"
    index.write_bytes(struct.pack(">ii", 1, 0))
    before = peak("dump", index)
    index.write_bytes(b"".join(struct.pack(">ii", at + 1, at * 69) for at in range(count)))
    assert peak("dump", index) - before < 800 * count


def gigantic(size: int) -> bytes:
    """A gzip batch with one value of `size` zeros, made without having them in memory."""

    def varint(number: int) -> bytes:
        number, out = number << 1, b""
        while number > 127:
            out, number = out + bytes([number & 127 | 128]), number >> 7
        return out + bytes([number])

    rest = b"\0\0\0\1" + varint(size)
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    parts = [compressor.compress(varint(len(rest) + size + 1) + rest)]
    parts += [compressor.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    parts += [compressor.compress(bytes(size & (1 << 20) - 1) + b"\0"), compressor.flush()]
    return batch(0, attributes=1, record=b"".join(parts))


def test_caps_above_a_gibibyte(tmp_path: Path, cli: Any) -> None:
    """It is kept where no columns are built, and refused by its number where they are."""
    segment(tmp_path / "t-0", 0, gigantic((1 << 30) + 5))
    found = cli.json("verify", "--threads", 1, "--max-decompressed-bytes", "1100m", tmp_path / "t-0")
    assert found["total"]["rows"] == 1
    out = tmp_path / "out"
    for command in (["ingest", "--engine", "local", tmp_path / "t-0", out], ["stats", tmp_path / "t-0"]):
        cli(*command, "--max-decompressed-bytes", "1100m", code=2)
        assert "1153433600" in cli.error
        assert "1073741824" in cli.error
    assert not out.exists()
    cli("verify", "--max-decompressed-bytes", "4g", tmp_path / "t-0", code=2)
    assert "4,294,967,295" in cli.error
    log = PartitionLog(str(tmp_path / "t-0"), max_decompressed_bytes=1 << 20)
    assert log.verify().sums["segments"][0]["quarantined"][0]["reason"] == "limit_exceeded"


def test_the_page_names_a_test_for_each_limit() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    table = page.split("## Limits\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 15
    for row in rows:
        tests = re.findall(r"`([\w/.-]+)::(\w+)`", row[-1])
        assert tests, f"no test: {row[0]}"
        for path, name in tests:
            text = (ROOT / path).read_text()
            assert re.search(rf"\b(def|fn) {name}\b", text), f"{path} has no {name}"
