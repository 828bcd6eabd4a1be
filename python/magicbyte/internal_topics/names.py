"""The names of topics: the rule for all of them, and those of Kafka's own."""

from __future__ import annotations

import re

__all__ = [
    "CLUSTER_METADATA",
    "CONSUMER_OFFSETS",
    "INTERNAL_TOPICS",
    "REMOTE_LOG_METADATA",
    "SHARE_GROUP_STATE",
    "TRANSACTION_STATE",
    "is_topic",
]

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
CLUSTER_METADATA = "__cluster_metadata"
REMOTE_LOG_METADATA = "__remote_log_metadata"
INTERNAL_TOPICS = frozenset(
    {CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE, CLUSTER_METADATA, REMOTE_LOG_METADATA}
)
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic(name: object) -> bool:
    """True for the name of a topic, which is then also that of a directory
    (`org.apache.kafka.common.internals.Topic.validate`).
    """
    return isinstance(name, str) and _NAME.fullmatch(name) is not None and name not in (".", "..")
