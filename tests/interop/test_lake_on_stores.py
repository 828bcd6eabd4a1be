"""Delta and Iceberg tables in a real S3 server: equal to the log, as other engines read them, whoever is killed."""

from __future__ import annotations

import json
import random
import shutil
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import forked
import obstore
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from flaky_proxy import flaky_proxy
from magicbyte import RecordsBuilder, mount_storage
from magicbyte.cli import main
from magicbyte.jobs.publish import heartbeat
from pyiceberg.catalog import load_catalog
from s3_server import BUCKET, KEY, OPTIONS, SECRET, TABLES, client

pytestmark = pytest.mark.interop
forked.load("deltalake", "obstore", "pyiceberg.catalog.rest", "pyiceberg.catalog.sql", "pyiceberg.io.pyarrow")
forked.load("magicbyte.lake")
NAMES = ("v2_txn", "v2_zstd", "v0_gzip", "v2_headers_nulls")
KINDS = ("delta", "sql", "rest")
DAY = "--partition-by=day"


@dataclass
class Lake:
    """One table, or the place where it will be."""

    kind: str
    endpoint: str
    name: str
    properties: dict[str, str] = field(default_factory=dict)

    def options(self, endpoint: str | None = None) -> list[str]:
        if self.kind == "delta":
            options = {**OPTIONS, "endpoint": endpoint or self.endpoint}
            return [f"--storage-option={key}={value}" for key, value in options.items()]
        properties = {**self.properties, **({"s3.endpoint": endpoint} if endpoint else {})}
        return ["--catalog=c", *(f"--catalog-property={key}={value}" for key, value in properties.items())]

    def ingest(self, source: Path, *options: str, endpoint: str | None = None) -> list[str]:
        of = "delta" if self.kind == "delta" else "iceberg"
        command = ["ingest", "--engine", "local", "--format", of, *self.options(endpoint), *options]
        return [*command, str(source), self.name]

    def compare(self, source: Path, capsys: Any) -> set[str]:
        """The results of all partitions; timestamps that are null in the table leave one of them unproven."""
        capsys.readouterr()
        code = main(["verify", "--json", *self.options(), "--table", self.name, str(source)])
        output, error = capsys.readouterr()
        assert code in (0, 1), error
        results = {one["topic"]: one["result"] for one in json.loads(output)["table"]["partitions"]}
        assert results.pop("v2_timestamps", "unproven") == "unproven"
        return set(results.values())

    def delta(self) -> DeltaTable:
        return DeltaTable(self.name, storage_options={**OPTIONS, "endpoint": self.endpoint})

    def rows(self) -> pa.Table:
        """As the format's own library reads them."""
        if self.kind == "delta":
            return self.delta().to_pyarrow_table()
        return load_catalog("c", **self.properties).load_table(self.name).scan().to_arrow()

    @property
    def place(self) -> tuple[str, str]:
        """Bucket and prefix of the table."""
        if self.kind == "delta":
            return BUCKET, self.name.removeprefix(f"s3://{BUCKET}/")
        location = load_catalog("c", **self.properties).load_table(self.name).location()
        bucket, _, prefix = location.removeprefix("s3://").partition("/")
        return bucket, prefix

    def only_files_of_commits(self) -> bool:
        """Whether there is no other data file, and no trace of a job."""
        bucket, prefix = self.place
        store = client(self.endpoint, bucket)
        found = {one["path"] for page in obstore.list(store, prefix) for one in page}
        if self.kind == "delta":
            named = {uri.removeprefix(f"s3://{BUCKET}/") for uri in self.delta().file_uris()}
        else:
            table = load_catalog("c", **self.properties).load_table(self.name)
            named = {one.file.file_path.removeprefix(f"s3://{bucket}/") for one in table.scan().plan_files()}
        data = {path for path in found if path.endswith(".parquet") and "_delta_log" not in path}
        return data == named and not [path for path in found if "_magicbyte/" in path]


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, s3: str, catalog_port: int, tmp_path: Path) -> Lake:
    name = f"t{uuid.uuid4().hex[:8]}"
    if request.param == "delta":
        return Lake("delta", s3, f"s3://{BUCKET}/{name}")
    access = {
        "s3.endpoint": s3,
        "s3.access-key-id": KEY,
        "s3.secret-access-key": SECRET,
        "s3.region": "us-east-1",
    }
    if request.param == "sql":
        uri = f"sqlite:///{tmp_path}/catalog.db"
        own = {"type": "sql", "uri": uri, "warehouse": f"s3://{BUCKET}/{name}"}
    else:
        uri = f"http://127.0.0.1:{catalog_port}"
        own = {"type": "rest", "uri": uri, "warehouse": f"s3://{TABLES}", "credential": f"{KEY}:{SECRET}"}
    properties = {**own, **access}
    load_catalog("c", **properties)  # creates its own tables, which several processes cannot do at once
    return Lake(request.param, s3, f"kafka.{name}", properties)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "SILENCE_SECONDS", 2)


