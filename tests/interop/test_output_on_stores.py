"""Outputs in a real S3 server (SeaweedFS): equal to those in a directory, through failures and kills."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
import uuid
from pathlib import Path
from typing import Any
from unittest import mock

import forked
import magicbyte
import obstore
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from flaky_proxy import flaky_proxy
from killed_writer import kill_everywhere, run_killed
from magicbyte.cli import main
from pyarrow import fs
from s3_server import BUCKET, KEY, OPTIONS, SECRET, client

pytestmark = pytest.mark.interop
NAMES = ("v2_txn", "v2_zstd", "v0_gzip", "v2_torn_tail", "v2_headers_nulls")
COMMANDS: dict[str, tuple[str, ...]] = {
    "convert": ("convert", "--engine", "local"),
    "recover": ("recover", "--engine", "local"),
    "compact": ("compact", "--engine", "local", "--all", "--all-topics", "--now", "2026-01-01"),
    "redact": ("redact", "--engine", "local", "--key", "nobody"),
    "rescue": ("rescue",),
}


def storage(endpoint: str, **others: str) -> list[str]:
    return [f"--storage-option={k}={v}" for k, v in {**OPTIONS, "endpoint": endpoint, **others}.items()]


@pytest.fixture
def prefix() -> str:
    return f"out-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def url(prefix: str) -> str:
    return f"s3://{BUCKET}/{prefix}"


@pytest.fixture(scope="module")
def damaged(kafka: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some partitions, one of which has something to rescue, and a large one."""
    directory = tmp_path_factory.mktemp("damaged")
    for name in NAMES:
        for log in (kafka / name).glob("*.log"):
            data = bytearray(log.read_bytes())
            if name == "v2_zstd":
                data[len(data) // 2] ^= 1
            (directory / f"{name}-0").mkdir(exist_ok=True)
            (directory / f"{name}-0" / log.name).write_bytes(data)
    builder = magicbyte.RecordsBuilder()
    noise = random.Random(1)
    for offset in range(40):  # more than two parts of an upload
        builder.append(offset=offset, timestamp=offset, value=noise.randbytes(500_000))
    (directory / "large-0").mkdir()
    (directory / "large-0" / f"{0:020d}.log").write_bytes(builder.build())
    return directory


def stored(endpoint: str, prefix: str) -> dict[str, Any]:
    """The objects by name; of reports what they say."""
    store = client(endpoint)
    found = {}
    for page in obstore.list(store, prefix):
        for one in page:
            name, data = (
                one["path"].removeprefix(f"{prefix}/"),
                bytes(obstore.get(store, one["path"]).bytes()),
            )
            found[name] = json.loads(data) if name.endswith(".json") else data
    return found


def local(directory: Path) -> dict[str, Any]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(directory)): json.loads(path.read_bytes())
        if path.suffix == ".json"
        else path.read_bytes()
        for path in files
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_the_output_is_that_of_a_directory(
    command: str, damaged: Path, s3: str, url: str, prefix: str, tmp_path: Path, capsys: Any
) -> None:
    assert main([*COMMANDS[command], str(damaged), str(tmp_path / "out")]) == 1
    assert main([*COMMANDS[command], *storage(s3), str(damaged), url]) == 1
    found = stored(s3, prefix)
    assert found == local(tmp_path / "out")
    assert len(found) > 2
    if command != "rescue":
        capsys.readouterr()
        reports = []
        for place in (str(tmp_path / "out"), url):
            assert main(["verify", "--json", *(storage(s3) if place is url else ()), place]) in (0, 1)
            reports.append(json.loads(capsys.readouterr().out))
        assert reports[0]["total"] == reports[1]["total"]
    assert main([*COMMANDS[command], *storage(s3), str(damaged), url]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_killed_at_each_request(
    s3: str, url: str, prefix: str, kafka: Path, tmp_path: Path, capsys: Any
) -> None:
    assert main(["convert", str(kafka / "v2_txn"), str(tmp_path / "alone")]) == 0
    alone = local(tmp_path / "alone")

    def check() -> None:
        found = stored(s3, prefix)
        if "reconciliation.json" in found:
            found.pop(".magicbyte-unfinished/job.json", None)
            assert found == alone
        else:
            capsys.readouterr()
            assert main(["verify", *storage(s3), url]) in (2, 3)
            assert "v2_txn" not in capsys.readouterr().out

    assert kill_everywhere(lambda: ["convert", *storage(s3), kafka / "v2_txn", url], check) > 6
    assert stored(s3, prefix) == alone


def test_killed_at_random(s3: str, url: str, prefix: str, damaged: Path, tmp_path: Path) -> None:
    assert main(["convert", str(damaged), str(tmp_path / "alone")]) == 1
    alone = local(tmp_path / "alone")
    started = time.monotonic()
    assert run_killed("never", 0, "convert", *storage(s3), damaged, f"{url}-first").returncode == 1
    whole = time.monotonic() - started
    dice = random.Random(seed := random.randrange(1 << 30))
    for _ in range(6):
        job = forked.start_command(["convert", *storage(s3), damaged, url])
        time.sleep(dice.uniform(0, whole))
        job.kill()
        job.join()
        code = job.exitcode
        done = run_killed("never", 0, "convert", *storage(s3), damaged, url)
        complete = code == 1 or "is not empty" in done.stderr
        assert done.returncode == (2 if complete else 1), (seed, code, done.stderr)
        assert stored(s3, prefix) == alone, seed
        obstore.delete(
            store := client(s3), [one["path"] for page in obstore.list(store, prefix) for one in page]
        )


def test_two_jobs_at_once(s3: str, url: str, prefix: str, damaged: Path, tmp_path: Path) -> None:
    """On two machines, which have no directory for temporary files in common."""
    assert main(["convert", str(damaged), str(tmp_path / "alone")]) == 1
    alone = local(tmp_path / "alone")
    for number in range(4):
        jobs = []
        for name in ("one", "other"):
            (tmp_path / name).mkdir(exist_ok=True)
            command = ["convert", *storage(s3), damaged, f"{url}/{number}"]
            with mock.patch.dict(os.environ, TMPDIR=str(tmp_path / name)):
                jobs.append(forked.start_command(command, tmp_path / f"{name}.output"))
        for job in jobs:
            job.join()
        errors = [(tmp_path / f"{name}.output").read_text() for name in ("one", "other")]
        codes = [job.exitcode for job in jobs]
        assert sorted(codes) == [1, 2], errors
        refused = errors[codes.index(2)]
        assert "another job is writing" in refused or "is not empty" in refused
        assert stored(s3, f"{prefix}/{number}") == alone


def test_a_flaky_network(s3: str, url: str, prefix: str, damaged: Path, tmp_path: Path) -> None:
    assert main(["convert", str(damaged), str(tmp_path / "alone")]) == 1
    with flaky_proxy(s3, [500, 503, "reset", "lost", "truncated"]) as proxy:
        through = storage(f"http://127.0.0.1:{proxy.server_port}")
        for number in range(3):
            code = main(["convert", *through, str(damaged), f"{url}/{number}"])
            assert code == 1, proxy.seen
            assert stored(s3, f"{prefix}/{number}") == local(tmp_path / "alone")
        assert all(proxy.seen[trouble] for trouble in proxy.troubles), proxy.seen


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"secret_access_key": "wrongsecret"}, "SignatureDoesNotMatch"),
        ({"access_key_id": "nobodyatall"}, "InvalidAccessKeyId"),
    ],
)
def test_wrong_credentials(
    s3: str, url: str, prefix: str, kafka: Path, wrong: dict[str, str], expected: str, capsys: Any
) -> None:
    assert main(["convert", *storage(s3, **wrong), str(kafka / "v2_txn"), url]) == 3
    output, error = capsys.readouterr()
    assert expected in error
    assert error.count("\n") == 1
    assert not any(secret in output + error for secret in (SECRET, *wrong.values()))
    assert stored(s3, prefix) == {}


