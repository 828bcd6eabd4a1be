"""Installs a wheel into bare environments, and checks in each what its extra promises.

usage: scripts/test_wheel.py WHEEL DIRECTORY -- the environments are made in DIRECTORY.

The oldest versions are the lower bounds in pyproject.toml, the newest those that pip finds. PySpark is large,
so only its oldest version is installed here; `make test-spark` runs the newest.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from requirements import resolve

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"
# The drop-ins with the clients alone: without their extras, which bring codecs.
CLIENTS = {"aiokafka": "aiokafka", "kafka": "kafka-python"}
DROPINS = ROOT / "scripts" / "dropins_alone.py"
# What an extra adds; everything else is available without any.
PACKAGES = {
    "": (),
    "arrow": ("expressions", "jobs", "lake"),
    "cloud": ("storage.file_systems", "storage.objects", "storage.web"),
    "cli": ("expressions", "jobs", "lake", "cli"),
    "delta": ("expressions", "jobs", "lake"),
    "iceberg": ("expressions", "jobs", "lake"),
    "polars": ("predicates",),
    "registry": (),
    "spark": ("expressions", "jobs", "lake", "spark"),
    "sql": ("expressions", "jobs", "lake"),
}
# Streams need a newer Spark than the oldest one; the source reports that when a stream is requested.
SINCE_SPARK_4_2 = (
    "magicbyte.spark.cluster_stream",
    "magicbyte.spark.micro_batches",
    "magicbyte.spark.stream",
)
COMMANDS: dict[str, Sequence[str]] = {
    "advise": ("--windows", "4", "--window-bytes", "64k", "{samples}"),
    "audit": ("--misrouted", "{samples}"),
    "backup": ("kafka://127.0.0.1:1", "{out}"),
    "cluster": ("--html", "{out}.html", "{samples}"),
    "compact": ("--all-topics", "{samples}", "{out}"),
    "completion": ("bash",),
    "convert": ("{samples}", "{out}"),
    "diff": ("{samples}", "{samples}"),
    "dump": ("--max-records", "5", "{samples}"),
    "explain": ("--html", "{out}.html", "{samples}"),
    "ingest": ("{samples}", "{out}"),
    "find": ("{samples}", "--out", "{out}"),
    "merge": ("{samples}", "--out", "{out}"),
    "offsets": ("{samples}",),
    "records": ("--max-records", "5", "{samples}"),
    "recover": ("{samples}", "{out}"),
    "redact": ("--where", "key = 'bob'", "{samples}", "{out}"),
    "rescue": ("{samples}", "{out}"),
    "restore": ("{samples}", "--dry-run"),
    "schemas": ("list", "{samples}"),
    "serve": ("--as-of", "yesterday", "{samples}"),
    "stats": ("{samples}",),
    "topics": ("{samples}",),
    "verify": ("{samples}",),
    "wire": ("{samples}/../tests/data/wire/clients.pcap",),
}
# How the extras' tables are named.
_CATALOG = ("--catalog", "c", "--catalog-property", "type=sql")
_CATALOG += (
    "--catalog-property",
    "uri=sqlite:///catalog.db",
    "--catalog-property",
    "warehouse=file://{home}",
)
TABLES: dict[str, Sequence[str]] = {"delta": ("table",), "iceberg": ("kafka.records", *_CATALOG)}
# A transaction of the samples hangs, no group has committed, and there is neither a registry nor the metadata
# of a cluster; `serve` would not end, and nobody listens on port 1.
EXIT_CODES = {"backup": 3, "cluster": 1, "explain": 1, "offsets": 2, "restore": 2, "schemas": 2, "serve": 2}
_SHOWN = 4000
IMPORTS = """
import importlib, pkgutil, sys, magicbyte
absent = tuple(sys.argv[1:])
names = [one.name for one in pkgutil.walk_packages(magicbyte.__path__, "magicbyte.", onerror=print)]
names = [name for name in names if not name.startswith(absent)]
if "magicbyte.spark" not in absent:
    names.append("pyspark_magicbyte")
for name in names:
    importlib.import_module(name)
assert len(names) > 20, names
"""
BARE = """
import inspect, pydoc, sys, magicbyte
from magicbyte import *
assert {name for name, _ in inspect.getmembers(magicbyte)} >= {*magicbyte.__all__}
assert "RecordsBuilder" in pydoc.plain(pydoc.render_doc(magicbyte))
assert verify(sys.argv[1])["balanced"]
try:
    stats(sys.argv[1])
except ModuleNotFoundError as error:
    print(error)
