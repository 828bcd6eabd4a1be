"""The job of `magicbyte topics`: the topics of a cluster, and the cleanup policies of their logs.

The source is the cluster's own log, `__cluster_metadata-0`. Without it, as in clusters with ZooKeeper, the
topics are those that have directories. A running cluster is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from magicbyte.errors import RefusedError
from magicbyte.internal_topics.metadata.topics import TopicState
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.describing.cluster import TopicDescription, describe_cluster
from magicbyte.jobs.describing.topic_configs import DescribedConfigs, describe_topic_configs
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.cluster import Cluster, read_cluster, read_configs
from magicbyte.jobs.find.partitions import find_inputs, nothing_found
from magicbyte.listing import topic_id_of
from magicbyte.live import chosen_partitions, only_cluster, open_cluster
from magicbyte.model import PartitionListing
from magicbyte.options.read import TopicsOptions
from magicbyte.storage.location import ClusterUrl

__all__ = ["Topic", "TopicPartition", "TopicsReport", "topics", "topics_of"]


class TopicPartition(TypedDict):
    """A partition of a topic; None for values that only the cluster's metadata has, or a running cluster."""

    partition: int
    leader: int | None
    """The node that leads it; -1 for none."""
    leader_epoch: int | None
    """Also None if a running cluster is older than Kafka 2.1."""
    replicas: list[int] | None
    isr: list[int] | None
    here: bool | None
    """True if there is a directory of the partition among the sources; None for a running cluster."""


class Topic(TypedDict):
    """A topic of the cluster."""

    topic: str
    topic_id: str | None
    cleanup_policy: str | None
    """None if it is unknown; empty if the topic keeps everything."""
    policy_from: str | None
    """`file` (the user's), `topic` (its own config), `broker` (the brokers' dynamic config),
    `server.properties` (the brokers' file, if it is given), `kafka` (an internal topic, always compacted) or
    `default` (the brokers' default: without that file the policy is unknown, but a running cluster tells it).
    None if the origin is unknown.
    """
    configs: dict[str, str]
    """The configs that were set for the topic, including the user's file."""
    partitions: list[TopicPartition]


class TopicsReport(TypedDict):
    """The output of `magicbyte topics --json`."""

    cluster_metadata: str | None
    """The directory that the topics come from; None if only the names of directories are known, and for a
    running cluster."""
    cluster: str | None
    """The URL of the running cluster that was asked."""
    topics: list[Topic]
    problems: list[str]
    """Problems with reading the cluster's metadata, or what a running cluster does not tell."""


def topics(
    sources: Sequence[str],
    options: TopicsOptions,
    *,
    choice: PartitionChoice = EVERYTHING,
) -> TopicsReport:
    """Lists the topics that the cluster's metadata at or below `sources` names; without such metadata, those
    that have directories. `choice` selects among them. Of several copies of the metadata, the newest is read,
    or the one that `choice.prefer` names. If a part of it cannot be read, topics that it does not name and
    that have directories are listed as well. The topics of a running cluster are those that the user may
    see.

    Raises:
        RefusedError: if there is nothing to read.
        OSError: if a running cluster does not answer or refuses.

    """
    url = only_cluster(sources, options.command_config)
    if url is not None:
        return _topics_of_cluster(url, options, choice)
    given = read_configs(options)
    inputs = find_inputs(sources, choice, consult={CLUSTER_METADATA}, may_be_none=True)
    metadata = inputs.consulted_partition(CLUSTER_METADATA)
    report = topics_of(read_cluster(metadata, given), inputs.directories, choice)
    if not report["topics"]:
        raise nothing_found(sources, [directory["topic"] for directory in inputs.directories], "topic")
    return report