def test_no_secret_is_written(s3: str, url: str, prefix: str, kafka: Path, capsys: Any) -> None:
    assert main(["convert", *storage(s3), str(kafka / "v2_txn"), url]) == 0
    assert (
        run_killed("after", 4, "convert", *storage(s3), kafka / "v2_txn", f"{url}-x").returncode
        == -signal.SIGKILL
    )
    left = stored(s3, f"{prefix}-x")
    assert ".magicbyte-unfinished/job.json" in left
    text = repr((stored(s3, prefix), left, *capsys.readouterr()))
    assert SECRET not in text
    assert KEY not in text


def test_tables(s3: str, url: str, prefix: str, damaged: Path, tmp_path: Path, capsys: Any) -> None:
    assert main(["ingest", "--engine", "local", str(damaged), str(tmp_path / "out")]) == 1
    for _ in range(2):
        code = main(["ingest", "--engine", "local", "--overwrite", *storage(s3), str(damaged), url])
        assert code == 1, capsys.readouterr().err
    assert main(["ingest", *storage(s3), str(damaged), url]) == 2
    found = stored(s3, prefix)
    report = found["reconciliation.json"]
    assert {name.partition("/")[0] for name in found} == {path.name for path in (tmp_path / "out").iterdir()}
    sizes = {one["path"]: one["size"] for one in report["files"]}
    assert sizes == {name: len(data) for name, data in found.items() if "/" in name}
    counted = json.loads((tmp_path / "out" / "reconciliation.json").read_text())
    assert [report[key] for key in ("total", "partitions", "balanced")] == [
        counted[key] for key in ("total", "partitions", "balanced")
    ]
    assert rows_of(s3, f"{prefix}/records") == sorted(
        map(repr, ds.dataset(tmp_path / "out" / "records").to_table().to_pylist())
    )
    capsys.readouterr()
    assert main(["verify", "--json", *storage(s3), "--table", url, str(damaged)]) == 1  # the damage
    compared = json.loads(capsys.readouterr().out)["table"]
    assert {one["result"] for one in compared["partitions"]} == {"equal"}
    assert main(["convert", *storage(s3), f"{url}/records", url]) == 2


