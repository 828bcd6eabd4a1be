#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::bytes::Bytes;

use magicbyte_broker::ErrorCode;

use super::{Admission, Caller, CommittedOffset, Group, Groups, Join, Joined, MAX_GROUP_MEMORY, Step};
use crate::classic_group::SETTLING;
use crate::consumer_group::Committable;
use crate::group::Protocol;
use crate::limits::{MAX_MEMBER_MEMORY, MAX_MEMBERS, MAX_PENDING_MEMORY};

const SESSION: Duration = Duration::from_secs(30);
const REBALANCE: Duration = Duration::from_mins(1);
const GROUP: &str = "billing";

/// Groups, and a clock that only the test moves.
struct Play {
    groups: Groups,
    now: Instant,
}

fn caller(member_id: &str, generation: i32) -> Caller<'_> {
    Caller { member_id, instance_id: None, generation }
}

fn request(member_id: &str) -> Join {
    Join {
        member_id: member_id.into(),
        instance_id: None,
        client_id: "client".into(),
        host: "127.0.0.1".into(),
        session_timeout_ms: SESSION.as_millis() as i64,
        rebalance_timeout_ms: REBALANCE.as_millis() as i64,
        protocol_type: "consumer".into(),
        protocols: vec![("range".into(), Bytes::from_static(b"topics"))],
        id_required: false,
    }
}

fn with_instance(member_id: &str, instance_id: &str) -> Join {
    Join { instance_id: Some(instance_id.into()), ..request(member_id) }
}

impl Play {
    fn new() -> Self {
        Self { groups: Groups::default(), now: Instant::now() }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    fn join(&mut self, join: Join) -> Result<Admission, ErrorCode> {
        self.join_group(GROUP, join)
    }

    fn join_group(&mut self, group: &str, join: Join) -> Result<Admission, ErrorCode> {
        join.check(group)?;
        self.groups.join(group, join, self.now)
    }

    /// Joins; returns the member's id.
    fn member(&mut self, join: Join) -> Arc<str> {
        match self.join(join).unwrap() {
            Admission::Member(id) => id,
            Admission::Pending(id) => panic!("{id} has to join again"),
        }
    }

    fn joined(&mut self, id: &str) -> Result<Step<Joined>, ErrorCode> {
        self.groups.joined(GROUP, id, None, self.now)
    }

    fn done(&mut self, id: &str) -> Joined {
        match self.joined(id).unwrap() {
            Step::Done(joined) => joined,
            Step::Wait(time) => panic!("{id} waits for {time:?}"),
        }
    }

    fn sync(&mut self, id: &str, generation: i32, assignments: &[&str]) -> Result<Step<Bytes>, ErrorCode> {
        let all = assignments.iter().map(|&one| (one.into(), format!("for {one}").into()));
        self.groups.sync(GROUP, caller(id, generation), Some(&all.collect()), self.now)
    }

    fn heartbeat(&mut self, id: &str, generation: i32) -> Result<(), ErrorCode> {
        self.groups.heartbeat(GROUP, caller(id, generation), self.now)
    }

    /// A group of this many members, each with its assignment; the leader comes first.
    fn stable(&mut self, count: usize) -> (Vec<Arc<str>>, i32) {
        let ids: Vec<_> = (0..count).map(|_| self.member(request(""))).collect();
        self.pass(SETTLING);
        let joined: Vec<_> = ids.iter().map(|id| self.done(id)).collect();
        let (leader, generation) = (joined[0].leader.clone(), joined[0].generation);
        let names: Vec<_> = ids.iter().map(|id| &**id).collect();
        self.sync(&leader, generation, &names).unwrap();
        let mut ids = ids.clone();
        ids.sort_by_key(|id| *id != leader);
        (ids, generation)
    }

    fn state(&self) -> &'static str {
        self.groups.group(GROUP).unwrap().state()
    }
}

