"""Survey, plan and decoding of a store at the same time: the results of one after the other."""

from __future__ import annotations

import json
import os
import random
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import magicbyte
import pytest
from lakes import FORMATS, Lake
from magicbyte import RecordsBuilder, _core
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.find.partitions import list_partitions
from magicbyte.jobs.ingest import ingest
from magicbyte.jobs.run import decode_partitions as job
from magicbyte.jobs.run import growing_plans, surveys_ahead
from magicbyte.jobs.run.arriving_tasks import ArrivingTasks
from magicbyte.jobs.run.decode_partitions import DecodeJob
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.growing_plans import GrowingPlans
from magicbyte.jobs.run.plan import DecodeTask, Planned, plan_partitions, plan_within
from magicbyte.jobs.run.surveys_ahead import Stopped, Surveyed, SurveysAhead
from magicbyte.model import PartitionListing
from magicbyte.options.ingest import IngestOptions
from magicbyte.options.ranges import Ranges

VALUE = bytes(64 << 10)
LOG = [f"{offset:020d}.log" for offset in (0, 400, 800)]


def segment(first: int, batches: int = 400, value: Callable[[int], bytes] = lambda _: VALUE) -> bytes:
    """Batches of one record, 25 MB of them: borders are 4 MiB apart."""
    data = bytearray()
    for offset in range(first, first + batches):
        builder = RecordsBuilder()
        builder.append(offset, 1, None, value(offset))
        data += builder.build()
    return bytes(data)


def as_it_is(partition: Path) -> None:
    assert partition.is_dir()


def overlapping(partition: Path) -> None:
    (partition / LOG[0]).write_bytes(segment(0, 500))


def contained(partition: Path) -> None:
    (partition / LOG[0]).write_bytes(segment(0, 900))


def misnamed(partition: Path) -> None:
    (partition / LOG[2]).rename(partition / f"{2000:020d}.log")


def damaged(partition: Path) -> None:
    """Every kind of damage, in the middle and at the end."""
    for name, place in zip(LOG, (10 << 20, 20 << 20, 25 << 20), strict=True):
        with (partition / name).open("r+b") as file:
            file.seek(place)
            file.write(bytes(200_000))
            file.truncate(file.seek(0, os.SEEK_END) - 100)


def without_offsets(partition: Path) -> None:
    """No batch of the last 64 is whole, so that nothing tells where the next segment should begin."""
    data = bytearray((partition / LOG[0]).read_bytes())
    size = len(data) // 400
    for batch in range(330, 400):
        data[batch * size + 1000] ^= 1
    (partition / LOG[0]).write_bytes(data)


def emptied(partition: Path) -> None:
    (partition / LOG[1]).write_bytes(b"")


CHANGES = [as_it_is, overlapping, contained, misnamed, damaged, without_offsets, emptied]


