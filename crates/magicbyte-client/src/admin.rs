//! Requests that describe a cluster: configs, ACLs, quotas, users, features, groups.

use magicbyte_protocol::message::{ApiKey, Struct};

use crate::cluster::Cluster;
use crate::connection::Response;
use crate::error::{Error, ErrorKind, Result};

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
    /// [`ErrorKind::InvalidOptions`] for another API and a field that the version does not have;
    /// [`ErrorKind::UnknownBroker`] for a broker that the cluster does not have; the errors of connections.
    pub fn describe(&mut self, api: ApiKey, node_id: Option<i32>, body: &Struct<'_>) -> Result<Response> {
        if !DESCRIBING.contains(&api) {
            return Err(Error::options(format!("{} does not only describe a cluster", api.name())));
        }
        let mut is_known = node_id.is_some_and(|id| self.address_of(id).is_some());
        self.retry(|cluster| {
            let address = match node_id {
                None => cluster.any_broker()?,
                Some(id) => {
                    // A broker that did not answer may have left the cluster.
                    if !std::mem::take(&mut is_known) {
                        cluster.find_brokers()?;
                    }
                    let address = cluster.address_of(id).cloned();
                    address.ok_or_else(|| Error::new(ErrorKind::UnknownBroker(id)))?
                }
            };
            cluster.connection(&address)?.call_struct(api, body.clone())
        })
    }
}
