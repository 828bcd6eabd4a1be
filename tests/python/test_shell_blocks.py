"""Every shell block of the README, of the guides and of the tour runs, or says why it does not.

The tour's output is compared. The commands of the other pages run on logs with the names that they use.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import duckdb
import magicbyte
import pytest
import zstandard
from conftest import KAFKA, Cli
from doc_blocks import Block, blocks, with_outputs
from magicbyte.message import encode_request
from metadata_records import batches, control, feature, topic, topic_id, voters, write_log, write_meta
from metadata_records import partition as metadata_partition

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "docs/tour.md"
PAGES = [ROOT / "README.md", ROOT / "docs/install.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
SHELL = [(page, block) for page in PAGES for block in blocks(page.read_text()) if block.language == "sh"]
# Directories of the readers' machines, which are below the test's own directory here.
ELSEWHERE = re.compile(r"(?<![\w/])/(?=backup/|mnt/|var/)")
WRITERS = {"find", "merge", "restore", "ingest", "recover", "convert", "compact", "redact", "rescue"}
FINDINGS = [
    "magicbyte cluster ",  # the disks of some brokers are missing
    "magicbyte diff --cache",  # a broker's disk, and a backup with more partitions
]
"""The commands that find something in this world, so that they end with 1."""
SEGMENT_ID = "QaPoDpnHS9iAgEjV9Ysnfg"


def test_the_tour_prints_what_it_shows(tmp_path: Path) -> None:
    page = TOUR.read_text(encoding="utf-8")
    assert without_drawings(with_outputs(page, tmp_path)) == without_drawings(page)
    assert sum(block.language == "sh" for block in blocks(page)) > 6
    assert not any(block.not_run for block in blocks(page))
    report = tmp_path / "report.json"
    report.write_text(json.dumps(magicbyte.verify(str(tmp_path / "logs"))))
    draw = [sys.executable, str(ROOT / "scripts/account_svg.py"), str(report)]
    picture = subprocess.run(draw, check=True, capture_output=True, text=True).stdout
    assert (ROOT / "docs/account.svg").read_text(encoding="utf-8") == picture


def without_drawings(page: str) -> list[list[str]]:
    """The lines of a page, of DuckDB's tables only the cells: its versions draw them in different ways."""
    lines = [line for line in page.splitlines() if not re.fullmatch(r"[┌├└─┬┼┴┐┤┘ ]+", line)]
    return [
        [cell.strip() for cell in line.strip("│").split("│")] if "│" in line else [line] for line in lines
    ]


def test_tables_are_compared_by_their_cells() -> None:
    one = "text\n┌───┬────┐\n│ a │ b  │\n├───┼────┤\n│ 1 │ 22 │\n└───┴────┘\n"
    other = "text\n┌─────┬────┐\n│  a  │ b  │\n│  1  │ 22 │\n└─────┴────┘\n"
    assert without_drawings(one) == without_drawings(other) == [["text"], ["a", "b"], ["1", "22"]]
    assert without_drawings(one) != without_drawings(other.replace("22", "23"))


def test_blocks_that_do_not_run_say_why() -> None:
    reasons = [(page.name, block.not_run) for page, block in SHELL if block.not_run]
    assert reasons == [
        ("README.md", "these are what runs the tests"),
        ("operators.md", "needs a bucket with encrypted segments, and its keys"),
        ("operators.md", "needs buckets"),
        ("operators.md", "needs a running cluster"),
    ]
    assert len(SHELL) - len(reasons) > 10


def orders() -> bytes:
    """Orders of several customers, two of which the pages look for."""
    builder = magicbyte.RecordsBuilder(compression="zstd")
    data = b""
    for offset in range(300):
        key = "user-4711" if offset % 50 == 7 else f"user-{offset}"
        document = {"customer": f"c{offset}", "user": {"id": str(offset)}, "by": "cancelled: bob@example.com"}
        time = 1_714_521_600_000 + offset * 60_000
        builder.append(offset, time, key, json.dumps(document), {"tenant": "x"})
        if offset % 20 == 19:
            data += builder.build()
    return data


def partition(directory: Path, data: bytes) -> None:
    directory.mkdir(parents=True)
    (directory / f"{0:020}.log").write_bytes(data)


