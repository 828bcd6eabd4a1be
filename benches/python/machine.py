"""The machine and the versions that a report names."""

import os
import platform
import re
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sets import PROJECT

PEERS = PROJECT / "benches" / "peers"


def cpu() -> str:
    name = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
    return f"{name}, {os.cpu_count()} cores, {platform.machine()}"


def project_version() -> str:
    return str(tomllib.loads((PROJECT / "Cargo.toml").read_text())["workspace"]["package"]["version"])


def first_line(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]


def versions(kafka_clients: str) -> str:
    crates = tomllib.loads((PEERS / "rust" / "Cargo.toml").read_text())["dependencies"]
    names = ("kafka-protocol", "krabka-protocol")
    modules = re.findall(r"^\t\S+/(franz-go|sarama) v(\S+)$", (PEERS / "go" / "go.mod").read_text(), re.M)
    return ", ".join(
        [
            f"magicbyte {project_version()}",
            kafka_clients,
            *(f"{name} {crates[name]['version'].removeprefix('=')}" for name in names),
            *(f"{name} {number}" for name, number in modules),
            *(installed(name) for name in ("aiokafka", "pyarrow", "duckdb", "polars")),
            f"Python {platform.python_version()}",
            first_line(["java", "--version"]),
            first_line(["rustc", "--version"]),
        ]
    )


def installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"
