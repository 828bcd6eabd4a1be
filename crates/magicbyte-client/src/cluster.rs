//! A cluster: its topics, the leaders of partitions, connections to brokers, attempts that are repeated.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::body::metadata_request::MetadataRequestTopic;
use magicbyte_protocol::message::body::metadata_response::MetadataResponseTopic;
use magicbyte_protocol::message::body::{MetadataRequest, MetadataResponse};

use crate::address::Address;
use crate::backoff::Backoff;
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result, printable};
use crate::options::ClientOptions;
use crate::position::{ReadPosition, TopicPartition};

const LEADER_NOT_AVAILABLE: i16 = 5;
/// The maximum length of a topic's name (`Topic.MAX_NAME_LENGTH`).
const MAX_TOPIC_NAME: usize = 249;
/// The topics that are asked for at once: so many with hundreds of partitions each are in one response.
const TOPICS_AT_ONCE: usize = 250;

/// A cluster that is read. It knows leaders as of the last answer, and looks them up again when they turn out to have
/// changed; it keeps one connection to each broker that it needs.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) options: Arc<ClientOptions>,
    bootstrap: Vec<Address>,
    brokers: BTreeMap<i32, Address>,
    connections: HashMap<Address, Connection>,
    topics: HashMap<Arc<str>, Topic>,
    /// The ends of what was fetched, so that the next range of a partition can be its continuation.
    pub(crate) read_positions: HashMap<TopicPartition, ReadPosition>,
    id: Option<String>,
}

/// A topic, as of the last look at the metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Topic {
    /// The name.
    pub name: Arc<str>,
    /// The id; None if the brokers are older than Kafka 2.8.
    pub id: Option<[u8; 16]>,
    /// True for Kafka's own topics.
    pub is_internal: bool,
    /// The leaders of the partitions.
    pub partitions: BTreeMap<i32, Leader>,
    /// The ids of the brokers that each partition is assigned to, the preferred leader first.
    pub replicas: BTreeMap<i32, Vec<i32>>,
}

/// The leader of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The broker's id; None if there is no leader now.
    pub node_id: Option<i32>,
    /// Its epoch, or -1 if the brokers are older than Kafka 2.1.
    pub epoch: i32,
}

/// A leader that can be asked, and its topic's id.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) address: Address,
    pub(crate) epoch: i32,
    pub(crate) topic_id: Option<[u8; 16]>,
}

impl Cluster {
    /// Connects to the first of some brokers that answers: `host:port[,host:port]...`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] for an invalid address, and the error of the last broker if all fail.
    pub fn connect(bootstrap_servers: &str, options: ClientOptions) -> Result<Self> {
        let mut cluster = Self {
            options: Arc::new(options),
            bootstrap: Address::parse_list(bootstrap_servers)?,
            brokers: BTreeMap::new(),
            connections: HashMap::new(),
            topics: HashMap::new(),
            read_positions: HashMap::new(),
            id: None,
        };
        cluster.any_broker()?;
        Ok(cluster)
    }

    /// The topics with these names, or all that this client may see; in the order of their names.
    ///
    /// # Errors
    /// A topic that does not exist or may not be read, by its name, and the errors of connections.
    pub fn topics(&mut self, names: Option<&[&str]>) -> Result<Vec<Topic>> {
        let found = self.retry(|cluster| cluster.look_up(names)?.into_iter().collect::<Result<Vec<_>>>());
        found.map(sorted)
    }

    /// The topics with these names that exist, in the order of their names.
    ///
    /// # Errors
    /// A topic that may not be read, by its name, and the errors of connections.
    pub fn existing_topics(&mut self, names: &[&str]) -> Result<Vec<Topic>> {
        let possible: Vec<_> = names.iter().copied().filter(|name| is_topic_name(name)).collect();
        let found = self.retry(|cluster| {
            let found = cluster.look_up(Some(&possible))?.into_iter();
            found.filter(|topic| !topic.as_ref().is_err_and(is_missing)).collect::<Result<Vec<_>>>()
        });
        found.map(sorted)
    }

    /// The id of the cluster, as of the last look at the metadata; None if the brokers are older than Kafka 0.10.1.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The ids of the brokers, as of the last look at the metadata.
    pub fn brokers(&self) -> impl Iterator<Item = (i32, &Address)> {
        self.brokers.iter().map(|(&id, address)| (id, address))
    }

