"""`ingest` of a running cluster, which `magicbyte serve` plays here: what the ingest of its files gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import KAFKA, Cli
from lakes import FORMATS, Lake
from lineages import ID, OTHER_ID, again, expected, records, values, write
from magicbyte.enums import IsolationLevel
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find import live_listings
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run import live_chunks
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.lake.divergence import DivergedError

LEVELS: tuple[IsolationLevel, ...] = ("read_uncommitted", "read_committed")
OURS = PartitionChoice(exclude=("__magicbyte*",))
SUMS = ("rows", "control", "aborted", "outside", "announced", "good_batches", "good_bytes", "lost_offsets")


@contextmanager
def cluster(root: Path) -> Iterator[str]:
    """The URL of a cluster with these partitions."""
    with magicbyte.serve([root], listen="127.0.0.1:0") as server:
        yield f"kafka://{server.bootstrap_servers}"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cluster(KAFKA) as served:
        yield served


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake.at(request.param, tmp_path / "lake")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture(params=["whole", "small"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How partitions are divided into chunks."""
    if request.param == "small":
        monkeypatch.setattr(live_chunks, "_SMALLEST", 1)
        monkeypatch.setattr("magicbyte.jobs.run.plan._SMALLEST_TARGET", 3000)
    return str(request.param)


def rows(out: Path, table: str = "records") -> pa.Table:
    found = pq.read_table(out / table)
    order = [(name, "ascending") for name in ("topic", "partition", "offset") if name in found.schema.names]
    return found.sort_by(order)


# --- Parquet ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_tables_are_those_of_the_files(url: str, tmp_path: Path, level: IsolationLevel, parts: str) -> None:
    """All fixtures: rows and sums, however a partition is divided."""
    of_cluster = magicbyte.ingest(
        url, tmp_path / "live", isolation_level=level, engine=LocalEngine(3), choice=OURS
    )
    of_files = magicbyte.ingest(KAFKA, tmp_path / "files", isolation_level=level, engine=LocalEngine(3))
    assert of_cluster["balanced"]
    assert rows(tmp_path / "live").equals(rows(tmp_path / "files"))
    sums = {(one["topic"], one["partition"]): one for one in of_files["partitions"]}
    for account in of_cluster["partitions"]:
        named = sums[account["topic"], account["partition"]]
        assert account["balanced"]
        assert account["size"] == account["good_bytes"] + account["quarantined_bytes"]
        assert account["rows"] == named["rows"]
        if level == "read_uncommitted" and not named["deleted"]:
            assert {name: account[name] for name in SUMS} == {name: named[name] for name in SUMS}, named
    assert of_cluster["tables"]["batches"]["rows"] >= len(sums)


@pytest.mark.parametrize(
    "given",
    [
        {"start_offset": 101},
        {"end_offset": 205},
        {"start_offset": 100, "end_offset": 301},
        {"start_offset": 1 << 40},
        {"where": "offset % 7 = 3"},
        {"end_timestamp": 1_600_000_000_000},
    ],
    ids=str,
)
@pytest.mark.parametrize("topic", ["v2_lz4", "v1_gzip", "v2_compacted_txn"])
def test_ranges(url: str, tmp_path: Path, given: dict[str, Any], topic: str, parts: str) -> None:
    """Also inside batches, whose other records are outside."""
    report = magicbyte.ingest(f"{url}/{topic}", tmp_path / "live", **given)
    of_files = magicbyte.ingest(KAFKA / topic, tmp_path / "files", **given)
    assert report["balanced"]
    assert rows(tmp_path / "live").equals(rows(tmp_path / "files"))
    assert report["total"]["rows"] == of_files["total"]["rows"]


def test_a_cluster_beside_files(url: str, tmp_path: Path) -> None:
    report = magicbyte.ingest([f"{url}/v2_lz4", KAFKA / "v2_zstd"], tmp_path / "out")
    assert {one["topic"] for one in report["partitions"]} == {"v2_lz4", "v2_zstd"}
    assert report["balanced"]
    with pytest.raises(RefusedError, match="v2_lz4-0 is found twice"):
        magicbyte.ingest([f"{url}/v2_lz4", KAFKA / "v2_lz4"], tmp_path / "twice")


def test_a_partition_that_is_named_twice_is_one(url: str, tmp_path: Path) -> None:
    topic = f"{url}/v2_lz4"
    report = magicbyte.ingest([topic, f"{topic}/0", topic], tmp_path / "out")
    assert (len(report["partitions"]), report["total"]["rows"]) == (1, 346)
    assert rows(tmp_path / "out").num_rows == 346