@pytest.fixture
def source(kafka: Path, tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / "logs" / f"{name}-0").mkdir(parents=True)
    grow(kafka, tmp_path / "logs", 1)
    return tmp_path / "logs"


def grow(kafka: Path, directory: Path, share: float) -> None:
    """Writes this share of each partition's bytes."""
    for name in NAMES:
        segments = sorted((kafka / name).glob("*.log"))
        left = round(share * sum(path.stat().st_size for path in segments))
        for path in segments:
            target = directory / f"{name}-0" / path.name
            if left > 0:
                target.write_bytes(path.read_bytes()[:left])
            else:
                target.unlink(missing_ok=True)
            left -= path.stat().st_size


def test_the_table_grows_with_the_log(lake: Lake, source: Path, kafka: Path, capsys: Any) -> None:
    for share in (0.3, 0.6, 1):
        grow(kafka, source, share)
        assert main(lake.ingest(source, DAY)) in (0, 1), capsys.readouterr().err
        assert lake.compare(source, capsys) == {"equal"}
    before = lake.rows().num_rows
    assert main(lake.ingest(source, DAY)) == 0
    assert lake.rows().num_rows == before > 500
    assert lake.only_files_of_commits()
    assert main(lake.ingest(source)) == 2
    assert "partition_by" in capsys.readouterr().err


def test_typed_values_grow_with_their_schema(lake: Lake, kafka: Path, tmp_path: Path, capsys: Any) -> None:
    field = {"name": "id", "type": "long"}
    reader = tmp_path / "reader.avsc"
    reader.write_text(json.dumps({"type": "record", "name": "Order", "fields": [field]}))
    typed = ["--value-format", "avro", "--schema-registry", str(kafka / "schemas_topic")]
    logs = tmp_path / "typed"
    for partition, options in ((0, ["--reader-schema", str(reader)]), (1, [])):
        shutil.copytree(kafka / "sr_avro", logs / f"orders-{partition}")
        assert main(lake.ingest(logs, *typed, *options)) in (0, 1), capsys.readouterr().err
        assert lake.compare(logs, capsys) == {"equal"}
    values = lake.rows().sort_by([("partition", "ascending"), ("offset", "ascending")]).column("value")
    names = [None if one is None else one["name"] for one in values.to_pylist()]
    assert names[:120] == [None] * 120
    assert names[120] == "näme-0"
    assert lake.only_files_of_commits()


def test_an_end_that_was_written_again_is_repaired(lake: Lake, tmp_path: Path, capsys: Any) -> None:
    def write(*batches: tuple[int, int, str]) -> None:
        data = bytearray()
        for first, end, value in batches:
            builder = RecordsBuilder(partition_leader_epoch=0)
            for offset in range(first, end):
                builder.append(offset, 1000, b"k", f"{value} {offset}".encode())
            data += builder.build()
        (tmp_path / "own" / "orders-0").mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / "orders-0" / f"{0:020d}.log").write_bytes(data)

    write((0, 100, "v"), (100, 150, "lost"))
    assert main(lake.ingest(tmp_path / "own")) == 0
    write((0, 100, "v"), (100, 180, "new"))
    assert main(lake.ingest(tmp_path / "own")) == 2
    assert "They diverge at offset 100" in capsys.readouterr().err
    assert main(lake.ingest(tmp_path / "own", "--repair")) == 0
    assert lake.compare(tmp_path / "own", capsys) == {"equal"}
    assert lake.rows().num_rows == 180
    assert "nothing is new" in (main(lake.ingest(tmp_path / "own", "--repair")), capsys.readouterr().out)[1]


