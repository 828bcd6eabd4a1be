"""The bodies of requests and responses, for type checkers. Written by `scripts/message_types.py`.

`encode_request` takes a `FetchRequest`, `decode_response` returns a `FetchResponse`, and `encode_response`
takes a `FetchResponseInput`, which a `FetchResponse` is, too. The name of a structure begins with that of its
message.

Any field can be left out of a body that is written. Its default is false, 0, empty, or the one in its
comment. An array is a list or a tuple. A body that was read has all fields of its version, and a tagged field
if the frame has it. A comment names the versions of a field that not all versions have.
"""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from typing_extensions import Buffer, ReadOnly

class _Flexible(TypedDict, total=False):
    _unknownTaggedFields: dict[int, bytes]

class _FlexibleInput(TypedDict, total=False):
    _unknownTaggedFields: ReadOnly[dict[int, bytes]]

class ProduceRequest(_Flexible, total=False):
    acks: int
    timeoutMs: int
    topicData: Sequence[ProduceRequestTopicProduceData]
    transactionalId: str | None  # versions 3+, default None

class ProduceRequestTopicProduceData(_Flexible, total=False):
    name: str  # versions 0-12
    partitionData: Sequence[ProduceRequestPartitionProduceData]
    topicId: str  # versions 13+

class ProduceRequestPartitionProduceData(_Flexible, total=False):
    index: int
    records: Buffer | None

class ProduceResponse(_Flexible):
    responses: list[ProduceResponseTopicProduceResponse]
    throttleTimeMs: NotRequired[int]  # versions 1+
    nodeEndpoints: NotRequired[list[ProduceResponseNodeEndpoint]]  # versions 10+, tagged

class ProduceResponseInput(_FlexibleInput, total=False):
    responses: ReadOnly[Sequence[ProduceResponseTopicProduceResponseInput]]
    throttleTimeMs: ReadOnly[int]
    nodeEndpoints: ReadOnly[Sequence[ProduceResponseNodeEndpointInput]]

class ProduceResponseTopicProduceResponse(_Flexible):
    name: NotRequired[str]  # versions 0-12
    partitionResponses: list[ProduceResponsePartitionProduceResponse]
    topicId: NotRequired[str]  # versions 13+

class ProduceResponseTopicProduceResponseInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitionResponses: ReadOnly[Sequence[ProduceResponsePartitionProduceResponseInput]]
    topicId: ReadOnly[str]

class ProduceResponsePartitionProduceResponse(_Flexible):
    index: int
    errorCode: int
    baseOffset: int
    logAppendTimeMs: NotRequired[int]  # versions 2+
    logStartOffset: NotRequired[int]  # versions 5+
    recordErrors: NotRequired[list[ProduceResponseBatchIndexAndErrorMessage]]  # versions 8+
    errorMessage: NotRequired[str | None]  # versions 8+
    currentLeader: NotRequired[ProduceResponseLeaderIdAndEpoch]  # versions 10+, tagged

class ProduceResponsePartitionProduceResponseInput(_FlexibleInput, total=False):
    index: ReadOnly[int]
    errorCode: ReadOnly[int]
    baseOffset: ReadOnly[int]
    logAppendTimeMs: ReadOnly[int]  # default -1
    logStartOffset: ReadOnly[int]  # default -1
    recordErrors: ReadOnly[Sequence[ProduceResponseBatchIndexAndErrorMessageInput]]
    errorMessage: ReadOnly[str | None]  # default None
    currentLeader: ReadOnly[ProduceResponseLeaderIdAndEpochInput]

class ProduceResponseBatchIndexAndErrorMessage(_Flexible):
    batchIndex: int
    batchIndexErrorMessage: str | None

class ProduceResponseBatchIndexAndErrorMessageInput(_FlexibleInput, total=False):
    batchIndex: ReadOnly[int]
    batchIndexErrorMessage: ReadOnly[str | None]  # default None

class ProduceResponseLeaderIdAndEpoch(_Flexible):
    leaderId: int
    leaderEpoch: int

class ProduceResponseLeaderIdAndEpochInput(_FlexibleInput, total=False):
    leaderId: ReadOnly[int]  # default -1
    leaderEpoch: ReadOnly[int]  # default -1

class ProduceResponseNodeEndpoint(_Flexible):
    nodeId: int
    host: str
    port: int
    rack: str | None

class ProduceResponseNodeEndpointInput(_FlexibleInput, total=False):
    nodeId: ReadOnly[int]
    host: ReadOnly[str]
    port: ReadOnly[int]
    rack: ReadOnly[str | None]  # default None

class FetchRequest(_Flexible, total=False):
    replicaId: int  # versions 0-14, default -1
    maxWaitMs: int
    minBytes: int
    topics: Sequence[FetchRequestFetchTopic]
    maxBytes: int  # versions 3+, default 2147483647
    isolationLevel: int  # versions 4+
    sessionId: int  # versions 7+
    sessionEpoch: int  # versions 7+, default -1
    forgottenTopicsData: Sequence[FetchRequestForgottenTopic]  # versions 7+
    rackId: str  # versions 11+
    clusterId: str | None  # versions 12+, default None
    replicaState: FetchRequestReplicaState  # versions 15+

class FetchRequestFetchTopic(_Flexible, total=False):
    topic: str  # versions 0-12
    partitions: Sequence[FetchRequestFetchPartition]
    topicId: str  # versions 13+

class FetchRequestFetchPartition(_Flexible, total=False):
    partition: int
    fetchOffset: int
    partitionMaxBytes: int
    logStartOffset: int  # versions 5+, default -1
    currentLeaderEpoch: int  # versions 9+, default -1
    lastFetchedEpoch: int  # versions 12+, default -1
    replicaDirectoryId: str  # versions 17+
    highWatermark: int  # versions 18+, default 9223372036854775807

class FetchRequestForgottenTopic(_Flexible, total=False):
    topic: str  # versions 7-12
    partitions: Sequence[int]
    topicId: str  # versions 13+

class FetchRequestReplicaState(_Flexible, total=False):
    replicaId: int  # default -1
    replicaEpoch: int  # default -1

class FetchResponse(_Flexible):
    responses: list[FetchResponseFetchableTopicResponse]
    throttleTimeMs: NotRequired[int]  # versions 1+
    errorCode: NotRequired[int]  # versions 7+
    sessionId: NotRequired[int]  # versions 7+
    nodeEndpoints: NotRequired[list[FetchResponseNodeEndpoint]]  # versions 16+, tagged

class FetchResponseInput(_FlexibleInput, total=False):
    responses: ReadOnly[Sequence[FetchResponseFetchableTopicResponseInput]]
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    sessionId: ReadOnly[int]
    nodeEndpoints: ReadOnly[Sequence[FetchResponseNodeEndpointInput]]

class FetchResponseFetchableTopicResponse(_Flexible):
    topic: NotRequired[str]  # versions 0-12
    partitions: list[FetchResponsePartitionData]
    topicId: NotRequired[str]  # versions 13+

class FetchResponseFetchableTopicResponseInput(_FlexibleInput, total=False):
    topic: ReadOnly[str]
    partitions: ReadOnly[Sequence[FetchResponsePartitionDataInput]]
    topicId: ReadOnly[str]

class FetchResponsePartitionData(_Flexible):
    partitionIndex: int
    errorCode: int
    highWatermark: int
    records: bytes | None
    lastStableOffset: NotRequired[int]  # versions 4+
    abortedTransactions: NotRequired[list[FetchResponseAbortedTransaction] | None]  # versions 4+
    logStartOffset: NotRequired[int]  # versions 5+
    preferredReadReplica: NotRequired[int]  # versions 11+
    divergingEpoch: NotRequired[FetchResponseEpochEndOffset]  # versions 12+, tagged
    currentLeader: NotRequired[FetchResponseLeaderIdAndEpoch]  # versions 12+, tagged
    snapshotId: NotRequired[FetchResponseSnapshotId]  # versions 12+, tagged

class FetchResponsePartitionDataInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]
    highWatermark: ReadOnly[int]
    records: ReadOnly[Buffer | None]
    lastStableOffset: ReadOnly[int]  # default -1
    abortedTransactions: ReadOnly[Sequence[FetchResponseAbortedTransactionInput] | None]
    logStartOffset: ReadOnly[int]  # default -1
    preferredReadReplica: ReadOnly[int]  # default -1
    divergingEpoch: ReadOnly[FetchResponseEpochEndOffsetInput]
    currentLeader: ReadOnly[FetchResponseLeaderIdAndEpochInput]
    snapshotId: ReadOnly[FetchResponseSnapshotIdInput]

class FetchResponseAbortedTransaction(_Flexible):
    producerId: int
    firstOffset: int

class FetchResponseAbortedTransactionInput(_FlexibleInput, total=False):
    producerId: ReadOnly[int]
    firstOffset: ReadOnly[int]

class FetchResponseEpochEndOffset(_Flexible):
    epoch: int
    endOffset: int

class FetchResponseEpochEndOffsetInput(_FlexibleInput, total=False):
    epoch: ReadOnly[int]  # default -1
    endOffset: ReadOnly[int]  # default -1

class FetchResponseLeaderIdAndEpoch(_Flexible):
    leaderId: int
    leaderEpoch: int

class FetchResponseLeaderIdAndEpochInput(_FlexibleInput, total=False):
    leaderId: ReadOnly[int]  # default -1
    leaderEpoch: ReadOnly[int]  # default -1

class FetchResponseSnapshotId(_Flexible):
    endOffset: int
    epoch: int

class FetchResponseSnapshotIdInput(_FlexibleInput, total=False):
    endOffset: ReadOnly[int]  # default -1
    epoch: ReadOnly[int]  # default -1

class FetchResponseNodeEndpoint(_Flexible):
    nodeId: int
    host: str
    port: int
    rack: str | None

class FetchResponseNodeEndpointInput(_FlexibleInput, total=False):
    nodeId: ReadOnly[int]
    host: ReadOnly[str]
    port: ReadOnly[int]
    rack: ReadOnly[str | None]  # default None

class ListOffsetsRequest(_Flexible, total=False):
    replicaId: int
    topics: Sequence[ListOffsetsRequestListOffsetsTopic]
    isolationLevel: int  # versions 2+
    timeoutMs: int  # versions 10+

class ListOffsetsRequestListOffsetsTopic(_Flexible, total=False):
    name: str
    partitions: Sequence[ListOffsetsRequestListOffsetsPartition]

class ListOffsetsRequestListOffsetsPartition(_Flexible, total=False):
    partitionIndex: int
    timestamp: int
    maxNumOffsets: int  # version 0, default 1
    currentLeaderEpoch: int  # versions 4+, default -1

class ListOffsetsResponse(_Flexible):
    topics: list[ListOffsetsResponseListOffsetsTopicResponse]
    throttleTimeMs: NotRequired[int]  # versions 2+

class ListOffsetsResponseInput(_FlexibleInput, total=False):
    topics: ReadOnly[Sequence[ListOffsetsResponseListOffsetsTopicResponseInput]]
    throttleTimeMs: ReadOnly[int]

class ListOffsetsResponseListOffsetsTopicResponse(_Flexible):
    name: str
    partitions: list[ListOffsetsResponseListOffsetsPartitionResponse]

class ListOffsetsResponseListOffsetsTopicResponseInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[Sequence[ListOffsetsResponseListOffsetsPartitionResponseInput]]

class ListOffsetsResponseListOffsetsPartitionResponse(_Flexible):
    partitionIndex: int
    errorCode: int
    oldStyleOffsets: NotRequired[list[int]]  # version 0
    timestamp: NotRequired[int]  # versions 1+
    offset: NotRequired[int]  # versions 1+
    leaderEpoch: NotRequired[int]  # versions 4+

class ListOffsetsResponseListOffsetsPartitionResponseInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]
    oldStyleOffsets: ReadOnly[Sequence[int]]
    timestamp: ReadOnly[int]  # default -1
    offset: ReadOnly[int]  # default -1
    leaderEpoch: ReadOnly[int]  # default -1

class MetadataRequest(_Flexible, total=False):
    topics: Sequence[MetadataRequestMetadataRequestTopic] | None
    allowAutoTopicCreation: bool  # versions 4+, default True
    includeClusterAuthorizedOperations: bool  # versions 8-10
    includeTopicAuthorizedOperations: bool  # versions 8+

class MetadataRequestMetadataRequestTopic(_Flexible, total=False):
    name: str | None
    topicId: str  # versions 10+

class MetadataResponse(_Flexible):
    brokers: list[MetadataResponseMetadataResponseBroker]
    topics: list[MetadataResponseMetadataResponseTopic]
    controllerId: NotRequired[int]  # versions 1+
    clusterId: NotRequired[str | None]  # versions 2+
    throttleTimeMs: NotRequired[int]  # versions 3+
    clusterAuthorizedOperations: NotRequired[int]  # versions 8-10
    errorCode: NotRequired[int]  # versions 13+

class MetadataResponseInput(_FlexibleInput, total=False):
    brokers: ReadOnly[Sequence[MetadataResponseMetadataResponseBrokerInput]]
    topics: ReadOnly[Sequence[MetadataResponseMetadataResponseTopicInput]]
    controllerId: ReadOnly[int]  # default -1
    clusterId: ReadOnly[str | None]  # default None
    throttleTimeMs: ReadOnly[int]
    clusterAuthorizedOperations: ReadOnly[int]  # default -2147483648
    errorCode: ReadOnly[int]

class MetadataResponseMetadataResponseBroker(_Flexible):
    nodeId: int
    host: str
    port: int
    rack: NotRequired[str | None]  # versions 1+

class MetadataResponseMetadataResponseBrokerInput(_FlexibleInput, total=False):
    nodeId: ReadOnly[int]
    host: ReadOnly[str]
    port: ReadOnly[int]
    rack: ReadOnly[str | None]  # default None

class MetadataResponseMetadataResponseTopic(_Flexible):
    errorCode: int
    name: str | None
    partitions: list[MetadataResponseMetadataResponsePartition]
    isInternal: NotRequired[bool]  # versions 1+
    topicAuthorizedOperations: NotRequired[int]  # versions 8+
    topicId: NotRequired[str]  # versions 10+

class MetadataResponseMetadataResponseTopicInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    name: ReadOnly[str | None]
    partitions: ReadOnly[Sequence[MetadataResponseMetadataResponsePartitionInput]]
    isInternal: ReadOnly[bool]
    topicAuthorizedOperations: ReadOnly[int]  # default -2147483648
    topicId: ReadOnly[str]

class MetadataResponseMetadataResponsePartition(_Flexible):
    errorCode: int
    partitionIndex: int
    leaderId: int
    replicaNodes: list[int]
    isrNodes: list[int]
    offlineReplicas: NotRequired[list[int]]  # versions 5+
    leaderEpoch: NotRequired[int]  # versions 7+

class MetadataResponseMetadataResponsePartitionInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    partitionIndex: ReadOnly[int]
    leaderId: ReadOnly[int]
    replicaNodes: ReadOnly[Sequence[int]]
    isrNodes: ReadOnly[Sequence[int]]
    offlineReplicas: ReadOnly[Sequence[int]]
    leaderEpoch: ReadOnly[int]  # default -1

class LeaderAndIsrRequest(_Flexible, total=False):
    controllerId: int
    controllerEpoch: int
    ungroupedPartitionStates: Sequence[LeaderAndIsrRequestLeaderAndIsrPartitionState]  # versions 0-1
    liveLeaders: Sequence[LeaderAndIsrRequestLeaderAndIsrLiveLeader]
    brokerEpoch: int  # versions 2+, default -1
    topicStates: Sequence[LeaderAndIsrRequestLeaderAndIsrTopicState]  # versions 2+
    type: int  # versions 5+
    isKRaftController: bool  # versions 7+

class LeaderAndIsrRequestLeaderAndIsrPartitionState(_Flexible, total=False):
    topicName: str  # versions 0-1
    partitionIndex: int
    controllerEpoch: int
    leader: int
    leaderEpoch: int
    isr: Sequence[int]
    partitionEpoch: int
    replicas: Sequence[int]
    isNew: bool  # versions 1+
    addingReplicas: Sequence[int]  # versions 3+
    removingReplicas: Sequence[int]  # versions 3+
    leaderRecoveryState: int  # versions 6+

class LeaderAndIsrRequestLeaderAndIsrLiveLeader(_Flexible, total=False):
    brokerId: int
    hostName: str
    port: int

class LeaderAndIsrRequestLeaderAndIsrTopicState(_Flexible, total=False):
    topicName: str
    partitionStates: Sequence[LeaderAndIsrRequestLeaderAndIsrPartitionState]
    topicId: str  # versions 5+

class LeaderAndIsrResponse(_Flexible):
    errorCode: int
    partitionErrors: NotRequired[list[LeaderAndIsrResponseLeaderAndIsrPartitionError]]  # versions 0-4
    topics: NotRequired[list[LeaderAndIsrResponseLeaderAndIsrTopicError]]  # versions 5+

class LeaderAndIsrResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    partitionErrors: ReadOnly[Sequence[LeaderAndIsrResponseLeaderAndIsrPartitionErrorInput]]
    topics: ReadOnly[Sequence[LeaderAndIsrResponseLeaderAndIsrTopicErrorInput]]

class LeaderAndIsrResponseLeaderAndIsrPartitionError(_Flexible):
    topicName: NotRequired[str]  # versions 0-4
    partitionIndex: int
    errorCode: int

class LeaderAndIsrResponseLeaderAndIsrPartitionErrorInput(_FlexibleInput, total=False):
    topicName: ReadOnly[str]
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]

class LeaderAndIsrResponseLeaderAndIsrTopicError(_Flexible):
    topicId: str
    partitionErrors: list[LeaderAndIsrResponseLeaderAndIsrPartitionError]

class LeaderAndIsrResponseLeaderAndIsrTopicErrorInput(_FlexibleInput, total=False):
    topicId: ReadOnly[str]
    partitionErrors: ReadOnly[Sequence[LeaderAndIsrResponseLeaderAndIsrPartitionErrorInput]]

class StopReplicaRequest(_Flexible, total=False):
    controllerId: int
    controllerEpoch: int
    deletePartitions: bool  # versions 0-2
    ungroupedPartitions: Sequence[StopReplicaRequestStopReplicaPartitionV0]  # version 0
    brokerEpoch: int  # versions 1+, default -1
    topics: Sequence[StopReplicaRequestStopReplicaTopicV1]  # versions 1-2
    topicStates: Sequence[StopReplicaRequestStopReplicaTopicState]  # versions 3+
    isKRaftController: bool  # versions 4+

class StopReplicaRequestStopReplicaPartitionV0(TypedDict, total=False):
    topicName: str
    partitionIndex: int

class StopReplicaRequestStopReplicaTopicV1(_Flexible, total=False):
    name: str
    partitionIndexes: Sequence[int]

class StopReplicaRequestStopReplicaTopicState(_Flexible, total=False):
    topicName: str
    partitionStates: Sequence[StopReplicaRequestStopReplicaPartitionState]

class StopReplicaRequestStopReplicaPartitionState(_Flexible, total=False):
    partitionIndex: int
    leaderEpoch: int  # default -1
    deletePartition: bool

class StopReplicaResponse(_Flexible):
    errorCode: int
    partitionErrors: list[StopReplicaResponseStopReplicaPartitionError]

class StopReplicaResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    partitionErrors: ReadOnly[Sequence[StopReplicaResponseStopReplicaPartitionErrorInput]]

class StopReplicaResponseStopReplicaPartitionError(_Flexible):
    topicName: str
    partitionIndex: int
    errorCode: int

class StopReplicaResponseStopReplicaPartitionErrorInput(_FlexibleInput, total=False):
    topicName: ReadOnly[str]
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]

class UpdateMetadataRequest(_Flexible, total=False):
    controllerId: int
    controllerEpoch: int
    ungroupedPartitionStates: Sequence[UpdateMetadataRequestUpdateMetadataPartitionState]  # versions 0-4
    liveBrokers: Sequence[UpdateMetadataRequestUpdateMetadataBroker]
    brokerEpoch: int  # versions 5+, default -1
    topicStates: Sequence[UpdateMetadataRequestUpdateMetadataTopicState]  # versions 5+
    isKRaftController: bool  # versions 8+
    type: int  # versions 8+

