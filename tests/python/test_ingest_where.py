"""`ingest --where` and `records --where`: which records come out, and that all others are accounted for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow.dataset as ds
import pytest
from conftest import KAFKA, Cli
from magicbyte import RecordsBuilder
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.partitions import list_partitions
from magicbyte.jobs.ingest import IngestReport, ingest
from magicbyte.jobs.run.engines import LocalEngine, SparkEngine
from magicbyte.jobs.run.plan import plan_partitions
from magicbyte.jobs.run.reading import ReadOptions, Rows, read_chunk
from magicbyte.jobs.run.selecting import record_filter
from magicbyte.options.ingest import IngestOptions

NOW = 1_700_000_000_000
FAR = 2**62
"""A time that microseconds do not reach."""
VALUES: list[tuple[int, bytes | None, bytes | None]] = [
    (NOW, b"a", b'{"id": 1}'),
    (NOW, b"a", b"no JSON"),
    (NOW, b"\xff", b'{"id": 2}'),
    (-1, b"b", None),
    (FAR, b"b", b'{"id": 3}'),
    (FAR, None, b"\xff"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two partitions with the same records, in batches of one codec each."""
    for partition in range(2):
        path = tmp_path / "logs" / f"orders-{partition}"
        path.mkdir(parents=True)
        data = b""
        for number in range(5):
            builder = RecordsBuilder(2, number)
            for at, (timestamp, key, value) in enumerate(VALUES, number * len(VALUES)):
                builder.append(at, timestamp, key, value, [("tenant", b"t%d" % (at % 2))])
            data += builder.build()
        (path / f"{0:020d}.log").write_bytes(data)
    return tmp_path / "logs"


def written(out: Path) -> list[tuple[int, int]]:
    read = ds.dataset(out / "records").to_table().to_pylist()
    return sorted((row["partition"], row["offset"]) for row in read)


def wanted(*places: int) -> list[tuple[int, int]]:
    """These of the six records, in each batch of each partition."""
    return sorted((p, b * 6 + place) for p in range(2) for b in range(5) for place in places)


def check(report: IngestReport | dict[str, Any], rows: int) -> dict[str, Any]:
    total: dict[str, Any] = dict(report["total"])
    assert report["balanced"]
    assert total["rows"] == rows
    assert total["rows"] + total["outside"] == total["announced"] == 60
    return total