def _topics_of_cluster(url: ClusterUrl, options: TopicsOptions, choice: PartitionChoice) -> TopicsReport:
    if options.topic_config is not None or options.server_properties is not None:
        raise RefusedError(
            f"{url.cluster}: a running cluster tells its configs: leave out the files of configs"
        )
    reader = open_cluster(url.cluster, options.command_config)
    there = describe_cluster(reader).topics
    places = [(name, number) for name, topic in there.items() for number in topic.partitions]
    chosen: dict[str, list[int]] = {}
    for name, number in chosen_partitions(url, places, choice.includes):
        chosen.setdefault(name, []).append(number)
    configs, problems = describe_topic_configs(reader, list(chosen))
    return TopicsReport(
        cluster_metadata=None,
        cluster=url.cluster,
        topics=[
            _described(there[name], numbers, configs.get(name, DescribedConfigs({})))
            for name, numbers in chosen.items()
        ],
        problems=problems,
    )


def _described(topic: TopicDescription, numbers: Sequence[int], configs: DescribedConfigs) -> Topic:
    return Topic(
        topic=topic.name,
        topic_id=topic.topic_id,
        cleanup_policy=configs.policy,
        policy_from=configs.policy_from,
        configs=dict(configs.own),
        partitions=[
            TopicPartition(
                partition=number,
                leader=one.leader,
                leader_epoch=None if one.leader_epoch < 0 else one.leader_epoch,
                replicas=list(one.replicas),
                isr=list(one.isr),
                here=None,
            )
            for number in numbers
            for one in [topic.partitions[number]]
        ],
    )


def topics_of(
    cluster: Cluster, directories: Iterable[PartitionListing], choice: PartitionChoice = EVERYTHING
) -> TopicsReport:
    """Describes the chosen topics of a cluster, given the directories of partitions."""
    here: dict[str, list[PartitionListing]] = {}
    for directory in directories:
        if directory["state"] == "current":
            here.setdefault(directory["topic"], []).append(directory)
    if cluster.path is None:
        found = [_of_directories(cluster, topic, own) for topic, own in here.items()]
    else:
        found = [_of_cluster(cluster, one, here.get(one.name, [])) for one in cluster.state.topics.values()]
        if cluster.problems:
            # The records that could not be read may have created them.
            unnamed = (topic for topic in here if topic not in cluster.state.names)
            found += [_of_directories(cluster, topic, here[topic]) for topic in unnamed]
    for topic in found:
        name, partitions = topic["topic"], topic["partitions"]
        topic["partitions"] = [
            partition for partition in partitions if choice.includes(name, partition["partition"])
        ]
    return TopicsReport(
        cluster_metadata=cluster.path,
        cluster=None,
        topics=sorted((one for one in found if one["partitions"]), key=lambda one: one["topic"]),
        problems=cluster.problems,
    )


def _of_cluster(cluster: Cluster, topic: TopicState, listings: Sequence[PartitionListing]) -> Topic:
    here = {listing["partition"] for listing in listings}
    partitions = [
        TopicPartition(
            partition=number,
            leader=one.leader,
            leader_epoch=one.leader_epoch,
            replicas=one.replicas,
            isr=one.isr,
            here=number in here,
        )
        for number, one in sorted(topic.partitions.items())
    ]
    return _topic(cluster, topic.name, topic.topic_id, partitions)


def _of_directories(cluster: Cluster, topic: str, listings: Sequence[PartitionListing]) -> Topic:
    ids = [topic_id for listing in listings if (topic_id := topic_id_of(listing)) is not None]
    partitions = [
        TopicPartition(partition=number, leader=None, leader_epoch=None, replicas=None, isr=None, here=True)
        for number in sorted({listing["partition"] for listing in listings})
    ]
    return _topic(cluster, topic, next(iter(ids), None), partitions)


def _topic(cluster: Cluster, name: str, topic_id: str | None, partitions: list[TopicPartition]) -> Topic:
    policy, policy_from = cluster.policy(name)
    return Topic(
        topic=name,
        topic_id=topic_id,
        cleanup_policy=policy,
        policy_from=policy_from,
        configs=cluster.configs(name),
        partitions=partitions,
    )