#[test]
fn members_join_and_get_what_the_leader_assigns() {
    let mut play = Play::new();
    let Admission::Pending(id) = play.join(Join { id_required: true, ..request("") }).unwrap() else {
        panic!("a member without an id gets one first");
    };
    let one = play.member(Join { id_required: true, ..request(&id) });
    assert_eq!(one, id);
    let other = play.member(request(""));
    assert_eq!(play.joined(&one), Ok(Step::Wait(SETTLING)));
    assert_eq!(play.state(), "PreparingRebalance");
    play.pass(SETTLING);
    let (first, second) = (play.done(&one), play.done(&other));
    assert_eq!((first.generation, second.generation), (1, 1));
    assert_eq!((&first.leader, &first.protocol), (&second.leader, &second.protocol));
    let (leader, follower) = if first.leader == one { (&first, &second) } else { (&second, &first) };
    assert_eq!((leader.members.len(), follower.members.len()), (2, 0));
    assert!(leader.members.iter().all(|(.., metadata)| metadata == "topics"));

    assert!(matches!(play.sync(&follower.member_id, 1, &[]), Ok(Step::Wait(_))));
    let everyone = [&*leader.member_id, &*follower.member_id, "nobody"];
    for member in [leader, follower] {
        let own = format!("for {}", member.member_id).into();
        assert_eq!(play.sync(&member.member_id, 1, &everyone), Ok(Step::Done(own)));
        assert_eq!(play.heartbeat(&member.member_id, 1), Ok(()));
    }
    assert_eq!(play.state(), "Stable");
    assert_eq!(play.heartbeat(&one, 2), Err(ErrorCode::IllegalGeneration));
    assert_eq!(play.heartbeat("nobody", 1), Err(ErrorCode::UnknownMemberId));
    assert_eq!(play.sync(&one, 0, &[]), Err(ErrorCode::IllegalGeneration));
}

#[test]
fn a_new_member_lets_the_others_join_again() {
    let mut play = Play::new();
    let (ids, generation) = play.stable(1);
    let new = play.member(request(""));
    assert_eq!(play.heartbeat(&ids[0], generation), Err(ErrorCode::RebalanceInProgress));
    assert_eq!(play.sync(&ids[0], generation, &[]), Err(ErrorCode::RebalanceInProgress));
    assert_eq!(play.joined(&new), Ok(Step::Wait(REBALANCE)));
    assert_eq!(play.member(request(&ids[0])), ids[0]);
    assert_eq!(play.done(&new).generation, generation + 1);
    // The leader stays the leader.
    assert_eq!(play.done(&ids[0]).leader, ids[0]);
}

#[test]
fn a_member_that_joins_too_late_is_left_out() {
    let mut play = Play::new();
    let (ids, generation) = play.stable(2);
    let new = play.member(request(""));
    play.member(request(&ids[1]));
    // It is alive, but does not join.
    for _ in 0..4 {
        play.pass(REBALANCE / 4);
        assert_eq!(play.heartbeat(&ids[0], generation), Err(ErrorCode::RebalanceInProgress));
    }
    let joined = play.done(&new);
    assert_eq!(play.done(&ids[1]).generation, joined.generation);
    assert!([&new, &ids[1]].contains(&&joined.leader));
    assert_eq!(play.heartbeat(&ids[0], joined.generation), Err(ErrorCode::UnknownMemberId));
}

#[test]
fn a_member_without_heartbeats_is_removed() {
    let mut play = Play::new();
    let (ids, generation) = play.stable(3);
    play.pass(SESSION);
    assert_eq!(play.heartbeat(&ids[0], generation), Ok(()));
    assert_eq!(play.heartbeat(&ids[1], generation), Ok(()));
    play.pass(Duration::from_millis(1));
    assert_eq!(play.heartbeat(&ids[0], generation), Err(ErrorCode::RebalanceInProgress));
    assert_eq!(play.heartbeat(&ids[2], generation), Err(ErrorCode::UnknownMemberId));
    // Who waits for the others is alive.
    play.member(request(&ids[0]));
    play.pass(SESSION + SESSION / 2);
    assert_eq!(play.done(&ids[0]).members.len(), 1);
}

