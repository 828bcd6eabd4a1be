"""Keeps the classes that a broker of a version loads, for the brokers of the tests.

A start takes 1.6 instead of 2.7 s of CPU time with them, and the tests start many brokers.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kafka_broker import ALONE, CLUSTER, Client, archive_of, free_ports, java, kraft

SECONDS = 120


def main() -> None:
    version = sys.argv[1]
    archive = archive_of(version)
    archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="magicbyte-classes-") as name:
        root = Path(name)
        port, controller = free_ports(2)
        settings = root / "server.properties"
        settings.write_text(f"{kraft(port, {1: controller})}{ALONE}log.dirs={root / 'logs'}\n")
        form = ("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(settings))
        subprocess.run(java(*form, version=version), check=True, capture_output=True)
        command = java(f"-XX:ArchiveClassesAtExit={archive}", "kafka.Kafka", str(settings), version=version)
        with (root / "output").open("wb") as output:
            broker = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            use(Client(f"127.0.0.1:{port}", version))
            broker.terminate()
            broker.wait(SECONDS)
        finally:
            broker.kill()
        if not archive.exists():
            raise SystemExit((root / "output").read_text(errors="replace")[-2000:])


def use(client: Client) -> None:
    """Does what most tests ask of a broker."""
    client.ask("create", "archived retention.ms=-1")
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            client.ask("transact", "archived")
            break
        except RuntimeError:  # the broker has not finished starting
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
    client.ask("read", "archived", "read_committed")
    client.close()


if __name__ == "__main__":
    main()
