"""Logs in HDFS, read and written by hdfs-native.

They have the same account as the directory, and what is written there reads back.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow as pa
import pytest
from hdfs_cluster import hdfs_cluster
from magicbyte import PartitionLog
from magicbyte.cli import main

pytestmark = pytest.mark.interop

PARTITIONS = ("v2_txn", "v1_compacted_codecs")


@pytest.fixture(scope="module")
def local(kafka: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("local")
    for name in PARTITIONS:
        shutil.copytree(kafka / name, directory / f"{name}-0", ignore=shutil.ignore_patterns("rebuilt"))
    return directory


@pytest.fixture(scope="module")
def hdfs(local: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs_cluster(tmp_path_factory.mktemp("hdfs"), sorted(local.iterdir())) as url:
        yield url


def sums(source: object) -> tuple[Any, list[Any]]:
    report = magicbyte.verify(str(source))
    left_out = ("path", "segments", "ignored")
    return report["total"], [{k: one[k] for k in one if k not in left_out} for one in report["partitions"]]


def rows(partition: str | Path) -> pa.Table:
    return pa.table(PartitionLog(partition).to_arrow(["offset", "timestamp", "key", "value", "headers"]))


def test_the_account_of_the_directory(hdfs: str, local: Path) -> None:
    assert sums(f"{hdfs}/logs") == sums(local)
    assert rows(f"{hdfs}/logs/v2_txn-0") == rows(local / "v2_txn-0")


def test_what_is_written_there(hdfs: str, local: Path, tmp_path: Path) -> None:
    options = ["--compression", "zstd"]
    out = f"{hdfs}/out"
    assert main(["convert", *options, str(local), f"{out}/converted"]) == 0
    assert main(["convert", *options, str(local), str(tmp_path / "converted")]) == 0
    total, partitions = sums(f"{out}/converted")
    assert (total, partitions) == sums(tmp_path / "converted")
    assert total["balanced"]
    for name in PARTITIONS:
        assert rows(f"{out}/converted/{name}-0") == rows(local / f"{name}-0")
    assert main(["ingest", str(local), f"{out}/tables"]) == 0
    assert main(["ingest", "--overwrite", str(local), f"{out}/tables"]) == 0
    assert main(["verify", "--table", f"{out}/tables", f"{hdfs}/logs"]) == 0
