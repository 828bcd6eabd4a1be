"""Logs in a real S3 server (SeaweedFS), also through a proxy that fails in every way that servers and networks do."""

from __future__ import annotations

import http.client
import http.server
import json
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import magicbyte
import obstore
import pyarrow as pa
import pytest
from magicbyte import PartitionLog, mount_storage
from magicbyte.cli import main
from obstore.store import S3Store

pytestmark = pytest.mark.interop

KEY, SECRET = "magickey", "magicsecret"
OPTIONS = {"access_key_id": KEY, "secret_access_key": SECRET, "region": "us-east-1", "allow_http": "true"}
BUCKET = "backup"


def free_ports(count: int) -> list[int]:
    """Free ports whose number plus 10,000, which SeaweedFS takes for gRPC, is a port, too."""
    ports: list[int] = []
    while len(ports) < count:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1] % 20_000 + 20_000
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 10_000))
                ports.append(port)
            except OSError:
                continue
    return ports


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of an S3 server."""
    directory = tmp_path_factory.mktemp("seaweed")
    actions = ["Admin", "Read", "Write", "List"]
    identity = {"name": "tests", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": actions}
    (directory / "s3.json").write_text(json.dumps({"identities": [identity]}))
    master, volume, filer, port = free_ports(4)
    weed = Path(sys.executable).with_name("weed")
    command = [
        weed if weed.exists() else shutil.which("weed"),
        "server",
        f"-dir={directory}",
        "-s3",
        "-filer",
    ]
    command += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false", "-volume.max=50"]
    # No catalogs: they would take fixed ports.
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += [
        f"-master.port={master}",
        f"-volume.port={volume}",
        f"-filer.port={filer}",
        f"-s3.port={port}",
    ]
    command += [f"-s3.config={directory / 's3.json'}"]
    with (directory / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:  # type: ignore[arg-type]
        try:
            endpoint = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + 120
            while True:
                try:
                    obstore.put(client(endpoint), "ready", b"yes")
                    break
                except Exception:
                    assert server.poll() is None, (directory / "log").read_text()[-2000:]
                    assert time.monotonic() < deadline, (directory / "log").read_text()[-2000:]
                    time.sleep(1)
            yield endpoint
        finally:
            server.kill()


def client(endpoint: str) -> Any:
    config = {name: value for name, value in OPTIONS.items() if name != "allow_http"}
    retries: Any = {"max_retries": 1}
    return S3Store(
        BUCKET,
        config={**config, "endpoint": endpoint},
        client_options={"allow_http": True},
        retry_config=retries,
    )


@pytest.fixture(scope="session")
def logs(s3: str, kafka: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of all partitions of real brokers, and an archive of them."""
    store = client(s3)
    for path in kafka.rglob("*"):
        if path.is_file():
            obstore.put(store, f"logs/{path.relative_to(kafka)}", path.read_bytes())
    archive = shutil.make_archive(str(tmp_path_factory.mktemp("tar") / "all"), "tar", kafka)
    obstore.put(store, "all.tar", Path(archive).read_bytes())
    return f"s3://{BUCKET}/logs"


def sums(source: object) -> tuple[Any, list[Any]]:
    report = magicbyte.verify(str(source))
    left_out = ("path", "segments", "ignored")
    return report["total"], [{k: one[k] for k in one if k not in left_out} for one in report["partitions"]]


def test_the_sums_of_the_directory(s3: str, logs: str, kafka: Path, tmp_path: Path) -> None:
    mount_storage(logs, {**OPTIONS, "endpoint": s3})
    assert sums(logs) == sums(kafka)
    assert sums(f"s3://{BUCKET}/all.tar") == sums(kafka)
    for name in ("v2_txn", "v1_compacted_codecs"):
        stored = pa.table(PartitionLog(f"{logs}/{name}").to_arrow(isolation_level="read_committed"))
        assert stored == pa.table(PartitionLog(kafka / name).to_arrow(isolation_level="read_committed"))
    options = [f"--storage-option={key}={value}" for key, value in {**OPTIONS, "endpoint": s3}.items()]
    assert main(["ingest", *options, f"{logs}/v2_zstd", str(tmp_path / "tables")]) == 0
    written = "".join(path.read_text() for path in (tmp_path / "tables").rglob("*.json"))
    assert logs in written
    assert SECRET not in written


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"secret_access_key": "wrongsecret"}, "SignatureDoesNotMatch"),
        ({"access_key_id": "nobodyatall"}, "InvalidAccessKeyId"),
    ],
)
def test_wrong_credentials(s3: str, logs: str, wrong: dict[str, str], expected: str, capsys: Any) -> None:
    options = [
        f"--storage-option={key}={value}" for key, value in {**OPTIONS, "endpoint": s3, **wrong}.items()
    ]
    assert main(["verify", *options, logs]) == 3
    output, error = capsys.readouterr()
    assert expected in error
    assert error.count("\n") == 1
    assert not any(secret in output + error for secret in (SECRET, *wrong.values()))


