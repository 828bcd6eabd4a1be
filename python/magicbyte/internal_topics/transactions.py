"""The transactions that the transaction coordinator knows, according to `__transaction_state`
(`TransactionStateManager`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from magicbyte.internal_topics.decode import Decoder
from magicbyte.internal_topics.names import TRANSACTION_STATE

__all__ = ["CoordinatedTransaction", "CoordinatedTransactions"]

_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""`TransactionState`, by its ID."""
_OPEN = {"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"}
"""States in which the coordinator still has to write markers."""


@dataclass(frozen=True)
class CoordinatedTransaction:
    """A transaction that the coordinator will end by itself."""

    transactional_id: str
    state: str
    """Kafka's name, such as `Ongoing`."""
    partitions: frozenset[tuple[str, int]]
    """Topics and partitions that it has written to."""


class CoordinatedTransactions:
    """Folds records of `__transaction_state`, in offset order, into the transactions that have not ended."""

    def __init__(self) -> None:
        self._by_id: dict[str, tuple[int, CoordinatedTransaction]] = {}

    @property
    def by_producer(self) -> Mapping[int, CoordinatedTransaction]:
        """The transactions that have not ended, by producer ID."""
        return dict(self._by_id.values())

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Applies a record.

        Raises:
            LookupError: its type is unknown.
            Error: it does not decode.

        """
        _, of, data = Decoder(TRANSACTION_STATE).of_coordinator(key, value)
        self._by_id.pop(of["transactionalId"], None)
        if data is not None:
            self._apply(of["transactionalId"], data)

    def _apply(self, transactional_id: str, data: dict[str, Any]) -> None:
        status = data["transactionStatus"]
        state = _STATES[status] if 0 <= status < len(_STATES) else ""
        if state in _OPEN:
            partitions = frozenset(
                (topic["topic"], number)
                for topic in data["transactionPartitions"] or ()
                for number in topic["partitionIds"]
            )
            transaction = CoordinatedTransaction(transactional_id, state, partitions)
            self._by_id[transactional_id] = data["producerId"], transaction
