"""A real S3 server (SeaweedFS), and what reaches it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import obstore
from obstore.store import S3Store

KEY, SECRET = "magickey", "magicsecret"
OPTIONS = {"access_key_id": KEY, "secret_access_key": SECRET, "region": "us-east-1", "allow_http": "true"}
BUCKET = "backup"
TABLES = "tables"


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


@contextmanager
def s3_server(directory: Path, catalog_port: int = 0) -> Iterator[str]:
    """Runs a server that keeps its data in a directory; yields its endpoint.

    With `catalog_port`, there is an Iceberg REST catalog: its warehouse is the bucket `TABLES`.
    """
    actions = ["Admin", "Read", "Write", "List"]
    identity = {"name": "tests", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": actions}
    (directory / "s3.json").write_text(json.dumps({"identities": [identity]}))
    master, volume, filer, port = free_ports(4)
    weed = Path(sys.executable).with_name("weed")
    command = [
        str(weed if weed.exists() else shutil.which("weed")),
        "server",
        f"-dir={directory}",
        "-s3",
        "-filer",
    ]
    command += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false", "-volume.max=50"]
    # By default, catalogs take fixed ports.
    command += [f"-s3.port.iceberg={catalog_port}", "-s3.port.lance=0"]
    command += [
        f"-master.port={master}",
        f"-volume.port={volume}",
        f"-filer.port={filer}",
        f"-s3.port={port}",
    ]
    command += [f"-s3.config={directory / 's3.json'}"]
    environment = {**os.environ, "TMPDIR": str(directory)}
    with (
        (directory / "log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=environment) as server,
    ):
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
            if catalog_port:
                subprocess.run(
                    [*command[:1], "shell", f"-master=127.0.0.1:{master}"],
                    input=f"s3tables.bucket -create -name {TABLES} -account tests\n".encode(),
                    check=True,
                    stdout=log,
                    stderr=log,
                    env=environment,
                )
            yield endpoint
        finally:
            server.kill()
            server.wait()
            # The server has its sockets there whatever TMPDIR says.
            for number in (master, volume, filer, port):
                for own in (number, number + 10_000):
                    for socket_file in Path("/tmp").glob(f"seaweedfs-*-{own}.sock"):
                        socket_file.unlink(missing_ok=True)


def client(endpoint: str, bucket: str = BUCKET) -> Any:
    """What writes objects."""
    config = {name: value for name, value in OPTIONS.items() if name != "allow_http"}
    retries: Any = {"max_retries": 1}
    return S3Store(
        bucket,
        config={**config, "endpoint": endpoint},
        client_options={"allow_http": True},
        retry_config=retries,
    )


def put_directory(endpoint: str, directory: Path, prefix: str) -> None:
    """Writes all files below a directory as objects."""
    store = client(endpoint)
    for path in directory.rglob("*"):
        if path.is_file():
            obstore.put(store, f"{prefix}/{path.relative_to(directory)}", path.read_bytes())