"""
RECORDS = """
import sys, magicbyte
print(sum(sum(1 for _ in magicbyte.PartitionLog(one).records()) for one in sys.argv[1:]))
"""
ARROW = """
import sys, magicbyte, pyarrow as pa
tables = [pa.table(magicbyte.PartitionLog(one).to_arrow()) for one in sys.argv[1:]]
print(sum(table.num_rows for table in tables))
"""
SQL = """
import sys, magicbyte, pyarrow as pa
tables = [pa.table(magicbyte.PartitionLog(one).to_arrow(where="value IS NOT NULL")) for one in sys.argv[1:]]
print(sum(table.num_rows for table in tables))
"""
POLARS = """
import sys, magicbyte
print(magicbyte.scan(sys.argv[1:]).collect().height)
"""
REGISTRY = """
from magicbyte.schema.http_client import HttpSettings, RegistryError
from magicbyte.schema.http_registry import HttpRegistry
try:
    HttpRegistry("http://127.0.0.1:9", HttpSettings(retries=0, timeout=5)).subjects()
except RegistryError as error:
    print(error)
else:
    raise SystemExit("something answers at port 9")
"""
TERMINAL = """
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
"""
SPARK = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
print(sum(spark.read.format("magicbyte").load(one).count() for one in sys.argv[1:]))
"""