#[test]
fn a_leader_that_assigns_nothing_does_not_stop_the_others() {
    let mut play = Play::new();
    let (one, other) = (play.member(request("")), play.member(request("")));
    play.pass(SETTLING);
    let leader = play.done(&one).leader;
    let follower = if leader == one { &other } else { &one };
    for _ in 0..3 {
        assert_eq!(play.heartbeat(&leader, 1), Ok(()));
        assert!(matches!(play.sync(follower, 1, &[]), Ok(Step::Wait(_))));
        play.pass(REBALANCE / 3);
    }
    assert_eq!(play.sync(follower, 1, &[]), Err(ErrorCode::RebalanceInProgress));
    assert_eq!(play.member(request(follower)), *follower);
    play.pass(SESSION + SETTLING);
    assert_eq!(play.done(follower).leader, *follower);
}

#[test]
fn members_leave() {
    let mut play = Play::new();
    let (ids, generation) = play.stable(2);
    let offset = CommittedOffset { offset: 17, leader_epoch: 0, metadata: None };
    let stored = play.groups.commit(GROUP, &"orders".into(), [(0, offset.clone())], play.now);
    assert_eq!(stored, [Ok(())]);
    assert_eq!(play.groups.leave(GROUP, &ids[0], None, play.now), Ok(()));
    assert_eq!(play.groups.leave(GROUP, &ids[0], None, play.now), Err(ErrorCode::UnknownMemberId));
    assert_eq!(play.heartbeat(&ids[1], generation), Err(ErrorCode::RebalanceInProgress));
    play.member(request(&ids[1]));
    let joined = play.done(&ids[1]);
    assert_eq!((&joined.leader, joined.generation), (&ids[1], generation + 1));
    assert_eq!(play.groups.leave(GROUP, &ids[1], None, play.now), Ok(()));
    assert_eq!(play.state(), "Empty");
    assert_eq!(play.groups.group(GROUP).unwrap().offsets.get("orders", 0), Some(&offset));
}

#[test]
fn an_instance_has_one_member() {
    let mut play = Play::new();
    let old = play.member(with_instance("", "one"));
    play.pass(SETTLING);
    let generation = play.done(&old).generation;
    // It was restarted, and does not know its id.
    let new = play.member(with_instance("", "one"));
    assert_ne!(new, old);
    let stale = Caller { instance_id: Some("one"), ..caller(&old, generation) };
    assert_eq!(play.groups.heartbeat(GROUP, stale, play.now), Err(ErrorCode::FencedInstanceId));
    assert_eq!(play.groups.sync(GROUP, stale, None, play.now), Err(ErrorCode::FencedInstanceId));
    assert_eq!(play.groups.check_commit(GROUP, stale, play.now), Err(ErrorCode::FencedInstanceId));
    assert_eq!(play.groups.joined(GROUP, &old, Some("one"), play.now), Err(ErrorCode::FencedInstanceId));
    assert_eq!(play.join(with_instance(&old, "one")), Err(ErrorCode::FencedInstanceId));
    play.pass(SETTLING);
    assert_eq!(play.done(&new).members, [(new.clone(), Some("one".into()), Bytes::from_static(b"topics"))]);
    assert_eq!(play.groups.leave(GROUP, "", Some("other"), play.now), Err(ErrorCode::UnknownMemberId));
    assert_eq!(play.groups.leave(GROUP, "", Some("one"), play.now), Ok(()));
    assert_eq!(play.state(), "Empty");
}

#[test]
fn the_protocol_is_one_that_all_members_have() {
    let mut play = Play::new();
    let having = |names: &[&str]| Join {
        protocols: names.iter().map(|&name| (name.into(), name.to_owned().into())).collect(),
        ..request("")
    };
    let one = play.member(having(&["sticky", "range"]));
    assert_eq!(play.join(having(&["other"])), Err(ErrorCode::InconsistentGroupProtocol));
    assert_eq!(play.join(having(&[])), Err(ErrorCode::InconsistentGroupProtocol));
    let connect = Join { protocol_type: "connect".into(), ..having(&["range"]) };
    assert_eq!(play.join(connect), Err(ErrorCode::InconsistentGroupProtocol));
    let other = play.member(having(&["range"]));
    play.pass(SETTLING);
    assert_eq!(&*play.done(&one).protocol, "range");
    let leader = play.done(&other).leader;
    assert!(play.done(&leader).members.iter().all(|(.., metadata)| metadata == "range"));
}

