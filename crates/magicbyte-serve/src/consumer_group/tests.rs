#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use magicbyte_broker::ErrorCode;

use super::{Beaten, Heartbeat, LEAVE, LEAVE_FOR_NOW, SESSION_TIMEOUT, Subscription};
use crate::assignors::{Assignee, Assignor, Place, TopicId, TopicPartitions};
use crate::caller::{Caller, Result};
use crate::classic_group::{Admission, Join};
use crate::consumer_group::Committable;
use crate::group::Protocol;
use crate::groups::Groups;
use crate::limits::{MAX_GROUP_MEMORY, MAX_MEMBERS};

const GROUP: &str = "billing";
const REBALANCE: Duration = Duration::from_mins(5);

/// Groups, topics, and a clock that only the test moves.
struct Play {
    groups: Groups,
    partitions: TopicPartitions,
    now: Instant,
    /// What each member was told that it may have.
    told: BTreeMap<String, BTreeSet<Place>>,
}

fn topic(number: u8) -> TopicId {
    [number; 16]
}

fn names(topics: &[u8]) -> Subscription<BTreeSet<Arc<str>>> {
    let to = topics.iter().map(|number| format!("topic-{number}").into()).collect();
    Subscription { to, topics: topics.iter().map(|&number| topic(number)).collect() }
}

fn beat(member_id: &str, epoch: i32) -> Heartbeat {
    Heartbeat {
        member_id: member_id.into(),
        epoch,
        instance_id: None,
        rack_id: None,
        client_id: "client".into(),
        host: "127.0.0.1".into(),
        rebalance_timeout_ms: None,
        names: None,
        pattern: None,
        assignor: None,
        owned: None,
    }
}

fn joining(member_id: &str, topics: &[u8]) -> Heartbeat {
    Heartbeat {
        rebalance_timeout_ms: Some(REBALANCE.as_millis() as i32),
        names: Some(names(topics)),
        owned: Some(BTreeSet::new()),
        ..beat(member_id, 0)
    }
}

fn of_instance(beat: Heartbeat, instance_id: &str) -> Heartbeat {
    Heartbeat { instance_id: Some(instance_id.into()), ..beat }
}

fn places(topic_number: u8, partitions: impl IntoIterator<Item = i32>) -> BTreeSet<Place> {
    partitions.into_iter().map(|partition| (topic(topic_number), partition)).collect()
}

impl Play {
    /// Topics with these numbers of partitions.
    fn new(counts: &[i32]) -> Self {
        let partitions = counts.iter().zip(1..).map(|(&count, number)| (topic(number), (0..count).collect()));
        let (groups, told) = (Groups::default(), BTreeMap::new());
        Self { groups, partitions: partitions.collect(), now: Instant::now(), told }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    fn beat(&mut self, beat: Heartbeat) -> Result<Beaten> {
        let beaten = self.groups.consumer_heartbeat(GROUP, beat, &self.partitions, self.now)?;
        if let Some(assigned) = &beaten.assigned {
            self.told.insert(beaten.member_id.to_string(), assigned.clone());
        }
        Ok(beaten)
    }

    fn epoch(&self, id: &str) -> i32 {
        match &self.groups.group(GROUP).unwrap().protocol {
            Protocol::Consumer(group) => group.members()[id].epoch,
            Protocol::Classic(_) => panic!("a group of the classic protocol"),
        }
    }

    /// The member has what it was told to have, and says so.
    fn obey(&mut self, id: &str) -> Result<Beaten> {
        let owned = self.told.get(id).cloned();
        self.beat(Heartbeat { owned, ..beat(id, self.epoch(id)) })
    }

    /// All members follow, until nothing changes any more. Nobody may have what another one still has.
    fn settle(&mut self, ids: &[&str]) {
        for _ in 0..10 {
            for id in ids {
                let before = self.told.get(*id).cloned().unwrap_or_default();
                self.obey(id).unwrap();
                for (other, others) in self.told.iter().filter(|(other, _)| *other != id) {
                    assert!(self.told[*id].is_disjoint(others), "{id} and {other}, {before:?}");
                }
            }
        }
        assert_eq!(self.state(), "Stable");
    }

    fn counts(&self, ids: &[&str]) -> Vec<usize> {
        ids.iter().map(|id| self.told[*id].len()).collect()
    }

    fn state(&self) -> &'static str {
        self.groups.group(GROUP).unwrap().state()
    }

