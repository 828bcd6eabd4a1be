"""`restore`: no producer gets an id that a log knows."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from dead_clusters import LOG, World, directory_id, state_of
from magicbyte import RecordsBuilder
from metadata_records import partition, producer_ids, topic
from replicas import TIME, batch, batches, replica

SKIPPED = 1_000_000
NO_PRODUCERS = struct.pack(">hIi", 1, magicbyte.crc32c(bytes(4)), 0)
"""A snapshot (`ProducerStateManager`): version, CRC-32C of what follows, the number of producers."""
ORDERS = [topic("orders", 1), partition(1, 0, [1, 2, 3])]


def produced(first: int, producer_id: int, **options: Any) -> bytes:
    """A batch of an idempotent producer."""
    producer = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
    return batch(first, 10, epoch=3, **producer, **options)


def next_id(world: World, *records: str, **options: Any) -> int | None:
    """The next producer id after a restore, of which the metadata problems have these texts."""
    report = world.restore(**options)
    problems = [one for one in report["metadata_problems"] if "producer ids" in one]
    assert len(problems) == len(records)
    for text, problem in zip(records, problems, strict=True):
        assert text in problem
    found: int | None = state_of(world.root).next_producer_id
    return found


@pytest.mark.parametrize(
    ("known", "producer", "following"),
    [
        ([], None, None),
        ([], 0, 1 + SKIPPED),
        ([], 6999, 7000 + SKIPPED),
        ([producer_ids(5000)], None, 5000),
        ([producer_ids(5000)], 4999, 5000),
        ([producer_ids(5000)], 5000, 5001 + SKIPPED),
        ([producer_ids(5000)], 6999, 7000 + SKIPPED),
        ([producer_ids(5000)], (1 << 63) - 1, 5000),  # no broker has given that one
    ],
)
def test_ids_of_batches(
    tmp_path: Path, known: list[bytes], producer: int | None, following: int | None
) -> None:
    world = World(tmp_path, [*ORDERS, *known])
    data = LOG if producer is None else [*LOG, produced(200, producer)]
    for node in (1, 2, 3):
        world.put(node, data)
    is_skipped = following is not None and following > SKIPPED
    texts = [f"producer ids from {following - SKIPPED:,} on are skipped"] if is_skipped and following else []
    assert next_id(world, *texts) == following


@pytest.mark.parametrize("nodes", [(1,), (3,)])
def test_the_id_of_any_copy_that_is_used(tmp_path: Path, nodes: tuple[int, ...]) -> None:
    world = World(tmp_path, [*ORDERS, producer_ids(5000)])
    for node in (1, 2, 3):
        world.put(node, [*LOG, produced(200, 6999)] if node in nodes else LOG)
    assert next_id(world, f"b{nodes[0]}/orders-0 has 6,999") == 7000 + SKIPPED


def test_a_snapshot_of_producers_tells_what_was_before_it(tmp_path: Path) -> None:
    """Retention has removed the batches of the producer, which the broker still knows."""
    source = replica(tmp_path / "source", {0: [produced(0, 8999)]})
    magicbyte.recover([source], tmp_path / "recovered")
    (snapshot,) = (tmp_path / "recovered").rglob(f"{10:020}.snapshot")
    world = World(tmp_path / "w", [*ORDERS, producer_ids(5000)])
    for node in (1, 2, 3):
        replica(world.log_dirs[node], {10: batches(10, 50, epoch=3)})
        (world.log_dirs[node] / "orders-0" / snapshot.name).write_bytes(snapshot.read_bytes())
    assert next_id(world, "orders-0 has 8,999") == 9000 + SKIPPED


@pytest.mark.parametrize("producer", [6999, 4999])
def test_batches_after_a_snapshot_count_and_a_damaged_one_is_passed_over(
    tmp_path: Path, producer: int
) -> None:
    world = World(tmp_path, [*ORDERS, producer_ids(5000)])
    for node in (1, 2, 3):
        world.put(node, [produced(0, producer), produced(10, 4000)])
        (world.log_dirs[node] / "orders-0" / f"{10:020}.snapshot").write_bytes(b"damaged")
    texts = ["orders-0 has 6,999"] if producer > 5000 else []
    assert next_id(world, *texts) == (7000 + SKIPPED if texts else 5000)


def test_ids_of_transactions_that_the_last_snapshot_does_not_have(tmp_path: Path) -> None:
    """A producer that has expired is not in the snapshot; its transaction is in the log before it."""
    world = World(tmp_path, [*ORDERS, producer_ids(5000)])
    for node in (1, 2, 3):
        directory = world.put(
            node, [*LOG, produced(200, 6999, is_transactional=True), *batches(210, 220, epoch=3)]
        )
        (directory / f"{210:020}.snapshot").write_bytes(NO_PRODUCERS)
    assert next_id(world, "orders-0 has 6,999") == 7000 + SKIPPED


def test_a_snapshot_hides_what_is_before_it(tmp_path: Path) -> None:
    """A broker would not load the ids of producers without transactions either."""
    world = World(tmp_path, [*ORDERS, producer_ids(5000)])
    for node in (1, 2, 3):
        directory = world.put(node, [*LOG, produced(200, 6999), *batches(210, 220, epoch=3)])
        (directory / f"{210:020}.snapshot").write_bytes(NO_PRODUCERS)
    assert next_id(world) == 5000


@pytest.mark.parametrize(("producer", "following"), [(6999, 7000 + SKIPPED), (4999, 5000)])
def test_ids_that_only_the_coordinator_knows(tmp_path: Path, producer: int, following: int) -> None:
    records = [topic("__transaction_state", 2), partition(2, 0, [1, 2, 3]), producer_ids(5000)]
    world = World(tmp_path, records)
    builder = RecordsBuilder(partition_leader_epoch=3)
    # A TransactionLogValue of version 0 without partitions, in the state Empty.
    value = struct.pack(">hqhibiqq", 0, producer, 0, 60_000, 0, -1, TIME, -1)
    builder.append(0, TIME, struct.pack(">hh4s", 0, 4, b"tx-1"), value)
    for node in (1, 2, 3):
        world.put(node, [builder.build()], "__transaction_state-0", topic_id=directory_id(2))
    texts = ["__transaction_state-0 has 6,999"] if following > SKIPPED else []
    assert next_id(world, *texts) == following


@pytest.mark.parametrize("known", [[], [producer_ids(5000)]])
def test_metadata_that_lags_or_is_damaged_may_lack_ids(tmp_path: Path, known: list[bytes]) -> None:
    world = World(tmp_path / "lags", [topic("orders", 1), partition(1, 0, [1], epoch=2), *known])
    world.put(1, LOG)
    first = 5000 if known else 0
    assert next_id(world, f"from {first:,} on are skipped: brokers may") == first + SKIPPED
    world = World(tmp_path / "damaged", [topic("orders", 1), partition(1, 0, [1]), *known])
    world.put(1, LOG)
    for log_dir in world.log_dirs.values():
        path = log_dir / "__cluster_metadata-0" / f"{0:020}.log"
        path.write_bytes(path.read_bytes() + bytes([7]) * 100)
    assert next_id(world, f"from {first:,} on are skipped: brokers may") == first + SKIPPED