class UpdateMetadataRequestUpdateMetadataPartitionState(_Flexible, total=False):
    topicName: str  # versions 0-4
    partitionIndex: int
    controllerEpoch: int
    leader: int
    leaderEpoch: int
    isr: Sequence[int]
    zkVersion: int
    replicas: Sequence[int]
    offlineReplicas: Sequence[int]  # versions 4+

class UpdateMetadataRequestUpdateMetadataBroker(_Flexible, total=False):
    id: int
    v0Host: str  # version 0
    v0Port: int  # version 0
    endpoints: Sequence[UpdateMetadataRequestUpdateMetadataEndpoint]  # versions 1+
    rack: str | None  # versions 2+

class UpdateMetadataRequestUpdateMetadataEndpoint(_Flexible, total=False):
    port: int
    host: str
    securityProtocol: int
    listener: str  # versions 3+

class UpdateMetadataRequestUpdateMetadataTopicState(_Flexible, total=False):
    topicName: str
    partitionStates: Sequence[UpdateMetadataRequestUpdateMetadataPartitionState]
    topicId: str  # versions 7+

class UpdateMetadataResponse(_Flexible):
    errorCode: int

class UpdateMetadataResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]

class ControlledShutdownRequest(_Flexible, total=False):
    brokerId: int
    brokerEpoch: int  # versions 2+, default -1

class ControlledShutdownResponse(_Flexible):
    errorCode: int
    remainingPartitions: list[ControlledShutdownResponseRemainingPartition]

class ControlledShutdownResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    remainingPartitions: ReadOnly[Sequence[ControlledShutdownResponseRemainingPartitionInput]]

class ControlledShutdownResponseRemainingPartition(_Flexible):
    topicName: str
    partitionIndex: int

class ControlledShutdownResponseRemainingPartitionInput(_FlexibleInput, total=False):
    topicName: ReadOnly[str]
    partitionIndex: ReadOnly[int]

class OffsetCommitRequest(_Flexible, total=False):
    groupId: str
    topics: Sequence[OffsetCommitRequestOffsetCommitRequestTopic]
    generationIdOrMemberEpoch: int  # versions 1+, default -1
    memberId: str  # versions 1+
    retentionTimeMs: int  # versions 2-4, default -1
    groupInstanceId: str | None  # versions 7+, default None

class OffsetCommitRequestOffsetCommitRequestTopic(_Flexible, total=False):
    name: str  # versions 0-9
    partitions: Sequence[OffsetCommitRequestOffsetCommitRequestPartition]
    topicId: str  # versions 10+

class OffsetCommitRequestOffsetCommitRequestPartition(_Flexible, total=False):
    partitionIndex: int
    committedOffset: int
    committedMetadata: str | None
    commitTimestamp: int  # version 1, default -1
    committedLeaderEpoch: int  # versions 6+, default -1

class OffsetCommitResponse(_Flexible):
    topics: list[OffsetCommitResponseOffsetCommitResponseTopic]
    throttleTimeMs: NotRequired[int]  # versions 3+

class OffsetCommitResponseInput(_FlexibleInput, total=False):
    topics: ReadOnly[Sequence[OffsetCommitResponseOffsetCommitResponseTopicInput]]
    throttleTimeMs: ReadOnly[int]

class OffsetCommitResponseOffsetCommitResponseTopic(_Flexible):
    name: NotRequired[str]  # versions 0-9
    partitions: list[OffsetCommitResponseOffsetCommitResponsePartition]
    topicId: NotRequired[str]  # versions 10+

class OffsetCommitResponseOffsetCommitResponseTopicInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[Sequence[OffsetCommitResponseOffsetCommitResponsePartitionInput]]
    topicId: ReadOnly[str]

class OffsetCommitResponseOffsetCommitResponsePartition(_Flexible):
    partitionIndex: int
    errorCode: int

class OffsetCommitResponseOffsetCommitResponsePartitionInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]

class OffsetFetchRequest(_Flexible, total=False):
    groupId: str  # versions 0-7
    topics: Sequence[OffsetFetchRequestOffsetFetchRequestTopic] | None  # versions 0-7
    requireStable: bool  # versions 7+
    groups: Sequence[OffsetFetchRequestOffsetFetchRequestGroup]  # versions 8+

class OffsetFetchRequestOffsetFetchRequestTopic(_Flexible, total=False):
    name: str
    partitionIndexes: Sequence[int]

class OffsetFetchRequestOffsetFetchRequestGroup(_Flexible, total=False):
    groupId: str
    topics: Sequence[OffsetFetchRequestOffsetFetchRequestTopics] | None
    memberId: str | None  # versions 9+, default None
    memberEpoch: int  # versions 9+, default -1

class OffsetFetchRequestOffsetFetchRequestTopics(_Flexible, total=False):
    name: str  # versions 8-9
    partitionIndexes: Sequence[int]
    topicId: str  # versions 10+

class OffsetFetchResponse(_Flexible):
    topics: NotRequired[list[OffsetFetchResponseOffsetFetchResponseTopic]]  # versions 0-7
    errorCode: NotRequired[int]  # versions 2-7
    throttleTimeMs: NotRequired[int]  # versions 3+
    groups: NotRequired[list[OffsetFetchResponseOffsetFetchResponseGroup]]  # versions 8+

class OffsetFetchResponseInput(_FlexibleInput, total=False):
    topics: ReadOnly[Sequence[OffsetFetchResponseOffsetFetchResponseTopicInput]]
    errorCode: ReadOnly[int]
    throttleTimeMs: ReadOnly[int]
    groups: ReadOnly[Sequence[OffsetFetchResponseOffsetFetchResponseGroupInput]]

class OffsetFetchResponseOffsetFetchResponseTopic(_Flexible):
    name: str
    partitions: list[OffsetFetchResponseOffsetFetchResponsePartition]

class OffsetFetchResponseOffsetFetchResponseTopicInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[Sequence[OffsetFetchResponseOffsetFetchResponsePartitionInput]]

class OffsetFetchResponseOffsetFetchResponsePartition(_Flexible):
    partitionIndex: int
    committedOffset: int
    metadata: str | None
    errorCode: int
    committedLeaderEpoch: NotRequired[int]  # versions 5+

class OffsetFetchResponseOffsetFetchResponsePartitionInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    committedOffset: ReadOnly[int]
    metadata: ReadOnly[str | None]
    errorCode: ReadOnly[int]
    committedLeaderEpoch: ReadOnly[int]  # default -1

class OffsetFetchResponseOffsetFetchResponseGroup(_Flexible):
    groupId: str
    topics: list[OffsetFetchResponseOffsetFetchResponseTopics]
    errorCode: int

class OffsetFetchResponseOffsetFetchResponseGroupInput(_FlexibleInput, total=False):
    groupId: ReadOnly[str]
    topics: ReadOnly[Sequence[OffsetFetchResponseOffsetFetchResponseTopicsInput]]
    errorCode: ReadOnly[int]

class OffsetFetchResponseOffsetFetchResponseTopics(_Flexible):
    name: NotRequired[str]  # versions 8-9
    partitions: list[OffsetFetchResponseOffsetFetchResponsePartitions]
    topicId: NotRequired[str]  # versions 10+

class OffsetFetchResponseOffsetFetchResponseTopicsInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[Sequence[OffsetFetchResponseOffsetFetchResponsePartitionsInput]]
    topicId: ReadOnly[str]

class OffsetFetchResponseOffsetFetchResponsePartitions(_Flexible):
    partitionIndex: int
    committedOffset: int
    committedLeaderEpoch: int
    metadata: str | None
    errorCode: int

class OffsetFetchResponseOffsetFetchResponsePartitionsInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    committedOffset: ReadOnly[int]
    committedLeaderEpoch: ReadOnly[int]  # default -1
    metadata: ReadOnly[str | None]
    errorCode: ReadOnly[int]

class FindCoordinatorRequest(_Flexible, total=False):
    key: str  # versions 0-3
    keyType: int  # versions 1+
    coordinatorKeys: Sequence[str]  # versions 4+

class FindCoordinatorResponse(_Flexible):
    errorCode: NotRequired[int]  # versions 0-3
    nodeId: NotRequired[int]  # versions 0-3
    host: NotRequired[str]  # versions 0-3
    port: NotRequired[int]  # versions 0-3
    throttleTimeMs: NotRequired[int]  # versions 1+
    errorMessage: NotRequired[str | None]  # versions 1-3
    coordinators: NotRequired[list[FindCoordinatorResponseCoordinator]]  # versions 4+

class FindCoordinatorResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    nodeId: ReadOnly[int]
    host: ReadOnly[str]
    port: ReadOnly[int]
    throttleTimeMs: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    coordinators: ReadOnly[Sequence[FindCoordinatorResponseCoordinatorInput]]

class FindCoordinatorResponseCoordinator(_Flexible):
    key: str
    nodeId: int
    host: str
    port: int
    errorCode: int
    errorMessage: str | None

class FindCoordinatorResponseCoordinatorInput(_FlexibleInput, total=False):
    key: ReadOnly[str]
    nodeId: ReadOnly[int]
    host: ReadOnly[str]
    port: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]

class JoinGroupRequest(_Flexible, total=False):
    groupId: str
    sessionTimeoutMs: int
    memberId: str
    protocolType: str
    protocols: Sequence[JoinGroupRequestJoinGroupRequestProtocol]
    rebalanceTimeoutMs: int  # versions 1+, default -1
    groupInstanceId: str | None  # versions 5+, default None
    reason: str | None  # versions 8+, default None

class JoinGroupRequestJoinGroupRequestProtocol(_Flexible, total=False):
    name: str
    metadata: Buffer

class JoinGroupResponse(_Flexible):
    errorCode: int
    generationId: int
    protocolName: str | None
    leader: str
    memberId: str
    members: list[JoinGroupResponseJoinGroupResponseMember]
    throttleTimeMs: NotRequired[int]  # versions 2+
    protocolType: NotRequired[str | None]  # versions 7+
    skipAssignment: NotRequired[bool]  # versions 9+

class JoinGroupResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    generationId: ReadOnly[int]  # default -1
    protocolName: ReadOnly[str | None]
    leader: ReadOnly[str]
    memberId: ReadOnly[str]
    members: ReadOnly[Sequence[JoinGroupResponseJoinGroupResponseMemberInput]]
    throttleTimeMs: ReadOnly[int]
    protocolType: ReadOnly[str | None]  # default None
    skipAssignment: ReadOnly[bool]

class JoinGroupResponseJoinGroupResponseMember(_Flexible):
    memberId: str
    metadata: bytes
    groupInstanceId: NotRequired[str | None]  # versions 5+

class JoinGroupResponseJoinGroupResponseMemberInput(_FlexibleInput, total=False):
    memberId: ReadOnly[str]
    metadata: ReadOnly[Buffer]
    groupInstanceId: ReadOnly[str | None]  # default None

class HeartbeatRequest(_Flexible, total=False):
    groupId: str
    generationId: int
    memberId: str
    groupInstanceId: str | None  # versions 3+, default None

class HeartbeatResponse(_Flexible):
    errorCode: int
    throttleTimeMs: NotRequired[int]  # versions 1+

class HeartbeatResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    throttleTimeMs: ReadOnly[int]

class LeaveGroupRequest(_Flexible, total=False):
    groupId: str
    memberId: str  # versions 0-2
    members: Sequence[LeaveGroupRequestMemberIdentity]  # versions 3+

class LeaveGroupRequestMemberIdentity(_Flexible, total=False):
    memberId: str
    groupInstanceId: str | None  # default None
    reason: str | None  # versions 5+, default None

class LeaveGroupResponse(_Flexible):
    errorCode: int
    throttleTimeMs: NotRequired[int]  # versions 1+
    members: NotRequired[list[LeaveGroupResponseMemberResponse]]  # versions 3+

class LeaveGroupResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    throttleTimeMs: ReadOnly[int]
    members: ReadOnly[Sequence[LeaveGroupResponseMemberResponseInput]]

class LeaveGroupResponseMemberResponse(_Flexible):
    memberId: str
    groupInstanceId: str | None
    errorCode: int

class LeaveGroupResponseMemberResponseInput(_FlexibleInput, total=False):
    memberId: ReadOnly[str]
    groupInstanceId: ReadOnly[str | None]
    errorCode: ReadOnly[int]

class SyncGroupRequest(_Flexible, total=False):
    groupId: str
    generationId: int
    memberId: str
    assignments: Sequence[SyncGroupRequestSyncGroupRequestAssignment]
    groupInstanceId: str | None  # versions 3+, default None
    protocolType: str | None  # versions 5+, default None
    protocolName: str | None  # versions 5+, default None

class SyncGroupRequestSyncGroupRequestAssignment(_Flexible, total=False):
    memberId: str
    assignment: Buffer

class SyncGroupResponse(_Flexible):
    errorCode: int
    assignment: bytes
    throttleTimeMs: NotRequired[int]  # versions 1+
    protocolType: NotRequired[str | None]  # versions 5+
    protocolName: NotRequired[str | None]  # versions 5+

class SyncGroupResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    assignment: ReadOnly[Buffer]
    throttleTimeMs: ReadOnly[int]
    protocolType: ReadOnly[str | None]  # default None
    protocolName: ReadOnly[str | None]  # default None

class DescribeGroupsRequest(_Flexible, total=False):
    groups: Sequence[str]
    includeAuthorizedOperations: bool  # versions 3+

class DescribeGroupsResponse(_Flexible):
    groups: list[DescribeGroupsResponseDescribedGroup]
    throttleTimeMs: NotRequired[int]  # versions 1+

class DescribeGroupsResponseInput(_FlexibleInput, total=False):
    groups: ReadOnly[Sequence[DescribeGroupsResponseDescribedGroupInput]]
    throttleTimeMs: ReadOnly[int]

class DescribeGroupsResponseDescribedGroup(_Flexible):
    errorCode: int
    groupId: str
    groupState: str
    protocolType: str
    protocolData: str
    members: list[DescribeGroupsResponseDescribedGroupMember]
    authorizedOperations: NotRequired[int]  # versions 3+
    errorMessage: NotRequired[str | None]  # versions 6+

class DescribeGroupsResponseDescribedGroupInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    groupId: ReadOnly[str]
    groupState: ReadOnly[str]
    protocolType: ReadOnly[str]
    protocolData: ReadOnly[str]
    members: ReadOnly[Sequence[DescribeGroupsResponseDescribedGroupMemberInput]]
    authorizedOperations: ReadOnly[int]  # default -2147483648
    errorMessage: ReadOnly[str | None]  # default None

class DescribeGroupsResponseDescribedGroupMember(_Flexible):
    memberId: str
    clientId: str
    clientHost: str
    memberMetadata: bytes
    memberAssignment: bytes
    groupInstanceId: NotRequired[str | None]  # versions 4+

class DescribeGroupsResponseDescribedGroupMemberInput(_FlexibleInput, total=False):
    memberId: ReadOnly[str]
    clientId: ReadOnly[str]
    clientHost: ReadOnly[str]
    memberMetadata: ReadOnly[Buffer]
    memberAssignment: ReadOnly[Buffer]
    groupInstanceId: ReadOnly[str | None]  # default None

class ListGroupsRequest(_Flexible, total=False):
    statesFilter: Sequence[str]  # versions 4+
    typesFilter: Sequence[str]  # versions 5+

class ListGroupsResponse(_Flexible):
    errorCode: int
    groups: list[ListGroupsResponseListedGroup]
    throttleTimeMs: NotRequired[int]  # versions 1+

class ListGroupsResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    groups: ReadOnly[Sequence[ListGroupsResponseListedGroupInput]]
    throttleTimeMs: ReadOnly[int]

class ListGroupsResponseListedGroup(_Flexible):
    groupId: str
    protocolType: str
    groupState: NotRequired[str]  # versions 4+
    groupType: NotRequired[str]  # versions 5+

class ListGroupsResponseListedGroupInput(_FlexibleInput, total=False):
    groupId: ReadOnly[str]
    protocolType: ReadOnly[str]
    groupState: ReadOnly[str]
    groupType: ReadOnly[str]

class SaslHandshakeRequest(TypedDict, total=False):
    mechanism: str

class SaslHandshakeResponse(TypedDict):
    errorCode: int
    mechanisms: list[str]

class SaslHandshakeResponseInput(TypedDict, total=False):
    errorCode: ReadOnly[int]
    mechanisms: ReadOnly[Sequence[str]]

class ApiVersionsRequest(_Flexible, total=False):
    clientSoftwareName: str  # versions 3+
    clientSoftwareVersion: str  # versions 3+
    clusterId: str | None  # versions 5+, default None
    nodeId: int  # versions 5+, default -1

class ApiVersionsResponse(_Flexible):
    errorCode: int
    apiKeys: list[ApiVersionsResponseApiVersion]
    throttleTimeMs: NotRequired[int]  # versions 1+
    supportedFeatures: NotRequired[list[ApiVersionsResponseSupportedFeatureKey]]  # versions 3+, tagged
    finalizedFeaturesEpoch: NotRequired[int]  # versions 3+, tagged
    finalizedFeatures: NotRequired[list[ApiVersionsResponseFinalizedFeatureKey]]  # versions 3+, tagged
    zkMigrationReady: NotRequired[bool]  # versions 3+, tagged

class ApiVersionsResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    apiKeys: ReadOnly[Sequence[ApiVersionsResponseApiVersionInput]]
    throttleTimeMs: ReadOnly[int]
    supportedFeatures: ReadOnly[Sequence[ApiVersionsResponseSupportedFeatureKeyInput]]
    finalizedFeaturesEpoch: ReadOnly[int]  # default -1
    finalizedFeatures: ReadOnly[Sequence[ApiVersionsResponseFinalizedFeatureKeyInput]]
    zkMigrationReady: ReadOnly[bool]

class ApiVersionsResponseApiVersion(_Flexible):
    apiKey: int
    minVersion: int
    maxVersion: int

class ApiVersionsResponseApiVersionInput(_FlexibleInput, total=False):
    apiKey: ReadOnly[int]
    minVersion: ReadOnly[int]
    maxVersion: ReadOnly[int]

class ApiVersionsResponseSupportedFeatureKey(_Flexible):
    name: str
    minVersion: int
    maxVersion: int

class ApiVersionsResponseSupportedFeatureKeyInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    minVersion: ReadOnly[int]
    maxVersion: ReadOnly[int]

class ApiVersionsResponseFinalizedFeatureKey(_Flexible):
    name: str
    maxVersionLevel: int
    minVersionLevel: int

class ApiVersionsResponseFinalizedFeatureKeyInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    maxVersionLevel: ReadOnly[int]
    minVersionLevel: ReadOnly[int]

class CreateTopicsRequest(_Flexible, total=False):
    topics: Sequence[CreateTopicsRequestCreatableTopic]
    timeoutMs: int  # default 60000
    validateOnly: bool  # versions 1+

class CreateTopicsRequestCreatableTopic(_Flexible, total=False):
    name: str
    numPartitions: int
    replicationFactor: int
    assignments: Sequence[CreateTopicsRequestCreatableReplicaAssignment]
    configs: Sequence[CreateTopicsRequestCreatableTopicConfig]

class CreateTopicsRequestCreatableReplicaAssignment(_Flexible, total=False):
    partitionIndex: int
    brokerIds: Sequence[int]

class CreateTopicsRequestCreatableTopicConfig(_Flexible, total=False):
    name: str
    value: str | None

class CreateTopicsResponse(_Flexible):
    topics: list[CreateTopicsResponseCreatableTopicResult]
    throttleTimeMs: NotRequired[int]  # versions 2+

class CreateTopicsResponseInput(_FlexibleInput, total=False):
    topics: ReadOnly[Sequence[CreateTopicsResponseCreatableTopicResultInput]]
    throttleTimeMs: ReadOnly[int]

