"""The messages of `__remote_log_metadata` by their type."""

from __future__ import annotations

from magicbyte.internal_topics.schema import Field, Message

__all__ = ["REMOTE_LOG"]

_PARTITION = Field(
    "topicIdPartition",
    "struct",
    (Field("name", "string"), Field("id", "uuid"), Field("partition", "int32")),
)
_SEGMENT_ID = Field("remoteLogSegmentId", "struct", (_PARTITION, Field("id", "uuid")))
_BROKER = (Field("brokerId", "int32"), Field("eventTimestampMs", "int64"))
_CUSTOM = Field("customMetadata", "bytes", nullable=0)
_STATE = Field("remoteLogSegmentState", "int8")
_SEGMENT = (
    Field("startOffset", "int64"),
    Field("endOffset", "int64"),
    Field("brokerId", "int32"),
    Field("maxTimestampMs", "int64"),
    Field("eventTimestampMs", "int64"),
    Field("segmentLeaderEpochs", "[]struct", (Field("leaderEpoch", "int32"), Field("offset", "int64"))),
    Field("segmentSizeInBytes", "int32"),
    _CUSTOM,
    _STATE,
    Field("txnIndexEmpty", "bool", tag=0),
)
REMOTE_LOG = {
    0: Message("RemoteLogSegmentMetadataRecord", (_SEGMENT_ID, *_SEGMENT), flexible=0),
    1: Message("RemoteLogSegmentMetadataUpdateRecord", (_SEGMENT_ID, *_BROKER, _CUSTOM, _STATE), flexible=0),
    2: Message(
        "RemotePartitionDeleteMetadataRecord",
        (_PARTITION, *_BROKER, Field("remotePartitionDeleteState", "int8")),
        flexible=0,
    ),
    3: Message("RemoteLogSegmentMetadataSnapshotRecord", (Field("segmentId", "uuid"), *_SEGMENT), flexible=0),
}
