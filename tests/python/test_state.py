"""`magicbyte.state`, where the right answer is known without a broker."""

from __future__ import annotations

import doctest
import shutil
from pathlib import Path

import magicbyte
import pytest
from conftest import KAFKA
from magicbyte import RecordsBuilder, state
from magicbyte.state import LeaderEpochs, ProducerStateManager, read_committed, truncation

EPOCHS = KAFKA / "v2_epochs_log"


def test_examples() -> None:
    found = doctest.testmod(state)
    assert found.attempted > 5
    assert found.failed == 0


def test_committed_records_of_a_real_log() -> None:
    """Kafka's own reading of the partition with read_committed is in `committed.jsonl`."""
    log = KAFKA / "v2_txn"
    data = b"".join(file.read_bytes() for file in sorted(log.glob("*.log")))
    entries = [
        entry
        for file in sorted(log.glob("*.txnindex"))
        for entry in magicbyte._core.transaction_index(file.read_bytes())
    ]
    # A broker answers up to the last stable offset: the open transaction begins at 83.
    batches = (batch for batch in magicbyte.read_batches(data) if batch.base_offset < 83)
    committed = read_committed(batches, [(entry.producer_id, entry.first_offset) for entry in entries])
    offsets = [record.offset for one in committed for record in one]
    lines = (log / "committed.jsonl").read_text().splitlines()
    assert len(offsets) == len(lines)


def copy(directory: Path, *, until: int, then: int | None = None) -> Path:
    """The log of epochs 0, 2, 4 and 6, truncated, followed by batches of another leader's epoch."""
    target = directory / f"copy{until}-0"
    target.mkdir()
    log = target / f"{0:020}.log"
    batches = magicbyte.read_batches((EPOCHS / log.name).read_bytes())
    data = b"".join(batch.to_bytes() for batch in batches if batch.next_offset <= until)
    if then is not None:
        builder = RecordsBuilder(partition_leader_epoch=then)
        builder.append_many([(offset, 0, None, b"lost") for offset in range(until, until + 5)])
        data += builder.build()
    log.write_bytes(data)
    return target


def test_where_two_copies_part(tmp_path: Path) -> None:
    leader = tmp_path / "leader-0"
    shutil.copytree(EPOCHS, leader)
    assert state.leader_epochs_of(leader)[0].entries == [(0, 0), (2, 14), (4, 28), (6, 42)]
    assert truncation(copy(tmp_path, until=42), leader).offset == 42, "shorter, but not diverging"
    found = truncation(copy(tmp_path, until=35, then=4), leader)
    assert (found.offset, found.questions) == (40, [(4, (4, 42))]), "its epochs are the leader's"
    found = truncation(copy(tmp_path, until=28, then=3), leader)
    assert (found.offset, found.questions) == (28, [(3, (2, 28))]), "a leader without followers"
    with pytest.raises(OSError, match="nowhere"):
        truncation(tmp_path / "nowhere", leader)


def test_epochs_are_not_negative() -> None:
    for pair in [(-1, 0), (0, -1)]:
        with pytest.raises(ValueError, match="at least 0"):
            LeaderEpochs().assign(*pair)


def test_a_batch_without_a_producer_is_always_taken() -> None:
    builder = RecordsBuilder()
    builder.append(0, 0, None, b"v")
    (batch,) = magicbyte.read_batches(builder.build())
    known = ProducerStateManager()
    assert known.check(batch).verdict == "append"
    assert known.apply(batch) is None
    assert known.producers == []
    with pytest.raises(ValueError, match=r"expected .client."):
        known.check(batch, origin="broker")