class CreateTopicsResponseCreatableTopicResult(_Flexible):
    name: str
    errorCode: int
    errorMessage: NotRequired[str | None]  # versions 1+
    topicConfigErrorCode: NotRequired[int]  # versions 5+, tagged
    numPartitions: NotRequired[int]  # versions 5+
    replicationFactor: NotRequired[int]  # versions 5+
    configs: NotRequired[list[CreateTopicsResponseCreatableTopicConfigs] | None]  # versions 5+
    topicId: NotRequired[str]  # versions 7+

class CreateTopicsResponseCreatableTopicResultInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    topicConfigErrorCode: ReadOnly[int]
    numPartitions: ReadOnly[int]  # default -1
    replicationFactor: ReadOnly[int]  # default -1
    configs: ReadOnly[Sequence[CreateTopicsResponseCreatableTopicConfigsInput] | None]
    topicId: ReadOnly[str]

class CreateTopicsResponseCreatableTopicConfigs(_Flexible):
    name: str
    value: str | None
    readOnly: bool
    configSource: int
    isSensitive: bool

class CreateTopicsResponseCreatableTopicConfigsInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    value: ReadOnly[str | None]
    readOnly: ReadOnly[bool]
    configSource: ReadOnly[int]  # default -1
    isSensitive: ReadOnly[bool]

class DeleteTopicsRequest(_Flexible, total=False):
    topicNames: Sequence[str]  # versions 0-5
    timeoutMs: int
    topics: Sequence[DeleteTopicsRequestDeleteTopicState]  # versions 6+

class DeleteTopicsRequestDeleteTopicState(_Flexible, total=False):
    name: str | None  # default None
    topicId: str

class DeleteTopicsResponse(_Flexible):
    responses: list[DeleteTopicsResponseDeletableTopicResult]
    throttleTimeMs: NotRequired[int]  # versions 1+

class DeleteTopicsResponseInput(_FlexibleInput, total=False):
    responses: ReadOnly[Sequence[DeleteTopicsResponseDeletableTopicResultInput]]
    throttleTimeMs: ReadOnly[int]

class DeleteTopicsResponseDeletableTopicResult(_Flexible):
    name: str | None
    errorCode: int
    errorMessage: NotRequired[str | None]  # versions 5+
    topicId: NotRequired[str]  # versions 6+

class DeleteTopicsResponseDeletableTopicResultInput(_FlexibleInput, total=False):
    name: ReadOnly[str | None]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    topicId: ReadOnly[str]

class DeleteRecordsRequest(_Flexible, total=False):
    topics: Sequence[DeleteRecordsRequestDeleteRecordsTopic]
    timeoutMs: int

class DeleteRecordsRequestDeleteRecordsTopic(_Flexible, total=False):
    name: str
    partitions: Sequence[DeleteRecordsRequestDeleteRecordsPartition]

class DeleteRecordsRequestDeleteRecordsPartition(_Flexible, total=False):
    partitionIndex: int
    offset: int

class DeleteRecordsResponse(_Flexible):
    throttleTimeMs: int
    topics: list[DeleteRecordsResponseDeleteRecordsTopicResult]

class DeleteRecordsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    topics: ReadOnly[Sequence[DeleteRecordsResponseDeleteRecordsTopicResultInput]]

class DeleteRecordsResponseDeleteRecordsTopicResult(_Flexible):
    name: str
    partitions: list[DeleteRecordsResponseDeleteRecordsPartitionResult]

class DeleteRecordsResponseDeleteRecordsTopicResultInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[Sequence[DeleteRecordsResponseDeleteRecordsPartitionResultInput]]

class DeleteRecordsResponseDeleteRecordsPartitionResult(_Flexible):
    partitionIndex: int
    lowWatermark: int
    errorCode: int

class DeleteRecordsResponseDeleteRecordsPartitionResultInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    lowWatermark: ReadOnly[int]
    errorCode: ReadOnly[int]

class InitProducerIdRequest(_Flexible, total=False):
    transactionalId: str | None
    transactionTimeoutMs: int
    producerId: int  # versions 3+, default -1
    producerEpoch: int  # versions 3+, default -1
    enable2Pc: bool  # versions 6+
    keepPreparedTxn: bool  # versions 6+

class InitProducerIdResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    producerId: int
    producerEpoch: int
    ongoingTxnProducerId: NotRequired[int]  # versions 6+
    ongoingTxnProducerEpoch: NotRequired[int]  # versions 6+

class InitProducerIdResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    producerId: ReadOnly[int]  # default -1
    producerEpoch: ReadOnly[int]
    ongoingTxnProducerId: ReadOnly[int]  # default -1
    ongoingTxnProducerEpoch: ReadOnly[int]  # default -1

class OffsetForLeaderEpochRequest(_Flexible, total=False):
    topics: Sequence[OffsetForLeaderEpochRequestOffsetForLeaderTopic]
    replicaId: int  # versions 3+, default -2

class OffsetForLeaderEpochRequestOffsetForLeaderTopic(_Flexible, total=False):
    topic: str
    partitions: Sequence[OffsetForLeaderEpochRequestOffsetForLeaderPartition]

class OffsetForLeaderEpochRequestOffsetForLeaderPartition(_Flexible, total=False):
    partition: int
    leaderEpoch: int
    currentLeaderEpoch: int  # versions 2+, default -1

class OffsetForLeaderEpochResponse(_Flexible):
    topics: list[OffsetForLeaderEpochResponseOffsetForLeaderTopicResult]
    throttleTimeMs: NotRequired[int]  # versions 2+

class OffsetForLeaderEpochResponseInput(_FlexibleInput, total=False):
    topics: ReadOnly[Sequence[OffsetForLeaderEpochResponseOffsetForLeaderTopicResultInput]]
    throttleTimeMs: ReadOnly[int]

class OffsetForLeaderEpochResponseOffsetForLeaderTopicResult(_Flexible):
    topic: str
    partitions: list[OffsetForLeaderEpochResponseEpochEndOffset]

class OffsetForLeaderEpochResponseOffsetForLeaderTopicResultInput(_FlexibleInput, total=False):
    topic: ReadOnly[str]
    partitions: ReadOnly[Sequence[OffsetForLeaderEpochResponseEpochEndOffsetInput]]

class OffsetForLeaderEpochResponseEpochEndOffset(_Flexible):
    errorCode: int
    partition: int
    endOffset: int
    leaderEpoch: NotRequired[int]  # versions 1+

class OffsetForLeaderEpochResponseEpochEndOffsetInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    partition: ReadOnly[int]
    endOffset: ReadOnly[int]  # default -1
    leaderEpoch: ReadOnly[int]  # default -1

class AddPartitionsToTxnRequest(_Flexible, total=False):
    v3AndBelowTransactionalId: str  # versions 0-3
    v3AndBelowProducerId: int  # versions 0-3
    v3AndBelowProducerEpoch: int  # versions 0-3
    v3AndBelowTopics: Sequence[AddPartitionsToTxnRequestAddPartitionsToTxnTopic]  # versions 0-3
    transactions: Sequence[AddPartitionsToTxnRequestAddPartitionsToTxnTransaction]  # versions 4+

class AddPartitionsToTxnRequestAddPartitionsToTxnTopic(_Flexible, total=False):
    name: str
    partitions: Sequence[int]

class AddPartitionsToTxnRequestAddPartitionsToTxnTransaction(_Flexible, total=False):
    transactionalId: str
    producerId: int
    producerEpoch: int
    verifyOnly: bool
    topics: Sequence[AddPartitionsToTxnRequestAddPartitionsToTxnTopic]

class AddPartitionsToTxnResponse(_Flexible):
    throttleTimeMs: int
    resultsByTopicV3AndBelow: NotRequired[list[AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult]]  # versions 0-3
    errorCode: NotRequired[int]  # versions 4+
    resultsByTransaction: NotRequired[list[AddPartitionsToTxnResponseAddPartitionsToTxnResult]]  # versions 4+

class AddPartitionsToTxnResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    resultsByTopicV3AndBelow: ReadOnly[Sequence[AddPartitionsToTxnResponseAddPartitionsToTxnTopicResultInput]]
    errorCode: ReadOnly[int]
    resultsByTransaction: ReadOnly[Sequence[AddPartitionsToTxnResponseAddPartitionsToTxnResultInput]]

class AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult(_Flexible):
    name: str
    resultsByPartition: list[AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult]

class AddPartitionsToTxnResponseAddPartitionsToTxnTopicResultInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    resultsByPartition: ReadOnly[Sequence[AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResultInput]]

class AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult(_Flexible):
    partitionIndex: int
    partitionErrorCode: int

class AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResultInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    partitionErrorCode: ReadOnly[int]

class AddPartitionsToTxnResponseAddPartitionsToTxnResult(_Flexible):
    transactionalId: str
    topicResults: list[AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult]

class AddPartitionsToTxnResponseAddPartitionsToTxnResultInput(_FlexibleInput, total=False):
    transactionalId: ReadOnly[str]
    topicResults: ReadOnly[Sequence[AddPartitionsToTxnResponseAddPartitionsToTxnTopicResultInput]]

class AddOffsetsToTxnRequest(_Flexible, total=False):
    transactionalId: str
    producerId: int
    producerEpoch: int
    groupId: str

class AddOffsetsToTxnResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int

class AddOffsetsToTxnResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]

class EndTxnRequest(_Flexible, total=False):
    transactionalId: str
    producerId: int
    producerEpoch: int
    committed: bool

class EndTxnResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    producerId: NotRequired[int]  # versions 5+
    producerEpoch: NotRequired[int]  # versions 5+

class EndTxnResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    producerId: ReadOnly[int]  # default -1
    producerEpoch: ReadOnly[int]  # default -1

class WriteTxnMarkersRequest(_Flexible, total=False):
    markers: Sequence[WriteTxnMarkersRequestWritableTxnMarker]

class WriteTxnMarkersRequestWritableTxnMarker(_Flexible, total=False):
    producerId: int
    producerEpoch: int
    transactionResult: bool
    topics: Sequence[WriteTxnMarkersRequestWritableTxnMarkerTopic]
    coordinatorEpoch: int
    transactionVersion: int  # versions 2+

class WriteTxnMarkersRequestWritableTxnMarkerTopic(_Flexible, total=False):
    name: str
    partitionIndexes: Sequence[int]

class WriteTxnMarkersResponse(_Flexible):
    markers: list[WriteTxnMarkersResponseWritableTxnMarkerResult]

class WriteTxnMarkersResponseInput(_FlexibleInput, total=False):
    markers: ReadOnly[Sequence[WriteTxnMarkersResponseWritableTxnMarkerResultInput]]

class WriteTxnMarkersResponseWritableTxnMarkerResult(_Flexible):
    producerId: int
    topics: list[WriteTxnMarkersResponseWritableTxnMarkerTopicResult]

class WriteTxnMarkersResponseWritableTxnMarkerResultInput(_FlexibleInput, total=False):
    producerId: ReadOnly[int]
    topics: ReadOnly[Sequence[WriteTxnMarkersResponseWritableTxnMarkerTopicResultInput]]

class WriteTxnMarkersResponseWritableTxnMarkerTopicResult(_Flexible):
    name: str
    partitions: list[WriteTxnMarkersResponseWritableTxnMarkerPartitionResult]

class WriteTxnMarkersResponseWritableTxnMarkerTopicResultInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[Sequence[WriteTxnMarkersResponseWritableTxnMarkerPartitionResultInput]]

class WriteTxnMarkersResponseWritableTxnMarkerPartitionResult(_Flexible):
    partitionIndex: int
    errorCode: int

class WriteTxnMarkersResponseWritableTxnMarkerPartitionResultInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]

class TxnOffsetCommitRequest(_Flexible, total=False):
    transactionalId: str
    groupId: str
    producerId: int
    producerEpoch: int
    topics: Sequence[TxnOffsetCommitRequestTxnOffsetCommitRequestTopic]
    generationIdOrMemberEpoch: int  # versions 3+, default -1
    memberId: str  # versions 3+
    groupInstanceId: str | None  # versions 3+, default None

class TxnOffsetCommitRequestTxnOffsetCommitRequestTopic(_Flexible, total=False):
    name: str  # versions 0-5
    partitions: Sequence[TxnOffsetCommitRequestTxnOffsetCommitRequestPartition]
    topicId: str  # versions 6+

class TxnOffsetCommitRequestTxnOffsetCommitRequestPartition(_Flexible, total=False):
    partitionIndex: int
    committedOffset: int
    committedMetadata: str | None
    committedLeaderEpoch: int  # versions 2+, default -1

class TxnOffsetCommitResponse(_Flexible):
    throttleTimeMs: int
    topics: list[TxnOffsetCommitResponseTxnOffsetCommitResponseTopic]

class TxnOffsetCommitResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    topics: ReadOnly[Sequence[TxnOffsetCommitResponseTxnOffsetCommitResponseTopicInput]]

class TxnOffsetCommitResponseTxnOffsetCommitResponseTopic(_Flexible):
    name: NotRequired[str]  # versions 0-5
    partitions: list[TxnOffsetCommitResponseTxnOffsetCommitResponsePartition]
    topicId: NotRequired[str]  # versions 6+

class TxnOffsetCommitResponseTxnOffsetCommitResponseTopicInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[Sequence[TxnOffsetCommitResponseTxnOffsetCommitResponsePartitionInput]]
    topicId: ReadOnly[str]

class TxnOffsetCommitResponseTxnOffsetCommitResponsePartition(_Flexible):
    partitionIndex: int
    errorCode: int

class TxnOffsetCommitResponseTxnOffsetCommitResponsePartitionInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]

class DescribeAclsRequest(_Flexible, total=False):
    resourceTypeFilter: int
    resourceNameFilter: str | None
    principalFilter: str | None
    hostFilter: str | None
    operation: int
    permissionType: int
    patternTypeFilter: int  # versions 1+, default 3

class DescribeAclsResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    resources: list[DescribeAclsResponseDescribeAclsResource]

class DescribeAclsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    resources: ReadOnly[Sequence[DescribeAclsResponseDescribeAclsResourceInput]]

class DescribeAclsResponseDescribeAclsResource(_Flexible):
    resourceType: int
    resourceName: str
    acls: list[DescribeAclsResponseAclDescription]
    patternType: NotRequired[int]  # versions 1+

class DescribeAclsResponseDescribeAclsResourceInput(_FlexibleInput, total=False):
    resourceType: ReadOnly[int]
    resourceName: ReadOnly[str]
    acls: ReadOnly[Sequence[DescribeAclsResponseAclDescriptionInput]]
    patternType: ReadOnly[int]  # default 3

class DescribeAclsResponseAclDescription(_Flexible):
    principal: str
    host: str
    operation: int
    permissionType: int

class DescribeAclsResponseAclDescriptionInput(_FlexibleInput, total=False):
    principal: ReadOnly[str]
    host: ReadOnly[str]
    operation: ReadOnly[int]
    permissionType: ReadOnly[int]

class CreateAclsRequest(_Flexible, total=False):
    creations: Sequence[CreateAclsRequestAclCreation]

class CreateAclsRequestAclCreation(_Flexible, total=False):
    resourceType: int
    resourceName: str
    principal: str
    host: str
    operation: int
    permissionType: int
    resourcePatternType: int  # versions 1+, default 3

class CreateAclsResponse(_Flexible):
    throttleTimeMs: int
    results: list[CreateAclsResponseAclCreationResult]

class CreateAclsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    results: ReadOnly[Sequence[CreateAclsResponseAclCreationResultInput]]

class CreateAclsResponseAclCreationResult(_Flexible):
    errorCode: int
    errorMessage: str | None

class CreateAclsResponseAclCreationResultInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]

class DeleteAclsRequest(_Flexible, total=False):
    filters: Sequence[DeleteAclsRequestDeleteAclsFilter]

class DeleteAclsRequestDeleteAclsFilter(_Flexible, total=False):
    resourceTypeFilter: int
    resourceNameFilter: str | None
    principalFilter: str | None
    hostFilter: str | None
    operation: int
    permissionType: int
    patternTypeFilter: int  # versions 1+, default 3

class DeleteAclsResponse(_Flexible):
    throttleTimeMs: int
    filterResults: list[DeleteAclsResponseDeleteAclsFilterResult]

class DeleteAclsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    filterResults: ReadOnly[Sequence[DeleteAclsResponseDeleteAclsFilterResultInput]]

class DeleteAclsResponseDeleteAclsFilterResult(_Flexible):
    errorCode: int
    errorMessage: str | None
    matchingAcls: list[DeleteAclsResponseDeleteAclsMatchingAcl]

class DeleteAclsResponseDeleteAclsFilterResultInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    matchingAcls: ReadOnly[Sequence[DeleteAclsResponseDeleteAclsMatchingAclInput]]

class DeleteAclsResponseDeleteAclsMatchingAcl(_Flexible):
    errorCode: int
    errorMessage: str | None
    resourceType: int
    resourceName: str
    principal: str
    host: str
    operation: int
    permissionType: int
    patternType: NotRequired[int]  # versions 1+

class DeleteAclsResponseDeleteAclsMatchingAclInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    resourceType: ReadOnly[int]
    resourceName: ReadOnly[str]
    principal: ReadOnly[str]
    host: ReadOnly[str]
    operation: ReadOnly[int]
    permissionType: ReadOnly[int]
    patternType: ReadOnly[int]  # default 3

class DescribeConfigsRequest(_Flexible, total=False):
    resources: Sequence[DescribeConfigsRequestDescribeConfigsResource]
    includeSynonyms: bool  # versions 1+
    includeDocumentation: bool  # versions 3+

class DescribeConfigsRequestDescribeConfigsResource(_Flexible, total=False):
    resourceType: int
    resourceName: str
    configurationKeys: Sequence[str] | None

class DescribeConfigsResponse(_Flexible):
    throttleTimeMs: int
    results: list[DescribeConfigsResponseDescribeConfigsResult]

class DescribeConfigsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    results: ReadOnly[Sequence[DescribeConfigsResponseDescribeConfigsResultInput]]

class DescribeConfigsResponseDescribeConfigsResult(_Flexible):
    errorCode: int
    errorMessage: str | None
    resourceType: int
    resourceName: str
    configs: list[DescribeConfigsResponseDescribeConfigsResourceResult]

class DescribeConfigsResponseDescribeConfigsResultInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    resourceType: ReadOnly[int]
    resourceName: ReadOnly[str]
    configs: ReadOnly[Sequence[DescribeConfigsResponseDescribeConfigsResourceResultInput]]

class DescribeConfigsResponseDescribeConfigsResourceResult(_Flexible):
    name: str
    value: str | None
    readOnly: bool
    isDefault: NotRequired[bool]  # version 0
    isSensitive: bool
    configSource: NotRequired[int]  # versions 1+
    synonyms: NotRequired[list[DescribeConfigsResponseDescribeConfigsSynonym]]  # versions 1+
    configType: NotRequired[int]  # versions 3+
    documentation: NotRequired[str | None]  # versions 3+

class DescribeConfigsResponseDescribeConfigsResourceResultInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    value: ReadOnly[str | None]
    readOnly: ReadOnly[bool]
    isDefault: ReadOnly[bool]
    isSensitive: ReadOnly[bool]
    configSource: ReadOnly[int]  # default -1
    synonyms: ReadOnly[Sequence[DescribeConfigsResponseDescribeConfigsSynonymInput]]
    configType: ReadOnly[int]
    documentation: ReadOnly[str | None]

class DescribeConfigsResponseDescribeConfigsSynonym(_Flexible):
    name: str
    value: str | None
    source: int

class DescribeConfigsResponseDescribeConfigsSynonymInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    value: ReadOnly[str | None]
    source: ReadOnly[int]

class AlterConfigsRequest(_Flexible, total=False):
    resources: Sequence[AlterConfigsRequestAlterConfigsResource]
    validateOnly: bool

class AlterConfigsRequestAlterConfigsResource(_Flexible, total=False):
    resourceType: int
    resourceName: str
    configs: Sequence[AlterConfigsRequestAlterableConfig]

