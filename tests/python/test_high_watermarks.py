"""Records above the high watermark: they wait in what follows a log, and are counted in a single run."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from lakes import FORMATS, Lake
from magicbyte import RecordsBuilder
from magicbyte.enums import IsolationLevel
from magicbyte.errors import RefusedError
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.lake.growing import GrowingLog
from magicbyte.lake.ingest import ingest_table
from magicbyte.log_dir import format_offset_checkpoint
from magicbyte.options.ingest import IngestOptions
from test_lake_stream import Looks, commits, nothing

CHECKPOINT = "replication-offset-checkpoint"


def append(root: Path, name: str, first: int, end: int) -> None:
    """Appends batches of at most 10 records."""
    (root / name).mkdir(parents=True, exist_ok=True)
    with (root / name / f"{0:020d}.log").open("ab") as file:
        for base in range(first, end, 10):
            builder = RecordsBuilder()
            for offset in range(base, min(base + 10, end)):
                builder.append(offset, 1000 + offset, b"k%d" % offset, b"v")
            file.write(builder.build())


def mark(root: Path, **marks: int) -> None:
    """Writes the checkpoint of a broker's directory: `t_0=100`."""
    offsets = {(name[:-2], int(name[-1])): offset for name, offset in marks.items()}
    (root / CHECKPOINT).write_text(format_offset_checkpoint(offsets))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two partitions: t-0 ends at 150, u-0 at 20."""
    append(tmp_path / "logs", "t-0", 0, 150)
    append(tmp_path / "logs", "u-0", 0, 20)
    return tmp_path / "logs"


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake.at(request.param, tmp_path / "lake")


def ends(lake: Lake) -> dict[str, int]:
    rows = lake.read()
    found: dict[str, int] = {}
    for topic, offset in zip(rows["topic"].to_pylist(), rows["offset"].to_pylist(), strict=True):
        found[topic] = max(found.get(topic, 0), offset + 1)
    return found


def test_follow_waits_for_the_high_watermark(lake: Lake, log: Path, caplog: pytest.LogCaptureFixture) -> None:
    mark(log, t_0=100, u_0=20)
    with caplog.at_level(logging.WARNING):
        (report,) = commits(lake, log, Looks(nothing))
    assert ends(lake) == {"t": 100, "u": 20}
    assert caplog.messages == [
        "records above the high watermark wait until a broker has replicated them, in 1 partition, such as"
        " t-0 from offset 100 on (--above-high-watermark does not wait)"
    ]
    assert report["above_high_watermark"] == [
        {"topic": "t", "partition": 0, "high_watermark": 100, "next_offset": 150, "rows": 0}
    ]
    # In the middle of a batch, as after records of several producers; then without a line; then all.
    mark(log, t_0=105, u_0=20)
    commits(lake, log, Looks(nothing))
    assert ends(lake) == {"t": 105, "u": 20}
    mark(log, u_0=20)
    append(log, "u-0", 20, 30)
    commits(lake, log, Looks(nothing))
    assert ends(lake) == {"t": 105, "u": 20}
    mark(log, t_0=150, u_0=25)
    commits(lake, log, Looks(nothing))
    assert ends(lake) == {"t": 150, "u": 25}
    assert lake.read().num_rows == 175


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("end", [None, 130])
def test_looks_at_a_log_of_which_some_is_waiting(
    lake: Lake, log: Path, isolation_level: IsolationLevel, end: int | None
) -> None:
    """The looks of one stream: each survey continues the last one, at the end of the table or after it."""
    growing, rows = GrowingLog(), []
    options = IngestOptions(isolation_level=isolation_level, end_offset=end)
    mark(log, t_0=100, u_0=20)
    steps = [None, (150, 155), (155, 160), 100, 103, 110, (160, 170), 155, 170, (170, 171), 171, None]
    for step in steps:
        if isinstance(step, tuple):
            append(log, "t-0", *step)
        elif step is not None:
            mark(log, t_0=step, u_0=20)
        report = ingest_table(
            [str(log)],
            lake.target,
            LocalEngine(2),
            options,
            growing=growing,
        )
        rows.append(report["tables"]["records"]["rows"])
    assert rows == [120, 0, 0, 0, 3, 7, 0, *([45, 15, 0, 1] if end is None else [20, 0, 0, 0]), 0]
    assert ends(lake) == {"t": end or 171, "u": 20}


def test_follow_without_waiting(lake: Lake, log: Path) -> None:
    mark(log, t_0=100)
    (report,) = commits(lake, log, Looks(nothing), above_high_watermark=True)
    assert ends(lake) == {"t": 150, "u": 20}
    assert [(one["topic"], one["rows"]) for one in report["above_high_watermark"]] == [("t", 50), ("u", 20)]


def test_a_range_of_offsets_and_the_high_watermark(lake: Lake, log: Path) -> None:
    for end, expected in ((90, 90), (120, 100)):
        mark(log, t_0=100)
        other = Lake.at(lake.format, lake.root.with_name(f"lake-{end}"))
        options = IngestOptions(end_offset=end)
        commits(other, log / "t-0", Looks(nothing), **vars(options))
        assert ends(other) == {"t": expected}


@pytest.mark.parametrize("source", ["logs", "logs/t-0"])
def test_the_directory_above_the_source(tmp_path: Path, log: Path, source: str) -> None:
    mark(log, t_0=100, u_0=20)
    lake = Lake.at("delta", tmp_path / "lake")
    commits(lake, tmp_path / source, Looks(nothing))
    assert ends(lake)["t"] == 100


def test_no_checkpoint_is_no_limit(tmp_path: Path, log: Path) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    (report,) = commits(lake, log, Looks(nothing))
    assert ends(lake) == {"t": 150, "u": 20}
    assert report["above_high_watermark"] == []


def test_an_unreadable_checkpoint(tmp_path: Path, log: Path) -> None:
    (log / CHECKPOINT).write_text("0\n1\nt zero 100\n")
    lake = Lake.at("delta", tmp_path / "lake")
    with pytest.raises(RefusedError, match=r"high watermarks .* unknown: .*replication.*line 3"):
        commits(lake, log, Looks(nothing))
    commits(lake, log, Looks(nothing), above_high_watermark=True)
    assert ends(lake) == {"t": 150, "u": 20}
    (log / CHECKPOINT).unlink()
    (log / CHECKPOINT).mkdir()
    with pytest.raises(RefusedError, match=r"high watermarks .* unknown: .*replication"):
        commits(lake, log, Looks(nothing))


@pytest.mark.parametrize("table_format", ["parquet", "delta"])
@pytest.mark.parametrize(
    ("options", "above", "rows"),
    [
        ([], 50, 170),
        (["--where", '"offset" % 10 < 2'], 10, 34),
        (["--end-offset", "103"], 3, 123),
        (["--key-as", "string", "--start-timestamp", "1970-01-01T00:00:01.120Z"], 30, 30),
    ],
)
def test_a_single_run_counts_them(
    tmp_path: Path, log: Path, cli: Cli, table_format: str, options: list[str], above: int, rows: int
) -> None:
    mark(log, t_0=100, u_0=20)
    arguments = ["ingest", "--engine", "local", "--format", table_format, *options, str(log)]
    assert f"{above} rows are above the high watermark" in cli(*arguments, str(tmp_path / "out"))
    report = cli.json(*arguments, str(tmp_path / "again"))
    assert report["above_high_watermark"] == [
        {"topic": "t", "partition": 0, "high_watermark": 100, "next_offset": 150, "rows": above}
    ]
    assert report["total"]["rows"] == rows


def test_nothing_is_above(tmp_path: Path, log: Path, cli: Cli) -> None:
    mark(log, t_0=150, u_0=20)
    assert "high watermark" not in cli("ingest", "--engine", "local", str(log), str(tmp_path / "out"))


def test_the_option_needs_follow(tmp_path: Path, log: Path, cli: Cli) -> None:
    cli("ingest", "--above-high-watermark", str(log), str(tmp_path / "out"), code=2)
    assert "--above-high-watermark needs --follow" in cli.error


class TestStreams:
    """Spark's streams, by the reader's methods."""

    @pytest.fixture(autouse=True)
    def _spark(self) -> None:
        pytest.importorskip("pyspark", minversion="4.2")

    def stream(self, path: Path, **options: Any) -> Any:
        from test_stream_reader import Stream

        return Stream(path, **options)

    def test_records_wait(self, log: Path, caplog: pytest.LogCaptureFixture) -> None:
        mark(log, t_0=100, u_0=20)
        stream = self.stream(log, maxOffsetsPerTrigger=90)
        with caplog.at_level(logging.WARNING):
            assert len(stream.drain()) == 120
        assert [message for message in caplog.messages if "includeAboveHighWatermark=true" in message]
        assert len(caplog.messages) == 1
        append(log, "t-0", 150, 160)
        assert stream.trigger() == []
        mark(log, t_0=105)
        assert [offset for _, offset in stream.trigger()] == list(range(100, 105))
        (log / CHECKPOINT).unlink()
        assert [offset for _, offset in stream.trigger()] == list(range(105, 160))

    def test_on_request_they_do_not(self, log: Path) -> None:
        mark(log, t_0=100)
        assert len(self.stream(log, includeAboveHighWatermark="true").drain()) == 170

    @pytest.mark.parametrize("path", ["t-0", "t-*", ""])
    def test_the_directory_above_the_path(self, log: Path, path: str) -> None:
        mark(log, t_0=100)
        rows = self.stream(log / path, subscribe="t").drain()
        assert [offset for _, offset in rows] == list(range(100))

    def test_latest_is_the_high_watermark(self, log: Path) -> None:
        mark(log, t_0=100, u_0=20)
        stream = self.stream(log, startingOffsets="latest")
        assert stream.at["t"] == {"0": 100}
        stream = self.stream(log, startingOffsets='{"t":{"0":-1},"u":{"0":-2}}')
        assert (stream.at["t"], stream.at["u"]) == ({"0": 100}, {"0": 0})

    def test_available_now(self, log: Path) -> None:
        mark(log, t_0=100, u_0=20)
        stream = self.stream(log)
        stream.reader.prepareForTriggerAvailableNow()
        mark(log, t_0=150, u_0=20)
        assert len(stream.drain()) == 120

    def test_an_unreadable_checkpoint(self, log: Path) -> None:
        (log / CHECKPOINT).write_text("1\n0\n")
        with pytest.raises(RefusedError, match="line 1: expected version 0"):
            self.stream(log)

    def test_not_in_batch_queries(self, log: Path) -> None:
        from magicbyte.spark.given import OptionError
        from magicbyte.spark.options import parse_options

        with pytest.raises(OptionError, match="includeAboveHighWatermark is only for streams"):
            parse_options({"path": str(log), "includeAboveHighWatermark": "true"})