    /// Makes attempts until one succeeds or fails for good. Leaders are looked up again for each.
    pub(crate) fn retry<T>(&mut self, mut attempt: impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        let mut backoff = Backoff::new(self.options.retry_timeout);
        loop {
            match attempt(self) {
                Err(error) if error.is_retriable() && self.pause(&mut backoff, &error) => self.topics.clear(),
                other => return other,
            }
        }
    }

    /// Waits before an attempt that failed is repeated; false if it is too late for that.
    pub(crate) fn pause(&self, backoff: &mut Backoff, error: &Error) -> bool {
        if let Some(listener) = &self.options.retries {
            listener.failed(error);
        }
        backoff.pause()
    }

    /// Forgets the leaders of a topic.
    pub(crate) fn forget(&mut self, topic: &str) {
        self.topics.remove(topic);
    }

    /// Looks up the leaders of topics that are not known, in one request.
    pub(crate) fn find_leaders<'t>(&mut self, topics: impl Iterator<Item = &'t Arc<str>>) -> Result<()> {
        let unknown: BTreeSet<&str> =
            topics.filter(|topic| !self.topics.contains_key(*topic)).map(|topic| &**topic).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        self.look_up(Some(&Vec::from_iter(unknown)))?.into_iter().try_for_each(|topic| topic.map(|_| ()))
    }

    /// Looks up the brokers; leaders and topics are not asked for.
    pub(crate) fn find_brokers(&mut self) -> Result<()> {
        self.ask_metadata(Some(&[])).map(drop)
    }

    /// The address of a broker, as of the last look at the metadata.
    pub(crate) fn address_of(&self, node_id: i32) -> Option<&Address> {
        self.brokers.get(&node_id)
    }

    /// The leader of a partition whose topic was looked up.
    pub(crate) fn route(&self, topic: &Arc<str>, partition: i32) -> Result<Route> {
        let missing = |code| {
            let kind = ErrorKind::Broker { request: "Metadata", code, message: None };
            Error::new(kind).of(topic, partition)
        };
        let known = self.topics.get(topic).ok_or_else(|| missing(LEADER_NOT_AVAILABLE))?;
        let leader = known
            .partitions
            .get(&partition)
            .ok_or_else(|| missing(ErrorCode::UnknownTopicOrPartition.code()))?;
        let address = leader.node_id.and_then(|id| self.brokers.get(&id));
        let address = address.ok_or_else(|| missing(LEADER_NOT_AVAILABLE))?.clone();
        Ok(Route { address, epoch: leader.epoch, topic_id: known.id })
    }

    /// The connection to a broker. A new one is opened if the last is over.
    pub(crate) fn connection(&mut self, address: &Address) -> Result<&mut Connection> {
        if self.connections.get(address).is_none_or(Connection::is_over) {
            self.connections.remove(address);
            let connection = Connection::open(address, &self.options)?;
            self.connections.insert(address.clone(), connection);
        }
        self.connections
            .get_mut(address)
            .ok_or_else(|| Error::protocol("the connection was closed").at(&address.to_string()))
    }

    /// The connection to a broker, if it is still the one on which a request was sent.
    pub(crate) fn open_connection(&mut self, address: &Address) -> Option<&mut Connection> {
        self.connections.get_mut(address)
    }

    /// Any broker that can be reached: one that is connected, or the first of those that the caller named and the cluster told.
    pub(crate) fn any_broker(&mut self) -> Result<Address> {
        if let Some((address, _)) = self.connections.iter().find(|(_, connection)| !connection.is_over()) {
            return Ok(address.clone());
        }
        let begun = Instant::now();
        let addresses: Vec<_> = self.bootstrap.iter().chain(self.brokers.values()).cloned().collect();
        let mut last = Error::options("no bootstrap servers");
        for address in addresses {
            match self.connection(&address).map(|_| ()) {
                Ok(()) => return Ok(address),
                // Another broker would not accept the user either. A cluster may tell any number of addresses at which
                // nobody answers.
                Err(error) if !error.is_retriable() || begun.elapsed() > self.options.retry_timeout => {
                    return Err(error);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The topics with these names in requests of bounded size, or all; and errors of topics.
    fn look_up(&mut self, names: Option<&[&str]>) -> Result<Vec<Result<Topic>>> {
        let Some(names) = names else {
            // One that may not be read is not there.
            return Ok(self.ask_metadata(None)?.into_iter().flatten().map(Ok).collect());
        };
        if let Some(name) = names.iter().find(|name| !is_topic_name(name)) {
            return Err(Error::options(format!("{name:?} is not a topic's name")));
        }
        let names: BTreeSet<_> = names.iter().copied().collect();
        let names: Vec<_> = names.into_iter().collect();
        let mut found = Vec::with_capacity(names.len());
        for names in names.chunks(TOPICS_AT_ONCE) {
            found.extend(self.ask_metadata(Some(names))?);
        }
        Ok(found)
    }

    fn ask_metadata(&mut self, names: Option<&[&str]>) -> Result<Vec<Result<Topic>>> {
        let address = self.any_broker()?;
        let connection = self.connection(&address)?;
        let response = connection.call(|version| MetadataRequest {
            topics: names.map(|names| names.iter().map(|name| requested(name)).collect()),
            // Version 0 to 3 leave it to the broker.
            allow_auto_topic_creation: version < 4,
            ..Default::default()
        })?;
        let at = |error: Error| error.at(response.broker());
        let metadata: MetadataResponse<'_> = response.read()?;
        connection.note_throttle(metadata.throttle_time_ms);
        Error::check("Metadata", metadata.error_code).map_err(at)?;
        self.brokers = addresses(&metadata).map_err(at)?;
        // Brokers that a cluster no longer has need no connections.
        let (bootstrap, brokers) = (&self.bootstrap, &self.brokers);
        let known: HashSet<&Address> = bootstrap.iter().chain(brokers.values()).collect();
        self.connections.retain(|address, _| known.contains(address));
        self.id = metadata.cluster_id.as_deref().map(str::to_owned);
        let mut asked: Option<BTreeSet<&str>> = names.map(|names| names.iter().copied().collect());
        let mut found = Vec::with_capacity(metadata.topics.len());
        for topic in &metadata.topics {
            let name: Arc<str> = topic.name.as_deref().unwrap_or_default().into();
            if asked.as_mut().is_some_and(|asked| !asked.remove(&*name)) {
                return Err(at(Error::protocol("Metadata: a topic that was not asked for").of_topic(&name)));
            }
            if let Err(error) = Error::check("Metadata", topic.error_code) {
                found.push(Err(at(error).of_topic(&name)));
                continue;
            }
            let described = described(&name, topic);
            self.topics.insert(name, described.clone());
            found.push(Ok(described));
        }
        match asked.and_then(|left| left.first().copied()) {
            Some(missing) => {
                Err(at(Error::protocol("Metadata: the answer lacks the topic").of_topic(missing)))
            }
            None => Ok(found),
        }
    }
}

fn described(name: &Arc<str>, topic: &MetadataResponseTopic<'_>) -> Topic {
    let partitions = topic.partitions.iter().map(|partition| {
        let node_id = Some(partition.leader_id).filter(|&id| id >= 0);
        (partition.partition_index, Leader { node_id, epoch: partition.leader_epoch })
    });
    let replicas =
        topic.partitions.iter().map(|partition| (partition.partition_index, partition.replica_nodes.clone()));
    Topic {
        name: Arc::clone(name),
        id: Some(topic.topic_id).filter(|id| *id != [0; 16]),
        is_internal: topic.is_internal,
        partitions: partitions.collect(),
        replicas: replicas.collect(),
    }
}

fn addresses(metadata: &MetadataResponse<'_>) -> Result<BTreeMap<i32, Address>> {
    let brokers = metadata.brokers.iter().map(|node| {
        let address = u16::try_from(node.port).ok().and_then(|port| Address::new(&node.host, port));
        let address = address.ok_or_else(|| {
            let place = format!("{}:{}", printable(&node.host), node.port);
            let why = format!("Metadata: broker {} at {place}: expected a host and port", node.node_id);
            Error::protocol(why)
        })?;
        Ok((node.node_id, address))
    });
    brokers.collect()
}

fn sorted(mut topics: Vec<Topic>) -> Vec<Topic> {
    topics.sort_by(|one, other| one.name.cmp(&other.name));
    topics
}

fn is_topic_name(name: &str) -> bool {
    (1..=MAX_TOPIC_NAME).contains(&name.len())
}

/// True if the cluster has no such topic, or cannot have one of this name.
fn is_missing(error: &Error) -> bool {
    matches!(error.name(), Some("UNKNOWN_TOPIC_OR_PARTITION" | "INVALID_TOPIC_EXCEPTION"))
}

fn requested<'n>(name: &&'n str) -> MetadataRequestTopic<'n> {
    MetadataRequestTopic { name: Some((*name).into()), ..Default::default() }
}