class AlterConfigsRequestAlterableConfig(_Flexible, total=False):
    name: str
    value: str | None

class AlterConfigsResponse(_Flexible):
    throttleTimeMs: int
    responses: list[AlterConfigsResponseAlterConfigsResourceResponse]

class AlterConfigsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    responses: ReadOnly[Sequence[AlterConfigsResponseAlterConfigsResourceResponseInput]]

class AlterConfigsResponseAlterConfigsResourceResponse(_Flexible):
    errorCode: int
    errorMessage: str | None
    resourceType: int
    resourceName: str

class AlterConfigsResponseAlterConfigsResourceResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    resourceType: ReadOnly[int]
    resourceName: ReadOnly[str]

class AlterReplicaLogDirsRequest(_Flexible, total=False):
    dirs: Sequence[AlterReplicaLogDirsRequestAlterReplicaLogDir]

class AlterReplicaLogDirsRequestAlterReplicaLogDir(_Flexible, total=False):
    path: str
    topics: Sequence[AlterReplicaLogDirsRequestAlterReplicaLogDirTopic]

class AlterReplicaLogDirsRequestAlterReplicaLogDirTopic(_Flexible, total=False):
    name: str
    partitions: Sequence[int]

class AlterReplicaLogDirsResponse(_Flexible):
    throttleTimeMs: int
    results: list[AlterReplicaLogDirsResponseAlterReplicaLogDirTopicResult]

class AlterReplicaLogDirsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    results: ReadOnly[Sequence[AlterReplicaLogDirsResponseAlterReplicaLogDirTopicResultInput]]

class AlterReplicaLogDirsResponseAlterReplicaLogDirTopicResult(_Flexible):
    topicName: str
    partitions: list[AlterReplicaLogDirsResponseAlterReplicaLogDirPartitionResult]

class AlterReplicaLogDirsResponseAlterReplicaLogDirTopicResultInput(_FlexibleInput, total=False):
    topicName: ReadOnly[str]
    partitions: ReadOnly[Sequence[AlterReplicaLogDirsResponseAlterReplicaLogDirPartitionResultInput]]

class AlterReplicaLogDirsResponseAlterReplicaLogDirPartitionResult(_Flexible):
    partitionIndex: int
    errorCode: int

class AlterReplicaLogDirsResponseAlterReplicaLogDirPartitionResultInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]

class DescribeLogDirsRequest(_Flexible, total=False):
    topics: Sequence[DescribeLogDirsRequestDescribableLogDirTopic] | None

class DescribeLogDirsRequestDescribableLogDirTopic(_Flexible, total=False):
    topic: str
    partitions: Sequence[int]

class DescribeLogDirsResponse(_Flexible):
    throttleTimeMs: int
    results: list[DescribeLogDirsResponseDescribeLogDirsResult]
    errorCode: NotRequired[int]  # versions 3+

class DescribeLogDirsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    results: ReadOnly[Sequence[DescribeLogDirsResponseDescribeLogDirsResultInput]]
    errorCode: ReadOnly[int]

class DescribeLogDirsResponseDescribeLogDirsResult(_Flexible):
    errorCode: int
    logDir: str
    topics: list[DescribeLogDirsResponseDescribeLogDirsTopic]
    totalBytes: NotRequired[int]  # versions 4+
    usableBytes: NotRequired[int]  # versions 4+
    isCordoned: NotRequired[bool]  # versions 5+

class DescribeLogDirsResponseDescribeLogDirsResultInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    logDir: ReadOnly[str]
    topics: ReadOnly[Sequence[DescribeLogDirsResponseDescribeLogDirsTopicInput]]
    totalBytes: ReadOnly[int]  # default -1
    usableBytes: ReadOnly[int]  # default -1
    isCordoned: ReadOnly[bool]

class DescribeLogDirsResponseDescribeLogDirsTopic(_Flexible):
    name: str
    partitions: list[DescribeLogDirsResponseDescribeLogDirsPartition]

class DescribeLogDirsResponseDescribeLogDirsTopicInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[Sequence[DescribeLogDirsResponseDescribeLogDirsPartitionInput]]

class DescribeLogDirsResponseDescribeLogDirsPartition(_Flexible):
    partitionIndex: int
    partitionSize: int
    offsetLag: int
    isFutureKey: bool

class DescribeLogDirsResponseDescribeLogDirsPartitionInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    partitionSize: ReadOnly[int]
    offsetLag: ReadOnly[int]
    isFutureKey: ReadOnly[bool]

class SaslAuthenticateRequest(_Flexible, total=False):
    authBytes: Buffer

class SaslAuthenticateResponse(_Flexible):
    errorCode: int
    errorMessage: str | None
    authBytes: bytes
    sessionLifetimeMs: NotRequired[int]  # versions 1+

class SaslAuthenticateResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    authBytes: ReadOnly[Buffer]
    sessionLifetimeMs: ReadOnly[int]

class CreatePartitionsRequest(_Flexible, total=False):
    topics: Sequence[CreatePartitionsRequestCreatePartitionsTopic]
    timeoutMs: int
    validateOnly: bool

class CreatePartitionsRequestCreatePartitionsTopic(_Flexible, total=False):
    name: str
    count: int
    assignments: Sequence[CreatePartitionsRequestCreatePartitionsAssignment] | None

class CreatePartitionsRequestCreatePartitionsAssignment(_Flexible, total=False):
    brokerIds: Sequence[int]

class CreatePartitionsResponse(_Flexible):
    throttleTimeMs: int
    results: list[CreatePartitionsResponseCreatePartitionsTopicResult]

class CreatePartitionsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    results: ReadOnly[Sequence[CreatePartitionsResponseCreatePartitionsTopicResultInput]]

class CreatePartitionsResponseCreatePartitionsTopicResult(_Flexible):
    name: str
    errorCode: int
    errorMessage: str | None

class CreatePartitionsResponseCreatePartitionsTopicResultInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None

class CreateDelegationTokenRequest(_Flexible, total=False):
    renewers: Sequence[CreateDelegationTokenRequestCreatableRenewers]
    maxLifetimeMs: int
    ownerPrincipalType: str | None  # versions 3+
    ownerPrincipalName: str | None  # versions 3+

class CreateDelegationTokenRequestCreatableRenewers(_Flexible, total=False):
    principalType: str
    principalName: str

class CreateDelegationTokenResponse(_Flexible):
    errorCode: int
    principalType: str
    principalName: str
    issueTimestampMs: int
    expiryTimestampMs: int
    maxTimestampMs: int
    tokenId: str
    hmac: bytes
    throttleTimeMs: int
    tokenRequesterPrincipalType: NotRequired[str]  # versions 3+
    tokenRequesterPrincipalName: NotRequired[str]  # versions 3+

class CreateDelegationTokenResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    principalType: ReadOnly[str]
    principalName: ReadOnly[str]
    issueTimestampMs: ReadOnly[int]
    expiryTimestampMs: ReadOnly[int]
    maxTimestampMs: ReadOnly[int]
    tokenId: ReadOnly[str]
    hmac: ReadOnly[Buffer]
    throttleTimeMs: ReadOnly[int]
    tokenRequesterPrincipalType: ReadOnly[str]
    tokenRequesterPrincipalName: ReadOnly[str]

class RenewDelegationTokenRequest(_Flexible, total=False):
    hmac: Buffer
    renewPeriodMs: int

class RenewDelegationTokenResponse(_Flexible):
    errorCode: int
    expiryTimestampMs: int
    throttleTimeMs: int

class RenewDelegationTokenResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    expiryTimestampMs: ReadOnly[int]
    throttleTimeMs: ReadOnly[int]

class ExpireDelegationTokenRequest(_Flexible, total=False):
    hmac: Buffer
    expiryTimePeriodMs: int

class ExpireDelegationTokenResponse(_Flexible):
    errorCode: int
    expiryTimestampMs: int
    throttleTimeMs: int

class ExpireDelegationTokenResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    expiryTimestampMs: ReadOnly[int]
    throttleTimeMs: ReadOnly[int]

class DescribeDelegationTokenRequest(_Flexible, total=False):
    owners: Sequence[DescribeDelegationTokenRequestDescribeDelegationTokenOwner] | None

class DescribeDelegationTokenRequestDescribeDelegationTokenOwner(_Flexible, total=False):
    principalType: str
    principalName: str

class DescribeDelegationTokenResponse(_Flexible):
    errorCode: int
    tokens: list[DescribeDelegationTokenResponseDescribedDelegationToken]
    throttleTimeMs: int

class DescribeDelegationTokenResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    tokens: ReadOnly[Sequence[DescribeDelegationTokenResponseDescribedDelegationTokenInput]]
    throttleTimeMs: ReadOnly[int]

class DescribeDelegationTokenResponseDescribedDelegationToken(_Flexible):
    principalType: str
    principalName: str
    issueTimestamp: int
    expiryTimestamp: int
    maxTimestamp: int
    tokenId: str
    hmac: bytes
    renewers: list[DescribeDelegationTokenResponseDescribedDelegationTokenRenewer]
    tokenRequesterPrincipalType: NotRequired[str]  # versions 3+
    tokenRequesterPrincipalName: NotRequired[str]  # versions 3+

class DescribeDelegationTokenResponseDescribedDelegationTokenInput(_FlexibleInput, total=False):
    principalType: ReadOnly[str]
    principalName: ReadOnly[str]
    issueTimestamp: ReadOnly[int]
    expiryTimestamp: ReadOnly[int]
    maxTimestamp: ReadOnly[int]
    tokenId: ReadOnly[str]
    hmac: ReadOnly[Buffer]
    renewers: ReadOnly[Sequence[DescribeDelegationTokenResponseDescribedDelegationTokenRenewerInput]]
    tokenRequesterPrincipalType: ReadOnly[str]
    tokenRequesterPrincipalName: ReadOnly[str]

class DescribeDelegationTokenResponseDescribedDelegationTokenRenewer(_Flexible):
    principalType: str
    principalName: str

class DescribeDelegationTokenResponseDescribedDelegationTokenRenewerInput(_FlexibleInput, total=False):
    principalType: ReadOnly[str]
    principalName: ReadOnly[str]

class DeleteGroupsRequest(_Flexible, total=False):
    groupsNames: Sequence[str]

class DeleteGroupsResponse(_Flexible):
    throttleTimeMs: int
    results: list[DeleteGroupsResponseDeletableGroupResult]

class DeleteGroupsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    results: ReadOnly[Sequence[DeleteGroupsResponseDeletableGroupResultInput]]

class DeleteGroupsResponseDeletableGroupResult(_Flexible):
    groupId: str
    errorCode: int
    errorMessage: NotRequired[str | None]  # versions 3+

class DeleteGroupsResponseDeletableGroupResultInput(_FlexibleInput, total=False):
    groupId: ReadOnly[str]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None

class ElectLeadersRequest(_Flexible, total=False):
    topicPartitions: Sequence[ElectLeadersRequestTopicPartitions] | None
    timeoutMs: int  # default 60000
    electionType: int  # versions 1+

class ElectLeadersRequestTopicPartitions(_Flexible, total=False):
    topic: str
    partitions: Sequence[int]

class ElectLeadersResponse(_Flexible):
    throttleTimeMs: int
    replicaElectionResults: list[ElectLeadersResponseReplicaElectionResult]
    errorCode: NotRequired[int]  # versions 1+

class ElectLeadersResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    replicaElectionResults: ReadOnly[Sequence[ElectLeadersResponseReplicaElectionResultInput]]
    errorCode: ReadOnly[int]

class ElectLeadersResponseReplicaElectionResult(_Flexible):
    topic: str
    partitionResult: list[ElectLeadersResponsePartitionResult]

class ElectLeadersResponseReplicaElectionResultInput(_FlexibleInput, total=False):
    topic: ReadOnly[str]
    partitionResult: ReadOnly[Sequence[ElectLeadersResponsePartitionResultInput]]

class ElectLeadersResponsePartitionResult(_Flexible):
    partitionId: int
    errorCode: int
    errorMessage: str | None

class ElectLeadersResponsePartitionResultInput(_FlexibleInput, total=False):
    partitionId: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]

class IncrementalAlterConfigsRequest(_Flexible, total=False):
    resources: Sequence[IncrementalAlterConfigsRequestAlterConfigsResource]
    validateOnly: bool

class IncrementalAlterConfigsRequestAlterConfigsResource(_Flexible, total=False):
    resourceType: int
    resourceName: str
    configs: Sequence[IncrementalAlterConfigsRequestAlterableConfig]

class IncrementalAlterConfigsRequestAlterableConfig(_Flexible, total=False):
    name: str
    configOperation: int
    value: str | None

class IncrementalAlterConfigsResponse(_Flexible):
    throttleTimeMs: int
    responses: list[IncrementalAlterConfigsResponseAlterConfigsResourceResponse]

class IncrementalAlterConfigsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    responses: ReadOnly[Sequence[IncrementalAlterConfigsResponseAlterConfigsResourceResponseInput]]

class IncrementalAlterConfigsResponseAlterConfigsResourceResponse(_Flexible):
    errorCode: int
    errorMessage: str | None
    resourceType: int
    resourceName: str

class IncrementalAlterConfigsResponseAlterConfigsResourceResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    resourceType: ReadOnly[int]
    resourceName: ReadOnly[str]

class AlterPartitionReassignmentsRequest(_Flexible, total=False):
    timeoutMs: int  # default 60000
    topics: Sequence[AlterPartitionReassignmentsRequestReassignableTopic]
    allowReplicationFactorChange: bool  # versions 1+, default True

class AlterPartitionReassignmentsRequestReassignableTopic(_Flexible, total=False):
    name: str
    partitions: Sequence[AlterPartitionReassignmentsRequestReassignablePartition]

class AlterPartitionReassignmentsRequestReassignablePartition(_Flexible, total=False):
    partitionIndex: int
    replicas: Sequence[int] | None  # default None

class AlterPartitionReassignmentsResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    responses: list[AlterPartitionReassignmentsResponseReassignableTopicResponse]
    allowReplicationFactorChange: NotRequired[bool]  # versions 1+

class AlterPartitionReassignmentsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    responses: ReadOnly[Sequence[AlterPartitionReassignmentsResponseReassignableTopicResponseInput]]
    allowReplicationFactorChange: ReadOnly[bool]  # default True

class AlterPartitionReassignmentsResponseReassignableTopicResponse(_Flexible):
    name: str
    partitions: list[AlterPartitionReassignmentsResponseReassignablePartitionResponse]

class AlterPartitionReassignmentsResponseReassignableTopicResponseInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[Sequence[AlterPartitionReassignmentsResponseReassignablePartitionResponseInput]]

class AlterPartitionReassignmentsResponseReassignablePartitionResponse(_Flexible):
    partitionIndex: int
    errorCode: int
    errorMessage: str | None

class AlterPartitionReassignmentsResponseReassignablePartitionResponseInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]

class ListPartitionReassignmentsRequest(_Flexible, total=False):
    timeoutMs: int  # default 60000
    topics: Sequence[ListPartitionReassignmentsRequestListPartitionReassignmentsTopics] | None  # default None

class ListPartitionReassignmentsRequestListPartitionReassignmentsTopics(_Flexible, total=False):
    name: str
    partitionIndexes: Sequence[int]

class ListPartitionReassignmentsResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    topics: list[ListPartitionReassignmentsResponseOngoingTopicReassignment]

class ListPartitionReassignmentsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    topics: ReadOnly[Sequence[ListPartitionReassignmentsResponseOngoingTopicReassignmentInput]]

class ListPartitionReassignmentsResponseOngoingTopicReassignment(_Flexible):
    name: str
    partitions: list[ListPartitionReassignmentsResponseOngoingPartitionReassignment]

class ListPartitionReassignmentsResponseOngoingTopicReassignmentInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[Sequence[ListPartitionReassignmentsResponseOngoingPartitionReassignmentInput]]

class ListPartitionReassignmentsResponseOngoingPartitionReassignment(_Flexible):
    partitionIndex: int
    replicas: list[int]
    addingReplicas: list[int]
    removingReplicas: list[int]

class ListPartitionReassignmentsResponseOngoingPartitionReassignmentInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    replicas: ReadOnly[Sequence[int]]
    addingReplicas: ReadOnly[Sequence[int]]
    removingReplicas: ReadOnly[Sequence[int]]

class OffsetDeleteRequest(TypedDict, total=False):
    groupId: str
    topics: Sequence[OffsetDeleteRequestOffsetDeleteRequestTopic]

class OffsetDeleteRequestOffsetDeleteRequestTopic(TypedDict, total=False):
    name: str
    partitions: Sequence[OffsetDeleteRequestOffsetDeleteRequestPartition]

class OffsetDeleteRequestOffsetDeleteRequestPartition(TypedDict, total=False):
    partitionIndex: int

class OffsetDeleteResponse(TypedDict):
    errorCode: int
    throttleTimeMs: int
    topics: list[OffsetDeleteResponseOffsetDeleteResponseTopic]

class OffsetDeleteResponseInput(TypedDict, total=False):
    errorCode: ReadOnly[int]
    throttleTimeMs: ReadOnly[int]
    topics: ReadOnly[Sequence[OffsetDeleteResponseOffsetDeleteResponseTopicInput]]

class OffsetDeleteResponseOffsetDeleteResponseTopic(TypedDict):
    name: str
    partitions: list[OffsetDeleteResponseOffsetDeleteResponsePartition]

