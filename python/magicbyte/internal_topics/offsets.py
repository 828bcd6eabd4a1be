"""The messages of `__consumer_offsets`: key and value by the type at the start of the key."""

from __future__ import annotations

from magicbyte.internal_topics.schema import Field, Message

__all__ = ["OFFSETS"]

_GROUP = (Field("groupId", "string"),)
_MEMBER = (Field("groupId", "string"), Field("memberId", "string"))
_STAMPED_PARTITIONS = (
    Field("topicId", "uuid"),
    Field("partitions", "[]int32"),
    Field("assignmentEpochs", "[]int32", nullable=0, tag=0),
)
_STAMPED_TASKS = (
    Field("subtopologyId", "string"),
    Field("partitions", "[]int32"),
    Field("assignmentEpochs", "[]int32", nullable=0, tag=0),
)
_NAMED_PARTITIONS = (Field("topicId", "uuid"), Field("topicName", "string"), Field("partitions", "[]int32"))
_PAIR = (Field("key", "string"), Field("value", "string"))
_TOPIC_INFO = (
    Field("name", "string"),
    Field("partitions", "int32"),
    Field("replicationFactor", "int16"),
    Field("topicConfigs", "[]struct", _PAIR),
)
_TOPIC_PARTITIONS = (Field("topicId", "uuid"), Field("partitions", "[]int32"))
_TASKS = (Field("subtopologyId", "string"), Field("partitions", "[]int32"))