    fn commit(&mut self, id: &str, epoch: i32) -> Result<Committable> {
        let caller = Caller { member_id: id, instance_id: None, generation: epoch };
        self.groups.check_commit(GROUP, caller, self.now)
    }
}

#[test]
fn members_share_the_partitions_step_by_step() {
    let mut play = Play::new(&[6]);
    let first = play.beat(joining("a", &[1])).unwrap();
    assert_eq!((first.epoch, first.assigned), (2, Some(places(1, 0..6))));
    let second = play.beat(joining("b", &[1])).unwrap();
    // It is at the new epoch, and waits for the partitions that the first one has to give up.
    assert_eq!((second.epoch, second.assigned, play.state()), (3, Some(BTreeSet::new()), "Reconciling"));
    let told = play.beat(beat("a", 2)).unwrap();
    assert_eq!((told.epoch, told.assigned), (2, Some(places(1, 0..3))));
    assert_eq!(play.beat(beat("b", 3)).unwrap().assigned, None);
    // It still has all of them; then it has not.
    let still = Heartbeat { owned: Some(places(1, 0..6)), ..beat("a", 2) };
    assert_eq!(play.beat(still).unwrap().epoch, 2);
    assert_eq!(play.obey("a").unwrap().epoch, 3);
    assert_eq!(play.beat(beat("b", 3)).unwrap().assigned, Some(places(1, 3..6)));
    assert_eq!(play.state(), "Stable");

    play.beat(joining("c", &[1])).unwrap();
    play.settle(&["a", "b", "c"]);
    assert_eq!(play.counts(&["a", "b", "c"]), [2, 2, 2]);
    let left = play.beat(beat("b", LEAVE)).unwrap();
    assert_eq!((left.epoch, left.assigned), (LEAVE, None));
    play.told.remove("b");
    play.settle(&["a", "c"]);
    assert_eq!(play.counts(&["a", "c"]), [3, 3]);
    for id in ["a", "c"] {
        play.beat(beat(id, LEAVE)).unwrap();
    }
    assert_eq!(play.state(), "Empty");
    assert_eq!(play.beat(beat("a", 6)), Err(ErrorCode::UnknownMemberId));
}

#[test]
fn epochs_that_are_wrong() {
    let mut play = Play::new(&[4]);
    assert_eq!(play.beat(beat("a", 2)), Err(ErrorCode::GroupIdNotFound));
    assert_eq!(play.beat(beat("a", LEAVE)), Err(ErrorCode::GroupIdNotFound));
    play.beat(joining("a", &[1])).unwrap();
    assert_eq!(play.beat(beat("b", 2)), Err(ErrorCode::UnknownMemberId));
    assert_eq!(play.beat(beat("a", 3)), Err(ErrorCode::FencedMemberEpoch));
    play.beat(joining("b", &[1])).unwrap();
    play.settle(&["a", "b"]);
    assert_eq!(play.epoch("a"), 3);
    // The response with the new epoch may have been lost.
    let owned = play.told["a"].clone();
    assert!(play.beat(Heartbeat { owned: Some(owned), ..beat("a", 2) }).is_ok());
    let more = Heartbeat { owned: Some(places(1, 0..4)), ..beat("a", 2) };
    assert_eq!(play.beat(more), Err(ErrorCode::FencedMemberEpoch));
    assert_eq!(play.beat(beat("a", 2)), Err(ErrorCode::FencedMemberEpoch));
    // A fenced member joins again, and keeps its place.
    let again = play.beat(joining("a", &[1])).unwrap();
    assert_eq!((again.epoch, again.assigned.map(|assigned| assigned.len())), (3, Some(2)));
}

#[test]
fn a_member_that_keeps_its_partitions_is_removed() {
    let mut play = Play::new(&[2]);
    play.beat(joining("a", &[1])).unwrap();
    play.beat(joining("b", &[1])).unwrap();
    play.beat(beat("a", 2)).unwrap();
    for _ in 0..10 {
        play.pass(REBALANCE / 10);
        play.beat(beat("b", 3)).unwrap();
        assert_eq!(play.beat(beat("a", 2)).unwrap().epoch, 2, "it is alive");
    }
    play.pass(Duration::from_millis(1));
    assert_eq!(play.beat(beat("a", 2)), Err(ErrorCode::UnknownMemberId));
    assert_eq!(play.beat(beat("b", 3)).unwrap().assigned, Some(places(1, 0..2)));
}

