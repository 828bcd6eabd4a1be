"""`verify --table`: what differs, and what is no difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import Cli
from deltalake import DeltaTable
from lakes import FORMATS, Lake
from magicbyte.jobs.run.engines import LocalEngine
from test_lake import write_times
from test_lake_lineage import NAME, again, records, write
from typed_logs import TypedLog, record


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake.at(request.param, tmp_path / "lake")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def compared(lake: Lake, source: Path) -> dict[str, Any]:
    """The comparison of the only partition, without what is 0 or None."""
    report = magicbyte.verify(source, table=lake.name, engine=LocalEngine(2), **lake.place)
    assert report["table"] is not None
    (found,) = report["table"]["partitions"]
    assert report["table"]["equal"] == (found["result"] == "equal")
    names = ("result", "first_difference", "first_missing")
    return {name: value for name, value in found.items() if value and (name in names or name in ROWS)}


ROWS = ("changed_rows", "missing_rows", "compacted_rows", "lost_rows", "unproven_rows")


def delete(lake: Lake, condition: str) -> None:
    if lake.format == "delta":
        DeltaTable(lake.name).delete(condition)
    else:
        lake.iceberg().delete(condition)


def test_a_compacted_log_is_a_subset_of_its_table(lake: Lake, root: Path, cli: Cli) -> None:
    write(root, records(0, 100), records(100, 200))
    lake.ingest(root)
    again(root, records(3, 100, step=3), records(100, 200))
    assert compared(lake, root) == {"result": "equal", "compacted_rows": 67}
    text = cli("verify", "--table", lake.name, *lake.options, root)
    assert "equals the log" in text
    assert "67 rows of the table are no longer in the log: compacted, or removed there" in text
    # A record that has another value is found all the same.
    again(root, records(3, 60, step=3), records(60, 61, "new"), records(63, 100, step=3), records(100, 200))
    found = compared(lake, root)
    assert (found["result"], found["first_difference"], found["changed_rows"]) == ("differs", 60, 1)


def test_rows_that_were_deleted_from_the_table_are_named(lake: Lake, root: Path, cli: Cli) -> None:
    write(root, *(records(at, at + 1000) for at in range(0, 9000, 1000)))
    lake.ingest(root)
    delete(lake, "offset >= 8020 AND offset < 8030")
    assert compared(lake, root) == {
        "result": "differs",
        "first_difference": 8020,
        "missing_rows": 10,
        "first_missing": 8020,
    }
    text = cli("verify", "--table", lake.name, *lake.options, root, code=3)
    assert (
        f"{NAME}: the first difference is at offset 8,020: 10 rows only in the log (deleted from the table, "
        "or never added), the first at offset 8,020"
    ) in text


def test_rows_that_the_log_has_lost_are_no_compaction(lake: Lake, root: Path) -> None:
    batches = [records(at, at + 10) for at in range(0, 50, 10)]
    write(root, *batches)
    lake.ingest(root)
    damaged = bytearray(batches[2])
    damaged[-1] ^= 1
    again(root, *batches[:2], bytes(damaged), *batches[3:])
    assert compared(lake, root) == {"result": "differs", "first_difference": 20, "lost_rows": 10}


def test_rows_that_no_log_had(lake: Lake, root: Path) -> None:
    write(root, records(0, 50), records(50, 100))
    lake.ingest(root)
    again(root, records(0, 50), records(50, 90, "new"))
    found = compared(lake, root)
    assert (found["result"], found["first_difference"], found["changed_rows"]) == ("differs", 50, 40)


def test_typed_rows_of_a_compacted_log(lake: Lake, tmp_path: Path) -> None:
    schema = record("o", n=("string", None))
    log = TypedLog(tmp_path, partitions=1)
    log.append(schema, [{"n": f"v {at}"} for at in range(20)])
    log.append(schema, [{"n": f"v {at}"} for at in range(20)], segment=1)
    lake.ingest(log.root, typed=log.typed)
    assert compared(lake, log.root) == {"result": "equal"}
    delete(lake, "offset = 5")
    found = compared(lake, log.root)
    assert (found["result"], found["missing_rows"], found["first_missing"]) == ("differs", 1, 5)


@pytest.mark.parametrize("include_batch_metadata", [False, True])
@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_a_null_timestamp_proves_nothing(tmp_path: Path, format: str, include_batch_metadata: bool) -> None:
    far, further = 1_700_000_000_000_000_000, (1 << 63) - 1
    for name, times in {"one": [1000, far, 2000], "other": [1000, further, 2000]}.items():
        write_times(tmp_path / name, times)
    out = tmp_path / "out"
    magicbyte.ingest(tmp_path / "one", out, format=format, include_batch_metadata=include_batch_metadata)

    def result(name: str) -> Any:
        report = magicbyte.verify(tmp_path / name, table=out)
        assert report["table"] is not None
        (found,) = report["table"]["partitions"]
        return found["result"], found["first_difference"], found["unproven_rows"]

    if include_batch_metadata:
        assert (result("one"), result("other")) == (("equal", None, 0), ("differs", 1, 0))
    else:
        assert result("one") == result("other") == ("unproven", None, 1)
