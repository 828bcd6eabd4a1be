"""The messages of classic consumers, which are part of the group metadata in `__consumer_offsets`."""

from __future__ import annotations

from magicbyte.internal_topics.schema import Field, Message

__all__ = ["ASSIGNMENT", "SUBSCRIPTION"]

ASSIGNMENT = Message(
    "ConsumerProtocolAssignment",
    (
        Field(
            "assignedPartitions",
            "[]struct",
            (
                Field("topic", "string"),
                Field("partitions", "[]int32"),
            ),
        ),
        Field("userData", "bytes", nullable=0),
    ),
    last_version=3,
)
SUBSCRIPTION = Message(
    "ConsumerProtocolSubscription",
    (
        Field("topics", "[]string"),
        Field("userData", "bytes", nullable=0),
        Field(
            "ownedPartitions",
            "[]struct",
            (
                Field("topic", "string", since=1),
                Field("partitions", "[]int32", since=1),
            ),
            since=1,
        ),
        Field("generationId", "int32", since=2),
        Field("rackId", "string", since=3, nullable=3),
    ),
    last_version=3,
)