class OffsetDeleteResponseOffsetDeleteResponseTopicInput(TypedDict, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[Sequence[OffsetDeleteResponseOffsetDeleteResponsePartitionInput]]

class OffsetDeleteResponseOffsetDeleteResponsePartition(TypedDict):
    partitionIndex: int
    errorCode: int

class OffsetDeleteResponseOffsetDeleteResponsePartitionInput(TypedDict, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]

class DescribeClientQuotasRequest(_Flexible, total=False):
    components: Sequence[DescribeClientQuotasRequestComponentData]
    strict: bool

class DescribeClientQuotasRequestComponentData(_Flexible, total=False):
    entityType: str
    matchType: int
    match: str | None

class DescribeClientQuotasResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    entries: list[DescribeClientQuotasResponseEntryData] | None

class DescribeClientQuotasResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    entries: ReadOnly[Sequence[DescribeClientQuotasResponseEntryDataInput] | None]

class DescribeClientQuotasResponseEntryData(_Flexible):
    entity: list[DescribeClientQuotasResponseEntityData]
    values: list[DescribeClientQuotasResponseValueData]

class DescribeClientQuotasResponseEntryDataInput(_FlexibleInput, total=False):
    entity: ReadOnly[Sequence[DescribeClientQuotasResponseEntityDataInput]]
    values: ReadOnly[Sequence[DescribeClientQuotasResponseValueDataInput]]

class DescribeClientQuotasResponseEntityData(_Flexible):
    entityType: str
    entityName: str | None

class DescribeClientQuotasResponseEntityDataInput(_FlexibleInput, total=False):
    entityType: ReadOnly[str]
    entityName: ReadOnly[str | None]

class DescribeClientQuotasResponseValueData(_Flexible):
    key: str
    value: float

class DescribeClientQuotasResponseValueDataInput(_FlexibleInput, total=False):
    key: ReadOnly[str]
    value: ReadOnly[float]

class AlterClientQuotasRequest(_Flexible, total=False):
    entries: Sequence[AlterClientQuotasRequestEntryData]
    validateOnly: bool

class AlterClientQuotasRequestEntryData(_Flexible, total=False):
    entity: Sequence[AlterClientQuotasRequestEntityData]
    ops: Sequence[AlterClientQuotasRequestOpData]

class AlterClientQuotasRequestEntityData(_Flexible, total=False):
    entityType: str
    entityName: str | None

class AlterClientQuotasRequestOpData(_Flexible, total=False):
    key: str
    value: float
    remove: bool

class AlterClientQuotasResponse(_Flexible):
    throttleTimeMs: int
    entries: list[AlterClientQuotasResponseEntryData]

class AlterClientQuotasResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    entries: ReadOnly[Sequence[AlterClientQuotasResponseEntryDataInput]]

class AlterClientQuotasResponseEntryData(_Flexible):
    errorCode: int
    errorMessage: str | None
    entity: list[AlterClientQuotasResponseEntityData]

class AlterClientQuotasResponseEntryDataInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    entity: ReadOnly[Sequence[AlterClientQuotasResponseEntityDataInput]]

class AlterClientQuotasResponseEntityData(_Flexible):
    entityType: str
    entityName: str | None

class AlterClientQuotasResponseEntityDataInput(_FlexibleInput, total=False):
    entityType: ReadOnly[str]
    entityName: ReadOnly[str | None]

class DescribeUserScramCredentialsRequest(_Flexible, total=False):
    users: Sequence[DescribeUserScramCredentialsRequestUserName] | None

class DescribeUserScramCredentialsRequestUserName(_Flexible, total=False):
    name: str

class DescribeUserScramCredentialsResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    results: list[DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult]

class DescribeUserScramCredentialsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    results: ReadOnly[Sequence[DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResultInput]]

class DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult(_Flexible):
    user: str
    errorCode: int
    errorMessage: str | None
    credentialInfos: list[DescribeUserScramCredentialsResponseCredentialInfo]

class DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResultInput(_FlexibleInput, total=False):
    user: ReadOnly[str]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    credentialInfos: ReadOnly[Sequence[DescribeUserScramCredentialsResponseCredentialInfoInput]]

class DescribeUserScramCredentialsResponseCredentialInfo(_Flexible):
    mechanism: int
    iterations: int

class DescribeUserScramCredentialsResponseCredentialInfoInput(_FlexibleInput, total=False):
    mechanism: ReadOnly[int]
    iterations: ReadOnly[int]

class AlterUserScramCredentialsRequest(_Flexible, total=False):
    deletions: Sequence[AlterUserScramCredentialsRequestScramCredentialDeletion]
    upsertions: Sequence[AlterUserScramCredentialsRequestScramCredentialUpsertion]

class AlterUserScramCredentialsRequestScramCredentialDeletion(_Flexible, total=False):
    name: str
    mechanism: int

class AlterUserScramCredentialsRequestScramCredentialUpsertion(_Flexible, total=False):
    name: str
    mechanism: int
    iterations: int
    salt: Buffer
    saltedPassword: Buffer

class AlterUserScramCredentialsResponse(_Flexible):
    throttleTimeMs: int
    results: list[AlterUserScramCredentialsResponseAlterUserScramCredentialsResult]

class AlterUserScramCredentialsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    results: ReadOnly[Sequence[AlterUserScramCredentialsResponseAlterUserScramCredentialsResultInput]]

class AlterUserScramCredentialsResponseAlterUserScramCredentialsResult(_Flexible):
    user: str
    errorCode: int
    errorMessage: str | None

class AlterUserScramCredentialsResponseAlterUserScramCredentialsResultInput(_FlexibleInput, total=False):
    user: ReadOnly[str]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]

class VoteRequest(_Flexible, total=False):
    clusterId: str | None  # default None
    topics: Sequence[VoteRequestTopicData]
    voterId: int  # versions 1+, default -1

class VoteRequestTopicData(_Flexible, total=False):
    topicName: str
    partitions: Sequence[VoteRequestPartitionData]

class VoteRequestPartitionData(_Flexible, total=False):
    partitionIndex: int
    replicaEpoch: int
    replicaId: int
    lastOffsetEpoch: int
    lastOffset: int
    replicaDirectoryId: str  # versions 1+
    voterDirectoryId: str  # versions 1+
    preVote: bool  # versions 2+

class VoteResponse(_Flexible):
    errorCode: int
    topics: list[VoteResponseTopicData]
    nodeEndpoints: NotRequired[list[VoteResponseNodeEndpoint]]  # versions 1+, tagged

class VoteResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    topics: ReadOnly[Sequence[VoteResponseTopicDataInput]]
    nodeEndpoints: ReadOnly[Sequence[VoteResponseNodeEndpointInput]]

class VoteResponseTopicData(_Flexible):
    topicName: str
    partitions: list[VoteResponsePartitionData]

class VoteResponseTopicDataInput(_FlexibleInput, total=False):
    topicName: ReadOnly[str]
    partitions: ReadOnly[Sequence[VoteResponsePartitionDataInput]]

class VoteResponsePartitionData(_Flexible):
    partitionIndex: int
    errorCode: int
    leaderId: int
    leaderEpoch: int
    voteGranted: bool

class VoteResponsePartitionDataInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]
    leaderId: ReadOnly[int]
    leaderEpoch: ReadOnly[int]
    voteGranted: ReadOnly[bool]

class VoteResponseNodeEndpoint(_Flexible):
    nodeId: int
    host: str
    port: int

class VoteResponseNodeEndpointInput(_FlexibleInput, total=False):
    nodeId: ReadOnly[int]
    host: ReadOnly[str]
    port: ReadOnly[int]

class BeginQuorumEpochRequest(_Flexible, total=False):
    clusterId: str | None  # default None
    topics: Sequence[BeginQuorumEpochRequestTopicData]
    voterId: int  # versions 1+, default -1
    leaderEndpoints: Sequence[BeginQuorumEpochRequestLeaderEndpoint]  # versions 1+

class BeginQuorumEpochRequestTopicData(_Flexible, total=False):
    topicName: str
    partitions: Sequence[BeginQuorumEpochRequestPartitionData]

class BeginQuorumEpochRequestPartitionData(_Flexible, total=False):
    partitionIndex: int
    leaderId: int
    leaderEpoch: int
    voterDirectoryId: str  # versions 1+

class BeginQuorumEpochRequestLeaderEndpoint(_Flexible, total=False):
    name: str
    host: str
    port: int

class BeginQuorumEpochResponse(_Flexible):
    errorCode: int
    topics: list[BeginQuorumEpochResponseTopicData]
    nodeEndpoints: NotRequired[list[BeginQuorumEpochResponseNodeEndpoint]]  # versions 1+, tagged

class BeginQuorumEpochResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    topics: ReadOnly[Sequence[BeginQuorumEpochResponseTopicDataInput]]
    nodeEndpoints: ReadOnly[Sequence[BeginQuorumEpochResponseNodeEndpointInput]]

class BeginQuorumEpochResponseTopicData(_Flexible):
    topicName: str
    partitions: list[BeginQuorumEpochResponsePartitionData]

class BeginQuorumEpochResponseTopicDataInput(_FlexibleInput, total=False):
    topicName: ReadOnly[str]
    partitions: ReadOnly[Sequence[BeginQuorumEpochResponsePartitionDataInput]]

class BeginQuorumEpochResponsePartitionData(_Flexible):
    partitionIndex: int
    errorCode: int
    leaderId: int
    leaderEpoch: int

class BeginQuorumEpochResponsePartitionDataInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]
    leaderId: ReadOnly[int]
    leaderEpoch: ReadOnly[int]

class BeginQuorumEpochResponseNodeEndpoint(_Flexible):
    nodeId: int
    host: str
    port: int

class BeginQuorumEpochResponseNodeEndpointInput(_FlexibleInput, total=False):
    nodeId: ReadOnly[int]
    host: ReadOnly[str]
    port: ReadOnly[int]

class EndQuorumEpochRequest(_Flexible, total=False):
    clusterId: str | None  # default None
    topics: Sequence[EndQuorumEpochRequestTopicData]
    leaderEndpoints: Sequence[EndQuorumEpochRequestLeaderEndpoint]  # versions 1+

class EndQuorumEpochRequestTopicData(_Flexible, total=False):
    topicName: str
    partitions: Sequence[EndQuorumEpochRequestPartitionData]

class EndQuorumEpochRequestPartitionData(_Flexible, total=False):
    partitionIndex: int
    leaderId: int
    leaderEpoch: int
    preferredSuccessors: Sequence[int]  # version 0
    preferredCandidates: Sequence[EndQuorumEpochRequestReplicaInfo]  # versions 1+

class EndQuorumEpochRequestReplicaInfo(_Flexible, total=False):
    candidateId: int
    candidateDirectoryId: str

class EndQuorumEpochRequestLeaderEndpoint(_Flexible, total=False):
    name: str
    host: str
    port: int

class EndQuorumEpochResponse(_Flexible):
    errorCode: int
    topics: list[EndQuorumEpochResponseTopicData]
    nodeEndpoints: NotRequired[list[EndQuorumEpochResponseNodeEndpoint]]  # versions 1+, tagged

class EndQuorumEpochResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    topics: ReadOnly[Sequence[EndQuorumEpochResponseTopicDataInput]]
    nodeEndpoints: ReadOnly[Sequence[EndQuorumEpochResponseNodeEndpointInput]]

class EndQuorumEpochResponseTopicData(_Flexible):
    topicName: str
    partitions: list[EndQuorumEpochResponsePartitionData]

class EndQuorumEpochResponseTopicDataInput(_FlexibleInput, total=False):
    topicName: ReadOnly[str]
    partitions: ReadOnly[Sequence[EndQuorumEpochResponsePartitionDataInput]]

class EndQuorumEpochResponsePartitionData(_Flexible):
    partitionIndex: int
    errorCode: int
    leaderId: int
    leaderEpoch: int

class EndQuorumEpochResponsePartitionDataInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]
    leaderId: ReadOnly[int]
    leaderEpoch: ReadOnly[int]

class EndQuorumEpochResponseNodeEndpoint(_Flexible):
    nodeId: int
    host: str
    port: int

class EndQuorumEpochResponseNodeEndpointInput(_FlexibleInput, total=False):
    nodeId: ReadOnly[int]
    host: ReadOnly[str]
    port: ReadOnly[int]

class DescribeQuorumRequest(_Flexible, total=False):
    topics: Sequence[DescribeQuorumRequestTopicData]

class DescribeQuorumRequestTopicData(_Flexible, total=False):
    topicName: str
    partitions: Sequence[DescribeQuorumRequestPartitionData]

class DescribeQuorumRequestPartitionData(_Flexible, total=False):
    partitionIndex: int

class DescribeQuorumResponse(_Flexible):
    errorCode: int
    topics: list[DescribeQuorumResponseTopicData]
    errorMessage: NotRequired[str | None]  # versions 2+
    nodes: NotRequired[list[DescribeQuorumResponseNode]]  # versions 2+

class DescribeQuorumResponseInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    topics: ReadOnly[Sequence[DescribeQuorumResponseTopicDataInput]]
    errorMessage: ReadOnly[str | None]
    nodes: ReadOnly[Sequence[DescribeQuorumResponseNodeInput]]

class DescribeQuorumResponseTopicData(_Flexible):
    topicName: str
    partitions: list[DescribeQuorumResponsePartitionData]

class DescribeQuorumResponseTopicDataInput(_FlexibleInput, total=False):
    topicName: ReadOnly[str]
    partitions: ReadOnly[Sequence[DescribeQuorumResponsePartitionDataInput]]

class DescribeQuorumResponsePartitionData(_Flexible):
    partitionIndex: int
    errorCode: int
    leaderId: int
    leaderEpoch: int
    highWatermark: int
    currentVoters: list[DescribeQuorumResponseReplicaState]
    observers: list[DescribeQuorumResponseReplicaState]
    errorMessage: NotRequired[str | None]  # versions 2+

class DescribeQuorumResponsePartitionDataInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]
    leaderId: ReadOnly[int]
    leaderEpoch: ReadOnly[int]
    highWatermark: ReadOnly[int]
    currentVoters: ReadOnly[Sequence[DescribeQuorumResponseReplicaStateInput]]
    observers: ReadOnly[Sequence[DescribeQuorumResponseReplicaStateInput]]
    errorMessage: ReadOnly[str | None]

class DescribeQuorumResponseReplicaState(_Flexible):
    replicaId: int
    logEndOffset: int
    lastFetchTimestamp: NotRequired[int]  # versions 1+
    lastCaughtUpTimestamp: NotRequired[int]  # versions 1+
    replicaDirectoryId: NotRequired[str]  # versions 2+

class DescribeQuorumResponseReplicaStateInput(_FlexibleInput, total=False):
    replicaId: ReadOnly[int]
    logEndOffset: ReadOnly[int]
    lastFetchTimestamp: ReadOnly[int]  # default -1
    lastCaughtUpTimestamp: ReadOnly[int]  # default -1
    replicaDirectoryId: ReadOnly[str]

class DescribeQuorumResponseNode(_Flexible):
    nodeId: int
    listeners: list[DescribeQuorumResponseListener]

class DescribeQuorumResponseNodeInput(_FlexibleInput, total=False):
    nodeId: ReadOnly[int]
    listeners: ReadOnly[Sequence[DescribeQuorumResponseListenerInput]]

class DescribeQuorumResponseListener(_Flexible):
    name: str
    host: str
    port: int

class DescribeQuorumResponseListenerInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    host: ReadOnly[str]
    port: ReadOnly[int]

class AlterPartitionRequest(_Flexible, total=False):
    brokerId: int
    brokerEpoch: int  # default -1
    topics: Sequence[AlterPartitionRequestTopicData]

class AlterPartitionRequestTopicData(_Flexible, total=False):
    topicName: str  # versions 0-1
    partitions: Sequence[AlterPartitionRequestPartitionData]
    topicId: str  # versions 2+

class AlterPartitionRequestPartitionData(_Flexible, total=False):
    partitionIndex: int
    leaderEpoch: int
    newIsr: Sequence[int]  # versions 0-2
    partitionEpoch: int
    leaderRecoveryState: int  # versions 1+
    newIsrWithEpochs: Sequence[AlterPartitionRequestBrokerState]  # versions 3+

class AlterPartitionRequestBrokerState(_Flexible, total=False):
    brokerId: int
    brokerEpoch: int  # default -1

class AlterPartitionResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    topics: list[AlterPartitionResponseTopicData]

class AlterPartitionResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    topics: ReadOnly[Sequence[AlterPartitionResponseTopicDataInput]]

class AlterPartitionResponseTopicData(_Flexible):
    topicName: NotRequired[str]  # versions 0-1
    partitions: list[AlterPartitionResponsePartitionData]
    topicId: NotRequired[str]  # versions 2+

class AlterPartitionResponseTopicDataInput(_FlexibleInput, total=False):
    topicName: ReadOnly[str]
    partitions: ReadOnly[Sequence[AlterPartitionResponsePartitionDataInput]]
    topicId: ReadOnly[str]

class AlterPartitionResponsePartitionData(_Flexible):
    partitionIndex: int
    errorCode: int
    leaderId: int
    leaderEpoch: int
    isr: list[int]
    partitionEpoch: int
    leaderRecoveryState: NotRequired[int]  # versions 1+

class AlterPartitionResponsePartitionDataInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]
    leaderId: ReadOnly[int]
    leaderEpoch: ReadOnly[int]
    isr: ReadOnly[Sequence[int]]
    partitionEpoch: ReadOnly[int]
    leaderRecoveryState: ReadOnly[int]

class UpdateFeaturesRequest(_Flexible, total=False):
    timeoutMs: int  # default 60000
    featureUpdates: Sequence[UpdateFeaturesRequestFeatureUpdateKey]
    validateOnly: bool  # versions 1+

class UpdateFeaturesRequestFeatureUpdateKey(_Flexible, total=False):
    feature: str
    maxVersionLevel: int
    allowDowngrade: bool  # version 0
    upgradeType: int  # versions 1+, default 1

class UpdateFeaturesResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    results: NotRequired[list[UpdateFeaturesResponseUpdatableFeatureResult]]  # versions 0-1

class UpdateFeaturesResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
    results: ReadOnly[Sequence[UpdateFeaturesResponseUpdatableFeatureResultInput]]

class UpdateFeaturesResponseUpdatableFeatureResult(_Flexible):
    feature: str
    errorCode: int
    errorMessage: str | None

class UpdateFeaturesResponseUpdatableFeatureResultInput(_FlexibleInput, total=False):
    feature: ReadOnly[str]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]

class EnvelopeRequest(_Flexible, total=False):
    requestData: Buffer
    requestPrincipal: Buffer | None
    clientHostAddress: Buffer

class EnvelopeResponse(_Flexible):
    responseData: bytes | None
    errorCode: int

class EnvelopeResponseInput(_FlexibleInput, total=False):
    responseData: ReadOnly[Buffer | None]  # default None
    errorCode: ReadOnly[int]

class FetchSnapshotRequest(_Flexible, total=False):
    clusterId: str | None  # default None
    replicaId: int  # default -1
    maxBytes: int  # default 2147483647
    topics: Sequence[FetchSnapshotRequestTopicSnapshot]

class FetchSnapshotRequestTopicSnapshot(_Flexible, total=False):
    name: str
    partitions: Sequence[FetchSnapshotRequestPartitionSnapshot]

class FetchSnapshotRequestPartitionSnapshot(_Flexible, total=False):
    partition: int
    currentLeaderEpoch: int
    snapshotId: FetchSnapshotRequestSnapshotId
    position: int
    replicaDirectoryId: str  # versions 1+

class FetchSnapshotRequestSnapshotId(_Flexible, total=False):
    endOffset: int
    epoch: int

class FetchSnapshotResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    topics: list[FetchSnapshotResponseTopicSnapshot]
    nodeEndpoints: NotRequired[list[FetchSnapshotResponseNodeEndpoint]]  # versions 1+, tagged

class FetchSnapshotResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    topics: ReadOnly[Sequence[FetchSnapshotResponseTopicSnapshotInput]]
    nodeEndpoints: ReadOnly[Sequence[FetchSnapshotResponseNodeEndpointInput]]

class FetchSnapshotResponseTopicSnapshot(_Flexible):
    name: str
    partitions: list[FetchSnapshotResponsePartitionSnapshot]

class FetchSnapshotResponseTopicSnapshotInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[Sequence[FetchSnapshotResponsePartitionSnapshotInput]]

class FetchSnapshotResponsePartitionSnapshot(_Flexible):
    index: int
    errorCode: int
    snapshotId: FetchSnapshotResponseSnapshotId
    currentLeader: NotRequired[FetchSnapshotResponseLeaderIdAndEpoch]  # tagged
    size: int
    position: int
    unalignedRecords: bytes

class FetchSnapshotResponsePartitionSnapshotInput(_FlexibleInput, total=False):
    index: ReadOnly[int]
    errorCode: ReadOnly[int]
    snapshotId: ReadOnly[FetchSnapshotResponseSnapshotIdInput]
    currentLeader: ReadOnly[FetchSnapshotResponseLeaderIdAndEpochInput]
    size: ReadOnly[int]
    position: ReadOnly[int]
    unalignedRecords: ReadOnly[Buffer]

class FetchSnapshotResponseSnapshotId(_Flexible):
    endOffset: int
    epoch: int

class FetchSnapshotResponseSnapshotIdInput(_FlexibleInput, total=False):
    endOffset: ReadOnly[int]
    epoch: ReadOnly[int]

class FetchSnapshotResponseLeaderIdAndEpoch(_Flexible):
    leaderId: int
    leaderEpoch: int

class FetchSnapshotResponseLeaderIdAndEpochInput(_FlexibleInput, total=False):
    leaderId: ReadOnly[int]
    leaderEpoch: ReadOnly[int]

class FetchSnapshotResponseNodeEndpoint(_Flexible):
    nodeId: int
    host: str
    port: int

class FetchSnapshotResponseNodeEndpointInput(_FlexibleInput, total=False):
    nodeId: ReadOnly[int]
    host: ReadOnly[str]
    port: ReadOnly[int]

class DescribeClusterRequest(_Flexible, total=False):
    includeClusterAuthorizedOperations: bool
    endpointType: int  # versions 1+, default 1
    includeFencedBrokers: bool  # versions 2+

class DescribeClusterResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    clusterId: str
    controllerId: int
    brokers: list[DescribeClusterResponseDescribeClusterBroker]
    clusterAuthorizedOperations: int
    endpointType: NotRequired[int]  # versions 1+

class DescribeClusterResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    clusterId: ReadOnly[str]
    controllerId: ReadOnly[int]  # default -1
    brokers: ReadOnly[Sequence[DescribeClusterResponseDescribeClusterBrokerInput]]
    clusterAuthorizedOperations: ReadOnly[int]  # default -2147483648
    endpointType: ReadOnly[int]  # default 1

class DescribeClusterResponseDescribeClusterBroker(_Flexible):
    brokerId: int
    host: str
    port: int
    rack: str | None
    isFenced: NotRequired[bool]  # versions 2+

class DescribeClusterResponseDescribeClusterBrokerInput(_FlexibleInput, total=False):
    brokerId: ReadOnly[int]
    host: ReadOnly[str]
    port: ReadOnly[int]
    rack: ReadOnly[str | None]  # default None
    isFenced: ReadOnly[bool]

class DescribeProducersRequest(_Flexible, total=False):
    topics: Sequence[DescribeProducersRequestTopicRequest]

class DescribeProducersRequestTopicRequest(_Flexible, total=False):
    name: str
    partitionIndexes: Sequence[int]

class DescribeProducersResponse(_Flexible):
    throttleTimeMs: int
    topics: list[DescribeProducersResponseTopicResponse]

class DescribeProducersResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    topics: ReadOnly[Sequence[DescribeProducersResponseTopicResponseInput]]

class DescribeProducersResponseTopicResponse(_Flexible):
    name: str
    partitions: list[DescribeProducersResponsePartitionResponse]

class DescribeProducersResponseTopicResponseInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[Sequence[DescribeProducersResponsePartitionResponseInput]]

class DescribeProducersResponsePartitionResponse(_Flexible):
    partitionIndex: int
    errorCode: int
    errorMessage: str | None
    activeProducers: list[DescribeProducersResponseProducerState]

class DescribeProducersResponsePartitionResponseInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    activeProducers: ReadOnly[Sequence[DescribeProducersResponseProducerStateInput]]

class DescribeProducersResponseProducerState(_Flexible):
    producerId: int
    producerEpoch: int
    lastSequence: int
    lastTimestamp: int
    coordinatorEpoch: int
    currentTxnStartOffset: int

class DescribeProducersResponseProducerStateInput(_FlexibleInput, total=False):
    producerId: ReadOnly[int]
    producerEpoch: ReadOnly[int]
    lastSequence: ReadOnly[int]  # default -1
    lastTimestamp: ReadOnly[int]  # default -1
    coordinatorEpoch: ReadOnly[int]
    currentTxnStartOffset: ReadOnly[int]  # default -1

class BrokerRegistrationRequest(_Flexible, total=False):
    brokerId: int
    clusterId: str
    incarnationId: str
    listeners: Sequence[BrokerRegistrationRequestListener]
    features: Sequence[BrokerRegistrationRequestFeature]
    rack: str | None
    isMigratingZkBroker: bool  # versions 1+
    logDirs: Sequence[str]  # versions 2+
    previousBrokerEpoch: int  # versions 3+, default -1

class BrokerRegistrationRequestListener(_Flexible, total=False):
    name: str
    host: str
    port: int
    securityProtocol: int

class BrokerRegistrationRequestFeature(_Flexible, total=False):
    name: str
    minSupportedVersion: int
    maxSupportedVersion: int

class BrokerRegistrationResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    brokerEpoch: int

class BrokerRegistrationResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    brokerEpoch: ReadOnly[int]  # default -1

class BrokerHeartbeatRequest(_Flexible, total=False):
    brokerId: int
    brokerEpoch: int  # default -1
    currentMetadataOffset: int
    wantFence: bool
    wantShutDown: bool
    offlineLogDirs: Sequence[str]  # versions 1+
    cordonedLogDirs: Sequence[str] | None  # versions 2+, default None

class BrokerHeartbeatResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    isCaughtUp: bool
    isFenced: bool
    shouldShutDown: bool

class BrokerHeartbeatResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    isCaughtUp: ReadOnly[bool]
    isFenced: ReadOnly[bool]  # default True
    shouldShutDown: ReadOnly[bool]

class UnregisterBrokerRequest(_Flexible, total=False):
    brokerId: int

class UnregisterBrokerResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None

class UnregisterBrokerResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]

class DescribeTransactionsRequest(_Flexible, total=False):
    transactionalIds: Sequence[str]

class DescribeTransactionsResponse(_Flexible):
    throttleTimeMs: int
    transactionStates: list[DescribeTransactionsResponseTransactionState]

class DescribeTransactionsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    transactionStates: ReadOnly[Sequence[DescribeTransactionsResponseTransactionStateInput]]

class DescribeTransactionsResponseTransactionState(_Flexible):
    errorCode: int
    transactionalId: str
    transactionState: str
    transactionTimeoutMs: int
    transactionStartTimeMs: int
    producerId: int
    producerEpoch: int
    topics: list[DescribeTransactionsResponseTopicData]

class DescribeTransactionsResponseTransactionStateInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    transactionalId: ReadOnly[str]
    transactionState: ReadOnly[str]
    transactionTimeoutMs: ReadOnly[int]
    transactionStartTimeMs: ReadOnly[int]
    producerId: ReadOnly[int]
    producerEpoch: ReadOnly[int]
    topics: ReadOnly[Sequence[DescribeTransactionsResponseTopicDataInput]]

class DescribeTransactionsResponseTopicData(_Flexible):
    topic: str
    partitions: list[int]

class DescribeTransactionsResponseTopicDataInput(_FlexibleInput, total=False):
    topic: ReadOnly[str]
    partitions: ReadOnly[Sequence[int]]

class ListTransactionsRequest(_Flexible, total=False):
    stateFilters: Sequence[str]
    producerIdFilters: Sequence[int]
    durationFilter: int  # versions 1+, default -1
    transactionalIdPattern: str | None  # versions 2+, default None

class ListTransactionsResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    unknownStateFilters: list[str]
    transactionStates: list[ListTransactionsResponseTransactionState]

class ListTransactionsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    unknownStateFilters: ReadOnly[Sequence[str]]
    transactionStates: ReadOnly[Sequence[ListTransactionsResponseTransactionStateInput]]

class ListTransactionsResponseTransactionState(_Flexible):
    transactionalId: str
    producerId: int
    transactionState: str

class ListTransactionsResponseTransactionStateInput(_FlexibleInput, total=False):
    transactionalId: ReadOnly[str]
    producerId: ReadOnly[int]
    transactionState: ReadOnly[str]

class AllocateProducerIdsRequest(_Flexible, total=False):
    brokerId: int
    brokerEpoch: int  # default -1

class AllocateProducerIdsResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    producerIdStart: int
    producerIdLen: int

class AllocateProducerIdsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    producerIdStart: ReadOnly[int]
    producerIdLen: ReadOnly[int]

class ConsumerGroupHeartbeatRequest(_Flexible, total=False):
    groupId: str
    memberId: str
    memberEpoch: int
    instanceId: str | None  # default None
    rackId: str | None  # default None
    rebalanceTimeoutMs: int  # default -1
    subscribedTopicNames: Sequence[str] | None  # default None
    serverAssignor: str | None  # default None
    topicPartitions: Sequence[ConsumerGroupHeartbeatRequestTopicPartitions] | None  # default None
    subscribedTopicRegex: str | None  # versions 1+, default None

class ConsumerGroupHeartbeatRequestTopicPartitions(_Flexible, total=False):
    topicId: str
    partitions: Sequence[int]

class ConsumerGroupHeartbeatResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    memberId: str | None
    memberEpoch: int
    heartbeatIntervalMs: int
    assignment: ConsumerGroupHeartbeatResponseAssignment | None

class ConsumerGroupHeartbeatResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    memberId: ReadOnly[str | None]  # default None
    memberEpoch: ReadOnly[int]
    heartbeatIntervalMs: ReadOnly[int]
    assignment: ReadOnly[ConsumerGroupHeartbeatResponseAssignmentInput | None]  # default None

class ConsumerGroupHeartbeatResponseAssignment(_Flexible):
    topicPartitions: list[ConsumerGroupHeartbeatResponseTopicPartitions]

class ConsumerGroupHeartbeatResponseAssignmentInput(_FlexibleInput, total=False):
    topicPartitions: ReadOnly[Sequence[ConsumerGroupHeartbeatResponseTopicPartitionsInput]]

class ConsumerGroupHeartbeatResponseTopicPartitions(_Flexible):
    topicId: str
    partitions: list[int]

class ConsumerGroupHeartbeatResponseTopicPartitionsInput(_FlexibleInput, total=False):
    topicId: ReadOnly[str]
    partitions: ReadOnly[Sequence[int]]

class ConsumerGroupDescribeRequest(_Flexible, total=False):
    groupIds: Sequence[str]
    includeAuthorizedOperations: bool

class ConsumerGroupDescribeResponse(_Flexible):
    throttleTimeMs: int
    groups: list[ConsumerGroupDescribeResponseDescribedGroup]

class ConsumerGroupDescribeResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    groups: ReadOnly[Sequence[ConsumerGroupDescribeResponseDescribedGroupInput]]

class ConsumerGroupDescribeResponseDescribedGroup(_Flexible):
    errorCode: int
    errorMessage: str | None
    groupId: str
    groupState: str
    groupEpoch: int
    assignmentEpoch: int
    assignorName: str
    members: list[ConsumerGroupDescribeResponseMember]
    authorizedOperations: int

class ConsumerGroupDescribeResponseDescribedGroupInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    groupId: ReadOnly[str]
    groupState: ReadOnly[str]
    groupEpoch: ReadOnly[int]
    assignmentEpoch: ReadOnly[int]
    assignorName: ReadOnly[str]
    members: ReadOnly[Sequence[ConsumerGroupDescribeResponseMemberInput]]
    authorizedOperations: ReadOnly[int]  # default -2147483648

class ConsumerGroupDescribeResponseMember(_Flexible):
    memberId: str
    instanceId: str | None
    rackId: str | None
    memberEpoch: int
    clientId: str
    clientHost: str
    subscribedTopicNames: list[str]
    subscribedTopicRegex: str | None
    assignment: ConsumerGroupDescribeResponseAssignment
    targetAssignment: ConsumerGroupDescribeResponseAssignment
    memberType: NotRequired[int]  # versions 1+

class ConsumerGroupDescribeResponseMemberInput(_FlexibleInput, total=False):
    memberId: ReadOnly[str]
    instanceId: ReadOnly[str | None]  # default None
    rackId: ReadOnly[str | None]  # default None
    memberEpoch: ReadOnly[int]
    clientId: ReadOnly[str]
    clientHost: ReadOnly[str]
    subscribedTopicNames: ReadOnly[Sequence[str]]
    subscribedTopicRegex: ReadOnly[str | None]  # default None
    assignment: ReadOnly[ConsumerGroupDescribeResponseAssignmentInput]
    targetAssignment: ReadOnly[ConsumerGroupDescribeResponseAssignmentInput]
    memberType: ReadOnly[int]  # default -1

class ConsumerGroupDescribeResponseAssignment(_Flexible):
    topicPartitions: list[ConsumerGroupDescribeResponseTopicPartitions]

class ConsumerGroupDescribeResponseAssignmentInput(_FlexibleInput, total=False):
    topicPartitions: ReadOnly[Sequence[ConsumerGroupDescribeResponseTopicPartitionsInput]]

class ConsumerGroupDescribeResponseTopicPartitions(_Flexible):
    topicId: str
    topicName: str
    partitions: list[int]

class ConsumerGroupDescribeResponseTopicPartitionsInput(_FlexibleInput, total=False):
    topicId: ReadOnly[str]
    topicName: ReadOnly[str]
    partitions: ReadOnly[Sequence[int]]

class ControllerRegistrationRequest(_Flexible, total=False):
    controllerId: int
    incarnationId: str
    zkMigrationReady: bool
    listeners: Sequence[ControllerRegistrationRequestListener]
    features: Sequence[ControllerRegistrationRequestFeature]

class ControllerRegistrationRequestListener(_Flexible, total=False):
    name: str
    host: str
    port: int
    securityProtocol: int

class ControllerRegistrationRequestFeature(_Flexible, total=False):
    name: str
    minSupportedVersion: int
    maxSupportedVersion: int

class ControllerRegistrationResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None

class ControllerRegistrationResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]

class GetTelemetrySubscriptionsRequest(_Flexible, total=False):
    clientInstanceId: str

class GetTelemetrySubscriptionsResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    clientInstanceId: str
    subscriptionId: int
    acceptedCompressionTypes: list[int]
    pushIntervalMs: int
    telemetryMaxBytes: int
    deltaTemporality: bool
    requestedMetrics: list[str]

class GetTelemetrySubscriptionsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    clientInstanceId: ReadOnly[str]
    subscriptionId: ReadOnly[int]
    acceptedCompressionTypes: ReadOnly[Sequence[int]]
    pushIntervalMs: ReadOnly[int]
    telemetryMaxBytes: ReadOnly[int]
    deltaTemporality: ReadOnly[bool]
    requestedMetrics: ReadOnly[Sequence[str]]

class PushTelemetryRequest(_Flexible, total=False):
    clientInstanceId: str
    subscriptionId: int
    terminating: bool
    compressionType: int
    metrics: Buffer

class PushTelemetryResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int

class PushTelemetryResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]

class AssignReplicasToDirsRequest(_Flexible, total=False):
    brokerId: int
    brokerEpoch: int  # default -1
    directories: Sequence[AssignReplicasToDirsRequestDirectoryData]

class AssignReplicasToDirsRequestDirectoryData(_Flexible, total=False):
    id: str
    topics: Sequence[AssignReplicasToDirsRequestTopicData]

class AssignReplicasToDirsRequestTopicData(_Flexible, total=False):
    topicId: str
    partitions: Sequence[AssignReplicasToDirsRequestPartitionData]

class AssignReplicasToDirsRequestPartitionData(_Flexible, total=False):
    partitionIndex: int

class AssignReplicasToDirsResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    directories: list[AssignReplicasToDirsResponseDirectoryData]

class AssignReplicasToDirsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    directories: ReadOnly[Sequence[AssignReplicasToDirsResponseDirectoryDataInput]]

class AssignReplicasToDirsResponseDirectoryData(_Flexible):
    id: str
    topics: list[AssignReplicasToDirsResponseTopicData]

class AssignReplicasToDirsResponseDirectoryDataInput(_FlexibleInput, total=False):
    id: ReadOnly[str]
    topics: ReadOnly[Sequence[AssignReplicasToDirsResponseTopicDataInput]]

class AssignReplicasToDirsResponseTopicData(_Flexible):
    topicId: str
    partitions: list[AssignReplicasToDirsResponsePartitionData]

class AssignReplicasToDirsResponseTopicDataInput(_FlexibleInput, total=False):
    topicId: ReadOnly[str]
    partitions: ReadOnly[Sequence[AssignReplicasToDirsResponsePartitionDataInput]]

class AssignReplicasToDirsResponsePartitionData(_Flexible):
    partitionIndex: int
    errorCode: int

class AssignReplicasToDirsResponsePartitionDataInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]

class ListConfigResourcesRequest(_Flexible, total=False):
    resourceTypes: Sequence[int]  # versions 1+

class ListConfigResourcesResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    configResources: list[ListConfigResourcesResponseConfigResource]

class ListConfigResourcesResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    configResources: ReadOnly[Sequence[ListConfigResourcesResponseConfigResourceInput]]

class ListConfigResourcesResponseConfigResource(_Flexible):
    resourceName: str
    resourceType: NotRequired[int]  # versions 1+

class ListConfigResourcesResponseConfigResourceInput(_FlexibleInput, total=False):
    resourceName: ReadOnly[str]
    resourceType: ReadOnly[int]  # default 16

class DescribeTopicPartitionsRequest(_Flexible, total=False):
    topics: Sequence[DescribeTopicPartitionsRequestTopicRequest]
    responsePartitionLimit: int  # default 2000
    cursor: DescribeTopicPartitionsRequestCursor | None  # default None

class DescribeTopicPartitionsRequestTopicRequest(_Flexible, total=False):
    name: str

class DescribeTopicPartitionsRequestCursor(_Flexible, total=False):
    topicName: str
    partitionIndex: int

class DescribeTopicPartitionsResponse(_Flexible):
    throttleTimeMs: int
    topics: list[DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic]
    nextCursor: DescribeTopicPartitionsResponseCursor | None

class DescribeTopicPartitionsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    topics: ReadOnly[Sequence[DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopicInput]]
    nextCursor: ReadOnly[DescribeTopicPartitionsResponseCursorInput | None]  # default None

class DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic(_Flexible):
    errorCode: int
    name: str | None
    topicId: str
    isInternal: bool
    partitions: list[DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition]
    topicAuthorizedOperations: int

class DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopicInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    name: ReadOnly[str | None]
    topicId: ReadOnly[str]
    isInternal: ReadOnly[bool]
    partitions: ReadOnly[Sequence[DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartitionInput]]
    topicAuthorizedOperations: ReadOnly[int]  # default -2147483648

class DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition(_Flexible):
    errorCode: int
    partitionIndex: int
    leaderId: int
    leaderEpoch: int
    replicaNodes: list[int]
    isrNodes: list[int]
    eligibleLeaderReplicas: list[int] | None
    lastKnownElr: list[int] | None
    offlineReplicas: list[int]

class DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartitionInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    partitionIndex: ReadOnly[int]
    leaderId: ReadOnly[int]
    leaderEpoch: ReadOnly[int]  # default -1
    replicaNodes: ReadOnly[Sequence[int]]
    isrNodes: ReadOnly[Sequence[int]]
    eligibleLeaderReplicas: ReadOnly[Sequence[int] | None]  # default None
    lastKnownElr: ReadOnly[Sequence[int] | None]  # default None
    offlineReplicas: ReadOnly[Sequence[int]]

class DescribeTopicPartitionsResponseCursor(_Flexible):
    topicName: str
    partitionIndex: int

class DescribeTopicPartitionsResponseCursorInput(_FlexibleInput, total=False):
    topicName: ReadOnly[str]
    partitionIndex: ReadOnly[int]

class ShareGroupHeartbeatRequest(_Flexible, total=False):
    groupId: str
    memberId: str
    memberEpoch: int
    rackId: str | None  # default None
    subscribedTopicNames: Sequence[str] | None  # default None

class ShareGroupHeartbeatResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    memberId: str | None
    memberEpoch: int
    heartbeatIntervalMs: int
    assignment: ShareGroupHeartbeatResponseAssignment | None

class ShareGroupHeartbeatResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    memberId: ReadOnly[str | None]  # default None
    memberEpoch: ReadOnly[int]
    heartbeatIntervalMs: ReadOnly[int]
    assignment: ReadOnly[ShareGroupHeartbeatResponseAssignmentInput | None]  # default None

class ShareGroupHeartbeatResponseAssignment(_Flexible):
    topicPartitions: list[ShareGroupHeartbeatResponseTopicPartitions]

class ShareGroupHeartbeatResponseAssignmentInput(_FlexibleInput, total=False):
    topicPartitions: ReadOnly[Sequence[ShareGroupHeartbeatResponseTopicPartitionsInput]]

class ShareGroupHeartbeatResponseTopicPartitions(_Flexible):
    topicId: str
    partitions: list[int]

class ShareGroupHeartbeatResponseTopicPartitionsInput(_FlexibleInput, total=False):
    topicId: ReadOnly[str]
    partitions: ReadOnly[Sequence[int]]

class ShareGroupDescribeRequest(_Flexible, total=False):
    groupIds: Sequence[str]
    includeAuthorizedOperations: bool

class ShareGroupDescribeResponse(_Flexible):
    throttleTimeMs: int
    groups: list[ShareGroupDescribeResponseDescribedGroup]

class ShareGroupDescribeResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    groups: ReadOnly[Sequence[ShareGroupDescribeResponseDescribedGroupInput]]

class ShareGroupDescribeResponseDescribedGroup(_Flexible):
    errorCode: int
    errorMessage: str | None
    groupId: str
    groupState: str
    groupEpoch: int
    assignmentEpoch: int
    assignorName: str
    members: list[ShareGroupDescribeResponseMember]
    authorizedOperations: int