def test_commands(url: str, tmp_path: Path, cli: Cli) -> None:
    config = tmp_path / "client.properties"
    config.write_text("client.id=hunter2-tables\n")
    out = tmp_path / "tables"
    report = cli.json("ingest", f"{url}/v2_lz4", out, "--command-config", config)
    assert report["sources"] == [f"{url}/v2_lz4"]
    assert "hunter2" not in json.dumps(report) + cli.error
    assert not [path for path in out.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]
    cli("ingest", KAFKA, tmp_path / "other", "--command-config", config, code=2)
    assert "no running cluster" in cli.error


# --- Delta and Iceberg --------------------------------------------------------------------------------


def test_a_second_run_adds_what_is_new(lake: Lake, root: Path, parts: str) -> None:
    write(root, records(0, 100))
    with cluster(root) as url:
        first = lake.ingest(f"{url}/orders")
        assert lake.ingest(f"{url}/orders")["commit"]["job"] is None
    again(root, records(0, 100), records(100, 140))
    with cluster(root) as url:
        second = lake.ingest(f"{url}/orders")
    assert [one["tables"]["records"]["rows"] for one in (first, second)] == [100, 40]
    (committed,) = second["commit"]["partitions"]
    assert (committed["start_offset"], committed["next_offset"]) == (100, 140)
    assert committed["topic_id"] is not None
    assert values(lake) == expected("v", 0, 140)
    assert lake.compare(root) == {("orders", 0): "equal"}
    # Files go on where the cluster ended, and the other way round.
    again(root, records(0, 150))
    assert lake.ingest(root)["tables"]["records"]["rows"] == 10
    again(root, records(0, 155))
    with cluster(root) as url:
        assert lake.ingest(f"{url}/orders")["tables"]["records"]["rows"] == 5


@pytest.mark.parametrize("topic_ids", [(None, None), (ID, OTHER_ID)])
@pytest.mark.parametrize("count", [40, 100, 170])
def test_a_topic_that_is_created_again(
    lake: Lake, root: Path, topic_ids: tuple[str | None, str | None], count: int
) -> None:
    write(root, records(0, 100), topic_id=topic_ids[0])
    with cluster(root) as url:
        lake.ingest(f"{url}/orders")
    again(root, records(0, count, "second"), topic_id=topic_ids[1])
    with cluster(root) as url:
        with pytest.raises(DivergedError) as raised:
            lake.ingest(f"{url}/orders")
        assert raised.value.divergences[0].offset == 0
        report = lake.ingest(f"{url}/orders", repair=True)
        assert report["commit"]["repaired"][0]["rows"] == count
        assert lake.ingest(f"{url}/orders")["commit"]["job"] is None
    assert values(lake) == expected("second", 0, count)


def test_the_end_is_written_again_in_another_epoch(lake: Lake, root: Path) -> None:
    write(root, records(0, 100), records(100, 150, "lost"), topic_id=ID)
    with cluster(root) as url:
        lake.ingest(f"{url}/orders")
    again(root, records(0, 110, epoch=0), records(110, 190, "new", epoch=1), topic_id=ID)
    with cluster(root) as url:
        with pytest.raises(DivergedError) as raised:
            lake.ingest(f"{url}/orders")
        (found,) = raised.value.divergences
        assert (found.offset, found.next_offset) == (100, 150)
        lake.ingest(f"{url}/orders", repair=True)
    assert values(lake) == [*expected("v", 0, 110), *expected("new", 110, 190)]


def test_retention_overtakes_a_table(lake: Lake, root: Path) -> None:
    """What the cluster deleted before the next run is named, and remembered."""
    write(root, records(0, 100), topic_id=ID)
    with cluster(root) as url:
        lake.ingest(f"{url}/orders")
    again(root, records(130, 160), segment=130, topic_id=ID)
    with cluster(root) as url:
        with pytest.raises(JobError, match="are missing"):
            lake.ingest(f"{url}/orders", fail_on_missing=True)
        report = lake.ingest(f"{url}/orders")
        (problem,) = report["commit"]["problems"]
        assert (problem["first_lost_offset"], problem["last_lost_offset"]) == (100, 129)
        assert report["commit"]["partitions"][0]["holes"] == [[100, 130]]
        (remembered,) = lake.ingest(f"{url}/orders")["commit"]["problems"]
        assert remembered["kind"] == "hole"
        lake.ingest(f"{url}/orders", repair=True)
        assert lake.ingest(f"{url}/orders")["commit"]["problems"] == []


# --- What happens while it is read ------------------------------------------------------------------


