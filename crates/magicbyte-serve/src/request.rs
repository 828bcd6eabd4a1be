//! The APIs that are served, and their requests.

use magicbyte::internals::be;
use magicbyte::{Error, ErrorKind, Result};
use magicbyte_protocol::message::body::{
    AlterPartitionReassignmentsRequest, ApiVersionsRequest, ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest, DescribeAclsRequest, DescribeClientQuotasRequest, DescribeClusterRequest,
    DescribeConfigsRequest, DescribeGroupsRequest, DescribeLogDirsRequest, DescribeProducersRequest,
    DescribeQuorumRequest, DescribeTopicPartitionsRequest, DescribeTransactionsRequest,
    DescribeUserScramCredentialsRequest, ElectLeadersRequest, FetchRequest, FindCoordinatorRequest,
    HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, ListGroupsRequest, ListOffsetsRequest,
    ListPartitionReassignmentsRequest, ListTransactionsRequest, MetadataRequest, OffsetCommitRequest,
    OffsetFetchRequest, OffsetForLeaderEpochRequest, ProduceRequest, ShareGroupDescribeRequest,
    SyncGroupRequest,
};
use magicbyte_protocol::message::{ApiKey, Struct, read_request};

/// Size of the start of a header: API, version, correlation id.
const HEADER_START: usize = 8;

/// An API that is served.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServedApi {
    pub(super) key: ApiKey,
    pub(super) oldest: i16,
    pub(super) newest: i16,
    read: for<'a> fn(Struct<'a>) -> Result<Request<'a>>,
}

macro_rules! served_apis {
    (
        requests {
            $($api:ident($request:ty): $oldest:literal to $newest:literal,)*
        }
        administration {
            $($of_admin:ident($admin_request:ty): $admin_oldest:literal to $admin_newest:literal,)*
        }
    ) => {
        /// A request of an API that is served.
        #[derive(Debug)]
        #[expect(dead_code, reason = "some have the same response, whatever they ask")]
        pub(super) enum Request<'a> {
            $($api($request),)*
            Administration(AdministrationRequest<'a>),
        }

        /// A request about something that a read-only broker does not have or change.
        #[derive(Debug)]
        #[expect(dead_code, reason = "some have the same response, whatever they ask")]
        pub(super) enum AdministrationRequest<'a> {
            $($of_admin($admin_request),)*
        }

        /// The APIs that are served.
        pub(super) const SERVED_APIS: &[ServedApi] = &[
            $(ServedApi {
                key: ApiKey::$api,
                oldest: $oldest,
                newest: $newest,
                read: |body| body.try_into().map(Request::$api),
            },)*
            $(ServedApi {
                key: ApiKey::$of_admin,
                oldest: $admin_oldest,
                newest: $admin_newest,
                read: |body| {
                    let request = body.try_into().map(AdministrationRequest::$of_admin);
                    request.map(Request::Administration)
                },
            },)*
        ];
    };
}

// librdkafka fetches nothing from a broker that does not offer Produce, and learns by its versions which codecs the broker
// has.
served_apis! {
    requests {
        Produce(ProduceRequest<'a>): 0 to 13,
        Fetch(FetchRequest<'a>): 4 to 18,
        ListOffsets(ListOffsetsRequest<'a>): 1 to 11,
        Metadata(MetadataRequest<'a>): 0 to 13,
        OffsetCommit(OffsetCommitRequest<'a>): 2 to 10,
        OffsetFetch(OffsetFetchRequest<'a>): 1 to 10,
        FindCoordinator(FindCoordinatorRequest<'a>): 0 to 6,
        JoinGroup(JoinGroupRequest<'a>): 0 to 9,
        Heartbeat(HeartbeatRequest<'a>): 0 to 4,
        LeaveGroup(LeaveGroupRequest<'a>): 0 to 5,
        SyncGroup(SyncGroupRequest<'a>): 0 to 5,
        DescribeGroups(DescribeGroupsRequest<'a>): 0 to 6,
        ListGroups(ListGroupsRequest<'a>): 0 to 5,
        ApiVersions(ApiVersionsRequest<'a>): 0 to 5,
        OffsetForLeaderEpoch(OffsetForLeaderEpochRequest<'a>): 2 to 4,
        DescribeConfigs(DescribeConfigsRequest<'a>): 1 to 4,
        DescribeLogDirs(DescribeLogDirsRequest<'a>): 1 to 5,
        DescribeCluster(DescribeClusterRequest): 0 to 2,
        DescribeProducers(DescribeProducersRequest<'a>): 0 to 0,
        DescribeTransactions(DescribeTransactionsRequest<'a>): 0 to 0,
        ListTransactions(ListTransactionsRequest<'a>): 0 to 2,
        ConsumerGroupHeartbeat(ConsumerGroupHeartbeatRequest<'a>): 0 to 1,
        ConsumerGroupDescribe(ConsumerGroupDescribeRequest<'a>): 0 to 1,
        DescribeTopicPartitions(DescribeTopicPartitionsRequest<'a>): 0 to 0,
        ShareGroupDescribe(ShareGroupDescribeRequest<'a>): 0 to 1,
    }
    administration {
        DescribeAcls(DescribeAclsRequest<'a>): 1 to 3,
        ElectLeaders(ElectLeadersRequest<'a>): 0 to 2,
        AlterPartitionReassignments(AlterPartitionReassignmentsRequest<'a>): 0 to 1,
        ListPartitionReassignments(ListPartitionReassignmentsRequest<'a>): 0 to 0,
        DescribeClientQuotas(DescribeClientQuotasRequest<'a>): 0 to 1,
        DescribeUserScramCredentials(DescribeUserScramCredentialsRequest<'a>): 0 to 0,
        DescribeQuorum(DescribeQuorumRequest<'a>): 0 to 2,
    }
}

/// The start of a request: its API, which is served, its version and its correlation id.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestStart {
    pub(super) api: &'static ServedApi,
    pub(super) version: i16,
    pub(super) correlation_id: i32,
}

impl RequestStart {
    /// Reads the start of a frame.
    ///
    /// # Errors
    /// If the frame is too short, or the API is not served.
    pub(super) fn read(frame: &[u8]) -> Result<Self> {
        if frame.len() < HEADER_START {
            read_request(frame)?;
        }
        let key = be!(frame, 0, i16);
        let Some(api) = SERVED_APIS.iter().find(|api| api.key as i16 == key) else {
            let why = format!("API key {key} is not served by a read-only broker");
            return Err(Error::new(ErrorKind::UnsupportedVersion(why))
                .in_field("requestApiKey")
                .at_position(0));
        };
        Ok(Self { api, version: be!(frame, 2, i16), correlation_id: be!(frame, 4, i32) })
    }

    /// Checks that the version is served.
    pub(super) fn check_version(&self) -> Result<()> {
        let ServedApi { key, oldest, newest, .. } = *self.api;
        if (oldest..=newest).contains(&self.version) {
            return Ok(());
        }
        let why =
            format!("version {} of API key {}: expected {oldest} to {newest}", self.version, key as i16);
        let error = Error::new(ErrorKind::UnsupportedVersion(why)).in_field("requestApiVersion");
        Err(error.at_position(2))
    }

    /// The request with this body.
    pub(super) fn request<'a>(&self, body: Struct<'a>) -> Result<Request<'a>> {
        (self.api.read)(body)
    }
}