@pytest.fixture(scope="module")
def logs(kafka: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Partitions of real brokers, and large ones with what no broker leaves."""
    root = tmp_path_factory.mktemp("logs")
    for source in kafka.iterdir():
        if list(source.glob("*.log")):
            shutil.copytree(source, root / source.name)
    segments = {name: segment(int(name[:20])) for name in LOG}
    for number, change in enumerate(CHANGES):
        partition = root / f"large-{number}"
        partition.mkdir()
        for name, data in segments.items():
            (partition / name).write_bytes(data)
        change(partition)
    return root


@pytest.fixture(autouse=True)
def parts_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if segments were large."""
    monkeypatch.setattr(surveys_ahead, "PART_BYTES", 1)
    monkeypatch.setattr(growing_plans, "PART_BYTES", 1)
    monkeypatch.setattr(job, "_CHUNK_BYTES", 1)


@pytest.mark.parametrize("ranges", [Ranges(start_offset=30, end_offset=700)])
def test_what_is_final_while_the_survey_goes_on(logs: Path, ranges: Ranges) -> None:
    """Whatever the rest of the log is, the chunks that are given first are those of the whole plan."""
    options: Any = {"isolation_level": "read_uncommitted", "bounds": ranges.bounds}
    listings = list_partitions([str(logs)])
    early, checked = Counter[str](), list[Planned]()
    for planned in plan_partitions(listings, LocalEngine(2), chunk_bytes=1, **options):
        listing = planned.listing
        planner = GrowingPlans(
            partial(plan_within, chunk_bytes=1, **options), checked.append, is_committed=False
        )
        is_begun, checked[:] = True, ()

        def surveys(listing: PartitionListing = listing) -> Iterator[Surveyed]:
            nonlocal is_begun
            for segment in listing["segments"]:
                for _, is_whole, text in _core.SurveyInParts(json.dumps(segment), 1):
                    is_begun = not is_whole
                    yield Surveyed(text, 1, is_whole)

        given = []
        for chunk in planner.chunks([listing], surveys()):
            given.append(chunk)
            early[listing["topic"]] += is_begun
        assert given == planned.plan["chunks"]
        assert planner.finished == checked == [planned]
    assert early["large"] > 20


@pytest.fixture
def stored(logs: Path) -> Iterator[str]:
    system = fsspec.filesystem("memory")
    system.put(f"{logs}/", "/arriving", recursive=True)
    yield "memory://arriving"
    system.rm("/arriving", recursive=True)


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_a_store_gives_the_results_of_a_directory(
    stored: str, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: Any
) -> None:
    monkeypatch.setattr(surveys_ahead, "_AHEAD_BYTES", 1000)
    local = magicbyte.verify(str(logs), isolation_level=level)
    report = magicbyte.verify(stored, isolation_level=level)
    assert report["total"] == local["total"]
    assert len(report["problems"]) == len(local["problems"]) > 0
    tables = ingest([stored], str(tmp_path), LocalEngine(3), IngestOptions(isolation_level=level))
    assert tables["balanced"]
    assert tables["total"]["rows"] == local["total"]["rows"]


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_table_of_a_store(
    stored: str, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_format: str
) -> None:
    monkeypatch.setattr(job, "_KEPT", 3 * (128 << 20))
    of_store, of_directory = (Lake.at(table_format, tmp_path / name) for name in ("store", "directory"))
    report = of_store.ingest(stored, target_file_size=1 << 16, include_batch_metadata=True)
    other = of_directory.ingest(logs, target_file_size=1 << 16, include_batch_metadata=True)
    assert report["total"] == other["total"]
    assert set(of_store.compare(logs).values()) == {"equal"}
    assert report["commit"]
    assert other["commit"]
    assert [(one["topic"], one["digest"]) for one in report["commit"]["partitions"]] == [
        (one["topic"], one["digest"]) for one in other["commit"]["partitions"]
    ]
    # Nothing is new.
    assert of_store.ingest(stored, include_batch_metadata=True)["tables"]["records"]["rows"] == 0


def test_files_of_a_table_of_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are large enough, though it is not known from the beginning how much will come."""

    def value(offset: int) -> bytes:
        return random.Random(offset).randbytes(64 << 10)

    monkeypatch.setattr("magicbyte.jobs.publish.parquet._ROW_GROUP_BYTES", 1 << 20)
    system = fsspec.filesystem("memory")
    system.pipe(f"/sizes/t-0/{LOG[0]}", segment(0, 400, value))
    system.pipe(f"/sizes/t-0/{LOG[1]}", segment(400, 100, value))
    try:
        lake = Lake.at("delta", tmp_path / "lake")
        lake.ingest("memory://sizes", engine=LocalEngine(1), target_file_size=5 << 20)
    finally:
        system.rm("/sizes", recursive=True)
    sizes = [path.stat().st_size / (5 << 20) for path in lake.files()]
    assert len(sizes) > 3
    assert 0.5 < min(sizes) <= max(sizes) < 3, sizes


def test_a_log_that_ends_before_the_table(stored: str, logs: Path, tmp_path: Path) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    lake.ingest(logs, choice=PartitionChoice(topics=("large",)))
    fsspec.filesystem("memory").rm(f"/arriving/large-0/{LOG[-1]}")
    says = r"large-0: the log ends before offset 800\. They diverge at offset 800"
    with pytest.raises(RefusedError, match=says):
        lake.ingest(stored, choice=PartitionChoice(topics=("large",)))


def test_a_failing_task_ends_the_survey(stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "_SMALL_TASK", 1)
    begun = threading.Barrier(2)

    def fails(task: DecodeTask) -> None:
        begun.wait()
        if task.number == 1:
            raise OSError("disk on fire")
        for _ in task.chunks:
            pass

    listings = list_partitions([stored])
    with pytest.raises(OSError, match="on fire"):
        job.decode_partitions(DecodeJob(lambda: fails, "test", writes_files=False), listings, LocalEngine(2))
    assert not [one for one in threading.enumerate() if one.name.startswith("magicbyte-survey")]


def test_a_task_that_waits_ends_when_another_fails(stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the store answers, which may take long."""
    asked, answers = threading.Event(), threading.Event()

    class Survey:
        def __init__(self, *_: object) -> None:
            self._parts = iter([(1, True, "")])

        def __iter__(self) -> Iterator[tuple[int, bool, str]]:
            asked.set()
            answers.wait(60)
            return self._parts

    def waits(items: Iterator[Any]) -> None:
        for _ in items:
            pass

    monkeypatch.setattr(surveys_ahead, "_core", SimpleNamespace(SurveyInParts=Survey))
    (listing, *_) = list_partitions([stored])
    with SurveysAhead(listing["segments"], 1) as surveys, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waits, iter(surveys))
        asked.wait(60)
        surveys.stop()
        with pytest.raises(Stopped):
            waiting.result(60)
        answers.set()


