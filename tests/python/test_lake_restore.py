"""Delta tables that were restored to an earlier version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import magicbyte.lake.delta
import pytest
from deltalake import DeltaTable
from lakes import Lake
from lineages import ID, expected, records, values, write
from magicbyte.errors import JobError
from magicbyte.jobs.find.choice import PartitionChoice


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def _restored(lake: Lake, version: int) -> None:
    DeltaTable(str(lake.data)).restore(version)


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_delta_table_that_was_restored(tmp_path: Path, root: Path, partitions: int) -> None:
    """RESTORE brings back rows, but not the application transactions that name the next offsets."""
    lake = Lake.at("delta", tmp_path / "lake")
    for count in (50, 100, 150):
        for partition in range(partitions):
            write(root, records(0, count), name=f"orders-{partition}", topic_id=ID)
        lake.ingest(root)
    _restored(lake, 1)
    assert values(lake) == expected("v", 0, 50)
    assert lake.ingest(root)["tables"]["records"]["rows"] == 100 * partitions
    for partition in range(partitions):
        assert values(lake, partition) == expected("v", 0, 150)
    assert set(lake.compare(root).values()) == {"equal"}
    # From then on, the state holds again.
    assert lake.ingest(root)["tables"]["records"]["rows"] == 0


def test_partitions_that_wait_until_after_another_run(tmp_path: Path, root: Path) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    for count in (50, 100):
        for name in ("orders-0", "orders-1"):
            write(root, records(0, count), name=name)
        lake.ingest(root)
    _restored(lake, 1)
    lake.ingest(root, choice=PartitionChoice(partitions=frozenset({0})))
    write(root, records(0, 30), name="orders-2")  # new after the RESTORE
    lake.ingest(root, choice=PartitionChoice(partitions=frozenset({2})))
    assert values(lake, 1) == expected("v", 0, 50)
    assert lake.ingest(root)["tables"]["records"]["rows"] == 50
    assert [values(lake, one) for one in (0, 1, 2)] == [
        expected("v", 0, 100),
        expected("v", 0, 100),
        expected("v", 0, 30),
    ]


def test_restored_to_a_table_without_rows_and_then_again(tmp_path: Path, root: Path) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    write(root, records(0, 50))
    lake.ingest(root)
    _restored(lake, 0)
    assert lake.ingest(root)["tables"]["records"]["rows"] == 50
    write(root, records(0, 50), records(50, 60))
    lake.ingest(root)
    # To a version that was itself written after a RESTORE.
    _restored(lake, 3)
    assert lake.ingest(root)["tables"]["records"]["rows"] == 10
    assert values(lake) == expected("v", 0, 60)


def test_a_restore_between_many_foreign_commits(tmp_path: Path, root: Path) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    for count in (50, 100):
        write(root, records(0, count))
        lake.ingest(root)
    foreign = DeltaTable(str(lake.data))
    for number in range(10):
        foreign.alter.set_table_properties({"user.number": str(number)}, raise_if_not_exists=False)
    foreign.restore(1)
    for number in range(10):
        foreign.alter.set_table_properties({"user.number": str(number)}, raise_if_not_exists=False)
    assert lake.ingest(root)["tables"]["records"]["rows"] == 50
    assert values(lake) == expected("v", 0, 100)


def test_a_restore_while_records_are_added(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    for count in (50, 100):
        write(root, records(0, count))
        lake.ingest(root)
    write(root, records(0, 120))
    add = magicbyte.lake.delta.DeltaTable._write

    def restored_before(self: Any, *arguments: Any) -> None:
        _restored(lake, 1)
        add(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr("magicbyte.lake.delta.DeltaTable._write", restored_before)
        with pytest.raises(JobError, match="run it again"):
            lake.ingest(root)
    assert values(lake) == expected("v", 0, 50)
    assert lake.ingest(root)["tables"]["records"]["rows"] == 70
    assert values(lake) == expected("v", 0, 120)


def test_a_delta_table_without_a_restore_reads_few_commits(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    for count in range(10, 200, 10):
        write(root, records(0, count))
        lake.ingest(root)
    limits: list[int | None] = []

    def history(self: DeltaTable, limit: int | None = None) -> list[dict[str, Any]]:
        limits.append(limit)
        return real(self, limit)

    real = DeltaTable.history
    monkeypatch.setattr(DeltaTable, "history", history)
    lake.ingest(root)
    assert set(limits) <= {8}
