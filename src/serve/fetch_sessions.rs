//! Fetch sessions (KIP-227; `FetchSession`, `FetchSessionCache`): a client names its partitions once, and then only what
//! changes. Answers have only the partitions that have news.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::broker::append_error::ErrorCode;
use crate::serve::archive::TopicRef;
use crate::serve::lock::lock;

/// `max.incremental.fetch.session.cache.slots`
const MOST_SESSIONS: usize = 1000;
/// `min.incremental.fetch.session.eviction.ms`
const UNUSED: Duration = Duration::from_mins(2);
/// The partitions of all sessions: what clients may make the broker keep.
const MOST_PARTITIONS: usize = 1 << 17;

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

/// A partition, and what a client wants of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) topic: TopicRef,
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) max_bytes: u64,
}

impl Asked {
    fn place(&self) -> (TopicRef, i32) {
        (self.topic.clone(), self.partition)
    }
}

/// What a client was told of a partition, apart from records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) error: ErrorCode,
    pub(super) high_watermark: i64,
    pub(super) log_start_offset: i64,
}

/// What an answer says of a partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) told: Told,
    pub(super) has_records: bool,
}

/// What a request asks for, with what its session knows.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) partitions: Vec<Asked>,
    session: Option<Metadata>,
    /// By the places in `partitions`: what the client knows already. Nothing, if all of them are to be answered.
    known: Vec<Option<Told>>,
}

impl Begun {
    /// Whether an answer has to have this partition (`CachedPartition.maybeUpdateResponseData`).
    pub(super) fn is_news(&self, place: usize, outcome: Outcome) -> bool {
        let known = self.known.get(place).copied().flatten();
        outcome.has_records || outcome.told.error != ErrorCode::None || known != Some(outcome.told)
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
    sessions: HashMap<i32, Session>,
    last_id: i32,
    partitions: usize,
}

#[derive(Debug)]
struct Session {
    /// That of the next request.
    epoch: i32,
    /// Those that had records are last, so that all get their turn.
    partitions: Vec<(Asked, Option<Told>)>,
    used: Instant,
}

impl FetchSessions {
    /// Begins to answer a request that names these partitions, and those that it forgets.
    ///
    /// # Errors
    /// Kafka's, if there is no such session, or another request of it comes next.
    pub(super) fn begin(
        &self,
        metadata: Metadata,
        named: Vec<Asked>,
        forgotten: &HashSet<(TopicRef, i32)>,
    ) -> Result<Begun, ErrorCode> {
        let cache = &mut *lock(&self.0);
        if metadata.is_full() {
            cache.remove(metadata.session_id);
            let session = match metadata.epoch {
                Metadata::INITIAL_EPOCH => cache.create(&named),
                _ => None,
            };
            return Ok(Begun { partitions: named, session, known: Vec::new() });
        }
        cache.go_on(metadata, &named, forgotten)
    }

    /// Remembers what the client is told; each outcome has its place in `begun.partitions`.
    pub(super) fn end(&self, begun: &Begun, outcomes: &[Outcome]) {
        let Some(metadata) = begun.session else { return };
        let cache = &mut *lock(&self.0);
        let Some(session) = cache.sessions.get_mut(&metadata.session_id) else { return };
        // Another request may have come meanwhile, though clients wait for their answers.
        if session.epoch != metadata.epoch || session.partitions.len() != outcomes.len() {
            return;
        }
        session.used = Instant::now();
        for ((_, told), outcome) in session.partitions.iter_mut().zip(outcomes) {
            *told = Some(outcome.told);
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
        if let Some(session) = self.sessions.remove(&id) {
            self.partitions -= session.partitions.len();
        }
    }

    /// A session for these partitions, unless there are too many sessions or partitions.
    fn create(&mut self, named: &[Asked]) -> Option<Metadata> {
        if self.sessions.len() >= MOST_SESSIONS || self.partitions + named.len() > MOST_PARTITIONS {
            let oldest = self.sessions.iter().min_by_key(|(_, session)| session.used);
            let (&id, _) = oldest.filter(|(_, session)| session.used.elapsed() > UNUSED)?;
            self.remove(id);
            if self.partitions + named.len() > MOST_PARTITIONS {
                return None;
            }
        }
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if !self.sessions.contains_key(&self.last_id) {
                break;
            }
        }
        let partitions: Vec<_> = named.iter().map(|asked| (asked.clone(), None)).collect();
        self.partitions += partitions.len();
        let session = Session { epoch: next(Metadata::INITIAL_EPOCH), partitions, used: Instant::now() };
        let metadata = Metadata { session_id: self.last_id, epoch: session.epoch };
        self.sessions.insert(self.last_id, session);
        Some(metadata)
    }