def test_a_failing_survey_ends_the_job(stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError("the store is gone")

    def reads(task: DecodeTask) -> int:
        return len(list(task.chunks))

    listings = list_partitions([stored])
    monkeypatch.setattr(surveys_ahead, "_core", SimpleNamespace(SurveyInParts=fails))
    with pytest.raises(OSError, match="store is gone"):
        job.decode_partitions(DecodeJob(lambda: reads, "test"), listings, LocalEngine(2))


class Store:
    """Surveys whose parts of 10 bytes come when they are let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, parts: Sequence[int]) -> None:
        store = self

        class Survey:
            def __init__(self, segment: str, _: int) -> None:
                self._number = json.loads(segment)["number"]

            def __iter__(self) -> Iterator[tuple[int, bool, str]]:
                count = parts[self._number]
                for part in range(1, count + 1):
                    with store.changed:
                        store.running.add(self._number)
                        store.changed.notify_all()
                        store.changed.wait_for(lambda: store.allowed[self._number], 60)
                        store.allowed[self._number] -= 1
                        store.running.discard(self._number)
                        store.changed.notify_all()
                    yield 10 * part, part == count, f"{self._number}.{part}"

        self.changed = threading.Condition()
        self.running: set[int] = set()
        """The segments of which a part is being fetched."""
        self.allowed = Counter[int]()
        self.segments: list[Any] = [{"number": number} for number in range(len(parts))]
        monkeypatch.setattr(surveys_ahead, "_core", SimpleNamespace(SurveyInParts=Survey))

    def give(self, number: int) -> None:
        """Lets a part of a segment come."""
        with self.changed:
            self.allowed[number] += 1
            self.changed.notify_all()

    def check_running(self, *numbers: int) -> None:
        """Waits until what was given has come, and these segments are fetched, and no others."""
        with self.changed:
            assert self.changed.wait_for(lambda: self._are_running(numbers), 60), self.running
            assert not self.changed.wait_for(lambda: not self._are_running(numbers), 0.1), self.running

    def _are_running(self, numbers: Sequence[int]) -> bool:
        return self.running == set(numbers) and not any(self.allowed.values())


def test_how_far_the_survey_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveys_ahead, "_AHEAD_BYTES", 20)
    monkeypatch.setattr(surveys_ahead, "_MOST_AHEAD_BYTES", 50)
    store = Store(monkeypatch, [3, 10, 1, 1])
    with SurveysAhead(store.segments, 2) as surveys, ThreadPoolExecutor(1) as pool:
        taking = iter(surveys)
        store.check_running(0, 1)
        store.give(1)
        store.check_running(0, 1)
        store.give(1)
        # Of what follows the first segment there is enough; of that itself, nothing.
        store.check_running(0)
        waiting = pool.submit(next, taking)
        store.check_running(0, 1)
        for _ in range(4):
            store.give(1)
        # Even for one who waits.
        store.check_running(0)
        store.give(0)
        assert waiting.result(60) == Surveyed("0.1", 10, is_whole=False)
        store.give(0)
        store.give(0)
        store.check_running()
        assert [next(taking).text for _ in range(5)] == ["0.2", "0.3", "1.1", "1.2", "1.3"]
        # There are three more parts of it.
        store.check_running()
        assert [next(taking).text for _ in range(2)] == ["1.4", "1.5"]
        store.check_running(1, 2)
        for _ in range(10):
            store.give(1)
        store.give(2)
        store.give(3)
        rest = list(taking)
        assert [one.text for one in rest] == ["1.6", "1.7", "1.8", "1.9", "1.10", "2.1", "3.1"]
        assert [one.is_whole for one in rest[-4:]] == [False, True, True, True]


def chunks(count: int) -> Iterator[Any]:
    return iter({"topic": "t", "start": 0, "end": 10, "number": number} for number in range(count))


def test_tasks_of_chunks_that_arrive() -> None:
    taken: list[int] = []

    def watched() -> Iterator[Any]:
        for chunk in chunks(5):
            taken.append(chunk["number"])
            yield chunk

    tasks = ArrivingTasks(watched(), 25, {"t": 45})
    first = next(tasks)
    reading = iter(first.chunks)
    assert json.loads(next(reading))["number"] == 0
    assert taken == [0], "nothing that is not needed yet"
    assert (first.size_of("t"), first.size_of("u")) == (10 + 15, 0)
    # Whoever needs the second task fetches what is left of the first.
    second = next(tasks)
    assert (taken, first.size, first.size_of("t"), first.is_whole) == ([0, 1, 2], 20, 20, True)
    assert second.size_of("t") == 10 + 15
    assert [json.loads(one)["number"] for one in second.chunks] == [2, 3]
    assert [json.loads(one)["number"] for one in reading] == [1]
    assert [[json.loads(one)["number"] for one in task.chunks] for task in tasks] == [[4]]
    assert second.size == 20
    assert [task.number for task in ArrivingTasks(chunks(5), 25, {})] == [0, 1, 2]
    assert list(ArrivingTasks(chunks(0), 25, {})) == []


def test_tasks_that_many_threads_read() -> None:
    tasks = ArrivingTasks(chunks(1000), 75, {})

    def read(task: DecodeTask) -> list[int]:
        return [json.loads(one)["number"] for one in task.chunks]

    found = LocalEngine(8).map_arriving(
        read, (task for task in tasks), name="", size=10_000, size_of=lambda task: task.size
    )
    assert [number for one in found for number in one] == list(range(1000))
    assert {len(one) for one in found[:-1]} == {7}
