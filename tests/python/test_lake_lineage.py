"""Tables whose log becomes another one: ends that are rewritten, topics created again, and repairs."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from deltalake import DeltaTable
from lakes import FORMATS, Lake
from lineages import ID, NAME, OTHER_ID, again, diverges, expected, records, repair, values, write
from magicbyte import RecordsBuilder
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.holes import MAX_HOLES, Hole, joined, uncovered
from magicbyte.lake.checked import Checked
from magicbyte.lake.differences import digests_of_log
from magicbyte.lake.divergence import DivergedError
from magicbyte.lake.growing import GrowingLog
from magicbyte.lake.ingest import ingest_table
from magicbyte.options.ingest import IngestOptions
from test_lake_crashes import Interrupted, outputs, start
from test_lake_stream import Looks, commits, nothing, stream
from typed_logs import TypedLog, record


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake.at(request.param, tmp_path / "lake")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "logs"


# --- another log under the same name -------------------------------------------------------------


@pytest.mark.parametrize("topic_id", [None, ID])
def test_the_end_is_written_again_in_another_epoch(lake: Lake, root: Path, topic_id: str | None) -> None:
    write(root, records(0, 100), records(100, 150, "lost"), topic_id=topic_id)
    write(root, records(0, 30, "other"), name="orders-1", topic_id=topic_id)
    lake.ingest(root)
    again(root, records(0, 110, epoch=0), records(110, 190, "new", epoch=1), topic_id=topic_id)
    found = diverges(lake, root)
    assert (found.topic, found.partition, found.offset, found.next_offset) == ("orders", 0, 100, 150)
    assert "the log has epoch 0 up to offset 109, and then epoch 1" in found.reasons[0]
    (repaired,) = repair(lake, root)["commit"]["repaired"]
    assert repaired == {
        "topic": "orders",
        "partition": 0,
        "start_offset": 100,
        "end_offset": 150,
        "removed_rows": 50,
        "rows": 90,
    }
    assert values(lake) == [*expected("v", 0, 110), *expected("new", 110, 190)]
    assert values(lake, 1) == expected("other", 0, 30)
    write(root, records(0, 110), records(110, 190, "new", epoch=1), records(190, 200, epoch=1))
    assert lake.ingest(root)["tables"]["records"]["rows"] == 10


@pytest.mark.parametrize("end", [120, 150, 151, 300])
def test_the_same_epoch_with_other_records(lake: Lake, root: Path, end: int) -> None:
    """As after an unclean copy: only contents tell."""
    write(root, records(0, 100), records(100, 150, "lost"))
    lake.ingest(root)
    again(root, records(0, 104), records(104, end, "new"))
    found = diverges(lake, root)
    assert (found.offset, found.agrees) == (100, False)
    repair(lake, root)
    assert values(lake) == [*expected("v", 0, 104), *expected("new", 104, end)]


@pytest.mark.parametrize("topic_ids", [(None, None), (ID, OTHER_ID)])
@pytest.mark.parametrize("count", [40, 100, 170])
def test_a_topic_that_is_created_again(
    lake: Lake, root: Path, topic_ids: tuple[str | None, str | None], count: int
) -> None:
    write(root, records(0, 100), topic_id=topic_ids[0])
    lake.ingest(root)
    again(root, records(0, count, "second"), topic_id=topic_ids[1])
    assert diverges(lake, root).offset == 0
    repair(lake, root)
    assert values(lake) == expected("second", 0, count)


def test_a_topic_that_is_created_again_and_has_lost_its_beginning(lake: Lake, root: Path) -> None:
    write(root, records(0, 100), topic_id=ID)
    lake.ingest(root)
    again(root, records(50, 80, "second"), segment=50, topic_id=OTHER_ID)
    assert diverges(lake, root).offset == 0
    lake.ingest(root, repair=True)
    assert values(lake) == expected("second", 50, 80)


def test_a_log_that_was_restored_elsewhere(lake: Lake, root: Path) -> None:
    write(root, records(0, 100, epoch=7), topic_id=ID)
    lake.ingest(root)
    files = lake.files()
    again(root, records(0, 100), records(100, 120), topic_id=OTHER_ID)
    found = diverges(lake, root)
    assert (found.offset, found.next_offset, found.agrees) == (100, 100, True)
    assert found.reasons == (
        f"offsets before 100 were read of the topic {ID}, and the log is of the topic {OTHER_ID}",
    )
    (repaired,) = repair(lake, root)["commit"]["repaired"]
    assert (repaired["start_offset"], repaired["removed_rows"], repaired["rows"]) == (100, 0, 20)
    assert files < lake.files(), "rows that agree stay in their files"
    assert values(lake) == expected("v", 0, 120)


def test_a_log_of_another_cluster(lake: Lake, root: Path) -> None:
    def meta(cluster: str) -> None:
        root.mkdir(exist_ok=True)
        (root / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id=1\n")

    meta(ID)
    write(root, records(0, 100))
    assert lake.ingest(root)["commit"]["partitions"][0]["cluster_id"] == ID
    meta(OTHER_ID)
    write(root, records(0, 100), records(100, 120))
    found = diverges(lake, root)
    assert (found.agrees, "of the cluster" in found.reasons[0]) == (True, True)
    lake.ingest(root, repair=True)
    assert lake.ingest(root)["commit"]["job"] is None
    assert values(lake) == expected("v", 0, 120)
    # The topic's id is enough.
    write(root, records(0, 100), records(100, 130), topic_id=ID)
    lake.ingest(root)
    meta(ID)
    write(root, records(0, 100), records(100, 140), topic_id=ID)
    assert lake.ingest(root)["tables"]["records"]["rows"] == 10


def test_epochs_that_a_recovery_has_reset(lake: Lake, root: Path) -> None:
    write(root, records(0, 100, epoch=7))
    lake.ingest(root)
    again(root, records(0, 100))
    assert diverges(lake, root).agrees
    repair(lake, root)
    assert values(lake) == expected("v", 0, 100)


def test_a_truncated_log(lake: Lake, root: Path) -> None:
    write(root, records(0, 60), records(60, 100))
    lake.ingest(root)
    again(root, records(0, 60))
    found = diverges(lake, root)
    assert (found.offset, found.next_offset) == (60, 100)
    (repaired,) = repair(lake, root)["commit"]["repaired"]
    assert (repaired["removed_rows"], repaired["rows"]) == (40, 0)
    assert values(lake) == expected("v", 0, 60)


def test_an_epoch_that_goes_on_and_new_ones(lake: Lake, root: Path) -> None:
    batches = [records(at, at + 10, epoch=at // 30) for at in range(0, 100, 10)]
    for end in range(1, 11):
        write(root, *batches[:end])
        lake.ingest(root)
    assert values(lake) == expected("v", 0, 100)
    assert lake.versions() == 10


def test_segments_that_end_where_the_table_does(lake: Lake, root: Path) -> None:
    """The last row is in a segment that is not read otherwise."""
    write(root, records(0, 100, epoch=1))
    lake.ingest(root)
    write(root, records(100, 150, epoch=2), segment=100)
    assert lake.ingest(root)["tables"]["records"]["rows"] == 50
    again(root, records(0, 80, epoch=1), records(80, 150, "new", epoch=2))
    write(root, records(150, 160, epoch=3), segment=150)
    assert diverges(lake, root).offset == 80
    repair(lake, root)
    assert values(lake) == [*expected("v", 0, 80), *expected("new", 80, 150), *expected("v", 150, 160)]


def transaction(
    first: int, end: int, value: str, *, commit: bool, sequence: int = 0, epoch: int = 0
) -> bytes:
    """The records of a transaction and its marker, which has the offset `end`."""
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    data = RecordsBuilder(**producer, base_sequence=sequence, partition_leader_epoch=epoch)
    for offset in range(first, end):
        data.append(offset, 1000 + offset, b"k%d" % offset, f"{value} {offset}".encode())
    marker = RecordsBuilder(**producer, is_control=True, partition_leader_epoch=epoch)
    marker.append(end, 2000, bytes([0, 0, 0, commit]), bytes(6))
    return data.build() + marker.build()


def test_transactions_that_a_failover_has_lost(lake: Lake, root: Path) -> None:
    before = [transaction(0, 40, "v", commit=True), transaction(41, 60, "aborted", commit=False, sequence=40)]
    write(root, *before, transaction(61, 99, "lost", commit=True, sequence=59))
    lake.ingest(root, isolation_level="read_committed")
    assert lake.read().num_rows == 78
    again(root, *before, transaction(61, 80, "new", commit=True, sequence=59, epoch=1))
    write(root, records(81, 100, epoch=1), segment=81)
    assert diverges(lake, root, isolation_level="read_committed").offset == 61
    repair(lake, root, isolation_level="read_committed")
    assert values(lake) == [*expected("v", 0, 40), *expected("new", 61, 80), *expected("v", 81, 100)]


def test_what_the_log_no_longer_has_proves_nothing(lake: Lake, root: Path) -> None:
    write(root, records(0, 100))
    write(root, records(100, 200), segment=100)
    lake.ingest(root)
    # Compaction has removed the last record and others.
    write(root, records(100, 199, step=3), segment=100)
    write(root, records(200, 210), segment=200)
    assert lake.ingest(root)["tables"]["records"]["rows"] == 10
    # Retention has removed everything that the table has, and more.
    shutil.rmtree(root / NAME)
    write(root, records(300, 310, epoch=4), segment=300)
    report = lake.ingest(root)
    assert report["tables"]["records"]["rows"] == 10
    assert [one["kind"] for one in report["commit"]["problems"]] == ["data_loss"]


def test_a_compacted_log_that_is_written_again(lake: Lake, root: Path) -> None:
    write(root, records(0, 300))
    lake.ingest(root)
    again(root, records(0, 200, step=7), records(200, 320, "new"))
    assert diverges(lake, root).offset == 200
    lake.ingest(root, repair=True)
    assert values(lake) == [*expected("v", 0, 200), *expected("new", 200, 320)]


def test_rows_that_somebody_has_deleted_stay_deleted(lake: Lake, root: Path) -> None:
    write(root, records(0, 100), records(100, 150, "lost"))
    lake.ingest(root)
    if lake.format == "delta":
        DeltaTable(lake.name).delete("offset >= 20 AND offset < 30")
    else:
        lake.iceberg().delete("offset >= 20 AND offset < 30")
    again(root, records(0, 100), records(100, 160, "new", epoch=1))
    assert diverges(lake, root).offset == 100
    lake.ingest(root, repair=True)
    assert values(lake) == [*expected("v", 0, 20), *expected("v", 30, 100), *expected("new", 100, 160)]


def test_all_partitions_that_diverge_are_named(lake: Lake, root: Path) -> None:
    for name in ("a-0", "a-1", "b-0", "c-0"):
        write(root, records(0, 100), name=name)
    lake.ingest(root)
    again(root, records(0, 100, "new"), name="a-1")
    again(root, records(0, 50), records(50, 110, "new"), name="b-0")
    write(root, records(0, 100), records(100, 110), name="c-0")
    with pytest.raises(DivergedError) as refused:
        lake.ingest(root)
    found = [(one.topic, one.partition, one.offset) for one in refused.value.divergences]
    assert found == [("a", 1, 0), ("b", 0, 50)]
    assert lake.read().num_rows == 400
    lake.ingest(root, choice=PartitionChoice(exclude=("a", "b")))
    repair(lake, root)
    assert lake.read().num_rows == 420


def test_large_logs_are_compared_by_digests(lake: Lake, root: Path) -> None:
    write(root, *(records(at, at + 500) for at in range(0, 30_000, 500)))
    lake.ingest(root)
    again(
        root,
        *(records(at, at + 500) for at in range(0, 21_000, 500)),
        records(21_000, 21_017),
        *(records(at, at + 500, "new") for at in range(21_017, 35_000, 500)),
    )
    assert diverges(lake, root).offset == 21_017
    repair(lake, root)


def test_typed_rows_are_replaced_in_groups(lake: Lake, tmp_path: Path) -> None:
    schema = record("o", n=("string", None))

    def log(name: str, *batches: tuple[str, int]) -> TypedLog:
        (tmp_path / name).mkdir(exist_ok=True)
        shutil.rmtree(tmp_path / name / "logs", ignore_errors=True)
        found = TypedLog(tmp_path / name, partitions=1)
        for value, count in batches:
            found.append(schema, [{"n": f"{value} {at}"} for at in range(count)])
        return found

    first = log("a", ("v", 100), ("lost", 50))
    lake.ingest(first.root, typed=first.typed)
    first = log("a", ("v", 100), ("lost", 50), ("more", 10))
    lake.ingest(first.root, typed=first.typed)
    second = log("b", ("v", 100), ("lost", 50), ("more", 5), ("new", 20))
    options = {"typed": second.typed}
    assert diverges(lake, second.root, **options).offset == 150, "where the group of rows begins"
    repair(lake, second.root, **options)
    third = log("c", ("v", 100), ("new", 100))
    assert diverges(lake, third.root, **options).offset == 0
    repair(lake, third.root, **options)
    assert lake.read().num_rows == 200


def test_a_hole_in_typed_rows(lake: Lake, tmp_path: Path) -> None:
    schema = record("o", n=("string", None))
    log = TypedLog(tmp_path, partitions=1)
    for _ in range(5):
        log.append(schema, [{"n": f"v {at}"} for at in range(20)])
    path = log.root / NAME / f"{0:020d}.log"
    data = path.read_bytes()
    size = len(data) // 5
    path.write_bytes(data[: size * 2 + 70] + b"\xff" + data[size * 2 + 71 :])
    lake.ingest(log.root, typed=log.typed)
    assert lake.read().num_rows == 80
    path.write_bytes(data)
    assert [one["kind"] for one in lake.ingest(log.root, typed=log.typed)["commit"]["problems"]] == ["hole"]
    (repaired,) = repair(lake, log.root, typed=log.typed)["commit"]["repaired"]
    assert (repaired["rows"] - repaired["removed_rows"], lake.read().num_rows) == (20, 100)


def test_a_table_of_an_earlier_version(lake: Lake, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no more than the offsets to continue at."""
    write(root, records(0, 100), records(100, 150, "lost"), topic_id=ID)
    _ingest_as_before(lake, root, monkeypatch)
    write(root, records(0, 100), records(100, 150, "lost"), records(150, 160), topic_id=ID)
    shutil.copytree(root, other := root.with_name("other"))
    shutil.copytree(lake.root, backup := root.with_name("backup"))
    lake.ingest(root)
    assert set(lake.compare(root).values()) == {"equal"}
    shutil.rmtree(lake.root)
    shutil.move(backup, lake.root)
    again(other, records(0, 100), records(100, 180, "new"), topic_id=OTHER_ID)
    assert diverges(lake, other).offset == 100
    repair(lake, other)


