"""Partitions that become other logs, and tables of them: what the tests of lineages share."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from lakes import Lake
from magicbyte import RecordsBuilder
from magicbyte.jobs.ingest import IngestReport
from magicbyte.lake.divergence import DivergedError, Divergence

ID, OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
NAME = "orders-0"


def records(first: int, end: int, value: str = "v", *, epoch: int = 0, step: int = 1) -> bytes:
    """A batch."""
    builder = RecordsBuilder(partition_leader_epoch=epoch)
    for offset in range(first, end, step):
        builder.append(offset, 1000 + offset, b"k%d" % offset, f"{value} {offset}".encode())
    return builder.build()


def write(
    root: Path, *batches: bytes, name: str = NAME, segment: int = 0, topic_id: str | None = None
) -> None:
    """Writes a segment of a partition."""
    directory = root / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{segment:020d}.log").write_bytes(b"".join(batches))
    if topic_id is not None:
        (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")


def again(root: Path, *batches: bytes, name: str = NAME, **options: Any) -> None:
    """Writes the partition anew."""
    shutil.rmtree(root / name)
    write(root, *batches, name=name, **options)


def values(lake: Lake, partition: int = 0) -> list[str]:
    rows = lake.read().select(["partition", "offset", "value"]).sort_by("offset").to_pylist()
    return [bytes(row["value"]).decode() for row in rows if row["partition"] == partition]


def expected(value: str, first: int, end: int, step: int = 1) -> list[str]:
    return [f"{value} {offset}" for offset in range(first, end, step)]


def diverges(lake: Lake, root: Path, **options: Any) -> Divergence:
    """Lets an ingest be refused, which changes nothing."""
    before = lake.files(), lake.read().num_rows
    with pytest.raises(DivergedError, match="--repair") as refused:
        lake.ingest(root, **options)
    assert (lake.files(), lake.read().num_rows) == before
    assert not (lake.data / "_magicbyte").exists()
    (found,) = refused.value.divergences
    return found


def on_disk(lake: Lake) -> set[Path]:
    """The data files that are there."""
    return {path for path in lake.data.rglob("*.parquet") if "_delta_log" not in path.parts}


def repair(lake: Lake, root: Path, **options: Any) -> IngestReport:
    """Repairs a table: one commit, after which it equals the log, and there is nothing more to do."""
    versions, files = lake.versions(), on_disk(lake)
    report = lake.ingest(root, repair=True, **options)
    assert report["commit"]["repaired"]
    assert lake.versions() == versions + 1
    assert set(lake.compare(root).values()) == {"equal"}
    assert on_disk(lake) == files | lake.files(), "older versions keep their files"
    more = lake.ingest(root, repair=True, **options)["commit"]
    assert (more["job"], more["repaired"]) == (None, [])
    assert lake.ingest(root, **options)["commit"]["job"] is None
    return report