class ShareGroupDescribeResponseDescribedGroupInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    groupId: ReadOnly[str]
    groupState: ReadOnly[str]
    groupEpoch: ReadOnly[int]
    assignmentEpoch: ReadOnly[int]
    assignorName: ReadOnly[str]
    members: ReadOnly[Sequence[ShareGroupDescribeResponseMemberInput]]
    authorizedOperations: ReadOnly[int]  # default -2147483648

class ShareGroupDescribeResponseMember(_Flexible):
    memberId: str
    rackId: str | None
    memberEpoch: int
    clientId: str
    clientHost: str
    subscribedTopicNames: list[str]
    assignment: ShareGroupDescribeResponseAssignment

class ShareGroupDescribeResponseMemberInput(_FlexibleInput, total=False):
    memberId: ReadOnly[str]
    rackId: ReadOnly[str | None]  # default None
    memberEpoch: ReadOnly[int]
    clientId: ReadOnly[str]
    clientHost: ReadOnly[str]
    subscribedTopicNames: ReadOnly[Sequence[str]]
    assignment: ReadOnly[ShareGroupDescribeResponseAssignmentInput]

class ShareGroupDescribeResponseAssignment(_Flexible):
    topicPartitions: list[ShareGroupDescribeResponseTopicPartitions]

class ShareGroupDescribeResponseAssignmentInput(_FlexibleInput, total=False):
    topicPartitions: ReadOnly[Sequence[ShareGroupDescribeResponseTopicPartitionsInput]]

class ShareGroupDescribeResponseTopicPartitions(_Flexible):
    topicId: str
    topicName: str
    partitions: list[int]

class ShareGroupDescribeResponseTopicPartitionsInput(_FlexibleInput, total=False):
    topicId: ReadOnly[str]
    topicName: ReadOnly[str]
    partitions: ReadOnly[Sequence[int]]

class ShareFetchRequest(_Flexible, total=False):
    groupId: str | None  # default None
    memberId: str | None
    shareSessionEpoch: int
    maxWaitMs: int
    minBytes: int
    maxBytes: int  # default 2147483647
    topics: Sequence[ShareFetchRequestFetchTopic]
    forgottenTopicsData: Sequence[ShareFetchRequestForgottenTopic]
    maxRecords: int  # versions 1+
    batchSize: int  # versions 1+
    shareAcquireMode: int  # versions 2+
    isRenewAck: bool  # versions 2+

class ShareFetchRequestFetchTopic(_Flexible, total=False):
    topicId: str
    partitions: Sequence[ShareFetchRequestFetchPartition]

class ShareFetchRequestFetchPartition(_Flexible, total=False):
    partitionIndex: int
    partitionMaxBytes: int  # version 0
    acknowledgementBatches: Sequence[ShareFetchRequestAcknowledgementBatch]

class ShareFetchRequestAcknowledgementBatch(_Flexible, total=False):
    firstOffset: int
    lastOffset: int
    acknowledgeTypes: Sequence[int]

class ShareFetchRequestForgottenTopic(_Flexible, total=False):
    topicId: str
    partitions: Sequence[int]

class ShareFetchResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    responses: list[ShareFetchResponseShareFetchableTopicResponse]
    nodeEndpoints: list[ShareFetchResponseNodeEndpoint]
    acquisitionLockTimeoutMs: NotRequired[int]  # versions 1+

class ShareFetchResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    responses: ReadOnly[Sequence[ShareFetchResponseShareFetchableTopicResponseInput]]
    nodeEndpoints: ReadOnly[Sequence[ShareFetchResponseNodeEndpointInput]]
    acquisitionLockTimeoutMs: ReadOnly[int]

class ShareFetchResponseShareFetchableTopicResponse(_Flexible):
    topicId: str
    partitions: list[ShareFetchResponsePartitionData]

class ShareFetchResponseShareFetchableTopicResponseInput(_FlexibleInput, total=False):
    topicId: ReadOnly[str]
    partitions: ReadOnly[Sequence[ShareFetchResponsePartitionDataInput]]

class ShareFetchResponsePartitionData(_Flexible):
    partitionIndex: int
    errorCode: int
    errorMessage: str | None
    acknowledgeErrorCode: int
    acknowledgeErrorMessage: str | None
    currentLeader: ShareFetchResponseLeaderIdAndEpoch
    records: bytes | None
    acquiredRecords: list[ShareFetchResponseAcquiredRecords]

class ShareFetchResponsePartitionDataInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    acknowledgeErrorCode: ReadOnly[int]
    acknowledgeErrorMessage: ReadOnly[str | None]  # default None
    currentLeader: ReadOnly[ShareFetchResponseLeaderIdAndEpochInput]
    records: ReadOnly[Buffer | None]
    acquiredRecords: ReadOnly[Sequence[ShareFetchResponseAcquiredRecordsInput]]

class ShareFetchResponseLeaderIdAndEpoch(_Flexible):
    leaderId: int
    leaderEpoch: int

class ShareFetchResponseLeaderIdAndEpochInput(_FlexibleInput, total=False):
    leaderId: ReadOnly[int]
    leaderEpoch: ReadOnly[int]

class ShareFetchResponseAcquiredRecords(_Flexible):
    firstOffset: int
    lastOffset: int
    deliveryCount: int

class ShareFetchResponseAcquiredRecordsInput(_FlexibleInput, total=False):
    firstOffset: ReadOnly[int]
    lastOffset: ReadOnly[int]
    deliveryCount: ReadOnly[int]

class ShareFetchResponseNodeEndpoint(_Flexible):
    nodeId: int
    host: str
    port: int
    rack: str | None

class ShareFetchResponseNodeEndpointInput(_FlexibleInput, total=False):
    nodeId: ReadOnly[int]
    host: ReadOnly[str]
    port: ReadOnly[int]
    rack: ReadOnly[str | None]  # default None

class ShareAcknowledgeRequest(_Flexible, total=False):
    groupId: str | None  # default None
    memberId: str | None
    shareSessionEpoch: int
    topics: Sequence[ShareAcknowledgeRequestAcknowledgeTopic]
    isRenewAck: bool  # versions 2+

class ShareAcknowledgeRequestAcknowledgeTopic(_Flexible, total=False):
    topicId: str
    partitions: Sequence[ShareAcknowledgeRequestAcknowledgePartition]

class ShareAcknowledgeRequestAcknowledgePartition(_Flexible, total=False):
    partitionIndex: int
    acknowledgementBatches: Sequence[ShareAcknowledgeRequestAcknowledgementBatch]

class ShareAcknowledgeRequestAcknowledgementBatch(_Flexible, total=False):
    firstOffset: int
    lastOffset: int
    acknowledgeTypes: Sequence[int]

class ShareAcknowledgeResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    responses: list[ShareAcknowledgeResponseShareAcknowledgeTopicResponse]
    nodeEndpoints: list[ShareAcknowledgeResponseNodeEndpoint]
    acquisitionLockTimeoutMs: NotRequired[int]  # versions 2+

class ShareAcknowledgeResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    responses: ReadOnly[Sequence[ShareAcknowledgeResponseShareAcknowledgeTopicResponseInput]]
    nodeEndpoints: ReadOnly[Sequence[ShareAcknowledgeResponseNodeEndpointInput]]
    acquisitionLockTimeoutMs: ReadOnly[int]

class ShareAcknowledgeResponseShareAcknowledgeTopicResponse(_Flexible):
    topicId: str
    partitions: list[ShareAcknowledgeResponsePartitionData]

class ShareAcknowledgeResponseShareAcknowledgeTopicResponseInput(_FlexibleInput, total=False):
    topicId: ReadOnly[str]
    partitions: ReadOnly[Sequence[ShareAcknowledgeResponsePartitionDataInput]]

class ShareAcknowledgeResponsePartitionData(_Flexible):
    partitionIndex: int
    errorCode: int
    errorMessage: str | None
    currentLeader: ShareAcknowledgeResponseLeaderIdAndEpoch

class ShareAcknowledgeResponsePartitionDataInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    currentLeader: ReadOnly[ShareAcknowledgeResponseLeaderIdAndEpochInput]

class ShareAcknowledgeResponseLeaderIdAndEpoch(_Flexible):
    leaderId: int
    leaderEpoch: int

class ShareAcknowledgeResponseLeaderIdAndEpochInput(_FlexibleInput, total=False):
    leaderId: ReadOnly[int]
    leaderEpoch: ReadOnly[int]

class ShareAcknowledgeResponseNodeEndpoint(_Flexible):
    nodeId: int
    host: str
    port: int
    rack: str | None

class ShareAcknowledgeResponseNodeEndpointInput(_FlexibleInput, total=False):
    nodeId: ReadOnly[int]
    host: ReadOnly[str]
    port: ReadOnly[int]
    rack: ReadOnly[str | None]  # default None

class AddRaftVoterRequest(_Flexible, total=False):
    clusterId: str | None
    timeoutMs: int
    voterId: int
    voterDirectoryId: str
    listeners: Sequence[AddRaftVoterRequestListener]
    ackWhenCommitted: bool  # versions 1+, default True

class AddRaftVoterRequestListener(_Flexible, total=False):
    name: str
    host: str
    port: int

class AddRaftVoterResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None

class AddRaftVoterResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]

class RemoveRaftVoterRequest(_Flexible, total=False):
    clusterId: str | None
    voterId: int
    voterDirectoryId: str

class RemoveRaftVoterResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None

class RemoveRaftVoterResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]

class UpdateRaftVoterRequest(_Flexible, total=False):
    clusterId: str | None
    currentLeaderEpoch: int
    voterId: int
    voterDirectoryId: str
    listeners: Sequence[UpdateRaftVoterRequestListener]
    kRaftVersionFeature: UpdateRaftVoterRequestKRaftVersionFeature

class UpdateRaftVoterRequestListener(_Flexible, total=False):
    name: str
    host: str
    port: int

class UpdateRaftVoterRequestKRaftVersionFeature(_Flexible, total=False):
    minSupportedVersion: int
    maxSupportedVersion: int

class UpdateRaftVoterResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    currentLeader: NotRequired[UpdateRaftVoterResponseCurrentLeader]  # tagged

class UpdateRaftVoterResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    currentLeader: ReadOnly[UpdateRaftVoterResponseCurrentLeaderInput]

class UpdateRaftVoterResponseCurrentLeader(_Flexible):
    leaderId: int
    leaderEpoch: int
    host: str
    port: int

class UpdateRaftVoterResponseCurrentLeaderInput(_FlexibleInput, total=False):
    leaderId: ReadOnly[int]  # default -1
    leaderEpoch: ReadOnly[int]  # default -1
    host: ReadOnly[str]
    port: ReadOnly[int]

class InitializeShareGroupStateRequest(_Flexible, total=False):
    groupId: str
    topics: Sequence[InitializeShareGroupStateRequestInitializeStateData]

class InitializeShareGroupStateRequestInitializeStateData(_Flexible, total=False):
    topicId: str
    partitions: Sequence[InitializeShareGroupStateRequestPartitionData]

class InitializeShareGroupStateRequestPartitionData(_Flexible, total=False):
    partition: int
    stateEpoch: int
    startOffset: int

class InitializeShareGroupStateResponse(_Flexible):
    results: list[InitializeShareGroupStateResponseInitializeStateResult]

class InitializeShareGroupStateResponseInput(_FlexibleInput, total=False):
    results: ReadOnly[Sequence[InitializeShareGroupStateResponseInitializeStateResultInput]]

class InitializeShareGroupStateResponseInitializeStateResult(_Flexible):
    topicId: str
    partitions: list[InitializeShareGroupStateResponsePartitionResult]

class InitializeShareGroupStateResponseInitializeStateResultInput(_FlexibleInput, total=False):
    topicId: ReadOnly[str]
    partitions: ReadOnly[Sequence[InitializeShareGroupStateResponsePartitionResultInput]]

class InitializeShareGroupStateResponsePartitionResult(_Flexible):
    partition: int
    errorCode: int
    errorMessage: str | None

class InitializeShareGroupStateResponsePartitionResultInput(_FlexibleInput, total=False):
    partition: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None

class ReadShareGroupStateRequest(_Flexible, total=False):
    groupId: str
    topics: Sequence[ReadShareGroupStateRequestReadStateData]

class ReadShareGroupStateRequestReadStateData(_Flexible, total=False):
    topicId: str
    partitions: Sequence[ReadShareGroupStateRequestPartitionData]

class ReadShareGroupStateRequestPartitionData(_Flexible, total=False):
    partition: int
    leaderEpoch: int

class ReadShareGroupStateResponse(_Flexible):
    results: list[ReadShareGroupStateResponseReadStateResult]

class ReadShareGroupStateResponseInput(_FlexibleInput, total=False):
    results: ReadOnly[Sequence[ReadShareGroupStateResponseReadStateResultInput]]

class ReadShareGroupStateResponseReadStateResult(_Flexible):
    topicId: str
    partitions: list[ReadShareGroupStateResponsePartitionResult]

class ReadShareGroupStateResponseReadStateResultInput(_FlexibleInput, total=False):
    topicId: ReadOnly[str]
    partitions: ReadOnly[Sequence[ReadShareGroupStateResponsePartitionResultInput]]

class ReadShareGroupStateResponsePartitionResult(_Flexible):
    partition: int
    errorCode: int
    errorMessage: str | None
    stateEpoch: int
    startOffset: int
    stateBatches: list[ReadShareGroupStateResponseStateBatch]

class ReadShareGroupStateResponsePartitionResultInput(_FlexibleInput, total=False):
    partition: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    stateEpoch: ReadOnly[int]
    startOffset: ReadOnly[int]
    stateBatches: ReadOnly[Sequence[ReadShareGroupStateResponseStateBatchInput]]

class ReadShareGroupStateResponseStateBatch(_Flexible):
    firstOffset: int
    lastOffset: int
    deliveryState: int
    deliveryCount: int

class ReadShareGroupStateResponseStateBatchInput(_FlexibleInput, total=False):
    firstOffset: ReadOnly[int]
    lastOffset: ReadOnly[int]
    deliveryState: ReadOnly[int]
    deliveryCount: ReadOnly[int]

class WriteShareGroupStateRequest(_Flexible, total=False):
    groupId: str
    topics: Sequence[WriteShareGroupStateRequestWriteStateData]

class WriteShareGroupStateRequestWriteStateData(_Flexible, total=False):
    topicId: str
    partitions: Sequence[WriteShareGroupStateRequestPartitionData]

class WriteShareGroupStateRequestPartitionData(_Flexible, total=False):
    partition: int
    stateEpoch: int
    leaderEpoch: int
    startOffset: int
    stateBatches: Sequence[WriteShareGroupStateRequestStateBatch]
    deliveryCompleteCount: int  # versions 1+, default -1

class WriteShareGroupStateRequestStateBatch(_Flexible, total=False):
    firstOffset: int
    lastOffset: int
    deliveryState: int
    deliveryCount: int

class WriteShareGroupStateResponse(_Flexible):
    results: list[WriteShareGroupStateResponseWriteStateResult]

class WriteShareGroupStateResponseInput(_FlexibleInput, total=False):
    results: ReadOnly[Sequence[WriteShareGroupStateResponseWriteStateResultInput]]

class WriteShareGroupStateResponseWriteStateResult(_Flexible):
    topicId: str
    partitions: list[WriteShareGroupStateResponsePartitionResult]

class WriteShareGroupStateResponseWriteStateResultInput(_FlexibleInput, total=False):
    topicId: ReadOnly[str]
    partitions: ReadOnly[Sequence[WriteShareGroupStateResponsePartitionResultInput]]

class WriteShareGroupStateResponsePartitionResult(_Flexible):
    partition: int
    errorCode: int
    errorMessage: str | None

class WriteShareGroupStateResponsePartitionResultInput(_FlexibleInput, total=False):
    partition: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None

class DeleteShareGroupStateRequest(_Flexible, total=False):
    groupId: str
    topics: Sequence[DeleteShareGroupStateRequestDeleteStateData]

class DeleteShareGroupStateRequestDeleteStateData(_Flexible, total=False):
    topicId: str
    partitions: Sequence[DeleteShareGroupStateRequestPartitionData]

class DeleteShareGroupStateRequestPartitionData(_Flexible, total=False):
    partition: int

class DeleteShareGroupStateResponse(_Flexible):
    results: list[DeleteShareGroupStateResponseDeleteStateResult]

class DeleteShareGroupStateResponseInput(_FlexibleInput, total=False):
    results: ReadOnly[Sequence[DeleteShareGroupStateResponseDeleteStateResultInput]]

class DeleteShareGroupStateResponseDeleteStateResult(_Flexible):
    topicId: str
    partitions: list[DeleteShareGroupStateResponsePartitionResult]

class DeleteShareGroupStateResponseDeleteStateResultInput(_FlexibleInput, total=False):
    topicId: ReadOnly[str]
    partitions: ReadOnly[Sequence[DeleteShareGroupStateResponsePartitionResultInput]]

class DeleteShareGroupStateResponsePartitionResult(_Flexible):
    partition: int
    errorCode: int
    errorMessage: str | None

class DeleteShareGroupStateResponsePartitionResultInput(_FlexibleInput, total=False):
    partition: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None

class ReadShareGroupStateSummaryRequest(_Flexible, total=False):
    groupId: str
    topics: Sequence[ReadShareGroupStateSummaryRequestReadStateSummaryData]

class ReadShareGroupStateSummaryRequestReadStateSummaryData(_Flexible, total=False):
    topicId: str
    partitions: Sequence[ReadShareGroupStateSummaryRequestPartitionData]

class ReadShareGroupStateSummaryRequestPartitionData(_Flexible, total=False):
    partition: int
    leaderEpoch: int

class ReadShareGroupStateSummaryResponse(_Flexible):
    results: list[ReadShareGroupStateSummaryResponseReadStateSummaryResult]

class ReadShareGroupStateSummaryResponseInput(_FlexibleInput, total=False):
    results: ReadOnly[Sequence[ReadShareGroupStateSummaryResponseReadStateSummaryResultInput]]

class ReadShareGroupStateSummaryResponseReadStateSummaryResult(_Flexible):
    topicId: str
    partitions: list[ReadShareGroupStateSummaryResponsePartitionResult]

class ReadShareGroupStateSummaryResponseReadStateSummaryResultInput(_FlexibleInput, total=False):
    topicId: ReadOnly[str]
    partitions: ReadOnly[Sequence[ReadShareGroupStateSummaryResponsePartitionResultInput]]

class ReadShareGroupStateSummaryResponsePartitionResult(_Flexible):
    partition: int
    errorCode: int
    errorMessage: str | None
    stateEpoch: int
    leaderEpoch: int
    startOffset: int
    deliveryCompleteCount: NotRequired[int]  # versions 1+

class ReadShareGroupStateSummaryResponsePartitionResultInput(_FlexibleInput, total=False):
    partition: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    stateEpoch: ReadOnly[int]
    leaderEpoch: ReadOnly[int]
    startOffset: ReadOnly[int]
    deliveryCompleteCount: ReadOnly[int]  # default -1

class StreamsGroupHeartbeatRequest(_Flexible, total=False):
    groupId: str
    memberId: str
    memberEpoch: int
    endpointInformationEpoch: int
    instanceId: str | None  # default None
    rackId: str | None  # default None
    rebalanceTimeoutMs: int  # default -1
    topology: StreamsGroupHeartbeatRequestTopology | None  # default None
    activeTasks: Sequence[StreamsGroupHeartbeatRequestTaskIds] | None  # default None
    standbyTasks: Sequence[StreamsGroupHeartbeatRequestTaskIds] | None  # default None
    warmupTasks: Sequence[StreamsGroupHeartbeatRequestTaskIds] | None  # default None
    processId: str | None  # default None
    userEndpoint: StreamsGroupHeartbeatRequestEndpoint | None  # default None
    clientTags: Sequence[StreamsGroupHeartbeatRequestKeyValue] | None  # default None
    taskOffsets: Sequence[StreamsGroupHeartbeatRequestTaskOffset] | None  # default None
    taskEndOffsets: Sequence[StreamsGroupHeartbeatRequestTaskOffset] | None  # default None
    shutdownApplication: bool