class Environment:
    """One virtual environment with only the wheel and one of its extras."""

    def __init__(self, wheel: Path, directory: Path, extra: str, *, oldest: bool) -> None:
        self.name = f"{extra or 'bare'}{'-oldest' if oldest else ''}"
        self._extra = extra
        self._oldest = oldest
        self._wheel = wheel
        self._home = directory / self.name

    def check(self) -> None:
        """Creates the environment and runs all checks in it."""
        start = time.monotonic()
        shutil.rmtree(self._home, ignore_errors=True)
        command = [sys.executable, "-m", "venv", "--without-pip", str(self._home / "venv")]
        subprocess.run(command, check=True)
        self._install(self._extra)
        self._check_package()
        if self._extra == "cli":
            self._check_commands()
            arguments = ("convert", "--engine", "spark", str(SAMPLES), "unused")
            self._run(*arguments, code=2, says="pip install 'magicbyte[spark]'")
        elif self._extra != "iceberg":  # pyiceberg brings click and rich
            self._run("verify", str(SAMPLES), code=2, says="pip install 'magicbyte[cli]'")
        if self._extra == "spark":
            self._install("cli")
            self._check_commands()
            self._run("ingest", "--engine", "spark", str(SAMPLES), str(self._home / "tables"))
        if self._extra in TABLES:
            self._install("cli")
            name, *catalog = (one.format(home=self._home) for one in TABLES[self._extra])
            for _ in range(2):
                self._run("ingest", "--format", self._extra, *catalog, str(SAMPLES), name)
            self._run("verify", "--table", name, *catalog, str(SAMPLES), says="equals the log")
        if not self._extra:
            if "pip install 'magicbyte[arrow]'" not in (found := self._python(BARE, str(SAMPLES))):
                raise Failure(f"{self.name}: stats names no extra: {found!r}")
            self._check_dropins()
        print(f"{self.name}: {self._versions()}; {time.monotonic() - start:.0f} s", flush=True)
        shutil.rmtree(self._home)

    def _check_package(self) -> None:
        absent = {one for each in PACKAGES.values() for one in each} - set(PACKAGES[self._extra])
        self._python(IMPORTS, *SINCE_SPARK_4_2, *(f"magicbyte.{one}" for one in absent))
        partitions = sorted(str(path) for path in SAMPLES.iterdir())
        records = self._python(RECORDS, *partitions)
        if int(records) < 500:
            raise Failure(f"{self.name}: {records} records in {SAMPLES}")
        for extra, code in (("arrow", ARROW), ("polars", POLARS), ("spark", SPARK)):
            if extra == self._extra and (found := self._python(code, *partitions)) != records:
                raise Failure(f"{self.name}: {found} rows, expected {records}")
        if self._extra == "cloud":
            urls = (f"local://{partition}" for partition in partitions)
            if (found := self._python(RECORDS, *urls)) != records:
                raise Failure(f"{self.name}: {found} records at URLs, expected {records}")
        if self._extra == "registry":
            self._python(REGISTRY)
        if self._extra == "sql" and int(self._python(SQL, *partitions)) == 0:
            raise Failure(f"{self.name}: the expression selects nothing")

    def _check_commands(self) -> None:
        listed = self._run("--help").partition("\nRead:\n")[2]
        if set(re.findall(r"^  ([\w-]+)", listed, re.MULTILINE)) != COMMANDS.keys():
            raise Failure(f"{self.name}: the commands differ from those in {__file__}: {listed}")
        places = {"samples": str(SAMPLES)}
        for command, arguments in COMMANDS.items():
            self._run(command, "--help", says="Usage: magicbyte")
            out = str(self._home / f"{command}.out")
            code = EXIT_CODES.get(command, 0)
            self._run(command, *(one.format(out=out, **places) for one in arguments), code=code)
        if self._extra == "cli":
            self._run("verify", "s3://bucket/logs", code=2, says="pip install 'magicbyte[cloud]'")
        # rich prints tables and bars only to a terminal.
        program = [self._program, "explain", str(SAMPLES)]
        self._complete([sys.executable, "-c", TERMINAL, *program], EXIT_CODES["explain"], "transactions")

    def _check_dropins(self) -> None:
        self._pip_install(*CLIENTS.values())
        for package in CLIENTS:
            for when in ("before", "after"):
                self._complete([str(self._python_path), "-I", str(DROPINS), package, when], 0, "")

    def _install(self, extra: str) -> None:
        wanted = [f"{self._wheel}[{extra}]" if extra else str(self._wheel)]
        if self._oldest:
            project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
            bounds = resolve(project["optional-dependencies"], extra)
            wanted += [re.sub(r">=([^,]+).*", r"==\1", one) for one in sorted(bounds)]
        self._pip_install(*wanted)

    def _pip_install(self, *wanted: str) -> None:
        pip = ["-m", "pip", "--python", str(self._python_path), "install", "--quiet"]
        self._complete([sys.executable, *pip, "--disable-pip-version-check", *wanted], 0, "")

    @property
    def _python_path(self) -> Path:
        return self._home / "venv" / "bin" / "python"

    @property
    def _program(self) -> str:
        return str(self._home / "venv" / "bin" / "magicbyte")

    def _python(self, code: str, *arguments: str) -> str:
        return self._complete([str(self._python_path), "-I", "-c", code, *arguments], 0, "").strip()

    def _run(self, *arguments: str, code: int = 0, says: str = "") -> str:
        return self._complete([self._program, *arguments], code, says)

    def _complete(self, command: list[str], code: int, says: str) -> str:
        # Run outside the checkout, whose package would come first.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
        if command[0] == str(self._python_path):
            # As a program of Spark's users would set it; the commands set it themselves.
            environment["PYSPARK_PYTHON"] = command[0]
        done = subprocess.run(
            command,
            cwd=self._home,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        output = done.stdout + done.stderr
        if done.returncode != code or says not in output or "Traceback" in output:
            wanted = f"exit code {code}" + (f" and {says!r}" if says else "")
            found = f"exit code {done.returncode}, expected {wanted}\n{output[:_SHOWN]}"
            raise Failure(f"{self.name}: {' '.join(command)}\n{found}")
        return done.stdout

    def _versions(self) -> str:
        pip = [sys.executable, "-m", "pip", "--python", str(self._python_path), "freeze", "--quiet"]
        listed = self._complete([*pip, "--disable-pip-version-check"], 0, "").split()
        return " ".join(one for one in listed if "==" in one) or "nothing else"


class Failure(Exception):
    """The wheel does not do what it promises."""


def check_terms(wheel: Path) -> None:
    """Checks that the wheel contains its own licence and those of its parts."""
    names = zipfile.ZipFile(wheel).namelist()
    for term in ("LICENSE", "THIRD-PARTY-LICENSES"):
        if not any(name.endswith(f".dist-info/licenses/{term}") for name in names):
            raise Failure(f"{wheel.name} has no {term}")


def main() -> int:
    """Checks all environments, two at a time; returns the exit code."""
    wheel, directory = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    check_terms(wheel)
    # The slowest ones first.
    kinds = [("spark", True), ("cli", True), ("cli", False), ("arrow", True), ("arrow", False)]
    kinds += [("sql", True), ("sql", False), ("delta", True), ("iceberg", True), ("cloud", True)]
    kinds += [("polars", True), ("registry", True), ("", False)]
    environments = [Environment(wheel, directory, extra, oldest=oldest) for extra, oldest in kinds]
    with ThreadPoolExecutor(2) as pool:
        checks = [pool.submit(one.check) for one in environments]
    failures = [check.exception() for check in checks if check.exception() is not None]
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"the wheel in bare environments: {len(checks) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
