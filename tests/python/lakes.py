"""Delta and Iceberg tables for tests: how to write, read and change them with their own libraries."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow as pa
from conftest import KAFKA
from deltalake import DeltaTable
from magicbyte.jobs.ingest import IngestReport
from magicbyte.jobs.run.engines import Engine, LocalEngine
from magicbyte.lake.table import TableTarget
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

FORMATS = ("delta", "iceberg")


@dataclass(frozen=True)
class Lake:
    """One table, or the place where it will be."""

    format: str
    root: Path
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def at(cls, table_format: str, root: Path) -> Lake:
        root.mkdir(exist_ok=True)
        if table_format == "delta":
            return cls(table_format, root)
        catalog = {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": f"file://{root}/tables"}
        load_catalog("c", **catalog)  # creates its own tables, which several processes cannot do at once
        return cls(table_format, root, catalog)

    @property
    def name(self) -> str:
        return str(self.root / "table") if self.format == "delta" else "kafka.records"

    @property
    def place(self) -> dict[str, Any]:
        """The arguments of functions that name the catalog."""
        return {} if self.format == "delta" else {"catalog": "c", "catalog_properties": self.properties}

    @property
    def target(self) -> TableTarget:
        """The same for the jobs."""
        if self.format == "delta":
            return TableTarget("delta", self.name, None, {})
        return TableTarget("iceberg", self.name, "c", self.properties)

    @property
    def options(self) -> list[str]:
        """The same for the command line."""
        pairs = [one for pair in self.properties.items() for one in ("--catalog-property", "=".join(pair))]
        return ["--catalog", "c", *pairs] if self.properties else []

    def ingest(self, source: Path | str, *, engine: Engine | None = None, **options: Any) -> IngestReport:
        return magicbyte.ingest(
            source,
            self.name,
            format=self.format,
            engine=engine or LocalEngine(2),
            **self.place,
            **options,
        )

    def compare(self, source: Path, **options: Any) -> dict[tuple[str, int], str]:
        """What `verify` says about each partition."""
        report = magicbyte.verify(source, table=self.name, engine=LocalEngine(2), **self.place, **options)
        assert report["table"] is not None
        return {(one["topic"], one["partition"]): one["result"] for one in report["table"]["partitions"]}

    def read(self) -> pa.Table:
        """All rows, by the format's own library."""
        if self.format == "delta":
            return DeltaTable(self.name).to_pyarrow_table()
        return self.iceberg().scan().to_arrow()

    def iceberg(self) -> Table:
        return load_catalog("c", **self.properties).load_table(self.name)

    @property
    def data(self) -> Path:
        """The directory of the data files."""
        return Path(self.name) if self.format == "delta" else self.root / "tables/kafka/records/data"

    def files(self) -> set[Path]:
        """The files that the table's current version names."""
        if self.format == "delta":
            return {Path(uri) for uri in DeltaTable(self.name).file_uris()}
        tasks = self.iceberg().scan().plan_files()
        return {Path(one.file.file_path.removeprefix("file://")) for one in tasks}

    def versions(self) -> int:
        """How many commits have added records."""
        if self.format == "delta":
            return sum("magicbyte" in one for one in DeltaTable(self.name).history())
        return len(self.iceberg().snapshots())


class GrowingLog:
    """A copy of partitions that real brokers wrote, of which first only a part is there."""

    def __init__(self, root: Path, partitions: Sequence[str]) -> None:
        self.root = root
        self._segments: list[tuple[Path, bytes]] = []
        for name in partitions:
            (root / name).mkdir(parents=True, exist_ok=True)
            for log in sorted((KAFKA / name).glob("*.log")):
                self._segments.append((root / name / log.name, log.read_bytes()))

    def grow_to(self, share: float) -> None:
        """Appends up to this share of each partition's bytes, whatever batch that ends in."""
        by_partition: dict[Path, list[tuple[Path, bytes]]] = {}
        for path, data in self._segments:
            by_partition.setdefault(path.parent, []).append((path, data))
        for segments in by_partition.values():
            left = round(share * sum(len(data) for _, data in segments))
            for path, data in segments:
                if left > 0:
                    with open(path, "ab", buffering=0) as file:
                        file.write(data[file.tell() : left])
                left -= len(data)

    def remove(self) -> None:
        shutil.rmtree(self.root)