#[test]
fn a_member_without_heartbeats_is_removed() {
    let mut play = Play::new(&[2]);
    play.beat(joining("a", &[1])).unwrap();
    play.beat(joining("b", &[1])).unwrap();
    play.settle(&["a", "b"]);
    play.pass(SESSION_TIMEOUT);
    play.obey("a").unwrap();
    play.pass(Duration::from_millis(1));
    play.told.remove("b");
    play.settle(&["a"]);
    assert_eq!(play.counts(&["a"]), [2]);
    play.pass(SESSION_TIMEOUT + Duration::from_millis(1));
    assert_eq!(play.beat(beat("a", 4)), Err(ErrorCode::UnknownMemberId));
    assert_eq!(play.state(), "Empty");
}

#[test]
fn an_instance_comes_back_to_its_partitions() {
    let mut play = Play::new(&[6]);
    for (id, instance_id) in [("a", "one"), ("b", "two")] {
        play.beat(of_instance(joining(id, &[1]), instance_id)).unwrap();
    }
    play.settle(&["a", "b"]);
    let (epoch, assigned) = (play.epoch("a"), play.told["a"].clone());
    let other = of_instance(joining("c", &[1]), "one");
    assert_eq!(play.beat(other.clone()), Err(ErrorCode::UnreleasedInstanceId));
    assert_eq!(play.beat(of_instance(beat("b", epoch), "one")), Err(ErrorCode::FencedInstanceId));
    assert_eq!(play.beat(of_instance(beat("b", epoch), "none")), Err(ErrorCode::UnknownMemberId));
    assert_eq!(play.beat(of_instance(beat("b", LEAVE), "one")), Err(ErrorCode::FencedInstanceId));
    let left = play.beat(of_instance(beat("a", LEAVE_FOR_NOW), "one")).unwrap();
    assert_eq!(left.epoch, LEAVE_FOR_NOW);
    assert_eq!(play.obey("b").unwrap().assigned, None, "nobody gets what it will come back to");
    let back = play.beat(other).unwrap();
    assert_eq!((back.epoch, back.assigned.as_ref()), (epoch, Some(&assigned)));
    assert_eq!(play.beat(of_instance(beat("a", epoch), "one")), Err(ErrorCode::FencedInstanceId));
    // If it does not come back, others get the partitions when its session is over.
    play.beat(of_instance(beat("c", LEAVE_FOR_NOW), "one")).unwrap();
    play.told.remove("a");
    play.told.remove("c");
    play.pass(SESSION_TIMEOUT);
    play.obey("b").unwrap();
    play.pass(Duration::from_millis(1));
    play.settle(&["b"]);
    assert_eq!(play.counts(&["b"]), [6]);
}

#[test]
fn a_member_that_subscribes_to_something_else() {
    let mut play = Play::new(&[2, 2]);
    play.beat(joining("a", &[1])).unwrap();
    play.beat(joining("b", &[2])).unwrap();
    play.settle(&["a", "b"]);
    assert_eq!((&play.told["a"], &play.told["b"]), (&places(1, 0..2), &places(2, 0..2)));
    let owned = Some(play.told["a"].clone());
    let changed = play.beat(Heartbeat { names: Some(names(&[2])), owned, ..beat("a", 3) }).unwrap();
    assert_eq!((changed.epoch, changed.assigned), (3, Some(BTreeSet::new())));
    play.settle(&["a", "b"]);
    assert_eq!(play.counts(&["a", "b"]), [1, 1]);
    // A pattern and names are one subscription; topics that do not exist are none.
    let pattern = Some(Subscription { to: "topic-1|topic-9".into(), topics: [topic(1)].into() });
    let epoch = play.epoch("a");
    play.beat(Heartbeat { pattern, ..beat("a", epoch) }).unwrap();
    play.settle(&["a", "b"]);
    assert!(play.told["a"].is_superset(&places(1, 0..2)));
}

