"""Survey, plan and decoding of a store at the same time: the results of one after the other."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from magicbyte.jobs import decode_partitions as job
from magicbyte.jobs.engines import LocalEngine
from magicbyte.jobs.ingest import IngestOptions, ingest
from magicbyte.jobs.partitions import list_partitions
from magicbyte.jobs.plan import plan_partitions, plan_within
from magicbyte.jobs.ranges import EVERY_RECORD, Ranges


@pytest.mark.parametrize("ranges", [EVERY_RECORD, Ranges(start_offset=30, end_offset=200)])
def test_what_is_final_while_the_survey_goes_on(kafka: Path, ranges: Ranges) -> None:
    """Whatever the later segments are, the chunks of the ones before the last are those of the whole plan."""
    options: Any = {"isolation_level": "read_uncommitted", "bounds": ranges.bounds}
    plans = plan_partitions(list_partitions([str(kafka)]), LocalEngine(2), chunk_bytes=1, **options)
    parts = 0
    for planned in plans:
        planner = job._Planner(chunk_bytes=1, **options)
        whole = planned.plan["chunks"]
        for count in range(1, len(planned.surveys)):
            part = planner._final_chunks(planned.listing, planned.surveys[:count])
            assert part == whole[: len(part)]
            parts += bool(part)
        assert list(planner.chunks([planned.listing], iter(planned.surveys))) == whole
        assert planner.plans == [plan_within(planned.listing, planned.surveys, chunk_bytes=1, **options)]
    assert parts > 20


@pytest.fixture
def stored(kafka: Path) -> Iterator[str]:
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    system.put(f"{kafka}/", "/arriving", recursive=True)
    yield "memory://arriving"
    system.rm("/arriving", recursive=True)


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_a_store_gives_the_results_of_a_directory(
    stored: str, kafka: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: Any
) -> None:
    # As if the segments were large.
    monkeypatch.setattr(job, "_PART_BYTES", 1)
    monkeypatch.setattr(job, "_AHEAD_BYTES", 1000)
    monkeypatch.setattr(job, "_CHUNK_BYTES", 1)
    local = magicbyte.verify(str(kafka), isolation_level=level)
    report = magicbyte.verify(stored, isolation_level=level)
    assert report["total"] == local["total"]
    assert len(report["problems"]) == len(local["problems"]) > 0
    tables = ingest([stored], str(tmp_path), LocalEngine(3), IngestOptions(isolation_level=level))
    assert tables["balanced"]
    assert tables["total"]["rows"] == local["total"]["rows"]


def test_a_failing_task_ends_the_survey(stored: str) -> None:
    def fails(_task: object) -> None:
        raise OSError("disk on fire")

    listings = list_partitions([stored])
    with pytest.raises(OSError, match="on fire"):
        job.decode_partitions(fails, listings, LocalEngine(2), verb="test")
    assert not [one for one in threading.enumerate() if one.name.startswith("magicbyte-survey")]


def test_a_failing_survey_ends_the_job(stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_segment: object) -> str:
        raise OSError("the store is gone")

    listings = list_partitions([stored])
    monkeypatch.setattr(job, "_survey", fails)
    with pytest.raises(OSError, match="store is gone"):
        job.decode_partitions(str, listings, LocalEngine(2), verb="test")


def test_the_survey_is_ahead_by_a_bounded_number_of_bytes(
    kafka: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        shutil.copytree(kafka / "v2_none", tmp_path / f"t-{number}")
    listings = list_partitions([str(tmp_path)])
    segments = [segment for listing in listings for segment in listing["segments"]]
    largest = max(segment["size"] for segment in segments)
    surveyed = 0

    def survey(segment: Any) -> str:
        nonlocal surveyed
        surveyed += segment["size"]
        return ""

    monkeypatch.setattr(job, "_survey", survey)
    monkeypatch.setattr(job, "_AHEAD_BYTES", 100_000)
    monkeypatch.setattr(job, "_MOST_AHEAD_BYTES", 100_000)
    with job.ThreadPoolExecutor(1) as pool:
        taken = 0
        for _, segment in zip(job._survey_ahead(segments, pool, 1), segments, strict=True):
            taken += segment["size"]
            assert surveyed <= taken + 100_000 + largest
    assert surveyed == taken > 10 * 100_000


@pytest.mark.parametrize(("most", "most_running"), [(9, 3), (2, 2), (1, 1)])
def test_no_thread_is_idle_while_the_first_survey_is_waited_for(
    kafka: Path, monkeypatch: pytest.MonkeyPatch, most: int, most_running: int
) -> None:
    (listing,) = list_partitions([str(kafka / "v2_none")])
    segments = listing["segments"][:1] * 6
    running: list[Future[str]] = []
    counts = []

    class Pool:
        def submit(self, *_: object) -> Future[str]:
            running.append(Future())
            return running[-1]

    def wait(surveys: Any, return_when: object) -> None:
        assert surveys == running
        counts.append(len(running))
        # The last one that began is the first to end.
        running.pop().set_result("")

    monkeypatch.setattr(job, "_AHEAD_BYTES", 1)
    monkeypatch.setattr(job, "_MOST_AHEAD_BYTES", most * segments[0]["size"])
    monkeypatch.setattr(job, "wait", wait)
    pool: Any = Pool()
    assert len(list(job._survey_ahead(segments, pool, 3))) == len(counts) == len(segments)
    assert max(counts) == counts[0] == most_running