    fn go_on(
        &mut self,
        metadata: Metadata,
        named: &[Asked],
        forgotten: &HashSet<(TopicRef, i32)>,
    ) -> Result<Begun, ErrorCode> {
        let session = self.sessions.get_mut(&metadata.session_id).ok_or(ErrorCode::FetchSessionIdNotFound)?;
        if session.epoch != metadata.epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        let before = session.partitions.len();
        let mut updates: HashMap<_, _> = named.iter().map(|asked| (asked.place(), asked)).collect();
        session.partitions.retain_mut(|(asked, _)| {
            let place = asked.place();
            if let Some(update) = updates.remove(&place) {
                asked.clone_from(update);
            }
            !forgotten.contains(&place)
        });
        let is_new = |asked: &Asked| {
            let place = asked.place();
            let update = updates.remove(&place).filter(|_| !forgotten.contains(&place))?;
            Some((update.clone(), None))
        };
        let new: Vec<_> = named.iter().filter_map(is_new).collect();
        session.partitions.extend(new);
        self.partitions = self.partitions - before + session.partitions.len();
        if self.partitions > MOST_PARTITIONS {
            self.remove(metadata.session_id);
            return Err(ErrorCode::FetchSessionIdNotFound);
        }
        session.epoch = next(session.epoch);
        session.used = Instant::now();
        let (partitions, known) = session.partitions.iter().cloned().unzip();
        let metadata = Metadata { epoch: session.epoch, ..metadata };
        Ok(Begun { partitions, session: Some(metadata), known })
    }
}

/// The epoch after this one (`FetchMetadata.nextEpoch`).
fn next(epoch: i32) -> i32 {
    epoch.checked_add(1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(partition: i32) -> Asked {
        Asked { topic: TopicRef::Name("t".into()), partition, offset: 0, max_bytes: 10 }
    }

    fn outcome(high_watermark: i64, has_records: bool) -> Outcome {
        let told = Told { error: ErrorCode::None, high_watermark, log_start_offset: 0 };
        Outcome { told, has_records }
    }

    fn numbers(begun: &Begun) -> Vec<i32> {
        begun.partitions.iter().map(|asked| asked.partition).collect()
    }

    #[test]
    fn only_news_is_answered() {
        let sessions = FetchSessions::default();
        let full = Metadata { session_id: 0, epoch: 0 };
        let begun = sessions.begin(full, vec![asked(0), asked(1)], &HashSet::new()).unwrap();
        let session_id = begun.session_id();
        assert!(session_id > 0);
        assert!(begun.is_news(0, outcome(5, false)), "the first answer has all partitions");
        sessions.end(&begun, &[outcome(5, true), outcome(7, false)]);

        let begun = sessions.begin(Metadata { session_id, epoch: 1 }, vec![], &HashSet::new()).unwrap();
        assert_eq!(numbers(&begun), [1, 0], "one that had records comes last");
        assert!(!begun.is_news(0, outcome(7, false)));
        assert!(begun.is_news(0, outcome(8, false)), "a new high watermark");
        assert!(begun.is_news(1, outcome(5, true)), "records");
        let told = Told { error: ErrorCode::KafkaStorageError, ..outcome(5, false).told };
        assert!(begun.is_news(1, Outcome { told, has_records: false }), "an error");

        let forgotten = HashSet::from([asked(1).place()]);
        let moved = Asked { offset: 3, ..asked(0) };
        let begun =
            sessions.begin(Metadata { session_id, epoch: 2 }, vec![moved, asked(2)], &forgotten).unwrap();
        assert_eq!(numbers(&begun), [0, 2]);
        assert_eq!(begun.partitions[0].offset, 3);
        assert!(begun.is_news(1, outcome(0, false)), "a new partition");
    }

    #[test]
    fn wrong_sessions_and_epochs() {
        let sessions = FetchSessions::default();
        let begin = |session_id, epoch| {
            sessions.begin(Metadata { session_id, epoch }, vec![asked(0)], &HashSet::new())
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
        let ids: Vec<_> = (0..MOST_SESSIONS + 5)
            .map(|_| sessions.begin(full, vec![asked(0)], &HashSet::new()).unwrap().session_id())
            .collect();
        assert!(ids[..MOST_SESSIONS].iter().all(|id| *id > 0));
        assert_eq!(ids[MOST_SESSIONS..], [0; 5], "no session, and an answer all the same");
        sessions.begin(Metadata { session_id: ids[0], epoch: -1 }, vec![], &HashSet::new()).unwrap();
        let many: Vec<_> = (0..MOST_PARTITIONS as i32).map(asked).collect();
        assert_eq!(sessions.begin(full, many.clone(), &HashSet::new()).unwrap().session_id(), 0);
        let went_on = sessions.begin(Metadata { session_id: ids[1], epoch: 1 }, many, &HashSet::new());
        assert_eq!(went_on.unwrap_err(), ErrorCode::FetchSessionIdNotFound);
    }
}
