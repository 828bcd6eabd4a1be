//! Fetch sessions (KIP-227; `FetchSession`, `FetchSessionCache`): a client names its partitions once, and later only
//! the changes. Responses have only the partitions that have news.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use magicbyte_broker::ErrorCode;

use crate::archive::TopicRef;
use crate::limits::MAX_SESSION_MEMORY;
use crate::lock::lock;

/// `max.incremental.fetch.session.cache.slots`
const MAX_SESSIONS: usize = 1000;
/// `min.incremental.fetch.session.eviction.ms`
const UNUSED: Duration = Duration::from_mins(2);

/// A request's place in its session (`FetchMetadata`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) session_id: i32,
    pub(super) epoch: i32,
}

impl Metadata {
    /// A request that wants no session, or ends it.
    pub(super) const FINAL_EPOCH: i32 = -1;
    /// A request for a new session.
    const INITIAL_EPOCH: i32 = 0;

    fn is_full(self) -> bool {
        self.epoch == Self::INITIAL_EPOCH || self.epoch == Self::FINAL_EPOCH
    }
}

/// A partition, and the records that a client wants from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionPartition {
    pub(super) topic: TopicRef,
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) max_bytes: u64,
}

impl SessionPartition {
    fn key(&self) -> (TopicRef, i32) {
        (self.topic.clone(), self.partition)
    }
}

/// The state of a partition in a response, apart from records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartitionState {
    pub(super) error: ErrorCode,
    pub(super) high_watermark: i64,
    pub(super) log_start_offset: i64,
}

/// The content of a response about one partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) state: PartitionState,
    pub(super) has_records: bool,
}

/// The partitions of a request, with the state of its session.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) partitions: Vec<SessionPartition>,
    session: Option<Metadata>,
    /// The state that the client knows already, by the places in `partitions`. It is empty if the
    /// response has to include all of them.
    known: Vec<Option<PartitionState>>,
}

impl Begun {
    /// True if a response has to include this partition (`CachedPartition.maybeUpdateResponseData`).
    pub(super) fn is_news(&self, index: usize, outcome: Outcome) -> bool {
        let known = self.known.get(index).copied().flatten();
        outcome.has_records || outcome.state.error != ErrorCode::None || known != Some(outcome.state)
    }

    /// The id of the session, 0 if there is none.
    pub(super) fn session_id(&self) -> i32 {
        self.session.map_or(0, |session| session.session_id)
    }
}

/// The sessions of all clients.
#[derive(Debug, Default)]
pub(super) struct FetchSessions(Mutex<Cache>);

#[derive(Debug, Default)]
struct Cache {
    sessions: HashMap<i32, Cached>,
    last_id: i32,
    bytes: usize,
}

#[derive(Debug)]
struct Cached {
    /// A lock for this session: only requests of the same client wait while its partitions are gone through.
    session: Arc<Mutex<Session>>,
    used: Instant,
    bytes: usize,
}

/// A partition of a session, and the last news of it.
type Cell = (SessionPartition, Option<PartitionState>);

#[derive(Debug)]
struct Session {
    /// The epoch of the next request.
    epoch: i32,
    /// The partitions. Partitions that had records are last, so that all get their turn.
    partitions: Vec<Cell>,
}

impl FetchSessions {
    /// Begins a request that names these partitions, and forgets others.
    ///
    /// # Errors
    /// Kafka's error, if there is no such session, or another request of the session comes next.
    pub(super) fn begin(
        &self,
        metadata: Metadata,
        named: Vec<SessionPartition>,
        forgotten: &HashSet<(TopicRef, i32)>,
    ) -> Result<Begun, ErrorCode> {
        if metadata.is_full() {
            lock(&self.0).remove(metadata.session_id);
            let session = match metadata.epoch {
                Metadata::INITIAL_EPOCH => {
                    let epoch = next(Metadata::INITIAL_EPOCH);
                    let partitions = named.iter().map(|partition| (partition.clone(), None)).collect();
                    let session = Session { epoch, partitions };
                    let bytes = session.bytes();
                    lock(&self.0).add(session, bytes).map(|session_id| Metadata { session_id, epoch })
                }
                _ => None,
            };
            return Ok(Begun { partitions: named, session, known: Vec::new() });
        }
        let id = metadata.session_id;
        let session = lock(&self.0).touch(id).ok_or(ErrorCode::FetchSessionIdNotFound)?;
        let session = &mut *lock(&session);
        if session.epoch != metadata.epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if !named.is_empty() || !forgotten.is_empty() {
            session.update(&named, forgotten);
            if !lock(&self.0).resize(id, session.bytes()) {
                return Err(ErrorCode::FetchSessionIdNotFound);
            }
        }
        session.epoch = next(session.epoch);
        let (partitions, known) = session.partitions.iter().cloned().unzip();
        let metadata = Metadata { epoch: session.epoch, ..metadata };
        Ok(Begun { partitions, session: Some(metadata), known })
    }

