"""The messages of `__cluster_metadata` by their type."""

from __future__ import annotations

from magicbyte.internal_topics.schema import Field, Message

__all__ = ["METADATA"]

METADATA = {
    0: Message(
        "RegisterBrokerRecord",
        (
            Field("brokerId", "int32"),
            Field("isMigratingZkBroker", "bool", since=2),
            Field("incarnationId", "uuid"),
            Field("brokerEpoch", "int64"),
            Field(
                "endPoints",
                "[]struct",
                (
                    Field("name", "string"),
                    Field("host", "string"),
                    Field("port", "uint16"),
                    Field("securityProtocol", "int16"),
                ),
            ),
            Field(
                "features",
                "[]struct",
                (
                    Field("name", "string"),
                    Field("minSupportedVersion", "int16"),
                    Field("maxSupportedVersion", "int16"),
                ),
            ),
            Field("rack", "string", nullable=0),
            Field("fenced", "bool"),
            Field("inControlledShutdown", "bool", since=1),
            Field("logDirs", "[]uuid", since=3, tag=0),
            Field("cordonedLogDirs", "[]uuid", since=4, nullable=4, tag=1, default=None),
        ),
        last_version=4,
        flexible=0,
    ),
    1: Message(
        "UnregisterBrokerRecord", (Field("brokerId", "int32"), Field("brokerEpoch", "int64")), flexible=0
    ),
    2: Message("TopicRecord", (Field("name", "string"), Field("topicId", "uuid")), flexible=0),
    3: Message(
        "PartitionRecord",
        (
            Field("partitionId", "int32"),
            Field("topicId", "uuid"),
            Field("replicas", "[]int32"),
            Field("isr", "[]int32"),
            Field("removingReplicas", "[]int32"),
            Field("addingReplicas", "[]int32"),
            Field("leader", "int32"),
            Field("leaderRecoveryState", "int8", tag=0),
            Field("leaderEpoch", "int32"),
            Field("partitionEpoch", "int32"),
            Field("directories", "[]uuid", since=1),
            Field("eligibleLeaderReplicas", "[]int32", since=2, nullable=2, tag=1, default=None),
            Field("lastKnownElr", "[]int32", since=2, nullable=2, tag=2, default=None),
        ),
        last_version=2,
        flexible=0,
    ),
    4: Message(
        "ConfigRecord",
        (
            Field("resourceType", "int8"),
            Field("resourceName", "string"),
            Field("name", "string"),
            Field("value", "string", nullable=0),
        ),
        flexible=0,
    ),
    5: Message(
        "PartitionChangeRecord",
        (
            Field("partitionId", "int32"),
            Field("topicId", "uuid"),
            Field("isr", "[]int32", nullable=0, tag=0, default=None),
            Field("leader", "int32", tag=1, default=-2),
            Field("replicas", "[]int32", nullable=0, tag=2, default=None),
            Field("removingReplicas", "[]int32", nullable=0, tag=3, default=None),
            Field("addingReplicas", "[]int32", nullable=0, tag=4, default=None),
            Field("leaderRecoveryState", "int8", tag=5, default=-1),
            Field("directories", "[]uuid", since=1, nullable=1, tag=8, default=None),
            Field("eligibleLeaderReplicas", "[]int32", since=2, nullable=2, tag=6, default=None),
            Field("lastKnownElr", "[]int32", since=2, nullable=2, tag=7, default=None),
        ),
        last_version=2,
        flexible=0,
    ),
    7: Message("FenceBrokerRecord", (Field("id", "int32"), Field("epoch", "int64")), flexible=0),
    8: Message("UnfenceBrokerRecord", (Field("id", "int32"), Field("epoch", "int64")), flexible=0),
    9: Message("RemoveTopicRecord", (Field("topicId", "uuid"),), flexible=0),
    10: Message(
        "DelegationTokenRecord",
        (
            Field("owner", "string"),
            Field("requester", "string"),
            Field("renewers", "[]string"),
            Field("issueTimestamp", "int64"),
            Field("maxTimestamp", "int64"),
            Field("expirationTimestamp", "int64"),
            Field("tokenId", "string"),
        ),
        flexible=0,
    ),
    11: Message(
        "UserScramCredentialRecord",
        (
            Field("name", "string"),
            Field("mechanism", "int8"),
            Field("salt", "bytes"),
            Field("storedKey", "bytes"),
            Field("serverKey", "bytes"),
            Field("iterations", "int32"),
        ),
        flexible=0,
    ),
    12: Message("FeatureLevelRecord", (Field("name", "string"), Field("featureLevel", "int16")), flexible=0),
    14: Message(
        "ClientQuotaRecord",
        (
            Field(
                "entity",
                "[]struct",
                (Field("entityType", "string"), Field("entityName", "string", nullable=0)),
            ),
            Field("key", "string"),
            Field("value", "float64"),
            Field("remove", "bool"),
        ),
        flexible=0,
    ),
    15: Message(
        "ProducerIdsRecord",
        (Field("brokerId", "int32"), Field("brokerEpoch", "int64"), Field("nextProducerId", "int64")),
        flexible=0,
    ),
    17: Message(
        "BrokerRegistrationChangeRecord",
        (
            Field("brokerId", "int32"),
            Field("brokerEpoch", "int64"),
            Field("fenced", "int8", tag=0),
            Field("inControlledShutdown", "int8", since=1, tag=1),
            Field("logDirs", "[]uuid", since=2, tag=2),
            Field("cordonedLogDirs", "[]uuid", since=3, nullable=3, tag=3, default=None),
        ),
        last_version=3,
        flexible=0,
    ),
    18: Message(
        "AccessControlEntryRecord",
        (
            Field("id", "uuid"),
            Field("resourceType", "int8"),
            Field("resourceName", "string"),
            Field("patternType", "int8"),
            Field("principal", "string"),
            Field("host", "string"),
            Field("operation", "int8"),
            Field("permissionType", "int8"),
        ),
        flexible=0,
    ),
    19: Message("RemoveAccessControlEntryRecord", (Field("id", "uuid"),), flexible=0),
    20: Message("NoOpRecord", (), flexible=0),
    21: Message("ZkMigrationStateRecord", (Field("zkMigrationState", "int8"),), flexible=0),
    22: Message(
        "RemoveUserScramCredentialRecord", (Field("name", "string"), Field("mechanism", "int8")), flexible=0
    ),
    23: Message(
        "BeginTransactionRecord", (Field("name", "string", nullable=0, tag=0, default=None),), flexible=0
    ),
    24: Message("EndTransactionRecord", (), flexible=0),
    25: Message(
        "AbortTransactionRecord", (Field("reason", "string", nullable=0, tag=0, default=None),), flexible=0
    ),
    26: Message("RemoveDelegationTokenRecord", (Field("tokenId", "string"),), flexible=0),
    27: Message(
        "RegisterControllerRecord",
        (
            Field("controllerId", "int32"),
            Field("incarnationId", "uuid"),
            Field("zkMigrationReady", "bool"),
            Field(
                "endPoints",
                "[]struct",
                (
                    Field("name", "string"),
                    Field("host", "string"),
                    Field("port", "uint16"),
                    Field("securityProtocol", "int16"),
                ),
            ),
            Field(
                "features",
                "[]struct",
                (
                    Field("name", "string"),
                    Field("minSupportedVersion", "int16"),
                    Field("maxSupportedVersion", "int16"),
                ),
            ),
        ),
        flexible=0,
    ),
    28: Message("ClearElrRecord", (Field("topicName", "string"),), flexible=0),
}
