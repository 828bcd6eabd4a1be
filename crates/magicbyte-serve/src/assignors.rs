//! The assignors of the coordinator: the target assignment of each member (`UniformAssignor`, `RangeAssignor`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The id of a topic.
pub(super) type TopicId = [u8; 16];
/// A partition.
pub(super) type Place = (TopicId, i32);
/// The partitions of all topics, in the order of their indexes.
pub(super) type TopicPartitions = BTreeMap<TopicId, Vec<i32>>;

/// The maximum number of rounds of balancing topic by topic.
const MAX_ROUNDS: usize = 16;

/// An assignor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Assignor {
    /// Members have the same number of partitions, and keep those that they have.
    #[default]
    Uniform,
    /// Members have partitions of the same indexes of each topic.
    Range,
}

/// A member, as an assignor knows it.
#[derive(Debug)]
pub(super) struct Assignee<'a> {
    pub(super) member_id: &'a str,
    pub(super) instance_id: Option<&'a str>,
    /// The topics that it subscribes to and that exist.
    pub(super) topics: &'a BTreeSet<TopicId>,
    /// The target assignment before.
    pub(super) before: &'a BTreeSet<Place>,
}

impl Assignor {
    /// The assignor of this name.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        [Self::Uniform, Self::Range].into_iter().find(|assignor| assignor.name() == name)
    }

    /// Kafka's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Range => "range",
        }
    }

    /// The target assignment of each member.
    pub(super) fn assign(
        self,
        members: &[Assignee<'_>],
        partitions: &TopicPartitions,
    ) -> Vec<Arc<BTreeSet<Place>>> {
        let assigned = match self {
            Self::Range => range(members, partitions),
            Self::Uniform if members.windows(2).all(|two| two[0].topics == two[1].topics) => {
                uniform(members, partitions)
            }
            Self::Uniform => Balance::new(members, partitions).assign(),
        };
        assigned.into_iter().map(Arc::new).collect()
    }
}

/// The partitions of some topics.
fn places<'a>(
    topics: &'a BTreeSet<TopicId>,
    partitions: &'a TopicPartitions,
) -> impl Iterator<Item = Place> + 'a {
    let of_topic = |&topic: &TopicId| {
        partitions.get(&topic).into_iter().flatten().map(move |&partition| (topic, partition))
    };
    topics.iter().flat_map(of_topic)
}

/// `RangeAssignor`.
fn range(members: &[Assignee<'_>], partitions: &TopicPartitions) -> Vec<BTreeSet<Place>> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&index| {
        let member = &members[index];
        // Static members come first.
        (member.instance_id.is_none(), member.instance_id.unwrap_or(member.member_id))
    });
    let mut subscribers: BTreeMap<TopicId, Vec<usize>> = BTreeMap::new();
    for index in order {
        for &topic in members[index].topics {
            subscribers.entry(topic).or_default().push(index);
        }
    }
    let mut assigned = vec![BTreeSet::new(); members.len()];
    for (topic, subscribers) in subscribers {
        let mut left = partitions.get(&topic).map_or(&[][..], Vec::as_slice);
        let (quota, with_one_more) = (left.len() / subscribers.len(), left.len() % subscribers.len());
        for (nth, member) in subscribers.into_iter().enumerate() {
            let (own, others) = left.split_at(quota + usize::from(nth < with_one_more));
            assigned[member].extend(own.iter().map(|&partition| (topic, partition)));
            left = others;
        }
    }
    assigned
}

/// `UniformHomogeneousAssignmentBuilder`: all members subscribe to the same topics.
fn uniform(members: &[Assignee<'_>], partitions: &TopicPartitions) -> Vec<BTreeSet<Place>> {
    let Some(first) = members.first() else { return Vec::new() };
    let mut unassigned: BTreeSet<Place> = places(first.topics, partitions).collect();
    let quota = unassigned.len() / members.len();
    let mut with_one_more = unassigned.len() % members.len();
    let mut missing = Vec::new();
    let mut assigned = Vec::with_capacity(members.len());
    for (index, member) in members.iter().enumerate() {
        let may_have_one_more = with_one_more > 0;
        let most = quota + usize::from(may_have_one_more);
        let kept: BTreeSet<Place> =
            member.before.iter().filter(|&place| unassigned.contains(place)).take(most).copied().collect();
        for place in &kept {
            unassigned.remove(place);
        }
        // Another member may keep one more instead, unless only those are left that have to take one.
        let gives_up = kept.len() < most && members.len() - index > with_one_more;
        let takes = may_have_one_more && !gives_up;
        with_one_more -= usize::from(takes);
        missing.push(quota + usize::from(takes) - kept.len());
        assigned.push(kept);
    }
    let mut unassigned = unassigned.into_iter();
    for (member, missing) in assigned.iter_mut().zip(missing) {
        member.extend(unassigned.by_ref().take(missing));
    }
    assigned
}

/// `UniformHeterogeneousAssignmentBuilder`: each member has its own topics.
struct Balance<'a> {
    partitions: &'a TopicPartitions,
    /// The members that subscribe to each topic.
    subscribers: BTreeMap<TopicId, Vec<usize>>,
    assigned: Vec<BTreeSet<Place>>,
    owners: BTreeMap<Place, usize>,
}