def tiered(root: Path) -> None:
    """A partition whose first segments are in tiered storage."""
    local = root / "var/lib/kafka/data/payments-0"
    shutil.copytree(ROOT / "samples/payments-0", local)
    topic_id = re.search(r"topic_id: (\S+)", (local / "partition.metadata").read_text())[1]  # type: ignore[index]
    remote = root / f"mnt/tiered/kafka-tiered-storage/payments-0-{topic_id}"
    remote.mkdir(parents=True)
    for base in (0, 7):
        (local / f"{base:020}.log").rename(remote / f"{base:020}-{SEGMENT_ID}.log")
        for sidecar in local.glob(f"{base:020}.*"):
            sidecar.unlink()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with all that the pages name."""
    root = tmp_path_factory.mktemp("world")
    logs = root / "backup/kafka-logs"
    shutil.copytree(ROOT / "samples", logs, ignore=shutil.ignore_patterns("orders-0"))
    partition(logs / "orders-0", orders())
    for name in ("clicks-eu-0", "orders-eu-0"):
        partition(logs / name, orders())
    shutil.copytree(logs, root / "logs")
    internal = {
        "cluster_metadata": "__cluster_metadata-0",
        "consumer_offsets_0": "__consumer_offsets-7",
        "schemas_topic": "_schemas-0",
        "transaction_state_0": "__transaction_state-3",
    }
    for source, name in internal.items():
        shutil.copytree(KAFKA / source, logs / name, ignore=shutil.ignore_patterns("rebuilt", "*.json*"))
        shutil.copytree(logs / name, root / name)
    for broker in ("broker1", "broker2", "broker3"):
        partition(root / broker / "orders-0", orders())
    dead_cluster(root)
    for disk in ("kafka-1/disk1", "kafka-1/disk2", "kafka-2/disk1"):
        shutil.copytree(logs / "__cluster_metadata-0", root / "mnt" / disk / "__cluster_metadata-0")
    (root / "mnt/lost+found").mkdir()
    (root / "mnt/lost+found/#131001").write_bytes(orders())
    # With every kind of file that a broker keeps beside a segment.
    shutil.copytree(ROOT / "samples/payments-0", root / "orders-0")
    shutil.copytree(ROOT / "samples/sensors-0", root / "backup/kafka-0.10/sensors-0")
    shutil.copytree(ROOT / "samples/profiles-0", root / "backup/zookeeper-era/profiles-0")
    tiered(root)
    (root / "topics.json").write_text('{"profiles": {"cleanup.policy": "compact"}}')
    shutil.copy(ROOT / "tests/data/wire/clients.pcap", root / "kafka.pcap")
    frame = encode_request("Metadata", 12, {"topics": None}, header={"correlationId": 7})
    (root / "client.bin").write_bytes(len(frame).to_bytes(4, "big") + frame)
    (root / "broker.bin").write_bytes(b"")
    with tarfile.open(root / "backup.tar", "w") as archive:
        archive.add(root / "logs", "kafka-logs")
    packed = zstandard.compress((root / "backup.tar").read_bytes())
    (root / "backup.tar.zst").write_bytes(packed)
    return root


def dead_cluster(root: Path) -> None:
    """The log directories of three nodes."""
    quorum = [control(5, b"\0\0\0\1\0", 0, 1), control(6, voters([1, 2, 3]), 1, 1)]
    records = [feature("metadata.version", 25), topic("orders", 1), metadata_partition(1, 0, [1, 2, 3])]
    for node in (1, 2, 3):
        log_dir = root / f"kafka-{node}"
        write_meta(log_dir, node, base64.urlsafe_b64encode(topic_id(node)).decode().rstrip("="))
        write_log(log_dir, [*quorum, *batches(records, start=2)])
        partition(log_dir / "orders-0", orders())


def serve(command: list[str], world: Path) -> None:
    """Starts the broker, and interrupts it when it says where it is."""
    server = subprocess.Popen(
        [sys.executable, "-m", "magicbyte", *command, "--listen", "127.0.0.1:0", "--json"],
        cwd=world,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    deadline = threading.Timer(60, server.kill)
    deadline.start()
    try:
        assert "bootstrap_servers" in server.stdout.readline(), command
        server.send_signal(signal.SIGINT)
        assert server.wait(30) in (0, 130)
    finally:
        deadline.cancel()
        server.kill()
        server.wait()
        server.stdout.close()


def pipe(command: list[str], printed: str) -> None:
    """Runs what follows `|`: it accepts what our command printed. A filter may let nothing pass."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    done = subprocess.run(command, input=printed, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), command


def run(line: str, world: Path, cli: Cli) -> None:
    """Runs a line: a command of ours, whose output another program or a file may get, or SQL for DuckDB."""
    line = ELSEWHERE.sub(f"{world}/", line)
    words = shlex.split(line, comments=True)
    if words[:2] == ["duckdb", "-c"]:
        assert duckdb.sql(words[2]).fetchall()
        return
    assert words[0] == "magicbyte", line
    end = next((at for at, word in enumerate(words) if word in ("|", ">")), len(words))
    expanded = [
        name
        for word in words[1:end]
        for name in (sorted(map(str, Path().glob(word))) if "/*" in word else [word])
    ]
    if expanded[0] == "serve":
        serve(expanded, world)
        return
    if expanded[0] in WRITERS and "--dry-run" not in expanded:
        # Lines of a page are alternatives, often with one name for their outputs.
        out = (world / expanded[-1]).resolve()
        assert out.is_relative_to(world.resolve()), line
        shutil.rmtree(out, ignore_errors=True)
    printed = cli(*expanded, code=None)
    expected = int(any(re.search(pattern, line) for pattern in FINDINGS))
    assert cli.code == expected, f"{line}: {cli.code}\n{printed}{cli.error}"
    if words[end : end + 1] == [">"]:
        (world / words[end + 1]).write_text(printed)
    elif end < len(words):
        pipe(words[end + 1 :], printed)


@pytest.mark.parametrize(
    ("page", "block"),
    [
        pytest.param(page, block, id=f"{page.stem}-{block.start}")
        for page, block in SHELL
        if not block.not_run
    ],
)
def test_a_block_runs(
    page: Path, block: Block, world: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world)
    for line in re.sub(r"\\\n\s*", " ", block.text).splitlines():
        if line and not line.startswith("#"):
            run(line, world, cli)
