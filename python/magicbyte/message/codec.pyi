"""The functions of `codec.py` by the names of APIs. Written by `scripts/message_types.py`."""

from collections.abc import Mapping
from typing import Any, Literal, overload

from typing_extensions import Buffer

from magicbyte.message import bodies
from magicbyte.message.api_keys import ApiKeys
from magicbyte.message.model import Message

def decode_request(frame: Buffer, *, secrets: bool = True) -> Message: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["Produce", ApiKeys.PRODUCE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ProduceResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["Fetch", ApiKeys.FETCH], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.FetchResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ListOffsets", ApiKeys.LIST_OFFSETS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ListOffsetsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["Metadata", ApiKeys.METADATA], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.MetadataResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["LeaderAndIsr", ApiKeys.LEADER_AND_ISR], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.LeaderAndIsrResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["StopReplica", ApiKeys.STOP_REPLICA], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.StopReplicaResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["UpdateMetadata", ApiKeys.UPDATE_METADATA], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.UpdateMetadataResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ControlledShutdown", ApiKeys.CONTROLLED_SHUTDOWN], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ControlledShutdownResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["OffsetCommit", ApiKeys.OFFSET_COMMIT], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.OffsetCommitResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["OffsetFetch", ApiKeys.OFFSET_FETCH], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.OffsetFetchResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["FindCoordinator", ApiKeys.FIND_COORDINATOR], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.FindCoordinatorResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["JoinGroup", ApiKeys.JOIN_GROUP], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.JoinGroupResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["Heartbeat", ApiKeys.HEARTBEAT], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.HeartbeatResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["LeaveGroup", ApiKeys.LEAVE_GROUP], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.LeaveGroupResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["SyncGroup", ApiKeys.SYNC_GROUP], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.SyncGroupResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DescribeGroups", ApiKeys.DESCRIBE_GROUPS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DescribeGroupsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ListGroups", ApiKeys.LIST_GROUPS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ListGroupsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["SaslHandshake", ApiKeys.SASL_HANDSHAKE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.SaslHandshakeResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ApiVersions", ApiKeys.API_VERSIONS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ApiVersionsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["CreateTopics", ApiKeys.CREATE_TOPICS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.CreateTopicsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DeleteTopics", ApiKeys.DELETE_TOPICS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DeleteTopicsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DeleteRecords", ApiKeys.DELETE_RECORDS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DeleteRecordsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["InitProducerId", ApiKeys.INIT_PRODUCER_ID], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.InitProducerIdResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["OffsetForLeaderEpoch", ApiKeys.OFFSET_FOR_LEADER_EPOCH], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.OffsetForLeaderEpochResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["AddPartitionsToTxn", ApiKeys.ADD_PARTITIONS_TO_TXN], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.AddPartitionsToTxnResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["AddOffsetsToTxn", ApiKeys.ADD_OFFSETS_TO_TXN], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.AddOffsetsToTxnResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["EndTxn", ApiKeys.END_TXN], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.EndTxnResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["WriteTxnMarkers", ApiKeys.WRITE_TXN_MARKERS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.WriteTxnMarkersResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["TxnOffsetCommit", ApiKeys.TXN_OFFSET_COMMIT], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.TxnOffsetCommitResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DescribeAcls", ApiKeys.DESCRIBE_ACLS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DescribeAclsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["CreateAcls", ApiKeys.CREATE_ACLS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.CreateAclsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DeleteAcls", ApiKeys.DELETE_ACLS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DeleteAclsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DescribeConfigs", ApiKeys.DESCRIBE_CONFIGS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DescribeConfigsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["AlterConfigs", ApiKeys.ALTER_CONFIGS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.AlterConfigsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["AlterReplicaLogDirs", ApiKeys.ALTER_REPLICA_LOG_DIRS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.AlterReplicaLogDirsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DescribeLogDirs", ApiKeys.DESCRIBE_LOG_DIRS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DescribeLogDirsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["SaslAuthenticate", ApiKeys.SASL_AUTHENTICATE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.SaslAuthenticateResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["CreatePartitions", ApiKeys.CREATE_PARTITIONS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.CreatePartitionsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["CreateDelegationToken", ApiKeys.CREATE_DELEGATION_TOKEN], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.CreateDelegationTokenResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["RenewDelegationToken", ApiKeys.RENEW_DELEGATION_TOKEN], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.RenewDelegationTokenResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ExpireDelegationToken", ApiKeys.EXPIRE_DELEGATION_TOKEN], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ExpireDelegationTokenResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DescribeDelegationToken", ApiKeys.DESCRIBE_DELEGATION_TOKEN], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DescribeDelegationTokenResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DeleteGroups", ApiKeys.DELETE_GROUPS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DeleteGroupsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ElectLeaders", ApiKeys.ELECT_LEADERS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ElectLeadersResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["IncrementalAlterConfigs", ApiKeys.INCREMENTAL_ALTER_CONFIGS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.IncrementalAlterConfigsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["AlterPartitionReassignments", ApiKeys.ALTER_PARTITION_REASSIGNMENTS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.AlterPartitionReassignmentsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ListPartitionReassignments", ApiKeys.LIST_PARTITION_REASSIGNMENTS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ListPartitionReassignmentsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["OffsetDelete", ApiKeys.OFFSET_DELETE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.OffsetDeleteResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DescribeClientQuotas", ApiKeys.DESCRIBE_CLIENT_QUOTAS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DescribeClientQuotasResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["AlterClientQuotas", ApiKeys.ALTER_CLIENT_QUOTAS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.AlterClientQuotasResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DescribeUserScramCredentials", ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DescribeUserScramCredentialsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["AlterUserScramCredentials", ApiKeys.ALTER_USER_SCRAM_CREDENTIALS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.AlterUserScramCredentialsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["Vote", ApiKeys.VOTE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.VoteResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["BeginQuorumEpoch", ApiKeys.BEGIN_QUORUM_EPOCH], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.BeginQuorumEpochResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["EndQuorumEpoch", ApiKeys.END_QUORUM_EPOCH], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.EndQuorumEpochResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DescribeQuorum", ApiKeys.DESCRIBE_QUORUM], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DescribeQuorumResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["AlterPartition", ApiKeys.ALTER_PARTITION], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.AlterPartitionResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["UpdateFeatures", ApiKeys.UPDATE_FEATURES], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.UpdateFeaturesResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["Envelope", ApiKeys.ENVELOPE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.EnvelopeResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["FetchSnapshot", ApiKeys.FETCH_SNAPSHOT], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.FetchSnapshotResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DescribeCluster", ApiKeys.DESCRIBE_CLUSTER], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DescribeClusterResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DescribeProducers", ApiKeys.DESCRIBE_PRODUCERS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DescribeProducersResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["BrokerRegistration", ApiKeys.BROKER_REGISTRATION], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.BrokerRegistrationResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["BrokerHeartbeat", ApiKeys.BROKER_HEARTBEAT], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.BrokerHeartbeatResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["UnregisterBroker", ApiKeys.UNREGISTER_BROKER], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.UnregisterBrokerResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DescribeTransactions", ApiKeys.DESCRIBE_TRANSACTIONS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DescribeTransactionsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ListTransactions", ApiKeys.LIST_TRANSACTIONS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ListTransactionsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["AllocateProducerIds", ApiKeys.ALLOCATE_PRODUCER_IDS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.AllocateProducerIdsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ConsumerGroupHeartbeat", ApiKeys.CONSUMER_GROUP_HEARTBEAT], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ConsumerGroupHeartbeatResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ConsumerGroupDescribe", ApiKeys.CONSUMER_GROUP_DESCRIBE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ConsumerGroupDescribeResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ControllerRegistration", ApiKeys.CONTROLLER_REGISTRATION], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ControllerRegistrationResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["GetTelemetrySubscriptions", ApiKeys.GET_TELEMETRY_SUBSCRIPTIONS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.GetTelemetrySubscriptionsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["PushTelemetry", ApiKeys.PUSH_TELEMETRY], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.PushTelemetryResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["AssignReplicasToDirs", ApiKeys.ASSIGN_REPLICAS_TO_DIRS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.AssignReplicasToDirsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ListConfigResources", ApiKeys.LIST_CONFIG_RESOURCES], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ListConfigResourcesResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DescribeTopicPartitions", ApiKeys.DESCRIBE_TOPIC_PARTITIONS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DescribeTopicPartitionsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ShareGroupHeartbeat", ApiKeys.SHARE_GROUP_HEARTBEAT], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ShareGroupHeartbeatResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ShareGroupDescribe", ApiKeys.SHARE_GROUP_DESCRIBE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ShareGroupDescribeResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ShareFetch", ApiKeys.SHARE_FETCH], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ShareFetchResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ShareAcknowledge", ApiKeys.SHARE_ACKNOWLEDGE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ShareAcknowledgeResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["AddRaftVoter", ApiKeys.ADD_RAFT_VOTER], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.AddRaftVoterResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["RemoveRaftVoter", ApiKeys.REMOVE_RAFT_VOTER], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.RemoveRaftVoterResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["UpdateRaftVoter", ApiKeys.UPDATE_RAFT_VOTER], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.UpdateRaftVoterResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["InitializeShareGroupState", ApiKeys.INITIALIZE_SHARE_GROUP_STATE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.InitializeShareGroupStateResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ReadShareGroupState", ApiKeys.READ_SHARE_GROUP_STATE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ReadShareGroupStateResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["WriteShareGroupState", ApiKeys.WRITE_SHARE_GROUP_STATE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.WriteShareGroupStateResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DeleteShareGroupState", ApiKeys.DELETE_SHARE_GROUP_STATE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DeleteShareGroupStateResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["ReadShareGroupStateSummary", ApiKeys.READ_SHARE_GROUP_STATE_SUMMARY], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.ReadShareGroupStateSummaryResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["StreamsGroupHeartbeat", ApiKeys.STREAMS_GROUP_HEARTBEAT], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.StreamsGroupHeartbeatResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["StreamsGroupDescribe", ApiKeys.STREAMS_GROUP_DESCRIBE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.StreamsGroupDescribeResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DescribeShareGroupOffsets", ApiKeys.DESCRIBE_SHARE_GROUP_OFFSETS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DescribeShareGroupOffsetsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["AlterShareGroupOffsets", ApiKeys.ALTER_SHARE_GROUP_OFFSETS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.AlterShareGroupOffsetsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["DeleteShareGroupOffsets", ApiKeys.DELETE_SHARE_GROUP_OFFSETS], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.DeleteShareGroupOffsetsResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["StreamsGroupTopologyDescriptionUpdate", ApiKeys.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.StreamsGroupTopologyDescriptionUpdateResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: Literal["UnregisterController", ApiKeys.UNREGISTER_CONTROLLER], api_version: int, *, secrets: Literal[True] = True
) -> Message[bodies.UnregisterControllerResponse]: ...
@overload
def decode_response(
    frame: Buffer, api: int | str, api_version: int, *, secrets: bool = True
) -> Message[Any]: ...
@overload
def encode_request(
    api: Literal["Produce"],
    api_version: int,
    body: bodies.ProduceRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["Fetch"],
    api_version: int,
    body: bodies.FetchRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ListOffsets"],
    api_version: int,
    body: bodies.ListOffsetsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["Metadata"],
    api_version: int,
    body: bodies.MetadataRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["LeaderAndIsr"],
    api_version: int,
    body: bodies.LeaderAndIsrRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["StopReplica"],
    api_version: int,
    body: bodies.StopReplicaRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["UpdateMetadata"],
    api_version: int,
    body: bodies.UpdateMetadataRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ControlledShutdown"],
    api_version: int,
    body: bodies.ControlledShutdownRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["OffsetCommit"],
    api_version: int,
    body: bodies.OffsetCommitRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["OffsetFetch"],
    api_version: int,
    body: bodies.OffsetFetchRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["FindCoordinator"],
    api_version: int,
    body: bodies.FindCoordinatorRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["JoinGroup"],
    api_version: int,
    body: bodies.JoinGroupRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["Heartbeat"],
    api_version: int,
    body: bodies.HeartbeatRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["LeaveGroup"],
    api_version: int,
    body: bodies.LeaveGroupRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["SyncGroup"],
    api_version: int,
    body: bodies.SyncGroupRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DescribeGroups"],
    api_version: int,
    body: bodies.DescribeGroupsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ListGroups"],
    api_version: int,
    body: bodies.ListGroupsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["SaslHandshake"],
    api_version: int,
    body: bodies.SaslHandshakeRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ApiVersions"],
    api_version: int,
    body: bodies.ApiVersionsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["CreateTopics"],
    api_version: int,
    body: bodies.CreateTopicsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DeleteTopics"],
    api_version: int,
    body: bodies.DeleteTopicsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DeleteRecords"],
    api_version: int,
    body: bodies.DeleteRecordsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["InitProducerId"],
    api_version: int,
    body: bodies.InitProducerIdRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["OffsetForLeaderEpoch"],
    api_version: int,
    body: bodies.OffsetForLeaderEpochRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["AddPartitionsToTxn"],
    api_version: int,
    body: bodies.AddPartitionsToTxnRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["AddOffsetsToTxn"],
    api_version: int,
    body: bodies.AddOffsetsToTxnRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["EndTxn"],
    api_version: int,
    body: bodies.EndTxnRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["WriteTxnMarkers"],
    api_version: int,
    body: bodies.WriteTxnMarkersRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["TxnOffsetCommit"],
    api_version: int,
    body: bodies.TxnOffsetCommitRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DescribeAcls"],
    api_version: int,
    body: bodies.DescribeAclsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["CreateAcls"],
    api_version: int,
    body: bodies.CreateAclsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DeleteAcls"],
    api_version: int,
    body: bodies.DeleteAclsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DescribeConfigs"],
    api_version: int,
    body: bodies.DescribeConfigsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["AlterConfigs"],
    api_version: int,
    body: bodies.AlterConfigsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["AlterReplicaLogDirs"],
    api_version: int,
    body: bodies.AlterReplicaLogDirsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DescribeLogDirs"],
    api_version: int,
    body: bodies.DescribeLogDirsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["SaslAuthenticate"],
    api_version: int,
    body: bodies.SaslAuthenticateRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["CreatePartitions"],
    api_version: int,
    body: bodies.CreatePartitionsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["CreateDelegationToken"],
    api_version: int,
    body: bodies.CreateDelegationTokenRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["RenewDelegationToken"],
    api_version: int,
    body: bodies.RenewDelegationTokenRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ExpireDelegationToken"],
    api_version: int,
    body: bodies.ExpireDelegationTokenRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DescribeDelegationToken"],
    api_version: int,
    body: bodies.DescribeDelegationTokenRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DeleteGroups"],
    api_version: int,
    body: bodies.DeleteGroupsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ElectLeaders"],
    api_version: int,
    body: bodies.ElectLeadersRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["IncrementalAlterConfigs"],
    api_version: int,
    body: bodies.IncrementalAlterConfigsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["AlterPartitionReassignments"],
    api_version: int,
    body: bodies.AlterPartitionReassignmentsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ListPartitionReassignments"],
    api_version: int,
    body: bodies.ListPartitionReassignmentsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["OffsetDelete"],
    api_version: int,
    body: bodies.OffsetDeleteRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DescribeClientQuotas"],
    api_version: int,
    body: bodies.DescribeClientQuotasRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["AlterClientQuotas"],
    api_version: int,
    body: bodies.AlterClientQuotasRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DescribeUserScramCredentials"],
    api_version: int,
    body: bodies.DescribeUserScramCredentialsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["AlterUserScramCredentials"],
    api_version: int,
    body: bodies.AlterUserScramCredentialsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["Vote"],
    api_version: int,
    body: bodies.VoteRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["BeginQuorumEpoch"],
    api_version: int,
    body: bodies.BeginQuorumEpochRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["EndQuorumEpoch"],
    api_version: int,
    body: bodies.EndQuorumEpochRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DescribeQuorum"],
    api_version: int,
    body: bodies.DescribeQuorumRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["AlterPartition"],
    api_version: int,
    body: bodies.AlterPartitionRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["UpdateFeatures"],
    api_version: int,
    body: bodies.UpdateFeaturesRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["Envelope"],
    api_version: int,
    body: bodies.EnvelopeRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["FetchSnapshot"],
    api_version: int,
    body: bodies.FetchSnapshotRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DescribeCluster"],
    api_version: int,
    body: bodies.DescribeClusterRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DescribeProducers"],
    api_version: int,
    body: bodies.DescribeProducersRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["BrokerRegistration"],
    api_version: int,
    body: bodies.BrokerRegistrationRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["BrokerHeartbeat"],
    api_version: int,
    body: bodies.BrokerHeartbeatRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["UnregisterBroker"],
    api_version: int,
    body: bodies.UnregisterBrokerRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DescribeTransactions"],
    api_version: int,
    body: bodies.DescribeTransactionsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ListTransactions"],
    api_version: int,
    body: bodies.ListTransactionsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["AllocateProducerIds"],
    api_version: int,
    body: bodies.AllocateProducerIdsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ConsumerGroupHeartbeat"],
    api_version: int,
    body: bodies.ConsumerGroupHeartbeatRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ConsumerGroupDescribe"],
    api_version: int,
    body: bodies.ConsumerGroupDescribeRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ControllerRegistration"],
    api_version: int,
    body: bodies.ControllerRegistrationRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["GetTelemetrySubscriptions"],
    api_version: int,
    body: bodies.GetTelemetrySubscriptionsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["PushTelemetry"],
    api_version: int,
    body: bodies.PushTelemetryRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["AssignReplicasToDirs"],
    api_version: int,
    body: bodies.AssignReplicasToDirsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ListConfigResources"],
    api_version: int,
    body: bodies.ListConfigResourcesRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DescribeTopicPartitions"],
    api_version: int,
    body: bodies.DescribeTopicPartitionsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ShareGroupHeartbeat"],
    api_version: int,
    body: bodies.ShareGroupHeartbeatRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ShareGroupDescribe"],
    api_version: int,
    body: bodies.ShareGroupDescribeRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ShareFetch"],
    api_version: int,
    body: bodies.ShareFetchRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ShareAcknowledge"],
    api_version: int,
    body: bodies.ShareAcknowledgeRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["AddRaftVoter"],
    api_version: int,
    body: bodies.AddRaftVoterRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["RemoveRaftVoter"],
    api_version: int,
    body: bodies.RemoveRaftVoterRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["UpdateRaftVoter"],
    api_version: int,
    body: bodies.UpdateRaftVoterRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["InitializeShareGroupState"],
    api_version: int,
    body: bodies.InitializeShareGroupStateRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ReadShareGroupState"],
    api_version: int,
    body: bodies.ReadShareGroupStateRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["WriteShareGroupState"],
    api_version: int,
    body: bodies.WriteShareGroupStateRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DeleteShareGroupState"],
    api_version: int,
    body: bodies.DeleteShareGroupStateRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["ReadShareGroupStateSummary"],
    api_version: int,
    body: bodies.ReadShareGroupStateSummaryRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["StreamsGroupHeartbeat"],
    api_version: int,
    body: bodies.StreamsGroupHeartbeatRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["StreamsGroupDescribe"],
    api_version: int,
    body: bodies.StreamsGroupDescribeRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DescribeShareGroupOffsets"],
    api_version: int,
    body: bodies.DescribeShareGroupOffsetsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["AlterShareGroupOffsets"],
    api_version: int,
    body: bodies.AlterShareGroupOffsetsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["DeleteShareGroupOffsets"],
    api_version: int,
    body: bodies.DeleteShareGroupOffsetsRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["StreamsGroupTopologyDescriptionUpdate"],
    api_version: int,
    body: bodies.StreamsGroupTopologyDescriptionUpdateRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: Literal["UnregisterController"],
    api_version: int,
    body: bodies.UnregisterControllerRequest,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_request(
    api: int,
    api_version: int,
    body: Mapping[str, Any],
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["Produce"],
    api_version: int,
    body: bodies.ProduceResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["Fetch"],
    api_version: int,
    body: bodies.FetchResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ListOffsets"],
    api_version: int,
    body: bodies.ListOffsetsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["Metadata"],
    api_version: int,
    body: bodies.MetadataResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["LeaderAndIsr"],
    api_version: int,
    body: bodies.LeaderAndIsrResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["StopReplica"],
    api_version: int,
    body: bodies.StopReplicaResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["UpdateMetadata"],
    api_version: int,
    body: bodies.UpdateMetadataResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ControlledShutdown"],
    api_version: int,
    body: bodies.ControlledShutdownResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["OffsetCommit"],
    api_version: int,
    body: bodies.OffsetCommitResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["OffsetFetch"],
    api_version: int,
    body: bodies.OffsetFetchResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["FindCoordinator"],
    api_version: int,
    body: bodies.FindCoordinatorResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["JoinGroup"],
    api_version: int,
    body: bodies.JoinGroupResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["Heartbeat"],
    api_version: int,
    body: bodies.HeartbeatResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["LeaveGroup"],
    api_version: int,
    body: bodies.LeaveGroupResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["SyncGroup"],
    api_version: int,
    body: bodies.SyncGroupResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DescribeGroups"],
    api_version: int,
    body: bodies.DescribeGroupsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ListGroups"],
    api_version: int,
    body: bodies.ListGroupsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["SaslHandshake"],
    api_version: int,
    body: bodies.SaslHandshakeResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ApiVersions"],
    api_version: int,
    body: bodies.ApiVersionsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["CreateTopics"],
    api_version: int,
    body: bodies.CreateTopicsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DeleteTopics"],
    api_version: int,
    body: bodies.DeleteTopicsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DeleteRecords"],
    api_version: int,
    body: bodies.DeleteRecordsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["InitProducerId"],
    api_version: int,
    body: bodies.InitProducerIdResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["OffsetForLeaderEpoch"],
    api_version: int,
    body: bodies.OffsetForLeaderEpochResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["AddPartitionsToTxn"],
    api_version: int,
    body: bodies.AddPartitionsToTxnResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["AddOffsetsToTxn"],
    api_version: int,
    body: bodies.AddOffsetsToTxnResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["EndTxn"],
    api_version: int,
    body: bodies.EndTxnResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["WriteTxnMarkers"],
    api_version: int,
    body: bodies.WriteTxnMarkersResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["TxnOffsetCommit"],
    api_version: int,
    body: bodies.TxnOffsetCommitResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DescribeAcls"],
    api_version: int,
    body: bodies.DescribeAclsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["CreateAcls"],
    api_version: int,
    body: bodies.CreateAclsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DeleteAcls"],
    api_version: int,
    body: bodies.DeleteAclsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DescribeConfigs"],
    api_version: int,
    body: bodies.DescribeConfigsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["AlterConfigs"],
    api_version: int,
    body: bodies.AlterConfigsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["AlterReplicaLogDirs"],
    api_version: int,
    body: bodies.AlterReplicaLogDirsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DescribeLogDirs"],
    api_version: int,
    body: bodies.DescribeLogDirsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["SaslAuthenticate"],
    api_version: int,
    body: bodies.SaslAuthenticateResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["CreatePartitions"],
    api_version: int,
    body: bodies.CreatePartitionsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["CreateDelegationToken"],
    api_version: int,
    body: bodies.CreateDelegationTokenResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["RenewDelegationToken"],
    api_version: int,
    body: bodies.RenewDelegationTokenResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ExpireDelegationToken"],
    api_version: int,
    body: bodies.ExpireDelegationTokenResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DescribeDelegationToken"],
    api_version: int,
    body: bodies.DescribeDelegationTokenResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DeleteGroups"],
    api_version: int,
    body: bodies.DeleteGroupsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ElectLeaders"],
    api_version: int,
    body: bodies.ElectLeadersResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["IncrementalAlterConfigs"],
    api_version: int,
    body: bodies.IncrementalAlterConfigsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["AlterPartitionReassignments"],
    api_version: int,
    body: bodies.AlterPartitionReassignmentsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ListPartitionReassignments"],
    api_version: int,
    body: bodies.ListPartitionReassignmentsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["OffsetDelete"],
    api_version: int,
    body: bodies.OffsetDeleteResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DescribeClientQuotas"],
    api_version: int,
    body: bodies.DescribeClientQuotasResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["AlterClientQuotas"],
    api_version: int,
    body: bodies.AlterClientQuotasResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DescribeUserScramCredentials"],
    api_version: int,
    body: bodies.DescribeUserScramCredentialsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["AlterUserScramCredentials"],
    api_version: int,
    body: bodies.AlterUserScramCredentialsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["Vote"],
    api_version: int,
    body: bodies.VoteResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["BeginQuorumEpoch"],
    api_version: int,
    body: bodies.BeginQuorumEpochResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["EndQuorumEpoch"],
    api_version: int,
    body: bodies.EndQuorumEpochResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DescribeQuorum"],
    api_version: int,
    body: bodies.DescribeQuorumResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["AlterPartition"],
    api_version: int,
    body: bodies.AlterPartitionResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["UpdateFeatures"],
    api_version: int,
    body: bodies.UpdateFeaturesResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["Envelope"],
    api_version: int,
    body: bodies.EnvelopeResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["FetchSnapshot"],
    api_version: int,
    body: bodies.FetchSnapshotResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DescribeCluster"],
    api_version: int,
    body: bodies.DescribeClusterResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DescribeProducers"],
    api_version: int,
    body: bodies.DescribeProducersResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["BrokerRegistration"],
    api_version: int,
    body: bodies.BrokerRegistrationResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["BrokerHeartbeat"],
    api_version: int,
    body: bodies.BrokerHeartbeatResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["UnregisterBroker"],
    api_version: int,
    body: bodies.UnregisterBrokerResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DescribeTransactions"],
    api_version: int,
    body: bodies.DescribeTransactionsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ListTransactions"],
    api_version: int,
    body: bodies.ListTransactionsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["AllocateProducerIds"],
    api_version: int,
    body: bodies.AllocateProducerIdsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ConsumerGroupHeartbeat"],
    api_version: int,
    body: bodies.ConsumerGroupHeartbeatResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ConsumerGroupDescribe"],
    api_version: int,
    body: bodies.ConsumerGroupDescribeResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ControllerRegistration"],
    api_version: int,
    body: bodies.ControllerRegistrationResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["GetTelemetrySubscriptions"],
    api_version: int,
    body: bodies.GetTelemetrySubscriptionsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["PushTelemetry"],
    api_version: int,
    body: bodies.PushTelemetryResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["AssignReplicasToDirs"],
    api_version: int,
    body: bodies.AssignReplicasToDirsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ListConfigResources"],
    api_version: int,
    body: bodies.ListConfigResourcesResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DescribeTopicPartitions"],
    api_version: int,
    body: bodies.DescribeTopicPartitionsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ShareGroupHeartbeat"],
    api_version: int,
    body: bodies.ShareGroupHeartbeatResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ShareGroupDescribe"],
    api_version: int,
    body: bodies.ShareGroupDescribeResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ShareFetch"],
    api_version: int,
    body: bodies.ShareFetchResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ShareAcknowledge"],
    api_version: int,
    body: bodies.ShareAcknowledgeResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["AddRaftVoter"],
    api_version: int,
    body: bodies.AddRaftVoterResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["RemoveRaftVoter"],
    api_version: int,
    body: bodies.RemoveRaftVoterResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["UpdateRaftVoter"],
    api_version: int,
    body: bodies.UpdateRaftVoterResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["InitializeShareGroupState"],
    api_version: int,
    body: bodies.InitializeShareGroupStateResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ReadShareGroupState"],
    api_version: int,
    body: bodies.ReadShareGroupStateResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["WriteShareGroupState"],
    api_version: int,
    body: bodies.WriteShareGroupStateResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DeleteShareGroupState"],
    api_version: int,
    body: bodies.DeleteShareGroupStateResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["ReadShareGroupStateSummary"],
    api_version: int,
    body: bodies.ReadShareGroupStateSummaryResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["StreamsGroupHeartbeat"],
    api_version: int,
    body: bodies.StreamsGroupHeartbeatResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["StreamsGroupDescribe"],
    api_version: int,
    body: bodies.StreamsGroupDescribeResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DescribeShareGroupOffsets"],
    api_version: int,
    body: bodies.DescribeShareGroupOffsetsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["AlterShareGroupOffsets"],
    api_version: int,
    body: bodies.AlterShareGroupOffsetsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["DeleteShareGroupOffsets"],
    api_version: int,
    body: bodies.DeleteShareGroupOffsetsResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["StreamsGroupTopologyDescriptionUpdate"],
    api_version: int,
    body: bodies.StreamsGroupTopologyDescriptionUpdateResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: Literal["UnregisterController"],
    api_version: int,
    body: bodies.UnregisterControllerResponseInput,
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
@overload
def encode_response(
    api: int,
    api_version: int,
    body: Mapping[str, Any],
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
