"""Commands that write a directory, run in their own processes, and the checks of their output."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import forked
import magicbyte
import pyarrow.dataset as ds
from conftest import KAFKA
from magicbyte.cli import main

__all__ = ["ROUNDS", "WRITERS", "content_of", "is_published", "make_source", "outcome", "start"]

ROUNDS = int(os.environ.get("MAGICBYTE_TEST_ROUNDS", "1"))
"""The factor by which the randomised tests run longer."""

WRITERS: dict[str, tuple[str, ...]] = {
    "convert": ("convert", "--engine", "local", "--segment-bytes", "128k"),
    "recover": ("recover", "--engine", "local"),
    "compact": ("compact", "--engine", "local", "--all", "--now", "2026-01-01"),
    "redact": ("redact", "--engine", "local", "--key", "nobody"),
    "ingest": ("ingest", "--engine", "local"),
    "ingest --overwrite": ("ingest", "--engine", "local", "--overwrite"),
    "rescue": ("rescue",),
    "merge": ("merge", "--engine", "local", "--out"),
}
"""The commands by name, without SRC and OUT; OUT is first where it is an option."""

# Processes that start at the same moment have loaded this module and what commands import.
forked.load(__name__)


def make_source(directory: Path, partitions: Sequence[str], topics: Sequence[str]) -> Path:
    """Partitions of these topics, each with a flipped bit, so that there is something to rescue."""
    for partition, topic in zip(partitions, topics, strict=True):
        target = directory / f"{topic}-0"
        shutil.copytree(KAFKA / partition, target)
        log = sorted(target.glob("*.log"))[0]
        log.chmod(0o644)
        data = bytearray(log.read_bytes())
        batches = list(magicbyte.read_batches(bytes(data)))
        broken = batches[len(batches) // 2]
        data[broken.position + broken.size_in_bytes - 1] ^= 1
        log.write_bytes(data)
    return directory


def start(name: str, source: Path, out: Path, errors: Path, pause: float = 0) -> BaseProcess:
    """Runs a writer; its standard error goes to the file `errors`."""
    paths = [out, source] if WRITERS[name][-1] == "--out" else [source, out]
    command = [*WRITERS[name], *map(str, paths)]
    return forked.start(_run, command, errors, pause)


def _run(command: list[str], errors: Path, pause: float) -> None:
    with open(errors, "w", encoding="utf-8") as captured, open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stderr, sys.stdout = captured, nowhere
        time.sleep(pause)
        code = main(command)
        captured.flush()
    os._exit(code)


def is_published(out: Path) -> bool:
    """Whether there is a complete output."""
    if (out / "_SUCCESS").exists():
        return True
    is_table = (out / "_temporary").exists() or (out / "records").exists()
    return not is_table and ((out / "reconciliation.json").exists() or (out / "rescue.json").exists())


def content_of(out: Path, *, with_workspace: bool = False) -> Any:
    """The content of a complete output, whichever run wrote it: bytes, or the rows of Parquet files.

    It may contain a workspace only if a job may be running there or was killed.
    """
    ours = {"_temporary", ".magicbyte-unfinished"} if with_workspace else set()
    if not (out / "_SUCCESS").exists():
        paths = {path.relative_to(out): path for path in sorted(out.rglob("*"))}
        return {str(name): _fingerprint(path) for name, path in paths.items() if name.parts[0] not in ours}
    report = json.loads((out / "reconciliation.json").read_text())
    assert report["balanced"]
    counted = {one["path"]: one["size"] for one in report["files"]}
    paths = [path for path in out.glob("[!_]*/**/*.parquet") if not path.name.startswith("part-empty")]
    files = {str(path.relative_to(out)): path.stat().st_size for path in paths}
    assert files == counted
    names = {path.name for path in out.iterdir()} - ours
    assert names == {"_SUCCESS", "reconciliation.json", "records", "batches", "problems"}
    table = ds.dataset(out / "records").to_table()
    return sorted(map(repr, table.to_pylist()))


def _fingerprint(path: Path) -> str:
    return "directory" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()


def outcome(name: str, source: Path, directory: Path) -> Any:
    """The writer's output for the source when it runs alone."""
    out = directory / "alone"
    errors = directory / "alone.errors"
    process = start(name, source, out, errors)
    process.join()
    assert process.exitcode == 1, errors.read_text()
    content = content_of(out)
    shutil.rmtree(out)
    errors.unlink()
    return content