#[test]
fn commits_are_those_of_members_or_of_nobody() {
    let mut play = Play::new();
    let now = play.now;
    assert_eq!(play.groups.check_commit("free", caller("", -1), now), Ok(Committable::All));
    assert_eq!(play.groups.check_commit("", caller("", -1), now), Err(ErrorCode::InvalidGroupId));
    assert_eq!(play.groups.check_commit("new", caller("x", 3), now), Err(ErrorCode::GroupIdNotFound));
    let (ids, generation) = play.stable(1);
    let now = play.now;
    assert_eq!(play.groups.check_commit(GROUP, caller(&ids[0], generation), now), Ok(Committable::All));
    let wrong = [
        (caller(&ids[0], generation - 1), ErrorCode::IllegalGeneration),
        (caller("nobody", generation), ErrorCode::UnknownMemberId),
        (caller("", -1), ErrorCode::UnknownMemberId),
    ];
    for (caller, error) in wrong {
        assert_eq!(play.groups.check_commit(GROUP, caller, now), Err(error), "{caller:?}");
    }
    let offset = CommittedOffset { offset: 1, leader_epoch: -1, metadata: Some("m".repeat(4097)) };
    let stored = play.groups.commit(GROUP, &"orders".into(), [(0, offset)], now);
    assert_eq!(stored, [Err(ErrorCode::OffsetMetadataTooLarge)]);
}

#[test]
fn joins_that_are_refused() {
    let mut play = Play::new();
    for wrong in [-1, 0, 9, 1_800_001, i64::MAX] {
        let join = Join { session_timeout_ms: wrong, ..request("") };
        assert_eq!(play.join(join), Err(ErrorCode::InvalidSessionTimeout), "{wrong}");
    }
    assert_eq!(play.join_group("", request("")), Err(ErrorCode::InvalidGroupId));
    for _ in 0..MAX_MEMBERS {
        play.member(request(""));
    }
    assert_eq!(play.join(request("")), Err(ErrorCode::GroupMaxSizeReached));
    let protocols = |count: usize| (0..count).map(|n| (n.to_string().into(), Bytes::new())).collect();
    let many = Join { protocols: protocols(MAX_MEMBER_MEMORY / 64), ..request("") };
    assert_eq!(play.join_group("many", many), Err(ErrorCode::GroupMaxSizeReached), "names take memory, too");
    assert_eq!(play.groups.group("many").map(Group::state), None);
}

#[test]
fn ids_that_nobody_joins_with_are_forgotten() {
    let mut play = Play::new();
    let without_id = |client_id: &str| Join { id_required: true, client_id: client_id.into(), ..request("") };
    let memory = |play: &Play| play.groups.group(GROUP).unwrap().memory;
    for client_id in ["client", &"c".repeat(30_000)] {
        for _ in 0..3000 {
            play.join(without_id(client_id)).unwrap();
        }
        assert!(memory(&play) < MAX_PENDING_MEMORY + 4096);
    }
    let Admission::Pending(id) = play.join(without_id("last")).unwrap() else { panic!("an id comes first") };
    play.pass(SESSION + Duration::from_millis(1));
    let late = play.join(Join { id_required: true, ..request(&id) });
    assert_eq!(late, Err(ErrorCode::UnknownMemberId));
    assert!(memory(&play) < 4096);
}

/// Adds up what is kept, as the limit does.
fn measured(groups: &Groups) -> usize {
    let group = |(name, group): (&Arc<str>, &Group)| super::memory_of_name(name) + group.measure();
    groups.after(None).map(group).sum()
}