#[test]
fn both_protocols_share_a_group_one_after_the_other() {
    let mut play = Play::new(&[2]);
    let join = || Join {
        member_id: "".into(),
        instance_id: None,
        client_id: "client".into(),
        host: "127.0.0.1".into(),
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: 60_000,
        protocol_type: "consumer".into(),
        protocols: vec![("range".into(), "".into())],
        id_required: false,
    };
    let Ok(Admission::Member(id)) = play.groups.join(GROUP, join(), play.now) else { panic!("it joins") };
    assert_eq!(play.beat(joining("a", &[1])), Err(ErrorCode::GroupIdNotFound));
    assert_eq!(play.beat(beat("a", 2)), Err(ErrorCode::GroupIdNotFound));
    play.groups.leave(GROUP, &id, None, play.now).unwrap();
    play.beat(joining("a", &[1])).unwrap();
    assert_eq!(play.groups.join(GROUP, join(), play.now), Err(ErrorCode::InconsistentGroupProtocol));
    let classic = Caller { member_id: "a", instance_id: None, generation: 2 };
    assert_eq!(play.groups.heartbeat(GROUP, classic, play.now), Err(ErrorCode::UnknownMemberId));
    assert_eq!(play.groups.leave(GROUP, "a", None, play.now), Err(ErrorCode::UnknownMemberId));
    play.beat(beat("a", LEAVE)).unwrap();
    assert!(play.groups.join(GROUP, join(), play.now).is_ok());
}

#[test]
fn offsets_are_those_of_members_of_the_right_epoch() {
    let mut play = Play::new(&[4]);
    play.beat(joining("a", &[1])).unwrap();
    assert_eq!(play.commit("a", 2), Ok(Committable::All));
    assert_eq!(play.commit("a", 3), Err(ErrorCode::StaleMemberEpoch));
    assert_eq!(play.commit("b", 2), Err(ErrorCode::UnknownMemberId));
    assert_eq!(play.commit("", -1), Err(ErrorCode::UnknownMemberId));
    play.beat(joining("b", &[1])).unwrap();
    play.settle(&["a", "b"]);
    // What it has had since the older epoch, it may commit with that one.
    let committable = play.commit("a", 2).unwrap();
    let allowed = (0..4).filter(|&partition| committable.has((topic(1), partition)));
    assert_eq!(allowed.collect::<Vec<_>>(), [0, 1]);
    let mut fetch = |id, epoch| play.groups.check_fetch(GROUP, id, epoch, play.now);
    assert_eq!(fetch(None, -1), Ok(()));
    assert_eq!(fetch(Some("a"), 3), Ok(()));
    assert_eq!(fetch(Some("a"), 2), Err(ErrorCode::StaleMemberEpoch));
    assert_eq!(fetch(Some("c"), 1), Err(ErrorCode::UnknownMemberId));
    for id in ["a", "b"] {
        play.beat(beat(id, LEAVE)).unwrap();
    }
    assert_eq!(play.commit("", -1), Ok(Committable::All));
}

#[test]
fn a_hundred_members_rebalance_in_less_than_a_second() {
    let mut play = Play::new(&[1000]);
    let ids: Vec<_> = (0..100).map(|n| format!("member-{n}")).collect();
    for id in &ids {
        play.beat(joining(id, &[1])).unwrap();
    }
    let rounds = |play: &mut Play, ids: &[String]| {
        for id in ids.iter().cycle().take(3 * ids.len()) {
            play.obey(id).unwrap();
        }
        assert_eq!(play.state(), "Stable");
    };
    rounds(&mut play, &ids);
    assert!(play.told.values().all(|assigned| assigned.len() == 10));
    let begun = Instant::now();
    play.beat(beat(&ids[0], LEAVE)).unwrap();
    play.told.remove(&ids[0]);
    rounds(&mut play, &ids[1..]);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(play.told.values().all(|assigned| [10, 11].contains(&assigned.len())));
}

