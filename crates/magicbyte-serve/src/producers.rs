//! DescribeProducers: the producers of partitions, which tools search for transactions that nobody ends.

use magicbyte::state::ProducerStateEntry;
use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::body::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use magicbyte_protocol::message::body::{DescribeProducersRequest, DescribeProducersResponse};

use crate::archive::{Archive, TopicRef};
use crate::memory::{Budget, Unanswered};
use crate::requested::{RequestedTopic, requested};
use crate::response::array;

/// A DescribeProducers request.
#[derive(Debug)]
pub(super) struct ProducerLookups(Vec<RequestedTopic<()>>);

impl ProducerLookups {
    pub(super) fn new(request: DescribeProducersRequest<'_>) -> Self {
        Self(requested(request.topics.iter().map(|topic| {
            let partitions = topic.partition_indexes.iter().map(|&partition| (partition, ()));
            (TopicRef::Name((&*topic.name).into()), partitions)
        })))
    }
}

/// Responds to DescribeProducers. The headers of each partition are scanned.
///
/// # Errors
/// If the client is gone, or memory is exhausted.
pub(super) fn describe_producers<'l>(
    archive: &Archive,
    budget: &Budget<'_>,
    lookups: &'l ProducerLookups,
) -> Result<DescribeProducersResponse<'l>, Unanswered> {
    let topics = lookups.0.iter().map(|RequestedTopic { topic, partitions }| {
        let partitions = partitions.iter().map(|requested| {
            budget.check_client()?;
            let producers = archive.partition(topic, requested.partition).and_then(|partition| {
                partition.producers(&archive.shared).map_err(|_| ErrorCode::KafkaStorageError)
            });
            let (error, producers) = match producers {
                Ok(producers) => (ErrorCode::None, producers),
                Err(error) => (error, Vec::new()),
            };
            Ok(PartitionResponse {
                partition_index: requested.partition,
                error_code: error.code(),
                error_message: None,
                active_producers: array(budget, producers.iter().map(|producer| Ok(state_of(producer))))?,
            })
        });
        Ok(TopicResponse { name: topic.name().into(), partitions: array(budget, partitions)? })
    });
    Ok(DescribeProducersResponse { topics: array(budget, topics)?, ..Default::default() })
}

fn state_of(producer: &ProducerStateEntry) -> ProducerState {
    ProducerState {
        producer_id: producer.producer_id,
        producer_epoch: producer.producer_epoch.into(),
        last_sequence: producer.last_sequence(),
        last_timestamp: producer.last_timestamp,
        coordinator_epoch: producer.coordinator_epoch,
        current_txn_start_offset: producer.current_txn_first_offset.unwrap_or(-1),
    }
}