def test_a_missing_bucket(s3: str, capsys: Any) -> None:
    options = [f"--storage-option={key}={value}" for key, value in {**OPTIONS, "endpoint": s3}.items()]
    assert main(["verify", *options, "s3://no-such-bucket/logs"]) == 3
    assert "NoSuchBucket" in capsys.readouterr().err


def test_many_objects(s3: str, kafka: Path) -> None:
    """More than two pages of a listing."""
    store = client(s3)
    segment = (kafka / "v2_zstd" / f"{0:020d}.log").read_bytes()
    with ThreadPoolExecutor(16) as pool:
        names = [f"many/orders-{number}/{0:020d}.log" for number in range(2200)]
        list(pool.map(lambda name: obstore.put(store, name, segment), names))
    mount_storage(f"s3://{BUCKET}", {**OPTIONS, "endpoint": s3})
    assert len(magicbyte.Log(f"s3://{BUCKET}/many")) == 2200


def test_an_object_replaced_while_it_is_read(s3: str, kafka: Path) -> None:
    store = client(s3)
    data = (kafka / "v2_big_batch" / f"{0:020d}.log").read_bytes()
    obstore.put(store, f"replaced/orders-0/{0:020d}.log", data)
    mount_storage(f"s3://{BUCKET}", {**OPTIONS, "endpoint": s3})
    log = PartitionLog(f"s3://{BUCKET}/replaced/orders-0", mode="PERMISSIVE")
    obstore.put(store, f"replaced/orders-0/{0:020d}.log", data[:100] + data[101:] + b"x")
    records = log.records()
    assert list(records) == []
    assert "changed since it was listed" in records.problems[0]["message"]


class Flaky(http.server.BaseHTTPRequestHandler):
    """Passes on requests; every third one fails in one of many ways."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._pass_on("GET")

    def do_HEAD(self) -> None:
        self._pass_on("HEAD")

    def _pass_on(self, method: str) -> None:
        server: Any = self.server
        trouble = server.random.choice(server.troubles) if server.random.random() < 0.33 else None
        server.seen[trouble] += 1
        if trouble in (500, 503):
            self.send_response(trouble)
            if trouble == 503:
                self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if trouble == "reset":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        host, port = server.upstream
        upstream = http.client.HTTPConnection(host, port)
        # The signature covers the host, which is the server's own in both.
        upstream.request(method, self.path, headers=dict(self.headers.items()))
        answer = upstream.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length") or str(len(body))
        self.send_header("Content-Length", length)
        self.end_headers()
        if trouble == "truncated" and len(body) > 1:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_a_flaky_network(s3: str, logs: str, kafka: Path) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Flaky) as proxy:
        flaky: Any = proxy
        flaky.daemon_threads = True
        flaky.random = random.Random(23)
        flaky.troubles = [500, 503, "reset", "truncated"]
        flaky.seen = Counter()
        host, _, port = s3.removeprefix("http://").partition(":")
        flaky.upstream = host, int(port)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        mount_storage(logs, {**OPTIONS, "endpoint": f"http://127.0.0.1:{proxy.server_port}"})
        names = ("v2_txn", "v2_gzip", "v0_lz4_large", "v2_big_batch")
        for name in names:
            # Another name, so that nothing is kept of it from before.
            copy = f"flaky/{name}"
            for path in (kafka / name).iterdir():
                if path.is_file():
                    obstore.put(client(s3), f"{copy}/{path.name}", path.read_bytes())
            assert sums(f"s3://{BUCKET}/{copy}") == sums(kafka / name), flaky.seen
        assert all(flaky.seen[trouble] for trouble in flaky.troubles), flaky.seen
        proxy.shutdown()
