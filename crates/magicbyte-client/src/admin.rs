//! Requests that describe a cluster: configs, ACLs, quotas, users, features, groups.

use magicbyte_protocol::message::{ApiKey, Struct};

use crate::Address;
use crate::cluster::Cluster;
use crate::connection::Response;
use crate::error::{Error, Result};

/// The requests that [`Cluster::describe`] sends: they change nothing.
const DESCRIBING: [ApiKey; 15] = [
    ApiKey::Metadata,
    ApiKey::ApiVersions,
    ApiKey::DescribeAcls,
    ApiKey::DescribeConfigs,
    ApiKey::DescribeClientQuotas,
    ApiKey::DescribeUserScramCredentials,
    ApiKey::DescribeLogDirs,
    ApiKey::DescribeQuorum,
    ApiKey::ListConfigResources,
    ApiKey::ListGroups,
    ApiKey::DescribeGroups,
    ApiKey::ConsumerGroupDescribe,
    ApiKey::ShareGroupDescribe,
    ApiKey::StreamsGroupDescribe,
    ApiKey::DescribeShareGroupOffsets,
];

impl Cluster {
    /// Sends a request that describes the cluster to any broker, or to the one with this id, in the newest version that
    /// both sides know. Fields that are left out have Kafka's defaults. The error codes in the response are the caller's to check.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`](crate::ErrorKind::InvalidOptions) for another API, a field that the version does not
    /// have, and a broker that the cluster does not have; the errors of connections.
    pub fn describe(&mut self, api: ApiKey, node_id: Option<i32>, body: &Struct<'_>) -> Result<Response> {
        if !DESCRIBING.contains(&api) {
            return Err(Error::options(format!("{} does not only describe a cluster", api.name())));
        }
        self.retry(|cluster| {
            let address = match node_id {
                None => cluster.any_broker()?,
                Some(id) => cluster.broker_address(id)?,
            };
            cluster.connection(&address)?.call_struct(api, body.clone())
        })
    }

    fn broker_address(&mut self, node_id: i32) -> Result<Address> {
        if self.address_of(node_id).is_none() {
            self.find_brokers()?;
        }
        let address = self.address_of(node_id).cloned();
        address.ok_or_else(|| Error::options(format!("the cluster has no broker {node_id}")))
    }
}