OFFSETS = {
    0: (
        Message(
            "LegacyOffsetCommitKey",
            (Field("group", "string"), Field("topic", "string"), Field("partition", "int32")),
        ),
        Message(
            "LegacyOffsetCommitValue",
            (Field("offset", "int64"), Field("metadata", "string"), Field("commitTimestamp", "int64")),
        ),
    ),
    1: (
        Message(
            "OffsetCommitKey",
            (Field("group", "string"), Field("topic", "string"), Field("partition", "int32")),
        ),
        Message(
            "OffsetCommitValue",
            (
                Field("offset", "int64"),
                Field("leaderEpoch", "int32", since=3),
                Field("metadata", "string"),
                Field("commitTimestamp", "int64"),
                Field("expireTimestamp", "int64", since=1, until=1),
                Field("topicId", "uuid", since=4, tag=0),
            ),
            last_version=4,
            flexible=4,
        ),
    ),
    2: (
        Message("GroupMetadataKey", (Field("group", "string"),)),
        Message(
            "GroupMetadataValue",
            (
                Field("protocolType", "string"),
                Field("generation", "int32"),
                Field("protocol", "string", nullable=0),
                Field("leader", "string", nullable=0),
                Field("currentStateTimestamp", "int64", since=2),
                Field(
                    "members",
                    "[]struct",
                    (
                        Field("memberId", "string"),
                        Field("groupInstanceId", "string", since=3, nullable=3),
                        Field("clientId", "string"),
                        Field("clientHost", "string"),
                        Field("rebalanceTimeout", "int32", since=1),
                        Field("sessionTimeout", "int32"),
                        Field("subscription", "bytes"),
                        Field("assignment", "bytes"),
                    ),
                ),
            ),
            last_version=4,
            flexible=4,
        ),
    ),
    3: (
        Message("ConsumerGroupMetadataKey", _GROUP),
        Message(
            "ConsumerGroupMetadataValue",
            (Field("epoch", "int32"), Field("metadataHash", "int64", tag=0)),
            flexible=0,
        ),
    ),
    4: (
        Message("ConsumerGroupPartitionMetadataKey", _GROUP),
        Message(
            "ConsumerGroupPartitionMetadataValue",
            (
                Field(
                    "topics",
                    "[]struct",
                    (
                        Field("topicId", "uuid"),
                        Field("topicName", "string"),
                        Field("numPartitions", "int32"),
                        Field(
                            "partitionMetadata",
                            "[]struct",
                            (Field("partition", "int32"), Field("racks", "[]string")),
                        ),
                    ),
                ),
            ),
            flexible=0,
        ),
    ),
    5: (
        Message("ConsumerGroupMemberMetadataKey", _MEMBER),
        Message(
            "ConsumerGroupMemberMetadataValue",
            (
                Field("instanceId", "string", nullable=0),
                Field("rackId", "string", nullable=0),
                Field("clientId", "string"),
                Field("clientHost", "string"),
                Field("subscribedTopicNames", "[]string"),
                Field("subscribedTopicRegex", "string", nullable=0),
                Field("rebalanceTimeoutMs", "int32"),
                Field("serverAssignor", "string", nullable=0),
                Field(
                    "classicMemberMetadata",
                    "struct",
                    (
                        Field("sessionTimeoutMs", "int32"),
                        Field(
                            "supportedProtocols",
                            "[]struct",
                            (Field("name", "string"), Field("metadata", "bytes")),
                        ),
                    ),
                    nullable=0,
                    tag=0,
                    default={"sessionTimeoutMs": 0, "supportedProtocols": []},
                ),
            ),
            flexible=0,
        ),
    ),
    6: (
        Message("ConsumerGroupTargetAssignmentMetadataKey", _GROUP),
        Message(
            "ConsumerGroupTargetAssignmentMetadataValue",
            (Field("assignmentEpoch", "int32"), Field("assignmentTimestamp", "int64", tag=0)),
            flexible=0,
        ),
    ),
    7: (
        Message("ConsumerGroupTargetAssignmentMemberKey", _MEMBER),
        Message(
            "ConsumerGroupTargetAssignmentMemberValue",
            (Field("topicPartitions", "[]struct", _TOPIC_PARTITIONS),),
            flexible=0,
        ),
    ),
    8: (
        Message("ConsumerGroupCurrentMemberAssignmentKey", _MEMBER),
        Message(
            "ConsumerGroupCurrentMemberAssignmentValue",
            (
                Field("memberEpoch", "int32"),
                Field("previousMemberEpoch", "int32"),
                Field("state", "int8"),
                Field("assignedPartitions", "[]struct", _STAMPED_PARTITIONS),
                Field("partitionsPendingRevocation", "[]struct", _STAMPED_PARTITIONS),
            ),
            flexible=0,
        ),
    ),
    10: (
        Message("ShareGroupMemberMetadataKey", _MEMBER),
        Message(
            "ShareGroupMemberMetadataValue",
            (
                Field("rackId", "string", nullable=0),
                Field("clientId", "string"),
                Field("clientHost", "string"),
                Field("subscribedTopicNames", "[]string"),
            ),
            flexible=0,
        ),
    ),
    11: (
        Message("ShareGroupMetadataKey", _GROUP),
        Message(
            "ShareGroupMetadataValue", (Field("epoch", "int32"), Field("metadataHash", "int64")), flexible=0
        ),
    ),
    12: (
        Message("ShareGroupTargetAssignmentMetadataKey", _GROUP),
        Message(
            "ShareGroupTargetAssignmentMetadataValue",
            (Field("assignmentEpoch", "int32"), Field("assignmentTimestamp", "int64", tag=0)),
            flexible=0,
        ),
    ),
    13: (
        Message("ShareGroupTargetAssignmentMemberKey", _MEMBER),
        Message(
            "ShareGroupTargetAssignmentMemberValue",
            (Field("topicPartitions", "[]struct", _TOPIC_PARTITIONS),),
            flexible=0,
        ),
    ),
    14: (
        Message("ShareGroupCurrentMemberAssignmentKey", _MEMBER),
        Message(
            "ShareGroupCurrentMemberAssignmentValue",
            (
                Field("memberEpoch", "int32"),
                Field("previousMemberEpoch", "int32"),
                Field("state", "int8"),
                Field("assignedPartitions", "[]struct", _TOPIC_PARTITIONS),
            ),
            flexible=0,
        ),
    ),
    15: (
        Message("ShareGroupStatePartitionMetadataKey", _GROUP),
        Message(
            "ShareGroupStatePartitionMetadataValue",
            (
                Field("initializingTopics", "[]struct", _NAMED_PARTITIONS),
                Field("initializedTopics", "[]struct", _NAMED_PARTITIONS),
                Field("deletingTopics", "[]struct", (Field("topicId", "uuid"), Field("topicName", "string"))),
            ),
            flexible=0,
        ),
    ),
    16: (
        Message(
            "ConsumerGroupRegularExpressionKey",
            (Field("groupId", "string"), Field("regularExpression", "string")),
        ),
        Message(
            "ConsumerGroupRegularExpressionValue",
            (Field("topics", "[]string"), Field("version", "int64"), Field("timestamp", "int64")),
            flexible=0,
        ),
    ),
    17: (
        Message("StreamsGroupMetadataKey", _GROUP),
        Message(
            "StreamsGroupMetadataValue",
            (
                Field("epoch", "int32"),
                Field("metadataHash", "int64"),
                Field("validatedTopologyEpoch", "int32", tag=0, default=-1),
                Field("lastAssignmentConfigs", "[]struct", _PAIR, nullable=0, tag=1),
            ),
            flexible=0,
        ),
    ),
    19: (
        Message("StreamsGroupMemberMetadataKey", _MEMBER),
        Message(
            "StreamsGroupMemberMetadataValue",
            (
                Field("instanceId", "string", nullable=0),
                Field("rackId", "string", nullable=0),
                Field("clientId", "string"),
                Field("clientHost", "string"),
                Field("rebalanceTimeoutMs", "int32"),
                Field("topologyEpoch", "int32"),
                Field("processId", "string"),
                Field(
                    "userEndpoint", "struct", (Field("host", "string"), Field("port", "uint16")), nullable=0
                ),
                Field("clientTags", "[]struct", _PAIR),
            ),
            flexible=0,
        ),
    ),
    20: (
        Message("StreamsGroupTargetAssignmentMetadataKey", _GROUP),
        Message(
            "StreamsGroupTargetAssignmentMetadataValue",
            (Field("assignmentEpoch", "int32"), Field("assignmentTimestamp", "int64", tag=0)),
            flexible=0,
        ),
    ),
    21: (
        Message("StreamsGroupTargetAssignmentMemberKey", _MEMBER),
        Message(
            "StreamsGroupTargetAssignmentMemberValue",
            (
                Field("activeTasks", "[]struct", _TASKS),
                Field("standbyTasks", "[]struct", _TASKS),
                Field("warmupTasks", "[]struct", _TASKS),
            ),
            flexible=0,
        ),
    ),
    22: (
        Message("StreamsGroupCurrentMemberAssignmentKey", _MEMBER),
        Message(
            "StreamsGroupCurrentMemberAssignmentValue",
            (
                Field("memberEpoch", "int32"),
                Field("previousMemberEpoch", "int32"),
                Field("state", "int8"),
                Field("activeTasks", "[]struct", _STAMPED_TASKS),
                Field("standbyTasks", "[]struct", _STAMPED_TASKS),
                Field("warmupTasks", "[]struct", _STAMPED_TASKS),
                Field("activeTasksPendingRevocation", "[]struct", _STAMPED_TASKS),
                Field("standbyTasksPendingRevocation", "[]struct", _STAMPED_TASKS),
                Field("warmupTasksPendingRevocation", "[]struct", _STAMPED_TASKS),
            ),
            flexible=0,
        ),
    ),
    23: (
        Message("StreamsGroupTopologyKey", _GROUP),
        Message(
            "StreamsGroupTopologyValue",
            (
                Field("epoch", "int32"),
                Field(
                    "subtopologies",
                    "[]struct",
                    (
                        Field("subtopologyId", "string"),
                        Field("sourceTopics", "[]string"),
                        Field("sourceTopicRegex", "[]string"),
                        Field("stateChangelogTopics", "[]struct", _TOPIC_INFO),
                        Field("repartitionSinkTopics", "[]string"),
                        Field("repartitionSourceTopics", "[]struct", _TOPIC_INFO),
                        Field(
                            "copartitionGroups",
                            "[]struct",
                            (
                                Field("sourceTopics", "[]int16"),
                                Field("sourceTopicRegex", "[]int16"),
                                Field("repartitionSourceTopics", "[]int16"),
                            ),
                        ),
                    ),
                ),
            ),
            flexible=0,
        ),
    ),
}
