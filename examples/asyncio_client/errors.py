"""Errors: those that brokers report, and bytes that no broker sends."""

from __future__ import annotations

from typing import Any

from magicbyte.message import error_name

Body = dict[str, Any]

UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, UNSUPPORTED_VERSION = 3, 5, 35
# fmt: off
RETRIABLE = {
    "CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE",
    "CORRUPT_MESSAGE", "FENCED_LEADER_EPOCH", "KAFKA_STORAGE_ERROR", "LEADER_NOT_AVAILABLE",
    "NETWORK_EXCEPTION", "NOT_COORDINATOR", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "NOT_LEADER_OR_FOLLOWER", "OFFSET_NOT_AVAILABLE", "REQUEST_TIMED_OUT", "UNKNOWN_LEADER_EPOCH",
    "UNKNOWN_TOPIC_OR_PARTITION",
}
# fmt: on


class KafkaError(Exception):
    """An error that a broker reports; `name` is Kafka's, such as ``"MESSAGE_TOO_LARGE"``."""

    def __init__(self, code: int, context: str, detail: str | None = None) -> None:
        self.name = error_name(code) or f"error code {code}"
        super().__init__(f"{context}: {self.name}" + (f" ({detail})" if detail else ""))


class ProtocolError(Exception):
    """Bytes that no Kafka broker sends."""


FAILURES = (KafkaError, ProtocolError, OSError)  # lost connections and timeouts are OSErrors


def check(code: int, context: str, detail: str | None = None) -> None:
    """Raises an error code other than 0."""
    if code:
        raise KafkaError(code, context, detail)


def is_retriable(error: Exception) -> bool:
    """True if the same request may succeed later, or at another broker."""
    return isinstance(error, OSError) or (isinstance(error, KafkaError) and error.name in RETRIABLE)


def only_partition(topics: list[Body], partitions: str, context: str) -> Body:
    """What a response says about the only partition of its request."""
    found: list[Body] = [answer for topic in topics for answer in topic[partitions]]
    if len(found) != 1:
        raise ProtocolError(f"{context}: a response about {len(found)} partitions: expected one")
    return found[0]
