"""A `leader-epoch-checkpoint` that contradicts the batches is reported; one that is older is not."""

from __future__ import annotations

from pathlib import Path

import magicbyte
import pytest
from magicbyte import commands

# Batches of ten records: epoch 0 at offset 0, 2 at 10, 2 at 20, 5 at 30.
EPOCHS = (0, 2, 2, 5)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    directory = tmp_path / "source" / "t-0"
    directory.mkdir(parents=True)
    log = b""
    for number, epoch in enumerate(EPOCHS):
        builder = magicbyte.RecordsBuilder(partition_leader_epoch=epoch)
        for offset in range(10 * number, 10 * number + 10):
            builder.append(offset, value=b"v", timestamp=1)
        log += bytes(builder.build())
    (directory / f"{0:020}.log").write_bytes(log)
    return directory


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        pytest.param([(0, 0), (2, 10), (5, 30)], None, id="right"),
        pytest.param(
            [(0, 0), (1, 10), (2, 10), (3, 30), (4, 30), (5, 30)], None, id="epochs without batches"
        ),
        pytest.param([(0, 0), (2, 10)], None, id="older than the batches"),
        pytest.param([(2, 15), (5, 30)], None, id="the log began later"),
        pytest.param([(0, 0), (2, 10), (5, 30), (6, 40)], None, id="a leader that wrote nothing"),
        pytest.param([], None, id="empty"),
        pytest.param([(0, 0), (5, 20)], "offset 10 has leader epoch 0", id="an epoch is missing"),
        pytest.param([(0, 0), (2, 10), (5, 40)], "offset 30 has leader epoch 2", id="an epoch begins later"),
        pytest.param([(0, 0), (1, 5), (5, 30)], "offset 10 has leader epoch 1", id="another epoch"),
        pytest.param([(7, 0)], "offset 0 has leader epoch 7", id="one for all"),
    ],
)
def test_contradictions(partition: Path, entries: list[tuple[int, int]], says: str | None) -> None:
    lines = [0, len(entries), *(f"{epoch} {start}" for epoch, start in entries)]
    (partition / "leader-epoch-checkpoint").write_text("".join(f"{line}\n" for line in lines))
    problems = commands.verify(partition)["problems"]
    if says is None:
        assert problems == []
        return
    (problem,) = problems
    assert problem["kind"] == "leader_epoch_mismatch"
    assert problem["message"].startswith(says)
    # Written again, it follows from the batches.
    commands.recover(partition, partition.parents[1] / "out")
    assert commands.verify(partition.parents[1] / "out")["problems"] == []