#[test]
fn members_and_groups_take_no_more_than_the_limit() {
    let mut play = Play::new(&[10]);
    for n in 0..MAX_MEMBERS {
        play.beat(joining(&format!("member-{n}"), &[1])).unwrap();
    }
    assert_eq!(play.beat(joining("one-more", &[1])), Err(ErrorCode::GroupMaxSizeReached));
    assert!(play.beat(beat("member-0", play.epoch("member-0"))).is_ok());

    let to: BTreeSet<Arc<str>> = (0..1000).map(|n| format!("{n:01000}").into()).collect();
    let large = Subscription { to, topics: BTreeSet::new() };
    let refused = (0..1000).find(|n| {
        let join = Heartbeat { names: Some(large.clone()), ..joining("a", &[]) };
        play.groups.consumer_heartbeat(&format!("large-{n}"), join, &play.partitions, play.now).is_err()
    });
    assert!(refused.is_some_and(|count| count < MAX_GROUP_MEMORY / 1_000_000), "{refused:?}");
    // When their sessions are over, others have the memory.
    play.pass(SESSION_TIMEOUT + Duration::from_secs(2));
    assert!(play.groups.consumer_heartbeat("next", joining("a", &[1]), &play.partitions, play.now).is_ok());
    let join = Heartbeat { names: Some(large), ..joining("a", &[]) };
    assert!(play.groups.consumer_heartbeat("large", join, &play.partitions, play.now).is_ok());
}

/// Target assignments of members with these topics.
fn assigned(assignor: Assignor, counts: &[i32], members: &[&[u8]]) -> Vec<Arc<BTreeSet<Place>>> {
    let partitions = Play::new(counts).partitions;
    let nothing = BTreeSet::new();
    let topics: Vec<_> = members.iter().map(|topics| names(topics).topics).collect();
    let ids: Vec<_> = (0..members.len()).map(|n| format!("member-{n}")).collect();
    let assignees = ids.iter().zip(&topics).map(|(id, topics)| Assignee {
        member_id: id,
        instance_id: None,
        topics,
        before: &nothing,
    });
    assignor.assign(&assignees.collect::<Vec<_>>(), &partitions)
}

#[test]
fn range_gives_the_same_partitions_of_each_topic() {
    // The example of `RangeAssignor`.
    let all: &[u8] = &[1, 2];
    let found = assigned(Assignor::Range, &[3, 3], &[all, all]);
    assert_eq!(*found[0], &places(1, 0..2) | &places(2, 0..2));
    assert_eq!(*found[1], &places(1, 2..3) | &places(2, 2..3));
    let found = assigned(Assignor::Range, &[3, 2], &[all, &[2], &[1]]);
    assert_eq!(*found[0], &places(1, 0..2) | &places(2, 0..1));
    assert_eq!((&*found[1], &*found[2]), (&places(2, 1..2), &places(1, 2..3)));
    assert_eq!(
        assigned(Assignor::Range, &[1], &[&[1], &[1], &[]]).iter().map(|one| one.len()).sum::<usize>(),
        1
    );
}

#[test]
fn uniform_balances_members_with_their_own_topics() {
    let sizes = |counts: &[i32], members: &[&[u8]]| -> Vec<usize> {
        let found = assigned(Assignor::Uniform, counts, members);
        let all: BTreeSet<Place> = found.iter().flat_map(|one| one.iter().copied()).collect();
        let sum: usize = found.iter().map(|one| one.len()).sum();
        assert_eq!(all.len(), sum, "no partition twice");
        found.iter().map(|one| one.len()).collect()
    };
    // What Kafka's `UniformAssignor` gives.
    assert_eq!(sizes(&[7], &[&[1], &[1], &[1]]), [2, 2, 3]);
    assert_eq!(sizes(&[6, 6], &[&[1], &[1, 2], &[2]]), [3, 4, 5]);
    assert_eq!(sizes(&[10, 2], &[&[1], &[1, 2], &[2]]), [5, 5, 2]);
    assert_eq!(sizes(&[1, 9], &[&[1], &[1, 2]]), [1, 9]);
    assert_eq!(sizes(&[3], &[&[], &[1]]), [0, 3]);
    assert_eq!(sizes(&[5, 7, 9], &[&[1, 3], &[1, 2], &[2, 3], &[3]]), [6, 5, 5, 5]);
    assert_eq!(sizes(&[20, 3, 8], &[&[1, 2], &[2], &[1, 3], &[3], &[2, 3]]), [10, 3, 10, 4, 4]);
    assert_eq!(sizes(&[], &[&[1], &[1]]), [0, 0]);
}