def _ingest_as_before(lake: Lake, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        if lake.format == "delta":
            patch.setattr("magicbyte.lake.delta_state._numbers", lambda _: iter(()))
        else:
            patch.setattr("magicbyte.lake.iceberg.STATE", "unknown")
            patch.setattr("magicbyte.lake.table.Commit.summary", property(lambda commit: commit.description))
        lake.ingest(root)


def test_an_iceberg_table_that_was_rolled_back(tmp_path: Path, root: Path) -> None:
    lake = Lake.at("iceberg", tmp_path / "lake")
    write(root, records(0, 50))
    lake.ingest(root)
    first = lake.iceberg().current_snapshot().snapshot_id
    write(root, records(0, 50), records(50, 100))
    lake.ingest(root)
    lake.iceberg().manage_snapshots().rollback_to_snapshot(first).commit()
    report = lake.ingest(root)
    assert report["tables"]["records"]["rows"] == 50
    assert values(lake) == expected("v", 0, 100)
    assert set(lake.compare(root).values()) == {"equal"}


@pytest.mark.parametrize(
    "text", ["", "x", "eJwDAAAAAAE=", "e30=", "eJyrVspKLVKyUlBKVNJRUCouTUpKLQKxawFaegbq"]
)
def test_a_state_that_somebody_has_changed(tmp_path: Path, root: Path, text: str) -> None:
    lake = Lake.at("iceberg", tmp_path / "lake")
    write(root, records(0, 10))
    lake.ingest(root)
    with lake.iceberg().transaction() as transaction:
        transaction.set_properties({"magicbyte.state": text})
    with pytest.raises(RefusedError, match=r"its property magicbyte\.state is not understood"):
        lake.ingest(root)


def test_the_metadata_of_iceberg_grows_by_what_changed(tmp_path: Path, root: Path) -> None:
    lake = Lake.at("iceberg", tmp_path / "lake")
    for partition in range(200):
        write(root, records(0, 2), name=f"orders-{partition}", topic_id=ID)
    lake.ingest(root)

    def size() -> int:
        return max((lake.data.parent / "metadata").glob("*.metadata.json")).stat().st_size

    before = size()
    for partition in range(200):
        write(root, records(0, 2), records(2, 4), name=f"orders-{partition}", topic_id=ID)
    lake.ingest(root)
    assert size() - before < 3000
    assert set(lake.compare(root).values()) == {"equal"}


def test_the_refusal_on_the_command_line(lake: Lake, root: Path, cli: Cli) -> None:
    write(root, records(0, 100))
    place = ["ingest", "--format", lake.format, *lake.options]
    cli(*place, root, lake.name)
    again(root, records(0, 90), records(90, 110, "new"))
    cli(*place, root, lake.name, code=2)
    assert (
        "orders-0: the last rows of the table are not those of the log. They diverge at offset 90"
        in cli.error
    )
    text = cli(*place, "--repair", root, lake.name)
    assert "repaired orders-0 from offset 90 on: 10 rows removed, 20 added" in text
    text = cli(*place, "--repair", root, lake.name)
    assert "nothing is new" in text
    assert "nothing is to be repaired" in text
    cli("ingest", "--repair", root, root.with_name("out"), code=2)
    cli(*place, "--repair", "--follow", root, lake.name, code=2)


def test_a_repair_meets_another_job(lake: Lake, root: Path) -> None:
    write(root, records(0, 100))
    lake.ingest(root)
    again(root, records(0, 50), records(50, 120, "new"))
    with pytest.raises(JobError, match="another job has changed orders-0 meanwhile"):
        lake.ingest(root, repair=True, engine=Interrupted(lambda: lake.ingest(root, repair=True)))
    assert values(lake) == [*expected("v", 0, 50), *expected("new", 50, 120)]
    assert not (lake.data / "_magicbyte").exists()


def test_a_repair_meets_an_optimized_table(tmp_path: Path, root: Path) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    for end in (40, 80, 120):
        write(root, *(records(at, at + 40) for at in range(0, end, 40)))
        lake.ingest(root)
    again(root, records(0, 50), records(50, 130, "new"))
    with pytest.raises(JobError):
        lake.ingest(root, repair=True, engine=Interrupted(lambda: DeltaTable(lake.name).optimize.compact()))
    assert values(lake) == expected("v", 0, 120)
    repair(lake, root)
    assert values(lake) == [*expected("v", 0, 50), *expected("new", 50, 130)]


@pytest.mark.parametrize("partition_by", ["topic", "day"])
def test_columns_grow_with_a_repair(lake: Lake, root: Path, partition_by: str) -> None:
    write(root, records(0, 100))
    lake.ingest(root, partition_by=partition_by)
    again(root, records(0, 50), records(50, 120, "new"))
    lake.ingest(root, repair=True, include_batch_metadata=True, partition_by=partition_by)
    assert values(lake) == [*expected("v", 0, 50), *expected("new", 50, 120)]
    assert lake.read().sort_by("offset").column("magic").to_pylist() == [None] * 50 + [2] * 70
    assert set(lake.compare(root).values()) == {"equal"}


# --- streams, and jobs that are killed -----------------------------------------------------------


def test_a_stream_ends_where_the_log_becomes_another_one(lake: Lake, root: Path) -> None:
    write(root, records(0, 100), records(100, 150, "lost"))

    def rewrite() -> None:
        again(root, records(0, 100), records(100, 190, "new", epoch=1))

    engine = Looks(nothing, *[nothing] * 10)
    reports = stream(lake, root, engine=engine)
    assert next(reports)["tables"]["records"]["rows"] == 150
    rewrite()
    with pytest.raises(DivergedError, match="They diverge at offset 100"):
        list(reports)
    assert values(lake) == [*expected("v", 0, 100), *expected("lost", 100, 150)]
    repair(lake, root)
    write(root, records(0, 100), records(100, 190, "new", epoch=1), records(190, 200, epoch=1))
    (report,) = commits(lake, root, Looks(nothing, nothing))[:1]
    assert report["tables"]["records"]["rows"] == 10


def test_a_stream_repairs_nothing(lake: Lake, root: Path) -> None:
    write(root, records(0, 10))
    with pytest.raises(RefusedError, match="a repair is one run"):
        next(stream(lake, root, repair=True))


def test_a_stream_compares_a_partition_again_only_once_it_has_changed(
    lake: Lake, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, records(0, 10))
    write(root, records(0, 10), name="orders-1")
    lake.ingest(root)
    found: list[int] = []

    def count(plans: Any, *arguments: Any) -> Any:
        found.append(len(plans))
        return digests_of_log(plans, *arguments)

    monkeypatch.setattr("magicbyte.lake.divergence.digests_of_log", count)
    checked = Checked()
    for _ in range(2):
        ingest_again(lake, root, checked)
    write(root, records(0, 10), records(10, 20))
    for _ in range(2):
        ingest_again(lake, root, checked)
    assert found == [2, 0, 1, 0]


def ingest_again(lake: Lake, root: Path, checked: Checked) -> None:
    # With surveys from the last look, a log that has only grown would not be compared again.
    growing = GrowingLog(above_high_watermark=True, checked=checked)
    ingest_table([str(root)], lake.target, LocalEngine(2), IngestOptions(), growing=growing)


def test_a_repair_that_is_killed(lake: Lake, root: Path) -> None:
    write(root, records(0, 50), records(50, 100))
    lake.ingest(root, include_batch_metadata=True)
    step = 5 if lake.format == "delta" else 15
    for deadly in range(1, 300, step):
        again(root, records(0, 50), records(50, 100, f"round {deadly}"))
        job = start(lake, root, deadly, ["--repair"])
        job.join()
        at_50 = values(lake)[50]
        assert len(values(lake)) == 100
        assert values(lake)[50:] == expected(at_50.removesuffix(" 50"), 50, 100), "all of them or none"
        if job.exitcode != -signal.SIGKILL:
            break
    assert (job.exitcode, deadly > step) == (0, True), outputs(root.parent)
    assert lake.ingest(root, repair=True, include_batch_metadata=True)["commit"]["job"] is None
    assert set(lake.compare(root).values()) == {"equal"}
    assert not (lake.data / "_magicbyte").exists()


# --- pure rules ----------------------------------------------------------------------------------


def test_holes_are_joined_and_bounded() -> None:
    assert joined([Hole(5, 9), Hole(1, 5), Hole(7, 8), Hole(4, 4), Hole(20, 30)]) == ((1, 9), (20, 30))
    many = joined(Hole(at * 10, at * 10 + 1) for at in range(1000))
    assert len(many) == MAX_HOLES
    assert (many[0].start, many[-1].end) == (0, 9991)
    assert list(uncovered([Hole(0, 10), Hole(20, 30)], 5, 25)) == [(0, 5), (25, 30)]
