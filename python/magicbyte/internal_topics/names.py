"""The names of Kafka's own topics."""

from __future__ import annotations

__all__ = [
    "CLUSTER_METADATA",
    "CONSUMER_OFFSETS",
    "INTERNAL_TOPICS",
    "REMOTE_LOG_METADATA",
    "SHARE_GROUP_STATE",
    "TRANSACTION_STATE",
]

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
CLUSTER_METADATA = "__cluster_metadata"
REMOTE_LOG_METADATA = "__remote_log_metadata"
INTERNAL_TOPICS = frozenset(
    {CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE, CLUSTER_METADATA, REMOTE_LOG_METADATA}
)