def rows_of(endpoint: str, prefix: str) -> list[str]:
    """The rows as pyarrow's own S3 reads them."""
    system = fs.S3FileSystem(
        access_key=KEY, secret_key=SECRET, endpoint_override=endpoint, region="us-east-1"
    )
    return sorted(map(repr, ds.dataset(f"{BUCKET}/{prefix}", filesystem=system).to_table().to_pylist()))


@pytest.mark.parametrize("replaces", [False, True])
def test_tables_of_a_job_killed_at_each_request(
    s3: str, url: str, prefix: str, kafka: Path, tmp_path: Path, *, replaces: bool
) -> None:
    sources = {name: tmp_path / name for name in ("v2_txn", "v2_none")}
    expected = {}
    for name, path in sources.items():
        shutil.copytree(kafka / name, path / f"{name}-0")
        assert main(["ingest", str(path), str(tmp_path / f"{name}-out")]) == 0
        table = ds.dataset(tmp_path / f"{name}-out" / "records").to_table()
        expected[name] = sorted(map(repr, table.to_pylist()))
    if replaces:
        assert main(["ingest", *storage(s3), str(sources["v2_none"]), url]) == 0
    seen = set()

    def check() -> None:
        found = stored(s3, prefix)
        if "_SUCCESS" in found and "reconciliation.json" in found:
            files = {
                one["path"] for one in found["reconciliation.json"]["files"] if one["table"] == "records"
            }
            rows = sorted(
                repr(row) for name in files for row in pq.read_table(pa.BufferReader(found[name])).to_pylist()
            )
            seen.add(next(name for name in expected if rows == expected[name]))

    command = ["ingest", "--engine", "local", *(["--overwrite"] if replaces else []), *storage(s3)]
    kill_everywhere(lambda: [*command, sources["v2_txn"], url], check)
    assert seen == ({"v2_none", "v2_txn"} if replaces else {"v2_txn"})
    assert rows_of(s3, f"{prefix}/records") == expected["v2_txn"]
    left = stored(s3, prefix)
    assert not [name for name in left if name.startswith(".magicbyte")]
    assert {name for name in left if "/" in name and "empty" not in name} == {
        one["path"] for one in left["reconciliation.json"]["files"]
    }