class StreamsGroupHeartbeatRequestTopology(_Flexible, total=False):
    epoch: int
    subtopologies: Sequence[StreamsGroupHeartbeatRequestSubtopology]

class StreamsGroupHeartbeatRequestSubtopology(_Flexible, total=False):
    subtopologyId: str
    sourceTopics: Sequence[str]
    sourceTopicRegex: Sequence[str]
    stateChangelogTopics: Sequence[StreamsGroupHeartbeatRequestTopicInfo]
    repartitionSinkTopics: Sequence[str]
    repartitionSourceTopics: Sequence[StreamsGroupHeartbeatRequestTopicInfo]
    copartitionGroups: Sequence[StreamsGroupHeartbeatRequestCopartitionGroup]

class StreamsGroupHeartbeatRequestTopicInfo(_Flexible, total=False):
    name: str
    partitions: int
    replicationFactor: int
    topicConfigs: Sequence[StreamsGroupHeartbeatRequestKeyValue]

class StreamsGroupHeartbeatRequestKeyValue(_Flexible, total=False):
    key: str
    value: str

class StreamsGroupHeartbeatRequestCopartitionGroup(_Flexible, total=False):
    sourceTopics: Sequence[int]
    sourceTopicRegex: Sequence[int]
    repartitionSourceTopics: Sequence[int]

class StreamsGroupHeartbeatRequestTaskIds(_Flexible, total=False):
    subtopologyId: str
    partitions: Sequence[int]

class StreamsGroupHeartbeatRequestEndpoint(_Flexible, total=False):
    host: str
    port: int

class StreamsGroupHeartbeatRequestTaskOffset(_Flexible, total=False):
    subtopologyId: str
    partition: int
    offset: int

class StreamsGroupHeartbeatResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    memberId: str
    memberEpoch: int
    heartbeatIntervalMs: int
    acceptableRecoveryLagLegacy: NotRequired[int]  # version 0
    taskOffsetIntervalMs: int
    status: list[StreamsGroupHeartbeatResponseStatus] | None
    activeTasks: list[StreamsGroupHeartbeatResponseTaskIds] | None
    standbyTasks: list[StreamsGroupHeartbeatResponseTaskIds] | None
    warmupTasks: list[StreamsGroupHeartbeatResponseTaskIds] | None
    endpointInformationEpoch: int
    partitionsByUserEndpoint: list[StreamsGroupHeartbeatResponseEndpointToPartitions] | None
    acceptableRecoveryLag: NotRequired[int]  # versions 1+
    topologyDescriptionRequired: NotRequired[bool]  # versions 1+

class StreamsGroupHeartbeatResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    memberId: ReadOnly[str]
    memberEpoch: ReadOnly[int]
    heartbeatIntervalMs: ReadOnly[int]
    acceptableRecoveryLagLegacy: ReadOnly[int]
    taskOffsetIntervalMs: ReadOnly[int]
    status: ReadOnly[Sequence[StreamsGroupHeartbeatResponseStatusInput] | None]
    activeTasks: ReadOnly[Sequence[StreamsGroupHeartbeatResponseTaskIdsInput] | None]  # default None
    standbyTasks: ReadOnly[Sequence[StreamsGroupHeartbeatResponseTaskIdsInput] | None]  # default None
    warmupTasks: ReadOnly[Sequence[StreamsGroupHeartbeatResponseTaskIdsInput] | None]  # default None
    endpointInformationEpoch: ReadOnly[int]
    partitionsByUserEndpoint: ReadOnly[Sequence[StreamsGroupHeartbeatResponseEndpointToPartitionsInput] | None]  # default None
    acceptableRecoveryLag: ReadOnly[int]  # default -1
    topologyDescriptionRequired: ReadOnly[bool]

class StreamsGroupHeartbeatResponseStatus(_Flexible):
    statusCode: int
    statusDetail: str

class StreamsGroupHeartbeatResponseStatusInput(_FlexibleInput, total=False):
    statusCode: ReadOnly[int]
    statusDetail: ReadOnly[str]

class StreamsGroupHeartbeatResponseTaskIds(_Flexible):
    subtopologyId: str
    partitions: list[int]

class StreamsGroupHeartbeatResponseTaskIdsInput(_FlexibleInput, total=False):
    subtopologyId: ReadOnly[str]
    partitions: ReadOnly[Sequence[int]]

class StreamsGroupHeartbeatResponseEndpointToPartitions(_Flexible):
    userEndpoint: StreamsGroupHeartbeatResponseEndpoint
    activePartitions: list[StreamsGroupHeartbeatResponseTopicPartition]
    standbyPartitions: list[StreamsGroupHeartbeatResponseTopicPartition]

class StreamsGroupHeartbeatResponseEndpointToPartitionsInput(_FlexibleInput, total=False):
    userEndpoint: ReadOnly[StreamsGroupHeartbeatResponseEndpointInput]
    activePartitions: ReadOnly[Sequence[StreamsGroupHeartbeatResponseTopicPartitionInput]]
    standbyPartitions: ReadOnly[Sequence[StreamsGroupHeartbeatResponseTopicPartitionInput]]

class StreamsGroupHeartbeatResponseEndpoint(_Flexible):
    host: str
    port: int

class StreamsGroupHeartbeatResponseEndpointInput(_FlexibleInput, total=False):
    host: ReadOnly[str]
    port: ReadOnly[int]

class StreamsGroupHeartbeatResponseTopicPartition(_Flexible):
    topic: str
    partitions: list[int]

class StreamsGroupHeartbeatResponseTopicPartitionInput(_FlexibleInput, total=False):
    topic: ReadOnly[str]
    partitions: ReadOnly[Sequence[int]]

class StreamsGroupDescribeRequest(_Flexible, total=False):
    groupIds: Sequence[str]
    includeAuthorizedOperations: bool
    includeTopologyDescription: bool  # versions 1+

class StreamsGroupDescribeResponse(_Flexible):
    throttleTimeMs: int
    groups: list[StreamsGroupDescribeResponseDescribedGroup]

class StreamsGroupDescribeResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    groups: ReadOnly[Sequence[StreamsGroupDescribeResponseDescribedGroupInput]]

class StreamsGroupDescribeResponseDescribedGroup(_Flexible):
    errorCode: int
    errorMessage: str | None
    groupId: str
    groupState: str
    groupEpoch: int
    assignmentEpoch: int
    topology: StreamsGroupDescribeResponseTopology | None
    members: list[StreamsGroupDescribeResponseMember]
    authorizedOperations: int
    topologyDescription: NotRequired[StreamsGroupDescribeResponseTopologyDescription | None]  # versions 1+
    topologyDescriptionStatus: NotRequired[int]  # versions 1+
    assignorName: NotRequired[str | None]  # versions 1+

class StreamsGroupDescribeResponseDescribedGroupInput(_FlexibleInput, total=False):
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    groupId: ReadOnly[str]
    groupState: ReadOnly[str]
    groupEpoch: ReadOnly[int]
    assignmentEpoch: ReadOnly[int]
    topology: ReadOnly[StreamsGroupDescribeResponseTopologyInput | None]  # default None
    members: ReadOnly[Sequence[StreamsGroupDescribeResponseMemberInput]]
    authorizedOperations: ReadOnly[int]  # default -2147483648
    topologyDescription: ReadOnly[StreamsGroupDescribeResponseTopologyDescriptionInput | None]  # default None
    topologyDescriptionStatus: ReadOnly[int]
    assignorName: ReadOnly[str | None]  # default None

class StreamsGroupDescribeResponseTopology(_Flexible):
    epoch: int
    subtopologies: list[StreamsGroupDescribeResponseSubtopology] | None

class StreamsGroupDescribeResponseTopologyInput(_FlexibleInput, total=False):
    epoch: ReadOnly[int]
    subtopologies: ReadOnly[Sequence[StreamsGroupDescribeResponseSubtopologyInput] | None]  # default None

class StreamsGroupDescribeResponseSubtopology(_Flexible):
    subtopologyId: str
    sourceTopics: list[str]
    repartitionSinkTopics: list[str]
    stateChangelogTopics: list[StreamsGroupDescribeResponseTopicInfo]
    repartitionSourceTopics: list[StreamsGroupDescribeResponseTopicInfo]

class StreamsGroupDescribeResponseSubtopologyInput(_FlexibleInput, total=False):
    subtopologyId: ReadOnly[str]
    sourceTopics: ReadOnly[Sequence[str]]
    repartitionSinkTopics: ReadOnly[Sequence[str]]
    stateChangelogTopics: ReadOnly[Sequence[StreamsGroupDescribeResponseTopicInfoInput]]
    repartitionSourceTopics: ReadOnly[Sequence[StreamsGroupDescribeResponseTopicInfoInput]]

class StreamsGroupDescribeResponseTopicInfo(_Flexible):
    name: str
    partitions: int
    replicationFactor: int
    topicConfigs: list[StreamsGroupDescribeResponseKeyValue]

class StreamsGroupDescribeResponseTopicInfoInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    partitions: ReadOnly[int]
    replicationFactor: ReadOnly[int]
    topicConfigs: ReadOnly[Sequence[StreamsGroupDescribeResponseKeyValueInput]]

class StreamsGroupDescribeResponseKeyValue(_Flexible):
    key: str
    value: str

class StreamsGroupDescribeResponseKeyValueInput(_FlexibleInput, total=False):
    key: ReadOnly[str]
    value: ReadOnly[str]

class StreamsGroupDescribeResponseMember(_Flexible):
    memberId: str
    memberEpoch: int
    instanceId: str | None
    rackId: str | None
    clientId: str
    clientHost: str
    topologyEpoch: int
    processId: str
    userEndpoint: StreamsGroupDescribeResponseEndpoint | None
    clientTags: list[StreamsGroupDescribeResponseKeyValue]
    taskOffsets: list[StreamsGroupDescribeResponseTaskOffset]
    taskEndOffsets: list[StreamsGroupDescribeResponseTaskOffset]
    assignment: StreamsGroupDescribeResponseAssignment
    targetAssignment: StreamsGroupDescribeResponseAssignment
    isClassic: bool

class StreamsGroupDescribeResponseMemberInput(_FlexibleInput, total=False):
    memberId: ReadOnly[str]
    memberEpoch: ReadOnly[int]
    instanceId: ReadOnly[str | None]  # default None
    rackId: ReadOnly[str | None]  # default None
    clientId: ReadOnly[str]
    clientHost: ReadOnly[str]
    topologyEpoch: ReadOnly[int]
    processId: ReadOnly[str]
    userEndpoint: ReadOnly[StreamsGroupDescribeResponseEndpointInput | None]  # default None
    clientTags: ReadOnly[Sequence[StreamsGroupDescribeResponseKeyValueInput]]
    taskOffsets: ReadOnly[Sequence[StreamsGroupDescribeResponseTaskOffsetInput]]
    taskEndOffsets: ReadOnly[Sequence[StreamsGroupDescribeResponseTaskOffsetInput]]
    assignment: ReadOnly[StreamsGroupDescribeResponseAssignmentInput]
    targetAssignment: ReadOnly[StreamsGroupDescribeResponseAssignmentInput]
    isClassic: ReadOnly[bool]

class StreamsGroupDescribeResponseEndpoint(_Flexible):
    host: str
    port: int

class StreamsGroupDescribeResponseEndpointInput(_FlexibleInput, total=False):
    host: ReadOnly[str]
    port: ReadOnly[int]

class StreamsGroupDescribeResponseTaskOffset(_Flexible):
    subtopologyId: str
    partition: int
    offset: int

class StreamsGroupDescribeResponseTaskOffsetInput(_FlexibleInput, total=False):
    subtopologyId: ReadOnly[str]
    partition: ReadOnly[int]
    offset: ReadOnly[int]

class StreamsGroupDescribeResponseAssignment(_Flexible):
    activeTasks: list[StreamsGroupDescribeResponseTaskIds]
    standbyTasks: list[StreamsGroupDescribeResponseTaskIds]
    warmupTasks: list[StreamsGroupDescribeResponseTaskIds]

class StreamsGroupDescribeResponseAssignmentInput(_FlexibleInput, total=False):
    activeTasks: ReadOnly[Sequence[StreamsGroupDescribeResponseTaskIdsInput]]
    standbyTasks: ReadOnly[Sequence[StreamsGroupDescribeResponseTaskIdsInput]]
    warmupTasks: ReadOnly[Sequence[StreamsGroupDescribeResponseTaskIdsInput]]

class StreamsGroupDescribeResponseTaskIds(_Flexible):
    subtopologyId: str
    partitions: list[int]

class StreamsGroupDescribeResponseTaskIdsInput(_FlexibleInput, total=False):
    subtopologyId: ReadOnly[str]
    partitions: ReadOnly[Sequence[int]]

class StreamsGroupDescribeResponseTopologyDescription(_Flexible):
    subtopologies: list[StreamsGroupDescribeResponseTopologyDescriptionSubtopology]
    globalStores: list[StreamsGroupDescribeResponseTopologyDescriptionGlobalStore]

class StreamsGroupDescribeResponseTopologyDescriptionInput(_FlexibleInput, total=False):
    subtopologies: ReadOnly[Sequence[StreamsGroupDescribeResponseTopologyDescriptionSubtopologyInput]]
    globalStores: ReadOnly[Sequence[StreamsGroupDescribeResponseTopologyDescriptionGlobalStoreInput]]

class StreamsGroupDescribeResponseTopologyDescriptionSubtopology(_Flexible):
    subtopologyId: str
    nodes: list[StreamsGroupDescribeResponseTopologyDescriptionNode]

class StreamsGroupDescribeResponseTopologyDescriptionSubtopologyInput(_FlexibleInput, total=False):
    subtopologyId: ReadOnly[str]
    nodes: ReadOnly[Sequence[StreamsGroupDescribeResponseTopologyDescriptionNodeInput]]

class StreamsGroupDescribeResponseTopologyDescriptionNode(_Flexible):
    name: str
    nodeType: int
    sourceTopics: list[str]
    sinkTopic: str | None
    stores: list[str]
    successors: list[str]

class StreamsGroupDescribeResponseTopologyDescriptionNodeInput(_FlexibleInput, total=False):
    name: ReadOnly[str]
    nodeType: ReadOnly[int]
    sourceTopics: ReadOnly[Sequence[str]]
    sinkTopic: ReadOnly[str | None]  # default None
    stores: ReadOnly[Sequence[str]]
    successors: ReadOnly[Sequence[str]]

class StreamsGroupDescribeResponseTopologyDescriptionGlobalStore(_Flexible):
    source: StreamsGroupDescribeResponseTopologyDescriptionNode
    processor: StreamsGroupDescribeResponseTopologyDescriptionNode

class StreamsGroupDescribeResponseTopologyDescriptionGlobalStoreInput(_FlexibleInput, total=False):
    source: ReadOnly[StreamsGroupDescribeResponseTopologyDescriptionNodeInput]
    processor: ReadOnly[StreamsGroupDescribeResponseTopologyDescriptionNodeInput]

class DescribeShareGroupOffsetsRequest(_Flexible, total=False):
    groups: Sequence[DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestGroup]

class DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestGroup(_Flexible, total=False):
    groupId: str
    topics: Sequence[DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestTopic] | None

class DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestTopic(_Flexible, total=False):
    topicName: str
    partitions: Sequence[int]

class DescribeShareGroupOffsetsResponse(_Flexible):
    throttleTimeMs: int
    groups: list[DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseGroup]

class DescribeShareGroupOffsetsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    groups: ReadOnly[Sequence[DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseGroupInput]]

class DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseGroup(_Flexible):
    groupId: str
    topics: list[DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseTopic]
    errorCode: int
    errorMessage: str | None

class DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseGroupInput(_FlexibleInput, total=False):
    groupId: ReadOnly[str]
    topics: ReadOnly[Sequence[DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseTopicInput]]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None

class DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseTopic(_Flexible):
    topicName: str
    topicId: str
    partitions: list[DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponsePartition]

class DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseTopicInput(_FlexibleInput, total=False):
    topicName: ReadOnly[str]
    topicId: ReadOnly[str]
    partitions: ReadOnly[Sequence[DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponsePartitionInput]]

class DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponsePartition(_Flexible):
    partitionIndex: int
    startOffset: int
    leaderEpoch: int
    errorCode: int
    errorMessage: str | None
    lag: NotRequired[int]  # versions 1+

class DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponsePartitionInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    startOffset: ReadOnly[int]
    leaderEpoch: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    lag: ReadOnly[int]  # default -1

class AlterShareGroupOffsetsRequest(_Flexible, total=False):
    groupId: str
    topics: Sequence[AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestTopic]

class AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestTopic(_Flexible, total=False):
    topicName: str
    partitions: Sequence[AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestPartition]

class AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestPartition(_Flexible, total=False):
    partitionIndex: int
    startOffset: int

class AlterShareGroupOffsetsResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    responses: list[AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponseTopic]

class AlterShareGroupOffsetsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    responses: ReadOnly[Sequence[AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponseTopicInput]]

class AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponseTopic(_Flexible):
    topicName: str
    topicId: str
    partitions: list[AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponsePartition]

class AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponseTopicInput(_FlexibleInput, total=False):
    topicName: ReadOnly[str]
    topicId: ReadOnly[str]
    partitions: ReadOnly[Sequence[AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponsePartitionInput]]

class AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponsePartition(_Flexible):
    partitionIndex: int
    errorCode: int
    errorMessage: str | None

class AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponsePartitionInput(_FlexibleInput, total=False):
    partitionIndex: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None

class DeleteShareGroupOffsetsRequest(_Flexible, total=False):
    groupId: str
    topics: Sequence[DeleteShareGroupOffsetsRequestDeleteShareGroupOffsetsRequestTopic]

class DeleteShareGroupOffsetsRequestDeleteShareGroupOffsetsRequestTopic(_Flexible, total=False):
    topicName: str

class DeleteShareGroupOffsetsResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None
    responses: list[DeleteShareGroupOffsetsResponseDeleteShareGroupOffsetsResponseTopic]

class DeleteShareGroupOffsetsResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None
    responses: ReadOnly[Sequence[DeleteShareGroupOffsetsResponseDeleteShareGroupOffsetsResponseTopicInput]]

class DeleteShareGroupOffsetsResponseDeleteShareGroupOffsetsResponseTopic(_Flexible):
    topicName: str
    topicId: str
    errorCode: int
    errorMessage: str | None

class DeleteShareGroupOffsetsResponseDeleteShareGroupOffsetsResponseTopicInput(_FlexibleInput, total=False):
    topicName: ReadOnly[str]
    topicId: ReadOnly[str]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None

class StreamsGroupTopologyDescriptionUpdateRequest(_Flexible, total=False):
    groupId: str
    memberId: str
    topologyEpoch: int
    topologyDescription: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription

class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription(_Flexible, total=False):
    subtopologies: Sequence[StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology]
    globalStores: Sequence[StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore]

class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology(_Flexible, total=False):
    subtopologyId: str
    nodes: Sequence[StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode]

class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode(_Flexible, total=False):
    name: str
    nodeType: int
    sourceTopics: Sequence[str]
    sinkTopic: str | None  # default None
    stores: Sequence[str]
    successors: Sequence[str]

class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore(_Flexible, total=False):
    source: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode
    processor: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode

class StreamsGroupTopologyDescriptionUpdateResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None

class StreamsGroupTopologyDescriptionUpdateResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]  # default None

class UnregisterControllerRequest(_Flexible, total=False):
    controllerId: int

class UnregisterControllerResponse(_Flexible):
    throttleTimeMs: int
    errorCode: int
    errorMessage: str | None

class UnregisterControllerResponseInput(_FlexibleInput, total=False):
    throttleTimeMs: ReadOnly[int]
    errorCode: ReadOnly[int]
    errorMessage: ReadOnly[str | None]