#[test]
fn the_oldest_groups_without_members_make_room() {
    let mut play = Play::new();
    let offset = |metadata: usize| CommittedOffset {
        offset: 1,
        leader_epoch: -1,
        metadata: Some("m".repeat(metadata)),
    };
    let topic: Arc<str> = "orders".into();
    let (ids, generation) = play.stable(1);
    let count = 2 * MAX_GROUP_MEMORY / 4096;
    for number in 0..count {
        play.pass(Duration::from_micros(1));
        let name = format!("console-consumer-{number}");
        assert_eq!(play.groups.check_commit(&name, caller("", -1), play.now), Ok(Committable::All));
        let stored = play.groups.commit(&name, &topic, [(0, offset(4096))], play.now);
        assert_eq!(stored, [Ok(())]);
        assert!(play.groups.memory <= MAX_GROUP_MEMORY);
    }
    assert_eq!(play.groups.memory, measured(&play.groups));
    assert!(play.groups.group("console-consumer-0").is_none());
    assert!(play.groups.group(&format!("console-consumer-{}", count - 1)).is_some());
    assert_eq!(play.heartbeat(&ids[0], generation), Ok(()), "a group with a member stays");
}

#[test]
fn members_take_no_more_than_the_limit() {
    let mut play = Play::new();
    let large = || Join { protocols: vec![("range".into(), vec![0u8; 3 << 20].into())], ..request("") };
    let refused = (0..100).find(|n| play.join_group(&format!("large-{n}"), large()).is_err());
    assert!(refused.is_some_and(|count| count <= MAX_GROUP_MEMORY / (3 << 20)), "{refused:?}");
    assert_eq!(play.groups.memory, measured(&play.groups));
    assert!(play.groups.memory <= MAX_GROUP_MEMORY);
    assert!(play.join(request("")).is_ok(), "a small member has room");
    // When their sessions are over, others have the memory.
    play.pass(SESSION + REBALANCE + Duration::from_secs(1));
    assert!(play.join_group("next", large()).is_err(), "those that wait for others are alive");
    for n in 0..100 {
        let group = format!("large-{n}");
        let ids: Vec<_> = match play.groups.group(&group).map(|group| &group.protocol) {
            Some(Protocol::Classic(group)) => group.members().keys().cloned().collect(),
            _ => Vec::new(),
        };
        for id in ids {
            assert!(matches!(play.groups.joined(&group, &id, None, play.now), Ok(Step::Done(_))));
        }
    }
    play.pass(SESSION + Duration::from_secs(1));
    assert!(play.join_group("next", large()).is_ok());
    assert_eq!(play.groups.memory, measured(&play.groups));
}

#[test]
fn assignments_take_memory() {
    let mut play = Play::new();
    let (ids, generation) = play.stable(2);
    let large = Bytes::from(vec![0u8; MAX_GROUP_MEMORY / 3 * 2]);
    let all = ids.iter().map(|id| (Arc::clone(id), large.clone())).collect();
    let now = play.now;
    let synced = play.groups.sync(GROUP, caller(&ids[0], generation), Some(&all), now);
    assert_eq!(synced, Err(ErrorCode::GroupMaxSizeReached));
    let unknown = (0..1000).map(|n| (format!("nobody-{n}").into(), large.clone())).collect();
    assert!(play.groups.sync(GROUP, caller(&ids[0], generation), Some(&unknown), now).is_ok());
    assert_eq!(play.groups.memory, measured(&play.groups));
}

#[test]
fn protocols_are_counted_not_compared() {
    let mut play = Play::new();
    let named = |letter: &str| -> Vec<_> {
        (0..20_000).map(|n| (format!("{letter}{n}").into(), Bytes::new())).collect()
    };
    play.member(Join { protocols: named("x"), ..request("") });
    let begun = Instant::now();
    for _ in 0..20 {
        let other = play.join(Join { protocols: named("y"), ..request("") });
        assert_eq!(other, Err(ErrorCode::InconsistentGroupProtocol));
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "not quadratic");
    // Members that leave take their protocols with them.
    let Ok(Admission::Member(id)) = play.join_group("small", request("")) else { panic!("it joins") };
    play.groups.leave("small", &id, None, play.now).unwrap();
    assert!(play.join_group("small", Join { protocols: named("z"), ..request("") }).is_ok());
}
