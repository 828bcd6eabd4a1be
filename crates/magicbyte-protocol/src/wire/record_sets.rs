//! The record sets in messages: batches of any magic, the last of which a broker may have cut.

use std::borrow::Cow;

use crate::message::frame::{Message, MessageKind};
use crate::message::value::{Struct, Value};

/// A record set in a message, whose bytes it borrows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSet<'a> {
    /// The topic's name; None where the version has an id instead.
    pub topic: Option<Cow<'a, [u8]>>,
    /// The topic's id, where the version has one.
    pub topic_id: Option<[u8; 16]>,
    /// The partition's number.
    pub partition: i32,
    /// The batches.
    pub bytes: Cow<'a, [u8]>,
}

/// Names of the arrays and fields that lead to a record set.
struct Place {
    kind: MessageKind,
    api_key: i16,
    topics: &'static str,
    name: &'static str,
    partitions: &'static str,
    index: &'static str,
    records: &'static str,
}

/// The place of record sets in responses to Fetch, and to ShareFetch.
const FETCHED: Place = Place {
    kind: MessageKind::Response,
    api_key: 1,
    topics: "responses",
    name: "topic",
    partitions: "partitions",
    index: "partitionIndex",
    records: "records",
};

const PLACES: [Place; 4] = [
    Place {
        kind: MessageKind::Request,
        api_key: 0,
        topics: "topicData",
        name: "name",
        partitions: "partitionData",
        index: "index",
        records: "records",
    },
    FETCHED,
    Place { api_key: 78, ..FETCHED },
    Place {
        kind: MessageKind::Response,
        api_key: 59,
        topics: "topics",
        name: "name",
        partitions: "partitions",
        index: "index",
        records: "unalignedRecords",
    },
];

/// The record sets of a Produce request, or of a Fetch, ShareFetch or FetchSnapshot response, in the message's order;
/// none of other messages. Those that are null are left out, empty ones are not.
#[must_use]
pub fn record_sets<'a>(message: &Message<'a>) -> Vec<RecordSet<'a>> {
    let mut found = Vec::new();
    let Some(place) =
        PLACES.iter().find(|place| (place.kind, place.api_key) == (message.kind, message.api_key))
    else {
        return found;
    };
    for topic in structs(&message.body, place.topics) {
        let name = match topic.get(place.name) {
            Some(Value::String(name)) => Some(name.clone()),
            _ => None,
        };
        let topic_id = match topic.get("topicId") {
            Some(Value::Uuid(id)) => Some(*id),
            _ => None,
        };
        for partition in structs(topic, place.partitions) {
            if let (Some(Value::Int(index)), Some(Value::Bytes(bytes))) =
                (partition.get(place.index), partition.get(place.records))
            {
                let (topic, bytes) = (name.clone(), bytes.clone());
                found.push(RecordSet { topic, topic_id, partition: *index as i32, bytes });
            }
        }
    }
    found
}

/// The structures in an array.
fn structs<'m, 'a>(of: &'m Struct<'a>, name: &str) -> impl Iterator<Item = &'m Struct<'a>> {
    let elements = match of.get(name) {
        Some(Value::Array(elements)) => elements.as_slice(),
        _ => &[],
    };
    elements.iter().filter_map(|element| match element {
        Value::Struct(fields) => Some(fields),
        _ => None,
    })
}
