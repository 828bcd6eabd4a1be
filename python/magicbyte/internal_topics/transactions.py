"""The transactions that the transaction coordinator knows, according to `__transaction_state`
(`TransactionStateManager`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from magicbyte._core import TRANSACTION_STATES
from magicbyte.internal_topics.decode import Decoder
from magicbyte.internal_topics.names import TRANSACTION_STATE

__all__ = ["CoordinatedTransaction", "CoordinatedTransactions"]

_OPEN = {"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"}
"""States in which the coordinator still has to write markers."""


_UNKNOWN = "Unknown"
"""The state of a later version of Kafka."""


@dataclass(frozen=True)
class CoordinatedTransaction:
    """A transactional ID and its last transaction (`TransactionMetadata`)."""

    transactional_id: str
    producer_id: int
    """The producer that has the ID now."""
    producer_epoch: int
    state: str
    """Kafka's name, such as `Ongoing`; `Unknown` if it has none."""
    timeout_ms: int
    """The time after which the coordinator aborts a transaction."""
    start_timestamp: int
    """The time (ms) at which the transaction began; -1 if there was none."""
    partitions: frozenset[tuple[str, int]]
    """Topics and partitions that it has written to."""

    @property
    def is_open(self) -> bool:
        """True if the coordinator will end the transaction by itself."""
        return self.state in _OPEN


class CoordinatedTransactions:
    """Folds records of `__transaction_state`, in offset order, into the states of transactional IDs."""

    def __init__(self) -> None:
        self._by_id: dict[str, CoordinatedTransaction] = {}

    @property
    def transactions(self) -> list[CoordinatedTransaction]:
        """All transactional IDs with their last transactions."""
        return list(self._by_id.values())

    @property
    def open_by_producer(self) -> Mapping[int, CoordinatedTransaction]:
        """The transactions that have not ended, by producer ID."""
        return {one.producer_id: one for one in self._by_id.values() if one.is_open}

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Applies a record.

        Raises:
            LookupError: its type is unknown.
            Error: it does not decode.

        """
        _, of, data = Decoder(TRANSACTION_STATE).of_coordinator(key, value)
        transactional_id = of["transactionalId"]
        self._by_id.pop(transactional_id, None)
        if data is not None:
            self._by_id[transactional_id] = _transaction(transactional_id, data)


def _transaction(transactional_id: str, data: dict[str, Any]) -> CoordinatedTransaction:
    status = data["transactionStatus"]
    return CoordinatedTransaction(
        transactional_id=transactional_id,
        producer_id=data["producerId"],
        producer_epoch=data["producerEpoch"],
        state=TRANSACTION_STATES[status] if 0 <= status < len(TRANSACTION_STATES) else _UNKNOWN,
        timeout_ms=data["transactionTimeoutMs"],
        start_timestamp=data["transactionStartTimestampMs"],
        partitions=frozenset(
            (topic["topic"], number)
            for topic in data["transactionPartitions"] or ()
            for number in topic["partitionIds"]
        ),
    )