    /// Keeps the state that the response has; each outcome has its place in `begun.partitions`.
    pub(super) fn end(&self, begun: &Begun, outcomes: &[Outcome]) {
        let Some(metadata) = begun.session else { return };
        let Some(session) = lock(&self.0).touch(metadata.session_id) else { return };
        let session = &mut *lock(&session);
        // Another request may have come meanwhile, though clients wait for their responses.
        if session.epoch != metadata.epoch || session.partitions.len() != outcomes.len() {
            return;
        }
        for ((_, known), outcome) in session.partitions.iter_mut().zip(outcomes) {
            *known = Some(outcome.state);
        }
        let mut had_records = outcomes.iter().map(|outcome| outcome.has_records);
        let (last, first) = std::mem::take(&mut session.partitions)
            .into_iter()
            .partition(|_| had_records.next().unwrap_or(false));
        session.partitions = first;
        session.partitions.extend::<Vec<_>>(last);
    }
}

impl Cache {
    fn remove(&mut self, id: i32) {
        if let Some(cached) = self.sessions.remove(&id) {
            self.bytes -= cached.bytes;
        }
    }

    fn touch(&mut self, id: i32) -> Option<Arc<Mutex<Session>>> {
        let cached = self.sessions.get_mut(&id)?;
        cached.used = Instant::now();
        Some(Arc::clone(&cached.session))
    }

    /// Adds a session; returns its id, None if there are too many, or others take the memory.
    fn add(&mut self, session: Session, bytes: usize) -> Option<i32> {
        while self.sessions.len() >= MAX_SESSIONS || self.bytes + bytes > MAX_SESSION_MEMORY {
            let oldest = self.sessions.iter().min_by_key(|(_, cached)| cached.used);
            let (&id, _) = oldest.filter(|(_, cached)| cached.used.elapsed() > UNUSED)?;
            self.remove(id);
        }
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if !self.sessions.contains_key(&self.last_id) {
                break;
            }
        }
        self.bytes += bytes;
        let session = Arc::new(Mutex::new(session));
        self.sessions.insert(self.last_id, Cached { session, used: Instant::now(), bytes });
        Some(self.last_id)
    }

    /// Takes memory for a session that has changed. False if it is gone, as it is if there is not enough.
    fn resize(&mut self, id: i32, bytes: usize) -> bool {
        let Some(cached) = self.sessions.get_mut(&id) else { return false };
        self.bytes = self.bytes - cached.bytes + bytes;
        cached.bytes = bytes;
        if self.bytes > MAX_SESSION_MEMORY {
            self.remove(id);
            return false;
        }
        true
    }
}

impl Session {
    fn update(&mut self, named: &[SessionPartition], forgotten: &HashSet<(TopicRef, i32)>) {
        let mut updates: HashMap<_, _> = named.iter().map(|partition| (partition.key(), partition)).collect();
        self.partitions.retain_mut(|(partition, _)| {
            let key = partition.key();
            if let Some(update) = updates.remove(&key) {
                partition.clone_from(update);
            }
            !forgotten.contains(&key)
        });
        let new = named.iter().filter_map(|partition| {
            let key = partition.key();
            let update = updates.remove(&key).filter(|_| !forgotten.contains(&key))?;
            Some((update.clone(), None))
        });
        self.partitions.extend(new);
    }

    /// The memory of the partitions and of the names that they share.
    fn bytes(&self) -> usize {
        let mut names = HashSet::new();
        let names = self.partitions.iter().map(|(partition, _)| match &partition.topic {
            TopicRef::Name(name) if names.insert(name.as_ptr()) => name.len(),
            _ => 0,
        });
        size_of::<Cached>() + names.sum::<usize>() + self.partitions.len() * size_of::<Cell>()
    }
}