def test_other_engines_read_it(lake: Lake, source: Path, s3: str) -> None:
    assert main(lake.ingest(source)) == 0
    rows = lake.rows()
    if lake.kind == "delta":
        actions = pa.table(lake.delta().get_add_actions(flatten=True)).to_pylist()
        assert sum(one["num_records"] for one in actions) == rows.num_rows
        assert all(one["min.offset"] <= one["max.offset"] for one in actions)
        frame = polars.read_delta(lake.name, storage_options={**OPTIONS, "endpoint": s3})
        assert frame.height == rows.num_rows
    bucket, prefix = lake.place
    files = f"s3://{bucket}/{prefix}/**/*.parquet"
    frame = polars.read_parquet(
        files,
        storage_options={
            "aws_endpoint_url": s3,
            "aws_access_key_id": KEY,
            "aws_secret_access_key": SECRET,
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        },
        glob=True,
    )
    assert sorted(frame["offset"].to_list()) == sorted(rows.column("offset").to_pylist())
    assert duckdb.sql("SELECT count(*) FROM rows").fetchall() == [(rows.num_rows,)]


def test_killed_at_random(lake: Lake, source: Path, kafka: Path, capsys: Any) -> None:
    for share in (0.05, 0.1):  # the first job loads the libraries
        grow(kafka, source, share)
        started = time.monotonic()
        forked.start_command(lake.ingest(source)).join()
        whole = time.monotonic() - started
    dice = random.Random(seed := random.randrange(1 << 30))
    for number in range(6):
        grow(kafka, source, 0.2 + number / 10)
        job = forked.start_command(lake.ingest(source))
        time.sleep(dice.uniform(0, whole))
        job.kill()
        job.join()
    grow(kafka, source, 1)
    time.sleep(3)  # longer than a job may be silent
    assert main(lake.ingest(source)) in (0, 1), (seed, capsys.readouterr().err)
    assert lake.compare(source, capsys) == {"equal"}, seed
    assert lake.only_files_of_commits(), seed


def test_a_flaky_network(lake: Lake, source: Path, capsys: Any) -> None:
    if lake.kind != "delta":
        pytest.skip("pyarrow's S3, which pyiceberg writes its metadata with, has retries of its own")
    with flaky_proxy(lake.endpoint, [500, 503, "reset"]) as proxy:
        # In a process of its own: delta-rs holds the GIL while it reads the history, and the proxy needs it.
        job = forked.start_command(lake.ingest(source, endpoint=f"http://127.0.0.1:{proxy.server_port}"))
        job.join()
        assert job.exitcode == 0, proxy.seen
        assert sum(proxy.seen.values()) - proxy.seen[None] > 3
    assert lake.compare(source, capsys) == {"equal"}
    assert lake.only_files_of_commits()


def test_wrong_credentials(lake: Lake, source: Path, capsys: Any) -> None:
    command = [one.replace(SECRET, "wrongsecret") for one in lake.ingest(source)]
    assert main(command) in (2, 3)
    output, error = capsys.readouterr()
    assert "wrongsecret" not in output + error
    assert SECRET not in output + error
    assert "Traceback" not in error


def test_no_secret_is_written(lake: Lake, source: Path, s3: str, capsys: Any) -> None:
    assert main(lake.ingest(source)) == 0
    mount_storage(f"s3://{BUCKET}", {**OPTIONS, "endpoint": s3})
    bucket, prefix = lake.place
    store = client(s3, bucket)
    written = [
        bytes(obstore.get(store, one["path"]).bytes()) for page in obstore.list(store, prefix) for one in page
    ]
    output, error = capsys.readouterr()
    text = b"".join(written) + output.encode() + error.encode()
    assert len(written) > 3
    assert SECRET.encode() not in text
