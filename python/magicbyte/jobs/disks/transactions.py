"""Transactions that have not ended, as the coordinator and as the logs know them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from magicbyte.internal_topics.transactions import CoordinatedTransaction
from magicbyte.jobs.disks.copies import Name
from magicbyte.jobs.explain import partition_histories
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import Planned
from magicbyte.jobs.run.progress import Progress
from magicbyte.options.read import TransactionTimeout

__all__ = ["OpenTransaction", "Transaction", "open_transactions", "transactions_of"]


class Transaction(TypedDict):
    """A transaction that the coordinator will end by itself."""

    transactional_id: str
    producer_id: int
    state: str
    """Kafka's name, such as `Ongoing`."""
    partitions: list[str]
    """Partitions that it has written to, such as `orders-0`."""


class OpenTransaction(TypedDict):
    """A transaction without a marker in the newest copy of a partition: `read_committed` ends before it."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    first_offset: int | None
    last_offset: int | None
    last_timestamp: int | None
    """The time (ms) of its last record."""
    transactional_id: str | None
    """None if no coordinator here knows the transaction."""
    hanging: bool
    """True if nobody will end it, by the rule of `kafka-transactions.sh find-hanging`."""


def transactions_of(coordinated: Mapping[int, CoordinatedTransaction]) -> list[Transaction]:
    """The coordinator's transactions, given by producer id."""
    return [
        Transaction(
            transactional_id=one.transactional_id,
            producer_id=producer,
            state=one.state,
            partitions=sorted(f"{topic}-{number}" for topic, number in one.partitions),
        )
        for producer, one in sorted(coordinated.items(), key=lambda pair: pair[1].transactional_id)
    ]


def open_transactions(
    copies: Mapping[Name, Sequence[Planned]],
    coordinated: Mapping[int, CoordinatedTransaction],
    engine: Engine,
    options: TransactionTimeout,
    progress: Progress,
) -> list[OpenTransaction]:
    """The open transactions in the newest copy of each partition. Only logs that have some are read again."""
    listings = [
        own[0].listing
        for own in copies.values()
        if own[0].plan["last_stable_offset"] != own[0].plan["next_offset"]
    ]
    if not listings:
        return []
    histories = partition_histories(
        listings,
        engine,
        coordinated=coordinated,
        now=options.now_ms,
        transaction_max_timeout_ms=options.transaction_max_timeout_ms,
        progress=progress,
    )
    return [
        OpenTransaction(
            topic=history["topic"],
            partition=history["partition"],
            producer_id=one["producer_id"],
            producer_epoch=one["producer_epoch"],
            first_offset=one["first_offset"],
            last_offset=one["last_offset"],
            last_timestamp=one["last_timestamp"],
            transactional_id=one["transactional_id"],
            hanging=one["hanging"],
        )
        for history in histories
        for one in history["transactions"]
        if one["outcome"] == "open"
    ]