EXPRESSIONS: dict[str, tuple[int, ...]] = {
    "value LIKE '%JSON%'": (1,),
    "TRY(value ->> '$.id') IN ('2', '3')": (2, 4),
    "timestamp IS NULL": (3, 4, 5),
    "timestampMillis > 1700000000000": (4, 5),
    "keyBytes = x'ff' OR key IS NULL": (2, 5),
    "header(headers, 'tenant') = 't1'": (1, 3, 5),
    "topic = 'orders' AND partition >= 0": (0, 1, 2, 3, 4, 5),
    "offset < 0": (),
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("shape", ["binary", "json"])
def test_ingest(expression: str, shape: Any, root: Path, tmp_path: Path) -> None:
    options = IngestOptions(
        where=expression, key_as=shape, value_as=shape, include_batch_metadata=shape == "json"
    )
    report = ingest([str(root)], str(tmp_path / "out"), LocalEngine(2), options)
    places = EXPRESSIONS[expression]
    assert written(tmp_path / "out") == wanted(*places)
    total = check(report, 10 * len(places))
    assert total["null_timestamps"] == 10 * len({4, 5} & {*places})
    # No key is JSON, and neither are two of the values.
    text = shape == "json"
    assert total["invalid_keys"] == (10 * len({0, 1, 2, 3, 4} & {*places}) if text else 0)
    assert total["invalid_values"] == (10 * len({1, 5} & {*places}) if text else 0)
    assert report["where"] == expression


def test_ingest_from_python(root: Path, tmp_path: Path) -> None:
    report = magicbyte.ingest(root, tmp_path / "out", where="value LIKE '%JSON%'")
    assert written(tmp_path / "out") == wanted(1)
    check(report, 10)


def test_ingest_with_ranges(root: Path, tmp_path: Path, cli: Cli) -> None:
    arguments = ("--where", "value LIKE '%JSON%'", "--start-offset", 6, "--end-timestamp", NOW + 1)
    report = cli.json("ingest", *arguments, root, tmp_path / "out")
    assert written(tmp_path / "out") == [one for one in wanted(1) if one[1] >= 6]
    check(report, 8)
    assert report["where"] == "value LIKE '%JSON%'"


@pytest.mark.spark
def test_ingest_on_spark(spark: Any, root: Path, tmp_path: Path) -> None:
    expression = "TRY(value ->> '$.id') = '3'"
    report = ingest([str(root)], str(tmp_path / "out"), SparkEngine(spark), IngestOptions(where=expression))
    assert written(tmp_path / "out") == wanted(4)
    check(report, 10)


def test_ingest_that_fails_leaves_nothing(root: Path, tmp_path: Path, cli: Cli) -> None:
    cli("ingest", "--where", "value ->> '$.id' = '1'", root, tmp_path / "out", code=3)
    assert "where: orders-0/00000000000000000000.log, the record with offset 1: Invalid Input" in cli.error
    assert not (tmp_path / "out").exists()
    with pytest.raises(RefusedError, match="where: nothing: no such column"):
        ingest([str(root)], str(tmp_path / "out"), LocalEngine(1), IngestOptions(where="nothing = 1"))
    assert not (tmp_path / "out").exists()


def test_rows_of_a_chunk_have_only_the_columns_asked_for(root: Path) -> None:
    [planned] = plan_partitions([list_partitions([str(root / "orders-0")])[0]], LocalEngine(1))
    [chunk] = planned.plan["chunks"]
    for columns in (("offset",), ("value", "timestamp"), ("key", "offset")):
        where = record_filter("header(headers, 'tenant') = 't0'")
        options = ReadOptions(columns, key_as="string", where=where)
        items = list(read_chunk(json.dumps(chunk), options))
        batches = [one.batch for one in items if isinstance(one, Rows)]
        assert {batch.schema for batch in batches} == {options.records_schema}
        assert sum(batch.num_rows for batch in batches) == 15


def test_a_value_that_is_not_selected_may_be_anything(root: Path) -> None:
    """With FAILFAST, a key or value that is not text ends the job, if it is one that is read."""
    [planned] = plan_partitions([list_partitions([str(root / "orders-0")])[0]], LocalEngine(1))
    chunk = json.dumps(planned.plan["chunks"][0])

    def rows(expression: str) -> int:
        where = record_filter(expression)
        options = ReadOptions(("offset", "value"), mode="FAILFAST", value_as="string", where=where)
        return sum(one.batch.num_rows for one in read_chunk(chunk, options) if isinstance(one, Rows))

    assert rows("valueBytes <> x'ff'") == 20
    with pytest.raises(JobError, match="offset 5: the value is not UTF-8"):
        rows("true")


# --- records ------------------------------------------------------------------------------------


def test_records(root: Path, cli: Cli) -> None:
    path = root / "orders-1"
    lines = cli.records(path, "--where", "TRY(value ->> '$.id') = '3'")
    assert [line["offset"] for line in lines] == [4, 10, 16, 22, 28]
    assert set(lines[0]) == set(cli.records(path)[0])
    lines = cli.records(path, "--where", "offset % 2 = 0", "--start-offset", 3, "--max-records", 2)
    assert [line["offset"] for line in lines] == [4, 6]
    assert cli.records(root, "--where", "false") == []
    lines = cli.records(path, "--where", "value LIKE '%JSON%'", "--tail", 2, "--grep", "no|id")
    assert [line["offset"] for line in lines] == [19, 25]
    assert cli("records", path, "--where", "offset < 2", "-f", "%o %s;") == '0 {"id": 1};1 no JSON;'
    cli("records", path, "--where", "value ->> '$.id' = '1'", code=3)
    assert "the record with offset 1: Invalid Input Error: Malformed JSON" in cli.error
    cli("records", path, "--where", "(", code=2)
    assert "where: it does not close a parenthesis that it opens" in cli.error
    cli("records", path, "--where", "true", "--batches", code=2)
    assert "--batches goes with ranges, not with options about single records" in cli.error


def test_records_of_internal_topics(cli: Cli) -> None:
    path = KAFKA / "consumer_offsets_0"
    everything = cli.records(path, "--decode", "offsets")
    lines = cli.records(path, "--decode", "offsets", "--where", f"offset = {everything[-1]['offset']}")
    assert lines == everything[-1:]
