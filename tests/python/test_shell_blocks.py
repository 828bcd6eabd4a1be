"""Every shell block of the pages runs, or says why it does not.

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
import pyiceberg.utils.config
import pytest
import zstandard
from conftest import KAFKA, Cli
from doc_blocks import Block, blocks, with_outputs
from magicbyte.jobs.schemas import open_registry
from magicbyte.message import encode_request
from magicbyte.schema.directory import INDEX, files_of
from magicbyte.schema.registry import Schema, StoredRegistry, SubjectVersion
from metadata_records import batches, control, feature, topic, topic_id, voters, write_log, write_meta
from metadata_records import partition as metadata_partition
from test_cluster_report import commit, write_commits

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "docs/tour.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
PAGES += [ROOT / f"docs/{name}.md" for name in ("install", "lake", "outputs", "schemas")]
TYPED = ("lake", "schemas")
SHELL = [(page, block) for page in PAGES for block in blocks(page.read_text()) if block.language == "sh"]
# Directories of the readers' machines, which are below the test's own directory here.
ELSEWHERE = re.compile(r"(?<![\w/])/(?=backup/|mnt/|var/)")
WRITERS = {"find", "merge", "restore", "ingest", "recover", "convert", "compact", "redact", "rescue"}
TABLES = {"delta", "iceberg"}
"""The formats of outputs to which a command adds."""
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
        *[("operators.md", "needs a running cluster")] * 4,
        ("lake.md", "needs a bucket"),
        ("outputs.md", "needs a bucket"),
        ("schemas.md", "needs a live registry"),
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
    for name in ("clicks-eu-0", "orders-eu-0", "orders.dlq-0"):
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
    write_commits(logs, commit("billing-invoices", "orders", 0, 5))
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


CART = 'syntax = "proto3"; package shop; message Cart { string id = 1; }'


@pytest.fixture(scope="module")
def typed_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with all that the pages on typed values and their tables name."""
    root = tmp_path_factory.mktemp("typed")
    logs = root / "backup/kafka-logs"
    for source, name in (("schemas_topic", "_schemas-0"), ("sr_avro", "orders-0")):
        shutil.copytree(KAFKA / source, logs / name, ignore=shutil.ignore_patterns("rebuilt", "*.json*"))
    clicks = magicbyte.RecordsBuilder()
    for offset in range(20):
        clicks.append(offset, 1_714_521_600_000, None, json.dumps({"page": f"/{offset}", "ms": offset}))
    partition(logs / "clicks-0", clicks.build())
    shutil.copytree(logs, root / "logs", ignore=shutil.ignore_patterns("orders-0"))
    bare = magicbyte.RecordsBuilder()
    for record in magicbyte.PartitionLog(logs / "orders-0").records():
        if (value := record.value_bytes or b"")[:5] == b"\0\0\0\0\4":
            bare.append(record.offset, record.timestamp, record.key, value[5:])
    partition(root / "logs/orders-0", bare.build())
    shutil.copytree(logs / "orders-0", root / "var/lib/kafka/orders-1")
    carts = magicbyte.RecordsBuilder()
    carts.append(0, 1_714_521_600_000, "c1", b"\0\0\0\0\x09\0" + b"\x0a\x01x")
    partition(root / "logs/carts-0", carts.build())
    registry = StoredRegistry()
    registry.put(SubjectVersion("carts-value", 1, 9, Schema("PROTOBUF", CART)))
    index, files = files_of(registry)
    (root / "schemas").mkdir()
    for name, text in {INDEX: json.dumps(index), **files}.items():
        (root / "schemas" / name).write_text(text)
    _, of_orders = open_registry([str(logs)])
    (root / "order.avsc").write_text(of_orders.latest("orders-value").schema.text)
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


def interrupt(command: list[str], world: Path) -> None:
    """Starts a command that does not end by itself, and interrupts it when it has printed a line."""
    running = subprocess.Popen(
        [sys.executable, "-m", "magicbyte", *command, "--json"], cwd=world, stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    deadline = threading.Timer(60, running.kill)
    deadline.start()
    try:
        assert json.loads(running.stdout.readline()), command
        running.send_signal(signal.SIGINT)
        assert running.wait(30) in (0, 130)
    finally:
        deadline.cancel()
        running.kill()
        running.wait()
        running.stdout.close()


def back_up(command: list[str], world: Path, cli: Cli) -> None:
    """Runs the command against a broker that serves the logs of this world."""
    with magicbyte.serve(world / "logs", listen="127.0.0.1:0") as server:
        cli(*(f"kafka://{server.bootstrap_servers}" if "kafka://" in word else word for word in command))


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
        interrupt([*expanded, "--listen", "127.0.0.1:0"], world)
        return
    if "--follow" in expanded:
        interrupt(expanded, world)
        return
    if expanded[0] == "backup":
        shutil.rmtree(world / expanded[2], ignore_errors=True)
        back_up(expanded, world, cli)
        return
    if expanded[0] in WRITERS and not TABLES.intersection(expanded) and "--dry-run" not in expanded:
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
    page: Path, block: Block, cli: Cli, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    world: Path = request.getfixturevalue("typed_world" if page.stem in TYPED else "world")
    for name, value in {"TYPE": "sql", "URI": f"sqlite:///{world}/catalog", "WAREHOUSE": str(world)}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__PROD__{name}", value)
    # It was read when another test imported the module.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", pyiceberg.utils.config.Config())
    monkeypatch.chdir(world)
    for line in re.sub(r"\\\n\s*", " ", block.text).splitlines():
        if line and not line.startswith("#"):
            run(line, world, cli)
