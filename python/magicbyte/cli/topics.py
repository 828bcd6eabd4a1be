"""`magicbyte topics`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.cli.terminal import print_line, print_problem
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.find.cluster import DEFAULT_POLICY
from magicbyte.options.read import TopicsOptions

if TYPE_CHECKING:
    from magicbyte.jobs.topics import Topic

__all__ = ["topics"]


@click.command(short_help="List topics with their partitions, configs and cleanup policy.")
@partition_choice.local_sources_or_clusters
@partition_choice.choice(prefer=True)
@flags(TopicsOptions, "given")
@options.as_json
def topics(sources: tuple[str, ...], choice: PartitionChoice, given: TopicsOptions, as_json: bool) -> int:
    """List the topics of the cluster whose log directories are SRC, or of a running one: kafka://HOST:PORT.

    A running cluster tells its topics, as far as the user may see them, with all that kafka-topics --describe
    shows, and the policies in force. Whether a partition is in SRC then remains unknown.

    The source of log directories is __cluster_metadata-0 at or below SRC, its newest snapshot and the
    segments after it: deleted topics are not listed. It is read even if the options choose other topics; if
    there are several copies, --prefer chooses one. Without it, as in clusters with ZooKeeper, the topics are
    those that have directories, and their policy is known only from --topic-config.

    The policy is followed by its source: file (--topic-config), topic (its own config), broker (the brokers'
    dynamic config), server.properties (--server-properties), kafka (internal topics), or default. The last
    means that only the brokers' server.properties has the policy; since it is in no log directory, the policy
    is unknown. An empty policy keeps everything.

    --json also has the leader, its epoch, the replicas and in-sync replicas of each partition, and whether it
    is in SRC.

    \b
    magicbyte topics /backup/kafka-logs
    magicbyte topics --exclude-internal --topic 'orders-*' /backup/kafka-logs
    magicbyte topics --prefer /disk2 /disk1 /disk2
    magicbyte topics --json /backup/kafka-logs | jq '.topics[] | select(.cleanup_policy != "delete")'
    magicbyte topics --topic-config topics.json /backup/zookeeper-era
    magicbyte topics kafka://broker:9092
    magicbyte topics --command-config client.properties kafkas://broker:9093/orders
    magicbyte topics --server-properties /etc/kafka/server.properties /backup/kafka-logs
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports, tables

    report = magicbyte.topics(sources, choice=choice, **vars(given))
    if as_json:
        reports.print_json(report)
    else:
        tables.print_table(["topic", *_COLUMNS], [_row(topic) for topic in report["topics"]])
        if report["cluster_metadata"] is None and report["cluster"] is None:
            print_line("no __cluster_metadata: these are the topics that have directories")
    for problem in report["problems"]:
        print_problem(f"magicbyte: {problem}")
    return exit_code(report["problems"])


_COLUMNS = ("id", "partitions", "here", "replicas", "cleanup policy", "from", "other configs")


def _policy(topic: Topic) -> str:
    if topic["cleanup_policy"] is not None:
        return topic["cleanup_policy"] or "(empty)"
    if topic["policy_from"] == "default":
        return f"unknown (broker default; Kafka's is {DEFAULT_POLICY})"
    return "unknown"


def _here(topic: Topic) -> int | None:
    """The number of partitions in the sources; None for a running cluster."""
    here = [partition["here"] for partition in topic["partitions"] if partition["here"] is not None]
    return sum(here) if here else None


def _row(topic: Topic) -> list[object]:
    partitions = topic["partitions"]
    replicas = {len(partition["replicas"]) for partition in partitions if partition["replicas"] is not None}
    shown = sorted((name, value) for name, value in topic["configs"].items() if name != "cleanup.policy")
    return [
        topic["topic"],
        topic["topic_id"],
        len(partitions),
        _here(topic),
        max(replicas, default=None),
        _policy(topic),
        topic["policy_from"],
        ", ".join(f"{name}={value}" for name, value in shown) or None,
    ]