impl<'a> Balance<'a> {
    fn new(members: &[Assignee<'_>], partitions: &'a TopicPartitions) -> Self {
        let mut balance = Self {
            partitions,
            subscribers: BTreeMap::new(),
            assigned: vec![BTreeSet::new(); members.len()],
            owners: BTreeMap::new(),
        };
        for (index, member) in members.iter().enumerate() {
            for &topic in member.topics {
                balance.subscribers.entry(topic).or_default().push(index);
            }
            for &place in member.before {
                if member.topics.contains(&place.0) {
                    balance.give(place, index);
                }
            }
        }
        balance
    }

    fn assign(mut self) -> Vec<BTreeSet<Place>> {
        let topics = self.topics();
        for &topic in &topics {
            self.assign_rest(topic);
        }
        for _ in 0..MAX_ROUNDS {
            let mut moved = false;
            for &topic in &topics {
                moved |= self.balance(topic);
            }
            if !moved {
                break;
            }
        }
        self.assigned
    }

    /// The topics, those with the most partitions for each subscriber first.
    fn topics(&self) -> Vec<TopicId> {
        let mut topics: Vec<_> = self.subscribers.iter().collect();
        topics.sort_by(|&(topic, subscribers), &(other, its_subscribers)| {
            let (count, other_count) = (self.of(*topic).len(), self.of(*other).len());
            let (size, other_size) = (subscribers.len(), its_subscribers.len());
            // Compares the quotients without dividing.
            (other_count * size).cmp(&(count * other_size)).then(size.cmp(&other_size)).then(topic.cmp(other))
        });
        topics.into_iter().map(|(&topic, _)| topic).collect()
    }

    fn of(&self, topic: TopicId) -> &'a [i32] {
        self.partitions.get(&topic).map_or(&[], Vec::as_slice)
    }

    /// Gives a partition to a member, whoever had it before.
    fn give(&mut self, place: Place, member: usize) {
        if let Some(owner) = self.owners.insert(place, member) {
            self.assigned[owner].remove(&place);
        }
        self.assigned[member].insert(place);
    }

    /// The subscribers of a topic by the number of their partitions; those with fewer at first come first.
    fn by_load(&self, topic: TopicId) -> (Vec<usize>, BTreeSet<(usize, usize)>) {
        let mut subscribers = self.subscribers.get(&topic).cloned().unwrap_or_default();
        subscribers.sort_by_key(|&member| (self.assigned[member].len(), member));
        let loads = subscribers.iter().enumerate().map(|(nth, &member)| (self.assigned[member].len(), nth));
        let loads = loads.collect();
        (subscribers, loads)
    }

    /// Assigns the partitions that nobody has to the members with the fewest.
    fn assign_rest(&mut self, topic: TopicId) {
        let (subscribers, mut loads) = self.by_load(topic);
        for &partition in self.of(topic) {
            let place = (topic, partition);
            if !self.owners.contains_key(&place)
                && let Some((load, nth)) = loads.pop_first()
            {
                self.give(place, subscribers[nth]);
                loads.insert((load + 1, nth));
            }
        }
    }

    /// Moves partitions of a topic from the members with the most to those with the fewest. True if one was moved.
    fn balance(&mut self, topic: TopicId) -> bool {
        let (subscribers, mut least) = self.by_load(topic);
        let is_balanced = |least: &BTreeSet<(usize, usize)>, most: usize| {
            least.first().is_none_or(|&(fewest, _)| most <= fewest + 1)
        };
        let mut most = least.clone();
        let mut movable: Vec<Vec<Place>> = vec![Vec::new(); subscribers.len()];
        for (nth, &member) in subscribers.iter().enumerate() {
            movable[nth].extend(self.assigned[member].range((topic, i32::MIN)..=(topic, i32::MAX)));
        }
        let mut has_moved = false;
        while let Some((load, nth)) = most.pop_last() {
            if is_balanced(&least, load) {
                break;
            }
            let Some(place) = movable[nth].pop() else { continue };
            let Some((fewest, receiver)) = least.pop_first() else { break };
            self.give(place, subscribers[receiver]);
            has_moved = true;
            // Who had the fewest is not among those with the most any more that partitions are taken from.
            most.remove(&(fewest, receiver));
            most.insert((fewest + 1, receiver));
            least.insert((fewest + 1, receiver));
            least.remove(&(load, nth));
            least.insert((load - 1, nth));
            most.insert((load - 1, nth));
        }
        has_moved
    }
}