class Changing(LocalEngine):
    """Does something between the listing of a cluster and the tasks that fetch."""

    def __init__(self, change: Any) -> None:
        super().__init__(2)
        self._change = change

    def map(self, function: Any, items: Any, *, name: str, **options: Any) -> Any:
        self._change(items)
        return super().map(function, items, name=name, **options)


def alter_listings(monkeypatch: pytest.MonkeyPatch, checkpoint: str, offset: int) -> None:
    """Makes the cluster tell another offset when partitions are listed."""
    listed = live_listings._list

    def altered(*given: Any) -> Any:
        found = listed(*given)
        for one in found:
            one["checkpoints"][checkpoint] = offset
        return found

    monkeypatch.setattr(live_listings, "_list", altered)


def test_retention_overtakes_a_run(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The offsets are lost by name, and the sums are those of what was fetched."""
    write(root, records(50, 100), segment=50, topic_id=ID)
    alter_listings(monkeypatch, "log_start_offset", 20)
    with cluster(root) as url:
        report = magicbyte.ingest(f"{url}/orders", tmp_path / "out")
    (account,) = report["partitions"]
    assert (account["rows"], account["lost_offsets"], account["problems"]) == (50, 30, 1)
    assert account["balanced"]
    (problem,) = rows(tmp_path / "out", "problems").to_pylist()
    assert (problem["kind"], problem["firstLostOffset"], problem["lastLostOffset"]) == ("data_loss", 20, 49)


def test_truncation_during_a_run(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, records(0, 100), topic_id=ID)
    alter_listings(monkeypatch, "high_watermark", 120)
    with cluster(root) as url, pytest.raises(JobError, match="ends at offset 100, and had offsets up to 119"):
        magicbyte.ingest(f"{url}/orders", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("change", ["topic", "epoch"])
def test_another_log_during_a_run(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Tasks have fetched something, and nobody knows of which log."""
    write(root, records(0, 100), topic_id=ID)
    listed, looks = live_listings._list, iter([False, True])

    def other(*given: Any) -> Any:
        found = listed(*given)
        for one in found:
            one["leader_epochs"] = [{"epoch": 0, "start_offset": 0}]
        for one in found if next(looks) else ():
            if change == "topic":
                one["topic_id"] = OTHER_ID
            else:
                one["leader_epochs"].append({"epoch": 2, "start_offset": 60})
        return found

    monkeypatch.setattr(live_listings, "_list", other)
    with (
        cluster(root) as url,
        pytest.raises(live_listings.ChangedLogError, match="changed while it was read"),
    ):
        magicbyte.ingest(f"{url}/orders", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("epochs", [[], [{"epoch": 0, "start_offset": 0}]], ids=["unknown", "known"])
def test_a_stream(lake: Lake, root: Path, monkeypatch: pytest.MonkeyPatch, epochs: list[Any]) -> None:
    """It commits what is new at a look, also if the cluster is away in between, and notices another topic."""
    write(root, records(0, 100))
    listed, topic_ids, compared = live_listings._list, [ID], []

    def of_topic(*given: Any) -> Any:
        found = listed(*given)
        for one in found:
            one["cluster_id"], one["topic_id"], one["leader_epochs"] = ID, topic_ids[0], list(epochs)
        return found

    class Engine(LocalEngine):
        def map(self, function: Any, items: Any, *, name: str, **options: Any) -> Any:
            compared.append("compare" in name)
            return super().map(function, items, name=name, **options)

    monkeypatch.setattr(live_listings, "_list", of_topic)
    with magicbyte.serve([root], listen="127.0.0.1:0") as server:
        url = f"kafka://{server.bootstrap_servers}/orders"
        stream = magicbyte.ingest_stream(
            url, lake.name, format=lake.format, interval=0.02, engine=Engine(2), **lake.place
        )
        assert next(stream)["tables"]["records"]["rows"] == 100
    again(root, records(0, 100), records(100, 130))
    with magicbyte.serve([root], listen=server.bootstrap_servers):
        assert next(stream)["tables"]["records"]["rows"] == 30
        before = sum(compared)
        assert before
    again(root, records(0, 100), records(100, 130), records(130, 135))
    with magicbyte.serve([root], listen=server.bootstrap_servers):
        assert next(stream)["tables"]["records"]["rows"] == 5
        # A log whose epochs are known is compared once, and then only asked for them.
        assert (sum(compared) == before) == bool(epochs)
        topic_ids[0] = OTHER_ID
        with pytest.raises(DivergedError, match=f"read of the topic {ID}"):
            next(stream)
    assert values(lake) == expected("v", 0, 135)
