//! The committed offsets that the records of `__consumer_offsets` add up to (`OffsetMetadataManager`).

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use magicbyte::Result;

use crate::internal_topics::record::{coordinator_value, part, record_type};
use crate::message::table::{self, Definition, Role};
use crate::message::value::{Struct, Value};

const TOPIC: &str = "__consumer_offsets";
/// Key and value of `LegacyOffsetCommit` and `OffsetCommit`, by their type. The keys have the same fields.
static TYPES: LazyLock<[(&Definition, &Definition); 2]> = LazyLock::new(|| {
    // The table, a part of the crate, has both types.
    let definition =
        |role, record_type| table::record(TOPIC, role, record_type).expect("a type of the table");
    [0, 1].map(|one| (definition(Role::CoordinatorKey, one), definition(Role::CoordinatorValue, one)))
});
/// The position at which a key continues after its type.
const AFTER_TYPE: usize = 2;

/// Folds the records of a partition of `__consumer_offsets`, in offset order, into the latest offset of each place: a
/// group, a topic and a partition. Takes memory for the places, not for the records.
///
/// A broker loads them in the same way: offsets committed in a transaction count from its COMMIT marker on, unless a
/// later record has set the same offset before.
#[derive(Debug, Default)]
pub struct CommittedOffsets {
    commits: HashMap<Place, Commit>,
    /// Pending commits by producer.
    pending: HashMap<i64, HashMap<Place, Commit>>,
    /// The producers with a pending offset, by place.
    open: HashMap<Place, HashSet<i64>>,
}

/// A key without its type.
type Place = Box<[u8]>;

#[derive(Debug)]
struct Commit {
    offset: i64,
    leader_epoch: i32,
    metadata: Vec<u8>,
    commit_timestamp: i64,
    expire_timestamp: i64,
    record_offset: i64,
}

/// A group's committed offset of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The group.
    pub group: String,
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The offset at which the group continues.
    pub offset: i64,
    /// The leader epoch of the last consumed record; -1 if the consumer did not say.
    pub leader_epoch: i32,
    /// The metadata that the consumer added.
    pub metadata: String,
    /// The time of the commit (ms).
    pub commit_timestamp: i64,
    /// The time at which the commit expires (ms), if the consumer chose it (before Kafka 2.1); else -1.
    pub expire_timestamp: i64,
    /// The offset of the commit in its partition of `__consumer_offsets`.
    pub record_offset: i64,
}

impl CommittedOffsets {
    /// Applies a record; `producer_id` is the producer of its transaction, `None` for a record outside a transaction.
    /// Returns false if the record is of another type.
    ///
    /// # Errors
    /// The errors of [`read_record`](crate::internal_topics::read_record).
    pub fn replay(
        &mut self,
        record_offset: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        producer_id: Option<i64>,
    ) -> Result<bool> {
        let Some(key) = key else { return Ok(false) };
        let types = usize::try_from(record_type(key)?).ok().and_then(|record_type| TYPES.get(record_type));
        let Some((of_key, of_value)) = types else { return Ok(false) };
        let place = self.place(of_key, key)?;
        let Some(value) = value else {
            self.remove(place);
            return Ok(true);
        };
        let fields = coordinator_value(of_value, value)?.fields;
        let commit = Commit {
            offset: int(&fields, "offset", -1),
            leader_epoch: int(&fields, "leaderEpoch", -1) as i32,
            metadata: bytes(&fields, "metadata").to_vec(),
            commit_timestamp: int(&fields, "commitTimestamp", -1),
            expire_timestamp: int(&fields, "expireTimestamp", -1),
            record_offset,
        };
        let Some(producer_id) = producer_id else {
            match self.commits.get_mut(place) {
                Some(known) => *known = commit,
                None => _ = self.commits.insert(place.into(), commit),
            }
            return Ok(true);
        };
        self.pending.entry(producer_id).or_default().insert(place.into(), commit);
        self.open.entry(place.into()).or_default().insert(producer_id);
        Ok(true)
    }

    /// Applies the marker of a producer's transaction.
    pub fn end_transaction(&mut self, producer_id: i64, committed: bool) {
        for (place, commit) in self.pending.remove(&producer_id).unwrap_or_default() {
            self.close(&place, producer_id);
            let is_later = |known: &Commit| commit.record_offset > known.record_offset;
            if committed && self.commits.get(&place).is_none_or(is_later) {
                self.commits.insert(place, commit);
            }
        }
    }

    /// The committed offsets, in no order. Offsets that a broker has deleted, because they expired or for another
    /// reason, are not included.
    pub fn commits(&self) -> impl Iterator<Item = CommittedOffset> {
        self.commits.iter().filter_map(|(place, commit)| {
            // The key was read before.
            let key = part(TYPES[0].0, 0, place, 0).ok()?.0.fields;
            let text = |name| String::from_utf8_lossy(bytes(&key, name)).into_owned();
            Some(CommittedOffset {
                group: text("group"),
                topic: text("topic"),
                partition: int(&key, "partition", -1) as i32,
                offset: commit.offset,
                leader_epoch: commit.leader_epoch,
                metadata: String::from_utf8_lossy(&commit.metadata).into_owned(),
                commit_timestamp: commit.commit_timestamp,
                expire_timestamp: commit.expire_timestamp,
                record_offset: commit.record_offset,
            })
        })
    }

    /// The number of offsets that belong to transactions that had not ended.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.values().map(HashMap::len).sum()
    }

    /// The place that a key names. One that is known has been read before.
    fn place<'a>(&self, definition: &'static Definition, key: &'a [u8]) -> Result<&'a [u8]> {
        let place = &key[AFTER_TYPE..];
        if self.commits.contains_key(place) {
            return Ok(place);
        }
        let (_, size) = part(definition, 0, key, AFTER_TYPE)?;
        Ok(&place[..size])
    }

    fn remove(&mut self, place: &[u8]) {
        self.commits.remove(place);
        for producer_id in self.open.remove(place).unwrap_or_default() {
            if let Some(pending) = self.pending.get_mut(&producer_id) {
                pending.remove(place);
            }
        }
    }

    fn close(&mut self, place: &[u8], producer_id: i64) {
        if let Some(open) = self.open.get_mut(place) {
            open.remove(&producer_id);
            if open.is_empty() {
                self.open.remove(place);
            }
        }
    }
}

fn int(fields: &Struct<'_>, name: &str, absent: i64) -> i64 {
    match fields.get(name) {
        Some(Value::Int(n)) => *n,
        _ => absent,
    }
}

fn bytes<'a>(fields: &'a Struct<'_>, name: &str) -> &'a [u8] {
    match fields.get(name) {
        Some(Value::String(text)) => text,
        _ => b"",
    }
}
