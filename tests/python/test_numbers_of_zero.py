"""Offsets, epochs and limits that are 0 are known: they are not taken for absent ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from magicbyte.jobs.disks import copies
from magicbyte.jobs.run import moving
from magicbyte.jobs.run.plan import Planned
from magicbyte.lake import losses
from magicbyte.options.ingest import Ranges
from replicas import batch, replica


def legacy(first: int, records: int) -> bytes:
    """Batches without a leader epoch."""
    builder = magicbyte.RecordsBuilder(1)
    for offset in range(first, first + records):
        builder.append(offset, 1_700_000_000_000, b"k", b"v")
    return builder.build()


@pytest.mark.parametrize(("epoch", "newest"), [(0, "b1"), (1, "b1"), (None, "b2")])
def test_a_copy_with_epoch_0_is_newer_than_one_without(
    tmp_path: Path, epoch: int | None, newest: str
) -> None:
    first = legacy(0, 10) if epoch is None else batch(0, 10, epoch=epoch)
    sources = [replica(tmp_path / "b1", {0: [first]}), replica(tmp_path / "b2", {0: [legacy(0, 20)]})]
    (topic,) = magicbyte.cluster(sources)["topics"]
    (partition,) = topic["partitions"]
    assert Path(partition["copies"][0]["path"]).parent.name == newest
    assert partition["log_end_offset"] == (20 if newest == "b2" else 10)


def test_a_copy_that_ends_at_0_is_newer_than_one_that_ends_nowhere() -> None:
    def planned(name: str, end: int | None) -> Planned:
        plan = {"leader_epochs": [], "next_offset": end, "topic": "t", "partition": 0}
        found = Planned({"path": name}, (), "{}")  # type: ignore[arg-type]
        found.__dict__["plan"] = plan
        return found

    found = copies.by_name([planned("none", None), planned("empty", 0)])
    assert [one.listing["path"] for one in found["t", 0]] == ["empty", "none"]


@pytest.mark.parametrize(("end", "lost"), [(None, (50, 99)), (0, None), (50, None), (60, (50, 59))])
def test_a_range_that_ends_at_0_has_no_losses(end: int | None, lost: tuple[int, int] | None) -> None:
    plan: Any = {
        "topic": "t",
        "partition": 0,
        "segments": [{"base_offset": 100}],
        "log_start_offset": None,
    }
    listing: Any = {"segments": plan["segments"]}
    planned = Planned(listing, (), json.dumps(plan))
    found = [
        (one["first_lost_offset"], one["last_lost_offset"])
        for one in losses.gap_before(planned, 50, Ranges(end_offset=end))
    ]
    assert found == ([] if lost is None else [lost])


@pytest.mark.parametrize(("written", "kept"), [(None, None), (0, None), (50, None), (100, 100), (120, 120)])
def test_a_log_start_of_0_is_overtaken_by_a_deletion(written: int | None, kept: int | None) -> None:
    before: Any = {"checkpoints": {"log_start_offset": written}, "segments": [{"base_offset": 0}]}
    now: Any = {"segments": [{"base_offset": 100}]}
    found = moving._checkpoints(before, now)
    assert found == {"log_start_offset": kept}