/// The epoch after this one (`FetchMetadata.nextEpoch`).
fn next(epoch: i32) -> i32 {
    epoch.checked_add(1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(partition: i32) -> SessionPartition {
        SessionPartition { topic: TopicRef::Name("t".into()), partition, offset: 0, max_bytes: 10 }
    }

    fn outcome(high_watermark: i64, has_records: bool) -> Outcome {
        let state = PartitionState { error: ErrorCode::None, high_watermark, log_start_offset: 0 };
        Outcome { state, has_records }
    }

    fn numbers(begun: &Begun) -> Vec<i32> {
        begun.partitions.iter().map(|partition| partition.partition).collect()
    }

    #[test]
    fn a_response_has_only_news() {
        let sessions = FetchSessions::default();
        let full = Metadata { session_id: 0, epoch: 0 };
        let begun = sessions.begin(full, vec![requested(0), requested(1)], &HashSet::new()).unwrap();
        let session_id = begun.session_id();
        assert!(session_id > 0);
        assert!(begun.is_news(0, outcome(5, false)), "the first response has all partitions");
        sessions.end(&begun, &[outcome(5, true), outcome(7, false)]);

        let begun = sessions.begin(Metadata { session_id, epoch: 1 }, vec![], &HashSet::new()).unwrap();
        assert_eq!(numbers(&begun), [1, 0], "one that had records comes last");
        assert!(!begun.is_news(0, outcome(7, false)));
        assert!(begun.is_news(0, outcome(8, false)), "a new high watermark");
        assert!(begun.is_news(1, outcome(5, true)), "records");
        let state = PartitionState { error: ErrorCode::KafkaStorageError, ..outcome(5, false).state };
        assert!(begun.is_news(1, Outcome { state, has_records: false }), "an error");

        let forgotten = HashSet::from([requested(1).key()]);
        let moved = SessionPartition { offset: 3, ..requested(0) };
        let begun =
            sessions.begin(Metadata { session_id, epoch: 2 }, vec![moved, requested(2)], &forgotten).unwrap();
        assert_eq!(numbers(&begun), [0, 2]);
        assert_eq!(begun.partitions[0].offset, 3);
        assert!(begun.is_news(1, outcome(0, false)), "a new partition");
    }

    #[test]
    fn wrong_sessions_and_epochs() {
        let sessions = FetchSessions::default();
        let begin = |session_id, epoch| {
            sessions.begin(Metadata { session_id, epoch }, vec![requested(0)], &HashSet::new())
        };
        assert_eq!(begin(7, 1).unwrap_err(), ErrorCode::FetchSessionIdNotFound);
        let session_id = begin(0, 0).unwrap().session_id();
        assert_eq!(begin(session_id, 2).unwrap_err(), ErrorCode::InvalidFetchSessionEpoch);
        assert_eq!(begin(session_id, -1).unwrap().session_id(), 0, "the last request of a session");
        assert_eq!(begin(session_id, 1).unwrap_err(), ErrorCode::FetchSessionIdNotFound);
        assert_eq!(begin(0, -1).unwrap().session_id(), 0);
        assert_eq!(next(i32::MAX), 1);
    }

    #[test]
    fn sessions_are_bounded() {
        let sessions = FetchSessions::default();
        let full = Metadata { session_id: 0, epoch: 0 };
        let ids: Vec<_> = (0..MAX_SESSIONS + 5)
            .map(|_| sessions.begin(full, vec![requested(0)], &HashSet::new()).unwrap().session_id())
            .collect();
        assert!(ids[..MAX_SESSIONS].iter().all(|id| *id > 0));
        assert_eq!(ids[MAX_SESSIONS..], [0; 5], "no session, and a response all the same");
        sessions.begin(Metadata { session_id: ids[0], epoch: -1 }, vec![], &HashSet::new()).unwrap();
        let many: Vec<_> = (0..(MAX_SESSION_MEMORY / size_of::<Cell>()) as i32).map(requested).collect();
        assert_eq!(sessions.begin(full, many.clone(), &HashSet::new()).unwrap().session_id(), 0);
        let went_on = sessions.begin(Metadata { session_id: ids[1], epoch: 1 }, many, &HashSet::new());
        assert_eq!(went_on.unwrap_err(), ErrorCode::FetchSessionIdNotFound);
        assert_eq!(lock(&sessions.0).sessions.len(), MAX_SESSIONS - 2);
    }

    #[test]
    fn names_count_once_for_the_partitions_that_share_them() {
        let sessions = FetchSessions::default();
        let full = Metadata { session_id: 0, epoch: 0 };
        let topic = |letter: &str| TopicRef::Name(letter.repeat(MAX_SESSION_MEMORY / 3).into());
        let of = |topic: &TopicRef| -> Vec<_> {
            (0..1000)
                .map(|partition| SessionPartition { topic: topic.clone(), ..requested(partition) })
                .collect()
        };
        let first = sessions.begin(full, of(&topic("a")), &HashSet::new()).unwrap().session_id();
        assert!(first > 0);
        let mut two = of(&topic("b"));
        two.extend(of(&topic("c")));
        assert_eq!(sessions.begin(full, two, &HashSet::new()).unwrap().session_id(), 0);
        // The same name in another request is another copy, until it replaces the first one everywhere.
        let next = Metadata { session_id: first, epoch: 1 };
        let mut again = of(&topic("a"));
        sessions.begin(next, again.clone(), &HashSet::new()).unwrap();
        let before = lock(&sessions.0).bytes;
        again.truncate(1);
        again[0].topic = topic("a");
        sessions.begin(Metadata { epoch: 2, ..next }, again, &HashSet::new()).unwrap();
        assert_eq!(lock(&sessions.0).bytes, before + MAX_SESSION_MEMORY / 3);
        sessions.begin(Metadata { epoch: -1, ..next }, vec![], &HashSet::new()).unwrap();
        assert_eq!(lock(&sessions.0).bytes, 0);
    }
}
